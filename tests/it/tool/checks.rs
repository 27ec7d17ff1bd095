//! Checks before anything has to work.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pds_interface::Resource;

use super::{Found, Service, TOKEN, ended, golden, pdstool, stderr, stdout};
use crate::client::server::{flooding, ok, status};
use crate::golden::assert_golden;
use crate::process::{DEADLINE, assert_has};
use crate::web::certificates::Authority;

#[test]
fn check_config_prints_all_problems_or_the_request_budget() {
    let good = pdstool(&["check", "config", "config.example.toml"]).output().unwrap();
    let bad = pdstool(&["check", "config", "tests/it/config/bad/durations.toml"]).output().unwrap();
    assert_eq!((good.status.code(), bad.status.code()), (Some(0), Some(78)));
    assert_golden(&golden("check-config.txt"), &format!("{}\n{}", ended(&good), ended(&bad)));
}

#[test]
fn a_ca_file_that_cannot_be_used_is_a_problem_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pds-exporter.toml");
    let text = "[api]\nbase_url = 'http://x'\ntoken = 't'\nca_file = 'none.pem'\n[[projects]]\nid = 'p'\n";
    std::fs::write(&file, text).unwrap();
    let output = pdstool(&["check", "config"]).arg(&file).output().unwrap();
    let said = ended(&output);
    assert_has(&said, &["exit code 78\nstderr:\n", "api.ca_file: cannot read ", "none.pem"]);
    assert_eq!(said.matches("api.ca_file").count(), 1, "{said}");
}

