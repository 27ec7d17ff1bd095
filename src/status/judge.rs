//! The problems of an app and of a project: one per cause.

use std::time::Duration;

use jiff::Timestamp;

use pds_core::units;
use pds_interface::get_app::{self, family};
use pds_interface::{Cadence, Counted};

use pds_diagnosis::{Cause, Counting, Failing, Problem, Scope, State, Verdict, cause, resource_title};

use super::view::{Part, Values, View};

use Counting::{Ahead, Behind, Current, Restoring};

/// The judgement of an app.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// The verdict on it and its numbers.
    pub(super) verdict: Verdict,
    /// The app's own state, whatever its numbers; waiting while the state is unknown.
    pub(super) state: Verdict,
    /// Most severe first.
    pub(super) problems: Vec<Problem>,
}

/// The cause of counters whose cursor is not known yet.
pub(super) fn restoring(view: &View) -> &'static Cause {
    match &view.snapshot.restoring {
        None => behind(view),
        Some(restoring) if restoring.obstacle.is_some() && !restoring.expected => &cause::NOT_RESTORED,
        Some(_) => &cause::RESTORING,
    }
}

/// The cause of counters that are behind.
fn behind(view: &View) -> &'static Cause {
    match view.snapshot.state_good {
        Some(false) => &cause::STATE_NOT_WRITTEN,
        _ => unless_overloaded(view, &cause::COUNTERS_BEHIND),
    }
}

fn unless_overloaded(view: &View, cause: &'static Cause) -> &'static Cause {
    view.plan.overload.as_ref().map_or(cause, |_| &cause::OVERLOADED)
}

/// Whether the service has known the app since the resource began to fail, or within an interval before. The call
/// of metrics that once came exists, so only a later reply shows that the app does, too.
fn knew_app(view: &View, known: Option<Timestamp>, part: &Part<'_>, failing: &Failing) -> bool {
    let came = part.target.endpoint.cadence == Cadence::Metrics && part.status.last_success.is_some();
    let before = if came { Duration::ZERO } else { view.plan.config.poll.interval };
    known.is_some_and(|known| known + before >= failing.since)
}

/// Why polls of the resource fail or do not happen, and why its counters are hidden. Counters from before a restart are
/// judged once the resource has been polled.
fn of_resource(view: &View, known: Option<Timestamp>, part: &Part<'_>) -> [Option<&'static Cause>; 2] {
    let resource = &part.status;
    let unless_throttled = |cause: &'static Cause| match cause.scope {
        Scope::Consequence if part.target.account.is_throttled() => &cause::THROTTLED,
        _ => cause,
    };
    let stale = unless_overloaded(view, &cause::RESOURCE_STALE);
    let polled = match (&resource.failing, resource.state) {
        (Some(failing), _) => Some(match view.cause_of(&failing.class, &part.target.account) {
            cause if *cause == cause::NOT_FOUND && knew_app(view, known, part, failing) => {
                &cause::CALL_MISSING
            }
            // A panic is a reason of its own; lost values are a problem.
            cause if *cause == cause::PANICKED && resource.state == State::Stale => stale,
            cause => cause,
        }),
        (None, State::Stale | State::Failing) => Some(unless_throttled(stale)),
        (None, State::Late) => Some(unless_overloaded(view, &cause::RESOURCE_LATE)),
        (None, State::Waiting) => Some(&cause::WAITING),
        (None, State::Fresh) => None,
    };
    let counted = match resource.counting.filter(|_| resource.is_polled()) {
        Some(Behind) => Some(unless_throttled(behind(view))),
        Some(Restoring) => Some(restoring(view)),
        Some(Ahead) => Some(&cause::COUNTERS_AHEAD),
        Some(Current) | None => None,
    };
    [polled, counted]
}

