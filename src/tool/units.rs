//! Numbers as people read them, with their unit.

use jiff::Timestamp;

/// Seconds: `12.3 ms`, `1.25 s`, `2 min 5 s`, `3 h 20 min`.
#[must_use]
pub fn seconds(value: f64) -> String {
    if value < 0.001 {
        format!("{} µs", significant(value * 1e6))
    } else if value < 1.0 {
        format!("{} ms", significant(value * 1e3))
    } else if value < 60.0 {
        format!("{} s", significant(value))
    } else if value < 3600.0 {
        pair(value.round(), 60.0, "min", "s")
    } else if value < 86_400.0 {
        pair((value / 60.0).round(), 60.0, "h", "min")
    } else {
        pair((value / 3600.0).round(), 24.0, "d", "h")
    }
}

fn pair(small_units: f64, per_large: f64, large: &str, small: &str) -> String {
    let (whole, rest) = ((small_units / per_large).floor(), small_units % per_large);
    if rest == 0.0 { format!("{whole} {large}") } else { format!("{whole} {large} {rest} {small}") }
}

/// Three significant digits, without zeros at the end: `12.3`, `0.05`, `1250`.
#[must_use]
pub fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of an f64 is within -324..=308")]
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A count with its digits in groups: `1 234 567`.
#[must_use]
pub fn count(value: f64) -> String {
    let text = format!("{value:.0}");
    let mut grouped = String::with_capacity(text.len() + text.len() / 3);
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && digit != '-' && (text.len() - at).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count of things.
#[must_use]
pub fn count_of(value: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "what is counted here stays below 2^53")]
    count(value as f64)
}

/// Whole seconds.
#[must_use]
pub fn seconds_of(value: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a range of time stays below 2^53 seconds")]
    seconds(value as f64)
}

/// A share of one: `97.5 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Dollars for an hour: `$0.43/h`.
#[must_use]
pub fn dollars_per_hour(value: f64) -> String {
    if value < 0.1 { format!("${}/h", significant(value)) } else { format!("${value:.2}/h") }
}

/// A point in time, in UTC, to the second.
#[must_use]
pub fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_fits() {
        for (value, text) in [
            (0.000_25, "250 µs"),
            (0.0123, "12.3 ms"),
            (0.9, "900 ms"),
            (1.0, "1 s"),
            (59.96, "60 s"),
            (125.0, "2 min 5 s"),
            (12_000.0, "3 h 20 min"),
            (200_000.0, "2 d 8 h"),
        ] {
            assert_eq!(seconds(value), text);
        }
    }

    #[test]
    fn numbers_are_short_and_counts_are_grouped() {
        assert_eq!(significant(0.0), "0");
        assert_eq!(significant(0.012_345), "0.0123");
        assert_eq!(significant(1250.4), "1250");
        assert_eq!(
            (count(0.0), count(999.0), count(1_234_567.0)),
            ("0".into(), "999".into(), "1 234 567".into())
        );
        assert_eq!(percent(0.975), "97.5 %");
        assert_eq!(
            (dollars_per_hour(0.432), dollars_per_hour(0.0123)),
            ("$0.43/h".into(), "$0.0123/h".into())
        );
    }
}
