//! The doctor names what is wrong between configuration and service, each with its remedy.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use super::simulated::Simulated;
use super::{Service, TOKEN, ended, golden, pdstool};
use crate::client::server::{Reply, Seen, Server, ok, status};
use crate::client::transport::authority;
use crate::golden::assert_golden;

const WELL: &str = r#"{"summary":{"verdict":"ok","apps":1,"ok":1,"reasons":[]}}"#;

/// A folder with a configuration, and an exporter that is well.
struct Patient {
    folder: TempDir,
    exporter: Service,
}

/// What the doctor found, and its exit code.
struct Found {
    code: Option<i32>,
    json: Value,
}

impl Patient {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), exporter: Service::start(|_| ok(WELL)) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Examines with a configuration of this text after `[api]`.
    fn examined(&self, text: &str) -> Found {
        let file = self.path("pds-exporter.toml");
        std::fs::write(&file, format!("[api]\n{text}")).unwrap();
        let mut command = pdstool(&["doctor", "-o", "json", "--exporter", &self.exporter.url()]);
        let output = command.args(["--config.file", file.to_str().unwrap()]).output().unwrap();
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", ended(&output)));
        Found { code: output.status.code(), json }
    }
}

impl Found {
    /// What is in a state worse than a note.
    fn wrong(&self) -> Vec<(&str, &str, &str)> {
        let findings = self.json["findings"].as_array().unwrap().iter();
        let wrong =
            findings.filter(|finding| matches!(finding["state"].as_str(), Some("problem" | "warning")));
        wrong
            .map(|finding| {
                let text = |name: &str| finding[name].as_str().unwrap();
                (text("check"), text("text"), text("remedy"))
            })
            .collect()
    }

    /// The one thing that is wrong.
    fn only(&self) -> (&str, &str, &str) {
        let wrong = self.wrong();
        assert_eq!((self.code, wrong.len()), (Some(1), 1), "{:#}", self.json);
        wrong[0]
    }

    fn says(&self, check: &str, part: &str) {
        let findings = self.json["findings"].as_array().unwrap();
        let found = findings
            .iter()
            .any(|finding| finding["check"] == check && finding["text"].as_str().unwrap().contains(part));
        assert!(found, "no {check} finding says {part}: {:#}", self.json);
    }
}

