//! One target's place in the store.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use pds_core::clock::to_second;
use pds_exposition::{Samples, Sink};
use pds_interface::{Cadence, Scope, response_time};
use pds_ledger::Key;

use super::changes::changes;
use super::history::{Event, Failure, History, PollRecord, Transition, What};
use super::six_hours::Point;
use super::{Section, Shared};

/// Identifies a reply of a target: a metrics call is sent once for each window and container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    /// The window's length in seconds; 0 if there is none.
    pub window: u64,
    /// The requested container.
    pub container: Option<Arc<str>>,
}

/// The health of a target.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Whether the last poll succeeded; `None` before the first.
    pub up: Option<bool>,
    /// When it last succeeded.
    pub last_success: Option<Timestamp>,
    /// Since when it has been failing, and why.
    pub failing: Option<Arc<Failure>>,
}

/// The last values of one target, and its health.
#[derive(Debug)]
pub struct TargetState {
    /// Its name.
    pub key: Key,
    /// The section of the page that it belongs to.
    pub section: Section,
    shared: Arc<Shared>,
    contents: Mutex<Contents>,
}

/// Unix time in nanoseconds, until 2262: half of what a `Timestamp` takes.
pub(super) type UnixNanos = NonZero<i64>;

pub(super) fn timestamp(nanos: UnixNanos) -> Option<Timestamp> {
    Timestamp::from_nanosecond(nanos.get().into()).ok()
}

/// Five per app, so rare parts are boxed.
#[derive(Debug, Default)]
struct Contents {
    entries: Box<[Entry]>,
    /// In nanoseconds, up to 584 years.
    stale_after: Option<NonZero<u64>>,
    /// Seconds by which counters were behind when they were last updated.
    behind: u32,
    up: Option<bool>,
    /// `None` before the first success.
    last_success: Option<UnixNanos>,
    /// None until the first poll; cells of counters never have one.
    history: Option<Box<History>>,
    rare: Option<Box<Rare>>,
}

/// Facts that few targets have.
#[derive(Debug, Default)]
struct Rare {
    /// Text of the last reply for people, not a metric.
    message: Option<Arc<String>>,
    /// Settings that the current poll has replaced.
    former: Option<Arc<Samples>>,
}

impl Contents {
    /// The entry of `variant`, unless it is stale at `now`.
    fn fresh(&self, variant: &Variant, now: Instant) -> Option<&Entry> {
        self.entry(variant).filter(|entry| self.is_fresh(entry, now))
    }

