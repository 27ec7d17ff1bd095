//! The log of the real daemon: state changes and not repetitions, in both forms, at the configured level.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Command;

use pds_config::{Level, flags::LogFormat};
use pds_core::secret::Secret;
use pds_exporter::app::logging;
use pds_interface::response_time;
use pds_simulator::{Fault, Kind, Settings, World};
use pds_telemetry::Telemetry;
use serde_json::Value;
use tempfile::TempDir;

use crate::deploy::succeed;
use crate::process::{DEADLINE, Exporter, assert_has, edit, get, until, until_page, value};
use crate::rig::{self, FaultExt as _};
use crate::server::free_port;

/// A simulated service of so many apps, and the path of a configuration that polls it every second.
pub(crate) async fn service(apps: usize) -> (World, TempDir, String) {
    rig::service(Settings { projects: 1, apps, ..Settings::default() }).await
}

/// The lines that a target which failed for a while and recovered leaves in a log of this form.
async fn lines_of_an_outage(format: &str) -> (Vec<String>, World) {
    let (world, _folder, config) = service(2).await;
    let exporter = Exporter::ready(&["--config.file", &config, "--log.format", format]).await;
    let app = world.projects()[0].1[0].clone();
    world.faults().set([Fault::status(500).on(response_time::RESOURCE).of_app(&app)]);
    let failed = "pds_api_requests_total{code=\"500\",resource=\"response_time\"}";
    until_page(&exporter, "the target fails again and again", |page| value(page, failed) >= Some(4.0)).await;
    world.faults().clear();
    until("the target recovered", async || exporter.log().contains("polling recovered")).await;
    let log = exporter.log();
    let told = log.lines().filter(|line| line.contains("polling")).map(str::to_owned).collect();
    assert!(exporter.terminate().success());
    (told, world)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_outage_is_two_lines_of_logfmt() {
    let (lines, world) = lines_of_an_outage("logfmt").await;
    let [failing, recovered] = &*lines else { panic!("{lines:#?}") };
    let app = format!("app={}", world.projects()[0].1[0]);
    assert_has(failing, &["level=warn", "message=\"polling began to fail\"", "class=500", "returned 500"]);
    assert_has(recovered, &["level=info", "message=\"polling recovered\"", "after="]);
    for line in [failing, recovered] {
        assert_has(line, &["ts=20", "resource=response_time", &app]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_outage_is_two_objects_of_json() {
    let (lines, world) = lines_of_an_outage("json").await;
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [failing, recovered] = &*lines else { panic!("{lines:#?}") };
    let app = &world.projects()[0].1[0];
    assert_eq!(
        (&failing["level"], &failing["class"], &failing["app"]),
        (&"WARN".into(), &"500".into(), &(**app).into())
    );
    assert_eq!(failing["message"], "polling began to fail");
    assert_eq!((&recovered["level"], &recovered["resource"]), (&"INFO".into(), &"response_time".into()));
    assert!(recovered["after"].is_string() && recovered["timestamp"].is_string(), "{recovered}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_outage_of_many_is_a_few_lines_and_a_number() {
    let (world, _folder, config) = service(25).await;
    let exporter = Exporter::ready(&["--config.file", &config]).await;
    world.faults().set([Fault::status(500).on(response_time::RESOURCE)]);
    let down = |line: &&str| line.starts_with("pds_up{") && line.ends_with("resource=\"response_time\"} 0");
    until_page(&exporter, "every app fails", |page| page.lines().filter(down).count() == 25).await;
    exporter.signal("TERM");
    until("the others are told as a number", async || exporter.log().contains("targets=15")).await;
    let log = exporter.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("began to fail")).collect();
    assert_eq!(lines.len(), 11, "{lines:#?}");
    assert_has(lines[10], &["\"polling of further targets began to fail\"", "class=500"]);
}

/// The pairs of a line as go-logfmt reads them: a quoted value has the escapes of JSON and no other.
fn logfmt_pairs(line: &str) -> Vec<(String, String)> {
    let (mut pairs, mut rest) = (Vec::new(), line);
    while !rest.is_empty() {
        let (key, value) = rest.split_once('=').unwrap_or_else(|| panic!("no key in {rest}"));
        assert!(!key.is_empty() && !key.contains(|c: char| c <= ' ' || c == '"'), "{line}");
        let length = match value.strip_prefix('"') {
            None => value.find(' ').unwrap_or(value.len()),
            Some(_) => {
                let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
                values.next().unwrap().unwrap_or_else(|error| panic!("{error} in {value}"));
                values.byte_offset()
            }
        };
        let (value, after) = value.split_at(length);
        pairs.push((key.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.to_owned())));
        rest = after.strip_prefix(' ').unwrap_or_else(|| {
            assert!(after.is_empty(), "{line}");
            after
        });
    }
    pairs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn texts_of_the_service_control_no_terminal_and_break_no_line() {
    let text = "gone\u{1b}[2J \u{7}\u{0}\u{9b}2J \u{202e}evil\u{2069} \"quoted\" it's\r\nlevel=error \\u{1b}";
    for format in ["logfmt", "json"] {
        let (world, _folder, config) = service(1).await;
        let folder = tempfile::tempdir().unwrap();
        // A path is told as it is, too.
        let path = folder.path().join("odd\u{1b}[2J\u{85}\u{202e}.toml");
        std::fs::copy(&config, &path).unwrap();
        let exporter =
            Exporter::ready(&["--config.file", path.to_str().unwrap(), "--log.format", format]).await;
        world.faults().set([Fault::from(Kind::RawError { status: 500, text: text.to_owned() })]);
        until_all(&exporter, "0").await;
        std::fs::write(&path, "broken").unwrap();
        exporter.signal("HUP");
        until("the path is told", async || exporter.log().contains("odd")).await;
        until("the service's words are told", async || exporter.log().contains("evil")).await;
        let log = exporter.log();
        let steers = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2069}".contains(c));
        assert!(!log.contains(steers), "{log:?}");
        for line in log.lines() {
            match format {
                "json" => drop(serde_json::from_str::<Value>(line).unwrap()),
                _ => assert_eq!(logfmt_pairs(line)[0].0, "ts", "{line}"),
            }
        }
    }
}

/// Waits until every target is up (1) or down (0).
async fn until_all(exporter: &Exporter, up: &str) {
    until_page(exporter, &format!("every target is {up}"), |page| {
        let mut ups = page.lines().filter(|line| line.starts_with("pds_up{")).peekable();
        ups.peek().is_some() && ups.all(|line| line.ends_with(up))
    })
    .await;
}

/// The messages of a log in JSON after its first lines.
fn messages(log: &str, first: usize) -> Vec<String> {
    let lines = log.lines().skip(first).map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopped_service_account_is_logged_once_and_not_by_its_targets() {
    let asked_to_wait = Kind::Status { status: 429, retry_after: Some("3600".to_owned()) };
    for (fault, paused, told) in [
        (
            Fault::status(401),
            "unauthorized_paused",
            ["the service refuses the token of ", "the service accepts the token again"],
        ),
        (
            // Once: further ones would also slow the pace, which has lines of its own.
            Fault::from(asked_to_wait).times(1),
            "paused",
            ["the service requests a pause", "requests are sent again after a pause"],
        ),
    ] {
        let (world, _folder, config) = service(4).await;
        edit(&config, |text| text.replace("\"5s\"", "\"2s\""));
        let exporter = Exporter::ready(&["--config.file", &config, "--log.format", "json"]).await;
        until_all(&exporter, "1").await;
        let before = exporter.log().lines().count();
        world.faults().set([fault]);
        until_all(&exporter, "0").await;
        let again = format!("pds_api_requests_total{{code=\"{paused}\",resource=\"response_time\"}}");
        until_page(&exporter, "all of them failed again", |page| value(page, &again) >= Some(8.0)).await;
        world.faults().clear();
        // A reload ends a pause.
        exporter.signal("HUP");
        until_all(&exporter, "1").await;
        until("the end is logged", async || exporter.log().contains(told[1])).await;
        // Beside the reasons of the verdict, and the reload.
        let log: String = exporter
            .log()
            .lines()
            .skip(before)
            .filter(|line| line.contains("\"token\"") || line.contains("polling"))
            .filter(|line| !line.contains("\"code\""))
            .fold(String::new(), |log, line| log + line + "\n");
        let [began, ended] = &*messages(&log, 0) else { panic!("{}", exporter.log()) };
        assert!(began.starts_with(told[0]) && ended == told[1], "{began}, {ended}");
        let account = format!("\"token\":\"{}\"", world.projects()[0].0);
        assert_eq!(exporter.log().matches(&account).count(), 2, "both name it: {}", exporter.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_missing_token_file_is_logged_once_and_its_appearance_too() {
    let (world, folder, config) = service(4).await;
    let token = world.token(&world.projects()[0].0).unwrap();
    let inline = format!("token = \"{}\"", token.expose());
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains(&inline), "{text}");
    std::fs::write(&config, text.replace(&inline, "token_file = \"token\"")).unwrap();
    let exporter = Exporter::ready(&["--config.file", &config, "--log.format", "json"]).await;
    until_all(&exporter, "0").await;
    let mut owner_only = std::fs::OpenOptions::new();
    let owner_only = owner_only.write(true).create_new(true).mode(0o600);
    owner_only.open(folder.path().join("token")).unwrap().write_all(token.expose().as_bytes()).unwrap();
    until_all(&exporter, "1").await;
    until("the log says so", async || exporter.log().contains("can be used again")).await;
    let log = exporter.log();
    let told = messages(&log, 0).into_iter().filter(|message| message.contains("the token"));
    let unusable = format!("the token of {} cannot be used", world.projects()[0].0);
    assert_eq!(told.collect::<Vec<_>>(), [&*unusable, "the token can be used again"]);
    assert!(!log.contains("polling"), "{log}");
    let warning = log.lines().find(|line| line.contains("cannot be used")).unwrap();
    assert!(warning.contains("No such file") && !warning.contains("\"cause\""), "{warning}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_level_follows_the_configuration() {
    let (_world, _folder, config) = service(2).await;
    let plain = std::fs::read_to_string(&config).unwrap();
    let exporter =
        Exporter::start(&["--config.file", &config, "--log.level", "debug", "--web.enable-lifecycle"]);
    let again = async |level: &str| {
        std::fs::write(&config, format!("{plain}\n[log]\nlevel = \"{level}\"\n")).unwrap();
        let before = exporter.log().lines().count();
        let reply = reqwest::Client::new().post(format!("{}/-/reload", exporter.url)).send().await.unwrap();
        assert_eq!(reply.status(), 200);
        before
    };
    let told = |since: usize, what: &str| {
        exporter.log().lines().skip(since).filter(|line| line.contains(what)).count()
    };
    let reloads = |since: usize| told(since, "configuration was reloaded");
    let since = again("trace").await;
    until("every step is logged", async || told(since, "level=trace") > 0 && reloads(since) > 0).await;
    let since = again("error").await;
    again("error").await;
    again("").await;
    until("a reload is logged, as the flag says", async || reloads(since) > 0).await;
    assert_eq!(reloads(since), 1, "{}", exporter.log());
}

/// Set for the process of [`alone`].
const ALONE: &str = "PDS_TEST_ALONE";

/// The log of a test of this module in a process of its own; `None` in that process.
fn alone(test: &str) -> Option<String> {
    let name = format!("logging::{test}");
    let mut process = Command::new(std::env::current_exe().unwrap());
    let process = process.args(["--exact", &name, "--nocapture"]).env(ALONE, "1");
    std::env::var_os(ALONE).is_none().then(|| succeed(process))
}

#[test]
fn a_panic_is_logged_with_its_place_and_never_with_a_token() {
    let Some(told) = alone("a_panic_is_logged_with_its_place_and_never_with_a_token") else {
        let telemetry = Telemetry::new(false).unwrap();
        let log = logging::start(Level::Info, LogFormat::Logfmt, telemetry.log_lines_dropped()).unwrap();
        logging::report_panics(telemetry.clone());
        let token = Secret::new("s3rvice-acc0unt-t0ken");
        let formatted = std::thread::spawn(move || panic!("no header holds {}", token.expose()));
        let plain = std::thread::spawn(|| panic!("a plain bug"));
        assert!(formatted.join().is_err() && plain.join().is_err());
        assert!(rig::own_page(&telemetry).contains("pds_exporter_panics_total 2\n"));
        return log.flush();
    };
    assert!(!told.contains("t0ken") && told.contains("a message that may hold secrets"), "{told}");
    assert!(told.contains("a plain bug") && told.contains("place=tests/it/logging.rs:"), "{told}");
    assert_eq!(told.matches("level=error").count(), 2, "{told}");
}

#[test]
fn frames_of_http_2_are_logged_at_no_level() {
    let Some(told) = alone("frames_of_http_2_are_logged_at_no_level") else {
        let telemetry = Telemetry::new(false).unwrap();
        let log = logging::start(Level::Trace, LogFormat::Logfmt, telemetry.log_lines_dropped()).unwrap();
        tracing::trace!(target: "h2::codec", "a frame");
        tracing::trace!(target: "hyper", "a step");
        return log.flush();
    };
    assert!(told.contains("a step") && !told.contains("a frame"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_that_nobody_reads_stops_nothing() {
    let (_world, _folder, config) = service(2).await;
    let (never_read, stderr) = std::io::pipe().unwrap();
    let port = free_port();
    let mut child = Command::new(env!("CARGO_BIN_EXE_pds-exporter"))
        .args(["--config.file", &config, "--log.level=trace"])
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stderr(stderr)
        .spawn()
        .unwrap();
    let page = async |path: &str| match get(&format!("http://127.0.0.1:{port}{path}")).await {
        Ok(reply) if reply.status() == 200 => reply.text().await.ok(),
        _ => None,
    };
    let polled = |page: &str| value(page, "pds_api_requests_total{code=\"200\",resource=\"response_time\"}");
    let mut before = None;
    until("the log is full", async || {
        let Some(page) = page("/metrics").await else { return false };
        before = polled(&page);
        value(&page, "pds_exporter_log_lines_dropped_total").is_some_and(|dropped| dropped > 0.0)
    })
    .await;
    until("polls go on", async || page("/metrics").await.is_some_and(|page| polled(&page) > before)).await;
    assert!(page("/-/healthy").await.is_some());
    assert!(
        Command::new(crate::tools::tool("kill"))
            .args(["-TERM", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    until("the daemon ends", async || child.try_wait().unwrap().is_some()).await;
    drop(never_read);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn systemd_learns_that_a_daemon_is_ready_and_then_that_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
    command.args(["--demo", "--web.listen-address", "127.0.0.1:0"]).env("NOTIFY_SOCKET", &path);
    let exporter = Exporter::of(command);
    let next = || {
        let mut message = [0; 64];
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    assert_eq!(next(), "READY=1\n");
    assert!(exporter.terminate().success());
    assert_eq!(next(), "STOPPING=1\n");
}
