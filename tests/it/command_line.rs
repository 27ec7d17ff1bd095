//! The daemon's command line: each mistake of a new user gets a sentence and an exit code.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::deploy::{command, output};
use crate::process::{Exporter, assert_has, run, until, value};
use crate::server::free_port;

/// Fails where the daemon, started so, does not end with `code` after saying `sentence`.
fn assert_ends(args: &[&str], environment: &[(&str, &str)], folder: &Path, code: i32, sentence: &str) {
    let (ended, said) = run(args, environment, folder);
    assert!(ended == Some(code) && said.contains(sentence), "{args:?} ended with {ended:?}:\n{said}");
}

fn configuration(folder: &Path, text: &str) {
    std::fs::write(folder.join("pds-exporter.toml"), text).unwrap();
}

const PROJECT: &str = "[[projects]]\nid = \"p-1\"\napps = [\"p-1-a\"]\n";

#[test]
fn mistakes_of_a_new_user_get_a_sentence_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let token = [("PDS_EXPORTER__API__TOKEN", "abc")];
    let missing = "pds-exporter: there is no configuration file pds-exporter.toml; config.example.toml shows how to write one; --demo needs none";
    assert_ends(&[], &[], at, 78, missing);
    configuration(at, &format!("[api]\nbase_url = \"https://api.example.com\"\n{PROJECT}"));
    assert_ends(&[], &[], at, 78, "token");
    let valid = "the configuration is valid: 1 project, 1 app, 4.83 requests per minute (0.0806 per second) to the service\n";
    assert_ends(&["--config.check"], &token, at, 0, valid);
    let apps: String = (0..2_000).map(|app| format!("'p-{app}', ")).collect();
    let many =
        format!("[api]\nbase_url = \"https://api.example.com\"\n[[projects]]\nid = \"p\"\napps = [{apps}]\n");
    let kept = "the hours that accounting.recheck_after keeps for 3days take about 7.7 MB of memory and of the state file\n";
    configuration(at, &format!("accounting.recheck_after = ['3d']\n{many}"));
    assert_ends(&["--config.check"], &token, at, 0, kept);
    let mut tool = Command::new(crate::process::pdstool());
    tool.args(["check", "config", "pds-exporter.toml"]).current_dir(at).envs(token);
    assert_has(&output(tool.env("COLUMNS", "200")), &[kept]);
    configuration(at, &many);
    let valid = "the configuration is valid: 1 project, 2,000 apps, 8,467 requests per minute (141 per second) to the service\n";
    assert_ends(&["--config.check"], &token, at, 0, valid);
    assert_ends(&["--demo", "--config.file=pds-exporter.toml"], &[], at, 2, "cannot be used with");
    assert_ends(&["--no-such-flag"], &[], at, 2, "unexpected argument");
    assert_ends(&["--demo", "--web.telemetry-path=metrics"], &[], at, 2, "--web.telemetry-path");
    assert_ends(&["--demo", "--web.telemetry-path=/api/v1/status"], &[], at, 2, "another page has this path");
    for url in ["ftp://h", "localhost:10090"] {
        let flag = format!("--web.external-url={url}");
        assert_ends(&["--demo", &flag], &[], at, 2, "the scheme of an external URL is http or https");
    }
    assert_ends(
        &["--demo", "--web.allowed-hosts=http://h"],
        &[],
        at,
        2,
        "a host has neither scheme nor path",
    );
    assert_ends(&["--demo", "--web.listen-address=127.0.0.1"], &[], at, 2, "the port is missing");
    assert_ends(&["--shard.index=2", "--shard.count=2"], &[], at, 2, "--shard.index=2 is not below");
    let bad = "[api]\nbase_url = \"ftp://x\"\ntimout = \"1s\"\n[poll]\ninterval = \"0s\"\n";
    configuration(at, &format!("{bad}{PROJECT}"));
    let (code, said) = run(&[], &[], at);
    assert_eq!(code, Some(78));
    assert!(said.starts_with("pds-exporter: the configuration pds-exporter.toml is not valid:\n"), "{said}");
    assert_has(&said, &["api.base_url: ", "api.timout: ", "timeout", "poll.interval: ", "token"]);
}

