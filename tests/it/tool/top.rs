//! The live view, in a real terminal.

use std::time::Duration;

use super::terminal::Terminal;
use super::{Service, golden, pdstool, stderr};
use crate::client::server::{ok, status};
use crate::golden::{assert_golden, is_updating};

const STATUS: &str = r#"{"exporter":{},"apps":[
  {"project":"p-1","id":"p-1-ranker","status":"active","verdict":"ok","problems":[],"requests_per_minute":120.5,
   "response_time":{"p50":0.0123,"p90":0.25,"p95":null,"p99":4.2},"min_replicas":0,"max_replicas":5,"dollars_per_replica_hour":0.432,"trend":[]},
  {"project":"p-1","id":"p-1-embed","status":"error","verdict":"problem","problems":["the app reports an error"],
   "requests_per_minute":900,"response_time":{"p50":1},"dollars_per_replica_hour":2}]}"#;

/// An outage of the service, with the reasons of the exporter.
const OUTAGE: &str = r#"{"exporter":{},"summary":{"verdict":"problem","apps":{"all":3},"ok":0,"reasons":[
  {"code":"service_down","verdict":"problem","text":"The service cannot be reached since 05:22 UTC: 3 apps","remedy":"Check the network."},
  {"code":"token_expires_soon","verdict":"warning","text":"The token default expires in 2 d","remedy":"Renew it."}]},
 "apps":[
  {"project":"p-1","id":"p-1-ranker","status":"active","verdict":"problem","problems":["response time: failing, connect, and slow before"],
   "requests_per_minute":120.5,"response_time":{"p50":0.0123,"p90":0.25,"p95":0.5,"p99":4.2},"min_replicas":0,"max_replicas":5,"hardware":"A10","dollars_per_replica_hour":0.432},
  {"project":"p-1","id":"p-1-embed-with-a-rather-long-name","status":"active","verdict":"warning","problems":["settings: late"],"requests_per_minute":900},
  {"project":"p-1","id":"p-1-silent","verdict":"waiting","problems":[]}]}"#;

/// The app of each row of the table.
fn apps(screen: &str) -> Vec<&str> {
    screen.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with("p-1-"))).collect()
}

