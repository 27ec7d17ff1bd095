//! Numbers and times on pages: those of [`pds_core::units`], and time elements that the script updates.

use jiff::Timestamp;
use maud::{Markup, html};

pub use crate::status::model::resource_title as resource;
use pds_core::units::span;
pub use pds_core::units::{bytes, clock, counted as count, dollars, number, seconds, time as absolute};

/// How long ago `time` was: a time element that the script updates, with the time itself as tooltip.
#[must_use]
pub fn ago(time: Timestamp, now: Timestamp) -> Markup {
    relative(time, "ago", &span(now.as_second() - time.as_second()), " ago")
}

/// Like [`ago`], without the word.
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