#[test]
fn files_beside_the_configuration_are_included_by_its_bare_name() {
    let folder = tempfile::tempdir().unwrap();
    let api = "include = [\"*.toml\"]\n[api]\nbase_url = \"https://api.example.com\"\ntoken = \"abc\"\n";
    configuration(folder.path(), &format!("{api}{PROJECT}"));
    let other = "[[projects]]\nid = \"p-2\"\napps = [\"p-2-a\"]\n";
    std::fs::write(folder.path().join("projects-2.toml"), other).unwrap();
    let valid = "the configuration is valid: 2 projects, 2 apps";
    assert_ends(&["--config.check"], &[], folder.path(), 0, valid);
}

#[test]
fn sigterm_ends_it_while_it_waits_for_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let mut exporter = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
    exporter.env_clear().current_dir(folder.path()).arg("--config.file=/dev/stdin");
    let mut exporter = exporter.stdin(Stdio::piped()).spawn().unwrap();
    let _open = exporter.stdin.take();
    // Signals have handlers before the configuration is read.
    let status = format!("/proc/{}/status", exporter.id());
    let handled = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
        u64::from_str_radix(mask, 16).unwrap() & (1 << 14) != 0
    };
    while !handled() {
        assert!(exporter.try_wait().unwrap().is_none(), "it waits for the end of the pipe");
        std::thread::sleep(Duration::from_millis(5));
    }
    output(command("kill", [exporter.id().to_string()]));
    assert_eq!(exporter.wait().unwrap().code(), Some(0));
}

#[test]
fn a_configuration_that_exceeds_its_own_limits_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"abc\"\nmax_requests_per_second = 1\n[poll]\ninterval = \"1s\"\n";
    configuration(folder.path(), &format!("{text}{PROJECT}"));
    let warning = "set api.max_requests_per_second = 3 (3 a second needed, 1 allowed)";
    assert_ends(&["--config.check"], &[], folder.path(), 0, warning);
}

#[test]
fn the_check_refuses_the_flags_that_the_daemon_refuses() {
    let folder = tempfile::tempdir().unwrap();
    configuration(folder.path(), &format!("[api]\nbase_url = \"https://a\"\ntoken = \"abc\"\n{PROJECT}"));
    for (flag, problem) in [
        ("--web.telemetry-path=/", "the status page has this path"),
        ("--web.telemetry-path=/api/v1/status", "another page has this path"),
        ("--web.telemetry-path=/métriques", "it must be visible ASCII"),
        ("--web.listen-address=127.0.0.1", "the port is missing"),
        ("--web.listen-address=unix:", "the path is missing"),
    ] {
        assert_ends(&["--config.check", flag], &[], folder.path(), 2, problem);
    }
}

#[test]
fn files_that_cannot_be_used_are_reported_by_the_check_as_by_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let api = "[api]\nbase_url = \"https://api.example.com\"\ntoken_file = \"one\"\nca_file = \"ca.pem\"\n";
    let state = "[state]\nprometheus_url = \"https://p\"\nprometheus_ca_file = \"ca.pem\"\n\
                 prometheus_token_file = \"three\"\n";
    configuration(folder.path(), &format!("{api}{state}{PROJECT}token_file = \"two\"\n"));
    for file in ["two", "ca.pem"] {
        std::fs::write(folder.path().join(file), "\n").unwrap();
    }
    let problem = "ca.pem must hold CA certificates in PEM form: no certificate in it";
    let problems = format!("api.ca_file: {problem}\nstate.prometheus_ca_file: {problem}");
    assert_ends(&["--config.check"], &[], folder.path(), 78, &problems);
    assert_ends(&["--web.listen-address=127.0.0.1:0"], &[], folder.path(), 78, &problems);
    let _ = crate::client::transport::authority(folder.path(), "localhost");
    let (code, said) = run(&["--config.check"], &[], folder.path());
    let warnings: Vec<&str> = said.lines().filter(|line| line.starts_with("warning: ")).collect();
    let wanted = [
        "warning: api.token_file: cannot read the token file one: No such file or directory (os error 2)",
        "warning: projects[0].token_file: the token file two is empty",
        "warning: state.prometheus_token_file: cannot read the token file three: No such file or directory (os error 2)",
    ];
    assert_eq!((code, &*warnings), (Some(0), &wanted[..]), "{said}");
    for file in ["one", "two", "three"] {
        std::fs::write(folder.path().join(file), "t0ken").unwrap();
    }
    let (code, said) = run(&["--config.check"], &[], folder.path());
    assert!(code == Some(0) && !said.contains("warning"), "{said}");
}

