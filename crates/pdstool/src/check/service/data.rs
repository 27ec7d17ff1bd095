//! The data of replies: container filter, resolution, and late data.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::console::Console;
use crate::error::Result;
use crate::report::Finding;
use pds_core::units;
use pds_interface::{RangeEnd, Resolution, TimeRange};

use super::ADD_LINE;
use super::probe::{Prober, lasting, refused, written};

/// A container that no app has.
const NO_CONTAINER: &str = "pdstool-no-such-container";

/// Other names of the filter in similar services.
const NAMES: [&str; 4] = ["container", "containerId", "container_id", "replica_id"];

/// Tests the container filter with a container that does not exist.
///
/// # Errors
/// If the service does not answer.
pub async fn filter(prober: &mut Prober) -> Result<Finding> {
    if prober.total == 0.0 {
        return Ok(Finding::note("the app had no requests: cannot be determined"));
    }
    let configured = prober.names.container.clone();
    if filters(prober, &configured).await? {
        return Ok(Finding::ok(format!("{configured} filters")));
    }
    let text = format!("{configured} does not filter");
    for name in NAMES.into_iter().filter(|name| *name != configured) {
        if filters(prober, name).await? {
            let found = Finding::problem(format!("{text}; {name} does"), ADD_LINE);
            return Ok(found.with("api.query_names", "container", format!("\"{name}\"")));
        }
    }
    let mut apps = prober.service.config.projects.iter().flat_map(|project| &*project.apps);
    let text = format!("{text}, nor does another common name");
    if apps.all(|app| app.containers.is_empty()) {
        return Ok(Finding::note(format!("{text}; no containers are configured")));
    }
    let remedy =
        "Ask the owner of the service for the name, or remove the containers from the configuration.";
    Ok(Finding::problem(text, remedy))
}

/// Whether the service filters by the query parameter `name`.
async fn filters(prober: &mut Prober, name: &str) -> Result<bool> {
    let configured = std::mem::replace(&mut prober.names.container, name.to_owned());
    let answer = prober.counted(prober.hour, RangeEnd::Exclusive, Some(NO_CONTAINER)).await;
    prober.names.container = configured;
    // A service that refuses the container has applied the filter.
    Ok(refused(answer)?.map_or(true, |answer| answer.count().unwrap_or(0.0) == 0.0))
}

/// Measures the distance between datapoints at each resolution.
///
/// # Errors
/// If the service does not answer.
pub async fn resolution(prober: &mut Prober) -> Result<Vec<Finding>> {
    let mut widths = Vec::new();
    for resolution in Resolution::ALL {
        let times = prober.datapoints(prober.hour, resolution).await?;
        let steps = times.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?));
        if let Some(width) = steps.filter(|step| *step > 0.0).min_by(f64::total_cmp) {
            widths.push((resolution, width));
        }
    }
    if widths.len() < Resolution::ALL.len() {
        let text = "too few datapoints of run execution times: cannot be determined";
        return Ok(vec![Finding::note(text)]);
    }
    let text = |(resolution, width): &(Resolution, f64)| {
        format!("{} ({})", units::seconds(*width), resolution.as_str())
    };
    let texts = widths.iter().map(text);
    let text =
        format!("datapoints of run execution times are {} apart", texts.collect::<Vec<_>>().join(", "));
    let differ = widths.windows(2).any(|pair| matches!(pair, [(_, one), (_, other)] if one != other));
    let name = &prober.names.resolution;
    let mut found = vec![match differ {
        true => Finding::ok(text),
        false => Finding::note(format!(
            "{text}: {name} has no effect, or has another name (api.query_names.resolution)"
        )),
    }];
    let poll = &prober.service.config.poll;
    let window = poll.windows.first().map_or(0.0, Duration::as_secs_f64);
    let width = widths.iter().find(|(resolution, _)| *resolution == poll.resolution);
    // The range need not begin with a datapoint.
    if let Some((_, width)) = width.filter(|(_, width)| 2.0 * width > window) {
        let text = format!("a window of {} may hold no whole datapoint", units::seconds(window));
        let remedy = "Make the first of poll.windows longer, or poll.resolution higher.";
        let longer = Duration::from_secs_f64((2.0 * width).ceil());
        let others = poll.windows.iter().skip(1).filter(|other| **other != longer);
        let windows = [&longer].into_iter().chain(others).map(|window| written(window.as_secs()));
        let windows = windows.collect::<Vec<_>>().join(", ");
        found.push(Finding::warning(text, remedy).with("poll", "windows", format!("[{windows}]")));
    }
    Ok(found)
}

