//! The service's part of the model, derived from the state of all targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use pds_client::Account;
use pds_core::clock::is_skewed;
use pds_diagnosis::{Cause, Counting, Disputed, Failing, Resource, Scope, Service, ServiceState};
use pds_interface::{Cadence, Counted};

use crate::poll::counters::Silence;
use crate::store::{Failure, What};

use super::incidents::{GoingOn, SERVICE};
use super::view::{Part, View};

/// The state of all resources together, added one by one.
#[derive(Debug, Default)]
pub(super) struct Totals<'a> {
    /// How many are failing.
    pub(super) failing: usize,
    /// Requests that the service no longer has, and the number of their apps.
    pub(super) disputed: Option<Disputed>,
    pub(super) disputed_apps: usize,
    /// When the next poll of any is due.
    pub(super) due: Option<Instant>,
    /// Apps whose requests have suddenly ended.
    pub(super) silence: Silence<'a>,
    last_success: Option<Timestamp>,
    /// By the service accounts' names.
    accounts: BTreeMap<&'a str, AccountSummary>,
    /// Whether polls of settings report on the service, too.
    settings_report: bool,
}

/// The state of the resources polled with one service account.
#[derive(Debug, Default)]
struct AccountSummary {
    /// The number of counters, and of those that catch up.
    counted: usize,
    behind: usize,
    /// Whether any has been polled. This and the fields below cover resources that are polled often enough to report on
    /// the service.
    polled: bool,
    /// Whether any does not fail, or fails although the service answers.
    answered: bool,
    last_success: Option<Timestamp>,
    first_failing: Option<Timestamp>,
    last_failing: Option<Failing>,
}

impl<'a> Totals<'a> {
    /// Nothing so far. Settings are polled too rarely to report on the service, unless there are no apps.
    pub(super) fn new(has_apps: bool) -> Self {
        Self { settings_report: !has_apps, ..Self::default() }
    }

    /// Adds a resource.
    pub(super) fn add(&mut self, view: &View, part: &Part<'a>) {
        let (target, resource) = (part.target, &part.status);
        self.failing += usize::from(resource.failing.is_some());
        if target.endpoint.counted == Some(Counted::Requests) {
            self.dispute(resource.disputed, 1);
        }
        self.due = self.due.into_iter().chain(target.progress.lock().due).min();
        self.silence.add(target);
        self.last_success = self.last_success.max(resource.last_success);
        let reports = self.settings_report || target.endpoint.cadence == Cadence::Metrics;
        self.accounts.entry(target.account.name()).or_default().add(&AccountSummary::of(
            view,
            resource,
            &target.account,
            reports,
        ));
    }

    fn dispute(&mut self, disputed: Option<Disputed>, apps: usize) {
        if let Some(disputed) = disputed {
            self.disputed = Some(self.disputed.map_or(disputed, |before| before.and(disputed)));
            self.disputed_apps += apps;
        }
    }

    /// All accounts together.
    fn all(&self) -> AccountSummary {
        let mut all = AccountSummary::default();
        self.accounts.values().for_each(|account| all.add(account));
        all
    }

    /// The state of the service, and the separate state of each token.
    pub(super) fn going_on(&self) -> GoingOn {
        let service = self.all().going_on();
        let is_same = |what: &What| std::mem::discriminant(what) == std::mem::discriminant(&service);
        let tokens = self.accounts.iter().map(|(name, account)| {
            let what = account.going_on();
            (Box::from(*name), if is_same(&what) { What::Ok } else { what })
        });
        let tokens: GoingOn = tokens.collect();
        [(Box::from(SERVICE), service)].into_iter().chain(tokens).collect()
    }

    /// Adds what `other` has collected of further resources.
    pub(super) fn merge(&mut self, other: Self) {
        self.failing += other.failing;
        self.dispute(other.disputed, other.disputed_apps);
        self.due = self.due.into_iter().chain(other.due).min();
        self.silence.merge(other.silence);
        self.last_success = self.last_success.max(other.last_success);
        for (name, account) in other.accounts {
            self.accounts.entry(name).or_default().add(&account);
        }
    }