/// Finds what is wrong with an app, most severe first.
pub(super) fn judge_app(view: &View, parts: &[Part<'_>], settings: &Values<'_>) -> Judged {
    let mut found = of_resources(view, parts);
    found.extend(parts.iter().find_map(|part| unknown_objective(view, part)));
    let (status, build) =
        (settings.label(&family::STATUS, "status"), settings.label(&family::LAST_BUILD_STATUS, "status"));
    let bad = |word: &str| word.contains("error") || word.contains("fail");
    let is_error = settings.value(&family::ERROR).is_some_and(|error| error > 0.0);
    // A broken app has one problem, without its consequences.
    let own = match (status.as_deref(), build.as_deref()) {
        (Some(status), _) if bad(status) => {
            Some((&cause::APP_STATUS, format!("the app's status is {status}")))
        }
        (_, Some(build)) if bad(build) || build.contains("timeout") => {
            Some((&cause::BUILD_FAILED, format!("the last build's status is {build}")))
        }
        _ if is_error => Some((&cause::APP_ERROR, cause::APP_ERROR.says.to_owned())),
        _ => None,
    };
    // A good status proves nothing once the service has ceased to answer about the app.
    let failing = parts.iter().filter_map(|part| Some(part.status.failing.as_ref()?.since)).max();
    let known = parts.iter().find(|part| part.resource() == get_app::RESOURCE);
    let is_current = known.is_some_and(|part| part.status.last_success > failing);
    let state = match &own {
        Some((cause, _)) => cause.verdict,
        None if status.is_some() && is_current => Verdict::Ok,
        None => Verdict::Waiting,
    };
    found.extend(own.map(|(cause, text)| {
        let message = parts.iter().find_map(|part| part.subject.cell.message(view.instant));
        let detail = message.filter(|_| is_error).map(|message| message.to_string());
        let suffix = detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        Problem { detail, ..Problem::of(cause, text + &suffix) }
    }));
    let (verdict, problems) = by_gravity(found);
    Judged { verdict, state, problems }
}

/// The problem that no counted reply has the objective's threshold, so the share of slow requests is unknown.
fn unknown_objective(view: &View, part: &Part<'_>) -> Option<Problem> {
    let objective = view.plan.app_of(part.target)?.objective?;
    let ledger = &part.found.as_ref().filter(|found| found.ledger.total > 0)?.ledger;
    let is_counted = part.target.endpoint.counted == Some(Counted::Requests);
    let is_known =
        || ledger.buckets().any(|(at, _)| at.total_cmp(&units::as_seconds(objective.threshold)).is_eq());
    let cause = &cause::OBJECTIVE_UNKNOWN;
    let threshold = humantime::format_duration(objective.threshold);
    (is_counted && !is_known()).then(|| Problem::of(cause, format!("{} ({threshold})", cause.says_of(&[]))))
}

/// Finds what is wrong with a project, most severe first.
pub(super) fn judge_project(view: &View, parts: &[Part<'_>]) -> (Verdict, Vec<Problem>) {
    by_gravity(of_resources(view, parts))
}

fn by_gravity(mut found: Vec<Problem>) -> (Verdict, Vec<Problem>) {
    found.sort_by_key(Problem::verdict);
    (found.first().map_or(Verdict::Ok, Problem::verdict), found)
}

/// The problems of the resources of an app or project: each cause once, without consequences that are no
/// worse than other causes.
fn of_resources(view: &View, parts: &[Part<'_>]) -> Vec<Problem> {
    // Metrics of a deleted app may outlive its settings, but not those of every app.
    let is_metrics = |part: &Part<'_>| part.target.endpoint.cadence == Cadence::Metrics;
    let shows = |part: &&Part<'_>| {
        part.resource() == get_app::RESOURCE || (is_metrics(part) && view.lacks_settings())
    };
    let answered = parts.iter().filter(shows).filter(|part| part.status.failing.is_none());
    // When the service last knew the app, unless it no longer does.
    let known = answered.filter_map(|part| part.status.last_success).max();
    let mut causes: Vec<&'static Cause> = Vec::new();
    for cause in parts.iter().flat_map(|part| of_resource(view, known, part)).flatten() {
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    let own = causes.iter().filter(|cause| cause.scope != Scope::Consequence);
    if let Some(worst) = own.map(|cause| cause.verdict).min() {
        causes.retain(|cause| cause.scope != Scope::Consequence || cause.verdict < worst);
    }
    causes.into_iter().map(|cause| problem(view, cause, parts, known)).collect()
}

/// The problem of those `parts` that `cause` stops.
fn problem(view: &View, cause: &'static Cause, parts: &[Part<'_>], known: Option<Timestamp>) -> Problem {
    let is_stopped = |part: &&Part<'_>| of_resource(view, known, part).contains(&Some(cause));
    let stopped = || parts.iter().filter(is_stopped).map(|part| &part.status);
    let names: Vec<String> = stopped().map(|resource| resource_title(&resource.resource)).collect();
    let fails = |part: &&Part<'_>| of_resource(view, known, part).first() == Some(&Some(cause));
    let failing = parts.iter().filter(fails).filter_map(|part| part.status.failing.as_ref());
    let failing = failing.min_by_key(|failing| failing.cause_since);
    let more = match failing.map(|failing| &*failing.class) {
        Some(class) => in_brackets([class]),
        None if *cause == cause::COUNTERS_BEHIND => {
            how_far(stopped().filter_map(|resource| resource.behind_seconds).max())
        }
        None if *cause == cause::COUNTERS_AHEAD => stopped()
            .find_map(|resource| resource.accounted_until?.checked_add(view.plan.config.poll.settle).ok())
            .map(|until| format!(", until {}", units::time(until)))
            .unwrap_or_default(),
        None => String::new(),
    };
    // An id that worked has no typing error. The list of projects works with any id.
    let mut of_id = parts.iter().filter(|part| part.target.endpoint.scope != pds_interface::Scope::Account);
    let first = of_id.clone().next();
    let worked = of_id.any(|part| part.status.last_success.is_some());
    let first = first.filter(|_| !worked && [&cause::NOT_FOUND, &cause::FORBIDDEN].contains(&cause));
    let detail = first.and_then(|part| view.known_as(&part.subject.cell.key.owner));
    let hint = detail.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let text = format!("{}: {}{more}{hint}", names.join(", "), cause.says_of(&[]));
    Problem { cause: Some(cause), text, failing: failing.cloned(), detail }
}

/// The HTTP statuses among `classes`, which add detail to the cause.
pub(super) fn in_brackets<'a>(classes: impl IntoIterator<Item = &'a str>) -> String {
    let is_status = |class: &&str| class.parse::<u16>().is_ok();
    let statuses = classes.into_iter().filter(is_status);
    match statuses.collect::<Vec<_>>() {
        statuses if statuses.is_empty() => String::new(),
        statuses => format!(" ({})", statuses.join(", ")),
    }
}

/// How far counters are behind, in words.
fn how_far(seconds: Option<u64>) -> String {
    match seconds.unwrap_or_default().div_ceil(60) {
        // The counters are hidden until they include everything that an earlier process may have shown.
        0 => ", not shown yet".to_owned(),
        minutes => format!(", {} behind", units::seconds((60 * minutes) as f64)),
    }
}
