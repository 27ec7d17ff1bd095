//! Numbers and times for people. All times are UTC.

use jiff::Timestamp;
use maud::{Markup, html};

/// Seconds with the unit that suits them: `412 ms`, `1.24 s`, `3.2 min`.
#[must_use]
pub fn seconds(value: f64) -> String {
    let (scaled, unit) = match value {
        0.0 => return "0 s".to_owned(),
        v if v < 1e-3 => (v * 1e6, "µs"),
        v if v < 1.0 => (v * 1e3, "ms"),
        v if v < 100.0 => (v, "s"),
        v if v < 7200.0 => (v / 60.0, "min"),
        v if v < 172_800.0 => (v / 3600.0, "h"),
        v => (v / 86_400.0, "d"),
    };
    format!("{} {unit}", number(scaled))
}

/// A number with three significant digits; from a thousand on, a whole number with groups of digits.
#[must_use]
pub fn number(value: f64) -> String {
    let text = match value.abs() {
        0.0 => return "0".to_owned(),
        v if v < 0.001 => return format!("{value:.1e}"),
        v if v < 1.0 => format!("{value:.3}"),
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => return thousands(value),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// US dollars to the cent, and small amounts to two digits.
#[must_use]
pub fn dollars(value: f64) -> String {
    if value >= 0.1 || value == 0.0 { format!("${value:.2}") } else { format!("${}", number(value)) }
}

/// Bytes in decimal units, as the service counts them.
#[must_use]
pub fn bytes(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} GB", number(v / 1e9)),
        v if v >= 1e6 => format!("{} MB", number(v / 1e6)),
        v => format!("{} bytes", thousands(v)),
    }
}

/// A span of time in one or two units: `12 s`, `4 min`, `3 h 20 min`, `9 d`.
#[must_use]
pub fn span(seconds: i64) -> String {
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

/// How long ago `time` was: a time element that the script updates, with the time itself as tooltip.
#[must_use]
pub fn ago(time: Timestamp, now: Timestamp) -> Markup {
    relative(time, "ago", &span(now.as_second() - time.as_second()), " ago")
}

/// As [`ago`] without the word.
#[must_use]
pub fn age(time: Timestamp, now: Timestamp) -> Markup {
    relative(time, "age", &span(now.as_second() - time.as_second()), "")
}

/// How long until `time`, which may have passed.
#[must_use]
pub fn until(time: Timestamp, now: Timestamp) -> Markup {
    let ahead = time.as_second() - now.as_second();
    if ahead <= 0 {
        return relative(time, "until", "now", "");
    }
    relative(time, "until", &format!("in {}", span(ahead)), "")
}

fn relative(time: Timestamp, kind: &str, text: &str, after: &str) -> Markup {
    html! { time datetime=(time) data-relative=(kind) title=(absolute(time)) { (text) (after) } }
}

/// A point in time: `2026-03-01 03:00:00 UTC`.
#[must_use]
pub fn absolute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A time of day: `03:00:00`.
#[must_use]
pub fn clock(time: Timestamp) -> String {
    time.strftime("%H:%M:%S").to_string()
}

/// So many of something: `1 app`, `2 apps`.
#[must_use]
pub fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The name of a resource: `response time`.
#[must_use]
pub fn resource(name: &str) -> String {
    match name {
        "app" => "settings".to_owned(),
        other => other.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_people_read() {
        let told: Vec<String> =
            [0.0, 0.000_25, 0.0412, 0.5, 1.2345, 61.0, 150.0, 86_400.0, 1e6].map(seconds).to_vec();
        assert_eq!(
            told,
            ["0 s", "250 µs", "41.2 ms", "500 ms", "1.23 s", "61 s", "2.5 min", "24 h", "11.6 d"]
        );
        let told: Vec<String> = [0.0, 0.00012, 12.0, 1_234_567.8, -4000.0].map(number).to_vec();
        assert_eq!(told, ["0", "1.2e-4", "12", "1,234,568", "-4,000"]);
        assert_eq!(
            (dollars(1.1016), dollars(0.0123), bytes(16e9)),
            ("$1.10".into(), "$0.012".into(), "16 GB".into())
        );
    }

    #[test]
    fn spans_have_at_most_two_units() {
        let told: Vec<String> = [-3, 0, 119, 120, 7199, 7200, 12_000, 172_800].map(span).to_vec();
        assert_eq!(told, ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h", "3 h 20 min", "2 d"]);
    }

    #[test]
    fn a_relative_time_holds_the_time_itself() {
        let (time, now): (Timestamp, Timestamp) =
            ("2026-03-01T03:00:00Z".parse().unwrap(), "2026-03-01T03:00:12Z".parse().unwrap());
        assert_eq!(
            ago(time, now).into_string(),
            r#"<time datetime="2026-03-01T03:00:00Z" data-relative="ago" title="2026-03-01 03:00:00 UTC">12 s ago</time>"#
        );
        assert!(until(now, time).into_string().ends_with(">in 12 s</time>"));
    }
}
