//! Turns plan and store into the model.

use std::borrow::Cow;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::{iter, thread};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Duration;

use crate::poll::error::ANSWERED_SINCE;
use crate::poll::plan::{Target, TargetSubject};
use crate::store::{Change, Failure, History, Point, Variant};
use pds_client::{Class, Outcome};
use pds_core::printable::is_terminal_control;
use pds_diagnosis::{
    About, App, Apps, Audited, Cause, Counting, Disputed, Failing, LastError, Problem, Project, Resource,
    ResponseTime, State, Summary, TrendPoint, Verdict, class_title,
};
use pds_exposition::Family;
use pds_interface::get_app::family;
use pds_interface::{Cadence, get_app, list_domains, list_projects, response_time, volume_alerts};
use pds_ledger::Hold;
use pds_ledger::ledger_store::Found;

use super::document::{LazyApp, Status};
use super::exporter::exporter;
use super::incidents::{GoingOn, REACH, incidents};
use super::judge::{judge_app, judge_project};
use super::reasons::reasons;
use super::service::Totals;
use super::settings::builds;
use super::view::{Part, Place, Values, View};
use pds_core::clock::to_second;
use pds_core::units;

/// A poll is overdue after two intervals and this many seconds.
const LATE: Duration = Duration::from_secs(10);

/// Apps that a thread judges before it takes more.
const BLOCK: usize = 1_000;

impl View {
    /// The whole model, and the current incidents of the service and its tokens.
    pub(super) fn status(self: &Arc<Self>, started: Timestamp) -> (Status, GoingOn) {
        let count: usize = self.plan.config.projects.iter().map(|project| project.apps.len()).sum();
        let mut totals = Totals::new(count > 0);
        let of_projects = self.plan.config.projects.iter().zip(self.of_projects());
        let projects = of_projects.map(|(configured, parts)| {
            parts.iter().for_each(|part| totals.add(self, part));
            self.project(configured, parts)
        });
        let projects: Vec<Project> = projects.collect();
        let apps = self.apps(count, &mut totals);
        let going_on = totals.going_on();
        let silent_apps = totals.silence.apps();
        let is_untrusted =
            |problem: &Problem| problem.is_of_numbers() && problem.verdict() == Verdict::Problem;
        // In the order of the verdicts.
        let (mut states, mut verdicts, mut untrusted) = ([0; 4], [0; 4], 0);
        for app in &apps {
            states[app.state as usize] += 1;
            verdicts[app.verdict as usize] += 1;
            untrusted += usize::from(app.problems.iter().any(is_untrusted));
        }
        let [problem, warning, waiting, ok] = states;
        let in_state = Apps { all: apps.len(), ok, warning, problem, waiting };
        let [problem, warning, waiting, ok] = verdicts;
        let summary = Summary {
            apps: in_state,
            untrusted,
            ok,
            warning,
            problem,
            waiting,
            disputed: totals.disputed,
            disputed_apps: totals.disputed_apps,
            audit: Audited { equal: self.snapshot.audit.equal, different: self.snapshot.audit.different },
            ..Summary::default()
        };
        let mut status = Status {
            exporter: exporter(self, totals.due, &going_on, started),
            failing: totals.failing,
            service: totals.service(self, &going_on),
            summary,
            projects,
            apps,
        };
        status.summary.reasons = reasons(&status, self, silent_apps);
        let of_numbers = status.summary.reasons.iter().find(|reason| reason.about == About::Numbers);
        status.summary.verdict = of_numbers.map_or(Verdict::Ok, |reason| reason.verdict);
        (status, going_on)
    }

