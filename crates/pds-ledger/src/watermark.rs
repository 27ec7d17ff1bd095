//! Settled time by our clock and the service's, and whether a ledger keeps up with it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use pds_core::clock::Clock;
use pds_core::units::whole_seconds;
use pds_interface::TimeRange;

use super::recheck::Ages;

/// Two times agree if they are at most this many seconds apart, as a Date has whole seconds and its reply takes time.
const AGREEMENT: u64 = 10;
/// How long our clock must be steady before counting begins, if the service sends no Date.
const STEADY: Duration = Duration::from_secs(60);

/// A service's clock that steps by more than this many seconds is trusted only once it has been steady for a minute.
const MAX_STEP: u64 = 3600 + AGREEMENT;

/// Settings of counted ranges. All durations are whole seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How far behind now every range ends.
    pub settle: Duration,
    /// Ranges are aligned to whole steps in UTC.
    pub step: Duration,
    /// How far back requests reach after an outage; older time is given up.
    pub max_catch_up: Duration,
    /// The ages at which each whole hour is rechecked.
    pub recheck_after: Vec<Duration>,
}

/// The end of the time that may be requested. Clones share the state of the service's clock.
///
/// Our clock may be wrong, or be set while the exporter runs. A range that ends in the service's future would be added
/// incomplete; a range that only seems too old would be given up for nothing. So the time is the earlier of two clocks:
/// ours, and the service's last Date advanced by the machine's monotonic clock, which nobody sets. A reply is checked
/// against its own Date once more before it is counted ([`Watermark::has_settled`]).
///
/// A Date more than an hour from every known clock is trusted once it has advanced for a minute; until then requests
/// count as failed ([`Watermark::observe`]).
///
/// Irreversible steps (opening a ledger, giving time up, dropping a ledger) wait until two clocks agree: the Dates of
/// two replies, or one Date and our clock. Without a Date, our clock must be steady for a minute.
#[derive(Clone, Debug)]
pub struct Watermark {
    clock: Clock,
    settle: i64,
    step: i64,
    max_catch_up: i64,
    ages: Ages,
    seen: Arc<Mutex<Seen>>,
}

/// A clock that showed `second` and advances by the machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
struct RunningClock {
    second: i64,
    at: Instant,
}

impl RunningClock {
    fn now(second: i64) -> Self {
        Self { second, at: Instant::now() }
    }

    fn second(self) -> i64 {
        self.second.saturating_add_unsigned(self.at.elapsed().as_secs())
    }

    /// A Date has whole seconds, rounded down: the service may have been up to one second further.
    fn latest(self) -> i64 {
        self.second().saturating_add(1)
    }

    fn agrees_with(self, second: i64) -> bool {
        self.second().abs_diff(second) <= AGREEMENT
    }
}

/// State of the clocks.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The service's clock.
    date: Option<RunningClock>,
    /// A Date that disagrees with it. The next Date decides.
    other_date: Option<RunningClock>,
    /// Our clock when a reply without a Date arrived. It counts while no reply has a Date.
    ours: Option<RunningClock>,
    /// Whether two clocks have agreed.
    vouched: bool,
    /// The last whole step that had settled when they first agreed.
    started: Option<i64>,
}

impl Watermark {
    /// The watermark of a configuration.
    pub fn new(config: &Config, clock: Clock) -> Self {
        Self {
            clock,
            settle: whole_seconds(config.settle),
            step: whole_seconds(config.step).max(1),
            max_catch_up: whole_seconds(config.max_catch_up),
            ages: Ages::new(config.recheck_after.iter().map(|age| whole_seconds(*age))),
            seen: Arc::default(),
        }
    }

    /// This watermark with another configuration. It keeps its knowledge of the service's clock.
    #[must_use]
    pub fn reconfigured(&self, config: &Config) -> Self {
        Self { seen: Arc::clone(&self.seen), ..Self::new(config, self.clock.clone()) }
    }

    /// The step that ranges are aligned to, in seconds.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// The ages at which hours are rechecked.
    pub fn ages(&self) -> &Ages {
        &self.ages
    }

