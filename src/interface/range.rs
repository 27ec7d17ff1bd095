//! Half-open stretches of time, in whole seconds of UTC.

use jiff::Timestamp;

/// The seconds from `start` (included) to `end` (excluded), since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeRange {
    /// First second.
    pub start: i64,
    /// First second no longer in the range.
    pub end: i64,
}

impl TimeRange {
    /// How many seconds long it is; 0 where the end is not after the start.
    #[must_use]
    pub fn seconds(self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.start)).unwrap_or(0)
    }

    /// The range between two RFC 3339 timestamps, rounded to the nearest second; `None` where one of them is none.
    #[must_use]
    pub fn parse(start: &str, end: &str) -> Option<Self> {
        let second = |text: &str| -> Option<i64> {
            let time: Timestamp = text.trim().parse().ok()?;
            Some(time.round(jiff::Unit::Second).ok()?.as_second())
        };
        Some(Self { start: second(start)?, end: second(end)? })
    }
}

/// A Unix second as the interface wants it in a query: RFC 3339 in UTC (`2026-01-01T00:00:00Z`).
#[must_use]
pub fn rfc3339(second: i64) -> String {
    Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_sent_in_utc_without_fraction() {
        assert_eq!(rfc3339(1_767_225_600), "2026-01-01T00:00:00Z");
        assert_eq!(TimeRange { start: 10, end: 4 }.seconds(), 0);
        let parsed = TimeRange::parse("2026-01-01T01:00:00.4+01:00", "2026-01-01T00:01:00Z");
        assert_eq!(parsed, Some(TimeRange { start: 1_767_225_600, end: 1_767_225_660 }));
        assert_eq!(TimeRange::parse("yesterday", ""), None);
    }
}
