//! Every call of the interface by hand: the request seen, what is printed, the exit code.

use std::fmt::Write as _;

use super::{Service, call, ended, golden, pdstool, stderr, stdout};
use crate::client::server::{Reply, Seen, ok, status};
use crate::golden::assert_golden;
use crate::process::{Alone, assert_has};

const APP: &str = r#"{"id":"p-1-ranker","name":"ranker","projectId":"p-1","status":"active","errorMessage":"","createdAt":"2026-01-02T03:04:05Z","runtime":"custom","entrypoint":["serve","--fast"],"port":8000,"disableAuth":false,"computeTier":"interruptible","hardware":"AMPERE_A10","hardwareProvider":"aws","region":"us-east-1","cpu":"2.5","memory":"12","gpuCount":"1","costPerSecondCents":"0.012","minReplicaCount":"0","maxReplicaCount":"5","replicaConcurrency":"10","scalingMetric":"concurrency_utilization","scalingTarget":"70","scalingBuffer":"","cooldownPeriodSeconds":"90","evaluationIntervalSeconds":"0","responseGracePeriodSeconds":3600,"lastBuildStatus":"success","latestBuildId":"b-2","somethingNew":{"a":[1,2]}}"#;
const RESPONSE_TIME: &str = r#"{"data":{"percentiles":{"p50":12.34,"p90":"250","p95":null,"p99":4200},"distribution":{"1ms":0,"10ms":40.0,"100ms":"75.5","1s":97.25,"1hr":100},"total_requests":1234567,"start_date":"2026-01-31T00:00:00Z","end_date":"2026-02-01T00:00:00Z","sampled":false},"status":"success"}"#;
const RUNS: &str = r#"{"data":{"time_series":[{"timestamp":1769817600,"p50":0.5,"p90":1.25,"p99":8},{"timestamp":1769817660,"p50":null,"p90":"","p99":"4"}],"total_runs":42,"start_date":"2026-01-31T00:00:00Z","end_date":"2026-02-01T00:00:00Z"},"status":"success"}"#;
const KEY: &str = r#"{"apiKey":"sk-0123456789","id":"k-1","name":"ci","description":"for_the_build","projectId":"p-1","source":"api","status":"active","createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z","expiresAt":"2999-12-31T00:00:00Z"}"#;
const DOMAINS: &str = r#"{"domains":[{"id":"d-1","domain":"api.example.com","name":"api","validationStatus":"pending","status":"active","record":{"type":"CNAME","name":"_v.api.example.com","value":"x\u001b[31my"},"region":"us-east-1","createdAt":"2026-01-01T00:00:00Z"}]}"#;
const TREE: &str = r#"{"tree":[{"path":"src","type":"tree","children":[{"name":"main.py","type":"blob"},{"name":"io","path":"src/io","type":"tree","children":[{"path":"src/io/load.py"}]}]},{"path":"README.md"},{"odd":1}],"totalCount":6,"truncated":true}"#;

