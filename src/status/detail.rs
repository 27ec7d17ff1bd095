//! One app in full: the content of its page beyond the overview.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::store::{Change, Event, History, Reply, SlotSummary};
use pds_core::clock::from_unix_seconds;
use pds_interface::reader::Unexpected;
use pds_interface::{
    Cadence, Counted, Point, ReplyBody as _, TimeRange, get_app, response_time, run_execution_time,
};

use super::exporter::next_poll;
use super::judge::{Judged, judge_app};
use super::settings::{self, Group, builds};
use super::view::{Part, View};
use pds_diagnosis::{App, Counting, Incident};

/// One app in full.
#[derive(Clone, Debug)]
pub struct Detail {
    /// The app as on the overview.
    pub app: App,
    /// The name of the token that its project is polled with.
    pub token: String,
    /// The latency distribution of the window: (threshold in seconds, share 0..=1), sorted by threshold.
    pub distribution: Vec<(f64, f64)>,
    /// The window's run execution times as the service sent them; `None` if its reply was not kept, or is stale.
    pub runs: Option<Vec<Point>>,
    /// Whether the configuration leaves shares out of the distribution.
    pub leaves_out_shares: bool,
    /// Requests in the window.
    pub window_requests: Option<f64>,
    /// Runs in the window.
    pub window_runs: Option<f64>,
    /// Requests counted so far; `None` unless they are on the metrics page, after a successful poll.
    pub requests_total: Option<u64>,
    /// Runs counted so far; likewise.
    pub runs_total: Option<u64>,
    /// Time between polls of its metrics, in seconds.
    pub interval: f64,
    /// The last six hours, oldest first.
    pub six_hours: Vec<SlotSummary>,
    /// Builds that became ready within the last day, newest first.
    pub builds: Vec<Incident>,
    /// When the app was created, if the service reports it.
    pub created: Option<Timestamp>,
    /// The settings in groups.
    pub settings: Vec<Group>,
    /// Changes to them within the last day, newest first.
    pub changes: Vec<Change>,
    /// Since when these are complete, if some within the day are no longer kept.
    pub changes_since: Option<Timestamp>,
    /// When each of the app's resources is polled next, in their order.
    pub next_polls: Vec<Option<Timestamp>>,
    /// The last polls of all resources, newest first; consecutive polls with the same result are one event.
    pub polls: Vec<(&'static str, Event)>,
    /// The last replies; `None` if one was not kept.
    pub replies: Vec<(&'static str, Option<Reply>)>,
}

pub(super) fn detail(view: &View, project: &str, app: &str) -> Option<Detail> {
    let ids = |place| (&*view.configured(place).0.id, &*view.configured(place).1.id);
    let place = view.places().find(|place| ids(*place) == (project, app))?;
    let parts = view.parts_of(place);
    let settings = view.values(&parts, get_app::RESOURCE);
    let Judged { verdict, problems, .. } = judge_app(view, &parts, &settings);
    let overview = App { verdict, problems, ..view.app(place, &parts) };
    let store = &view.context.store;
    store.replies().view(&overview.project, &overview.id);
    let replies: Vec<(&'static str, Option<Reply>)> =
        parts.iter().map(|part| (part.resource().as_str(), store.replies().of(&part.target.key))).collect();
    let total = |counted: Counted| {
        let part = parts.iter().find(|part| part.target.endpoint.counted == Some(counted))?;
        part.status.last_success.filter(|_| part.status.counting == Some(Counting::Current))?;
        Some(part.found.as_ref()?.ledger.total)
    };
    let times = view.values(&parts, response_time::RESOURCE);
    let shares = times.by(&response_time::WITHIN_RATIO, "threshold").into_iter();
    let polls = polls(&parts);
    let changes = view.changes(&parts, SignedDuration::from_hours(24));
    Some(Detail {
        token: view.plan.client.account(project).name().to_owned(),
        distribution: shares
            .filter_map(|(threshold, share)| Some((threshold.parse().ok()?, share)))
            .collect(),
        runs: runs(view, &parts),
        leaves_out_shares: !view.plan.config.poll.within_ratio,
        window_requests: times.value(&response_time::WINDOW_REQUESTS),
        window_runs: view
            .values(&parts, run_execution_time::RESOURCE)
            .value(&run_execution_time::WINDOW_RUNS),
        requests_total: total(Counted::Requests),
        runs_total: total(Counted::Runs),
        interval: parts
            .iter()
            .find(|part| part.target.endpoint.cadence == Cadence::Metrics)
            .map_or(0.0, |part| view.plan.interval(part.target).as_secs_f64()),
        six_hours: parts.iter().flat_map(|part| part.subject.cell.history(History::six_hours)).collect(),
        builds: builds(&changes),
        changes,
        changes_since: parts
            .iter()
            .filter_map(|part| part.subject.cell.history(History::changes_since))
            .max(),
        created: settings.value(&get_app::family::CREATED).and_then(from_unix_seconds),
        settings: settings::groups(&settings),
        next_polls: parts.iter().map(|part| next_poll(part.target.progress.lock().due, view.now)).collect(),
        polls,
        replies,
        app: overview,
    })
}

/// The polls of all parts, newest first.
fn polls(parts: &[Part<'_>]) -> Vec<(&'static str, Event)> {
    let mut polls: Vec<(&'static str, Event)> = Vec::new();
    for part in parts {
        let stretches = part.subject.cell.history(|history| history.events.clone());
        let stretches = stretches.iter().map(|(event, _)| event).filter(|event| event.is_stretch());
        polls.extend(stretches.map(|event| (part.resource().as_str(), event.clone())));
    }
    polls.sort_by_key(|(_, event)| std::cmp::Reverse(event.times()[1]));
    polls
}

/// The datapoints of the last reply, if it was kept and accepted, and the window is not stale.
fn runs(view: &View, parts: &[Part<'_>]) -> Option<Vec<Point>> {
    let part = parts.iter().find(|part| part.resource() == run_execution_time::RESOURCE)?;
    part.subject.cell.fresh(&view.shown(part.target), view.instant)?;
    let reply = view.context.store.replies().of(&part.target.key).filter(|reply| reply.accepted)?;
    let runs = run_execution_time::Reply::decode(reply.text.as_bytes()).ok()?.data;
    // Judged as for the gauges, and within an hour of the window; clocks may differ.
    let until_reply = TimeRange { start: 0, end: reply.at.as_second() };
    let mut points = runs.points(Some(until_reply), &mut Unexpected::default());
    let window = Duration::from_secs(view.plan.shown().window);
    let reach = 2 * window + view.plan.config.poll.settle + Duration::from_secs(3600);
    points.retain(|point| point.time >= reply.at.as_second() as f64 - reach.as_secs_f64());
    Some(points)
}
