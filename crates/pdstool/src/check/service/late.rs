//! How late data arrives: one range, requested again at growing ages.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::console::Console;
use crate::error::ToolError;
use pds_core::units;
use pds_interface::TimeRange;

use super::Findings;
use super::asking::{Asking, lasting, written};

/// The ages in seconds at which the range is asked for.
const AGES: [u64; 22] =
    [1, 2, 3, 5, 8, 12, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600];

/// How long the range is.
const LENGTH: i64 = 60;

/// Watches one range for `period`, and finds out after what time nothing more arrives.
///
/// # Errors
/// If the service does not answer.
pub async fn watch(
    console: &mut Console,
    asking: &mut Asking,
    findings: &mut Findings,
    period: Duration,
) -> Result<(), ToolError> {
    const CHECK: &str = "late data";
    let end = Timestamp::now().as_second();
    let range = TimeRange { start: end - LENGTH, end };
    let began = Instant::now();
    let mut seen: Vec<(u64, f64)> = Vec::new();
    let last = period.as_secs().clamp(1, 3600);
    let ages = AGES.into_iter().filter(|age| *age < last).chain([last]);
    for age in ages {
        if console.can_ask {
            console.say(&format!("late data: asking again at age {}", lasting(age)));
        }
        tokio::time::sleep_until(began + Duration::from_secs(age)).await;
        seen.push((age, asking.requests(range).await?.total.unwrap_or(0.0)));
    }
    let most = seen.last().map_or(0.0, |(_, total)| *total);
    let settle = i64::try_from(asking.service.config.poll.settle.as_secs()).unwrap_or(0);
    if most == 0.0 {
        findings.report.note(CHECK, "the app had no requests in the last minute: cannot be determined");
        return Ok(());
    }
    // The first age from which on nothing changed.
    let changed = seen.windows(2).rposition(|pair| matches!(pair, [(_, one), (_, other)] if one != other));
    let needed = changed.map_or(seen.first(), |at| seen.get(at + 1)).map_or(0, |(age, _)| *age);
    let first = seen.first().map_or(0.0, |(_, total)| *total);
    let late = units::percent((1.0 - first / most).max(0.0));
    if changed.is_some_and(|at| at + 2 == seen.len()) {
        let text = format!(
            "data still arrived {} after its minute; {late} of the requests were late",
            lasting(needed)
        );
        findings.report.warning(
            CHECK,
            text,
            "Watch longer with --late-for; accounting.recheck_after counts what comes after poll.settle.",
        );
        return Ok(());
    }
    let needed = i64::try_from(needed).unwrap_or(i64::MAX);
    let text = match changed {
        None => format!("all {} requests of the last minute were there after 1 s", units::count(most)),
        Some(_) => format!(
            "all {} requests of a minute were there after {}; {late} were late",
            units::count(most),
            lasting(needed.unsigned_abs())
        ),
    };
    if needed > settle {
        findings.report.warning(CHECK, text, "Add the line below to the configuration.");
        findings.suggest("poll", "settle", written(needed));
    } else {
        findings.report.ok(CHECK, format!("{text}; poll.settle is {}", lasting(settle.unsigned_abs())));
    }
    Ok(())
}
