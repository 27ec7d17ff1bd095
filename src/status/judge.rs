//! What is wrong with an app, with a project, and with the whole.

use std::collections::BTreeMap;

use jiff::Timestamp;

use pds_interface::get_app::family;

use super::cause::Problem;
use super::cause::{self, Cause, Judged};
use super::document::Status;
use super::model::{
    Counting, Exporter, Project, Resource, Restoring, Service, ServiceState, State, Token, Unexpected,
    resource_title,
};
use super::read::Values;
use super::verdict::{About, Reason, Verdict};

use Counting::{Ahead, Behind};

/// Polls that start later than this are a reason, in seconds.
const MAX_POLL_LAG: f64 = 10.0;

/// A token that expires within a week is a reason; in seconds.
const TOKEN_SOON: i64 = 7 * 86_400;

/// Finds what is wrong with an app, most severe first.
pub(super) fn judge_app(resources: &[Resource], settings: &Values<'_>) -> Judged {
    let mut found: Vec<Problem> = resources.iter().flat_map(of_resource).collect();
    let bad = |word: &str| word.contains("error") || word.contains("fail");
    if let Some(status) = settings.label(&family::STATUS, "status").filter(|status| bad(status)) {
        found.push(problem(&cause::APP_STATUS, format!("the app's status is {status}")));
    }
    if settings.value(&family::ERROR).is_some_and(|error| error > 0.0) {
        found.push(problem(&cause::APP_ERROR, "the service reports an error message for the app".to_owned()));
    }
    let build = settings.label(&family::LAST_BUILD_STATUS, "status");
    if let Some(build) = build.filter(|build| bad(build) || build.contains("timeout")) {
        found.push(problem(&cause::BUILD_FAILED, format!("the last build's status is {build}")));
    }
    let (verdict, problems) = by_gravity(found);
    let own = problems.iter().find(|problem| problem.cause.about == About::Apps);
    let known = settings.label(&family::STATUS, "status").map_or(Verdict::Waiting, |_| Verdict::Ok);
    Judged { verdict, state: own.map_or(known, |problem| problem.cause.verdict), problems }
}

/// Finds what is wrong with a project, most severe first.
pub(super) fn judge_project(project: &mut Project) {
    (project.verdict, project.problems) =
        by_gravity(project.resources.iter().flat_map(of_resource).collect());
}

fn by_gravity(mut found: Vec<Problem>) -> (Verdict, Vec<Problem>) {
    found.sort_by_key(|problem| problem.cause.verdict);
    (found.first().map_or(Verdict::Ok, |problem| problem.cause.verdict), found)
}

/// A problem whose text is the same for every app that has it.
fn problem(cause: &'static Cause, text: String) -> Problem {
    Problem { summary: text.clone(), text, cause }
}

/// What is wrong with one resource of an app or project.
fn of_resource(resource: &Resource) -> impl Iterator<Item = Problem> + use<> {
    let is_well = resource.state == State::Fresh && !matches!(resource.counting, Some(Behind | Ahead));
    // Most are: no text is made for them.
    let found = if is_well { [None, None] } else { problems_of(resource) };
    found.into_iter().flatten()
}

fn problems_of(resource: &Resource) -> [Option<Problem>; 2] {
    let what = resource_title(&resource.resource);
    let class = resource.failing.as_ref().map(|failing| format!(", {}", failing.class)).unwrap_or_default();
    let polled = match resource.state {
        State::Stale => Some(problem(&cause::RESOURCE_STALE, format!("{what}: nothing to show{class}"))),
        State::Failing => Some(problem(&cause::RESOURCE_FAILING, format!("{what}: failing{class}"))),
        State::Late => Some(problem(&cause::RESOURCE_LATE, format!("{what}: late"))),
        State::Waiting => Some(problem(&cause::WAITING, format!("{what}: not polled yet"))),
        State::Fresh => None,
    };
    // Counters from before a restart are judged once the resource has been polled.
    let counting = resource.counting.filter(|_| resource.state != State::Waiting);
    let counted = match (counting, resource.accounted_until) {
        (Some(Behind), _) => Some(Problem {
            text: format!("{what}: catching up, {}", behind(resource.behind_seconds)),
            ..problem(&cause::COUNTERS_BEHIND, format!("{what}: counters are catching up"))
        }),
        (Some(Ahead), Some(until)) => Some(Problem {
            text: format!("{what}: counters stand still since {until}, because a clock was set back"),
            ..problem(
                &cause::COUNTERS_AHEAD,
                format!("{what}: counters stand still, because a clock was set back"),
            )
        }),
        _ => None,
    };
    [polled, counted]
}

