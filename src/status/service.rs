//! The service's part of the model, derived from the state of all targets.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::poll::plan::Target;
use pds_core::clock::differ;
use pds_diagnosis::cause::{self, Cause, Scope};
use pds_interface::{Cadence, Counted};

use super::incidents::{GoingOn, MAX_OBJECTS};
use super::view::{Part, View};
use pds_diagnosis::incident::IncidentKind;
use pds_diagnosis::model::{Counting, Resource, Service, ServiceState, State};
use pds_diagnosis::verdict::CountedAgain;
use pds_diagnosis::verdict::Failing;

/// What all resources together say, added one by one.
#[derive(Debug, Default)]
pub(super) struct Tally<'a> {
    /// How many are failing.
    pub(super) failing: usize,
    /// Requests that were counted again.
    pub(super) rechecked: CountedAgain,
    /// When the next poll of any is due.
    pub(super) due: Option<Instant>,
    last_success: Option<Timestamp>,
    /// By the service accounts' names.
    accounts: BTreeMap<&'a str, Told>,
    /// What goes on with single apps, each with the first of its targets.
    apps: Vec<(&'a Target, GoingOn)>,
    /// Whether settings tell of the service, too.
    settings_tell: bool,
}

/// What the resources that one service account asks for say of it and of the service.
#[derive(Debug, Default)]
struct Told {
    /// Counters, and how many of them catch up.
    counted: usize,
    behind: usize,
    /// Whether one has been polled. This and all below is of resources that are polled often enough to tell.
    polled: bool,
    /// Whether one got its reply, or has not failed.
    answered: bool,
    /// What the other failures have in common.
    silence: Option<ServiceState>,
    last_success: Option<Timestamp>,
    first_failing: Option<Timestamp>,
    last_failing: Option<Failing>,
}

impl<'a> Tally<'a> {
    /// Nothing so far. Settings are polled too rarely to tell of the service; without apps there is nothing else.
    pub(super) fn new(has_apps: bool) -> Self {
        Self { settings_tell: !has_apps, ..Self::default() }
    }

    /// Adds a resource.
    pub(super) fn add(&mut self, part: &Part<'a>) {
        let (target, resource) = (part.target, &part.status);
        self.failing += usize::from(resource.failing.is_some());
        if target.endpoint.counted == Some(Counted::Requests) {
            self.rechecked.add(resource.rechecked.unwrap_or_default());
        }
        self.due = self.due.into_iter().chain(target.progress.due()).min();
        self.last_success = self.last_success.max(resource.last_success);
        let tells = self.settings_tell || target.endpoint.cadence == Cadence::Metrics;
        self.accounts.entry(target.account.name()).or_default().add(&Told::by(resource, tells));
    }

