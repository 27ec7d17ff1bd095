//! Numbers, durations and times as people read them, for pages and programs. All times are UTC.

use std::time::Duration;

use jiff::Timestamp;

/// `duration` in seconds: the `f64` that its decimal text parses to. [`Duration::as_secs_f64`] rounds twice, so it may
/// differ.
pub fn as_seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e9
}

/// The whole seconds of `duration`, rounded down, for calculations with Unix times; at most [`i64::MAX`].
pub fn whole_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

/// Seconds with the unit that suits them: `41.2 ms`, `1.24 s`, `2 min 5 s`, `3 h 20 min`, `2 d 8 h`.
pub fn seconds(value: f64) -> String {
    match value {
        0.0 => "0 s".to_owned(),
        v if v < 1e-3 => format!("{} µs", number(v * 1e6)),
        v if v < 1.0 => format!("{} ms", number(v * 1e3)),
        v if v < 60.0 => format!("{} s", number(v)),
        v if v < 3600.0 => two_units(v.round(), 60.0, "min", "s"),
        v if v < 86_400.0 => two_units((v / 60.0).round(), 60.0, "h", "min"),
        v => two_units((v / 3600.0).round(), 24.0, "d", "h"),
    }
}

/// `value` in larger units and a rest of smaller ones.
fn two_units(value: f64, per_large: f64, large: &str, small: &str) -> String {
    let (whole, rest) = ((value / per_large).floor(), value % per_large);
    if rest == 0.0 { format!("{whole} {large}") } else { format!("{whole} {large} {rest} {small}") }
}

/// An age in one or two units: `12 s`, `4 min`, `3 h 20 min`, `9 d`. Coarser than [`seconds`], since it changes while
/// it is read. The pages' script writes ages the same way.
pub fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{minutes} min"),
        7200..172_800 if minutes % 60 == 0 => format!("{hours} h"),
        7200..172_800 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d"),
    }
}

/// Three significant digits without trailing zeros, and from a hundred on a whole number: `0.0123`, `1.5`, `1,234,567`.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || value.abs() >= 100.0 {
        return rounded(value);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of an f64 is within -324..=308")]
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A value rounded to a whole number, with its digits in groups: `1,234,567`.
pub fn rounded(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let digits = if value.is_finite() { grouped(&digits) } else { digits };
    if value < 0.0 { format!("-{digits}") } else { digits }
}

/// A count, with its digits in groups: `1,234,567`; `u64::MAX` if it does not fit.
pub fn count(value: impl TryInto<u64>) -> String {
    grouped(&value.try_into().unwrap_or(u64::MAX).to_string())
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 app`, `2,000 apps`; `u64::MAX` if it does not fit.
pub fn plural(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A share of one: `97.25 %`.
pub fn percent(share: f64) -> String {
    // Nearly all is not all, apart from the noise of a sum.
    let is_part = share > 1e-9 && share < 1.0 - 1e-9;
    let percent = if is_part { (share * 100.0).clamp(0.01, 99.99) } else { share * 100.0 };
    format!("{percent:.2} %")
}

/// US dollars to the cent, and amounts below ten cents to three digits.
pub fn dollars(value: f64) -> String {
    if value >= 0.1 || value == 0.0 { format!("${value:.2}") } else { format!("${}", number(value)) }
}

/// Bytes in decimal units, as the service counts them.
pub fn bytes(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} GB", number(v / 1e9)),
        v if v >= 1e6 => format!("{} MB", number(v / 1e6)),
        v => format!("{} bytes", rounded(v)),
    }
}

/// A point in time: `2026-03-01 03:00:00 UTC`.
pub fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A time of day: `03:00:00`.
pub fn clock(time: Timestamp) -> String {
    time.strftime("%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_in_seconds_is_the_float_that_a_label_is_parsed_to() {
        for millis in 0..=60_000_u32 {
            assert_eq!(as_seconds(Duration::from_millis(millis.into())), f64::from(millis) / 1e3);
        }
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        for (value, text) in [
            (0.0, "0 s"),
            (0.000_25, "250 µs"),
            (0.0412, "41.2 ms"),
            (0.5, "500 ms"),
            (1.2345, "1.23 s"),
            (59.96, "60 s"),
            (60.0, "1 min"),
            (90.0, "1 min 30 s"),
            (125.0, "2 min 5 s"),
            (150.4, "2 min 30 s"),
            (3600.0, "1 h"),
            (12_000.0, "3 h 20 min"),
            (200_000.0, "2 d 8 h"),
        ] {
            assert_eq!(seconds(value), text);
        }
    }

    #[test]
    fn ages_have_at_most_two_units() {
        let ages = [-3, 0, 119, 120, 7199, 7200, 12_000, 172_800].map(age);
        assert_eq!(ages, ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h", "3 h 20 min", "2 d"]);
    }

    #[test]
    fn numbers_have_three_digits_or_groups() {
        let numbers = [0.0, 0.00012, 0.012_345, 1.5, 12.0, 99.96, 1_234_567.8, -4000.0].map(number);
        assert_eq!(numbers, ["0", "0.00012", "0.0123", "1.5", "12", "100", "1,234,568", "-4,000"]);
        assert_eq!([0.0, 999.0, 1e6, f64::INFINITY].map(rounded), ["0", "999", "1,000,000", "inf"]);
        assert_eq!([1, 2_000].map(|n| plural(n, "app", "apps")), ["1 app", "2,000 apps"]);
        assert_eq!([1.1016, 0.0123].map(dollars), ["$1.10", "$0.0123"]);
        assert_eq!([16e9, 2e6, 4096.0].map(bytes), ["16 GB", "2 MB", "4,096 bytes"]);
        assert_eq!([0.975, 1.0, 0.9997, 0.0].map(percent), ["97.50 %", "100.00 %", "99.97 %", "0.00 %"]);
        assert_eq!([0.99996, 0.00004].map(percent), ["99.99 %", "0.01 %"]);
        assert_eq!([1.0 - f64::EPSILON, f64::EPSILON].map(percent), ["100.00 %", "0.00 %"]);
    }

    #[test]
    fn times_are_in_utc() {
        let at: Timestamp = "2026-03-01T04:00:00+01:00".parse().unwrap();
        assert_eq!((time(at), clock(at)), ("2026-03-01 03:00:00 UTC".to_owned(), "03:00:00".to_owned()));
    }
}