/// How far counters are behind, in words.
fn behind(seconds: Option<u64>) -> String {
    match seconds.unwrap_or_default().div_ceil(60) {
        // Held back until nothing that was shown before can be missing.
        0 => "not shown yet".to_owned(),
        1 => "1 minute behind".to_owned(),
        minutes => format!("{minutes} minutes behind"),
    }
}

/// All reasons why the verdict is not `ok`, most severe first, without the consequences of a service that is silent or
/// ignores the ranges it is asked for.
pub(super) fn reasons(status: &Status, now: Timestamp) -> Vec<Reason> {
    let mut reasons = of_service(&status.service);
    let silent = !matches!(status.service.state, ServiceState::Up | ServiceState::Waiting)
        || status.exporter.tokens.iter().any(|token| token.range_ignored.is_some());
    reasons.extend(of_exporter(&status.exporter, now));
    if status.apps.is_empty() {
        reasons.push(reason(&cause::NO_APPS, "No apps are configured".to_owned(), "/config"));
    }
    let consequences =
        [&cause::RESOURCE_STALE, &cause::RESOURCE_FAILING, &cause::RESOURCE_LATE, &cause::COUNTERS_BEHIND];
    let own = |problem: &&Problem| !silent || !consequences.iter().any(|cause| **cause == *problem.cause);
    let apps = status.apps.iter().map(|app| &app.problems);
    let projects = status.projects.iter().map(|project| &project.problems);
    reasons.extend(grouped(apps.map(|problems| problems.iter().filter(own)), "app", "apps", "/?reason="));
    reasons.extend(grouped(
        projects.map(|problems| problems.iter().filter(own)),
        "project",
        "projects",
        "/?reason=",
    ));
    // Stable: the service and the exporter come before apps of the same severity.
    reasons.sort_by_key(|reason| reason.verdict);
    reasons
}