/// A service where everything answers.
fn answering(seen: &Seen) -> Reply {
    match seen.target.split('?').next().unwrap().rsplit('/').next() {
        Some("projects") => ok(r#"[{"id":"p-1","name":"n","role":"r"}]"#),
        Some("domains") => ok(r#"{"domains":[]}"#),
        Some("alerts") => ok(r#"{"thresholds":[]}"#),
        Some("response-time") => ok(r#"{"data":{"total_requests":1},"status":"success"}"#),
        Some("run-execution-time") => ok(r#"{"data":{"total_runs":1},"status":"success"}"#),
        Some("p-1-typo") => status(404, r#"{"message":"no such app"}"#),
        _ => ok(r#"{"id":"p-1-a"}"#),
    }
}

const PROJECT: &str = "[[projects]]\nid = \"p-1\"\napps = [\"p-1-a\"]\n";

#[test]
fn a_simulated_service_is_found_to_be_well() {
    let service = Simulated::start();
    let patient = Patient::new();
    let (project, apps) = service.world.projects()[0].clone();
    let token = service.world.token(&project).unwrap();
    let found = patient.examined(&format!(
        "base_url = \"{}\"\ntoken = \"{}\"\n[[projects]]\nid = \"{project}\"\napps = {apps:?}\n",
        service.url,
        token.expose()
    ));
    assert_eq!((found.code, found.wrong()), (Some(0), vec![]), "{:#}", found.json);
    for (check, part) in [
        ("configuration", "is valid: 1 project, 3 apps"),
        ("network", "takes connections"),
        ("network", "speaks HTTP"),
        ("tokens", "token default, in the configuration"),
        ("calls", "get one app: all 3 answer, in "),
        ("calls", "response time percentiles: answers in "),
        ("clock", "agree within 1.5 s"),
        ("limits", "requests a minute are needed, api.max_requests_per_second allows 3000"),
        ("state file", "counters begin at zero with each start"),
        ("daemon", "1 of 1 apps ok, verdict ok"),
    ] {
        found.says(check, part);
    }
    assert!(!found.json.to_string().contains(token.expose()), "the token is shown");
}

/// `text` without the times, which differ from run to run.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    for line in text.lines() {
        let mut words: Vec<&str> = line.split(' ').collect();
        for at in (1..words.len()).rev() {
            if matches!(words[at], "µs" | "ms" | "s") && words[at - 1].parse::<f64>().is_ok() {
                words.remove(at);
                words[at - 1] = "TIME";
            }
        }
        writeln!(steady, "{}", words.join(" ")).unwrap();
    }
    steady
}

#[test]
fn the_page_has_a_remedy_for_all_that_is_wrong_at_any_width() {
    let patient = Patient {
        exporter: Service::start(|_| {
            ok(
                r#"{"summary":{"verdict":"problem","apps":2,"ok":1,"reasons":[{"code":"c","verdict":"problem","text":"1 app: the app reports an error","action":"Look at the app in the service's dashboard."}]}}"#,
            )
        }),
        ..Patient::new()
    };
    let service = Service::start(answering);
    let file = patient.path("pds-exporter.toml");
    let text = format!(
        "[api]\nbase_url = \"{}\"\ntoken = \"{TOKEN}\"\nmax_requests_per_second = 1\nmax_response_bytes = \"1KiB\"\n[state]\npath = \"no/folder/state\"\n[poll]\ninterval = \"1s\"\n[[projects]]\nid = \"p-1\"\napps = [\"p-1-a\", \"p-1-typo\"]\n",
        service.url()
    );
    std::fs::write(&file, text).unwrap();
    let mut pages = String::new();
    for (columns, form) in [("80", "table"), ("200", "table"), ("80", "csv")] {
        let mut command = pdstool(&["doctor", "--exporter", &patient.exporter.url(), "-o", form]);
        command.env("COLUMNS", columns).args(["--config.file", file.to_str().unwrap()]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        if form == "csv" {
            // The times stand in a column of their own.
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.starts_with("CHECK,STATE,FINDING,REMEDY,SECONDS\n"), "{text}");
            continue;
        }
        let folder = patient.folder.path().to_str().unwrap();
        let text = ended(&output)
            .replace(service.url().trim_start_matches("http://"), "127.0.0.1:8080")
            .replace(folder, "/etc/pds-exporter");
        writeln!(pages, "{columns} columns\n{}", steady(&text)).unwrap();
    }
    assert_golden(&golden("doctor.txt"), &pages);
}

#[test]
fn every_problem_of_the_configuration_is_found() {
    let patient = Patient::new();
    let found = patient.examined("base_url = \"ftp://x\"\ntimeout = \"never\"\n");
    let keys: Vec<&str> = found.wrong().iter().map(|(_, text, _)| text.split(':').next().unwrap()).collect();
    assert_eq!(
        (found.code, keys),
        (Some(1), vec!["api.base_url", "api.timeout", "projects"]),
        "{:#}",
        found.json
    );
    found.says("daemon", "verdict ok");
    let missing =
        pdstool(&["doctor", "--config.file", "nowhere.toml", "--exporter", &patient.exporter.url()]);
    let mut missing = missing;
    let text = ended(&missing.output().unwrap());
    assert!(
        text.contains("there is no configuration file nowhere.toml") && !text.contains("--demo"),
        "{text}"
    );
}

/// A server over TLS with a certificate for `name`, its CA's file, and what keeps it alive.
fn secure(name: &str) -> (Server, PathBuf, TempDir, tokio::runtime::Runtime) {
    let folder = tempfile::tempdir().unwrap();
    let (ca, tls): (PathBuf, TlsAcceptor) = authority(folder.path(), name);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(Server::on("127.0.0.1:0", Some(tls), answering));
    (server, ca, folder, runtime)
}

#[test]
fn https_to_a_plain_port_and_http_to_a_tls_port_are_told_apart() {
    let patient = Patient::new();
    let plain = Service::start(answering);
    let url = plain.url().replace("http://", "https://");
    let found = patient.examined(&format!("base_url = \"{url}\"\ntoken = \"{TOKEN}\"\n{PROJECT}"));
    let (check, text, remedy) = found.only();
    assert!(check == "network" && text.contains("speaks plain HTTP, but api.base_url says https"), "{text}");
    assert!(remedy.contains("http://"), "{remedy}");
    assert!(!found.json.to_string().contains("InvalidContentType"));

    let (server, ..) = &secure("127.0.0.1");
    let found = patient
        .examined(&format!("base_url = \"http://{}\"\ntoken = \"{TOKEN}\"\n{PROJECT}", server.address));
    let (check, text, remedy) = found.only();
    assert!(check == "network" && text.contains("speaks TLS, but api.base_url says http"), "{text}");
    assert_eq!(remedy, "Write https:// in api.base_url.");
}

#[test]
fn certificates_are_judged_by_authority_and_name() {
    let patient = Patient::new();
    let (server, ca, _folder, _runtime) = secure("127.0.0.1");
    let api = format!("base_url = \"https://{}\"\ntoken = \"{TOKEN}\"\n", server.address);
    let found = patient.examined(&format!("{api}{PROJECT}"));
    let (_, text, remedy) = found.only();
    assert_eq!(text, "the certificate is of an authority that is not trusted");
    assert_eq!(remedy, "Name the file with the authority's certificate in api.ca_file.");
    let trusting = patient.examined(&format!("{api}ca_file = {ca:?}\n{PROJECT}"));
    assert_eq!((trusting.code, trusting.wrong()), (Some(0), vec![]), "{:#}", trusting.json);
    trusting.says("network", "TLS 1.3 with the service, HTTP/2, certificate until ");

    let (other, ca, _folder, _runtime) = secure("elsewhere.example.com");
    let api = format!("base_url = \"https://{}\"\ntoken = \"{TOKEN}\"\n", other.address);
    let found = patient.examined(&format!("{api}ca_file = {ca:?}\n{PROJECT}"));
    assert!(found.only().1.starts_with("the certificate is for another name: "), "{:#}", found.json);
}

#[test]
fn a_port_where_nothing_listens_and_a_name_without_address_are_named() {
    let patient = Patient::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let found = patient.examined(&format!("base_url = \"http://{closed}\"\ntoken = \"{TOKEN}\"\n{PROJECT}"));
    let (_, text, remedy) = found.only();
    assert!(
        text.contains("refused") && remedy.contains("check host and port in api.base_url"),
        "{text}: {remedy}"
    );
    let found =
        patient.examined(&format!("base_url = \"https://nowhere.invalid\"\ntoken = \"{TOKEN}\"\n{PROJECT}"));
    let (_, text, remedy) = found.only();
    assert!(text.contains("the name nowhere.invalid") && remedy.contains("DNS"), "{text}: {remedy}");
}

/// A proxy that answers one request with `reply`; its address.
fn proxy(reply: &'static str) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            request.push(byte[0]);
        }
        let _ = stream.write_all(reply.as_bytes());
    });
    address
}

#[test]
fn a_proxy_is_asked_for_a_tunnel_and_its_refusal_is_explained() {
    let patient = Patient::new();
    for (reply, said, remedy) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "demands a password", "user:password@"),
        (
            "HTTP/1.1 403 Forbidden\r\n\r\n",
            "opens no tunnel to api.example.com:443: HTTP/1.1 403",
            "NO_PROXY",
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not answer as one", "api.proxy_url"),
        ("HTTP/1.1 200 Connection established\r\n\r\n", "TLS handshake", "firewall"),
    ] {
        let text = format!(
            "base_url = \"https://api.example.com\"\ntoken = \"{TOKEN}\"\nproxy_url = \"http://{}\"\n{PROJECT}",
            proxy(reply)
        );
        let found = patient.examined(&text);
        let (_, text, advice) = found.only();
        assert!(text.contains(said) && advice.contains(remedy), "{text}: {advice}");
    }
}

#[test]
fn tokens_are_read_and_judged_before_the_service_refuses_them() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let file = patient.path("token");
    let text = format!("base_url = \"{}\"\ntoken_file = \"token\"\n{PROJECT}", service.url());
    let missing = patient.examined(&text);
    let wrong: Vec<&str> = missing.wrong().iter().map(|(check, ..)| *check).collect();
    assert_eq!((missing.code, wrong), (Some(1), vec!["tokens", "calls"]), "{:#}", missing.json);
    std::fs::write(&file, TOKEN).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let found = patient.examined(&text);
    let (_, said, remedy) = found.only();
    assert!(said.contains("every user can read") && remedy.starts_with("chmod 600 "), "{said}: {remedy}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(patient.examined(&text).code, Some(0));
    let now = jiff::Timestamp::now().as_second();
    for (expires, said) in [(now - 60, ": expired "), (now + 86_400, ": expires ")] {
        std::fs::write(&file, super::checks::token(&expires.to_string())).unwrap();
        let found = patient.examined(&text);
        let (_, text, remedy) = found.only();
        assert!(text.contains(said) && remedy.contains("Create a new token"), "{text}: {remedy}");
    }
}

#[test]
fn the_same_refusal_is_said_once_with_what_it_is_about() {
    let patient = Patient::new();
    let service = Service::start(|_| status(401, r#"{"message":"unknown token"}"#));
    let found =
        patient.examined(&format!("base_url = \"{}\"\ntoken = \"{TOKEN}\"\n{PROJECT}", service.url()));
    let answered: Vec<_> =
        found.wrong().into_iter().filter(|(_, text, _)| text.contains("answered 401")).collect();
    assert_eq!(answered.len(), 1, "{:#}", found.json);
    assert!(answered[0].2.contains("Create a new token"));
    assert_eq!(service.requests().iter().filter(|request| request.starts_with("GET")).count(), 1);
}

#[test]
fn a_clock_that_is_wrong_and_limits_that_are_too_low_are_warned_of() {
    let patient = Patient::new();
    let service = Service::start(|seen| answering(seen).with("date", "Thu, 01 Jan 2026 00:00:00 GMT"));
    let found = patient.examined(&format!(
        "base_url = \"{}\"\ntoken = \"{TOKEN}\"\nmax_requests_per_second = 1\n[poll]\ninterval = \"1s\"\n{PROJECT}",
        service.url()
    ));
    let checks: Vec<&str> = found.wrong().iter().map(|(check, ..)| *check).collect();
    assert_eq!((found.code, checks), (Some(1), vec!["clock", "limits"]), "{:#}", found.json);
    found.says("clock", "behind this machine's");
}

#[test]
fn a_state_file_that_no_daemon_could_use_is_a_problem() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let file = patient.path("state");
    let text = format!(
        "base_url = \"{}\"\ntoken = \"{TOKEN}\"\n[state]\npath = \"state\"\n{PROJECT}",
        service.url()
    );
    let absent = patient.examined(&text);
    assert_eq!(absent.code, Some(0), "{:#}", absent.json);
    absent.says("state file", "is not there yet");
    std::fs::write(&file, "not a database").unwrap();
    let found = patient.examined(&text);
    assert!(found.only().1.contains("is damaged"), "{:#}", found.json);
    assert_eq!(std::fs::read(&file).unwrap(), b"not a database", "nothing is changed");
    let held = std::fs::File::open(&file).unwrap();
    held.lock().unwrap();
    patient.examined(&text).says("state file", "is in use by a running daemon");
}

#[test]
fn a_daemon_that_was_named_must_answer() {
    let patient = Patient { exporter: Service::start(|_| status(503, "")), ..Patient::new() };
    let service = Service::start(answering);
    let found =
        patient.examined(&format!("base_url = \"{}\"\ntoken = \"{TOKEN}\"\n{PROJECT}", service.url()));
    let (check, text, _) = found.only();
    assert!(check == "daemon" && text.contains("503"), "{text}");
}
