//! Ranges: their query names, rounding, ends and greatest length.

use crate::error::{Result, ToolError};
use crate::report::Finding;
use pds_core::units;
use pds_interface::param::QueryNames;
use pds_interface::{Ignored, RangeEnd, Tally, TimeRange};

use super::ADD_LINE;
use super::probe::{Prober, lasting, refused, written};

/// Names of start and end in similar services.
const NAMES: [(&str, &str); 7] = [
    ("start", "end"),
    ("from", "to"),
    ("start_time", "end_time"),
    ("startTime", "endTime"),
    ("start_date", "end_date"),
    ("startDate", "endDate"),
    ("since", "until"),
];

/// How a service treats the bounds of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heeded {
    /// It honours both, as the reply states.
    Named,
    /// It honours both, as the counts show.
    Unnamed,
    No(Ignored),
    /// There is too little traffic to decide.
    Unknown,
}

/// Tests which bounds of a range the service honours by the current names.
async fn heeded(prober: &mut Prober) -> Result<Heeded> {
    let odd = prober.odd();
    let Ok(answer) = refused(prober.requests(odd).await)? else { return Ok(Heeded::No(Ignored::Both)) };
    if let Some(range) = answer.range {
        // The requested range is far from the default, so a bound that is near it is honoured.
        return Ok(match range {
            _ if range.is_near(odd) => Heeded::Named,
            _ if (TimeRange { end: odd.end, ..range }).is_near(odd) => Heeded::No(Ignored::End),
            _ if (TimeRange { start: odd.start, ..range }).is_near(odd) => Heeded::No(Ignored::Start),
            _ => Heeded::No(Ignored::Both),
        });
    }
    // If the reply states no range, the counts decide: a minute has a small part of the range's count. If the range is
    // ignored, both counts are nearly equal.
    let part = prober.requests(TimeRange { end: odd.start + 60, ..odd }).await?.count();
    Ok(match answer.count() {
        Some(all) if part.is_some_and(|part| part < all / 2.0) => Heeded::Unnamed,
        Some(all) if all > 0.0 => Heeded::No(Ignored::Both),
        _ => Heeded::Unknown,
    })
}

/// Finds the query names of a range. Returns whether any work.
///
/// # Errors
/// If the service does not answer.
pub async fn names(prober: &mut Prober) -> Result<(bool, Vec<Finding>)> {
    let configured = prober.names.clone();
    let (start, end) = (&*configured.start, &*configured.end);
    let ignored = match heeded(prober).await? {
        Heeded::Named => {
            let found = [format!("{start} and {end} are honoured"), "replies state their range".to_owned()];
            return Ok((true, found.map(Finding::ok).into()));
        }
        Heeded::Unnamed => {
            let honoured = format!("{start} and {end} are honoured, judging by the counts of two ranges");
            let unnamed = "replies do not state their range: the exporter cannot detect an ignored range";
            return Ok((true, vec![Finding::ok(honoured), Finding::note(unnamed)]));
        }
        Heeded::Unknown => {
            let text = "the app had no requests, and replies do not state their range: cannot be determined";
            let remedy = "Choose an app with traffic with --project and --app.";
            return Ok((false, vec![Finding::warning(text, remedy)]));
        }
        Heeded::No(ignored) => ignored,
    };
    for (from, to) in NAMES {
        // A name that works stays.
        let from = if ignored == Ignored::End { start } else { from };
        let to = if ignored == Ignored::Start { end } else { to };
        if (from, to) == (start, end) {
            continue;
        }
        prober.names = QueryNames { start: from.to_owned(), end: to.to_owned(), ..configured.clone() };
        if !matches!(heeded(prober).await?, Heeded::Named | Heeded::Unnamed) {
            continue;
        }
        let text = format!(
            "{start} and {end} are not both honoured: the reply is for another range; {from} and {to} are"
        );
        let mut found = Finding::problem(text, "Add the lines below to the configuration.");
        for (key, configured, name) in [("start", start, from), ("end", end, to)] {
            if configured != name {
                found = found.with("api.query_names", key, format!("\"{name}\""));
            }
        }
        prober.total = prober.requests(prober.hour).await?.count().unwrap_or(0.0);
        return Ok((true, vec![found]));
    }
    let text = format!("neither {start} and {end} nor other common names are honoured");
    prober.names = configured;
    let remedy = "Ask the owner of the service for the names, and set api.query_names.";
    Ok((false, vec![Finding::problem(text, remedy)]))
}

/// Whether ranges are rounded, and to which width.
///
/// # Errors
/// If the service does not answer.
pub async fn rounding(prober: &mut Prober) -> Result<Finding> {
    // A range a second longer than the hour on both sides is rounded by nearly a whole width, which reveals the width.
    let asked = TimeRange { start: prober.hour.start - 1, end: prober.hour.end + 1 };
    let Some(range) = prober.requests(asked).await?.range else {
        return Ok(Finding::note("replies do not state their range: cannot be determined"));
    };
    Ok(match range.rounding_of(asked).map(i64::unsigned_abs) {
        Some(1) => Finding::ok("ranges are exact to the second"),
        Some(width) => {
            let text = format!("ranges are rounded outwards to multiples of {}", lasting(width));
            if prober.service.config.accounting.step.as_secs().is_multiple_of(width) {
                return Ok(Finding::ok(format!("{text}; accounting.step is a multiple of that")));
            }
            let remedy = "Set accounting.step to a multiple of that: else requests are counted twice.";
            Finding::problem(text, remedy).with("accounting", "step", written(width))
        }
        None => {
            let text = format!("for {asked}, the reply covers {range}");
            Finding::problem(text, "Report it to the service's owner: nothing can be counted.")
        }
    })
}