    /// All apps. Two threads share a large number, because most of the data is in no cache.
    fn apps<'a>(self: &'a Arc<Self>, count: usize, totals: &mut Totals<'a>) -> Vec<LazyApp> {
        let starts = Mutex::new((0..count).step_by(BLOCK));
        let judge = || {
            let starts = iter::from_fn(|| starts.lock().next());
            starts.map(|start| (start, self.judged(start..count.min(start + BLOCK)))).collect::<Vec<_>>()
        };
        let mut blocks = thread::scope(|scope| {
            // If the system has no thread left, this thread judges them all.
            let other =
                (count > BLOCK).then(|| thread::Builder::new().spawn_scoped(scope, judge).ok()).flatten();
            let mut blocks = judge();
            if let Some(other) = other {
                blocks.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            blocks
        });
        blocks.sort_unstable_by_key(|(start, ..)| *start);
        let mut apps = Vec::with_capacity(count);
        for (_, (judged, of_block)) in blocks {
            totals.merge(of_block);
            apps.extend(judged);
        }
        apps
    }

    /// The apps at `range` of all apps, and their totals.
    fn judged(self: &Arc<Self>, range: Range<usize>) -> (Vec<LazyApp>, Totals<'_>) {
        let (mut apps, mut totals) = (Vec::with_capacity(range.len()), Totals::new(true));
        self.each_app(range, |place, parts| {
            parts.iter().for_each(|part| totals.add(self, part));
            let judged = judge_app(self, parts, &self.values(parts, get_app::RESOURCE));
            apps.push(LazyApp::new(self, place, judged));
        });
        (apps, totals)
    }