/// A service with one of everything.
pub(super) fn one_of_everything(seen: &Seen) -> Reply {
    let path = seen.target.split('?').next().unwrap_or_default();
    match (&*seen.method, path.trim_start_matches("/v2/projects").trim_start_matches("/p-1")) {
        ("GET", "") => ok(
            r#"[{"id":"p-1","name":"Search","role":"admin","tier":"gold"},{"id":"p-22","name":"Ads","role":"viewer"}]"#,
        ),
        ("GET", "/apps/p-1-ranker") => ok(APP),
        ("DELETE", "/apps/p-1-ranker") => ok("App p-1-ranker deleted"),
        ("GET", "/apps/p-1-ranker/metrics/response-time") => ok(RESPONSE_TIME),
        ("GET", "/apps/p-1-ranker/metrics/run-execution-time") => ok(RUNS),
        ("GET", "/apps/p-1-ranker/builds/b-2/zip-contents") => ok(
            r#"{"id":"b-2","zipFiles":{"main.py":"import os\nprint(1)","data":{"size.txt":12,"empty":{}}}}"#,
        ),
        ("POST", "/api-keys") => status(201, KEY),
        ("PATCH", "/subscription") => ok(r#"{"redirectUrl":"https://pay.example.com/s/1"}"#),
        ("GET", "/payment-url") => ok("https://pay.example.com/m/2"),
        ("GET", "/domains") => ok(DOMAINS),
        ("POST", "/domains/d-1/validate") => ok(r#"{"message":"no CNAME record found","success":false}"#),
        ("DELETE", "/domains/d-1/assign" | "/domains/d-1") => status(204, ""),
        ("GET", "/volumes/alerts") => ok(r#"{"thresholds":[80,"95"]}"#),
        ("GET", "/v4/projects/p-1/integrations/codehost/repos/acme/ranker/branches") => ok(
            r#"{"branches":[{"name":"main","protected":true,"default":true,"sha":"0a1b2c"},{"name":"wip","protected":false,"default":false,"sha":"3d4e5f"}]}"#,
        ),
        ("GET", "/v4/projects/p-1/integrations/codehost/repos/acme/ranker/tree") => ok(TREE),
        _ => status(404, r#"{"message":"no such thing"}"#),
    }
}

/// The arguments of one call each, all 16 of them.
pub(super) const CALLS: [&str; 16] = [
    "projects list",
    "app get p-1-ranker",
    "app delete p-1-ranker --yes",
    "metrics response-time p-1-ranker --start 2026-01-31 --end 2026-02-01T00:00:00Z --container-id c/1",
    "metrics run-execution-time p-1-ranker --start 2026-01-31 --end 2026-02-01 --resolution high",
    "build zip-contents p-1-ranker b-2",
    "api-key create --name ci --description for_the_build --expires-at 2999-12-31 --yes",
    "plan change standard --yes",
    "payment-url",
    "domains list",
    "domains validate d-1",
    "domains unassign d-1 --yes",
    "domains delete d-1 --yes",
    "volume-alerts",
    "repo branches acme ranker",
    "repo tree acme ranker --ref main --path src/a",
];

#[test]
fn every_call_sends_its_request_and_shows_the_reply() {
    let service = Service::start(one_of_everything);
    for arguments in CALLS {
        let words: Vec<&str> = arguments.split(' ').collect();
        let mut text = String::new();
        for (columns, more) in [
            ("80", "--dry-run --output table"),
            ("80", "--output table"),
            ("200", "--output wide"),
            ("80", "--output csv"),
            ("80", "--output json"),
        ] {
            let before = service.requests().len();
            let mut command = call(&service.url(), &words);
            let output = command.args(more.split(' ')).env("COLUMNS", columns).output().unwrap();
            writeln!(text, "$ pdstool call {arguments} {more}  # {columns} columns").unwrap();
            for request in &service.requests()[before..] {
                writeln!(text, "request: {request}").unwrap();
            }
            text.push_str(&ended(&output).replace(&service.url(), "BASE"));
            text.push('\n');
        }
        let named = words.iter().take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
        let name = named.take(2).copied().collect::<Vec<_>>().join("-");
        assert_golden(&golden(&format!("call-{name}.txt")), &text);
    }
    let requests = service.server.seen();
    assert!(requests.iter().all(|seen| seen.header("authorization") == Some("Bearer hunter2-the-token")));
    let mut posts = requests.iter().filter(|seen| seen.method == "POST").peekable();
    assert!(posts.peek().is_some() && posts.all(|seen| seen.header("content-length") == Some("0")));
}

#[test]
fn a_pipe_gets_the_reply_as_it_came() {
    let service = Service::start(one_of_everything);
    let output = call(&service.url(), &["app", "get", "p-1-ranker"]).output().unwrap();
    assert_eq!(stdout(&output).trim_end(), APP);
}

#[test]
fn a_byte_order_mark_changes_nothing() {
    let service = Service::start(one_of_everything);
    let marked = Service::start(|seen| one_of_everything(seen).after_mark());
    for arguments in CALLS {
        let words: Vec<&str> = arguments.split(' ').collect();
        for format in ["--output=table", "--output=csv"] {
            let [plain, marked] = [&service, &marked]
                .map(|service| ended(&call(&service.url(), &words).arg(format).output().unwrap()));
            assert_eq!(marked, plain, "{arguments} {format}");
        }
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let service = Service::start(one_of_everything);
    let mut child = call(&service.url(), &["app", "get", "p-1-ranker", "--output", "table"]);
    let mut child =
        child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn arguments_that_break_a_rule_are_refused_before_anything_is_sent() {
    let service = Service::start(one_of_everything);
    let long = |count: usize| "é".repeat(count);
    let (name, description) = (long(51), long(256));
    let mut text = String::new();
    for arguments in [
        &["api-key", "create", "--yes", "--name", &name][..],
        &["api-key", "create", "--yes", "--description", &description],
        &["api-key", "create", "--yes", "--expires-at", "2020-01-01"],
        &["api-key", "create", "--yes", "--expires-at", "tomorrow"],
        &["plan", "change", "silver", "--yes"],
        &["metrics", "response-time", "a", "--start", "2026-02-01", "--end", "2026-01-31"],
        &["metrics", "run-execution-time", "a", "--resolution", "highest"],
        &["app", "get", ""],
        &["app", "delete", "..", "--yes"],
        &["domains", "validate", ""],
        &["app", "delete", "p-1-ranker"],
        &["app", "get", "a", "--secret-file", "x"],
    ] {
        let output = call(&service.url(), arguments).output().unwrap();
        let line =
            arguments.iter().map(|a| if a.len() > 100 { "ééé..." } else { a }).collect::<Vec<_>>().join(" ");
        write!(text, "$ pdstool call {line}\n{}\n", ended(&output)).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
    }
    assert_golden(&golden("call-refused.txt"), &text);
    assert_eq!(service.requests(), [""; 0]);
}

#[test]
fn a_failure_is_one_sentence_with_its_exit_code() {
    let service = Service::start(|seen| match seen.target.rsplit('/').next() {
        Some("gone") => status(404, r#"{"message":"app not found"}"#),
        Some("barred") => status(403, r#"{"message":"not for you"}"#),
        Some("unpaid") => status(402, "payment\nrequired"),
        Some("odd") => ok("not json"),
        Some("gateway") => status(502, "<html><title>Bad gateway</title></html>"),
        _ => status(401, r#"{"message":"bad token hunter2-the-token"}"#),
    });
    let mut text = String::new();
    for (app, code) in [("gone", 3), ("barred", 4), ("unpaid", 1), ("odd", 1), ("gateway", 1), ("other", 4)] {
        let output = call(&service.url(), &["app", "get", app, "--output", "table"]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{app}");
        write!(text, "{app}: {}", ended(&output).replace(&service.url(), "BASE")).unwrap();
    }
    assert_golden(&golden("call-failed.txt"), &text);
    let refused = call("http://127.0.0.1:1", &["app", "get", "a"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let no_token =
        call(&service.url(), &["app", "get", "a"]).env_remove("PDS_EXPORTER__API__TOKEN").output().unwrap();
    assert_has(
        &ended(&no_token),
        &["exit code 4\n", "use --token-file with --base-url, or set api.token_file"],
    );
    let no_project =
        call(&service.url(), &["app", "get", "a"]).env_remove("PDSTOOL_PROJECT").output().unwrap();
    assert_eq!(no_project.status.code(), Some(2), "{}", stderr(&no_project));
    let no_config = pdstool(&["call", "app", "get", "a", "--config.file", "no-such.toml"]).output().unwrap();
    assert_eq!(no_config.status.code(), Some(78), "{}", stderr(&no_config));
}

#[test]
fn only_reading_is_ever_tried_again() {
    let service = Service::start(|_| status(503, ""));
    let output = call(&service.url(), &["app", "delete", "a", "--yes"]).output().unwrap();
    assert_eq!((output.status.code(), service.requests().len()), (Some(1), 1));
}

#[test]
fn projects_are_listed_with_one_of_several_tokens() {
    let service = Service::start(|seen| match seen.header("authorization") {
        Some("Bearer two") => ok(r#"[{"id":"p-2","name":"Ads","role":"viewer"}]"#),
        _ => status(401, r#"{"message":"unknown token"}"#),
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pds-exporter.toml");
    let mut text = format!("[api]\nbase_url = \"{}\"\n", service.url());
    for (project, token) in [("p-1", "one"), ("p-2", "two"), ("p-3", "two")] {
        writeln!(text, "[[projects]]\nid = \"{project}\"\ntoken = \"{token}\"").unwrap();
    }
    std::fs::write(&file, text).unwrap();
    let list = |args: &[&str]| {
        let mut command = pdstool(&["call", "projects", "list", "--output", "csv"]);
        ended(&command.args(["--config.file", file.to_str().unwrap()]).args(args).output().unwrap())
    };
    assert_has(&list(&[]), &["exit code 2\n", "2 tokens are configured: use --project"]);
    assert_eq!(service.requests(), [""; 0]);
    assert_has(&list(&["--project", "p-3"]), &["exit code 0\n", "p-2,Ads,viewer\n"]);
}

#[test]
fn a_missing_configuration_is_not_answered_with_a_flag_of_the_daemon() {
    for command in [&["call", "projects", "list"][..], &["check", "config"], &["check", "token"]] {
        let alone = Alone::new();
        let output = alone.pdstool(command).current_dir(alone.path("")).output().unwrap();
        let said = stderr(&output);
        assert!(said.contains("there is no configuration file pds-exporter.toml"), "{said}");
        assert!(!said.contains("--demo") && said.contains("--config.file"), "{said}");
    }
}

#[test]
fn ranges_are_sent_as_given_and_standard_is_a_resolution() {
    let service = Service::start(one_of_everything);
    let sent = |args: &[&str]| {
        let mut command = call(&service.url(), &["metrics", "response-time", "p-1-ranker", "--dry-run"]);
        let output = command.args(args).output().unwrap();
        (output.status.code(), stdout(&output).lines().next().unwrap_or_default().to_owned())
    };
    let (code, line) = sent(&["--end", "2026-01-31T00:00:00Z", "--resolution", "standard"]);
    assert_eq!(code, Some(0));
    assert!(line.ends_with("/response-time?end=2026-01-31T00%3A00%3A00Z"), "{line}");
    let bounds = ["2026-01-31T00:00:00.2Z", "2026-01-31T00:00:00.7Z"];
    let (code, line) = sent(&["--start", bounds[0], "--end", bounds[1]]);
    assert!(code == Some(0) && line.contains("00.2Z") && line.contains("00.7Z"), "{line}");
    assert_eq!(sent(&["--start", bounds[1], "--end", bounds[0]]).0, Some(2));
}

#[test]
fn a_flag_of_the_simulator_that_makes_no_sense_is_named_with_its_value() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, value) in [
        ("--apps", "99999999999"),
        ("--projects", "-1"),
        ("--late-share", "2"),
        ("--late-share", "-0.1"),
        ("--late-within", "600"),
        ("--round-to", "300"),
        ("--slow-late", "5"),
        ("--seed", "-1"),
        ("--listen", &address),
    ] {
        let output = pdstool(&["simulate", flag, value]).output().unwrap();
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(flag) && said.contains(value), "{said}");
    }
}
