//! `pdstool status` and `pdstool apps`: against a canned exporter for the exact output, and against a real one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::time::Instant;

use super::{Service, ended, golden, pdstool, stdout};
use crate::client::server::{Seen, ok, status};
use crate::golden::assert_golden;
use crate::process::{DEADLINE, Exporter, assert_has, mounted};

const STATUS: &str = r#"{"exporter":{"version":"9.8.7","started":"2026-03-01T03:00:00Z","future":1},
 "service":{"base_url":"https://api.example.com/","last_success":"2026-03-01T04:00:00Z","reason":null},
 "summary":{"verdict":"problem","apps":{"all":3,"ok":2,"problem":1},"ok":1,"reasons":[
  {"code":"service_slow","verdict":"problem","text":"Requests to the service time out: 1 app","detail":"GET https://api.example.com/v2/projects got no complete reply within 10s","count":1,"objects":["p-2/p-2-down"],"link":"/","remedy":"Look at the service."},
  {"code":"token_expires_soon","verdict":"warning","text":"The token of \u001b[31mdefault expires","count":1,"link":"/config","remedy":"Create a new token."}]},
 "projects":[],
 "apps":[
  {"project":"p-1","id":"p-1-fine","status":"active","verdict":"ok","problems":[],"requests_per_minute":120.5,"response_time":{"p50":0.0123,"p95":0.25},"min_replicas":0,"max_replicas":5,"hardware":"A10","dollars_per_replica_hour":0.432},
  {"project":"p-1","id":"p-1-late","verdict":"warning","problems":["settings: late"]},
  {"project":"p-2","id":"p-2-down","status":"error, \"quoted\"","verdict":"problem","problems":["response time: failing, timeout","more"]}]}"#;

fn exporter(body: &'static str) -> Service {
    Service::start(move |_| ok(body))
}

fn run(service: &Service, args: &[&str]) -> String {
    run_at(service, args, "80")
}

fn run_at(service: &Service, args: &[&str], columns: &str) -> String {
    let mut command = pdstool(args);
    let output = command.args(["--exporter", &service.url()]).env("COLUMNS", columns).output().unwrap();
    ended(&output).replace(&service.url(), "http://EXPORTER")
}

#[test]
fn the_verdict_is_printed_with_its_reasons_and_decides_the_exit_code() {
    let service = exporter(STATUS);
    let formats = [("80", "table"), ("200", "table"), ("80", "wide"), ("80", "csv"), ("80", "json")];
    let printed = formats.map(|(columns, format)| run_at(&service, &["status", "-o", format], columns));
    let text = printed.concat();
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_golden(&golden("status.txt"), &text);
    let fine = exporter(r#"{"summary":{"verdict":"warning"}}"#);
    assert!(run(&fine, &["status"]).starts_with("exit code 0"), "a warning is no failure");
    let unwell = exporter(r#"{"summary":{"verdict":"ok","apps":{"all":2,"ok":1,"problem":1}}}"#);
    let said = run(&unwell, &["status"]);
    assert!(said.starts_with("exit code 1") && said.contains("apps are unhealthy"), "{said}");
    assert!(run(&unwell, &["status", "--numbers-only"]).starts_with("exit code 0"));
}

#[test]
fn a_status_beyond_every_configuration_is_not_read() {
    let service = Service::start(|_| ok("").endless().with("content-length", ((64 << 20) + 1).to_string()));
    let said = run(&service, &["status"]);
    assert!(said.starts_with("exit code 1") && said.contains("too large for a status"), "{said}");
}

#[test]
fn a_password_that_an_exporter_echoes_is_not_shown() {
    let echo = |seen: &Seen| {
        let sent = seen.header("authorization").unwrap();
        ok(format!(r#"{{"summary":{{}},"exporter":{{"version":"{sent} hunter2-0f-the-exporter"}}}}"#))
    };
    let service = Service::start(echo);
    let url = service.url().replace("http://", "http://user:hunter2-0f-the-exporter@");
    for format in ["table", "json"] {
        let said = ended(&pdstool(&["status", "-o", format, "--exporter", &url]).output().unwrap());
        assert!(said.matches("[redacted]").count() == 2 && !said.contains("0f-the-ex"), "{said}");
    }
    // The words of a status line are the server's.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:hunter2-0f-the-exporter@{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let reply = b"HTTP/1.1 500 hunter2-0f-the-exporter\r\ncontent-length: 0\r\n\r\n";
        client.read(&mut [0; 4_096]).and_then(|_| client.write_all(reply)).unwrap();
    });
    let said = ended(&pdstool(&["status", "--exporter", &url]).output().unwrap());
    assert!(said.contains("HTTP status 500") && !said.contains("0f-the-ex"), "{said}");
}

#[test]
fn apps_with_problems_come_first_in_every_form() {
    let service = exporter(STATUS);
    let formats =
        [("80", "table"), ("200", "table"), ("80", "wide"), ("200", "wide"), ("80", "csv"), ("80", "json")];
    let printed = formats.map(|(columns, format)| run_at(&service, &["apps", "-o", format], columns));
    let text = printed.concat();
    assert_golden(&golden("apps.txt"), &text);
    let alike = r#"{"summary":{},"apps":[{"project":"p-vbq86i4m","id":"p-vbq86i4m-embeddings-eu"},{"project":"p-vbq86i4m",
        "id":"p-vbq86i4m-embeddings-us","problems":["settings: the service does not know the id (404)"]}]}"#;
    let narrow = run_at(&exporter(alike), &["apps"], "48");
    let ids: Vec<&str> =
        narrow.lines().filter_map(|line| line.split_whitespace().find(|it| it.contains('…'))).collect();
    assert_eq!(ids, ["p-vbq86i4m-em…eu", "p-vbq86i4m-em…us"], "{narrow}");
    let alike = alike.replace("embeddings-eu", "last").replace("embeddings-us", "first");
    let listed = run(&Service::start(move |_| ok(alike.clone())), &["apps", "-o", "csv"]);
    assert!(listed.find("-last") < listed.find("-first"), "the exporter's order: {listed}");
    let problems = run(&service, &["apps", "--problems", "--filter", "LATE", "-o", "csv"]);
    assert!(problems.contains("p-1-late") && !problems.contains("p-2-down"), "{problems}");
    assert!(run(&service, &["apps", "--filter", "nowhere"]).contains("No app matches."));
}

