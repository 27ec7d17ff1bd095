//! A first configuration: by flags and by questions on a terminal, checked against the service.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::ask::{exit_code, on_a_terminal};
use super::simulated::Simulated;
use super::{Service, ended, pdstool};
use crate::client::server::{ok, status};
use crate::process::assert_has;

/// The daemon's own check of the configuration.
fn checked(file: &Path) -> String {
    let mut check = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
    check.env_clear().args(["--config.check", "--config.file"]).arg(file);
    ended(&check.output().unwrap())
}

/// The first project of the service with its token, and the names of its apps.
fn first(service: &Simulated) -> (String, String, Vec<String>) {
    let (project, apps) = service.world.projects()[0].clone();
    let token = service.world.token(&project).unwrap().expose().to_owned();
    (project.to_string(), token, apps.iter().map(ToString::to_string).collect())
}

#[test]
fn flags_make_a_configuration_that_the_daemon_takes() {
    let service = Simulated::start();
    let (project, token, apps) = first(&service);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), &token).unwrap();
    let name = apps[1].strip_prefix(&format!("{project}-")).unwrap();
    let init = |more: &[&str]| {
        let mut command = pdstool(&["init", "--base-url", &service.url, "--token-file", "token"]);
        let output = command.args(more).current_dir(folder.path()).output().unwrap();
        (output.status.code(), ended(&output))
    };
    let (code, said) = init(&["--app", &apps[0], "--app", name]);
    assert_eq!(code, Some(0), "{said}");
    let file = folder.path().join("pds-exporter.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&format!("    \"{}\",\n    \"{}\",\n", apps[0], apps[1])), "{text}");
    assert!(text.contains("# The service's address"), "{text}");
    // As the README shows it: the daemon finds the token from any folder.
    let token_file = folder.path().canonicalize().unwrap().join("token");
    assert!(text.contains(&format!("token_file = \"{}\"\n", token_file.display())), "{text}");
    assert!(std::fs::read_to_string("README.md").unwrap().contains("token_file = \"/home/me/token\"\n"));
    let checked = checked(&file);
    assert!(checked.starts_with("exit code 0"), "{checked}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(init(&["--app", name]).0, Some(2), "nothing is written over");
    assert_eq!(init(&["--app", name, "--force"]).0, Some(0));
    let (code, said) = init(&["--app", "no-such-app", "--force"]);
    assert!(code == Some(3) && said.contains("no project of the token has an app no-such-app"), "{said}");
    let (code, said) = init(&["--project", "p-other", "--app", name, "--force"]);
    assert!(code == Some(3) && said.contains("the token does not belong to the project p-other"), "{said}");
    let (code, said) = init(&["--force"]);
    assert!(code == Some(2) && said.contains("there is no terminal to prompt on; use --app"), "{said}");
}

#[test]
fn a_projects_name_controls_no_terminal() {
    let service = Service::start(|request| match request.target.as_str() {
        "/v2/projects" => ok(r#"[{"id":"p-1","name":"a\u001b]0;b\u0007\nerror: c","role":"owner"}]"#),
        _ => status(404, ""),
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "t").unwrap();
    let mut command = pdstool(&["init", "--base-url", &service.url(), "--token-file", "token", "--app", "x"]);
    let said = ended(&command.current_dir(folder.path()).output().unwrap());
    assert_has(&said, &["The token is for p-1 (a\u{fffd}]0;b\u{fffd}\u{fffd}error: c"]);
}

#[test]
fn a_reply_that_is_no_app_is_not_taken_for_one() {
    let service = Service::start(|request| match request.target.as_str() {
        "/v2/projects" => ok(r#"[{"id":"p-1","name":"n","role":"owner"}]"#),
        _ => ok("<html><title>Sign in</title>"),
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "t").unwrap();
    let mut command = pdstool(&["init", "--base-url", &service.url(), "--token-file", "token", "--app", "x"]);
    let said = ended(&command.current_dir(folder.path()).output().unwrap());
    let says = "the reply is a web page (Sign in). Check api.base_url";
    assert_has(&said, &["exit code 1\n", says]);
    assert!(!folder.path().join("pds-exporter.toml").exists(), "{said}");
}

#[test]
fn prompts_on_a_terminal_repeat_until_the_answer_is_valid() {
    let service = Simulated::start();
    let (project, token, apps) = first(&service);
    let folder = tempfile::tempdir().unwrap();
    let mut command = pdstool(&["init"]);
    command.current_dir(folder.path());
    let mut session = on_a_terminal(command);
    session.exp_string("Address of the service").unwrap();
    session.send_line("ftp://x").unwrap();
    session.exp_string("must begin with http").unwrap();
    session.send_line(&service.url).unwrap();
    session.exp_string("File with the token [token]:").unwrap();
    session.send_line("eyJhbGciOi.e30.c2ln").unwrap();
    session.exp_string("The answer looks like a token").unwrap();
    session.exp_string("File with the token [token]:").unwrap();
    session.send_line("").unwrap();
    session.exp_string("Paste the token (hidden) to create it:").unwrap();
    session.send(&format!("{token}\r")).unwrap();
    session.flush().unwrap();
    let before = session.exp_string("The service answers. The token is for ").unwrap();
    assert!(!before.contains(&token), "the token is shown: {before}");
    session.exp_string(&format!("Apps of {project}")).unwrap();
    session.send_line("ranker nonsense").unwrap();
    session.exp_string(&format!("{project} has no app nonsense.")).unwrap();
    session.send_line(&apps[0]).unwrap();
    let (rest, code) = exit_code(session);
    assert_eq!(code, Some(0), "{rest}");
    let token_file = folder.path().join("token");
    assert_eq!(std::fs::metadata(&token_file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(token_file).unwrap(), format!("{token}\n"));
    let checked = checked(&folder.path().join("pds-exporter.toml"));
    assert!(checked.starts_with("exit code 0"), "{checked}");
}

#[test]
fn the_simulator_writes_a_configuration_for_itself_and_leaves_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("simulated.toml");
    let path = file.to_str().unwrap();
    for _ in 0..2 {
        let mut command = pdstool(&["simulate", "--listen", "127.0.0.1:0", "--write-config", path]);
        let mut process = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut lines = std::io::BufReader::new(process.stderr.take().unwrap());
        std::io::BufRead::read_line(&mut lines, &mut said).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(said, format!("wrote {path}\n"));
    }
    let checked = checked(&file);
    assert!(checked.starts_with("exit code 0"), "{checked}");
    std::fs::write(&file, "# mine\n").unwrap();
    let refused = pdstool(&["simulate", "--listen", "127.0.0.1:0", "--write-config", path]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", ended(&refused));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
}
