//! What is wrong with an app.

use super::model::{App, Counting, State, Verdict};
use super::read::{Values, label};

/// Finds what is wrong with an app, the gravest first, and says so.
pub(super) fn judge(app: &mut App, settings: &Values<'_>) {
    let mut found: Vec<(Verdict, String)> = Vec::new();
    for resource in &app.resources {
        let what = match resource.resource {
            "app" => "settings".to_owned(),
            other => other.replace('_', " "),
        };
        match (resource.state, &resource.failing) {
            (State::Stale, Some(f)) => {
                found.push((Verdict::Problem, format!("{what}: nothing to show, {}", f.class)))
            }
            (State::Stale, None) => found.push((Verdict::Problem, format!("{what}: nothing to show"))),
            (State::Failing, Some(f)) => {
                found.push((Verdict::Problem, format!("{what}: failing, {}", f.class)))
            }
            (State::Late, _) => found.push((Verdict::Warning, format!("{what}: late"))),
            // What is counted of it, from before a restart, is told once it was asked.
            (State::Waiting, _) => found.push((Verdict::Waiting, format!("{what}: not asked yet"))),
            _ => {}
        }
        let counting = resource.counting.filter(|_| resource.state != State::Waiting);
        match (counting, resource.accounted_until) {
            (Some(Counting::Behind), Some(until)) => {
                found.push((Verdict::Problem, format!("{what}: counted only up to {until}")))
            }
            (Some(Counting::Ahead), Some(until)) => found.push((
                Verdict::Problem,
                format!("{what}: counters stand still since {until}, for a clock was set back"),
            )),
            _ => {}
        }
    }
    let bad = |word: &str| word.contains("error") || word.contains("fail");
    if let Some(status) = app.status.as_deref().filter(|status| bad(status)) {
        found.push((Verdict::Problem, format!("the app's status is {status}")));
    }
    if settings.value("pds_app_error").is_some_and(|error| error > 0.0) {
        found.push((Verdict::Warning, "the service reports an error message for the app".to_owned()));
    }
    let build = label(&settings.labels("pds_app_last_build_status"), "status");
    if let Some(build) = build.filter(|build| bad(build) || build.contains("timeout")) {
        found.push((Verdict::Warning, format!("the last build's status is {build}")));
    }
    found.sort_by_key(|(verdict, _)| *verdict);
    app.verdict = found.first().map_or(Verdict::Ok, |(verdict, _)| *verdict);
    app.problems = found.into_iter().map(|(_, problem)| problem).collect();
}
