//! One target's place in the store.

use std::num::NonZero;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::time::{Duration, Instant};

use pds_exposition::{Samples, Sink};
use pds_interface::{Cadence, Scope, response_time};
use pds_ledger::Key;

use super::course::Point;
use super::health::{Failure, Health, Transition, Trouble};
use super::history::{History, PollRecord};
use super::{Section, Shared};

/// Which of several replies that one target gives: a metrics call is asked once for each window and container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    /// The window's length in seconds; 0 if there is none.
    pub window: u64,
    /// The container asked for.
    pub container: Option<Arc<str>>,
}

/// What one target last said, and how it fares.
#[derive(Debug)]
pub struct TargetState {
    /// Its name.
    pub key: Key,
    /// Where it stands.
    pub section: Section,
    shared: Arc<Shared>,
    state: Mutex<State>,
}

/// Unix time in nanoseconds, until 2262: half of what a `Timestamp` takes.
pub(super) type UnixNanos = NonZero<i64>;

pub(super) fn timestamp(nanos: UnixNanos) -> Option<Timestamp> {
    Timestamp::from_nanosecond(nanos.get().into()).ok()
}

/// Five per app, so what is rare is boxed.
#[derive(Debug, Default)]
struct State {
    entries: Box<[Entry]>,
    /// In nanoseconds, until 584 years.
    stale_after: Option<NonZero<u64>>,
    up: Option<bool>,
    /// `None` before the first success.
    last_success: Option<UnixNanos>,
    /// None until the first poll; cells of counters never have one.
    history: Option<Box<History>>,
    trouble: Trouble,
}

impl State {
    /// The entry of `variant`, unless it is stale at `now`.
    fn fresh(&self, variant: &Variant, now: Instant) -> Option<&Entry> {
        let entry = self.entries.iter().find(|entry| entry.variant == *variant)?;
        self.stale_at(entry).is_none_or(|at| at > now).then_some(entry)
    }

    /// When `entry` goes stale; an expiry beyond what an `Instant` can hold is none.
    fn stale_at(&self, entry: &Entry) -> Option<Instant> {
        entry.updated_at.checked_add(Duration::from_nanos(self.stale_after?.get()))
    }
}

#[derive(Debug)]
struct Entry {
    variant: Variant,
    samples: Arc<Samples>,
    updated_at: Instant,
}

impl TargetState {
    pub(super) fn new(key: Key, section: Section, shared: Arc<Shared>) -> Self {
        Self { key, section, shared, state: Mutex::default() }
    }

    /// How it fares, and whether samples of `variant` are exposed at `now`.
    #[must_use]
    pub fn health_at(&self, variant: &Variant, now: Instant) -> (Health, bool) {
        let state = self.state();
        let last_success = state.last_success.and_then(timestamp);
        let health = Health { up: state.up, last_success, failing: state.trouble.failing().cloned() };
        (health, state.fresh(variant, now).is_some())
    }

    /// The samples shown for `variant`, stale or not.
    #[must_use]
    pub fn samples(&self, variant: &Variant) -> Option<Arc<Samples>> {
        self.state()
            .entries
            .iter()
            .find(|entry| entry.variant == *variant)
            .map(|entry| Arc::clone(&entry.samples))
    }

    /// The samples of `variant` that are exposed at `now`: none where they went stale.
    #[must_use]
    pub fn fresh(&self, variant: &Variant, now: Instant) -> Option<Arc<Samples>> {
        self.state().fresh(variant, now).map(|entry| Arc::clone(&entry.samples))
    }

    /// Whether its replies are an app's settings.
    fn is_settings(&self) -> bool {
        let polled = self.key.resource.polled();
        polled.cadence == Cadence::Settings && polled.scope == Scope::App && self.section == Section::Endpoint
    }

    /// Replaces the text of the last reply for people.
    pub fn set_message(&self, message: Option<String>) {
        self.state().trouble.set_message(message);
    }

