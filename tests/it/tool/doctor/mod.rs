//! The doctor names what is wrong between configuration and service, each with its remedy.

mod many;
mod network;
mod state;

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::simulated::Simulated;
use super::{Found, Service, TOKEN, ended, golden, pdstool};
use crate::client::server::{Reply, Seen, ok, status};
use crate::deploy::{list, string};
use crate::golden::assert_golden;
use crate::process::assert_has;
use pds_diagnosis::cause;

const WELL: &str = r#"{"summary":{"verdict":"ok","apps":{"all":1,"ok":1},"ok":1,"reasons":[]}}"#;

/// A folder with a configuration, and an exporter that is well.
struct Patient {
    folder: TempDir,
    exporter: Service,
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
        self.examined_with(text, &[])
    }

    /// The same with variables in the environment.
    fn examined_with(&self, text: &str, variables: &[(&str, &str)]) -> Found {
        self.examined_by(text, |command| command.envs(variables.iter().copied()))
    }

    /// The same by a process that `as_it` changes.
    fn examined_by(&self, text: &str, as_it: impl FnOnce(&mut Command) -> &mut Command) -> Found {
        let file = self.path("pds-exporter.toml");
        std::fs::write(&file, format!("[api]\n{text}")).unwrap();
        let mut command = pdstool(&["doctor", "-o", "json", "--exporter", &self.exporter.url()]);
        as_it(&mut command);
        Found::of(&command.args(["--config.file", file.to_str().unwrap()]).output().unwrap())
    }
}

impl Found {
    /// The findings that are worse than a note.
    fn wrong(&self) -> Vec<(&str, &str, &str)> {
        let wrong = list(&self.json["findings"]).iter();
        let wrong = wrong.filter(|finding| ["problem", "warning"].contains(&string(finding, "/state")));
        let texts = |finding| ["/check", "/text", "/remedy"].map(|field| string(finding, field));
        wrong.map(texts).map(|[check, text, remedy]| (check, text, remedy)).collect()
    }

    /// The one thing that is wrong.
    fn only(&self) -> (&str, &str, &str) {
        let wrong = self.wrong();
        assert_eq!((self.code, wrong.len()), (Some(1), 1), "{:#}", self.json);
        wrong[0]
    }
}

