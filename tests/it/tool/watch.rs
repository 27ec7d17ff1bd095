//! Running exporters watched in a real terminal, and several of them at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use super::terminal::Terminal;
use super::{Service, ended, golden, pdstool, stderr, stdout};
use crate::client::server::{ok, status};
use crate::golden::assert_golden;
use crate::process::{Alone, Exporter};

const STATUS: &str = r#"{"exporter":{"shard":0,"shards":2},"summary":{"verdict":"problem","apps":{"all":2,"ok":1,"problem":1},"reasons":[
  {"code":"service_slow","verdict":"problem","text":"Requests to the service time out since 05:22 UTC, and nothing is counted: 1 app","remedy":"Look at the service."}]},
 "apps":[
  {"project":"p-1","id":"p-1-ranker","name":"Ranker","status":"active","verdict":"ok","problems":[],"requests_per_minute":120.5,
   "response_time":{"p50":0.0123,"p90":0.25,"p95":null,"p99":4.2},"min_replicas":0,"max_replicas":5,"dollars_per_replica_hour":0.432,
   "resources":[{"resource":"app","state":"fresh","last_success":null}]},
  {"project":"p-1","id":"p-1-embed","status":"error","verdict":"problem","problems":["the app reports an error"],
   "requests_per_minute":900,"response_time":{"p50":1},"dollars_per_replica_hour":2}]}"#;

const OTHER: &str = r#"{"exporter":{"shard":1,"shards":2},"summary":{"verdict":"ok","apps":{"all":1,"ok":1}},
 "apps":[{"project":"p-2","id":"p-2-maps","status":"active","verdict":"ok","problems":[]}]}"#;

/// Asserts that a problem is red, as in every command.
fn assert_red_problem(terminal: &Terminal) {
    // tmux may name the default background, too.
    let styled = terminal.styled().replace("\u{1b}[49m", "");
    assert!(styled.contains("\u{1b}[31mproblem"), "{styled:?}");
}

/// An exporter that answers while `up`.
fn exporter(up: &Arc<AtomicBool>) -> Service {
    let up = Arc::clone(up);
    Service::start(move |_| if up.load(SeqCst) { ok(STATUS) } else { status(503, "") })
}

#[test]
fn an_exporter_is_watched_until_ctrl_c_and_a_lost_one_is_read_again() {
    let up = Arc::new(AtomicBool::new(true));
    let service = exporter(&up);
    let program = crate::process::pdstool();
    let command = |name: &str| {
        let command = format!("{program} {name} --watch=100ms --exporter {}", service.url());
        format!(
            "before=$(stty -g); trap 'echo ended' INT; {command}; [ \"$before\" = \"$(stty -g)\" ] && echo as before; sleep 60"
        )
    };
    for (name, shown) in [("status", "time out"), ("apps", "the app reports an error")] {
        up.store(true, SeqCst);
        let terminal = Terminal::run(name, &format!("sh -c '{}'", command(name).replace('\'', r"'\''")));
        let screen = terminal.wait_for("the table", |screen| screen.contains(shown));
        assert!(screen.contains(" UTC, every 100 ms; Ctrl-C ends it"), "{screen}");
        assert_red_problem(&terminal);
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        up.store(false, SeqCst);
        terminal.wait_for("the failure alone", |screen| screen.contains("503") && !screen.contains(shown));
        up.store(true, SeqCst);
        terminal.wait_for("the table again", |screen| screen.contains(shown) && !screen.contains("503"));
        terminal.keys(&["C-c"]);
        terminal.wait_for("the end", |screen| screen.contains("as before"));
    }
}