    /// The samples of `resource` for the shown window, unless stale.
    pub(super) fn values(&self, parts: &[Part<'_>], resource: pds_interface::Resource) -> Values<'_> {
        let part = parts.iter().find(|part| part.resource() == resource);
        let samples = part.and_then(|part| part.subject.cell.fresh(&self.shown(part.target), self.instant));
        Values::new(&self.context.store, resource, samples)
    }

    /// The name in the last reply of `resource`, however old.
    fn last_name(
        &self,
        parts: &[Part<'_>],
        resource: pds_interface::Resource,
        family: &Family,
    ) -> Option<String> {
        let is_seen = |c: char| {
            !c.is_whitespace()
                && !is_terminal_control(c)
                && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{3164}' | '\u{feff}')
        };
        let part = parts.iter().find(|part| part.resource() == resource)?;
        let samples = part.subject.cell.samples(&Variant::default());
        let values = Values::new(&self.context.store, resource, samples);
        values.label(family, "name").filter(|name| name.contains(is_seen)).map(Cow::into_owned)
    }

    pub(super) fn shown(&self, target: &Target) -> Variant {
        match target.endpoint.cadence {
            Cadence::Settings => Variant::default(),
            Cadence::Metrics => self.plan.shown(),
        }
    }

    fn project(&self, configured: &pds_config::Project, parts: Vec<Part<'_>>) -> Project {
        let listed = self.values(&parts, list_projects::RESOURCE);
        let alerts = self.values(&parts, volume_alerts::RESOURCE);
        let alerts = alerts.by(&volume_alerts::ENABLED, "threshold");
        let enabled = alerts.iter().filter(|(_, on)| *on > 0.0);
        let (verdict, problems) = judge_project(self, &parts);
        Project {
            verdict,
            problems,
            id: configured.id.clone(),
            name: self.last_name(&parts, list_projects::RESOURCE, &list_projects::INFO),
            role: listed.label(&list_projects::INFO, "role").map(Cow::into_owned),
            apps: configured.apps.len(),
            custom_domains: self.values(&parts, list_domains::RESOURCE).value(&list_domains::CUSTOM_DOMAINS),
            volume_alerts: (!alerts.is_empty())
                .then(|| enabled.map(|(threshold, _)| threshold.to_string()).collect()),
            resources: parts.into_iter().map(|part| part.status).collect(),
        }
    }

    /// One app with these targets, but without its verdict and problems.
    pub(super) fn app(&self, place: Place, parts: &[Part<'_>]) -> App {
        let (project, app) = self.configured(place);
        let minutes = self.plan.shown().window as f64 / 60.0;
        let (settings, times) =
            (self.values(parts, get_app::RESOURCE), self.values(parts, response_time::RESOURCE));
        let percentiles = times.by(&response_time::SECONDS, "percentile");
        let [p50, p90, p95, p99] = ["p50", "p90", "p95", "p99"]
            .map(|name| percentiles.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
        let trend = parts.iter().flat_map(|part| part.subject.cell.history(History::trend));
        let drawn = |at: Point| TrendPoint { p95: at.p95, requests_per_minute: at.requests_per_minute };
        let events = |part: &Part<'_>| part.subject.cell.history(|history| incidents(&history.events));
        let happened = parts.iter().flat_map(events).chain(builds(&self.changes(parts, REACH))).collect();
        let token = self.plan.client.account(&project.id);
        let interval = app.interval.unwrap_or(self.plan.config.poll.interval);
        let label = |family, name| settings.label(family, name).map(Cow::into_owned);
        let name = self.last_name(parts, get_app::RESOURCE, &family::INFO);
        let message = parts.iter().find_map(|part| part.subject.cell.message(self.instant));
        let share_step = app.objective.and_then(|objective| {
            let mut steps = parts.iter().filter_map(|part| part.target.progress.lock().share_step);
            steps.next().map(|step| (step, objective.coarse_note(step)))
        });
        App {
            project: project.id.clone(),
            id: app.id.clone(),
            share_step: share_step.as_ref().map(|(step, _)| *step),
            share_note: share_step.and_then(|(_, note)| note),
            name_is_old: name.is_some() && settings.label(&family::INFO, "name").is_none(),
            name,
            status: label(&family::STATUS, "status"),
            error_message: message.map(|message| message.to_string()),
            window: self.plan.windows.first().map(|window| window.label.clone()).unwrap_or_default(),
            response_time: ResponseTime { p50, p90, p95, p99 },
            requests_per_minute: times.value(&response_time::WINDOW_REQUESTS).map(|count| count / minutes),
            min_replicas: settings.value(&family::MIN_REPLICAS),
            max_replicas: settings.value(&family::MAX_REPLICAS),
            hardware: label(&family::INFO, "hardware"),
            dollars_per_replica_hour: settings.value(&family::REPLICA_COST).map(|d| d * 3600.0),
            resources: parts.iter().map(Part::whole_status).collect(),
            last_error: last_error(parts),
            incidents: self.observed.of_app(happened, token.name(), interval, self.now),
            trend: trend.map(drawn).collect(),
            ..App::default()
        }
    }

    /// The changes within `reach` in the settings of an app.
    pub(super) fn changes(&self, parts: &[Part<'_>], reach: SignedDuration) -> Vec<Change> {
        let since = self.now.saturating_sub(reach).unwrap_or(self.now);
        parts.iter().flat_map(|part| part.subject.cell.history(|history| history.changes(since))).collect()
    }

    /// The model of a target with the ledger `found`, without its pending seconds.
    pub(super) fn resource(
        &self,
        target: &Target,
        subject: &TargetSubject,
        found: Option<&Found>,
    ) -> Resource {
        let (health, age) = subject.cell.health_at(&self.shown(target), self.instant);
        let overdue = 2 * self.plan.interval(target) + LATE;
        let state = match (health.up, &health.failing, age) {
            (None, ..) => State::Waiting,
            // A reload has changed the shown window.
            (_, None, None) if subject.cell.samples(&self.shown(target)).is_none() => State::Waiting,
            (.., None) => State::Stale,
            (_, Some(_), _) => State::Failing,
            (.., Some(age)) if age > overdue => State::Late,
            _ => State::Fresh,
        };
        let counting = match found {
            Some(found) => Some(self.counting(target, found)),
            None => self.is_held_back(target).then_some((Counting::Restoring, None)),
        };
        let ledger = found.map(|found| &found.ledger);
        let time = |second: i64| Timestamp::from_second(second).ok();
        Resource {
            resource: target.key.resource.as_str().into(),
            state,
            last_success: health.last_success.map(to_second),
            failing: health.failing.map(|failure| self.failing(target, &failure)),
            accounted_until: ledger.and_then(|ledger| time(ledger.until)),
            counting: counting.map(|(counting, _)| counting),
            behind_seconds: counting.and_then(|(_, behind)| behind).map(|behind| behind.as_secs()),
            rechecked_until: ledger.map(|l| l.rechecked_until).filter(|until| *until > 0).and_then(time),
            given_up: target.progress.lock().hole.as_deref().cloned(),
            disputed: ledger.and_then(|ledger| ledger.disputes()).map(|(range, lacks)| Disputed {
                start: time(range.start).unwrap_or_default(),
                end: time(range.end).unwrap_or_default(),
                lacks,
            }),
            ..Resource::default()
        }
    }

    /// Whether counters without a ledger wait for their cursor.
    fn is_held_back(&self, target: &Target) -> bool {
        target.counter.is_some() && self.context.ledgers.hold(&target.key) == Some(Hold::Unknown)
    }

    /// Whether the counters of a ledger keep up, and how far they are behind. They keep up while they are on the
    /// metrics page. Counters stand still while their cursor is in the future; a clock that is slightly off does not
    /// matter.
    fn counting(&self, target: &Target, Found { ledger, hold }: &Found) -> (Counting, Option<Duration>) {
        let stale_after = units::whole_seconds(self.plan.stale_after(target));
        let explained = stale_after.saturating_add(self.plan.watermark.step());
        match self.plan.shown_for(target, ledger, *hold, self.settled) {
            _ if ledger.until.saturating_sub(self.settled.second) > explained => (Counting::Ahead, None),
            None if *hold == Some(Hold::Unknown) => (Counting::Restoring, None),
            None => (Counting::Behind, Some(self.settled.behind(ledger.until))),
            Some(_) => (Counting::Current, None),
        }
    }

    /// The current failure: since the last poll of the target, another request may have shown that the service answers,
    /// or that it fails in another way.
    fn failing(&self, target: &Target, failure: &Failure) -> Failing {
        let cause = Cause::of_class(failure.class);
        // A poll that sent nothing knows no more than the last request.
        let was_sent =
            ![Class::UnauthorizedPaused, Class::Paused].map(Class::as_str).contains(&failure.class);
        let is_news = |outcome: &Outcome| cause.ends_with_an_answer() && outcome.ended > failure.recorded;
        // Replies to requests that were in flight end no pause.
        let waits = failure.class == Class::Paused.as_str() && target.account.is_throttled();
        let outcome =
            target.account.last_outcome().filter(|outcome| !waits && (!was_sent || is_news(outcome)));
        let later = outcome.map(|outcome| {
            let class =
                outcome.failed.map(Class::as_str).filter(|class| Cause::of_class(class).stops_account());
            (
                class.unwrap_or(ANSWERED_SINCE),
                self.now - self.instant.saturating_duration_since(outcome.ended),
            )
        });
        let later = later.filter(|(class, _)| Cause::of_class(class) != cause);
        let fails_since = later.filter(|(class, _)| *class != ANSWERED_SINCE).map(|(_, ended)| ended);
        Failing {
            since: to_second(failure.since),
            cause_since: fails_since.unwrap_or(failure.cause_since),
            class: later.map_or(failure.class, |(class, _)| class).into(),
            message: match later {
                Some((class, _)) => format!("{}, then {}", failure.message, class_title(class)).into(),
                None => Arc::clone(&failure.message),
            },
        }
    }
}

fn last_error(parts: &[Part<'_>]) -> Option<LastError> {
    let failures = parts.iter().filter_map(|part| {
        let event = part.subject.cell.history(History::last_failed)?;
        let ([_, at], failure) = (event.times(), event.failure()?);
        let (class, message) = (failure.class.into(), Arc::clone(&failure.message));
        Some(LastError { at, resource: part.resource().as_str().into(), class, message })
    });
    failures.max_by_key(|error| error.at)
}
