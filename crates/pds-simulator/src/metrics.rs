//! Calls 4 and 5: requests and runs of an app in a range, and their durations. Counts and times are far below 2^53, which f64
//! holds exactly.

use jiff::{SignedDuration, Timestamp};

use pds_interface::metrics::Envelope;
use pds_interface::number::NumberMap;
use pds_interface::response_time::ResponseTime;
use pds_interface::run_execution_time::{Datapoint, RunExecutionTime};
use pds_interface::wire::Text;
use pds_interface::{Number, TimeRange};

use super::answer::{Answer, Answered};
use super::blueprint::Container;
use super::chance::{hash, unit};
use super::latency::{THRESHOLDS, percentile};
use super::routes::{CallRequest, instant};
use super::state::App;

/// The default range: the last hour.
const DEFAULT_RANGE: SignedDuration = SignedDuration::from_hours(1);

/// Maximum number of datapoints; in longer ranges they are further apart.
const MAX_DATAPOINTS: u64 = 1500;

/// The range that a reply is about.
struct Range {
    start_date: Text,
    end_date: Text,
    /// The part that the service counts.
    seen: TimeRange,
}

/// The requested range. Missing bounds are an hour ago and now.
fn range(request: &CallRequest, app: App) -> Answered<Range> {
    let settings = request.world.settings();
    let bound = |name| {
        let text = request.value(name).filter(|_| !settings.quirks.ignores_range);
        text.map(|text| instant(name, text)).transpose()
    };
    let (start, end) = (bound("start")?, bound("end")?);
    let now = Timestamp::from_second(request.now.as_second()).unwrap_or(request.now);
    let end = end.unwrap_or_else(|| now.max(start.unwrap_or(now)));
    let start = start.unwrap_or_else(|| end.saturating_sub(DEFAULT_RANGE).unwrap_or(end));
    let longest = i64::from(settings.quirks.longest_range);
    if longest > 0 && end.duration_since(start).as_secs() > longest {
        return Err(Answer::refusal(400, format!("a range may be {longest} seconds long at most")));
    }
    if settings.quirks.refuses(start, end, now) {
        return Err(Answer::refusal(400, "no data for this range"));
    }
    let asked_for = (start, end);
    let (start, end) = settings.quirks.rounded(start, end);
    let mut seen = request.world.visible(app, settings.quirks.seconds(start, end));
    if settings.quirks.forgets_after > 0 {
        let kept = now.as_second() - i64::from(settings.quirks.forgets_after);
        seen = TimeRange { start: seen.start.max(kept), end: seen.end.max(kept) };
    }
    let date = |bound: Timestamp| match settings.quirks.unnamed_ranges {
        true => Text::default(),
        false => bound.to_string().into(),
    };
    let (start, end) = if settings.quirks.echoes_ranges { asked_for } else { (start, end) };
    Ok(Range { start_date: date(start), end_date: date(end), seen })
}

pub(super) fn response_time(request: &CallRequest) -> Answered<Envelope<ResponseTime>> {
    let app = request.app()?;
    let Range { start_date, end_date, seen } = range(request, app)?;
    let counts = request.world.known(app.number, seen, request.value("container_id"));
    let percentiles = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)].map(|(name, share)| {
        let millis = percentile(&counts.within, counts.requests, share);
        (name.into(), millis.map_or(Number::Missing, |millis| Number::Value(thousandths(millis))))
    });
    // Without requests, the service writes 0 for every share.
    let all = counts.requests.max(1) as f64;
    let rounded = request.world.settings().quirks.whole_percent;
    let percent = |within: u64| within as f64 * 100.0 / all;
    let percent = |within| if rounded { percent(within).round() } else { percent(within) };
    let distribution = THRESHOLDS
        .iter()
        .zip(counts.within)
        .map(|(label, within)| ((*label).into(), Number::Value(percent(within))));
    let data = ResponseTime {
        percentiles: NumberMap(percentiles.to_vec()),
        distribution: NumberMap(distribution.collect()),
        total_requests: Number::Value(counts.requests as f64),
        start_date,
        end_date,
    };
    Ok(Envelope::success(data))
}

pub(super) fn run_execution_time(request: &CallRequest) -> Answered<Envelope<RunExecutionTime>> {
    let app = request.app()?;
    let Range { start_date, end_date, seen } = range(request, app)?;
    let (time_series, total) = datapoints(request, app, seen);
    let data =
        RunExecutionTime { time_series, total_runs: Number::Value(total as f64), start_date, end_date };
    Ok(Envelope::success(data))
}

/// A datapoint per minute (more with a higher resolution), at the start of its bucket, with nulls if there was no run;
/// and the total number of runs.
fn datapoints(request: &CallRequest, app: App, range: TimeRange) -> (Vec<Datapoint>, u64) {
    let seed = request.world.settings().seed;
    let containers = request.world.containers(app.number, request.value("container_id"));
    let runs_before = |second: i64| -> u64 { containers.iter().map(|part| part.runs.before(second)).sum() };
    let late = |start, end| -> u64 {
        let unknown =
            |part: &Container| request.world.unknown(&part.runs, TimeRange { start, end }).len() as u64;
        containers.iter().map(unknown).sum()
    };

    let finest: u64 = match request.value("resolution") {
        Some("high") => 10,
        Some("medium") => 30,
        _ => 60,
    };
    let step = finest * (range.seconds() / finest).div_ceil(MAX_DATAPOINTS).max(1);
    let step = i64::try_from(step).unwrap_or(i64::MAX);

    let (mut points, mut total) = (Vec::new(), 0);
    let (mut start, mut before) = (range.start, runs_before(range.start));
    while start < range.end {
        let aligned = start - start.rem_euclid(step);
        let end = aligned.saturating_add(step).min(range.end);
        let until = runs_before(end);
        let runs = until - before - late(start, end);
        points.push(datapoint(seed, app.number, aligned, runs));
        total += runs;
        (start, before) = (end, until);
    }
    (points, total)
}

/// The percentiles of one bucket: steady for an app, with noise that depends on the number of runs. So a bucket that is
/// cut off, still being filled or without late runs has other percentiles than the complete one.
fn datapoint(seed: u64, app: usize, second: i64, runs: u64) -> Datapoint {
    let timestamp = Number::Value(second as f64);
    if runs == 0 {
        return Datapoint { timestamp, ..Datapoint::default() };
    }
    let usual = 0.2 + 8.0 * unit(hash(&[seed, 6, app as u64]));
    let noise = unit(hash(&[seed, 7, app as u64, second.unsigned_abs(), runs]));
    let median = usual * (0.9 + 0.2 * noise);
    let value = |seconds: f64| Number::Value(thousandths(seconds));
    Datapoint { timestamp, p50: value(median), p90: value(median * 2.1), p99: value(median * (3.5 + noise)) }
}

/// Rounded to three places, as a service would send it.
fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