/// The problems grouped by their common text, the most frequent first.
fn grouped<'a>(
    all: impl Iterator<Item = impl Iterator<Item = &'a Problem>>,
    one: &str,
    many: &str,
    link: &str,
) -> Vec<Reason> {
    let mut groups: BTreeMap<(&str, &str), (usize, &'static Cause)> = BTreeMap::new();
    for problem in all.flatten() {
        groups.entry((problem.cause.code, &*problem.summary)).or_insert((0, problem.cause)).0 += 1;
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let reason = |((code, summary), (count, cause)): ((&str, &str), (usize, &'static Cause))| Reason {
        text: format!("{count} {}: {summary}", if count == 1 { one } else { many }),
        count,
        ..reason(cause, String::new(), &format!("{link}{code}"))
    };
    groups.into_iter().map(reason).collect()
}

fn reason(cause: &'static Cause, text: String, link: &str) -> Reason {
    Reason {
        code: cause.code.into(),
        about: cause.about,
        verdict: cause.verdict,
        text,
        count: 1,
        link: link.to_owned(),
        action: cause.action.into(),
    }
}

/// Why the service sends nothing, if it does not.
fn of_service(service: &Service) -> Vec<Reason> {
    let silence = match service.state {
        ServiceState::Waiting | ServiceState::Up => None,
        ServiceState::NotAsked => {
            Some((&cause::TOKEN_UNREADABLE, "The service is not asked: the token cannot be read"))
        }
        ServiceState::TokenRefused => Some((&cause::TOKEN_REFUSED, "The service refuses the token")),
        ServiceState::Throttled => Some((&cause::THROTTLED, "The service asks us to slow down")),
        ServiceState::Down => Some((&cause::SERVICE_DOWN, "The service does not answer")),
    };
    let silence = silence.map(|(cause, text)| reason(cause, text.to_owned(), "/?problems=1"));
    let skew = service.clock_skew_seconds.filter(|_| service.clocks_differ);
    let clocks = skew.map(|skew| {
        let side = if skew < 0 { "behind" } else { "ahead of" };
        let apart = skew.saturating_abs();
        reason(&cause::CLOCKS_DIFFER, format!("The service's clock is {apart} s {side} ours"), "/")
    });
    silence.into_iter().chain(clocks).collect()
}

/// What is wrong with the exporter itself.
fn of_exporter(exporter: &Exporter, now: Timestamp) -> Vec<Reason> {
    let bad = |good: Option<bool>, cause, text: &str| {
        (good == Some(false)).then(|| reason(cause, text.to_owned(), "/config"))
    };
    let mut reasons: Vec<Reason> = exporter.tokens.iter().flat_map(|token| of_token(token, now)).collect();
    reasons.extend(bad(
        exporter.configuration_good,
        &cause::CONFIG_REFUSED,
        "The last reload of the configuration was refused",
    ));
    reasons.extend(bad(
        exporter.web_configuration_good,
        &cause::WEB_CONFIG_REFUSED,
        "The web configuration file cannot be read; the previous one stays active",
    ));
    if exporter.panicked {
        let text = "A poll panicked within the last hour".to_owned();
        reasons.push(reason(&cause::PANICKED, text, "/?problems=1"));
    }
    for Unexpected { resource, field, target } in &exporter.unexpected {
        let text = format!("Unexpected values of {resource}.{field}, last from {target}");
        let link = "/metrics-catalogue#pds_api_unexpected_values_total";
        reasons.push(reason(&cause::UNEXPECTED_VALUES, text, link));
    }
    reasons.extend(bad(
        exporter.state_file_good,
        &cause::STATE_NOT_WRITTEN,
        "The state file cannot be written",
    ));
    reasons.extend(exporter.restoring.as_ref().and_then(of_restoring));
    if let Some(lag) = exporter.poll_lag_seconds.filter(|lag| *lag >= MAX_POLL_LAG) {
        reasons.push(reason(&cause::POLLS_LATE, format!("Polls start {lag:.0} s late"), "/config"));
    }
    reasons
}

/// What is wrong with a token.
fn of_token(token: &Token, now: Timestamp) -> impl Iterator<Item = Reason> + use<> {
    let name = &token.name;
    let unreadable = (token.readable == Some(false))
        .then(|| (&cause::TOKEN_UNREADABLE, format!("The token of {name} cannot be read")));
    let expiry = token.expires.and_then(|at| match at.as_second() - now.as_second() {
        ..=0 => Some((&cause::TOKEN_EXPIRED, format!("The token of {name} expired at {at}"))),
        1..TOKEN_SOON => Some((&cause::TOKEN_EXPIRES_SOON, format!("The token of {name} expires at {at}"))),
        _ => None,
    });
    let ranges = token.range_ignored.as_ref().map(|told| {
        let (what, _) = told.split_once("; ").unwrap_or((told, ""));
        (&cause::RANGE_IGNORED, what.replacen("the ", "The ", 1))
    });
    [unreadable, expiry, ranges].into_iter().flatten().map(|(cause, text)| reason(cause, text, "/config"))
}

/// Which counters are not yet read back from Prometheus, and why.
fn of_restoring(restoring: &Restoring) -> Option<Reason> {
    let Restoring { missing, obstacle, expected, .. } = restoring;
    let (cause, what) = match obstacle {
        _ if *missing == 0 => return None,
        Some(_) if !expected => (&cause::NOT_RESTORED, "cannot be read back from Prometheus"),
        _ => (&cause::RESTORING, "are still to be read back from Prometheus"),
    };
    let why = obstacle.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    Some(reason(cause, format!("Counters are hidden ({missing}), because they {what}{why}"), "/config"))
}
