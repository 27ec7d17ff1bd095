//! `pdstool check service` against the simulator as each kind of service that the interface allows.

use pds_interface::range::instant;
use pds_interface::{TimeRange, response_time, run_execution_time};
use pds_simulator::{Fault, Kind, Quirks, Settings};
use serde_json::{Value, json};

use super::simulated::{Process, Simulated};
use super::{Found, Service, TOKEN, ended, golden, pdstool};
use crate::client::server::ok;
use crate::golden::assert_golden;
use crate::process::{Alone, assert_has, assert_lacks};
use crate::rig::{Configuration, FaultExt as _};

/// The findings of the check about a service with these habits, with these lines of the configuration.
fn checked(settings: Settings, lines: &str, args: &[&str]) -> Found {
    found(&Simulated::with(settings), lines, args)
}

fn found(service: &Simulated, lines: &str, args: &[&str]) -> Found {
    let folder = tempfile::tempdir().unwrap();
    let file = Configuration::new(&service.world, &service.url).api("").tables(lines).write(folder.path());
    let mut command = pdstool(&["check", "service", "-o", "json", "--config.file", &file]);
    let found = Found::of(&command.args(args).output().unwrap());
    assert_eq!(found.json["requests"], service.world.requests().total, "every request is counted");
    found
}

impl Found {
    fn suggests(&self, suggested: &Value) {
        assert_eq!((self.code, &self.json["suggested"]), (Some(1), suggested), "{:#}", self.json);
    }
}

fn habits(quirks: Quirks) -> Settings {
    Settings { quirks, ..Settings::default() }
}

#[test]
fn an_ideal_service_needs_no_change() {
    let found = checked(Settings::default(), "", &[]);
    assert_eq!((found.code, &found.json["suggested"]), (Some(0), &json!({})), "{:#}", found.json);
    for (check, state, part) in [
        ("query names", "ok", "start and end are honoured"),
        ("query names", "ok", "replies state their range"),
        ("rounding", "ok", "to the second"),
        ("range ends", "ok", "parts of an hour add up to the hour"),
        ("longest range", "ok", "90 d are answered at once"),
        ("container filter", "ok", "container_id filters"),
        ("resolution", "ok", "1 min (standard), 30 s (medium), 10 s (high)"),
        ("late data", "note", "not watched"),
        ("clock", "ok", "agree within 1.5 s"),
    ] {
        found.finds(check, state, part);
    }
    assert!(found.json["requests"].as_u64().unwrap() < 40);
}

#[test]
fn a_request_that_fails_is_counted_and_not_retried() {
    let service = Simulated::start();
    service.world.faults().set([Fault::status(503).on(response_time::RESOURCE).times(1)]);
    let found = found(&service, "", &[]);
    assert_eq!(found.code, Some(0), "another app answers: {:#}", found.json);
}

#[test]
fn names_that_the_service_does_not_know_are_found_and_others_suggested() {
    let names = [("start", "from"), ("end", "to"), ("container_id", "containerId")];
    let names: Vec<_> = names.map(|(name, other)| (name.to_owned(), other.to_owned())).into();
    let found = checked(Settings { names: names.clone(), ..Settings::default() }, "", &[]);
    found.finds("query names", "problem", "start and end are not both honoured");
    found.finds("container filter", "problem", "container_id does not filter; containerId does");
    found.suggests(&json!({
        "api.query_names.start": "\"from\"",
        "api.query_names.end": "\"to\"",
        "api.query_names.container": "\"containerId\"",
    }));
    let lines = "[api.query_names]\nstart = \"from\"\nend = \"to\"\ncontainer = \"containerId\"\n";
    let found = checked(Settings { names, ..Settings::default() }, lines, &[]);
    assert_eq!(found.code, Some(0), "{:#}", found.json);
    let only_end = vec![("end".to_owned(), "until".to_owned())];
    let found = checked(Settings { names: only_end, ..Settings::default() }, "", &[]);
    found.suggests(&json!({ "api.query_names.end": "\"until\"" }));
}

#[test]
fn a_service_that_ignores_every_range_is_a_problem() {
    let found = checked(habits(Quirks { ignores_range: true, ..Quirks::default() }), "", &[]);
    found.finds("query names", "problem", "nor other common names are honoured");
    assert_eq!(found.code, Some(1));
}

