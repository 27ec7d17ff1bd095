//! Half-open stretches of time, in whole seconds of UTC.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use pds_core::clock::from_unix_seconds;
use serde::{Deserialize, Serialize};

/// The seconds from `start` (included) to `end` (excluded), since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TimeRange {
    /// First second.
    pub start: i64,
    /// First second no longer in the range.
    pub end: i64,
}

/// Widths in seconds to whose multiples services round bounds.
const WIDTHS: [i64; 14] = [1, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];

impl TimeRange {
    /// Its length in seconds; 0 if the end is not after the start.
    pub fn seconds(self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.start)).unwrap_or(0)
    }

    /// Whether this is `asked`, or `asked` rounded outwards to multiples of some width, by less than one width on each
    /// side. The width is one that services use for their buckets, and at most the length of `asked`.
    pub fn is_rounded_from(self, asked: Self) -> bool {
        self.rounding_of(asked).is_some()
    }

    /// The width to whose multiples `asked` was rounded outwards to give this range; 1 without rounding.
    pub fn rounding_of(self, asked: Self) -> Option<i64> {
        let (before, after) = (asked.start.saturating_sub(self.start), self.end.saturating_sub(asked.end));
        let rounds = |width: i64| {
            let less = |excess| (0..width).contains(&excess);
            let whole = |bound: i64, excess| excess == 0 || bound.rem_euclid(width) == 0;
            let bounds = whole(self.start, before) && whole(self.end, after);
            less(before) && less(after) && bounds && width <= asked.end.saturating_sub(asked.start)
        };
        if self == asked { Some(1) } else { WIDTHS.into_iter().find(|width| rounds(*width)) }
    }

    /// Bounds of `asked` that a reply about this range ignores, as with a service that has other names for them. `None`
    /// if it ignores none: the range is the requested one, rounded in any direction or stated with another second, or a
    /// part of it if the service has a longest range.
    pub fn ignored_bounds(self, asked: Self) -> Option<Ignored> {
        if self.is_near(asked) || (self.start >= asked.start && self.end <= asked.end) {
            return None;
        }
        // Exact: the end of a default range, which is now, may be near the requested end by chance.
        match (self.start == asked.start, self.end == asked.end) {
            (true, _) => Some(Ignored::End),
            (_, true) => Some(Ignored::Start),
            _ => Some(Ignored::Both),
        }
    }

    /// Whether both bounds are near those of `asked`: a second off, as if a range includes its last second, or rounded
    /// in any direction to a multiple of a width that is at most the length of `asked`.
    pub fn is_near(self, asked: Self) -> bool {
        let is_near = |bound: i64, asked_bound: i64| {
            let off = bound.abs_diff(asked_bound);
            let rounds = |width: &i64| off < width.unsigned_abs() && bound.rem_euclid(*width) == 0;
            let mut widths = WIDTHS.iter().filter(|width| width.unsigned_abs() <= asked.seconds());
            off <= 1 || widths.any(rounds)
        };
        is_near(self.start, asked.start) && is_near(self.end, asked.end)
    }

    /// The range between two times of a reply, each rounded to the nearest second; `None` if one of them is in no form
    /// that [`parse_time`] reads.
    pub fn parse(start: &str, end: &str) -> Option<Self> {
        let second = |text| Some(parse_time(text)?.round(jiff::Unit::Second).ok()?.as_second());
        Some(Self { start: second(start)?, end: second(end)? })
    }
}

/// A time in one of the forms that services write: RFC 3339, the same without a zone (UTC), or Unix seconds.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.starts_with(is_digit) && text.chars().all(|c| is_digit(c) || c == '.') {
        return from_unix_seconds(text.parse().ok()?);
    }
    // A date without a time names no instant.
    text.contains(':').then_some(())?;
    text.parse()
        .ok()
        .or_else(|| Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp()))
}

impl fmt::Display for TimeRange {
    /// `06:13 to 06:18 UTC`, with dates if these differ.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = (instant(self.start), instant(self.end));
        let format = match self.start.div_euclid(86_400) == self.end.div_euclid(86_400) {
            true if self.start % 60 == 0 && self.end % 60 == 0 => "%H:%M",
            true => "%H:%M:%S",
            false => "%F %H:%M:%S",
        };
        write!(f, "{} to {} UTC", start.strftime(format), end.strftime(format))
    }
}

/// The bounds of a range that a service ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// The start.
    Start,
    /// The end.
    End,
    /// Both.
    Both,
}

/// An RFC 3339 timestamp: date, `T`, time with seconds, and `Z` or an offset in hours and minutes. Other ISO 8601 forms
/// are invalid.
pub fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let rest = without(text, "0000-00-00T00:00:00")?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.strip_prefix(is_digit)?.trim_start_matches(is_digit),
        None => rest,
    };
    let is_zone = ["Z", "+00:00", "-00:00"].iter().any(|form| without(zone, form) == Some(""));
    is_zone.then(|| text.parse().ok())?
}

