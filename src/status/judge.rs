//! What is wrong with an app and with a project: one problem per cause.

use pds_interface::get_app::family;

use pds_diagnosis::cause::{self, Cause, Scope, Verdict};
use pds_telemetry::Snapshot;

use super::view::{Part, Values, View};
use pds_diagnosis::model::{Counting, Resource, State, resource_title};
use pds_diagnosis::verdict::Problem;

use Counting::{Ahead, Behind, Current, Restoring};

/// What is found of an app.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// The verdict on it and its numbers.
    pub(super) verdict: Verdict,
    /// The app's own state, whatever its numbers; waiting while it is not known.
    pub(super) state: Verdict,
    /// Most severe first.
    pub(super) problems: Vec<Problem>,
}

/// Why counters are not on the metrics page, in the state that the exporter is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hidden {
    /// Those that are behind.
    behind: &'static Cause,
    /// Those whose former values are not known.
    pub(super) restoring: &'static Cause,
}

impl Hidden {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let stored = snapshot.state_good != Some(false);
        let behind = if stored { &cause::COUNTERS_BEHIND } else { &cause::STATE_NOT_WRITTEN };
        let restoring = match snapshot.restoring.as_ref().map(|restoring| &restoring.obstacle) {
            None => behind,
            Some(Some(obstacle)) if !obstacle.expected => &cause::NOT_RESTORED,
            Some(_) => &cause::RESTORING,
        };
        Self { behind, restoring }
    }
}

/// Finds what is wrong with an app, most severe first.
pub(super) fn judge_app(view: &View, parts: &[Part<'_>], settings: &Values<'_>) -> Judged {
    let mut found = of_resources(view, parts);
    let bad = |word: &str| word.contains("error") || word.contains("fail");
    if let Some(status) = settings.label(&family::STATUS, "status").filter(|status| bad(status)) {
        found.push(Problem::of(&cause::APP_STATUS, format!("the app's status is {status}")));
    }
    if settings.value(&family::ERROR).is_some_and(|error| error > 0.0) {
        found.push(Problem::of(&cause::APP_ERROR, cause::APP_ERROR.says.to_owned()));
    }
    let build = settings.label(&family::LAST_BUILD_STATUS, "status");
    if let Some(build) = build.filter(|build| bad(build) || build.contains("timeout")) {
        found.push(Problem::of(&cause::BUILD_FAILED, format!("the last build's status is {build}")));
    }
    let (verdict, problems) = by_gravity(found);
    let own = problems.iter().find(|problem| !problem.is_of_numbers());
    let known = settings.label(&family::STATUS, "status").map_or(Verdict::Waiting, |_| Verdict::Ok);
    Judged { verdict, state: own.map_or(known, Problem::verdict), problems }
}

/// Finds what is wrong with a project, most severe first.
pub(super) fn judge_project(view: &View, parts: &[Part<'_>]) -> (Verdict, Vec<Problem>) {
    by_gravity(of_resources(view, parts))
}

fn by_gravity(mut found: Vec<Problem>) -> (Verdict, Vec<Problem>) {
    found.sort_by_key(Problem::verdict);
    (found.first().map_or(Verdict::Ok, Problem::verdict), found)
}

/// What is wrong with the resources of an app or project: each cause once, and no consequence of another one.
fn of_resources(view: &View, parts: &[Part<'_>]) -> Vec<Problem> {
    let hidden = Hidden::of(&view.snapshot);
    let mut causes: Vec<&'static Cause> = Vec::new();
    for cause in parts.iter().flat_map(|part| causes_of(&part.status, hidden)).flatten() {
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    if causes.iter().any(|cause| cause.scope != Scope::Consequence) {
        causes.retain(|cause| cause.scope != Scope::Consequence);
    }
    causes.into_iter().map(|cause| problem(cause, parts, hidden)).collect()
}

/// Why polls of the resource fail or do not happen, and why its counters are hidden. Counters from before a restart are
/// judged once the resource has been polled.
fn causes_of(resource: &Resource, hidden: Hidden) -> [Option<&'static Cause>; 2] {
    let polled = match (&resource.failing, resource.state) {
        (Some(failing), _) => Some(Cause::of_class(&failing.class)),
        (None, State::Stale | State::Failing) => Some(&cause::RESOURCE_STALE),
        (None, State::Late) => Some(&cause::RESOURCE_LATE),
        (None, State::Waiting) => Some(&cause::WAITING),
        (None, State::Fresh) => None,
    };
    let counted = match resource.counting.filter(|_| resource.state != State::Waiting) {
        Some(Behind) => Some(hidden.behind),
        Some(Restoring) => Some(hidden.restoring),
        Some(Ahead) => Some(&cause::COUNTERS_AHEAD),
        Some(Current) | None => None,
    };
    [polled, counted]
}

/// The problem that those of `parts` have which `cause` stops.
fn problem(cause: &'static Cause, parts: &[Part<'_>], hidden: Hidden) -> Problem {
    let resources = || parts.iter().map(|part| &part.status);
    let stopped = || resources().filter(|resource| causes_of(resource, hidden).contains(&Some(cause)));
    let names: Vec<String> = stopped().map(|resource| resource_title(&resource.resource)).collect();
    let failing = stopped().filter_map(|resource| resource.failing.as_ref());
    let failing = failing
        .filter(|failing| Cause::of_class(&failing.class) == cause)
        .min_by_key(|failing| failing.since);
    let more = match failing.map(|failing| &*failing.class) {
        Some(class) => in_brackets([class]),
        None if *cause == cause::COUNTERS_BEHIND => {
            behind(stopped().filter_map(|resource| resource.behind_seconds).max())
        }
        None if *cause == cause::COUNTERS_AHEAD => stopped()
            .find_map(|resource| resource.accounted_until)
            .map(|until| format!(", since {until}"))
            .unwrap_or_default(),
        None => String::new(),
    };
    let text = format!("{}: {}{more}", names.join(", "), cause.says_of(&[]));
    Problem { cause: Some(cause), text, failing: failing.cloned() }
}

/// The HTTP statuses among `classes`, which say more than the cause.
pub(super) fn in_brackets<'a>(classes: impl IntoIterator<Item = &'a str>) -> String {
    let statuses = classes.into_iter().filter(|class| class.starts_with(|c: char| c.is_ascii_digit()));
    match statuses.collect::<Vec<_>>() {
        statuses if statuses.is_empty() => String::new(),
        statuses => format!(" ({})", statuses.join(", ")),
    }
}

/// How far counters are behind, in words.
fn behind(seconds: Option<u64>) -> String {
    match seconds.unwrap_or_default().div_ceil(60) {
        // Held back until nothing that was shown before can be missing.
        0 => ", not shown yet".to_owned(),
        1 => ", 1 minute behind".to_owned(),
        minutes => format!(", {minutes} minutes behind"),
    }
}