    /// The start of the first hour with a pending recheck; `i64::MAX` if there is none.
    pub fn hourly_from(&self) -> i64 {
        self.ages.hourly_from(self.settled())
    }

    /// The last second that has settled.
    pub fn settled(&self) -> i64 {
        let ours = self.clock.unix_seconds();
        self.seen().date.map_or(ours, |date| ours.min(date.latest())).saturating_sub(self.settle)
    }

    /// The end of the last whole step that has settled.
    pub fn settled_step(&self) -> i64 {
        self.whole_step(self.settled())
    }

    fn whole_step(&self, second: i64) -> i64 {
        second.div_euclid(self.step) * self.step
    }

    /// Start of a new ledger: the end of the last whole step that has settled by both clocks, so that counting begins at
    /// once even if they differ. If ours is behind by more than `max_catch_up`, the ledger begins that long before the
    /// service's time: once our clock is set, no time from before the start is given up. `None` while no two clocks agree.
    pub fn first_cursor(&self) -> Option<i64> {
        let oldest = self.now()?.saturating_sub(self.settle).saturating_sub(self.max_catch_up);
        Some(self.settled_step().max(self.whole_step(oldest)))
    }

    /// The time by the service's clock, at most a second ahead of it. `None` while no two clocks agree.
    pub fn now(&self) -> Option<i64> {
        let seen = self.seen();
        let now = || seen.date.map_or_else(|| self.clock.unix_seconds(), RunningClock::latest);
        self.is_vouched(&seen).then(now)
    }

    /// The first whole step that may still be requested. Older time is given up. `None` while no two clocks agree,
    /// because giving up cannot be undone.
    pub fn oldest(&self) -> Option<i64> {
        let oldest = || self.settled().saturating_sub(self.max_catch_up);
        self.is_vouched(&self.seen()).then(|| self.whole_step(oldest().saturating_add(self.step - 1)))
    }

    /// Records that a reply with this Date has just arrived. If the service's clock has stepped too far to be trusted
    /// yet, returns by how many seconds.
    pub fn observe(&self, date: Option<Timestamp>) -> Option<i64> {
        let ours = self.clock.unix_seconds();
        let mut seen = self.seen.lock();
        match date {
            None => {
                // A clock that was set meanwhile begins its minute again.
                let steady = seen.ours.filter(|reading| reading.agrees_with(ours));
                seen.ours = Some(steady.unwrap_or_else(|| RunningClock::now(ours)));
            }
            Some(date) => {
                let date = date.as_second();
                let step = date.saturating_sub(seen.date.map_or(ours, RunningClock::second));
                if step.unsigned_abs().min(ours.abs_diff(date)) > MAX_STEP {
                    let since = seen.other_date.filter(|reading| reading.agrees_with(date));
                    let since = *seen.other_date.insert(since.unwrap_or_else(|| RunningClock::now(date)));
                    if since.at.elapsed() < STEADY {
                        return Some(step);
                    }
                }
                let agrees = |known: Option<RunningClock>| known.is_some_and(|known| known.agrees_with(date));
                let witnessed =
                    ours.abs_diff(date) <= AGREEMENT || agrees(seen.date) || agrees(seen.other_date);
                if witnessed || !seen.vouched {
                    seen.date = Some(RunningClock::now(date));
                    seen.other_date = None;
                } else {
                    seen.other_date = Some(RunningClock::now(date));
                }
                seen.vouched |= witnessed;
            }
        }
        drop(seen);
        let seen = self.seen();
        if seen.started.is_none() && self.is_vouched(&seen) {
            self.seen.lock().started = Some(self.settled_step());
        }
        None
    }

    /// Whether `range` had settled by the service's own clock when it replied. Clocks may differ by half of `settle`.
    /// Always true for a service that sends no Date.
    pub fn has_settled(&self, range: TimeRange, date: Option<Timestamp>) -> bool {
        date.is_none_or(|date| range.end + self.settle / 2 <= date.as_second() + 1)
    }