#[test]
fn long_ids_stay_distinct_and_problems_readable_at_any_width() {
    let projects = ["p-vbq86i4m", "p-lsvmo7ah", "p-lsvmo7ax"];
    let ids = projects.map(|project| {
        ["1", "2"].map(|zone| (project, format!("{project}-recommendations-eu-west-{zone}-production")))
    });
    let apps = ids.as_flattened().iter().map(|(project, id)| {
        format!(
            r#"{{"project":"{project}","id":"{id}","status":"active","requests_per_minute":120.5,"response_time":{{"p95":0.25}},
            "problems":["settings: the service does not know the id (404)"]}}"#
        )
    });
    let body = format!(r#"{{"summary":{{}},"apps":[{}]}}"#, apps.collect::<Vec<_>>().join(","));
    let service = exporter(body.leak());
    for columns in ["56", "64", "80", "100", "120"] {
        let printed = run_at(&service, &["apps"], columns);
        let rows: Vec<&str> = printed.lines().filter(|line| line.contains(" p-")).collect();
        let shown: std::collections::BTreeSet<&str> =
            rows.iter().filter_map(|row| row.split_whitespace().nth(1)).collect();
        assert_eq!((rows.len(), shown.len()), (6, 6), "{columns} columns: {printed}");
        assert!(
            rows.iter().all(|row| row.contains("settings: the service d")),
            "{columns} columns: {printed}"
        );
        let width = printed.lines().map(|line| line.chars().count()).max();
        assert!(width <= columns.parse().ok(), "{columns} columns: {printed}");
    }
}

#[test]
fn a_verdict_that_nobody_reads_is_no_success() {
    let (_, nobody) = std::io::pipe().unwrap();
    let service = exporter(STATUS);
    let output = pdstool(&["status", "--exporter", &service.url()]).stdout(nobody).output().unwrap();
    assert_has(&ended(&output), &["exit code 1\n", "numbers cannot be trusted"]);
}

#[test]
fn a_server_that_is_not_an_exporter_is_reported_in_one_sentence() {
    let refusing = Service::start(|_| status(401, "no"));
    assert!(run(&refusing, &["status"]).contains("401"), "{}", run(&refusing, &["status"]));
    for other in ["<html>", "{}", "[]", r#"{"status":"ok"}"#].map(exporter) {
        let said = run(&other, &["apps"]);
        assert_has(&said, &["exit code 1\n", "is this the address of an exporter?"]);
    }
    let long = format!("\"{}\"", "x".repeat(1000));
    let said = run(&Service::start(move |_| ok(long.clone())), &["status"]);
    assert!(said.contains("is this the address of an exporter?") && said.len() < 500, "{said}");
    let nobody = pdstool(&["status", "--exporter", "http://127.0.0.1:1"]).output().unwrap();
    assert_has(
        &ended(&nobody),
        &["no status from http://127.0.0.1:1: ", ". Start the daemon, or set --exporter"],
    );
    let said = run(&exporter(STATUS), &["apps", "unknown", "--exporter", "http://127.0.0.1:1"]);
    assert_has(&said, &["exit code 1\n", "no status from http://127.0.0.1:1: "]);
}