/// The ages in seconds at which the range is requested, before the last.
const AGES: [u64; 22] =
    [1, 2, 3, 5, 8, 12, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600];

/// The ages in seconds at which the range is requested, the last at the end of `period`.
fn ages(period: Duration) -> impl Iterator<Item = u64> {
    let last = period.as_secs().max(1);
    AGES.into_iter().filter(move |age| *age < last).chain([last])
}

/// Watches the last minute for `period`, and determines when no more data arrives.
///
/// # Errors
/// If the service does not answer.
pub async fn late(console: &mut Console, prober: &mut Prober, period: Duration) -> Result<Finding> {
    let end = Timestamp::now().as_second();
    let range = TimeRange { start: end - 60, end };
    let began = Instant::now();
    let mut seen: Vec<(u64, f64)> = Vec::new();
    let mut previous = 0;
    for age in ages(period) {
        if console.can_ask {
            console.say(&format!("late data: requesting again at age {}", lasting(age)));
        }
        // Slow replies delay the next request, so that data has the full time to arrive.
        tokio::time::sleep(Duration::from_secs(age - previous)).await;
        previous = age;
        let reached = began.elapsed().as_secs();
        seen.push((reached, prober.requests(range).await?.count().unwrap_or(0.0)));
    }
    Ok(lateness(&seen, prober.service.config.poll.settle.as_secs()))
}

/// Judges the requests of a minute that were `seen` at increasing ages. Ages and `settle` are in seconds.
fn lateness(seen: &[(u64, f64)], settle: u64) -> Finding {
    let (first_age, first) = seen.first().copied().unwrap_or_default();
    let most = seen.last().map_or(0.0, |(_, total)| *total);
    if most == 0.0 {
        return Finding::note("the app had no requests in the last minute: cannot be determined");
    }
    // The first age from which on nothing changed.
    let changed = seen.windows(2).rposition(|pair| matches!(pair, [(_, one), (_, other)] if one != other));
    let needed = changed.and_then(|at| seen.get(at + 1)).map_or(first_age, |(age, _)| *age);
    let late = units::percent((1.0 - first / most).max(0.0));
    if changed.is_some_and(|at| at + 2 == seen.len()) {
        let needed = lasting(needed);
        return Finding::warning(
            format!("data still arrived {needed} after its minute; {late} of the requests were late"),
            "Watch longer with --late-for; accounting.recheck_after counts what comes after poll.settle.",
        );
    }
    let (most, after) = (units::rounded(most), lasting(needed));
    let text = match changed {
        None => format!("all {most} requests of the last minute had arrived after {after}"),
        Some(_) => format!("all {most} requests of a minute had arrived after {after}; {late} were late"),
    };
    if needed > settle {
        return Finding::warning(text, ADD_LINE).with("poll", "settle", written(needed));
    }
    Finding::ok(format!("{text}; poll.settle is {}", lasting(settle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_watched_to_the_end_of_the_period() {
        let ages = |seconds| ages(Duration::from_secs(seconds)).collect::<Vec<_>>();
        assert_eq!((ages(0), ages(4)), (vec![1], vec![1, 2, 3, 4]));
        assert_eq!(ages(7200).split_last(), Some((&7200, &AGES[..])));
    }

    #[test]
    fn a_settle_time_is_suggested_after_which_nothing_more_arrives() {
        let judged = |seen: &[(u64, f64)]| {
            let found = lateness(seen, 30);
            let lines = found.lines.iter().map(|(_, key, value)| format!(" {key} = {value}"));
            found.text + &lines.collect::<String>()
        };
        for (seen, text) in [
            (&[(1, 0.0), (2, 0.0)][..], "the app had no requests in the last minute: cannot be determined"),
            (&[(1, 8.0)], "all 8 requests of the last minute had arrived after 1 s; poll.settle is 30 s"),
            (
                &[(4, 8.0), (9, 8.0)],
                "all 8 requests of the last minute had arrived after 4 s; poll.settle is 30 s",
            ),
            (
                &[(1, 6.0), (5, 8.0), (9, 8.0)],
                "all 8 requests of a minute had arrived after 5 s; 25.00 % were late; poll.settle is 30 s",
            ),
            (
                &[(1, 6.0), (30, 7.0), (45, 8.0), (60, 8.0)],
                "all 8 requests of a minute had arrived after 45 s; 25.00 % were late settle = \"45s\"",
            ),
            (
                &[(1, 6.0), (5, 6.0), (60, 8.0)],
                "data still arrived 1 min after its minute; 25.00 % of the requests were late",
            ),
        ] {
            assert_eq!(judged(seen), text);
        }
    }
}
