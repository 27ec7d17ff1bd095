//! History of 30 days in a real Prometheus, compared with what the simulated service knows to be true.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pds_interface::TimeRange;
use pds_interface::response_time::threshold_seconds;
use pds_simulator::{THRESHOLDS, Truth};

use crate::process::peak_memory;
use crate::server::{Server, create_blocks};
use crate::tool::simulated::Simulated;

const HOUR: i64 = 3600;
const DAYS: i64 = 30;

/// A Prometheus over blocks, queried by a test that is not asynchronous.
pub(crate) struct Blocking {
    runtime: tokio::runtime::Runtime,
    server: Server,
}

impl Blocking {
    pub(crate) fn over(data: &Path) -> Self {
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

    /// Fails unless the counters with these labels are, at `second`, what the service knows to be true.
    pub(crate) fn assert_counted(&self, labels: &str, truth: &Truth, second: i64) {
        let value = |family: &str| self.value(&format!("{family}{{{labels}}}"), second);
        let bucket = |le: &str| {
            let series = format!("pds_app_request_duration_seconds_bucket{{{labels},le=\"{le}\"}}");
            self.value(&series, second)
        };
        assert_eq!(value("pds_app_requests_total"), number(truth.requests), "at {second}");
        assert_eq!(value("pds_app_runs_total"), number(truth.runs), "at {second}");
        assert_eq!(bucket("+Inf"), number(truth.requests), "at {second}");
        for (label, within) in THRESHOLDS.iter().zip(truth.within) {
            let le = format!("{:?}", threshold_seconds(label).unwrap());
            assert_eq!(bucket(&le), number(within), "le={le} at {second}");
        }
    }
}

/// Waits until a program has done its work; the most memory it was seen to hold, in KiB.
fn memory_of(mut program: Child) -> u64 {
    let mut peak = 0;
    let ended = loop {
        if let Some(ended) = program.try_wait().unwrap() {
            break ended;
        }
        peak = peak_memory(program.id()).map_or(peak, |bytes| bytes / 1024);
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(ended.success());
    peak
}

/// An app of a simulated service, and a folder for its history.
struct History {
    service: Simulated,
    project: Arc<str>,
    app: Arc<str>,
    folder: tempfile::TempDir,
}

impl History {
    fn new() -> Self {
        let service = Simulated::start();
        let (project, apps) = service.world.projects()[0].clone();
        let folder = tempfile::tempdir().unwrap();
        let token = service.world.token(&project).unwrap();
        std::fs::write(folder.path().join("token"), token.expose()).unwrap();
        Self { app: apps[0].clone(), service, project, folder }
    }

    fn truth(&self, start: i64, end: i64) -> Truth {
        self.service.world.truth(&self.project, &self.app, TimeRange { start, end }).unwrap()
    }

    /// Runs `pdstool backfill` into the file of that name; the most memory it held, in KiB.
    fn backfill(&self, start: i64, end: i64, file: &str) -> u64 {
        let time = |second| jiff::Timestamp::from_second(second).unwrap().to_string();
        let mut command = Command::new(crate::process::pdstool());
        command.env_clear().env("PDS_EXPORTER__API__MAX_REQUESTS_PER_SECOND", "0");
        command.args(["backfill", "--step", "1h", "--window", "1h"]);
        command.args(["--start", &time(start), "--end", &time(end), "--base-url", &self.service.url]);
        command.args(["--project", &self.project, "--app", &self.app, "--token-file"]);
        command.arg(self.folder.path().join("token")).arg(self.folder.path().join(file));
        memory_of(command.stderr(Stdio::null()).spawn().unwrap())
    }

    /// A Prometheus over the blocks made of the file of that name.
    fn prometheus(&self, file: &str) -> Blocking {
        let data = self.folder.path().join("data");
        create_blocks(&self.folder.path().join(file), &data);
        Blocking::over(&data)
    }

    /// Fails unless the counters at `at` are what happened since `start`.
    fn assert_true(&self, prometheus: &Blocking, start: i64, at: i64) {
        let (project, app) = (&self.project, &self.app);
        let labels = format!("project=\"{project}\",app=\"{app}\"");
        prometheus.assert_counted(&labels, &self.truth(start, at), at);
        if at > start {
            let hour = self.truth(at - HOUR, at).requests;
            let stored = prometheus.value(&format!("pds_app_window_requests{{{labels}}}"), at);
            assert_eq!(stored, number(hour), "in the hour before {at}");
        }
    }
}

fn number(count: u64) -> f64 {
    count as f64
}

#[test]
fn thirty_days_of_history_answer_with_the_truth() {
    let history = History::new();
    let end = (jiff::Timestamp::now().as_second() - 2 * HOUR).div_euclid(HOUR) * HOUR;
    let start = end - DAYS * 24 * HOUR;
    let two_days = history.backfill(end - 48 * HOUR, end, "short.om");
    let thirty_days = history.backfill(start, end, "history.om");
    assert!(thirty_days < two_days + 8 * 1024, "{two_days} KiB for two days, {thirty_days} KiB for thirty");
    let prometheus = history.prometheus("history.om");

    let all = history.truth(start, end);
    assert!(all.requests > 0 && all.runs > 0, "an app without traffic shows nothing");
    for hours in [0, 1, 25, 300, DAYS * 24] {
        history.assert_true(&prometheus, start, start + hours * HOUR);
    }
    let week = prometheus.value("sum(increase(pds_app_requests_total[7d]))", end);
    let truth = number(history.truth(end - 7 * 24 * HOUR, end).requests);
    assert!((week - truth).abs() <= truth * 0.01, "{week} requests in a week, not {truth}");
    let quantile =
        "histogram_quantile(0.95, sum by (le) (rate(pds_app_request_duration_seconds_bucket[1d])))";
    assert!(prometheus.value(quantile, end) > 0.0);
    assert_eq!(prometheus.value("sum(pds_app_unaccounted_seconds_total)", end), 0.0);
}
