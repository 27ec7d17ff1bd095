//! Colours mean the same in every command. `NO_COLOR`, and a terminal without escape sequences, get none.

use std::collections::BTreeSet;

use clap::CommandFactory as _;
use pds_simulator::Settings;
use rexpect::session::spawn_command;

use super::ask::{DEADLINE, exit_code};
use super::formats::OWN_FORMAT;
use super::simulated::Simulated;
use super::state::state_file;
use super::{Service, pdstool};
use crate::client::server::ok;
use crate::rig::Configuration;

const STATUS: &str = r#"{"summary":{"verdict":"problem","apps":{"all":3,"ok":1,"problem":1},"reasons":[
  {"code":"a","verdict":"problem","text":"bad"},{"code":"b","verdict":"warning","text":"odd"}]},
 "apps":[{"project":"p","id":"p-1","verdict":"ok"},{"project":"p","id":"p-2","verdict":"warning"},
  {"project":"p","id":"p-3","verdict":"problem"},{"project":"p","id":"p-4","verdict":"waiting"}]}"#;
const SERIES: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;

/// Words that have a colour, with its codes; other styles are bold and faint.
const COLOURS: [(&str, &[&str]); 4] =
    [("32", &["ok"]), ("33", &["warning"]), ("1;31", &["problem", "error:"]), ("2", &["note", "waiting"])];

/// Every command but those that write files, with words that it colours.
const COMMANDS: [(&str, &[&str]); 12] = [
    ("apps --exporter EXPORTER", &["ok", "warning", "problem", "waiting"]),
    ("apps --exporter http://127.0.0.1:1", &["error:"]),
    ("call projects list --config.file CONFIG", &[]),
    ("check config CONFIG", &[]),
    ("check service --config.file CONFIG", &["ok", "note", "problem", "error:"]),
    ("check token --config.file CONFIG", &[]),
    ("check web-config WEB", &[]),
    ("doctor --config.file CONFIG --exporter EXPORTER", &["ok", "note", "warning", "problem", "error:"]),
    ("help", &[]),
    ("reconcile --config.file CONFIG", &["error:"]),
    ("state show --state.path STATE", &[]),
    ("status --exporter EXPORTER", &["warning", "problem", "error:"]),
];

/// The parts of `text` that have a style: its codes, and the words.
fn styled(text: &str) -> Vec<(String, String)> {
    let parts = text.split("\u{1b}[0m").filter_map(|part| {
        let (_, part) = part.split_once("\u{1b}[")?;
        let pieces = part.split("\u{1b}[").filter_map(|piece| piece.split_once('m'));
        // Others move the cursor.
        let pieces = pieces.filter(|(codes, _)| codes.bytes().all(|byte| byte.is_ascii_digit()));
        let (codes, words): (Vec<_>, Vec<_>) = pieces.unzip();
        Some((codes.join(";"), words.concat().trim().to_owned()))
    });
    parts.filter(|(codes, _)| !codes.is_empty()).collect()
}

#[test]
fn every_command_colours_the_same_words_alike_and_nothing_for_who_wants_none() {
    let names: Vec<_> = vec![("container_id".to_owned(), "containerId".to_owned())];
    let service = Simulated::with(Settings { projects: 1, names, ..Settings::default() });
    let (exporter, prometheus) = (Service::start(|_| ok(STATUS)), Service::start(|_| ok(SERIES)));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let state = format!("[state]\nprometheus_url = \"{}\"", prometheus.url());
    let config = Configuration::new(&service.world, &service.url).api("").tables(&state).write(folder.path());
    std::fs::write(path("web.yml"), "").unwrap();
    let state = tokio::runtime::Runtime::new().unwrap().block_on(state_file(folder.path()));
    let run = |words: &str, variable: (&str, &str)| {
        let words = words.replace("CONFIG", &config).replace("EXPORTER", &exporter.url());
        let words = words.replace("WEB", &path("web.yml")).replace("STATE", state.to_str().unwrap());
        let mut command = pdstool(&words.split(' ').collect::<Vec<_>>());
        command.stdin(std::process::Stdio::inherit()).env("TERM", "xterm").env(variable.0, variable.1);
        exit_code(spawn_command(command, Some(DEADLINE)).unwrap()).0
    };
    for (words, expected) in COMMANDS {
        let text = run(words, ("TERM", "xterm"));
        let styled_parts = styled(&text);
        assert!(!styled_parts.is_empty(), "{words}: {text:?}");
        for (codes, part) in &styled_parts {
            let of_word = COLOURS.iter().find(|(_, words)| words.contains(&&**part));
            let of_codes = COLOURS.iter().find(|(colour, _)| colour == codes && codes != "2");
            let alike = of_word
                .or(of_codes)
                .is_none_or(|(colour, words)| colour == codes && words.contains(&&**part));
            assert!(alike, "{words}: {part:?} is {codes}");
        }
        for word in expected {
            assert!(styled_parts.iter().any(|(_, part)| part == word), "{words}: {word} in {styled_parts:?}");
        }
        let dumb = run(words, ("TERM", "dumb"));
        assert!(!dumb.is_empty() && !dumb.contains('\u{1b}'), "{words}: {dumb:?}");
        let plain = run(words, ("NO_COLOR", "1"));
        assert!(!plain.is_empty() && styled(&plain).is_empty(), "{words}: {plain:?}");
    }
    let known = pdstool::Cli::command();
    let known = known.get_subcommands().map(clap::Command::get_name);
    // A simulator does not end.
    let known: BTreeSet<&str> =
        known.filter(|name| !OWN_FORMAT.contains(name) && *name != "simulate").collect();
    let shown = COMMANDS.map(|(words, _)| words.split(' ').next().unwrap());
    let missing: Vec<_> = known.into_iter().filter(|name| !shown.contains(name)).collect();
    assert!(missing.is_empty(), "add {missing:?} to `COMMANDS` in tests/it/tool/colours.rs");
}