    /// The text of the last reply for people, if the reply is not stale at `now`.
    #[must_use]
    pub fn message(&self, now: Instant) -> Option<Arc<String>> {
        let state = self.state();
        let fresh = |entry: &Entry| state.stale_at(entry).is_none_or(|at| at > now);
        state.trouble.message().filter(|_| state.entries.iter().any(fresh)).cloned()
    }

    /// Replaces what `variant` said, whole.
    pub fn replace(&self, variant: &Variant, sink: Sink) {
        let now = Instant::now();
        let mut guard = self.state();
        let state = &mut *guard;
        match state.entries.iter_mut().find(|entry| entry.variant == *variant) {
            Some(entry) => {
                let before = self.is_settings().then(|| Arc::clone(&entry.samples));
                sink.replace(&mut entry.samples, &self.shared.layouts);
                entry.updated_at = now;
                if let (Some(before), Some(history)) = (before, &mut state.history)
                    && !before.is_same(&entry.samples)
                {
                    history.keep_former(before);
                }
            }
            None => {
                let samples = Arc::new(sink.finish(&self.shared.layouts));
                let mut entries = std::mem::take(&mut state.entries).into_vec();
                let place = entries.partition_point(|entry| entry.variant < *variant);
                entries.insert(place, Entry { variant: variant.clone(), samples, updated_at: now });
                state.entries = entries.into();
            }
        }
        drop(guard);
        *self.shared.last_update.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        self.changed();
    }

    /// Replaces the counters and what belongs to them. After `shown_for` they leave the page.
    pub fn show_counters(&self, sink: Sink, shown_for: Duration) {
        self.set_stale_after(Some(shown_for));
        self.replace(&Variant::default(), sink);
    }

    /// Keeps the counters on the page as they are, for `shown_for` from now on.
    pub fn keep_counters(&self, shown_for: Duration) {
        self.set_stale_after(Some(shown_for));
        for entry in &mut self.state().entries {
            entry.updated_at = Instant::now();
        }
        self.changed();
    }

    /// Replaces the counters by what is said while they are hidden.
    pub fn hide_counters(&self, sink: Sink) {
        self.set_stale_after(None);
        self.replace(&Variant::default(), sink);
    }

    /// Whether the counters are on the page at `now`.
    #[must_use]
    pub fn shows_counters(&self, now: Instant) -> bool {
        let state = self.state();
        state.entries.first().is_some_and(|entry| state.stale_at(entry).is_some_and(|at| at > now))
    }

    /// Forgets what `variant` said, at once.
    pub fn forget(&self, variant: &Variant) {
        let mut state = self.state();
        let entries = std::mem::take(&mut state.entries).into_vec();
        state.entries = entries.into_iter().filter(|entry| entry.variant != *variant).collect();
        drop(state);
        self.changed();
    }

    /// Drops all values at once: the target does not exist any more.
    pub fn clear(&self) {
        let mut state = self.state();
        state.entries = Box::default();
        state.trouble.set_message(None);
        drop(state);
        self.changed();
    }

    /// Forgets what variants that are no longer asked for said.
    pub fn retain(&self, wanted: &[Variant]) {
        let mut state = self.state();
        let mut entries = std::mem::take(&mut state.entries).into_vec();
        entries.retain(|entry| wanted.contains(&entry.variant));
        state.entries = entries.into();
        drop(state);
        self.changed();
    }

    /// A poll succeeded at `now`.
    pub fn succeeded(&self, now: Timestamp) -> Transition {
        let mut state = self.state();
        self.asked(&mut state, true);
        state.last_success = i64::try_from(now.as_nanosecond()).ok().and_then(NonZero::new);
        let failing = state.trouble.end_failing();
        drop(state);
        self.changed();
        match failing {
            Some(failure) if failure.told.is_some() => Transition::Recovered {
                after: Duration::try_from(now.duration_since(failure.since)).unwrap_or_default(),
            },
            _ => Transition::Same,
        }
    }

