//! Readers of durations, whole numbers and sizes, each within bounds.

use std::num::NonZeroU32;
use std::time::Duration;

use config::Value;

use super::Reader;
use crate::config::key::Kind;
use crate::config::raw::Position;
use crate::config::value;

/// A duration within bounds.
#[derive(Debug)]
pub(in crate::config) struct Span {
    /// The shortest.
    pub(in crate::config) min: Duration,
    /// The longest.
    pub(in crate::config) max: Duration,
    /// Whether it must be whole seconds, because the program counts in seconds.
    pub(in crate::config) whole_seconds: bool,
}

/// A duration of whole seconds, from a second to [`value::MAX`].
pub(in crate::config) const SECONDS: Span =
    Span { min: Duration::from_secs(1), max: value::MAX, whole_seconds: true };

/// A duration from a millisecond to [`value::MAX`].
pub(in crate::config) const MILLISECONDS: Span =
    Span { min: Duration::from_millis(1), max: value::MAX, whole_seconds: false };

impl Reader for Span {
    type Value = Duration;

    fn kind(&self) -> Kind {
        Kind::Duration { min: self.min, max: self.max, whole_seconds: self.whole_seconds }
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Duration> {
        let duration = position.check(value::duration(raw))?;
        if self.whole_seconds && duration.subsec_nanos() != 0 {
            return position.refuse(format!("{raw} is not a whole number of seconds"));
        }
        if !(self.min..=self.max).contains(&duration) {
            let (min, max) = (humantime::format_duration(self.min), humantime::format_duration(self.max));
            return position.refuse(format!("{raw} is out of range; must be from {min} to {max}"));
        }
        Some(duration)
    }
}

/// Whole seconds that divide a day.
#[derive(Debug)]
pub(in crate::config) struct Step;

impl Reader for Step {
    type Value = Duration;

    fn kind(&self) -> Kind {
        SECONDS.kind()
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Duration> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let step = SECONDS.read(raw, position)?;
        if step <= DAY && DAY.as_secs().is_multiple_of(step.as_secs()) {
            return Some(step);
        }
        position.refuse(format!("{raw} does not divide a day; use for example \"60s\", \"5m\" or \"1h\""))
    }
}

/// A whole number within bounds.
#[derive(Debug)]
pub(in crate::config) struct Count {
    /// The smallest.
    pub(in crate::config) min: u32,
    /// The largest.
    pub(in crate::config) max: u32,
}

impl Reader for Count {
    type Value = u32;

    fn kind(&self) -> Kind {
        Kind::Count { min: self.min, max: self.max }
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<u32> {
        position.check(value::count(raw, self.min, self.max))
    }
}

/// A whole number from 1.
#[derive(Debug)]
pub(in crate::config) struct Positive {
    /// The largest.
    pub(in crate::config) max: u32,
}

impl Reader for Positive {
    type Value = NonZeroU32;

    fn kind(&self) -> Kind {
        Kind::Count { min: 1, max: self.max }
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<NonZeroU32> {
        position.check(value::count(raw, 1, self.max)).and_then(NonZeroU32::new)
    }
}

/// A whole number; 0 means no limit.
#[derive(Debug)]
pub(in crate::config) struct Limit {
    /// The largest.
    pub(in crate::config) max: u32,
}

impl Reader for Limit {
    type Value = Option<NonZeroU32>;

    fn kind(&self) -> Kind {
        Kind::Count { min: 0, max: self.max }
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Self::Value> {
        position.check(value::count(raw, 0, self.max)).map(NonZeroU32::new)
    }
}

/// A number of bytes within bounds.
#[derive(Debug)]
pub(in crate::config) struct Size {
    /// The smallest.
    pub(in crate::config) min: u64,
    /// The largest.
    pub(in crate::config) max: u64,
}

impl Reader for Size {
    type Value = u64;

    fn kind(&self) -> Kind {
        Kind::Size { min: self.min, max: self.max }
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<u64> {
        let bytes = position.check(value::size(raw))?;
        if (self.min..=self.max).contains(&bytes) {
            return Some(bytes);
        }
        let (min, max) = (value::in_bytes(self.min), value::in_bytes(self.max));
        position.refuse(format!("must be from {min} to {max}"))
    }
}