#[tokio::test]
async fn the_daemon_reports_a_service_that_is_down_and_exits_with_0_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let api = "[api]\nbase_url = \"http://127.0.0.1:1\"\ntoken = \"abc\"\n";
    configuration(folder.path(), &format!("{api}{PROJECT}"));
    let config = folder.path().join("pds-exporter.toml").display().to_string();
    let exporter = Exporter::ready(&["--config.file", &config]).await;
    let page = exporter.get("/metrics").await;
    for resource in ["app", "response_time", "run_execution_time"] {
        let up = format!("pds_up{{project=\"p-1\",app=\"p-1-a\",resource=\"{resource}\"}}");
        assert_eq!(value(&page, &up), Some(0.0), "{resource}");
    }
    assert!(!page.contains("pds_app_info{"), "a missing fact is a missing series");
    until("the cause is logged", async || exporter.log().contains("class=connect_refused")).await;
    assert_eq!(exporter.terminate().code(), Some(0));
}

#[test]
fn the_check_shows_flags_and_warns_of_plain_http_as_the_daemon_does() {
    let folder = tempfile::tempdir().unwrap();
    let api = "[api]\nbase_url = \"http://api.example.com\"\ntoken = \"abc\"\n";
    let apps: Vec<String> = (0..2_400).map(|app| format!("\"p-1-{app}\"")).collect();
    configuration(folder.path(), &format!("{api}[[projects]]\nid = \"p-1\"\napps = [{}]\n", apps.join(", ")));
    let check = ["--config.check", "--shard.count=2", "--web.external-url=https://me:hunter2@host/x"];
    let (code, said) = run(&check, &[], folder.path());
    assert_eq!(code, Some(0), "{said}");
    let valid = "the configuration is valid: 1 project, 1,197 apps, 5,068";
    let plain = "warning: api.base_url http://api.example.com/ is plain http: anyone on the network can read the token; use https\n";
    assert_has(&said, &[valid, " per second) to the service\n", plain]);
    assert_has(&said, &["flag: --shard.count=2\n", "flag: --web.external-url=https://host/x\n"]);
    assert_eq!(said.matches("flag: ").count(), 2, "{said}");
    std::fs::write(folder.path().join("web.yml"), "tls_server_config: 3\n").unwrap();
    assert_ends(&["--config.check", "--web.config.file=web.yml"], &[], folder.path(), 78, "web.yml");
}

#[tokio::test]
async fn the_demo_keeps_its_counters_in_a_state_file() {
    let folder = tempfile::tempdir().unwrap();
    let state = format!("--state.path={}", folder.path().join("state.log").display());
    let exporter = Exporter::ready(&["--demo", &state]).await;
    assert_ends(&["--demo", "--web.listen-address=127.0.0.1:0", &state], &[], folder.path(), 1, "state.log");
    assert_eq!(exporter.terminate().code(), Some(0));
    assert!(folder.path().join("state.log").is_file());
}