    /// Adds what goes on with the app that has these targets.
    pub(super) fn add_app(&mut self, parts: &[Part<'a>]) {
        if let (Some(first), true) = (parts.first(), self.apps.len() < MAX_OBJECTS) {
            self.apps.extend(going_on(parts).map(|going_on| (first.target, going_on)));
        }
    }

    /// What all accounts say.
    fn all(&self) -> Told {
        let mut all = Told::default();
        self.accounts.values().for_each(|account| all.add(account));
        all
    }

    /// Records what goes on: with the service, with the tokens that fare otherwise, and with the apps that fare
    /// otherwise than most of their token.
    pub(super) fn record(&self, view: &View) {
        let service = self.all().going_on();
        let kind = |going_on: Option<GoingOn>| going_on.map(|(kind, ..)| kind);
        let tokens = self.accounts.iter().filter_map(|(name, told)| Some(((*name, ""), told.going_on()?)));
        let tokens = tokens.filter(|(_, going_on)| kind(service) != Some(going_on.0));
        let apps = self.apps.iter().filter_map(|(target, going_on)| {
            let of_account = self.accounts.get(target.account.name()).and_then(Told::going_on);
            let owner = &target.key.owner;
            (kind(of_account) != Some(going_on.0)).then_some(((&*owner.project, &*owner.app), *going_on))
        });
        let service = service.map(|going_on| (("", ""), going_on));
        view.incidents.observe(view.now, service.into_iter().chain(tokens).chain(apps));
    }

    /// Adds what `other` has collected of further resources.
    pub(super) fn merge(&mut self, other: Self) {
        self.failing += other.failing;
        self.rechecked.add(other.rechecked);
        self.due = self.due.into_iter().chain(other.due).min();
        self.last_success = self.last_success.max(other.last_success);
        for (name, account) in other.accounts {
            self.accounts.entry(name).or_default().add(&account);
        }
        let room = MAX_OBJECTS.saturating_sub(self.apps.len());
        self.apps.extend(other.apps.into_iter().take(room));
    }

    /// The service's part of the model.
    pub(super) fn service(self, view: &View) -> Service {
        let all = self.all();
        let state = all.state();
        let fails = state.is_silent();
        let rate = view.snapshot.request_rate;
        let skew = view.snapshot.clock_skew_seconds;
        Service {
            base_url: view.plan.config.api.base_url.to_string(),
            state,
            last_success: self.last_success,
            down_since: all.since().filter(|_| fails),
            reason: all.last_failing.filter(|_| fails).map(|failing| failing.message.to_string()),
            #[expect(clippy::cast_possible_truncation, reason = "whole seconds; a cast saturates")]
            clock_skew_seconds: skew.map(|skew| skew.round() as i64),
            clocks_differ: skew.is_some_and(differ),
            requests_per_minute: rate.requests_per_minute,
            failures_per_minute: rate.failures_per_minute,
            incidents: view.incidents.of(("", ""), view.now),
        }
    }
}

/// Whether the counters of a resource that answers catch up.
fn catches_up(resource: &Resource) -> bool {
    let behind = match resource.counting {
        Some(Counting::Behind) => resource.behind_seconds > Some(0),
        counting => counting == Some(Counting::Restoring),
    };
    behind && resource.failing.is_none() && resource.state != State::Waiting
}

/// What goes on with the app that has these targets.
fn going_on(parts: &[Part<'_>]) -> Option<GoingOn> {
    let failing = parts.iter().filter_map(|part| part.status.failing.as_ref());
    match failing.min_by_key(|failing| failing.since) {
        Some(failing) => Some(outage(Some(failing.since), failing)),
        None => parts.iter().any(|part| catches_up(&part.status)).then_some(CATCH_UP),
    }
}

/// Counters catch up.
const CATCH_UP: GoingOn = (IncidentKind::CatchUp, None, None);

/// Polls fail as `failing` says.
fn outage(since: Option<Timestamp>, failing: &Failing) -> GoingOn {
    (IncidentKind::Outage, since, Some(Cause::of_class(&failing.class)))
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

impl Told {
    /// What `resource` says, also of the service if it `tells`.
    fn by(resource: &Resource, tells: bool) -> Self {
        let (counted, behind) = (usize::from(resource.counting.is_some()), usize::from(catches_up(resource)));
        let told = Self { counted, behind, ..Self::default() };
        if !tells {
            return told;
        }
        let failing = resource.failing.as_ref();
        let silence = failing.and_then(|failing| {
            let cause = Cause::of_class(&failing.class);
            // A range that ended later was answered: only others fail.
            let counts = resource.accounted_until.is_some_and(|until| until > failing.since);
            (!counts && matches!(cause.scope, Scope::Service | Scope::Token)).then(|| silence(cause))
        });
        Self {
            polled: resource.state != State::Waiting,
            answered: silence.is_none(),
            silence,
            last_success: resource.last_success,
            first_failing: failing.map(|failing| failing.since),
            last_failing: failing.cloned(),
            ..told
        }
    }

    fn add(&mut self, other: &Self) {
        self.counted += other.counted;
        self.behind += other.behind;
        self.polled |= other.polled;
        self.answered |= other.answered;
        self.silence = match (self.silence, other.silence) {
            (Some(one), Some(other)) if one != other => Some(ServiceState::Down),
            (one, other) => one.or(other),
        };
        self.last_success = self.last_success.max(other.last_success);
        self.first_failing = self.first_failing.into_iter().chain(other.first_failing).min();
        let since = |failing: &Option<Failing>| failing.as_ref().map(|failing| failing.since);
        if since(&other.last_failing) >= since(&self.last_failing) {
            self.last_failing.clone_from(&other.last_failing);
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

    /// The last success of any target before failures; without one, the first failure.
    fn since(&self) -> Option<Timestamp> {
        self.first_failing.map(|first| self.last_success.unwrap_or(first))
    }

    /// What goes on with everything that is asked for: nothing is answered, or most counters catch up.
    fn going_on(&self) -> Option<GoingOn> {
        match self.last_failing.as_ref().filter(|_| self.state().is_silent()) {
            Some(failing) => Some(outage(self.since(), failing)),
            None => (2 * self.behind > self.counted).then_some(CATCH_UP),
        }
    }
}