    /// Whether `range` was older than `max_catch_up` when its reply arrived. One step is allowed for the duration of
    /// the request.
    pub fn is_too_old(&self, range: TimeRange) -> bool {
        self.oldest().is_some_and(|oldest| range.start.saturating_add(self.step) < oldest)
    }

    /// The time that has settled now.
    pub fn at_present(&self) -> Settled {
        Settled { second: self.settled(), step: self.step, started: self.seen().started }
    }

    /// Whether two clocks have agreed, or ours was steady if the service sends no Date.
    fn is_vouched(&self, seen: &Seen) -> bool {
        let steady =
            |ours: RunningClock| ours.at.elapsed() >= STEADY && ours.agrees_with(self.clock.unix_seconds());
        seen.vouched || (seen.date.is_none() && seen.ours.is_some_and(steady))
    }

    fn seen(&self) -> Seen {
        *self.seen.lock()
    }
}

/// A [`Watermark`] at one moment. Reading it takes two clocks and a lock, so code that visits all ledgers reads it
/// once.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// The last second that has settled.
    pub second: i64,
    pub(super) step: i64,
    /// The last whole step that had settled when two clocks first agreed; `None` before.
    pub started: Option<i64>,
}

impl Settled {
    /// The end of the last whole step that has settled.
    pub fn step_end(self) -> i64 {
        self.second.div_euclid(self.step) * self.step
    }

    /// How far a ledger whose cursor is `until` is behind that.
    pub fn behind(self, until: i64) -> Duration {
        let behind = self.step_end().saturating_sub(until);
        Duration::from_secs(u64::try_from(behind).unwrap_or_default())
    }