    fn entry(&self, variant: &Variant) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.variant == *variant)
    }

    fn is_fresh(&self, entry: &Entry, now: Instant) -> bool {
        self.stale_at(entry).is_none_or(|at| at > now)
    }

    fn set_stale_after(&mut self, stale_after: Option<Duration>) {
        let nanos = stale_after.map(|after| u64::try_from(after.as_nanos()).unwrap_or(u64::MAX));
        // Zero must not be mistaken for no expiry.
        self.stale_after = nanos.and_then(|nanos| NonZero::new(nanos.max(1)));
    }

    fn show_for(&mut self, shown_for: Option<Duration>, behind: Duration) {
        self.set_stale_after(shown_for);
        self.behind = u32::try_from(behind.as_secs()).unwrap_or(u32::MAX);
    }

    /// When `entry` goes stale; `None` if an `Instant` cannot hold that time.
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
        Self { key, section, shared, contents: Mutex::default() }
    }

    /// Its health, and the age of the samples of `variant` that are exposed at `now`; `None` if none are.
    pub fn health_at(&self, variant: &Variant, now: Instant) -> (Health, Option<Duration>) {
        let contents = self.contents.lock();
        let last_success = contents.last_success.and_then(timestamp);
        // Most targets are up; their histories are in no cache.
        let history = contents.history.as_ref().filter(|_| contents.up == Some(false));
        let failing = history.and_then(|history| history.failing().cloned());
        let health = Health { up: contents.up, last_success, failing };
        (health, contents.fresh(variant, now).map(|entry| now.saturating_duration_since(entry.updated_at)))
    }

    /// The samples shown for `variant`, stale or not.
    pub fn samples(&self, variant: &Variant) -> Option<Arc<Samples>> {
        self.contents.lock().entry(variant).map(|entry| Arc::clone(&entry.samples))
    }

    /// The samples of `variant` that are exposed at `now`; `None` once they are stale.
    pub fn fresh(&self, variant: &Variant, now: Instant) -> Option<Arc<Samples>> {
        self.contents.lock().fresh(variant, now).map(|entry| Arc::clone(&entry.samples))
    }

    /// Whether its replies are an app's settings.
    fn is_settings(&self) -> bool {
        let polled = self.key.resource.polled();
        polled.cadence == Cadence::Settings && polled.scope == Scope::App && self.section == Section::Endpoint
    }

    /// Replaces the text of the last reply for people.
    pub fn set_message(&self, message: Option<String>) {
        let rare = &mut self.contents.lock().rare;
        if message.is_some() || rare.is_some() {
            rare.get_or_insert_default().message = message.map(Arc::new);
        }
    }

    /// The text of the last reply for people, if the reply is not stale at `now`.
    pub fn message(&self, now: Instant) -> Option<Arc<String>> {
        let contents = self.contents.lock();
        let is_shown = contents.entries.iter().any(|entry| contents.is_fresh(entry, now));
        contents.rare.as_ref()?.message.clone().filter(|_| is_shown)
    }

    /// Replaces all samples of `variant`.
    pub fn replace(&self, variant: &Variant, sink: Sink) {
        self.replace_in(&mut self.contents.lock(), variant, sink);
        self.changed();
    }

    fn replace_in(&self, contents: &mut Contents, variant: &Variant, sink: Sink) {
        let now = Instant::now();
        match contents.entries.iter_mut().find(|entry| entry.variant == *variant) {
            Some(entry) => {
                let before = self.is_settings().then(|| Arc::clone(&entry.samples));
                sink.replace(&mut entry.samples, &self.shared.layouts);
                entry.updated_at = now;
                if let Some(before) = before.filter(|before| *before != entry.samples) {
                    contents.rare.get_or_insert_default().former = Some(before);
                }
            }
            None => {
                let samples = Arc::new(sink.finish(&self.shared.layouts));
                let mut entries = std::mem::take(&mut contents.entries).into_vec();
                let place = entries.partition_point(|entry| entry.variant < *variant);
                entries.insert(place, Entry { variant: variant.clone(), samples, updated_at: now });
                contents.entries = entries.into();
            }
        }
    }

    /// Replaces the series of the counters, which are so far `behind`. After `shown_for` they leave the page, which
    /// then shows how far they are behind.
    pub fn put_counters(&self, sink: Sink, shown_for: Option<Duration>, behind: Duration) {
        let mut contents = self.contents.lock();
        contents.show_for(shown_for, behind);
        // No page has the former series for longer.
        self.replace_in(&mut contents, &Variant::default(), sink);
        drop(contents);
        self.changed();
    }

    /// Keeps the counters on the page for `shown_for` from now on; they are so far `behind`.
    pub fn keep_counters(&self, shown_for: Duration, behind: Duration) {
        let mut contents = self.contents.lock();
        contents.show_for(Some(shown_for), behind);
        contents.entries.iter_mut().for_each(|entry| entry.updated_at = Instant::now());
        drop(contents);
        self.changed();
    }

    /// Whether the counters are on the page at `now`.
    pub fn shows_counters(&self, now: Instant) -> bool {
        let contents = self.contents.lock();
        contents.entries.first().is_some_and(|entry| contents.stale_at(entry).is_some_and(|at| at > now))
    }

    /// Whether the counters are hidden because they are behind; the page then shows by how much.
    pub fn counters_are_behind(&self) -> bool {
        let contents = self.contents.lock();
        contents.stale_after.is_none() && !contents.entries.is_empty()
    }

    /// Drops all values at once: they are no longer those of the target.
    pub fn clear(&self) {
        self.set_message(None);
        self.retain(|_| false);
    }

    /// Drops the samples of variants that are not `wanted`, at once.
    pub fn retain(&self, wanted: impl Fn(&Variant) -> bool) {
        let mut contents = self.contents.lock();
        let mut entries = std::mem::take(&mut contents.entries).into_vec();
        entries.retain(|entry| wanted(&entry.variant));
        contents.entries = entries.into();
        drop(contents);
        self.changed();
    }

    /// Sets after how long without a success its series vanish; `None` means never.
    pub fn set_stale_after(&self, stale_after: Option<Duration>) {
        self.contents.lock().set_stale_after(stale_after);
    }

    /// Whether it was polled at least once, if it is polled at all.
    pub fn is_polled(&self) -> bool {
        self.section != Section::Endpoint || self.contents.lock().up.is_some()
    }

    /// Whether its last poll failed.
    pub(super) fn is_down(&self) -> bool {
        self.contents.lock().up == Some(false)
    }

    /// The class of its last poll's failure; `None` if that succeeded.
    pub fn failing_class(&self) -> Option<&'static str> {
        let contents = self.contents.lock();
        Some(contents.history.as_ref()?.failing()?.class)
    }

    /// Calls `show` with the samples that are exposed at `now`. Returns the health (whether the target is up, and when
    /// it last was; nothing before the first poll) and when the first samples go stale.
    pub(super) fn exposed_at(
        &self,
        now: Instant,
        mut show: impl FnMut(&Arc<Samples>),
    ) -> (Option<(bool, Option<UnixNanos>)>, Option<Instant>) {
        let contents = self.contents.lock();
        let mut first_stale = None;
        for entry in &contents.entries {
            let stale_at = contents.stale_at(entry);
            if stale_at.is_none_or(|at| at > now) {
                show(&entry.samples);
                first_stale = [first_stale, stale_at].into_iter().flatten().min();
            } else if self.section == Section::Counters {
                let behind = now.duration_since(entry.updated_at).as_secs() + u64::from(contents.behind);
                let behind = pds_ledger::behind(self.key.resource, behind);
                show(&Arc::new(behind.finish(&self.shared.layouts)));
            }
        }
        (contents.up.map(|up| (up, contents.last_success)), first_stale)
    }

    /// Records the end of a poll; `shown` is the variant that an app's trend follows. After a failed poll, the previous
    /// values stay until they are stale.
    pub fn record(&self, poll: PollRecord, shown: &Variant) -> Transition {
        let mut guard = self.contents.lock();
        let contents = &mut *guard;
        let (at, up) = (poll.at, poll.failure.is_none());
        contents.up = Some(up);
        if up {
            contents.last_success = i64::try_from(at.as_nanosecond()).ok().and_then(NonZero::new);
        }
        let families = || self.key.resource.polled().families();
        let point = (self.key.resource == response_time::RESOURCE).then(|| {
            let to_point = |entry: &Entry| Point::of(&families(), &entry.samples, shown.window);
            // Nothing is shown after a poll that a reload has overtaken.
            up.then(|| contents.entry(shown).map(to_point).unwrap_or_default())
        });
        let former = contents.rare.as_mut().and_then(|rare| rare.former.take());
        let changed = former.zip(contents.entries.first());
        let changed =
            changed.map(|(before, entry)| changes(to_second(at), &families(), &before, &entry.samples));
        let history = contents.history.get_or_insert_default();
        let transition = history.record(poll);
        if let Some(point) = point {
            history.sample(at, self.shared.slot_seconds.load(Ordering::Relaxed), point);
        }
        if let Some(changed) = changed.filter(|changed| !changed.is_empty()) {
            history.events.add(Event::new(What::Changed(changed.into()), at, Duration::ZERO));
        }
        drop(guard);
        self.changed();
        transition
    }

    /// Calls `read` with the history; returns the default before the first poll.
    pub fn history<T: Default>(&self, read: impl FnOnce(&History) -> T) -> T {
        self.contents.lock().history.as_deref().map(read).unwrap_or_default()
    }

    fn changed(&self) {
        self.shared.version.fetch_add(1, Ordering::Release);
    }
}