    /// Records that a poll failed at `now`. The previous values stay until they are stale.
    pub fn failed(&self, now: Timestamp, class: &'static str, message: &str) -> Transition {
        self.fail(now, class, message, true)
    }

    /// As [`TargetState::failed`], for a reason that stops its whole service account and that the account itself tells: its
    /// targets log no transition for it, neither at its beginning nor at its end.
    pub fn failed_with_account(&self, now: Timestamp, class: &'static str, message: &str) -> Transition {
        self.fail(now, class, message, false)
    }

    fn fail(&self, now: Timestamp, class: &'static str, message: &str, tell: bool) -> Transition {
        let mut state = self.state();
        self.asked(&mut state, false);
        let before = state.trouble.end_failing();
        let told_before = before.as_ref().and_then(|failure| failure.told);
        let told = if tell { Some(class) } else { told_before };
        let since = before.map_or(now, |failure| failure.since);
        state.trouble.begin_failing(Failure { since, class, message: message.into(), told });
        drop(state);
        self.changed();
        if told == told_before { Transition::Same } else { Transition::Failing }
    }

    pub(super) fn set_stale_after(&self, stale_after: Option<Duration>) {
        let nanos = stale_after.map(|after| u64::try_from(after.as_nanos()).unwrap_or(u64::MAX));
        // Nothing at all is not to be mistaken for no expiry.
        self.state().stale_after = nanos.and_then(|nanos| NonZero::new(nanos.max(1)));
    }

    pub(super) fn is_unasked(&self) -> bool {
        self.section == Section::Endpoint && self.state().up.is_none()
    }

    /// Hands the samples that are exposed at `now` to `show`. Gives how it fares (whether it is up, and when it last
    /// was; nothing before the first poll) and when the first of them goes stale.
    pub(super) fn shown(
        &self,
        now: Instant,
        mut show: impl FnMut(&Arc<Samples>),
    ) -> (Option<(bool, Option<UnixNanos>)>, Option<Instant>) {
        let state = self.state();
        let mut first_stale = None;
        for entry in &state.entries {
            let stale_at = state.stale_at(entry);
            if stale_at.is_none_or(|at| at > now) {
                show(&entry.samples);
                first_stale = [first_stale, stale_at].into_iter().flatten().min();
            }
        }
        (state.up.map(|up| (up, state.last_success)), first_stale)
    }

    /// A poll has ended; `shown` is the variant that an app's trend follows.
    pub fn record(&self, poll: PollRecord, shown: &Variant) {
        let mut state = self.state();
        let (at, failed) = (poll.at, poll.failure.is_some());
        let point = (self.key.resource == response_time::RESOURCE).then(|| {
            let entry = state.entries.iter().find(|entry| entry.variant == *shown && !failed)?;
            Some(Point::of(&self.key.resource.polled().families(), &entry.samples))
        });
        let history = state.history.get_or_insert_default();
        history.push(poll);
        if let Some(point) = point {
            history.trace(at, self.shared.slot_seconds.load(Ordering::Relaxed), point);
        }
        if let State { entries, history: Some(history), .. } = &mut *state
            && let (Some(before), Some(entry)) = (history.take_former(), entries.first())
        {
            history.change(at, &self.key.resource.polled().families(), &before, &entry.samples);
        }
    }

    /// What `read` finds in the history; the default before the first poll.
    #[must_use]
    pub fn history<T: Default>(&self, read: impl FnOnce(&History) -> T) -> T {
        self.state().history.as_deref().map(read).unwrap_or_default()
    }

    fn asked(&self, state: &mut State, up: bool) {
        if state.up.replace(up).is_none() && self.section == Section::Endpoint {
            // A cell that was removed meanwhile is not in the count; never below zero.
            let _ =
                self.shared.unasked.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        }
    }

    fn changed(&self) {
        self.shared.version.fetch_add(1, Ordering::Release);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