/// The result of a check without further flags in its own process namespace, as in a container, beside an exporter with
/// these flags in `folder` and with a token in its environment, or without any.
fn checked_beside(check: &str, folder: &Path, flags: &[&str]) -> (bool, String) {
    const SCRIPT: &str = r#"
        exporter=$0
        [ $# = 0 ] || (cd "$FOLDER" && PDS_EXPORTER__API__TOKEN=t exec "$exporter" "$@" 2>/dev/null) &
        for _ in $(seq 300); do
            "$exporter" "$CHECK" && exit 0
            [ $# = 0 ] && exit 1
            sleep 0.1
        done
        exit 1
    "#;
    // Others may listen on the default port.
    let network = flags.is_empty().then_some("--net");
    let namespace = ["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", SCRIPT];
    let mut unshare = command("unshare", network.into_iter().chain(namespace));
    unshare.env("CHECK", check).env("FOLDER", folder).current_dir("/");
    let output = unshare.arg(env!("CARGO_BIN_EXE_pds-exporter")).args(flags).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn a_check_without_flags_takes_those_of_the_exporter_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let check = |check, flags: &[&str]| checked_beside(check, folder.path(), flags);
    let address = format!("--web.listen-address=127.0.0.1:{}", free_port());
    for address in [&*address, "--web.listen-address=unix:web.sock"] {
        let (healthy, said) = check("--health", &["--demo", address, "--web.route-prefix=/pds"]);
        assert!(healthy, "{said}");
    }
    let (healthy, said) = check("--health", &[]);
    assert!(!healthy && said.contains("10090"), "{said}");

    configuration(folder.path(), &format!("[api]\nbase_url = \"https://a.example.com\"\n{PROJECT}"));
    std::fs::write(folder.path().join("web.yml"), "http_server_config: {http2: true}\n").unwrap();
    let flags = ["--config.file=pds-exporter.toml", "--web.config.file=web.yml", &address];
    let (valid, said) = check("--config.check", &flags);
    let file = folder.path().join("pds-exporter.toml");
    let file = format!("of the running exporter: --config.file={}\n", file.display());
    assert!(valid && said.contains(&file), "{said}");
    let (valid, said) = check("--config.check", &[]);
    assert!(!valid && said.contains("there is no configuration file"), "{said}");
}

#[test]
fn a_check_after_an_upgrade_is_of_the_exporter_that_still_runs_and_is_no_demo() {
    const SCRIPT: &str = r#"
        "$0" "$1" --web.listen-address=unix:web.sock 2>/dev/null &
        for _ in $(seq 300); do
            [ "$(readlink /proc/$!/exe)" = "$0" ] && break
            sleep 0.1
        done
        mv "$0.new" "$0" && cd / && "$0" --config.check 2>&1 || true
    "#;
    let folder = tempfile::tempdir().unwrap();
    let api = "[api]\nbase_url = \"http://127.0.0.1:1\"\ntoken = \"t\"\n";
    configuration(folder.path(), &format!("{api}{PROJECT}"));
    let [program, new] =
        ["exporter", "exporter.new"].map(|name| folder.path().canonicalize().unwrap().join(name));
    let file = "--config.file=pds-exporter.toml";
    for (flag, says) in [(file, "of the running exporter: --config.file="), ("--demo", "--demo needs none")] {
        for copy in [&program, &new] {
            std::fs::copy(env!("CARGO_BIN_EXE_pds-exporter"), copy).unwrap();
        }
        let namespace = ["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", SCRIPT];
        let said = output(command("unshare", namespace).arg(&program).arg(flag).current_dir(folder.path()));
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn a_configuration_can_come_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let api = "[api]\nbase_url = \"https://a.example.com\"\ntoken = \"t\"\n";
    configuration(folder.path(), &format!("{api}{PROJECT}"));
    for line in [
        "\"$0\" --config.check --config.file <(cat pds-exporter.toml)",
        "cat pds-exporter.toml | \"$0\" --config.check --config.file /dev/stdin",
    ] {
        let mut shell = command("bash", ["-c", line, env!("CARGO_BIN_EXE_pds-exporter")]);
        let said = output(shell.current_dir(folder.path()));
        assert!(said.starts_with("the configuration is valid: 1 project, 1 app"), "{line}: {said}");
    }
    let check = ["--config.check", "--config.file=/dev/stdin"];
    assert_ends(&check, &[], folder.path(), 78, "can be read only once");
    let line = "exec \"$0\" --web.listen-address 127.0.0.1:0 --config.file <(cat pds-exporter.toml)";
    let mut daemon = command("bash", ["-c", line, env!("CARGO_BIN_EXE_pds-exporter")]);
    daemon.current_dir(folder.path());
    assert_eq!(Exporter::of(daemon).terminate().code(), Some(0));
}
