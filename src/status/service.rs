//! The service's part of the model, derived from the state of all targets.

use jiff::Timestamp;
use tokio::time::Instant;

use crate::cause::{self, Cause, Scope};
use pds_core::clock::differ;
use pds_interface::{Cadence, Counted};

use super::model::{Resource, Service, ServiceState, State};
use super::problem::Failing;
use super::verdict::CountedAgain;
use super::view::{Part, View};

/// What all resources together say, added one by one.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// How many are failing.
    pub(super) failing: usize,
    /// Requests that were counted again.
    pub(super) rechecked: CountedAgain,
    /// When the next poll of any is due.
    pub(super) due: Option<Instant>,
    last_success: Option<Timestamp>,
    telling: Telling,
    /// Whether settings tell of the service, too.
    settings_tell: bool,
}

/// What the resources say of the service that are polled often enough to tell.
#[derive(Debug, Default)]
struct Telling {
    /// Whether one has been polled.
    polled: bool,
    /// Whether one got its reply, or has not failed.
    answered: bool,
    /// What the other failures have in common.
    silence: Option<ServiceState>,
    last_success: Option<Timestamp>,
    first_failing: Option<Timestamp>,
    last_failing: Option<Failing>,
}

impl Tally {
    /// Nothing so far. Settings are polled too rarely to tell of the service; without apps there is nothing else.
    pub(super) fn new(has_apps: bool) -> Self {
        Self { settings_tell: !has_apps, ..Self::default() }
    }

    /// Adds a resource.
    pub(super) fn add(&mut self, part: &Part<'_>, resource: &Resource) {
        let target = part.target;
        self.failing += usize::from(resource.failing.is_some());
        if target.endpoint.counted == Some(Counted::Requests) {
            self.rechecked = CountedAgain::sum(resource.rechecked.into_iter().chain([self.rechecked]));
        }
        self.due = self.due.into_iter().chain(target.progress.due()).min();
        self.last_success = self.last_success.max(resource.last_success);
        if self.settings_tell || target.endpoint.cadence == Cadence::Metrics {
            self.telling.add(resource);
        }
    }

    /// Adds what `other` has collected of further resources.
    pub(super) fn merge(&mut self, other: Self) {
        self.failing += other.failing;
        self.rechecked = CountedAgain::sum([self.rechecked, other.rechecked]);
        self.due = self.due.into_iter().chain(other.due).min();
        self.last_success = self.last_success.max(other.last_success);
        self.telling.merge(other.telling);
    }

    /// The service's part of the model.
    pub(super) fn service(self, view: &View) -> Service {
        let state = self.telling.state();
        let fails = !matches!(state, ServiceState::Waiting | ServiceState::Up);
        let Telling { last_success, first_failing, last_failing, .. } = self.telling;
        let rate = view.context.telemetry.request_rate();
        let skew = view.snapshot.clock_skew_seconds;
        Service {
            base_url: view.plan.config.api.base_url.to_string(),
            state,
            last_success: self.last_success,
            // Since the last success of any target; without one, since the first failure.
            down_since: first_failing.filter(|_| fails).map(|first| last_success.unwrap_or(first)),
            reason: last_failing.filter(|_| fails).map(|failing| failing.message.to_string()),
            #[expect(clippy::cast_possible_truncation, reason = "whole seconds; a cast saturates")]
            clock_skew_seconds: skew.map(|skew| skew.round() as i64),
            clocks_differ: skew.is_some_and(differ),
            requests_per_minute: rate.requests_per_minute,
            failures_per_minute: rate.failures_per_minute,
        }
    }
}

/// The state of a service that `cause` keeps from answering.
fn silence(cause: &Cause) -> ServiceState {
    match cause {
        _ if *cause == cause::TOKEN_UNREADABLE => ServiceState::NotAsked,
        _ if *cause == cause::TOKEN_REFUSED => ServiceState::TokenRefused,
        _ if *cause == cause::THROTTLED => ServiceState::Throttled,
        _ => ServiceState::Down,
    }
}

impl Telling {
    fn add(&mut self, resource: &Resource) {
        self.polled |= resource.state != State::Waiting;
        self.last_success = self.last_success.max(resource.last_success);
        let Some(failing) = &resource.failing else {
            self.answered = true;
            return;
        };
        let cause = Cause::of_class(&failing.class);
        // A range that ended later was answered: only others fail.
        let counts = resource.accounted_until.is_some_and(|until| until > failing.since);
        match cause.scope {
            Scope::Service | Scope::Token if !counts => self.is_silent(silence(cause)),
            _ => self.answered = true,
        }
        self.fails(failing.since, failing);
    }

    fn merge(&mut self, other: Self) {
        self.polled |= other.polled;
        self.answered |= other.answered;
        other.silence.into_iter().for_each(|state| self.is_silent(state));
        self.last_success = self.last_success.max(other.last_success);
        if let (Some(first), Some(last)) = (other.first_failing, &other.last_failing) {
            self.fails(first, last);
        }
    }

    fn is_silent(&mut self, state: ServiceState) {
        let common = self.silence.is_none_or(|silence| silence == state);
        self.silence = Some(if common { state } else { ServiceState::Down });
    }

    /// Adds failures: since when the first, and the last.
    fn fails(&mut self, since: Timestamp, last: &Failing) {
        self.first_failing = Some(self.first_failing.map_or(since, |first| first.min(since)));
        if self.last_failing.as_ref().is_none_or(|known| known.since <= last.since) {
            self.last_failing = Some(last.clone());
        }
    }

    fn state(&self) -> ServiceState {
        match self.silence {
            _ if !self.polled => ServiceState::Waiting,
            Some(silence) if !self.answered => silence,
            // One target that got its reply is enough.
            _ => ServiceState::Up,
        }
    }
}
