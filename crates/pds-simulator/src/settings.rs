//! The size of a world, its seed, and its differences from an ideal service: late data, included ends, rounded ranges.

use std::collections::BTreeSet;
use std::ops::Range;

use clap::Args;
use jiff::Timestamp;

use pds_interface::{CALLS, TimeRange};

use super::blueprint;
use super::chance::{hash, unit};
use super::traffic::Stream;

/// The size and the seed of a world.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct Settings {
    /// Seed of projects, apps and traffic.
    #[arg(long, default_value_t = Self::default().seed, allow_negative_numbers = true)]
    pub seed: u64,
    /// Number of projects.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = Self::default().projects,
        value_parser = count,
        allow_negative_numbers = true
    )]
    pub projects: usize,
    /// Number of apps, spread evenly over the projects.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = Self::default().apps,
        value_parser = count,
        allow_negative_numbers = true
    )]
    pub apps: usize,
    /// Number of requests the journal keeps in full.
    #[arg(skip = Self::default().journal)]
    pub journal: usize,
    /// Differences from an ideal service.
    #[command(flatten)]
    pub quirks: Quirks,
    /// Rename a query parameter, such as start=from; its default name is then ignored. Repeatable.
    #[arg(long = "query-name", value_name = "NAME=OTHER", value_parser = renamed)]
    pub names: Vec<(String, String)>,
}

/// `NAME=OTHER` with the name of a query parameter.
fn renamed(text: &str) -> Result<(String, String), String> {
    let known: BTreeSet<&str> = CALLS.iter().flat_map(|call| call.query).map(|param| param.name).collect();
    match text.split_once('=') {
        Some((name, other)) if known.contains(name) && !other.is_empty() => {
            Ok((name.to_owned(), other.to_owned()))
        }
        _ => {
            let known: Vec<&str> = known.into_iter().collect();
            Err(format!("must be NAME=OTHER, with one of the names {}", known.join(", ")))
        }
    }
}

/// A duration in whole seconds.
fn seconds(text: &str) -> Result<u32, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    Ok(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX))
}

/// The most projects or apps that fit into memory.
const MAX_COUNT: usize = 1_000_000;

/// A number of projects or apps.
fn count(text: &str) -> Result<usize, String> {
    let count: Option<usize> = text.parse().ok().filter(|count| *count <= MAX_COUNT);
    count.ok_or_else(|| format!("must be a whole number from 0 to {MAX_COUNT}"))
}