/// A service where everything answers.
fn answering(seen: &Seen) -> Reply {
    let name = seen.target.split('?').next().unwrap().rsplit('/').next();
    match name {
        Some("projects") => ok(r#"[{"id":"p-1","name":"n","role":"r"}]"#),
        Some("domains") => ok(r#"{"domains":[]}"#),
        Some("alerts") => ok(r#"{"thresholds":[]}"#),
        Some("response-time") => {
            ok(r#"{"data":{"total_requests":1,"distribution":{"1s":100}},"status":"success"}"#)
        }
        Some("run-execution-time") => ok(r#"{"data":{"total_runs":1},"status":"success"}"#),
        Some("p-1-typo") => status(404, r#"{"message":"no such app"}"#),
        _ => ok(format!(r#"{{"id":"{}"}}"#, name.unwrap_or_default())),
    }
}

const PROJECT: &str = "[[projects]]\nid = \"p-1\"\napps = [\"p-1-a\"]\n";

/// A configuration for `service`, with these lines before its project.
fn polling(service: &Service, lines: &str) -> String {
    polling_apps(service, lines, "'p-1-a'")
}

/// The same with these apps.
fn polling_apps(service: &Service, lines: &str, apps: &str) -> String {
    let api = format!("base_url = \"{}\"\ntoken = \"{TOKEN}\"\n", service.url());
    format!("{api}{lines}[[projects]]\nid = \"p-1\"\napps = [{apps}]\n")
}

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
        ("network", "answers over HTTP/1.1"),
        ("tokens", "token default, in the configuration"),
        ("calls", "get one app: all 3 answer, in "),
        ("calls", "response time percentiles: answers in "),
        ("clock", "agree within 1.5 s"),
        ("limits", "requests/min; api.max_requests_per_second = 50 is enough"),
        ("state file", "counters start at zero on every start"),
        ("daemon", "1 of 1 app ok, verdict ok"),
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
                r#"{"summary":{"verdict":"problem","apps":{"all":2,"ok":1,"problem":1},"ok":1,"reasons":[{"code":"c","verdict":"problem","text":"1 app: the app reports an error","remedy":"Check the app in the service's dashboard."}]}}"#,
            )
        }),
        ..Patient::new()
    };
    let service = Service::start(answering);
    let file = patient.path("pds-exporter.toml");
    // Enough for replies as slow as a busy machine makes them.
    let slow = "timeout = \"1m\"\nmax_requests_per_second = 50\nmax_concurrent_requests = 1000\n";
    let broken = slow.replace("50", "1") + "[state]\npath = \"no/folder/state\"\n[poll]\ninterval = \"1s\"\n";
    let many = |apps: u32| (0..apps).map(|app| format!("'p-1-{app}', ")).collect::<String>();
    let two = "'p-1-a', 'p-1-typo'".to_owned();
    let mut pages = String::new();
    for (name, columns, form, tables, apps) in [
        ("80 columns", "80", "table", &*broken, &two),
        ("200 columns", "200", "table", &*broken, &two),
        ("csv", "80", "csv", &*broken, &two),
        ("1 app", "120", "table", slow, &many(1)),
        ("8 apps", "120", "table", slow, &many(8)),
        ("10,000 apps", "120", "table", slow, &many(10_000)),
    ] {
        let lines = format!("max_response_bytes = \"1KiB\"\n{tables}");
        std::fs::write(&file, format!("[api]\n{}", polling_apps(&service, &lines, apps))).unwrap();
        let mut command = pdstool(&["doctor", "--exporter", &patient.exporter.url(), "-o", form]);
        command.env("COLUMNS", columns).args(["--config.file", file.to_str().unwrap()]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        if form == "csv" {
            // The times stand in a column of their own.
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.starts_with("check,state,finding,remedy,seconds\n"), "{text}");
            continue;
        }
        let folder = patient.folder.path().to_str().unwrap();
        let text = ended(&output)
            .replace(service.url().trim_start_matches("http://"), "127.0.0.1:8080")
            .replace(folder, "/etc/pds-exporter");
        writeln!(pages, "{name}\n{}", steady(&text)).unwrap();
    }
    assert_golden(&golden("doctor.txt"), &pages);
}

#[test]
fn every_problem_of_the_configuration_is_found() {
    let patient = Patient::new();
    let found = patient.examined("base_url = \"ftp://x\"\ntimeout = \"never\"\n");
    let keys: Vec<&str> = found.wrong().iter().map(|(_, text, _)| text.split(':').next().unwrap()).collect();
    assert_eq!(keys, ["api.base_url", "api.timeout", "projects"]);
    assert_eq!(found.code, Some(1), "{:#}", found.json);
    found.says("daemon", "verdict ok");
    let missing = ["doctor", "--config.file", "nowhere.toml", "--exporter", &patient.exporter.url()];
    let text = ended(&pdstool(&missing).output().unwrap());
    assert_has(&text, &["there is no configuration file nowhere.toml"]);
    assert!(!text.contains("--demo"), "{text}");
}

#[test]
fn tokens_are_read_and_judged_before_the_service_refuses_them() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let file = patient.path("token");
    let text = format!("base_url = \"{}\"\ntoken_file = \"token\"\n{PROJECT}", service.url());
    let missing = patient.examined(&text);
    let wrong: Vec<&str> = missing.wrong().iter().map(|(check, ..)| *check).collect();
    assert_eq!((missing.code, wrong), (Some(1), vec!["tokens"]), "{:#}", missing.json);
    std::fs::write(&file, TOKEN).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let found = patient.examined(&text);
    let (_, said, remedy) = found.only();
    assert!(said.contains("every user can read") && remedy.starts_with("chmod 600 "), "{said}: {remedy}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(patient.examined(&text).code, Some(0));
    let now = jiff::Timestamp::now().as_second();
    // The service accepts both.
    for expires in [now - 60, now + 86_400] {
        std::fs::write(&file, crate::tool::checks::token(&expires.to_string())).unwrap();
        let found = patient.examined(&text);
        let (_, text, remedy) = found.only();
        assert!(text.contains("the default token will expire at "), "{text}");
        let cause = &cause::TOKEN_EXPIRES_SOON;
        assert_eq!(remedy, cause.remedy_at(Some(file.to_str().unwrap())), "as the page says it");
    }
}

#[test]
fn a_clock_that_is_wrong_and_limits_that_are_too_low_are_warned_of() {
    let patient = Patient::new();
    let service = Service::start(|seen| answering(seen).with("date", "Thu, 01 Jan 2026 00:00:00 GMT"));
    let overload = "max_requests_per_second = 1\n[poll]\ninterval = \"1s\"\n";
    let found = patient.examined(&polling(&service, overload));
    let checks: Vec<&str> = found.wrong().iter().map(|(check, ..)| *check).collect();
    assert_eq!((found.code, checks), (Some(1), vec!["clock", "limits"]), "{:#}", found.json);
    found.says("clock", "behind this machine's");
    let remedies: Vec<&str> = found.wrong().iter().map(|(.., remedy)| *remedy).collect();
    assert_eq!(remedies, [cause::CLOCKS_DIFFER.remedy, cause::OVERLOADED.remedy]);
}

#[test]
fn a_daemon_that_was_named_must_answer() {
    let patient = Patient { exporter: Service::start(|_| status(503, "")), ..Patient::new() };
    let service = Service::start(answering);
    let found = patient.examined(&polling(&service, ""));
    let (check, text, _) = found.only();
    assert!(check == "daemon" && text.contains("503"), "{text}");
}

#[test]
fn every_daemon_of_a_list_is_examined() {
    let (patient, service, down) =
        (Patient::new(), Service::start(answering), Service::start(|_| status(503, "")));
    let file = patient.path("pds-exporter.toml");
    std::fs::write(&file, format!("[api]\n{}", polling(&service, ""))).unwrap();
    let mut command = pdstool(&["doctor", "-o", "json", "--config.file", file.to_str().unwrap()]);
    command.env("PDSTOOL_EXPORTER", format!("{},{}", patient.exporter.url(), down.url()));
    let found = Found::of(&command.output().unwrap());
    found.says("daemon", "1 of 1 app ok, verdict ok");
    let (check, text, _) = found.only();
    assert!(check == "daemon" && text.contains(&down.url()) && text.contains("503"), "{text}");
}

#[test]
fn a_dead_restore_source_a_bad_file_and_a_bad_token_have_each_their_own_remedy() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let usual = |token: &str| format!("base_url = \"{}\"\n{token}\n{PROJECT}", service.url());
    let inline = usual(&format!("token = \"{TOKEN}\""));
    let restored = |url: &str| format!("{inline}[state]\nprometheus_url = \"{url}\"\n");
    let found = patient.examined(&restored("http://127.0.0.1:1"));
    let (check, text, remedy) = found.only();
    assert_eq!(check, "restore source");
    let dead = "the cursors of counters cannot be read from Prometheus: http://127.0.0.1:1/";
    assert!(text.starts_with(dead), "{text}");
    assert!(remedy.starts_with("Check state.prometheus_url"), "{remedy}");
    let time = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1.0,"1792500000"]}]}}"#;
    let prometheus = Service::start(move |_| ok(time));
    patient.examined(&restored(&prometheus.url())).says("restore source", "answers queries");

    let syntax = patient.examined("base_url = \n");
    assert_eq!(syntax.only().2, "Correct the TOML at this line and column.");
    for (text, says) in [
        ("\n", "is empty"),
        ("Bearer abc.def.ghi", "begins with `Bearer`"),
        ("\"abc.def.ghi\"", "stands in quotes"),
        ("{\"apiKey\":\"abc.def.ghi\"}", "is JSON"),
        ("abc.def.ghi\njkl.mno.pqr", "has more than one line"),
        ("TOKEN=abc.def.ghi", "is an assignment (NAME=token)"),
        ("abc def", "holds spaces"),
    ] {
        std::fs::write(patient.path("token"), text).unwrap();
        let found = patient.examined(&usual("token_file = \"token\""));
        let (check, text, remedy) = found.wrong()[0];
        assert_eq!(check, "tokens");
        assert!(text.starts_with("the default token cannot be used: ") && text.contains(says), "{text}");
        assert!(remedy.starts_with("Write only the token into "), "{remedy}");
        let mut check = pdstool(&["check", "token", "--config.file"]);
        let checked = check.arg(patient.path("pds-exporter.toml")).output().unwrap();
        assert!(!checked.status.success() && ended(&checked).contains(says), "{}", ended(&checked));
    }
    let is_sent = |seen: &Seen| seen.header("authorization").is_some_and(|it| it.contains("abc"));
    assert!(!service.server.seen().iter().any(is_sent), "nothing of it is sent");
    std::fs::write(patient.path("token"), "\u{feff}abc==").unwrap();
    patient.examined(&usual("token_file = \"token\"")).says("tokens", "states no expiry");
}