/// Rest after a text of this form, in which `0` is any digit and letters have no case.
fn without<'a>(text: &'a str, form: &str) -> Option<&'a str> {
    let (text, rest) = text.split_at_checked(form.len())?;
    let fits = |(byte, form): (u8, u8)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte.eq_ignore_ascii_case(&form),
    };
    text.bytes().zip(form.bytes()).all(fits).then_some(rest)
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// The beginning of a Unix second.
pub fn instant(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A Unix second as written in a query: RFC 3339 in UTC (`2026-01-01T00:00:00Z`).
pub fn rfc3339(second: i64) -> String {
    instant(second).to_string()
}

pds_core::worded! {
    /// Whether the service counts what happens at the last instant of a range, which the interface does not say.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum RangeEnd {
        /// It does not: ranges that follow one another share nothing.
        #[default]
        Exclusive = "exclusive",
        /// It does: a range is requested up to a millisecond before its end.
        Inclusive = "inclusive",
        /// It counts the whole second in which the range ends: a range is requested up to a second before its end.
        InclusiveSecond = "inclusive-second",
    }
}

impl RangeEnd {
    /// Time by which the requested end of a range precedes its end.
    pub(super) fn margin(self) -> SignedDuration {
        match self {
            Self::Exclusive => SignedDuration::ZERO,
            Self::Inclusive => SignedDuration::from_millis(1),
            Self::InclusiveSecond => SignedDuration::from_secs(1),
        }
    }

    /// The range that a reply covers if it states `stated`.
    pub fn covered_range(self, stated: TimeRange) -> TimeRange {
        TimeRange { end: stated.end.saturating_add(self.margin().as_secs()), ..stated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_rounded_outwards_by_less_than_a_bucket_is_accepted() {
        let noon = 1_767_268_800;
        let range = |start: i64, end: i64| TimeRange { start: noon + start, end: noon + end };
        let asked = range(-290, 10);
        for (of, is) in [
            (asked, true),
            (range(-300, 60), true),
            (range(-300, 10), true),
            (range(-300, 20), true),
            (range(-300, 300), true),
            (range(-300, 0), false),
            (range(-280, 60), false),
            (range(-360, 60), false),
            (range(-600, 60), false),
            (range(-3600, 0), false),
            (range(-3600, 3600), false),
            (range(-86_390, 10), false),
        ] {
            assert_eq!(of.is_rounded_from(asked), is, "{of:?}");
        }
        assert!(!range(-3600, 0).is_rounded_from(range(-300, 0)), "the last hour is no five minutes");
    }

    #[test]
    fn ignored_bounds_differ_from_rounding_and_limits() {
        let six = 1_767_247_200;
        let range = |start: i64, end: i64| TimeRange { start: six + start, end: six + end };
        let asked = range(780, 1080);
        for (answered, ignored) in [
            (asked, None),
            (range(600, 1200), None),
            (range(900, 1080), None),
            (range(0, 3600), Some(Ignored::Both)),
            (range(780, 4380), Some(Ignored::End)),
            (range(-2520, 1080), Some(Ignored::Start)),
            (range(-2519, 1081), Some(Ignored::Both)),
            // An end that is written as the last second, or rounded to the nearest minute or down.
            (range(780, 1081), None),
            (range(779, 1079), None),
            (range(780, 1082), Some(Ignored::End)),
        ] {
            assert_eq!(answered.ignored_bounds(asked), ignored, "{answered}");
        }
        assert_eq!(range(780, 1080).ignored_bounds(range(800, 1100)), None);
        assert_eq!(range(780, 1140).ignored_bounds(range(800, 1100)), None);
        assert_eq!(range(790, 1091).ignored_bounds(range(800, 1100)), Some(Ignored::Both));
        assert_eq!(range(-86_400, 1).to_string(), "2025-12-31 06:00:00 to 2026-01-01 06:00:01 UTC");
    }

    #[test]
    fn bounds_are_sent_in_utc_without_fraction() {
        assert_eq!(rfc3339(1_767_225_600), "2026-01-01T00:00:00Z");
        assert_eq!(TimeRange { start: 10, end: 4 }.seconds(), 0);
        let parsed = TimeRange::parse("2026-01-01T01:00:00.4+01:00", "2026-01-01T00:01:00Z");
        assert_eq!(parsed, Some(TimeRange { start: 1_767_225_600, end: 1_767_225_660 }));
    }

    #[test]
    fn times_of_replies_are_read_in_the_usual_forms() {
        for text in [
            "2026-01-01T00:00:00Z",
            "2026-01-01T01:00:00+01:00",
            " 2026-01-01 00:00:00+00:00",
            "2026-01-01T00:00:00",
            "2026-01-01 00:00:00.000",
            "1767225600",
            "1767225600.000",
        ] {
            assert_eq!(parse_time(text), Some(instant(1_767_225_600)), "{text}");
        }
        for text in
            ["", "yesterday", "2026-01-01", "1767225600000", "1.2.3", "-1", "0x10", "12:00:00", "01/02/2026"]
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
        assert_eq!(TimeRange::parse("1767225600", "soon"), None);
    }

    #[test]
    fn only_rfc_3339_is_a_timestamp() {
        for text in [
            "2026-01-01T00:00:00Z",
            "2026-01-01t00:00:00.25z",
            "2026-01-01T01:00:00.123456789+01:00",
            "2025-12-31T19:30:00-04:30",
        ] {
            assert!(parse_rfc3339(text).is_some(), "{text}");
        }
        for text in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:00+01",
            "2026-01-01T00:00:00+0100",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00,5Z",
            "20260101T000000Z",
            "+002026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z[UTC]",
            "2026-13-01T00:00:00Z",
            "1767225600",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
