//! Which time has settled: by our clock, and by the service's.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::config::Config;
use crate::interface::TimeRange;

/// The end of the time that may be asked for. Cloning shares what was learned of the service's clock.
///
/// Our clock may be wrong, or be set while we run. A range that ended in the service's future would be added with what
/// had happened of it so far, and the rest lost; a stretch taken for too old would be given up for nothing. So the
/// time is the earlier of two: our clock, and the service's Date of its last reply carried on by the machine's steady
/// clock, which nobody sets. And a reply that is to be counted is checked against its own Date once more
/// ([`Watermark::has_settled`]).
#[derive(Clone, Debug)]
pub struct Watermark {
    clock: Clock,
    settle: i64,
    step: i64,
    max_catch_up: i64,
    seen: Arc<Mutex<Seen>>,
}

/// What is known of the service's clock.
#[derive(Clone, Copy, Debug, Default)]
enum Seen {
    /// It has not replied yet.
    #[default]
    Nothing,
    /// It replies without a Date.
    NoDate,
    /// It stood at `second` when its last reply came.
    Date { second: i64, at: Instant },
}

impl Watermark {
    /// The watermark of a configuration.
    #[must_use]
    pub fn new(config: &Config, clock: Clock) -> Self {
        let seconds = |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        Self {
            clock,
            settle: seconds(config.poll.settle),
            step: seconds(config.accounting.step).max(1),
            max_catch_up: seconds(config.accounting.max_catch_up),
            seen: Arc::default(),
        }
    }

    /// This watermark with another configuration: what was learned of the service's clock stays.
    #[must_use]
    pub fn reconfigured(&self, config: &Config) -> Self {
        Self { seen: Arc::clone(&self.seen), ..Self::new(config, self.clock.clone()) }
    }

    /// The step that ranges are aligned to, in seconds.
    #[must_use]
    pub fn step(&self) -> i64 {
        self.step
    }

    /// The last second that has settled.
    #[must_use]
    pub fn settled(&self) -> i64 {
        let ours = self.clock.unix_seconds();
        let now = match self.seen() {
            Seen::Nothing | Seen::NoDate => ours,
            // The header has whole seconds, rounded down: the service may have been up to one second further.
            Seen::Date { second, at } => {
                ours.min(second.saturating_add(1).saturating_add_unsigned(at.elapsed().as_secs()))
            }
        };
        now.saturating_sub(self.settle)
    }

    /// The end of the last whole step that has settled.
    #[must_use]
    pub fn settled_step(&self) -> i64 {
        self.settled().div_euclid(self.step) * self.step
    }

    /// Where a new ledger begins: the end of the last whole step that has settled. `None` before the service has replied
    /// once: until then nobody vouches for our clock, and a ledger begun in the service's future would stand still until
    /// that has come.
    #[must_use]
    pub fn first_cursor(&self) -> Option<i64> {
        self.has_replied().then(|| self.settled_step())
    }

    /// The first whole step that may still be asked for; what lies before is given up. `None` before the service has
    /// replied once: until then nobody vouches for our clock, and what is given up does not come back.
    #[must_use]
    pub fn oldest(&self) -> Option<i64> {
        if !self.has_replied() {
            return None;
        }
        let oldest = self.settled().saturating_sub(self.max_catch_up);
        let part = oldest.rem_euclid(self.step);
        Some(if part == 0 { oldest } else { oldest.saturating_add(self.step - part) })
    }

    /// A reply came just now, with this Date.
    pub fn observe(&self, date: Option<Timestamp>) {
        let seen = match date {
            Some(date) => Seen::Date { second: date.as_second(), at: Instant::now() },
            None => Seen::NoDate,
        };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    /// Whether `range` had settled by the service's own clock when it answered; [`Watermark::tolerance`] is left for what
    /// the two clocks may differ by. A service that sends no Date can't be checked.
    #[must_use]
    pub fn has_settled(&self, range: TimeRange, date: Option<Timestamp>) -> bool {
        date.is_none_or(|date| range.end + self.settle - self.tolerance() <= date.as_second() + 1)
    }

    /// What the two clocks may differ by without anybody noticing: half of `settle`, in seconds.
    #[must_use]
    pub fn tolerance(&self) -> i64 {
        self.settle - self.settle / 2
    }

    fn has_replied(&self) -> bool {
        !matches!(self.seen(), Seen::Nothing)
    }

    fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::time::{Duration, advance};

    use super::*;
    use crate::config;

    /// A watermark at 12:00:07 by our clock; a step is a minute, and what is half a minute old has settled.
    fn watermark() -> Watermark {
        let text = "[api]\nbase_url = \"http://localhost\"\ntoken = \"t\"\n[[projects]]\nid = \"p-1\"\n";
        let config = config::load_text(Path::new("test.toml"), text).unwrap().config;
        Watermark::new(&config, Clock::starting_at("2026-03-01T12:00:07Z".parse().unwrap()))
    }

    fn time(second: Option<i64>) -> String {
        second.map_or("none".to_owned(), |second| Timestamp::from_second(second).unwrap().to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn a_ledger_begins_where_the_service_has_vouched_for_the_time() {
        let watermark = watermark();
        assert_eq!(time(watermark.first_cursor()), "none");
        watermark.observe(None);
        assert_eq!(
            time(watermark.first_cursor()),
            "2026-03-01T11:59:00Z",
            "a service without Date leaves it to us"
        );
        watermark.observe(Some("2026-03-01T11:00:07Z".parse().unwrap()));
        assert_eq!(time(watermark.first_cursor()), "2026-03-01T10:59:00Z");
        advance(Duration::from_secs(60)).await;
        assert_eq!(time(watermark.first_cursor()), "2026-03-01T11:00:00Z", "its clock goes on");
        watermark.observe(Some("2026-03-01T13:00:07Z".parse().unwrap()));
        assert_eq!(time(watermark.first_cursor()), "2026-03-01T12:00:00Z", "ours, where that is behind");
    }
}
