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

    /// Whether this is `asked` or that rounded outwards, to multiples of some width by less than one width on each
    /// side. A width is one that services use for their buckets, and no larger than `asked` is long.
    #[must_use]
    pub fn is_rounded_from(self, asked: Self) -> bool {
        self.rounding_of(asked).is_some()
    }

    /// The width to whose multiples `asked` was rounded outwards to give this range; 1 without rounding.
    #[must_use]
    pub fn rounding_of(self, asked: Self) -> Option<i64> {
        const WIDTHS: [i64; 14] = [1, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];
        let (before, after) = (asked.start.saturating_sub(self.start), self.end.saturating_sub(asked.end));
        let rounds = |width: i64| {
            let less = |excess| (0..width).contains(&excess);
            let whole = |bound: i64, excess| excess == 0 || bound.rem_euclid(width) == 0;
            let bounds = whole(self.start, before) && whole(self.end, after);
            less(before) && less(after) && bounds && width <= asked.end.saturating_sub(asked.start)
        };
        if self == asked { Some(1) } else { WIDTHS.into_iter().find(|width| rounds(*width)) }
    }

    /// The range between two RFC 3339 timestamps, rounded to the nearest second; `None` if one of them is not valid.
    #[must_use]
    pub fn parse(start: &str, end: &str) -> Option<Self> {
        let second = |text: &str| -> Option<i64> {
            let time: Timestamp = text.trim().parse().ok()?;
            Some(time.round(jiff::Unit::Second).ok()?.as_second())
        };
        Some(Self { start: second(start)?, end: second(end)? })
    }
}

/// An RFC 3339 timestamp: date, `T`, time with seconds, and `Z` or an offset in hours and minutes. Other ISO 8601
/// forms are none.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let (head, rest) = text.split_at_checked("2026-01-01T00:00:00".len())?;
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => fraction.strip_prefix(is_digit)?.trim_start_matches(is_digit),
        None => rest,
    };
    let in_form = |text: &str, form: &str| {
        let is_in = |(byte, form): (u8, u8)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte.eq_ignore_ascii_case(&form),
        };
        text.len() == form.len() && text.bytes().zip(form.bytes()).all(is_in)
    };
    let offset = rest.strip_prefix(['+', '-']).is_some_and(|offset| in_form(offset, "00:00"));
    let valid = in_form(head, "0000-00-00T00:00:00") && (offset || in_form(rest, "Z"));
    valid.then(|| text.parse().ok()).flatten()
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// The beginning of a Unix second.
#[must_use]
pub fn instant(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A Unix second as written in a query: RFC 3339 in UTC (`2026-01-01T00:00:00Z`).
#[must_use]
pub fn rfc3339(second: i64) -> String {
    instant(second).to_string()
}

/// Whether the service counts what happens at the last instant of a range, which the interface does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RangeEnd {
    /// It does not: ranges that follow one another share nothing.
    #[default]
    Exclusive,
    /// It does: a range is asked for up to a millisecond before its end.
    Inclusive,
}

impl RangeEnd {
    /// Each word with its meaning.
    pub const WORDS: &[(&str, Self)] = &[("exclusive", Self::Exclusive), ("inclusive", Self::Inclusive)];
}

/// A millisecond before a Unix second: the end of a range for a service that includes it.
#[must_use]
pub fn before(second: i64) -> Timestamp {
    let millisecond = second.saturating_mul(1000).saturating_sub(1);
    Timestamp::from_millisecond(millisecond).unwrap_or(Timestamp::UNIX_EPOCH)
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
    fn bounds_are_sent_in_utc_without_fraction() {
        assert_eq!(rfc3339(1_767_225_600), "2026-01-01T00:00:00Z");
        assert_eq!(TimeRange { start: 10, end: 4 }.seconds(), 0);
        let parsed = TimeRange::parse("2026-01-01T01:00:00.4+01:00", "2026-01-01T00:01:00Z");
        assert_eq!(parsed, Some(TimeRange { start: 1_767_225_600, end: 1_767_225_660 }));
        assert_eq!(TimeRange::parse("yesterday", ""), None);
    }

    #[test]
    fn only_rfc_3339_is_taken_for_a_timestamp() {
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