#[test]
fn a_missing_list_of_projects_is_no_wrong_address_while_other_calls_succeed() {
    let patient = Patient::new();
    let service = Service::start(|seen| match &*seen.target {
        "/v2/projects" => status(404, r#"{"message":"no such route"}"#),
        _ => answering(seen),
    });
    let found = patient.examined(&polling_apps(&service, "", "'p-1-a', 'p-1-typo'"));
    let remedies: Vec<&str> = found.wrong().iter().map(|(.., remedy)| *remedy).collect();
    assert_eq!(remedies, [cause::CALL_MISSING.remedy, cause::NOT_FOUND.remedy]);
    std::fs::write(patient.path("token"), TOKEN).unwrap();
    let run = |command: &[&str], app: &str| {
        let mut tool = pdstool(command);
        tool.args(["--project", "p-1", "--app", app, "--base-url", &service.url(), "--token-file", "token"]);
        ended(&tool.current_dir(patient.folder.path()).output().unwrap())
    };
    let said = run(&["check", "token", "-o", "csv"], "p-1-a");
    assert_has(&said, &["exit code 3\n", "returned 404: no such route", "p-1-a,ok\n", "1 of 6 calls failed"]);
    let init = ["init", "--config.file", "new.toml"];
    assert_has(&run(&init, "p-1-typo"), &["exit code 1\n", "the service is not at api.base_url"]);
    let said = run(&init, "p-1-a");
    assert_has(&said, &["exit code 0\n", "p-1 (the service returns no list of projects)"]);
    assert_has(&std::fs::read_to_string(patient.path("new.toml")).unwrap(), &["id = \"p-1\"", "\"p-1-a\""]);
}
