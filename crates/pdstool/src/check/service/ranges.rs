//! Ranges: their query names, rounding, ends and greatest length.

use crate::error::ToolError;
use pds_core::units;
use pds_interface::param::QueryNames;
use pds_interface::{RangeEnd, TimeRange};

use super::Findings;
use super::asking::{Asking, lasting, refused};

/// Names of start and end that services of this kind use.
const NAMES: [(&str, &str); 7] = [
    ("start", "end"),
    ("from", "to"),
    ("start_time", "end_time"),
    ("startTime", "endTime"),
    ("start_date", "end_date"),
    ("startDate", "endDate"),
    ("since", "until"),
];

/// Tests whether the service honours a range given by these names.
async fn heeds(asking: &mut Asking, names: &QueryNames) -> Result<Heeded, ToolError> {
    let odd = asking.odd();
    let before = std::mem::replace(&mut asking.names, names.clone());
    let minute = TimeRange { start: odd.start, end: odd.start + 60 };
    let of_odd = refused(asking.requests(odd).await);
    let heeded = match of_odd {
        Err(error) => Err(error),
        Ok(Err(_)) => Ok(Heeded::No),
        Ok(Ok(answer)) => match answer.range {
            Some(range) if range.is_rounded_from(odd) => Ok(Heeded::Named),
            Some(range) if (TimeRange { end: odd.end, ..range }).is_rounded_from(odd) => {
                Ok(Heeded::StartOnly)
            }
            Some(range) if (TimeRange { start: odd.start, ..range }).is_rounded_from(odd) => {
                Ok(Heeded::EndOnly)
            }
            Some(_) => Ok(Heeded::No),
            // Without a named range only the counts tell: a minute has a small part of its range's. Where the range is
            // ignored, the two differ by what comes between two requests.
            None => match (answer.total, asking.requests(minute).await) {
                (_, Err(error)) => Err(error),
                (Some(all), Ok(part)) if part.total.is_some_and(|part| part < all / 2.0) => {
                    Ok(Heeded::Unnamed)
                }
                (Some(all), _) if all > 0.0 => Ok(Heeded::No),
                _ => Ok(Heeded::Unknown),
            },
        },
    };
    asking.names = before;
    heeded
}

/// The bounds that the service honours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heeded {
    /// Both, and the reply says so.
    Named,
    /// Both, by the counts.
    Unnamed,
    StartOnly,
    EndOnly,
    No,
    /// There is no traffic to tell by.
    Unknown,
}

/// Finds the query names of a range. Returns whether any work.
///
/// # Errors
/// If the service does not answer.
pub async fn names(asking: &mut Asking, findings: &mut Findings) -> Result<bool, ToolError> {
    const CHECK: &str = "query names";
    let configured = asking.names.clone();
    let (start, end) = (&configured.start, &configured.end);
    let heeded = heeds(asking, &configured).await?;
    match heeded {
        Heeded::Named => {
            findings.report.ok(CHECK, format!("{start} and {end} are honoured"));
            findings.report.ok(CHECK, "replies state their range");
            return Ok(true);
        }
        Heeded::Unnamed => {
            let text = format!("{start} and {end} are honoured, judging by the counts of two ranges");
            findings.report.ok(CHECK, text);
            let text = "replies do not state their range: the exporter cannot notice an ignored range";
            findings.report.note(CHECK, text);
            return Ok(true);
        }
        Heeded::Unknown => {
            let text = "the app had no requests, and replies do not state their range: cannot be determined";
            findings.report.warning(CHECK, text, "Choose an app with traffic with --project and --app.");
            return Ok(false);
        }
        Heeded::StartOnly | Heeded::EndOnly | Heeded::No => {}
    }
    for (from, to) in NAMES {
        let names = QueryNames { start: from.to_owned(), end: to.to_owned(), ..configured.clone() };
        // A name that works stays.
        let names = match heeded {
            Heeded::StartOnly => QueryNames { start: start.clone(), ..names },
            Heeded::EndOnly => QueryNames { end: end.clone(), ..names },
            _ => names,
        };
        if names == configured || !matches!(heeds(asking, &names).await?, Heeded::Named | Heeded::Unnamed) {
            continue;
        }
        let text = format!(
            "{start} and {end} are not both honoured: the reply is for another range; {} and {} are",
            names.start, names.end
        );
        findings.report.problem(CHECK, text, "Add the lines below to the configuration.");
        if names.start != *start {
            findings.suggest("api.query_names", "start", format!("\"{}\"", names.start));
        }
        if names.end != *end {
            findings.suggest("api.query_names", "end", format!("\"{}\"", names.end));
        }
        asking.names = names;
        asking.total = asking.requests(asking.hour).await?.total.unwrap_or(0.0);
        return Ok(true);
    }
    let text = format!("neither {start} and {end} nor other common names are honoured");
    findings.report.problem(
        CHECK,
        text,
        "Ask the owner of the service for the names, and set api.query_names.",
    );
    Ok(false)
}

