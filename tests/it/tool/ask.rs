//! Questions on a terminal: asked through a pseudo-terminal, answered as a person would.

use std::process::Command;

use rexpect::session::{PtySession, spawn_command};

use super::simulated::Simulated;
use super::{Service, call};
use crate::client::server::{ok, status};
use crate::process::assert_has;

/// How long the tool may take to ask, in milliseconds; reached only where it does not.
pub(super) const DEADLINE: u64 = 30_000;

pub(super) fn on_a_terminal(mut command: Command) -> PtySession {
    command.stdin(std::process::Stdio::inherit()).env("TERM", "xterm");
    spawn_command(command, Some(DEADLINE)).unwrap()
}

/// Its other output, and its exit code.
pub(super) fn exit_code(mut session: PtySession) -> (String, Option<i32>) {
    let rest = session.exp_eof().unwrap();
    // `Exited(Pid(1234), 0)`; the type itself is not to be had.
    let status = format!("{:?}", session.process_mut().wait().unwrap());
    let code = status.strip_suffix(')').and_then(|text| text.rsplit(' ').next()?.parse().ok());
    (rest, code.filter(|_| status.starts_with("Exited")))
}

#[test]
fn calls_that_cannot_be_undone_prompt_on_a_terminal() {
    let service = Service::start(|seen| match &*seen.method {
        "DELETE" => ok("App deleted"),
        _ => status(404, ""),
    });
    for (answer, code, sent) in [("n", 1, 0), ("", 1, 0), ("y", 0, 1), ("Yes", 0, 2)] {
        let mut session = on_a_terminal(call(&service.url(), &["app", "delete", "p-1-ranker"]));
        session.exp_string("This deletes the app p-1-ranker for good. Continue? [y/N] ").unwrap();
        session.send_line(answer).unwrap();
        let (rest, ended) = exit_code(session);
        assert_eq!((ended, service.requests().len()), (Some(code), sent), "{answer}: {rest}");
        assert!(rest.contains(if code == 0 { "App deleted" } else { "nothing was sent" }), "{rest}");
    }
}

#[test]
fn a_prompt_without_an_answer_interrupts_the_command() {
    let folder = tempfile::tempdir().unwrap();
    for (key, token_file) in [('d', None), ('c', Some("token"))] {
        let mut command = super::pdstool(&["init", "--config.file", "new.toml"]);
        command.current_dir(&folder);
        if let Some(file) = token_file {
            command.args(["--base-url", "http://127.0.0.1:1", "--token-file", file]);
        }
        let mut session = on_a_terminal(command);
        session
            .exp_string(if token_file.is_some() { "Paste the token" } else { "Address of the service" })
            .unwrap();
        session.send_control(key).unwrap();
        let (rest, code) = exit_code(session);
        assert!(code == Some(130) && rest.contains("interrupted"), "{rest}");
    }
}

#[test]
fn every_call_that_destroys_or_costs_money_prompts() {
    let service = Service::start(|_| status(500, ""));
    for (arguments, question) in [
        (&["domains", "delete", "d-1"][..], "This deletes the domain d-1 for good"),
        (&["domains", "unassign", "d-1"], "This unassigns the domain d-1 from its app"),
        (&["plan", "change", "hobby"], "This changes the plan of project p-1 to hobby, which may cost money"),
        (&["api-key", "create"], "This creates an API key of project p-1"),
    ] {
        let mut session = on_a_terminal(call(&service.url(), arguments));
        session.exp_string(question).unwrap();
        session.send_line("no").unwrap();
        assert_eq!(exit_code(session).1, Some(1));
    }
    assert_eq!(service.requests(), [""; 0]);
}

#[test]
fn a_long_run_shows_its_progress_and_what_is_left_on_a_terminal_only() {
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let run = |name: &str| super::backfill::backfill(&service, 24, &folder.path().join(name), &[]);
    let (shown, code) = exit_code(on_a_terminal(run("seen.om")));
    assert_eq!(code, Some(0), "{shown}");
    assert_has(&shown, &["/576 requests", "/s  ", " left"]);
    let piped = run("piped.om").output().unwrap();
    assert!(!super::stderr(&piped).contains(" left"), "{}", super::stderr(&piped));
    assert_eq!(super::stdout(&piped), "");
}
