//! The world: the state of the simulated service.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Serialize, Serializer};

use pds_core::clock::Clock;
use pds_core::secret::Secret;
use pds_interface::TimeRange;

use super::blueprint::{self, Container};
use super::faults::Faults;
use super::journal::Journal;
use super::latency::{THRESHOLDS, Within};
use super::settings::Settings;
use super::state::{self, State};
use super::traffic::Stream;

/// The exact figures of an app in a range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Truth {
    /// Requests.
    pub requests: u64,
    /// Runs.
    pub runs: u64,
    /// How many of the requests were done within each of [`THRESHOLDS`].
    #[serde(serialize_with = "by_label")]
    pub within: Within,
}

fn by_label<S: Serializer>(within: &Within, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(THRESHOLDS.iter().zip(within))
}

/// The simulated service. Cloning shares it.
#[derive(Clone, Debug)]
pub struct World(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    clock: Clock,
    state: Mutex<State>,
    faults: Faults,
    journal: Mutex<Journal>,
}

impl World {
    /// A world of this size with the time of `clock`.
    pub fn new(settings: Settings, clock: Clock) -> Self {
        let state = Mutex::new(State::new(&settings));
        let (faults, journal) = (Faults::new(settings.seed), Mutex::default());
        Self(Arc::new(Inner { settings, clock, state, faults, journal }))
    }

    /// The projects with their apps' ids in the order of creation, without deleted apps.
    pub fn projects(&self) -> Vec<(Arc<str>, Vec<Arc<str>>)> {
        let settings = &self.0.settings;
        self.state(|state| {
            let project = |number| {
                let (id, project) =
                    state.projects.get_key_value(&*state::project_id(settings.seed, number))?;
                let ids = settings.apps_of(number).map(|app| blueprint::id(id, app));
                let ids = ids.filter(|app| project.app(app).is_some()).map(Arc::from).collect();
                Some((Arc::clone(id), ids))
            };
            (0..settings.projects).filter_map(project).collect()
        })
    }

    /// The token of the project's service account, which does not expire; `None` for an unknown project.
    pub fn token(&self, project: &str) -> Option<Secret> {
        self.token_until(project, None)
    }

    /// A token of the project's service account that expires at `expires`, if ever.
    pub fn token_until(&self, project: &str, expires: Option<Timestamp>) -> Option<Secret> {
        let seed = self.0.settings.seed;
        self.state(|state| {
            let id = Arc::clone(state.projects.get_key_value(project)?.0);
            Some(state.issue(seed, &id, expires))
        })
    }

    /// Revokes a token, like a user of the dashboard.
    pub fn revoke(&self, token: &Secret) {
        self.state(|state| state.accounts.remove(token));
    }

    /// The exact figures of an app in a range; the future counts as empty. `None` for an unknown app.
    pub fn truth(&self, project: &str, app: &str, range: TimeRange) -> Option<Truth> {
        let app = self.state(|state| state.projects.get(project)?.apps.get(app).copied())?;
        Some(self.count(app.number, self.visible(app, range), None))
    }

    /// The faults in force.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// The requests so far.
    pub fn requests(&self) -> Journal {
        self.journal(|journal| journal.clone())
    }

    /// The settings of the world.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Reads or writes the journal.
    pub(super) fn journal<T>(&self, read: impl FnOnce(&mut Journal) -> T) -> T {
        read(&mut self.0.journal.lock())
    }

    pub(super) fn state<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.0.state.lock())
    }

    /// The part of `range` that has happened while there was the app.
    pub(super) fn visible(&self, app: state::App, range: TimeRange) -> TimeRange {
        let now = self.0.clock.unix_seconds();
        let latest = app.deleted.map_or(now, |deleted| deleted.min(now));
        TimeRange { start: range.start.min(latest), end: range.end.min(latest) }
    }

    /// Makes all late data visible, now and from now on.
    pub fn end_late_data(&self) {
        self.state(|state| state.late_data_ended = true);
    }

    /// The numbers of the stream's events in `range` that the service does not know yet.
    pub(super) fn unknown(&self, stream: &Stream, range: TimeRange) -> Vec<u64> {
        if self.state(|state| state.late_data_ended) {
            return Vec::new();
        }
        self.0.settings.quirks.unknown(stream, range, self.0.clock.unix_seconds())
    }

    /// The numbers of requests in `range` that are not finished yet, without those that are `unknown` anyway.
    fn unfinished(&self, part: &Container, range: TimeRange, unknown: &[u64]) -> Vec<u64> {
        let slow_late = i64::from(self.0.settings.quirks.slow_late);
        if slow_late == 0 || self.state(|state| state.late_data_ended) {
            return Vec::new();
        }
        let start = range.start.max(self.0.clock.unix_seconds() - slow_late);
        let numbers = part.requests.before(start)..part.requests.before(range.end.max(start));
        let is_slow =
            |number: &u64| part.latency.is_slow(part.requests.seed, *number) && !unknown.contains(number);
        numbers.filter(is_slow).collect()
    }

    /// The containers of app number `app`, or the one with the id `only`.
    pub(super) fn containers(&self, app: usize, only: Option<&str>) -> Vec<Container> {
        let mut containers = blueprint::containers(self.0.settings.seed, app);
        containers.retain(|part| only.is_none_or(|id| id == part.id));
        containers
    }

    /// Like [`World::count`], without data that the service does not know yet.
    pub(super) fn known(&self, app: usize, range: TimeRange, container: Option<&str>) -> Truth {
        let mut known = self.count(app, range, container);
        for part in self.containers(app, container) {
            let mut requests = self.unknown(&part.requests, range);
            requests.extend(self.unfinished(&part, range, &requests));
            known.requests -= requests.len() as u64;
            known.runs -= self.unknown(&part.runs, range).len() as u64;
            let within = part.latency.within_of(part.requests.seed, requests);
            for (sum, unknown) in known.within.iter_mut().zip(within) {
                *sum -= unknown;
            }
        }
        known
    }

    /// The counts of app number `app` in `range`, for one container or all.
    pub(super) fn count(&self, app: usize, range: TimeRange, container: Option<&str>) -> Truth {
        let mut truth = Truth { requests: 0, runs: 0, within: [0; THRESHOLDS.len()] };
        if range.end <= range.start {
            return truth;
        }
        let every = i64::from(self.0.settings.quirks.bursts_every).max(1);
        let after_burst = |second: i64| (second + every - 1).div_euclid(every) * every;
        let range = TimeRange { start: after_burst(range.start), end: after_burst(range.end) };
        for Container { requests, runs, latency, .. } in self.containers(app, container) {
            let (from, to) = (requests.before(range.start), requests.before(range.end));
            truth.requests += to - from;
            truth.runs += runs.before(range.end) - runs.before(range.start);
            let (before, until) = (latency.within(requests.seed, from), latency.within(requests.seed, to));
            for ((sum, before), until) in truth.within.iter_mut().zip(before).zip(until) {
                *sum += until - before;
            }
        }
        truth
    }
}
