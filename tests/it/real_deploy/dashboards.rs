//! Every expression of every dashboard and of the documentation, answered by a Prometheus that scrapes the exporter.

use std::collections::BTreeMap;

use crate::deploy::dashboards::{dashboards, expressions, filled};
use crate::process::until;

use super::fast::Stage;

/// Series that are not there in so short a life, or without the feature they are of.
const EMPTY_HERE: &[&str] = &[
    "pds_exporter_state_last_restore_successful",
    // No counter is behind.
    "pds_app_accounting_behind_seconds",
    // No app is gone.
    "pds_app_gone_timestamp_seconds",
    // Nothing has to fire.
    "ALERTS",
    // A day, and windows of hours, have not passed.
    "slo_budget_left",
    "ratio_rate6h",
    "ratio_rate3d",
    "[30d:1d]",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_panel_and_every_documented_query_shows_something() {
    let stage = Stage::set().await;
    let (project, apps) = stage.world.projects().remove(0);
    let filled = |expression: &str| filled(&expression.replace("[5m]", "[10s]"), "10s", &project, &apps[0]);
    let dashboards = dashboards();
    let mut empty = BTreeMap::new();
    for (path, dashboard) in &dashboards {
        for (panel, expression) in expressions(dashboard) {
            if EMPTY_HERE.iter().any(|series| expression.contains(series)) {
                continue;
            }
            empty.insert(filled(expression), format!("{}: {panel}", path.display()));
        }
    }
    assert!(empty.len() > 50, "{}", empty.len());
    let examples = crate::docs::queries();
    assert!(examples.len() >= 5, "{examples:?}");
    // One that finds what is wrong finds nothing here; that it is understood is enough.
    let examples =
        examples.into_iter().filter(|(_, query)| !EMPTY_HERE.iter().any(|part| query.contains(part)));
    empty.extend(examples.map(|(path, query)| (filled(&query.replace(" == 0", "")), path)));
    until(&format!("all of {} expressions have data", empty.len()), async || {
        let mut still = BTreeMap::new();
        for (expression, panel) in std::mem::take(&mut empty) {
            if stage.prometheus.query(&expression).await.is_empty() {
                still.insert(expression, panel);
            }
        }
        empty = still;
        if !empty.is_empty() {
            eprintln!("without data: {empty:#?}");
        }
        empty.is_empty()
    })
    .await;
}