#[test]
fn a_stated_end_that_is_a_second_off_is_not_blamed_on_names() {
    for off in [-1, 1] {
        let service = Service::start(move |seen| {
            if !seen.target.contains("/metrics/") {
                return ok("{}");
            }
            let TimeRange { start, end } = seen.range();
            let data = format!(
                r#"{{"status":"success","data":{{"total_requests":{},"distribution":{{"1hr":100}},"time_series":[],"start_date":"{}","end_date":"{}"}}}}"#,
                end - start,
                instant(start),
                instant(end + off)
            );
            ok(data)
        });
        let mut command = pdstool(&["check", "service", "-o", "json", "--base-url", &service.url()]);
        command.args(["--project", "p-1", "--app", "p-1-a"]).env("PDS_EXPORTER__API__TOKEN", TOKEN);
        let output = command.output().unwrap();
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", ended(&output)));
        let found = Found { code: output.status.code(), json };
        found.finds("query names", "ok", "start and end are honoured");
        found.finds("rounding", "problem", "00:01 UTC, the reply covers ");
        found.finds("rounding", "problem", &format!("00:0{} UTC", 1 + off));
        found.finds("range ends", "note", "replies about parts of the hour are about other ranges");
        found.finds("longest range", "ok", "90 d are answered at once");
        found.suggests(&json!({}));
    }
}

#[test]
fn replies_without_a_range_are_judged_by_their_counts() {
    let unnamed = Quirks { unnamed_ranges: true, ..Quirks::default() };
    let found = checked(habits(unnamed), "", &[]);
    assert_eq!(found.code, Some(0), "{:#}", found.json);
    found.finds("query names", "ok", "judging by the counts of two ranges");
    found.finds("query names", "note", "do not state their range");
    let found = checked(habits(Quirks { ignores_range: true, ..unnamed }), "", &[]);
    found.finds("query names", "problem", "nor other common names are honoured");
}

#[test]
fn ends_that_are_included_are_found_by_the_parts_of_an_hour() {
    let inclusive = Quirks { inclusive_ends: true, ..Quirks::default() };
    let found = checked(habits(inclusive), "", &[]);
    found.finds("range ends", "problem", "ranges include their last instant");
    found.suggests(&json!({ "accounting.range_end": "\"inclusive\"" }));
    let lines = "[accounting]\nrange_end = \"inclusive\"\n";
    let found = checked(habits(inclusive), lines, &[]);
    assert_eq!(found.code, Some(0), "{:#}", found.json);
    let found = checked(Settings::default(), lines, &[]);
    found.suggests(&json!({ "accounting.range_end": "\"exclusive\"" }));

    let seconds = Quirks { whole_seconds: true, ..inclusive };
    let found = checked(habits(seconds), "", &[]);
    found.finds("range ends", "problem", "ranges include their last second");
    found.suggests(&json!({ "accounting.range_end": "\"inclusive-second\"" }));
    let found = checked(habits(seconds), "[accounting]\nrange_end = \"inclusive-second\"\n", &[]);
    assert_eq!(found.code, Some(0), "{:#}", found.json);
}

#[test]
fn rounded_ranges_want_a_step_that_is_a_multiple() {
    let found = checked(habits(Quirks { round_to: 300, ..Quirks::default() }), "", &[]);
    found.finds("rounding", "problem", "rounded outwards to multiples of 5 min");
    found.suggests(&json!({ "accounting.step": "\"5m\"" }));
    let found = checked(habits(Quirks { round_to: 60, ..Quirks::default() }), "", &[]);
    found.finds("rounding", "ok", "rounded outwards to multiples of 1 min; accounting.step is a multiple");
    assert_eq!(found.code, Some(0), "{:#}", found.json);
}

#[test]
fn the_longest_range_is_found_and_catching_up_kept_within_it() {
    let found = checked(habits(Quirks { longest_range: 8 * 86_400, ..Quirks::default() }), "", &[]);
    found.finds("longest range", "ok", "a range of 7 d, but not of 30 d: 400 a range may be");
    assert_eq!(found.code, Some(0));
    let found = checked(habits(Quirks { longest_range: 7200, ..Quirks::default() }), "", &[]);
    found.suggests(&json!({ "accounting.max_catch_up": "\"1h\"" }));
}

#[test]
fn a_failure_is_the_limit_of_ranges_and_otherwise_follows_the_findings_before_it() {
    for status in [402, 403, 500, 503] {
        let service = Simulated::start();
        service.world.faults().set([Fault::status(status).of_ranges_longer_than(8 * 86_400)]);
        let long = found(&service, "", &[]);
        long.finds("longest range", "ok", "the service answers a range of 7 d, but not of 30 d: ");
        long.finds("container filter", "ok", "container_id filters");
        assert_eq!(long.code, Some(0), "{:#}", long.json);
    }
    for (status, code) in [(503, 1), (401, 4)] {
        let service = Simulated::start();
        service.world.faults().set([Fault::status(status).on(run_execution_time::RESOURCE)]);
        let failed = found(&service, "", &[]);
        failed.finds("container filter", "ok", "container_id filters");
        assert_eq!(failed.code, Some(code), "{:#}", failed.json);
    }
}

#[test]
fn late_data_is_watched_for() {
    let late = Quirks { late_share: 0.9, late_within: 60, ..Quirks::default() };
    let found = checked(habits(late), "", &["--late-for", "2s"]);
    found.finds("late data", "warning", "data still arrived");
    let found = checked(Settings::default(), "", &["--late-for", "2s"]);
    found.finds("late data", "ok", "; poll.settle is 30 s");
}

