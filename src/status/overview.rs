//! Turns plan and store into the model.

use jiff::Timestamp;
use tokio::time::Duration;

use crate::interface::get_app::family;
use crate::interface::{self, Cadence, get_app, list_domains, list_projects, response_time, volume_alerts};
use crate::poll::plan::{Target, TargetSubject};
use crate::store::Variant;

use super::exporter::{exporter, whole};
use super::judge::{judge_app, judge_project, reasons};
use super::model::{
    App, Counting, Failing, LastError, Project, Resource, ResponseTime, State, Status, TrendPoint,
};
use super::read::Values;
use super::rechecked::CountedAgain;
use super::service::service;
use super::verdict::{Summary, Verdict};
use super::view::{Parts, View};

/// A poll is overdue after two intervals and this many seconds.
const LATE: f64 = 10.0;

impl View<'_> {
    /// The whole model.
    pub(super) fn status(&self, started: Timestamp) -> Status {
        let configured = &self.plan.config.projects;
        let mut projects = Vec::with_capacity(configured.len());
        let mut apps = Vec::with_capacity(configured.iter().map(|project| project.apps.len()).sum());
        for (p, (of_project, of_apps)) in self.parts().iter().enumerate() {
            projects.push(self.project(p, of_project));
            apps.extend(of_apps.iter().enumerate().filter_map(|(a, parts)| self.app(p, a, parts)));
        }
        let count = |verdict| apps.iter().filter(|app| app.verdict == verdict).count();
        let summary = Summary {
            verdict: Verdict::Waiting,
            reasons: Vec::new(),
            apps: apps.len(),
            ok: count(Verdict::Ok),
            warning: count(Verdict::Warning),
            problem: count(Verdict::Problem),
            waiting: count(Verdict::Waiting),
            rechecked: requests_rechecked(&apps),
        };
        let snapshot = self.context.telemetry.snapshot();
        let mut status = Status {
            exporter: exporter(&snapshot, self.plan, started, self.now),
            service: service(self, &snapshot, &projects, &apps),
            summary,
            projects,
            apps,
        };
        status.summary.reasons = reasons(&status, self.now);
        status.summary.verdict = status.summary.reasons.first().map_or(Verdict::Ok, |reason| reason.verdict);
        status
    }

    /// The targets of each project, and of each of its apps.
    fn parts(&self) -> Vec<(Parts<'_>, Vec<Parts<'_>>)> {
        let projects = self.plan.config.projects.iter();
        let mut parts: Vec<(Parts<'_>, Vec<Parts<'_>>)> =
            projects.map(|project| (Parts::new(), vec![Parts::new(); project.apps.len()])).collect();
        for target in &self.plan.targets {
            for subject in &target.subjects {
                let Some((of_project, of_apps)) = parts.get_mut(subject.project) else { continue };
                let place = subject.app.map_or(Some(of_project), |app| of_apps.get_mut(app));
                place.into_iter().for_each(|place| place.push((&**target, subject)));
            }
        }
        parts
    }

    /// The targets of one app.
    pub(super) fn parts_of(&self, project: usize, app: usize) -> Parts<'_> {
        let targets = self.plan.targets.iter();
        let pairs =
            targets.flat_map(|target| target.subjects.iter().map(move |subject| (&**target, subject)));
        pairs.filter(|(_, subject)| (subject.project, subject.app) == (project, Some(app))).collect()
    }

    /// The samples of `resource` for the shown window, unless stale.
    pub(super) fn values(&self, parts: &Parts<'_>, resource: interface::Resource) -> Values<'_> {
        let part = parts.iter().find(|(target, _)| target.key.resource == resource);
        let samples =
            part.and_then(|(target, subject)| subject.cell.fresh(&self.shown(target), self.instant));
        Values::new(&self.context.store, resource, samples)
    }

    fn shown(&self, target: &Target) -> Variant {
        match target.endpoint.cadence {
            Cadence::Settings => Variant::default(),
            Cadence::Metrics => self.plan.shown(),
        }
    }

    fn project(&self, index: usize, parts: &Parts<'_>) -> Project {
        let configured = self.plan.config.projects.get(index);
        let listed = self.values(parts, list_projects::RESOURCE);
        let alerts = self.values(parts, volume_alerts::RESOURCE).by(&volume_alerts::ENABLED, "threshold");
        let enabled =
            alerts.iter().filter(|(_, on)| *on > 0.0).map(|(threshold, _)| threshold.clone()).collect();
        let mut project = Project {
            verdict: Verdict::Ok,
            problems: Vec::new(),
            id: configured.map_or_else(|| "".into(), |project| project.id.clone()),
            name: listed.label(&list_projects::INFO, "name"),
            role: listed.label(&list_projects::INFO, "role"),
            apps: configured.map_or(0, |project| project.apps.len()),
            custom_domains: self.values(parts, list_domains::RESOURCE).value(&list_domains::CUSTOM_DOMAINS),
            volume_alerts: (!alerts.is_empty()).then_some(enabled),
            resources: parts.iter().map(|part| self.resource(part)).collect(),
        };
        judge_project(&mut project);
        project
    }

    /// The length of the first window.
    pub(super) fn window_minutes(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a window's seconds are far below 2^53")]
        self.plan.windows.first().map(|window| window.seconds as f64 / 60.0)
    }

    /// One app; `None` if the configuration has none at that index.
    pub(super) fn app(&self, project: usize, app: usize, parts: &Parts<'_>) -> Option<App> {
        let project = self.plan.config.projects.get(project)?;
        let window = self.plan.windows.first()?;
        let minutes = self.window_minutes()?;
        let (settings, times) =
            (self.values(parts, get_app::RESOURCE), self.values(parts, response_time::RESOURCE));
        let [p50, p90, p95, p99] =
            times.values_where(&response_time::SECONDS, "percentile", ["p50", "p90", "p95", "p99"]);
        let trend = parts.iter().map(|(_, subject)| subject.cell.trend()).find(|trend| !trend.is_empty());
        let mut app = App {
            project: project.id.clone(),
            id: project.apps.get(app)?.id.clone(),
            name: settings.label(&family::INFO, "name"),
            status: settings.label(&family::STATUS, "status"),
            error_message: parts
                .iter()
                .find_map(|(_, subject)| subject.cell.message(self.instant))
                .map(|m| m.to_string()),
            verdict: Verdict::Ok,
            problems: Vec::new(),
            window: window.label.clone(),
            response_time: ResponseTime { p50, p90, p95, p99 },
            requests_per_minute: times.value(&response_time::WINDOW_REQUESTS).map(|count| count / minutes),
            min_replicas: settings.value(&family::MIN_REPLICAS),
            max_replicas: settings.value(&family::MAX_REPLICAS),
            hardware: settings.label(&family::INFO, "hardware"),
            dollars_per_replica_hour: settings.value(&family::REPLICA_COST).map(|d| d * 3600.0),
            resources: parts.iter().map(|part| self.resource(part)).collect(),
            last_error: last_error(parts),
            trend: trend
                .unwrap_or_default()
                .into_iter()
                .map(|point| TrendPoint {
                    p95: point.p95,
                    requests_per_minute: point.requests.map(|count| count / minutes),
                })
                .collect(),
        };
        judge_app(&mut app, &settings);
        Some(app)
    }

    fn resource(&self, (target, subject): &(&Target, &TargetSubject)) -> Resource {
        let health = subject.cell.health();
        let age = health.last_success.map(|time| self.now.duration_since(time).as_secs_f64());
        let overdue = 2.0 * self.plan.interval(target).as_secs_f64() + LATE;
        let state = match (health.up, &health.failing) {
            (None, _) => State::Waiting,
            _ if subject.cell.fresh(&self.shown(target), self.instant).is_none() => State::Stale,
            (_, Some(_)) => State::Failing,
            _ if age.is_some_and(|age| age > overdue) => State::Late,
            _ => State::Fresh,
        };
        let ledger = target.counter.as_ref().and_then(|_| self.context.ledgers.ledger(&target.key));
        let counting = ledger.as_ref().map(|ledger| self.counting(target, ledger.until));
        let rechecked = CountedAgain::from(target.progress.rechecked());
        let time = |second: i64| Timestamp::from_second(second).ok();
        Resource {
            resource: target.key.resource.as_str(),
            state,
            last_success: health.last_success.map(whole),
            failing: health.failing.map(|failure| Failing {
                since: whole(failure.since),
                class: failure.class,
                message: failure.message.clone(),
            }),
            accounted_until: ledger.as_ref().and_then(|ledger| time(ledger.until)),
            counting: counting.map(|(counting, _)| counting),
            behind_seconds: counting.and_then(|(_, behind)| behind).map(|behind| behind.as_secs()),
            rechecked_until: ledger.map(|l| l.rechecked_until).filter(|until| *until > 0).and_then(time),
            rechecked: rechecked.late_share().map(|_| rechecked),
        }
    }

    /// Whether counters that end at `until` keep up, and how far they are behind. They do while they are on the
    /// metrics page. Those in the future stand still; a clock that is slightly off does not matter.
    fn counting(&self, target: &Target, until: i64) -> (Counting, Option<Duration>) {
        let watermark = &self.plan.watermark;
        let stale_after = i64::try_from(self.plan.stale_after(target).as_secs()).unwrap_or(i64::MAX);
        let explained = stale_after.saturating_add(watermark.step());
        match self.plan.catching_up(&self.context.ledgers, target) {
            _ if until.saturating_sub(watermark.settled()) > explained => (Counting::Ahead, None),
            Some(catching_up) => (Counting::Behind, Some(catching_up.behind)),
            None => (Counting::Current, None),
        }
    }
}

/// The result of counting requests of these apps again.
pub(super) fn requests_rechecked(apps: &[App]) -> CountedAgain {
    let resources = apps.iter().flat_map(|app| &app.resources);
    let of_requests = resources.filter(|resource| resource.resource == response_time::RESOURCE.as_str());
    CountedAgain::sum(of_requests.filter_map(|resource| resource.rechecked))
}

fn last_error(parts: &Parts<'_>) -> Option<LastError> {
    let failures = parts.iter().filter_map(|(target, subject)| {
        let (at, failure) = subject.cell.last_failure()?;
        let resource = target.key.resource.as_str();
        Some(LastError { at: whole(at), resource, class: failure.class, message: failure.message })
    });
    failures.max_by_key(|error| error.at)
}
