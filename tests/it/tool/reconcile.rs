//! `pdstool reconcile` against a service and a Prometheus that answer what they are told.

use super::{Service, ended, pdstool, stderr, stdout};
use crate::client::server::{ok, status};

/// A quarter of the day at the service.
const QUARTER: &str = r#"{"status":"success","data":{"total_requests":250,"total_runs":250}}"#;
/// The same without traffic.
const IDLE: &str = r#"{"status":"success","data":{"total_requests":0,"total_runs":0}}"#;
/// The day in Prometheus.
const DAY: &str = r#"{"status":"success","data":{"resultType":"vector","result":[
{"metric":{"project":"p-1","app":"p-1-a"},"value":[1,"995.4"]},
{"metric":{"project":"p-1","app":"p-1-b"},"value":[1,"900"]},
{"metric":{"project":"p-1","app":"p-1-short"},"value":[1,"864"]},
{"metric":{"project":"p-1","app":"p-1-idle"},"value":[1,"0"]}]}}"#;

/// Exit code, output and errors of the comparison of these apps.
fn reconciled(apps: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let service = Service::start(|seen| match &seen.target {
        target if target.starts_with("/api/v1/query") => ok(DAY),
        target if target.contains("idle") => ok(IDLE),
        target if target.contains("short") => match seen.range().seconds() {
            0..=5400 => ok(IDLE.replace(":0", &format!(":{}", seen.range().seconds() / 100))),
            _ => status(400, "longer than 90 minutes"),
        },
        _ => ok(QUARTER),
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pds-exporter.toml");
    let url = service.url();
    let text = format!(
        "[api]\nbase_url = \"{url}\"\ntoken = \"t\"\n[state]\nprometheus_url = \"{url}\"\n\
         [[projects]]\nid = \"p-1\"\napps = {apps}\n"
    );
    std::fs::write(&file, text).unwrap();
    let mut command = pdstool(&["reconcile", "--config.file", file.to_str().unwrap()]);
    let output = command.args(args).output().unwrap();
    assert!(output.status.code() < Some(2), "{}", ended(&output));
    (output.status.code(), stdout(&output), stderr(&output))
}

#[test]
fn a_day_of_the_service_is_compared_with_what_prometheus_counted() {
    let (code, rows, error) =
        reconciled(r#"["p-1-a", "p-1-b", "p-1-c"]"#, &["--day", "2026-03-01", "-o", "csv"]);
    assert_eq!(
        rows.lines().map(str::trim_end).collect::<Vec<_>>(),
        [
            "app,project,resource,service,prometheus,difference,percent,note",
            "p-1-a,p-1,response_time,1000,995,-5,-0.50,",
            "p-1-a,p-1,run_execution_time,1000,995,-5,-0.50,",
            "p-1-b,p-1,response_time,1000,900,-100,-10.00,",
            "p-1-b,p-1,run_execution_time,1000,900,-100,-10.00,",
            "p-1-c,p-1,response_time,1000,,,,not in Prometheus",
            "p-1-c,p-1,run_execution_time,1000,,,,not in Prometheus",
        ]
    );
    assert_eq!(code, Some(1));
    assert!(error.contains("4 of 6 counters differ by more than 1 % or cannot be compared"), "{error}");
    let (code, json, _) = reconciled(r#"["p-1-a"]"#, &["-o", "json"]);
    assert!(code == Some(0) && json.contains("\"difference\": -5"), "{json}");
    let short = "[\"p-1-short\"]\n[accounting]\nmax_catch_up = \"100m\"\nstep = \"15m\"\n";
    let (code, rows, _) = reconciled(short, &["-o", "csv"]);
    assert_eq!(
        (code, rows.matches(",864,864,0,0.00,").count()),
        (Some(0), 2),
        "ranges as the exporter counts: {rows}"
    );
    assert_eq!(reconciled(r#"["p-1-idle"]"#, &[]).0, Some(0));
    let (code, rows, error) = reconciled(r#"["p-1-idle-and-not-counted"]"#, &["-o", "csv"]);
    assert!(code == Some(1) && rows.contains(",0,,,,not in Prometheus"), "{rows}");
    assert!(error.contains("2 of 2 counters differ by more than 1 % or cannot be compared"), "{error}");
    assert_eq!(reconciled(r#"["p-1-a"]"#, &["--tolerance", "0.4"]).0, Some(1));
    assert_eq!(reconciled(r#"["p-1-a", "p-1-b"]"#, &["--tolerance", "10"]).0, Some(0));
}