#[test]
fn a_running_exporter_is_watched_sorted_and_filtered() {
    let service = Service::start(|seen| match &*seen.target {
        "/prefix/api/v1/status" => ok(STATUS),
        _ => status(404, ""),
    });
    let program = crate::process::pdstool();
    let command = format!("{program} top --exporter {}/prefix; echo ended with $?; sleep 60", service.url());
    let terminal = Terminal::run("exporter", &command);
    terminal.wait_for("the table", |screen| {
        apps(screen) == ["p-1-embed", "p-1-ranker"]
            && screen.contains("2 apps, 1 not ok")
            && screen.contains("VERDICT▼")
    });
    terminal
        .wait_for("the problem of the selected app", |screen| screen.contains("the app reports an error"));
    terminal.keys(&["?"]);
    terminal.wait_for("the help", |screen| screen.contains("reverse the order"));
    terminal.keys(&["Escape"]);
    terminal.wait_for("the table again", |screen| apps(screen).len() == 2);
    terminal.keys(&["Down", "Enter"]);
    terminal.wait_for("the app", |screen| {
        ["requests/min", "12.3 ms", "$0.43"].iter().all(|shown| screen.contains(shown))
    });
    terminal.keys(&["q"]);
    terminal.wait_for("the table again", |screen| apps(screen).len() == 2);
    terminal.tmux(&["set-option", "-s", "set-clipboard", "on"]);
    let page = format!("{}/prefix/apps/p-1/p-1-ranker", service.url());
    for (key, copied) in [("o", &*page), ("c", r#"{project="p-1",app="p-1-ranker"}"#)] {
        terminal.keys(&[key]);
        terminal.wait_for("the text to copy", |screen| screen.contains(copied));
        terminal.wait_for("the clipboard", |_| !terminal.tmux(&["list-buffers"]).is_empty());
        assert_eq!(terminal.tmux(&["show-buffer"]), copied);
        terminal.tmux(&["delete-buffer"]);
        terminal.keys(&["q"]);
        terminal.wait_for("the table again", |screen| apps(screen).len() == 2);
    }
    terminal.keys(&["r"]);
    terminal.wait_for("the other order", |screen| apps(screen) == ["p-1-ranker", "p-1-embed"]);
    terminal.keys(&["s"]);
    terminal.wait_for("another column to sort by", |screen| screen.contains("s sort by APP"));
    terminal.keys(&["/", "r", "a", "n", "k", "Enter"]);
    terminal.wait_for("the filtered table", |screen| {
        apps(screen) == ["p-1-ranker"] && screen.contains("1 of 2 apps")
    });
    terminal.keys(&["q"]);
    terminal.wait_for("the end", |screen| screen.contains("ended with 0"));
}

/// A screen with the port of `url` and the age of the data as they always are.
fn steady(screen: &str, url: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in screen.lines() {
        let mut words: Vec<&str> = line.trim_end().split(' ').collect();
        let ages: Vec<usize> =
            (2..words.len()).filter(|at| words[*at] == "ago" && words[at - 1] == "s").collect();
        for at in ages {
            words[at - 2] = "0";
        }
        lines.push(words.join(" ").replace(url, "http://127.0.0.1:10090"));
    }
    lines.join("\n").trim_end().to_owned()
}

#[test]
fn every_screen_fits_80_columns_and_24_lines() {
    let up = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_up = std::sync::Arc::clone(&up);
    let service = Service::start(move |_| match is_up.load(std::sync::atomic::Ordering::SeqCst) {
        true => ok(OUTAGE),
        false => status(503, ""),
    });
    let program = crate::process::pdstool();
    let command = format!(
        "NO_COLOR=1 {program} top --interval 100ms --exporter {}; echo ended; sleep 60",
        service.url()
    );
    let terminal = Terminal::run("screens", &command);
    let kept = std::fs::read_to_string(golden("top.txt")).unwrap();
    let mut screens = String::new();
    // A terminal shows a screen in pieces: what counts is the one that it comes to.
    let mut take = |title: &str, keys: &[&str], wanted: &dyn Fn(&str) -> bool| {
        if !keys.is_empty() {
            terminal.keys(keys);
        }
        let take = |screen: &str| format!("===== {title}\n{}\n", steady(screen, &service.url()));
        let screen = terminal.wait_for(title, |screen| match is_updating() {
            true => wanted(screen) && screen == terminal.screen_after(Duration::from_millis(300)),
            false => kept.contains(&take(screen)),
        });
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        screens.push_str(&take(&screen));
    };
    let table =
        |screen: &str| screen.contains("VERDICT▼") && apps(screen).len() == 3 && !screen.contains("Keys");
    take("an outage", &[], &table);
    take("help: ?", &["?"], &|screen| screen.contains("reverse the order"));
    take("back: Esc", &["Escape"], &table);
    take("details: Enter", &["Enter"], &|screen| screen.contains("requests/min"));
    take("back: q", &["q"], &table);
    take("sorted by name: s", &["s"], &|screen| {
        apps(screen).first() == Some(&"p-1-embed-with-a-rather-long-name")
    });
    take("reversed: r", &["r"], &|screen| apps(screen).first() == Some(&"p-1-silent"));
    take("filtered: /slow Enter", &["/", "s", "l", "o", "w", "Enter"], &|screen| {
        apps(screen) == ["p-1-ranker"]
    });
    take("unfiltered: Esc", &["Escape"], &|screen| apps(screen).len() == 3);
    up.store(false, std::sync::atomic::Ordering::SeqCst);
    take("the exporter is gone", &[], &|screen| screen.contains("503"));
    terminal.keys(&["q"]);
    terminal.wait_for("the end", |screen| screen.contains("ended"));
    assert_golden(&golden("top.txt"), &screens);
}

#[test]
fn a_lost_exporter_is_reported_and_retried() {
    let up = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_up = std::sync::Arc::clone(&up);
    let service = Service::start(move |_| match is_up.load(std::sync::atomic::Ordering::SeqCst) {
        true => ok(STATUS),
        false => status(503, ""),
    });
    let program = crate::process::pdstool();
    let terminal =
        Terminal::run("gone", &format!("{program} top --interval 100ms --exporter {}", service.url()));
    terminal.wait_for("the failure", |screen| screen.contains("503") && screen.contains("nothing yet"));
    up.store(true, std::sync::atomic::Ordering::SeqCst);
    terminal.wait_for("the table", |screen| apps(screen).len() == 2 && !screen.contains("503"));
}

#[test]
fn asking_the_service_directly_is_refused_with_the_alternative() {
    let output = pdstool(&["top", "--direct", "--config.file", "pds-exporter.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("start pds-exporter with the same configuration"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_terminal_is_as_it_was_found_after_a_signal() {
    let service = Service::start(|_| ok(STATUS));
    let program = crate::process::pdstool();
    let command = format!(
        "before=$(stty -g); {program} top --exporter {}; [ \"$before\" = \"$(stty -g)\" ] && echo terminal as before; sleep 60",
        service.url()
    );
    let terminal = Terminal::run("signal", &command);
    terminal.wait_for("the table", |screen| apps(screen).len() == 2);
    terminal.terminate();
    terminal.wait_for("the end", |screen| screen.contains("terminal as before"));
    assert_eq!(terminal.tmux(&["display-message", "-p", "#{alternate_on}"]).trim(), "0");
}

/// Run by the test below in a terminal of its own; it panics there.
#[test]
#[ignore = "it panics on purpose, in the terminal of the test below"]
fn a_panic_with_the_screen_taken_over() {
    let _screen = pdstool::top::Screen::open().unwrap();
    panic!("this was meant to happen");
}

#[test]
fn the_terminal_is_as_it_was_found_after_a_panic() {
    let tests = std::env::current_exe().unwrap();
    let name = "tool::top::a_panic_with_the_screen_taken_over";
    let command = format!(
        "before=$(stty -g); RUST_BACKTRACE=0 {} --exact {name} --ignored --nocapture; [ \"$before\" = \"$(stty -g)\" ] && echo terminal as before; sleep 60",
        tests.display()
    );
    let terminal = Terminal::run("panic", &command);
    terminal.wait_for("the end, and the panic", |screen| {
        screen.contains("terminal as before") && screen.contains("this was meant to happen")
    });
    assert_eq!(terminal.tmux(&["display-message", "-p", "#{alternate_on}"]).trim(), "0");
}

#[test]
fn without_a_terminal_it_says_what_to_use_instead() {
    let output = pdstool(&["top"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("top needs a terminal"), "{}", stderr(&output));
}