/// A JWT that says when it expires; nobody here looks at its signature.
pub(super) fn token(expires: &str) -> String {
    let part = |json: &str| URL_SAFE_NO_PAD.encode(json);
    format!("{}.{}.c2ln", part(r#"{"alg":"HS256","typ":"JWT"}"#), part(&format!(r#"{{"exp":{expires}}}"#)))
}

#[test]
fn a_token_in_place_of_its_file_is_not_shown() {
    const PASTED: &str = "eyJhbGciOi.hunter2.c2ln";
    const PROBLEM: &str = "for '--token-file <FILE>': looks like a token; write the path of its file";
    let equals = &*format!("--token-file={PASTED}");
    for (words, problem) in [
        (&["check", "token", "--base-url=http://127.0.0.1:1", "--token-file", PASTED][..], PROBLEM),
        (&["doctor", "--base-url=http://127.0.0.1:1", equals], PROBLEM),
        (&["init", "--base-url=http://127.0.0.1:1", "--token-file", PASTED], PROBLEM),
        (&["check", "token", PASTED], "unexpected argument '[redacted]'"),
        (&["check", PASTED], "unrecognized subcommand '[redacted]'"),
        (&[PASTED], "unrecognized subcommand '[redacted]'"),
    ] {
        let said = ended(&pdstool(words).output().unwrap());
        assert_has(&said, &["exit code 2\n", problem]);
        assert!(!said.contains("c2ln"), "{said}");
    }
}

#[test]
fn check_token_shows_projects_expiry_and_which_calls_succeed() {
    let service = Service::start(|seen| match seen.target.split(['?']).next().unwrap().rsplit('/').next() {
        Some("projects") => ok(r#"[{"id":"p-1","name":"n","role":"r"}]"#),
        Some("domains") => status(403, r#"{"message":"not for this role"}"#),
        Some("alerts") => ok(r#"{"thresholds":[]}"#),
        Some("response-time") => ok(r#"{"data":{"total_requests":1},"status":"error"}"#),
        Some("run-execution-time") => ok(r#"{"data":{"total_runs":1},"status":"success"}"#),
        _ => ok(r#"{"id":"p-1-a"}"#),
    });
    let check = |token: &str, columns: &str, format: &str| {
        let mut command = pdstool(&["check", "token", "--project", "p-1", "--app", "p-1-a", "-o", format]);
        command.args(["--base-url", &service.url()]).env("PDS_EXPORTER__API__TOKEN", token);
        command.env("COLUMNS", columns).output().unwrap()
    };
    let mut text = String::new();
    for (token, columns, format) in [
        (TOKEN, "80", "table"),
        (TOKEN, "200", "table"),
        (&token("1600000000"), "80", "table"),
        (&token("1600000000"), "80", "csv"),
        (&token("1600000000"), "80", "json"),
    ] {
        let output = check(token, columns, format);
        writeln!(text, "$ pdstool check token -o {format}  # {columns} columns").unwrap();
        assert_eq!(output.status.code(), Some(4));
        writeln!(text, "{}", ended(&output).replace(&service.url(), "BASE")).unwrap();
    }
    assert_golden(&golden("check-token.txt"), &text);
    let far = check(&token("32503680000"), "80", "table");
    assert!(stdout(&far).contains("expires   3000-01-01 00:00:00 UTC, in "), "{}", stdout(&far));
}

#[test]
fn a_reply_without_a_total_fails_the_check_of_a_token() {
    let service = Service::start(|seen| match seen.target.split(['?']).next().unwrap().rsplit('/').next() {
        Some("projects") => ok("[]"),
        Some("domains") => ok(r#"{"domains":[]}"#),
        Some("alerts") => ok(r#"{"thresholds":[]}"#),
        Some("response-time" | "run-execution-time") => ok(r#"{"data":{},"status":"success"}"#),
        _ => ok(r#"{"id":"p-1-a"}"#),
    });
    let mut command = pdstool(&["check", "token", "--project", "p-1", "--app", "p-1-a", "-o", "csv"]);
    command.args(["--base-url", &service.url()]).env("PDS_EXPORTER__API__TOKEN", TOKEN);
    let said = ended(&command.output().unwrap());
    let failed = "response time percentiles,p-1-a,the reply cannot be used: the reply has no total\n";
    assert_has(&said, &["exit code 1\n", failed, "2 of 6 calls failed"]);
}

#[test]
fn a_refused_token_is_sent_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pds-exporter.toml");
    for check in ["token", "service"] {
        let service = Service::start(|_| status(401, r#"{"message":"expired"}"#));
        let api = format!("[api]\nbase_url = '{}'\ntoken = '{TOKEN}'\n", service.url());
        std::fs::write(&file, api + "[[projects]]\nid = 'p'\napps = ['a', 'b', 'c', 'd', 'e']\n").unwrap();
        let output = pdstool(&["check", check, "--config.file"]).arg(&file).output().unwrap();
        assert_eq!((output.status.code(), service.requests().len()), (Some(4), 1), "{}", stderr(&output));
    }
}

#[test]
fn a_hostile_service_holds_up_no_call_beyond_the_timeout() {
    let silent = Service::start(|_| ok("").after(Duration::from_secs(3600)));
    let dripping = Service::start(|_| ok("").dripping());
    let (interim, _, floods) = flooding();
    let late = "no complete reply within 2s";
    let requests = || silent.requests().len() + dripping.requests().len() + floods.load(Relaxed);
    // Interim replies cost no time, so the check makes all its calls.
    for (url, reason, calls) in [
        (silent.url(), late, 1),
        (dripping.url(), late, 1),
        (format!("http://{interim}"), "interim (1xx) replies", Resource::COUNT),
    ] {
        let check = ["check", "token", "--project", "p-1", "--app", "p-1-a", "--base-url", &url];
        let call = ["call", "app", "get", "--project", "p-1", "a", "--base-url", &url];
        for (arguments, calls) in [(&check[..], calls), (&call, 1)] {
            let mut command = pdstool(arguments);
            command.env("PDS_EXPORTER__API__TOKEN", TOKEN).env("PDS_EXPORTER__API__TIMEOUT", "2s");
            let before = requests();
            let said = ended(&command.output().unwrap());
            assert!(said.contains(reason), "{arguments:?}: {said}");
            // The server may see a request only after its client has left.
            let began = Instant::now();
            while requests() - before < calls && began.elapsed() < DEADLINE {
                std::thread::sleep(Duration::from_millis(10));
            }
            // A further request would take as long again.
            assert_eq!(requests() - before, calls, "{arguments:?}");
        }
    }
}

#[test]
fn check_web_config_prints_the_problems() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "http_server_config:\n  http3: true\n").unwrap();
    let bad = pdstool(&["check", "web-config"]).arg(file.path()).output().unwrap();
    assert_has(&ended(&bad), &["exit code 78\nstderr:\n", "http3"]);
}

#[test]
fn check_web_config_prints_how_client_certificates_are_verified() {
    const CA: &str = "  client_ca_file: ca.crt\n";
    const NAMED: &str = "  client_ca_file: ca.crt\n  client_allowed_sans: [prometheus.example.com]\n";
    let authority = Authority::new();
    for (policy, ca, expected) in [
        ("NoClientCert", "", "not requested"),
        ("RequestClientCert", CA, "requested, optional, not verified"),
        ("RequireAnyClientCert", "", "required, not verified"),
        ("RequireAnyClientCert", CA, "required, verified against the client CA"),
        ("VerifyClientCertIfGiven", "", "requested, optional, verified against the system's CAs"),
        ("VerifyClientCertIfGiven", CA, "requested, optional, verified against the client CA"),
        ("RequireAndVerifyClientCert", "", "required, verified against the system's CAs"),
        ("RequireAndVerifyClientCert", CA, "required, verified against the client CA"),
        (
            "RequireAndVerifyClientCert",
            NAMED,
            "required, verified against the client CA, with an allowed name",
        ),
    ] {
        let file = authority.web_config(&format!("  client_auth_type: {policy}\n{ca}"));
        let output = pdstool(&["check", "web-config", "-o", "json"]).arg(file).output().unwrap();
        assert_eq!(Found::of(&output).json["client_certificates"], expected, "{policy} {ca}");
    }
}

#[test]
fn an_address_that_ends_in_a_version_is_the_cause_of_404_everywhere() {
    let service = Service::start(|_| status(404, r#"{"message":"there is nothing at this path"}"#));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "abc").unwrap();
    for command in [
        &["call", "projects", "list"][..],
        &["call", "app", "get", "p-1-a", "--project", "p-1"],
        &["check", "token", "--project", "p-1", "--app", "p-1-a", "-o", "wide"],
        &["init", "--app", "a"],
    ] {
        let mut tool = pdstool(command);
        tool.args(["--base-url", &format!("{}/v2", service.url()), "--token-file", "token"]);
        let output = tool.current_dir(folder.path()).output().unwrap();
        let said = ended(&output);
        let url = service.url();
        let version = format!("ends in /v2, but requests add /v2 or /v4 themselves; set it to {url}");
        assert_has(&said, &["exit code 1\n", "the service is not at api.base_url", &version]);
    }
    let service = Service::start(|seen| match &*seen.target {
        "/v2/v2/projects" => ok("[]"),
        _ => status(404, "{}"),
    });
    let mut lost =
        pdstool(&["call", "app", "get", "a", "--project", "p", "--token-file", "token", "--base-url"]);
    let output = lost.arg(format!("{}/v2", service.url())).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "a gateway may have that path: {}", ended(&output));
}
