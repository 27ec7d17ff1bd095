//! How many samples the panels ask for.

use super::{MINUTE, NOON, PROMETHEUS_2, engine};
use crate::deploy::dashboards::{dashboards, expressions, filled};
use crate::deploy::rules;
use crate::real_lifecycle::life::Life;
use crate::server::Server;

/// Prometheus' default for `--query.max-samples`.
const MOST: f64 = 50e6;
const APPS: f64 = 10_000.0;
const DAY: i64 = 24 * 60 * MINUTE;
/// The shortest step of every panel.
const STEP: i64 = 3 * MINUTE;

/// The most samples in memory at once, of that many apps over a day.
async fn peak(server: &Server, expression: &str, (first, end): (i64, i64)) -> f64 {
    let (start, last, step) = (first.to_string(), end.to_string(), STEP.to_string());
    let query =
        [("query", expression), ("start", &*start), ("end", &*last), ("step", &*step), ("stats", "all")];
    let answer = server.get("/api/v1/query_range", &query).await;
    let samples = &answer["data"]["stats"]["samples"]["peakSamples"];
    let samples = samples.as_f64().unwrap_or_else(|| panic!("{expression}: {answer}"));
    // Samples of one app, of the four here, or of the exporter itself, of which there may be ten.
    let of_apps = ["pds_app", "pds_up", "pds_last_success", "pds_token"];
    let times = match () {
        () if expression.contains("app=\"") => 1.0,
        () if of_apps.iter().any(|name| expression.contains(name)) => APPS / 4.0,
        () => 10.0,
    };
    samples * times * (DAY / STEP) as f64 / ((end - first) / STEP) as f64
}

#[tokio::test(start_paused = true)]
async fn no_panel_reads_more_samples_of_ten_thousand_apps_over_a_day_than_prometheus_allows() {
    let mut life = Life::at(NOON).await;
    life.start("pds", life.defaults()).await;
    life.pass(60).await;
    tokio::time::resume();
    let mut text = life.openmetrics();
    // Recorded rules have a series an app, too.
    let recorded =
        rules().iter().filter_map(|rule| rule["record"].as_str().map(str::to_owned)).collect::<Vec<_>>();
    let totals = text.lines().filter(|line| line.starts_with("pds_app_requests_total{"));
    let copies: String = totals
        .flat_map(|line| recorded.iter().map(move |name| line.replace("pds_app_requests_total", name) + "\n"))
        .collect();
    text = text.replace("# EOF\n", &(copies + "# EOF\n"));
    let folder = tempfile::tempdir().unwrap();
    let server = engine(PROMETHEUS_2, &text, folder.path(), 15).await;
    let place = (life.begun + 20 * MINUTE, life.now());
    let (project, apps) = life.world.projects().remove(0);
    let mut most = Vec::new();
    for (path, dashboard) in dashboards() {
        for panel in
            dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["targets"].is_array())
        {
            assert_eq!(panel["interval"], "3m", "{}: {}", path.display(), panel["title"]);
        }
        let of_one = path.ends_with("app.json");
        for (title, expression) in expressions(&dashboard) {
            let filled = filled(expression, "195s", if of_one { &project } else { ".*" }, &apps[0]);
            most.push((peak(&server, &filled, place).await, title.to_owned()));
        }
    }
    assert!(most.iter().filter(|(peak, _)| *peak > 0.0).count() > 50, "{most:?}");
    most.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (highest, title) = most.last().unwrap();
    assert!(*highest < MOST, "{title}: {highest}");
    // All buckets of all apps would be too many.
    let too_many = peak(&server, "rate(pds_app_request_duration_seconds_bucket[5m])", place).await;
    assert!(too_many > MOST, "{too_many}");
}