#[test]
fn a_name_with_several_addresses_is_read_like_the_exporters_at_each() {
    const WELL: &str =
        r#"{"summary":{"verdict":"ok","apps":{"all":1,"ok":1}},"apps":[{"project":"p-3","id":"p-3-well"}]}"#;
    let well = exporter(WELL);
    let port = well.server.address.port();
    // Attacks of other tests take ports of 127.0.0.2.
    let ill = Service::on(&format!("127.0.0.3:{port}"), |_| ok(STATUS));
    let urls = [1, 3].map(|host| format!("http://127.0.0.{host}:{port}"));
    let hosts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(hosts.path(), "127.0.0.1 pds-headless\n127.0.0.3 pds-headless\n").unwrap();
    let run = |args: &[&str], urls: &[String]| {
        let mut command = pdstool(args);
        command.env("COLUMNS", "200").args(urls.iter().flat_map(|url| ["--exporter", url]));
        ended(&mounted("mount --bind \"$0\" /etc/hosts", hosts.path(), &command).output().unwrap())
    };
    let both = |code: [u8; 2]| {
        let commands =
            [(&["status"][..], code[0]), (&["apps"], code[1]), (&["doctor", "--base-url", "http://h"], 1)];
        for (command, code) in commands {
            for format in ["table", "wide", "csv", "json"] {
                let args = [command, &["-o", format]].concat();
                let said = run(&args, &[format!("http://pds-headless:{port}")]);
                assert_eq!(said, run(&args, &urls), "by its name, and by its addresses");
                assert!(format != "csv" || urls.iter().all(|url| said.contains(url)), "{said}");
                assert!(said.starts_with(&format!("exit code {code}\n")), "{said}");
            }
        }
        ["status", "apps"].map(|command| run(&[command], &[format!("http://pds-headless:{port}")]))
    };
    for said in both([1, 0]) {
        let [well, ill] = urls.each_ref().map(|url| said.find(url).unwrap_or_else(|| panic!("{said}")));
        assert!(ill < well, "the worst first: {said}");
    }
    drop(ill);
    for said in both([1, 1]) {
        let lost = format!("error: no status from {}: ", urls[1]);
        assert!(said.contains(&lost) && said.contains(&urls[0]), "{said}");
    }
}

#[test]
fn addresses_that_a_name_gets_are_watched_from_then_on() {
    let page = |app: &str| {
        let app = format!(r#"{{"project":"p-1","id":"{app}","verdict":"ok","problems":[]}}"#);
        ok(format!(r#"{{"summary":{{"verdict":"ok"}},"apps":[{app}]}}"#))
    };
    let before = Service::start(move |_| page("p-1-before"));
    let port = before.server.address.port();
    // Attacks of other tests take ports of 127.0.0.2.
    let _after = Service::on(&format!("127.0.0.3:{port}"), move |_| page("p-1-after"));
    let hosts = tempfile::NamedTempFile::new().unwrap();
    let resolve = |address: &str| std::fs::write(hosts.path(), format!("{address} pds-headless\n")).unwrap();
    resolve("127.0.0.1");
    let url = format!("http://pds-headless:{port}");
    let command = pdstool(&["apps", "--watch=100ms", "-o", "csv", "--exporter", &url]);
    let mut command = mounted("mount --bind \"$0\" /etc/hosts", hosts.path(), &command);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let began = Instant::now();
    let mut shows = |app: &str| {
        lines.by_ref().take_while(|_| began.elapsed() < DEADLINE).any(|line| line.unwrap().contains(app))
    };
    assert!(shows("p-1-before"));
    resolve("127.0.0.1 pds-headless\n127.0.0.3");
    assert!(shows("p-1-after"), "the new address is not watched");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn a_real_exporter_is_shown() {
    let exporter = Exporter::demo().await;
    let url = exporter.url.clone();
    let output = tokio::task::spawn_blocking(move || {
        ["status", "apps"].map(|command| pdstool(&[command, "--exporter", &url]).output().unwrap())
    });
    let [status, apps] = output.await.unwrap();
    let text = stdout(&status);
    assert!(text.contains("numbers") && text.contains(env!("CARGO_PKG_VERSION")), "{text}");
    assert_eq!(stdout(&apps).lines().count(), 9, "a head and eight apps: {}", stdout(&apps));
}
