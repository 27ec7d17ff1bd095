//! Numbers, times and verdicts on pages: texts of [`pds_core::units`], time elements that the script updates, and
//! signs.

use jiff::Timestamp;
use maud::{Markup, html};

use pds_core::units;
pub(super) use pds_core::units::{bytes, clock, count, number, plural, seconds, time as absolute};
use pds_diagnosis::{State, Verdict};
pub(super) use pds_diagnosis::{class_title as class, resource_title as resource};

/// How long ago `time` was: a time element that the script updates, with the time itself as tooltip.
pub(super) fn ago(time: Timestamp, now: Timestamp) -> Markup {
    relative(time, "ago", &units::age(now.as_second() - time.as_second()), " ago")
}

/// Like [`ago`], without the word.
pub(super) fn age(time: Timestamp, now: Timestamp) -> Markup {
    relative(time, "age", &units::age(now.as_second() - time.as_second()), "")
}

/// How long until `time`; "now" once it has passed.
pub(super) fn until(time: Timestamp, now: Timestamp) -> Markup {
    let ahead = time.as_second() - now.as_second();
    let text = if ahead <= 0 { "now".to_owned() } else { format!("in {}", units::age(ahead)) };
    relative(time, "until", &text, "")
}

fn relative(time: Timestamp, kind: &str, text: &str, after: &str) -> Markup {
    html! { time datetime=(time) data-relative=(kind) title=(absolute(time)) { (text) (after) } }
}

/// A verdict: a sign, a colour and a word.
pub(super) fn verdict(verdict: Verdict) -> Markup {
    graded(verdict, verdict.as_str())
}

/// A word with the sign and colour of `grade`.
pub(super) fn graded(grade: Verdict, word: &str) -> Markup {
    html! { span class={ "verdict " (grade.as_str()) } { span aria-hidden="true" { (sign(grade)) } " " (word) } }
}

/// The sign of a verdict, which does not rely on colour.
pub(super) fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Problem => "✕",
        Verdict::Warning => "▲",
        Verdict::Waiting => "○",
        Verdict::Ok => "✓",
    }
}

/// The verdict that lends a resource's state its colour and sign.
pub(super) fn verdict_of(state: State) -> Verdict {
    match state {
        State::Stale | State::Failing => Verdict::Problem,
        State::Late => Verdict::Warning,
        State::Waiting => Verdict::Waiting,
        State::Fresh => Verdict::Ok,
    }
}

/// Stands in for a missing value.
pub(super) fn missing() -> Markup {
    html! { span .missing title="no value" { "–" } }
}

/// `value` as text, or the mark of a missing value.
pub(super) fn value<T>(value: Option<T>, write: impl FnOnce(T) -> String) -> Markup {
    match value {
        Some(value) => html! { (write(value)) },
        None => missing(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