    /// How long the counters of a ledger stay shown if its cursor is `until` and moves every `interval`; `None` if they
    /// are hidden.
    ///
    /// They are hidden while the ledger is behind, that is, while `until` is before the last whole step that had
    /// settled two intervals ago: a counter that stands still reads as no requests, and its later jump as far too many.
    /// They are also hidden until the ledger has passed the time that had settled when counting began, because an
    /// earlier process may have shown counters up to it.
    pub fn shown_for(self, until: i64, interval: Duration) -> Option<Duration> {
        if until < self.started?.min(self.step_end()) {
            return None;
        }
        let allowed = self.step.saturating_add(whole_seconds(interval).saturating_mul(2));
        // A clock set back does not prolong it.
        let left = until.saturating_add(allowed).saturating_sub(self.second).min(allowed);
        u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use tokio::time::advance;

    use super::*;

    /// A watermark at 12:00:07 by our clock, with steps of a minute and half a minute to settle.
    fn watermark() -> Watermark {
        let config = Config {
            settle: Duration::from_secs(30),
            step: Duration::from_secs(60),
            max_catch_up: Duration::from_secs(86_400),
            recheck_after: vec![Duration::from_secs(3600)],
        };
        Watermark::new(&config, Clock::starting_at("2026-03-01T12:00:07Z".parse().unwrap()))
    }

    fn time(second: Option<i64>) -> String {
        second.map_or("none".to_owned(), |second| Timestamp::from_second(second).unwrap().to_string())
    }

    fn date(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_ledger_begins_where_two_clocks_agree() {
        let watermark = watermark();
        assert_eq!(time(watermark.first_cursor()), "none");
        watermark.observe(date("2026-03-01T12:00:05Z"));
        assert_eq!(time(watermark.first_cursor()), "2026-03-01T11:59:00Z", "the service's and ours");

        let watermark = self::watermark();
        watermark.observe(date("2026-03-01T11:40:07Z"));
        assert_eq!(time(watermark.first_cursor()), "none", "one of the two is wrong");
        watermark.observe(date("2026-03-01T12:30:40Z"));
        assert_eq!(time(watermark.first_cursor()), "none", "and now one of three");
        assert_eq!(watermark.oldest(), None);
        watermark.observe(date("2026-03-01T12:30:41Z"));
        assert_eq!(time(watermark.first_cursor()), "2026-03-01T11:59:00Z", "settled by both");
        advance(Duration::from_secs(60)).await;
        assert_eq!(time(watermark.first_cursor()), "2026-03-01T12:00:00Z", "the clocks go on");
        let settled = time(Some(watermark.settled_step()));
        assert_eq!(settled, "2026-03-01T12:00:00Z", "ours is behind: the earlier");
    }

    #[tokio::test(start_paused = true)]
    async fn by_a_clock_days_behind_a_ledger_begins_no_earlier_than_time_is_given_up() {
        let watermark = watermark();
        for text in ["2026-03-04T12:00:07Z", "2026-03-04T12:00:37Z", "2026-03-04T12:01:07Z"] {
            watermark.observe(date(text));
            advance(Duration::from_secs(30)).await;
        }
        assert_eq!(time(watermark.first_cursor()), "2026-03-03T12:01:00Z");
        watermark.clock.jump(SignedDuration::from_hours(72));
        assert!(watermark.first_cursor() > watermark.oldest(), "once ours is right");
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_date_that_disagrees_moves_nothing() {
        let watermark = watermark();
        watermark.observe(date("2026-03-01T12:00:07Z"));
        watermark.observe(date("2026-03-01T11:10:07Z"));
        assert_eq!(time(Some(watermark.settled_step())), "2026-03-01T11:59:00Z");
        watermark.observe(date("2026-03-01T11:10:08Z"));
        assert_eq!(time(Some(watermark.settled_step())), "2026-03-01T11:09:00Z", "two that agree do");
    }

    #[tokio::test(start_paused = true)]
    async fn a_date_more_than_an_hour_away_is_believed_once_it_ran_on_for_a_minute() {
        let epoch = || date("1970-01-01T00:00:00Z");
        for known in [None, date("2026-03-01T12:00:07Z")] {
            let watermark = watermark();
            if known.is_some() {
                assert_eq!(watermark.observe(known), None);
            }
            for _ in 0..5 {
                assert_eq!(watermark.observe(epoch()).map(|step| step / 86_400), Some(-20_513));
                advance(Duration::from_secs(30)).await;
            }
            assert!(time(Some(watermark.settled_step())).starts_with("2026-03-01T12:0"), "it stands still");
            assert_eq!(watermark.first_cursor().is_some(), known.is_some());
        }
        let watermark = watermark();
        assert_eq!(watermark.observe(date("2026-03-01T13:00:18Z")), Some(3611));
        assert_eq!(watermark.observe(date("2026-03-01T13:00:17Z")), None, "an hour and ten seconds");

        let watermark = self::watermark();
        watermark.observe(date("2026-03-01T12:00:07Z"));
        for (second, believed) in [(10, false), (40, false), (70, true), (71, true)] {
            let ran = date(&format!("1970-01-01T00:01:{:02}Z", second % 60));
            let ran = if second >= 60 { date(&format!("1970-01-01T00:02:{:02}Z", second - 60)) } else { ran };
            assert_eq!(watermark.observe(ran).is_none(), believed, "{second}");
            advance(Duration::from_secs(if second == 70 { 1 } else { 30 })).await;
        }
        assert!(time(Some(watermark.settled())).starts_with("1970-01-01T00:0"));

        let watermark = self::watermark();
        for (seconds, text) in
            [(0, "1970-01-01T00:00:00Z"), (30, "2026-03-01T12:00:37Z"), (31, "1970-01-01T00:01:01Z")]
        {
            let believed = watermark.observe(date(text)).is_none();
            assert_eq!(believed, text.starts_with("2026"), "{seconds}: a right one begins the minute again");
            advance(Duration::from_secs(30)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_date_counting_begins_once_our_clock_was_steady_for_a_minute() {
        let watermark = watermark();
        watermark.observe(None);
        advance(Duration::from_secs(40)).await;
        assert_eq!((watermark.first_cursor(), watermark.oldest()), (None, None));
        watermark.clock.jump(SignedDuration::from_hours(9));
        watermark.observe(None);
        advance(Duration::from_secs(40)).await;
        watermark.observe(None);
        assert_eq!(watermark.first_cursor(), None, "it was set meanwhile");
        advance(Duration::from_secs(20)).await;
        watermark.observe(None);
        assert_eq!(time(watermark.first_cursor()), "2026-03-01T21:01:00Z");
        let settled = watermark.at_present();
        assert!(settled.shown_for(settled.step_end(), Duration::from_secs(60)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn another_configuration_keeps_the_knowledge_of_the_clocks() {
        let config = Config {
            settle: Duration::from_secs(120),
            step: Duration::from_secs(300),
            max_catch_up: Duration::from_secs(3600),
            recheck_after: vec![Duration::from_secs(7200), Duration::from_secs(3600)],
        };
        let watermark = watermark();
        watermark.observe(date("2026-03-01T12:00:05Z"));
        let watermark = watermark.reconfigured(&config);
        assert_eq!(time(watermark.now()), "2026-03-01T12:00:06Z");
        assert_eq!(watermark.step(), 300);
        assert_eq!(*watermark.ages(), Ages::new([3600, 7200]));
        assert_eq!(time(Some(watermark.hourly_from())), "2026-03-01T09:00:00Z");
        // 11:58:06 has settled.
        assert_eq!(time(watermark.first_cursor()), "2026-03-01T11:55:00Z");
        assert_eq!(time(watermark.oldest()), "2026-03-01T11:00:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn counting_begins_once_however_often_the_clocks_agree() {
        let watermark = watermark();
        watermark.observe(date("2026-03-01T11:40:07Z"));
        assert_eq!(watermark.at_present().started, None);
        for _ in 0..2 {
            watermark.observe(Some(watermark.clock.now()));
            assert_eq!(time(watermark.at_present().started), "2026-03-01T11:59:00Z");
            advance(Duration::from_secs(600)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_range_has_settled_by_the_services_clock_but_for_half_of_settle() {
        let watermark = watermark();
        let range = TimeRange { start: 940, end: 1000 };
        let settled = |second| watermark.has_settled(range, Some(Timestamp::from_second(second).unwrap()));
        // A Date is rounded down, so that 1014 may be 1015.
        assert_eq!([1013, 1014].map(settled), [false, true]);
        assert!(watermark.has_settled(range, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_range_is_too_old_a_step_after_its_time_was_given_up() {
        let watermark = watermark();
        let oldest = "2026-02-28T12:00:00Z".parse::<Timestamp>().unwrap().as_second();
        let is_too_old = |start| watermark.is_too_old(TimeRange { start, end: start + 60 });
        assert!(!is_too_old(0), "nobody vouches for the time");
        watermark.observe(date("2026-03-01T12:00:07Z"));
        assert_eq!(watermark.oldest(), Some(oldest));
        assert_eq!([oldest - 61, oldest - 60].map(is_too_old), [true, false]);
        advance(Duration::from_secs(23)).await;
        assert_eq!(watermark.oldest(), Some(oldest), "a step that has just settled");
    }

    #[tokio::test(start_paused = true)]
    async fn counters_are_shown_until_they_lack_time_settled_two_intervals_ago() {
        let (watermark, interval) = (watermark(), Duration::from_secs(60));
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_second();
        let until = at("2026-03-01T11:59:00Z");
        let shown_for = |until| watermark.at_present().shown_for(until, interval);
        assert_eq!(shown_for(until), None, "nobody vouches for the time");
        watermark.observe(date("2026-03-01T12:00:07Z"));
        assert_eq!(shown_for(until - 60), None, "a process before may have shown more");
        // 12:02:30 is when 12:00:00 has settled for two intervals.
        let left = shown_for(until).unwrap();
        assert_eq!(left, Duration::from_secs(143));
        advance(left - Duration::from_secs(1)).await;
        assert!(shown_for(until).is_some());
        advance(Duration::from_secs(1)).await;
        assert_eq!((shown_for(until), shown_for(until + 60).is_some()), (None, true));
    }
}