/// A share of a whole.
fn share(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

impl Default for Settings {
    /// The demonstration: three projects with eight apps, one of each blueprint.
    fn default() -> Self {
        Self {
            seed: 1,
            projects: 3,
            apps: blueprint::BLUEPRINTS.len(),
            journal: 10_000,
            quirks: Quirks::default(),
            names: Vec::new(),
        }
    }
}

impl Settings {
    /// The name of a query parameter here.
    pub(super) fn name_of<'a>(&'a self, default: &'a str) -> &'a str {
        self.names.iter().find_map(|(known, here)| (known == default).then_some(&**here)).unwrap_or(default)
    }

    /// The numbers of the apps of project number `project`.
    pub(super) fn apps_of(&self, project: usize) -> Range<usize> {
        let (each, more) = (self.apps / self.projects.max(1), self.apps % self.projects.max(1));
        let start = project * each + project.min(more);
        start..start + each + usize::from(project < more)
    }
}

/// Differences of the metrics calls from ideal ones. The truth is not affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Deviations from an ideal service")]
pub struct Quirks {
    /// Share of requests and runs (0 to 1) that the metrics calls report late.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share, allow_hyphen_values = true)]
    pub late_share: f64,
    /// Longest delay of late data, such as 5s.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = seconds)]
    pub late_within: u32,
    /// Include the last instant of a range.
    // Everything happens at the beginning of a second, so a range that ends at a whole second counts that second, too.
    #[arg(long)]
    pub inclusive_ends: bool,
    /// Round ranges outwards to multiples of this; 0s for no rounding.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = seconds)]
    pub round_to: u32,
    /// Read and state the bounds of ranges in whole seconds, rounded down.
    #[arg(long)]
    pub whole_seconds: bool,
    /// Round the shares of distributions to whole percent.
    #[arg(long)]
    pub whole_percent: bool,
    /// Report a request only once it has finished: requests that take longer than a second are late by this time.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = seconds)]
    pub slow_late: u32,
    /// Ignore the requested range, as with wrong query names; reply for the last hour.
    #[arg(long = "ignore-range")]
    pub ignores_range: bool,
    /// Refuse longer ranges, such as 7d [default: no limit].
    // In seconds.
    #[arg(long, value_name = "DURATION", value_parser = seconds, default_value = "0s", hide_default_value = true)]
    pub longest_range: u32,
    /// Ranges that begin more than this many seconds ago are refused; 0 disables it.
    #[arg(skip)]
    pub keeps_for: u32,
    /// Age in seconds above which data is forgotten without refusing a range; 0 disables it.
    #[arg(skip)]
    pub forgets_after: u32,
    /// Ranges with one of these Unix seconds are refused; 0 is none.
    #[arg(skip)]
    pub refused_seconds: [i64; 8],
    /// All requests and runs of so many seconds come in the first of them; 0 disables it.
    #[arg(skip)]
    pub bursts_every: u32,
    /// Do not state the range in replies.
    #[arg(long)]
    pub unnamed_ranges: bool,
    /// State the requested range, whichever was used.
    #[arg(skip)]
    pub echoes_ranges: bool,
    /// Send no Date header.
    #[arg(long)]
    pub undated: bool,
}

impl Quirks {
    /// The bounds that the service uses for the requested ones.
    pub(super) fn rounded(&self, start: Timestamp, end: Timestamp) -> (Timestamp, Timestamp) {
        let unit = i64::from(self.round_to) * 1000;
        let at = |millis| Timestamp::from_millisecond(millis);
        if unit == 0 {
            let down = |time: Timestamp| at(time.as_millisecond().div_euclid(1000) * 1000).unwrap_or(time);
            return if self.whole_seconds { (down(start), down(end)) } else { (start, end) };
        }
        let first = at(start.as_millisecond().div_euclid(unit) * unit).unwrap_or(start);
        let last = at((end.as_millisecond() + unit - 1).div_euclid(unit) * unit).unwrap_or(end);
        (first, last)
    }

    /// Whether a range is too old, or holds a second that the service cannot answer for.
    pub(super) fn refuses(&self, start: Timestamp, end: Timestamp, now: Timestamp) -> bool {
        let (start, end) = (start.as_second(), end.as_second());
        let holds = |second: &i64| *second > 0 && (start..end).contains(second);
        (self.keeps_for > 0 && start < now.as_second() - i64::from(self.keeps_for))
            || self.refused_seconds.iter().any(holds)
    }

    /// The whole seconds that lie between two bounds.
    pub(super) fn seconds(&self, start: Timestamp, end: Timestamp) -> TimeRange {
        let ceiling = |at: Timestamp| (at.as_millisecond() + 999).div_euclid(1000);
        let last = if self.inclusive_ends { end.as_millisecond().div_euclid(1000) + 1 } else { ceiling(end) };
        TimeRange { start: ceiling(start), end: last }
    }

    /// The numbers of the stream's events in `range` that the service does not know at `now`.
    pub(super) fn unknown(&self, stream: &Stream, range: TimeRange, now: i64) -> Vec<u64> {
        if self.late_share <= 0.0 {
            return Vec::new();
        }
        let first = range.start.max(now - i64::from(self.late_within));
        let unknown = |second: i64| {
            let numbers = stream.before(second)..stream.before(second + 1);
            numbers.filter(move |number| self.delay(stream.seed, *number) > now - second)
        };
        (first..range.end).flat_map(unknown).collect()
    }

    /// Delay in seconds until the service knows an event; 0 means at once.
    fn delay(&self, seed: u64, number: u64) -> i64 {
        let chance = hash(&[seed, 12, number]);
        if unit(chance) >= self.late_share {
            return 0;
        }
        i64::try_from(1 + hash(&[chance]) % u64::from(self.late_within.max(1))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Rhythm;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn quirks_round_ranges_outwards_and_include_their_end() {
        let (start, end) = (at("2026-01-01T00:00:10Z"), at("2026-01-01T00:01:59.999Z"));
        let plain = Quirks::default();
        assert_eq!(plain.rounded(start, end), (start, end));
        let rounding = Quirks { round_to: 60, ..plain };
        assert_eq!(rounding.rounded(start, end), (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:02:00Z")));
        let whole = at("2026-01-01T00:02:00Z");
        assert_eq!(plain.seconds(start, whole).seconds(), 110);
        let inclusive = Quirks { inclusive_ends: true, ..plain };
        assert_eq!(inclusive.seconds(start, whole).seconds(), 111);
        assert_eq!(inclusive.seconds(start, end).seconds(), 110);
    }

    #[test]
    fn a_share_of_the_events_is_late_and_all_are_known_in_the_end() {
        let rhythm = Rhythm { night: 0, unrest: 0.1 };
        let stream = Stream { seed: 5, per_hour: 36_000, rhythm };
        let quirks = Quirks { late_share: 0.2, late_within: 600, ..Quirks::default() };
        let end = 1_767_225_600;
        let range = TimeRange { start: end - 300, end };
        let events = stream.before(end) - stream.before(end - 300);
        let unknown = |now| quirks.unknown(&stream, range, now).len() as u64;
        assert!((events / 10..events / 5).contains(&unknown(end)), "{} of {events}", unknown(end));
        assert!((0..700).map(|after| unknown(end + after)).is_sorted_by(|a, b| a >= b));
        assert!(unknown(end + 299) > 0);
        assert_eq!(unknown(end + 600), 0);
        assert_eq!(Quirks::default().unknown(&stream, range, end), Vec::<u64>::new());
    }
}