#[test]
fn a_dumb_terminal_and_a_pipe_get_no_escape_sequences() {
    let service = exporter(&Arc::new(AtomicBool::new(true)));
    let folder = tempfile::tempdir().unwrap();
    let program = crate::process::pdstool();
    let writes_plain = |name: &str, command: &str, wanted: &dyn Fn(&str) -> bool| {
        let [file, gate] = ["raw", "gate"].map(|part| folder.path().join(format!("{name}.{part}")));
        let waiting = format!("until [ -e {} ]; do sleep 0.05; done; {command}", gate.display());
        let terminal = Terminal::run(name, &waiting);
        terminal.tmux(&["pipe-pane", &format!("cat > {}", file.display())]);
        std::fs::write(&gate, "").unwrap();
        let raw = || String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default()).into_owned();
        terminal.wait_for(name, |screen| wanted(screen) && wanted(&raw()));
        assert!(!raw().contains('\u{1b}'), "{:?}", raw());
    };
    let watch = format!("TERM=dumb {program} apps --watch=100ms --exporter {}", service.url());
    writes_plain("dumb", &watch, &|text| text.matches("p-1-ranker").count() > 1);

    let is_seen = Arc::new(AtomicBool::new(false));
    let seen_by_us = Arc::clone(&is_seen);
    let slow = Service::start(move |seen| {
        // Requests with a token wait until the progress is seen.
        while seen.header("authorization").is_some() && !seen_by_us.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        status(403, "{}")
    });
    let (exporter, token) = (service.url(), "PDS_EXPORTER__API__TOKEN=t");
    let doctor = format!("{program} doctor --base-url {} --exporter {exporter}", slow.url());
    let terminal = Terminal::run("doctor", &format!("{token} {doctor}; sleep 60"));
    terminal.wait_for("the progress", |screen| screen.contains("making each call"));
    is_seen.store(true, SeqCst);
    terminal.wait_for("the verdict", |screen| screen.starts_with("2 problems"));
    assert_red_problem(&terminal);
    let doctor = format!("TERM=dumb {token} {doctor}; sleep 60");
    writes_plain("plain", &doctor, &|text| text.contains("2 problems"));

    let watch = format!("{program} apps --watch=100ms --exporter {} | head -7", service.url());
    let output = std::process::Command::new("sh").args(["-c", &watch]).output().unwrap();
    let text = stdout(&output);
    assert!(text.matches("p-1-ranker").count() == 2 && !text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn a_terminal_that_reports_no_height_shows_the_apps() {
    let service = exporter(&Arc::new(AtomicBool::new(true)));
    let mut command = std::process::Command::new("sh");
    let watch = r#"stty cols 80 rows 0; exec "$0" apps --watch=100ms --exporter "$1""#;
    command.args(["-c", watch, &crate::process::pdstool(), &service.url()]);
    let mut session = super::ask::on_a_terminal(command);
    session.exp_string("p-1-ranker").unwrap();
}

#[test]
fn an_exporter_that_does_not_reply_is_named_above_a_table_that_is_cut() {
    let app = |number| format!(r#"{{"project":"p-1","id":"p-1-{number}","verdict":"ok","problems":[]}}"#);
    let apps: Vec<String> = (0..100).map(app).collect();
    let page = format!(r#"{{"summary":{{"verdict":"ok"}},"apps":[{}]}}"#, apps.join(","));
    let (up, down) = (Service::start(move |_| ok(page.clone())), Service::start(|_| status(503, "")));
    let exporters = format!("--exporter {} --exporter {}", up.url(), down.url());
    let program = crate::process::pdstool();
    let terminal = Terminal::run("cut", &format!("{program} apps --watch=100ms {exporters}"));
    let screen = terminal.wait_for("the table", |screen| screen.contains("more lines"));
    assert!(screen.contains("no status from") && screen.contains("503"), "{screen}");
}

#[test]
fn several_exporters_are_one_page_with_the_worst_first() {
    let down = Service::start(|_| status(503, ""));
    let (one, other) = (exporter(&Arc::new(AtomicBool::new(true))), Service::start(|_| ok(OTHER)));
    let [one, other, down] = [&one, &other, &down].map(Service::url);
    let run = |args: &[&str], columns: &str, urls: &[&String]| {
        let mut command = pdstool(args);
        for url in urls {
            command.args(["--exporter", url]);
        }
        let output = command.env("COLUMNS", columns).output().unwrap();
        let text = ended(&output).replace(&one, "http://shard-0").replace(&other, "http://shard-1");
        format!(
            "$ pdstool {}  # {columns} columns\n{}\n",
            args.join(" "),
            text.replace(&down, "http://shard-2")
        )
    };
    let mut text = String::new();
    for command in ["status", "apps"] {
        for (columns, format) in [("160", "table"), ("160", "wide"), ("80", "csv"), ("80", "json")] {
            text.push_str(&run(&[command, "-o", format], columns, &[&other, &one, &down]));
        }
    }
    for args in [&["apps", "ranker"][..], &["apps", "Ranker", "-o", "json"], &["apps", "p-1-rankr"]] {
        text.push_str(&run(args, "80", &[&one]));
    }
    assert_golden(&golden("fleet.txt"), &text);
    let listed = format!("{one},{other}");
    let both = pdstool(&["apps", "-o", "csv"]).env("PDSTOOL_EXPORTER", listed).output().unwrap();
    assert_eq!((stdout(&both).lines().count(), stderr(&both)), (4, String::new()), "{}", stdout(&both));
}

#[test]
fn an_invalid_address_with_a_password_is_not_shown() {
    for address in [
        "http://admin:s3cret word@127.0.0.1:1x",
        "http://admin:s3cret, word@h",
        "http://admin:a@ss/s3cret@h",
        "http://admin:1?s3cret@h",
        "http:/admin:s3cret@h:1",
        "http//admin:s3cret@h",
    ] {
        let output = pdstool(&["status"]).env("PDSTOOL_EXPORTER", address).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains("'[redacted]' for '--exporter <URL>'") && !said.contains("s3cret"), "{said}");
    }
    for misplaced in [
        &["status", "http://admin:pass@h"][..],
        &["status", "http://admin:pass", "word@h"],
        &["http://admin:pass@h"],
        &["apps", "http://admin:pass@h"],
        &["apps", "admin:pass@h"],
        &["reconcile", "--day", "http://admin:pass@h"],
    ] {
        let output = pdstool(misplaced).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains("'[redacted]'") && !said.contains("pass"), "{said}");
    }
    let said = stderr(&pdstool(&["status", "--exporter", "localhost:1x"]).output().unwrap());
    assert!(said.contains("'localhost:1x'"), "{said}");
}

#[test]
fn missing_and_repeated_shards_are_named_and_every_exporter_has_a_row() {
    const FIRST: &str = r#"{"exporter":{"shard":0,"shards":2},"summary":{"verdict":"ok"}}"#;
    let (first, other) = (Service::start(|_| ok(FIRST)), Service::start(|_| ok(OTHER)));
    let again = Service::start(|_| ok(FIRST));
    let many = Service::start(|_| ok(FIRST.replace(":0,\"shards\":2", ":7,\"shards\":4294967295")));
    let down = Service::start(|_| status(503, ""));
    let run = |command: &str, format: &str, services: &[&Service]| {
        let urls = services.iter().flat_map(|service| ["--exporter".to_owned(), service.url()]);
        pdstool(&[command, "-o", format]).args(urls).output().unwrap()
    };
    let twice = format!(
        "warning: of 2 shards, missing: 1; of 2 shards, queried more than once: 0; {} is queried",
        first.url()
    );
    for (services, part) in [
        (&[&first, &other][..], ""),
        (&[&first], "warning: of 2 shards, missing: 1\n"),
        (&[&first, &again, &other], "warning: of 2 shards, queried more than once: 0\n"),
        (&[&first, &first], &*twice),
        (&[&many], "warning: of 4294967295 shards, missing: 0, 1, 2, 3, 4 and 9,994 more\n"),
    ] {
        for command in ["status", "apps"] {
            let output = run(command, "table", services);
            let said = stderr(&output);
            assert!(said.starts_with(part) && said.is_empty() == part.is_empty(), "{part}: {said}");
            let fails = command == "status" && part.contains("missing");
            assert_eq!(output.status.code(), Some(fails.into()), "{said}");
            assert_eq!(said.contains("error: the apps of missing shards have no verdict"), fails, "{said}");
        }
    }
    let alone = Alone::new();
    let mut shard = alone.daemon();
    shard.args(["--demo", "--shard.count=2"]);
    let _shard = Exporter::of(shard);
    let said = ended(&alone.pdstool(&["status", "--numbers-only"]).output().unwrap());
    assert!(said.starts_with("exit code 0\n") && said.contains("missing: 1"), "on its machine: {said}");
    let services = [&first, &other, &down];
    let csv = stdout(&run("status", "csv", &services));
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    assert!(rows.len() == 3 && rows[0].starts_with("no_status,problem,"), "{csv}");
    assert!(services.iter().all(|service| csv.contains(&format!(",{}\n", service.url()))), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&stdout(&run("status", "json", &services))).unwrap();
    assert_eq!(json[0]["address"], *down.url());
    assert!(json[0]["error"].as_str().unwrap().contains("503") && json[2]["status"].is_object(), "{json:#}");
}