/// Whether a range counts its last instant, by comparing a range with its parts.
///
/// # Errors
/// If the service does not answer.
pub async fn ends(prober: &mut Prober) -> Result<Finding> {
    // Each boundary between parts is another chance that a request fell on it.
    let mut boundaries = 0;
    let mut sure = false;
    for parts in [2, 4, 8] {
        let Some(sum) = sum_of(prober, parts, RangeEnd::Exclusive).await? else {
            let text = "replies about parts of the hour are about other ranges: cannot be determined";
            return Ok(Finding::note(text));
        };
        let (of_parts, of_hour) = (units::rounded(sum), units::rounded(prober.total));
        let counted = format!("{parts} parts of an hour count {of_parts} requests, the hour {of_hour}");
        if sum > prober.total {
            // Confirms with ends a millisecond or a second earlier.
            for (end, what) in [(RangeEnd::Inclusive, "instant"), (RangeEnd::InclusiveSecond, "second")] {
                if sum_of(prober, parts, end).await?.is_some_and(|exact| exact <= prober.total) {
                    let text = format!("ranges include their last {what}: {counted}");
                    return Ok(configured_end(prober, end, text, "; accounting.range_end is set to that"));
                }
            }
            let text = format!("ranges overlap: {counted}; ends a second earlier do not help");
            return Ok(Finding::problem(text, "Report it to the service's owner: counters are too high."));
        }
        if sum < prober.total {
            let remedy =
                "Run the check again: the hour may still have changed. Otherwise counters are too low.";
            return Ok(Finding::warning(counted, remedy));
        }
        boundaries += parts - 1;
        // It is unlikely that no request fell on any boundary.
        sure = prober.total / 3600.0 * f64::from(boundaries) > 4.0;
        if sure {
            break;
        }
    }
    let text = "ranges exclude their last instant: parts of an hour add up to the hour".to_owned();
    Ok(match sure {
        true => configured_end(prober, RangeEnd::Exclusive, text, ""),
        false => Finding::note(format!("{text}, but so few requests prove little")),
    })
}

/// Whether the configuration agrees with the detected kind of range end; `agreed` is the text if so.
fn configured_end(prober: &Prober, end: RangeEnd, text: String, agreed: &str) -> Finding {
    if prober.service.config.accounting.range_end == end {
        return Finding::ok(text + agreed);
    }
    Finding::problem(text, ADD_LINE).with("accounting", "range_end", format!("\"{}\"", end.as_str()))
}

/// The sum of requests over this many parts of the hour; `None` if a reply is about another range.
async fn sum_of(prober: &mut Prober, parts: u32, end: RangeEnd) -> Result<Option<f64>> {
    let (hour, length) = (prober.hour, 3600 / i64::from(parts));
    let mut sum = 0.0;
    for part in 0..i64::from(parts) {
        let start = hour.start + part * length;
        let range = TimeRange { start, end: start + length };
        let answer = prober.counted(range, end, None).await?;
        if answer.range.is_some_and(|answered| answered != range) {
            return Ok(None);
        }
        sum += answer.count().unwrap_or(0.0);
    }
    Ok(Some(sum))
}

/// The longest range that is answered. After an outage the exporter requests up to six hours at once.
///
/// # Errors
/// If the service does not answer.
pub async fn longest(prober: &mut Prober) -> Result<Finding> {
    const HOURS: [u32; 5] = [6, 24, 7 * 24, 30 * 24, 90 * 24];
    let length = |hours: u32| lasting(u64::from(hours) * 3600);
    let mut answered = 1;
    for hours in HOURS {
        let range = TimeRange { start: prober.hour.end - i64::from(hours) * 3600, end: prober.hour.end };
        let why = match refused(prober.requests(range).await) {
            Ok(Ok(Tally { range: Some(named), .. })) if !named.is_near(range) => {
                format!("the reply covers {}", lasting(named.seconds()))
            }
            Ok(Ok(_)) => {
                answered = hours;
                continue;
            }
            Ok(Err(why)) => why,
            // Some services fail at a long range, or time out. A failure that passes must suggest nothing.
            Err(ToolError::Fetch(error)) if answered >= HOURS[0] && !error.is_unauthorized() => {
                error.reason.to_string()
            }
            Err(error) => return Err(error),
        };
        let (most, longer) = (length(answered), length(hours));
        let text = format!("the service answers a range of {most}, but not of {longer}: {why}");
        if answered >= HOURS[0] {
            return Ok(Finding::ok(text));
        }
        let remedy = "After an outage, the exporter requests up to 6 h at once: set accounting.max_catch_up to the length that the service answers.";
        let longest = written(u64::from(answered) * 3600);
        return Ok(Finding::warning(text, remedy).with("accounting", "max_catch_up", longest));
    }
    Ok(Finding::ok("90 d are answered at once"))
}