#[test]
fn a_clock_that_is_wrong_and_a_missing_date_are_found() {
    let service = Simulated::start();
    service.world.faults().set(vec![Kind::ClockSkew { seconds: -90 }.into()]);
    let skewed = found(&service, "", &[]);
    skewed.finds("clock", "warning", "the service's is 1 min 30 s behind this machine's");
    let undated = checked(habits(Quirks { undated: true, ..Quirks::default() }), "", &[]);
    undated.finds("clock", "note", "replies have no Date header");
    assert_eq!(undated.code, Some(0));
}

#[test]
fn a_filter_and_a_resolution_of_no_known_name_are_found_to_have_no_effect() {
    let names = [("container_id", "pod"), ("resolution", "detail")];
    let names: Vec<_> = names.map(|(name, other)| (name.to_owned(), other.to_owned())).into();
    let found = checked(Settings { names, ..Settings::default() }, "", &[]);
    found.finds("container filter", "note", "container_id does not filter, nor does another common name");
    found.finds("resolution", "note", "resolution has no effect, or has another name");
    assert_eq!(found.code, Some(0), "{:#}", found.json);
}

#[test]
fn a_window_shorter_than_two_datapoints_is_warned_of() {
    for (configured, suggested) in
        [("[\"90s\"]", "[\"2m\"]"), ("[\"90s\", \"2m\", \"1h\"]", "[\"2m\", \"1h\"]")]
    {
        let found = checked(Settings::default(), &format!("[poll]\nwindows = {configured}\n"), &[]);
        found.suggests(&json!({ "poll.windows": suggested }));
    }
}

#[test]
fn a_missing_app_is_reported_with_the_option_to_set() {
    let output = pdstool(&["check", "service", "--base-url", "http://127.0.0.1:1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", ended(&output));
    assert!(ended(&output).contains("use --project and --app"), "{}", ended(&output));
}

#[test]
fn an_empty_variable_is_unset_and_a_project_without_apps_is_named() {
    let alone = Alone::new();
    let file = alone.path("pds-exporter.toml");
    let api = "[api]\nbase_url = \"http://127.0.0.1:1\"\ntoken = \"t\"\n";
    std::fs::write(&file, format!("{api}[[projects]]\nid = \"p-1\"\napps = [\"p-1-a\"]\n")).unwrap();
    let run = |args: &[&str], variable: &str, value: &str| {
        let mut command = alone.pdstool(args);
        ended(&command.env(variable, value).current_dir(alone.path("")).output().unwrap())
    };
    let backfill = ["backfill", "--start", "2025-01-01", "--end", "2025-01-02", "history.om"];
    let service = ["check", "service"];
    for command in [&backfill[..], &service] {
        let said = run(command, "PDSTOOL_PROJECT", "p-wrong");
        assert_has(
            &said,
            &["exit code 2\n", "no app of project p-wrong is configured; use --app, or another"],
        );
    }
    assert_has(&run(&service, "PDSTOOL_PROJECT", ""), &["exit code 1\n", "/projects/p-1/apps/p-1-a"]);
    let call = run(&["call", "app", "get", "a", "--dry-run"], "PDSTOOL_PROJECT", "");
    assert_has(&call, &["exit code 0\n", "/projects/p-1/apps/a\n"]);
    // Others may listen on the default port.
    assert_lacks(&run(&["status"], "PDSTOOL_EXPORTER", ""), &["exit code 2\n", "invalid value"]);
}

#[test]
fn the_flags_of_the_simulator_make_each_service_and_the_page_names_the_lines_to_write() {
    let faults = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(faults.path(), r#"[{"kind": {"clock_skew": {"seconds": -3600}}}]"#).unwrap();
    let flags = "--query-name start=from --query-name end=to --inclusive-ends --longest-range 8d --faults";
    let flags = flags.split(' ').chain(faults.path().to_str());
    let process = Process::simulate(&flags.collect::<Vec<_>>());
    let mut text = String::new();
    for columns in ["80", "200"] {
        let mut command = pdstool(&["check", "service", "--base-url", process.said("base_url")]);
        command.args(["--project", process.said("project"), "--app", process.said("app")]);
        command.env("COLUMNS", columns).env("PDS_EXPORTER__API__TOKEN", process.said("token"));
        let output = command.output().unwrap();
        let printed = ended(&output);
        // The hour asked about, and so its count, moves with the time.
        let digits = |line: &str| line.contains("requests in the hour") || line.contains("parts of an hour");
        let kept: Vec<&str> =
            printed.lines().filter(|line| !digits(line) && !line.contains("the hour ")).collect();
        text.push_str(&format!("{columns} columns\n{}\n", kept.join("\n")));
    }
    assert_golden(&golden("check-service.txt"), &text);
    let wrong = pdstool(&["simulate", "--query-name", "begin=from"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{}", ended(&wrong));
    assert!(ended(&wrong).contains("one of the names container_id, "), "{}", ended(&wrong));
}
