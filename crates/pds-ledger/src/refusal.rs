//! Why a reply is not added.

use std::time::Duration;

use pds_interface::TimeRange;

/// Why a reply is not added. The cursor stays, and the range is asked for again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The range does not begin at the cursor.
    #[error("the range from {asked} does not begin where the last one ended, at {until}")]
    NotNext {
        /// Where the range begins.
        asked: i64,
        /// The cursor.
        until: i64,
    },
    /// The reply does not say how many there were.
    #[error("the reply does not say how many there were")]
    NoTotal,
    /// There were requests, but the reply has no distribution of their response times.
    #[error("the reply counts {0} requests but has no distribution of their response times")]
    NoDistribution(u64),
    /// The reply is about another range than was asked for.
    #[error("the reply is about {answered}, not about {asked}{}", remedy(*.asked, *.answered))]
    OtherRange {
        /// The range asked for.
        asked: TimeRange,
        /// The range in the reply.
        answered: TimeRange,
    },
    /// The range was older than `accounting.max_catch_up` when its reply came.
    #[error("the range from {start} was older than accounting.max_catch_up when it was answered")]
    TooOld {
        /// Where the range begins.
        start: i64,
    },
}

/// What to do about a reply about `answered` instead of `asked`, as far as that is known.
fn remedy(asked: TimeRange, answered: TimeRange) -> String {
    match answered.rounding_of(asked) {
        Some(width) => {
            let width = humantime::format_duration(Duration::from_secs(width.unsigned_abs()));
            format!(": the service rounds ranges to {width}; set accounting.step to a multiple of that")
        }
        None => String::new(),
    }
}
