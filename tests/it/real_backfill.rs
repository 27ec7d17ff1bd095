//! History of 30 days in a real Prometheus, compared with what the simulated service knows to be true.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pds_exporter::interface::TimeRange;
use pds_exporter::interface::response_time::threshold_seconds;
use pds_exporter::simulator::latency::THRESHOLDS;

use crate::server::Server;
use crate::tool::simulated::Simulated;
use crate::tools::tool;

const HOUR: i64 = 3600;
const DAYS: i64 = 30;

/// A Prometheus over blocks, asked by a test that is not asynchronous.
struct Blocking {
    runtime: tokio::runtime::Runtime,
    server: Server,
}

impl Blocking {
    fn over(data: &Path) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = runtime.block_on(Server::over(data));
        Self { runtime, server }
    }

    /// The one value of an expression at a point in time.
    fn value(&self, expression: &str, second: i64) -> f64 {
        let time = jiff::Timestamp::from_second(second).unwrap();
        let values = self.runtime.block_on(self.server.by_app(expression, time));
        assert_eq!(values.len(), 1, "{expression} at {second}: {values:?}");
        values[0].2
    }
}

/// Waits until a program has done its work; the most memory it was seen to hold, in KiB.
fn peak_memory(mut program: Child) -> u64 {
    let mut peak = 0;
    let ended = loop {
        if let Some(ended) = program.try_wait().unwrap() {
            break ended;
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(ended.success());
    peak
}

#[test]
fn thirty_days_of_history_answer_with_the_truth() {
    let service = Simulated::start();
    let (project, apps) = service.world.projects()[0].clone();
    let app = apps[0].clone();
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("history.om"), folder.path().join("data"));
    let token = folder.path().join("token");
    std::fs::write(&token, service.world.token(&project).unwrap().expose()).unwrap();
    let end = (jiff::Timestamp::now().as_second() - 2 * HOUR).div_euclid(HOUR) * HOUR;
    let start = end - DAYS * 24 * HOUR;
    let time = |second| jiff::Timestamp::from_second(second).unwrap().to_string();

    let backfill = |start: i64, file: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pdstool"));
        command.env_clear().env("PDS_EXPORTER__API__MAX_REQUESTS_PER_SECOND", "0");
        command.args([
            "backfill",
            "--step",
            "1h",
            "--window",
            "1h",
            "--start",
            &time(start),
            "--end",
            &time(end),
        ]);
        command.args(["--base-url", &service.url, "--project", &project, "--app", &app]);
        command.arg("--token-file").arg(&token).arg(file).stderr(Stdio::null());
        peak_memory(command.spawn().unwrap())
    };
    let two_days = backfill(end - 48 * HOUR, &folder.path().join("short.om"));
    let thirty_days = backfill(start, &file);
    assert!(thirty_days < two_days + 8 * 1024, "{two_days} KiB for two days, {thirty_days} KiB for thirty");

    let mut promtool = Command::new(tool("promtool"));
    let blocks = promtool
        .args(["tsdb", "create-blocks-from", "--max-block-duration=744h", "openmetrics"])
        .arg(&file)
        .arg(&data)
        .output();
    let blocks = blocks.unwrap();
    assert!(blocks.status.success(), "{}", String::from_utf8_lossy(&blocks.stderr));
    let prometheus = Blocking::over(&data);

    let of = |second: i64, start: i64| {
        service.world.truth(&project, &app, TimeRange { start, end: second }).unwrap()
    };
    #[expect(clippy::cast_precision_loss, reason = "counts of a month")]
    let number = |count: u64| count as f64;
    let labels = format!("project=\"{project}\",app=\"{app}\"");
    assert!(of(end, start).requests > 0 && of(end, start).runs > 0, "an app without traffic shows nothing");
    for hours in [0, 1, 25, 300, DAYS * 24] {
        let at = start + hours * HOUR;
        let truth = of(at, start);
        let value = |family: &str| prometheus.value(&format!("{family}{{{labels}}}"), at);
        assert_eq!(value("pds_app_requests_total"), number(truth.requests), "after {hours} hours");
        assert_eq!(value("pds_app_runs_total"), number(truth.runs), "after {hours} hours");
        let last = of(at, at - HOUR);
        if hours > 0 {
            assert_eq!(value("pds_app_window_requests"), number(last.requests), "in hour {hours}");
        }
        let sum: f64 =
            prometheus.value(&format!("pds_app_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}}"), at);
        assert_eq!(sum, number(truth.requests), "after {hours} hours");
        for (label, within) in THRESHOLDS.iter().zip(truth.within) {
            let seconds = threshold_seconds(label.0).unwrap();
            let bucket = format!("pds_app_request_duration_seconds_bucket{{{labels},le=\"{seconds:?}\"}}");
            assert_eq!(prometheus.value(&bucket, at), number(within), "{bucket} after {hours} hours");
        }
    }
    let week = prometheus.value(&format!("sum(increase(pds_app_requests_total{{{labels}}}[7d]))"), end);
    let truth = number(of(end, end - 7 * 24 * HOUR).requests);
    assert!((week - truth).abs() <= truth * 0.01, "{week} requests in a week, not {truth}");
    let quantile =
        "histogram_quantile(0.95, sum by (le) (rate(pds_app_request_duration_seconds_bucket[1d])))";
    assert!(prometheus.value(quantile, end) > 0.0);
    assert_eq!(prometheus.value("sum(pds_app_unaccounted_seconds_total)", end), 0.0);
}