/// Whether ranges are rounded, and to what.
///
/// # Errors
/// If the service does not answer.
pub async fn rounding(asking: &mut Asking, findings: &mut Findings) -> Result<(), ToolError> {
    const CHECK: &str = "rounding";
    // A second beyond the hour on both sides is rounded by nearly a whole width, which shows the width.
    let asked = TimeRange { start: asking.hour.start - 1, end: asking.hour.end + 1 };
    let Some(range) = asking.requests(asked).await?.range else {
        findings.report.note(CHECK, "replies do not state their range: cannot be determined");
        return Ok(());
    };
    match range.rounding_of(asked) {
        Some(1) => findings.report.ok(CHECK, "ranges are answered to the second"),
        Some(width) => {
            let step = i64::try_from(asking.service.config.accounting.step.as_secs()).unwrap_or(0);
            let text =
                format!("ranges are rounded outwards to multiples of {}", lasting(width.unsigned_abs()));
            if step % width == 0 {
                findings.report.ok(CHECK, format!("{text}; accounting.step is a multiple of that"));
            } else {
                findings.report.problem(
                    CHECK,
                    text,
                    "Set accounting.step to a multiple of that: else requests are counted twice.",
                );
                findings.suggest("accounting", "step", super::asking::written(width));
            }
        }
        None => {
            let text = format!(
                "a range of {} is answered by one of {}",
                lasting(asked.seconds()),
                lasting(range.seconds())
            );
            findings.report.problem(CHECK, text, "Report it to the service's owner: nothing can be counted.");
        }
    }
    Ok(())
}

const ENDS: &str = "range ends";

/// Whether a range counts its last instant: one range against its parts.
///
/// # Errors
/// If the service does not answer.
pub async fn ends(asking: &mut Asking, findings: &mut Findings) -> Result<(), ToolError> {
    // Each boundary between parts is another chance that something happened just there.
    let mut boundaries = 0;
    let mut sure = false;
    for parts in [2, 4, 8] {
        let Some(sum) = sum_of(asking, parts, RangeEnd::Exclusive).await? else {
            findings.report.note(ENDS, "parts of the hour are rounded: cannot be determined");
            return Ok(());
        };
        let counted = format!(
            "{parts} parts of an hour count {} requests, the hour {}",
            units::count(sum),
            units::count(asking.total)
        );
        if sum > asking.total {
            // Confirmed by asking for ends a millisecond earlier.
            let exact = sum_of(asking, parts, RangeEnd::Inclusive).await?;
            inclusive_ends(asking, exact, &counted, findings);
            return Ok(());
        }
        if sum < asking.total {
            let remedy =
                "Run the check again: the hour may still have changed. Otherwise counters are too low.";
            findings.report.warning(ENDS, counted, remedy);
            return Ok(());
        }
        boundaries += parts - 1;
        // Unlikely that nothing happened at all the boundaries.
        sure = asking.total / 3600.0 * f64::from(boundaries) > 4.0;
        if sure {
            break;
        }
    }
    exclusive_ends(asking, sure, findings);
    Ok(())
}