    /// The service's part of the model.
    pub(super) fn service(self, view: &View, going_on: &GoingOn) -> Service {
        let all = self.all();
        let state = all.state();
        let fails = state == ServiceState::Down;
        let rate = view.snapshot.recent.rate();
        let skew = view.snapshot.clock_skew_seconds;
        Service {
            base_url: view.plan.config.api.base_url.to_string(),
            state,
            last_success: self.last_success,
            down_since: all.since().filter(|_| fails),
            reason: all.last_failing.filter(|_| fails).map(|failing| failing.message.to_string()),
            #[expect(clippy::cast_possible_truncation, reason = "whole seconds; a cast saturates")]
            clock_skew_seconds: skew.map(|skew| skew.round() as i64),
            clocks_differ: skew.is_some_and(is_skewed),
            requests_per_minute: rate.requests_per_minute,
            failures_per_minute: rate.failures_per_minute,
            incidents: view.observed.incidents(SERVICE, going_on, view.now),
        }
    }
}

/// Whether the counters of an answered resource are catching up.
fn catches_up(resource: &Resource) -> bool {
    let behind = match resource.counting {
        Some(Counting::Behind) => resource.behind_seconds > Some(0),
        counting => counting == Some(Counting::Restoring),
    };
    behind && resource.failing.is_none() && resource.is_polled()
}

impl AccountSummary {
    /// The state of `resource`, which `reports` on the service or is polled too rarely for that.
    fn of(view: &View, resource: &Resource, account: &Account, reports: bool) -> Self {
        let (counted, behind) = (usize::from(resource.counting.is_some()), usize::from(catches_up(resource)));
        let summary = Self { counted, behind, ..Self::default() };
        if !reports {
            return summary;
        }
        let failing = resource.failing.as_ref();
        let is_silent = failing.is_some_and(|failing| {
            let cause = view.cause_of(&failing.class, account);
            // A later range was answered, so only other ranges fail.
            let counts = resource.accounted_until.is_some_and(|until| until > failing.since);
            !counts && (cause.scope.is_of_service() || cause.scope == Scope::Token)
        });
        Self {
            polled: resource.is_polled(),
            answered: !is_silent,
            last_success: resource.last_success,
            first_failing: failing.map(|failing| failing.since),
            last_failing: failing.cloned(),
            ..summary
        }
    }

    fn add(&mut self, other: &Self) {
        self.counted += other.counted;
        self.behind += other.behind;
        self.polled |= other.polled;
        self.answered |= other.answered;
        self.last_success = self.last_success.max(other.last_success);
        self.first_failing = self.first_failing.into_iter().chain(other.first_failing).min();
        let since = |failing: &Option<Failing>| failing.as_ref().map(|failing| failing.since);
        if since(&other.last_failing) >= since(&self.last_failing) {
            self.last_failing.clone_from(&other.last_failing);
        }
    }

    fn state(&self) -> ServiceState {
        match self {
            Self { polled: false, .. } => ServiceState::Waiting,
            // One answered target is enough.
            Self { answered: true, .. } => ServiceState::Up,
            _ => ServiceState::Down,
        }
    }

    /// The last success of any target before failures; without one, the first failure.
    fn since(&self) -> Option<Timestamp> {
        self.first_failing.map(|first| self.last_success.unwrap_or(first))
    }

    /// The state of all requests: an outage, catch-up, or neither.
    fn going_on(&self) -> What {
        match self.last_failing.as_ref().filter(|_| self.state() == ServiceState::Down) {
            Some(failing) => {
                let classes = Cause::of_class(&failing.class).classes.iter();
                let class = classes.copied().find(|class| *class == failing.class).unwrap_or_default();
                let since = self.since().unwrap_or(failing.since);
                What::Failed(Arc::new(Failure::new(since, class, Arc::clone(&failing.message))))
            }
            None if 2 * self.behind > self.counted => What::Behind,
            None => What::Ok,
        }
    }
}