/// Parts of an hour count more than the hour; `exact` is what they count with ends a millisecond earlier.
fn inclusive_ends(asking: &Asking, exact: Option<f64>, counted: &str, findings: &mut Findings) {
    let text = format!("ranges include their last instant: {counted}");
    if exact.is_none_or(|exact| exact > asking.total) {
        let text = format!("{text}; and ends a millisecond earlier do not help");
        let remedy = "Report it to the service's owner: counters are too high.";
        findings.report.problem(ENDS, text, remedy);
    } else if asking.service.config.accounting.range_end == RangeEnd::Inclusive {
        findings.report.ok(ENDS, format!("{text}; accounting.range_end says so"));
    } else {
        findings.report.problem(ENDS, text, "Add the line below to the configuration.");
        findings.suggest("accounting", "range_end", "\"inclusive\"");
    }
}

/// Parts of an hour add up to the hour; `sure` if there were enough requests to tell.
fn exclusive_ends(asking: &Asking, sure: bool, findings: &mut Findings) {
    let text = "ranges exclude their last instant: parts of an hour add up to the hour";
    if !sure {
        findings.report.note(ENDS, format!("{text}, as far as so few requests tell"));
    } else if asking.service.config.accounting.range_end == RangeEnd::Inclusive {
        findings.report.problem(ENDS, text, "Add the line below to the configuration.");
        findings.suggest("accounting", "range_end", "\"exclusive\"");
    } else {
        findings.report.ok(ENDS, text);
    }
}

/// The requests of so many parts of the hour together; `None` where a part is not answered as asked for.
async fn sum_of(asking: &mut Asking, parts: u32, end: RangeEnd) -> Result<Option<f64>, ToolError> {
    let (hour, length) = (asking.hour, 3600 / i64::from(parts));
    let mut sum = 0.0;
    for part in 0..i64::from(parts) {
        let start = hour.start + part * length;
        let range = TimeRange { start, end: start + length };
        let answer = asking.counted(range, end, None).await?;
        if answer.range.is_some_and(|answered| answered != range) {
            return Ok(None);
        }
        sum += answer.total.unwrap_or(0.0);
    }
    Ok(Some(sum))
}

/// The longest range that is answered. After an outage the exporter asks for up to six hours at once.
///
/// # Errors
/// If the service does not answer.
pub async fn longest(asking: &mut Asking, findings: &mut Findings) -> Result<(), ToolError> {
    const CHECK: &str = "longest range";
    const HOURS: [i64; 5] = [6, 24, 7 * 24, 30 * 24, 90 * 24];
    let mut answered = 1;
    let mut limit = None;
    for hours in HOURS {
        let range = TimeRange { start: asking.hour.end - hours * 3600, end: asking.hour.end };
        match refused(asking.requests(range).await)? {
            Ok(answer) => match answer.range {
                Some(named) if !named.is_rounded_from(range) => {
                    limit = Some(format!("answered by one of {}", lasting(named.seconds())));
                }
                _ => answered = hours,
            },
            Err(why) => limit = Some(format!("refused: {why}")),
        }
        if let Some(limit) = limit {
            let length = |hours: i64| lasting((hours * 3600).unsigned_abs());
            let text = format!("{} are answered, {} are {limit}", length(answered), length(hours));
            if answered < HOURS[0] {
                findings.report.warning(CHECK, text, "After an outage up to 6 h are asked for at once: set accounting.max_catch_up to what is answered.");
                findings.suggest("accounting", "max_catch_up", super::asking::written(answered * 3600));
            } else {
                findings.report.ok(CHECK, text);
            }
            return Ok(());
        }
    }
    findings.report.ok(CHECK, "90 d are answered at once");
    Ok(())
}
