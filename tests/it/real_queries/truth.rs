//! The truth of a query and a window, as the simulated service knows it.

use std::collections::BTreeMap;

use pds_simulator::{THRESHOLDS, Truth};

use super::MINUTE;

/// The subject of a query, as far as the service knows the truth of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum About {
    /// Requests or runs per second.
    Rate { runs: bool },
    /// The share of requests slower than a second.
    Slow,
    /// A growth of requests.
    Increase,
    /// Something else: that it is understood is enough.
    Else,
}

impl About {
    pub(super) fn of(query: &str) -> Self {
        let has = |part: &str| query.contains(part);
        match () {
            // The record of a rule.
            () if query.starts_with("pds_app:requests:rate") => Self::Rate { runs: false },
            () if query.starts_with("pds_app:runs:rate") => Self::Rate { runs: true },
            () if query.starts_with("pds_app:requests:increase") && !has("(") => Self::Increase,
            () if query.starts_with("pds_app:slo_errors:ratio_rate") && !has("(") => Self::Slow,
            () if !has("[")
                || ["topk", "histogram_quantile", "late_", "(le)", ", le)"].into_iter().any(has) =>
            {
                Self::Else
            }
            () if has("_bucket") && has("1 - ") && has("le=\"1.0\"") => Self::Slow,
            () if has("rate(pds_app_requests_total") && has("increase(") => Self::Increase,
            () if has("_accounted_seconds_total") && has(" / ") => {
                Self::Rate { runs: has("pds_app_runs_total") }
            }
            () if query.starts_with("increase(pds_app_requests_total") => Self::Increase,
            () => Self::Else,
        }
    }
}

/// The seconds of the first range in brackets, or at the end of what a rule records.
pub(super) fn window(query: &str) -> i64 {
    let range = match query.split_once('[') {
        Some((_, rest)) => rest.split_once(']').unwrap().0,
        None => query.rsplit_once("rate").or(query.rsplit_once("increase")).unwrap().1,
    };
    humantime::parse_duration(range).unwrap().as_secs().cast_signed()
}

/// The scraped samples of one counter of an app, and the truth.
pub(crate) struct Counted {
    pub(crate) project: String,
    pub(crate) app: String,
    /// By instance, seconds and cursors.
    pub(crate) samples: Vec<Vec<(i64, i64)>>,
    /// The truth of each minute.
    pub(crate) truth: BTreeMap<i64, Truth>,
}

/// The least and the greatest figure of the minutes that a window may speak of, and that of all its minutes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) whole: f64,
    /// The same with what the sample before the window adds.
    pub(super) wider: f64,
    /// Whether the window itself holds two cursors, as Prometheus wants it.
    pub(super) within: bool,
    /// Requests in all of it.
    pub(super) requests: f64,
    /// Its minutes, in seconds.
    pub(super) seconds: i64,
    /// The number if each of its minutes were the busiest.
    pub(super) busiest: f64,
}

impl Bounds {
    /// The growth of a window of which nearly all was counted, as if all of it had been.
    pub(super) fn stretched(&self, window: i64) -> f64 {
        let covers = 10 * self.seconds >= 9 * window;
        if covers { self.whole * window as f64 / self.seconds as f64 } else { self.whole }
    }
}

impl Counted {
    /// The samples that a rule reads which is evaluated every `interval` seconds from `first` on.
    pub(super) fn evaluated(&self, first: i64, interval: i64, scrape: i64) -> Self {
        let resampled = |samples: &Vec<(i64, i64)>| {
            let (Some((begun, _)), Some((end, _))) = (samples.first(), samples.last()) else { return vec![] };
            let evaluations = (first..=end + scrape).step_by(interval as usize).filter(|at| at >= begun);
            let last = |at: i64| {
                let known = samples[..samples.partition_point(|(second, _)| *second <= at)].last()?;
                (known.0 >= at - scrape).then_some((at, known.1))
            };
            evaluations.filter_map(last).collect()
        };
        Self {
            project: self.project.clone(),
            app: self.app.clone(),
            samples: self.samples.iter().map(resampled).collect(),
            truth: self.truth.clone(),
        }
    }

    /// Whether a counter had just begun at this second. Prometheus then extends a growth to no more than the counter holds,
    /// and so that of two counters differently.
    pub(super) fn is_new(&self, at: i64) -> bool {
        let first = self.samples.iter().filter_map(|samples| samples.first());
        first.into_iter().any(|(second, _)| (*second..*second + 3 * MINUTE).contains(&at))
    }

    /// The bounds in minutes if the window that ends at `at` has two cursors of an instance: from the cursor one scrape
    /// before the window to its last one.
    pub(super) fn bounds(
        &self,
        at: i64,
        window: i64,
        figure: impl Fn(&[&Truth]) -> Option<f64>,
    ) -> Option<Bounds> {
        let mut found: Option<Bounds> = None;
        let busiest = self.truth.values().map(|truth| truth.requests).max().unwrap_or(0) as f64;
        for samples in &self.samples {
            let first = samples.partition_point(|(second, _)| *second <= at - window);
            let after = samples.partition_point(|(second, _)| *second <= at);
            let before = samples.get(first.saturating_sub(1)).map(|(_, until)| *until);
            let (Some(before), Some((_, to))) = (before, samples[..after].last()) else { continue };
            let from = samples.get(first).map_or(before, |(_, until)| *until);
            // VictoriaMetrics begins at the sample before the window.
            let within = first < after && *to > from;
            let from = if within { from } else { before };
            if *to <= before {
                continue;
            }
            let minutes = |from: i64| self.truth.range(from..*to).map(|(_, truth)| truth).collect::<Vec<_>>();
            let each: Vec<f64> = minutes(before).into_iter().filter_map(|truth| figure(&[truth])).collect();
            let inside = minutes(from);
            let (Some(whole), Some(wider)) = (figure(&inside), figure(&minutes(before))) else { continue };
            let requests = inside.iter().map(|truth| truth.requests as f64).sum();
            let bounds = Bounds {
                least: each.iter().copied().fold(whole, f64::min),
                most: each.iter().copied().fold(whole, f64::max),
                whole,
                wider,
                within,
                requests,
                seconds: *to - from,
                busiest: busiest * minutes(before).len() as f64,
            };
            found = Some(found.map_or(bounds, |other| Bounds {
                least: bounds.least.min(other.least),
                most: bounds.most.max(other.most),
                ..bounds
            }));
        }
        found
    }
}

/// The figure that `about` selects from minutes.
pub(super) fn figure(about: About, minutes: &[&Truth]) -> Option<f64> {
    let seconds = MINUTE as f64 * minutes.len() as f64;
    let requests: f64 = minutes.iter().map(|truth| truth.requests as f64).sum();
    match about {
        About::Rate { runs: false } => Some(requests / seconds),
        About::Rate { runs: true } => {
            Some(minutes.iter().map(|truth| truth.runs as f64).sum::<f64>() / seconds)
        }
        About::Slow => {
            let second = THRESHOLDS.iter().position(|label| *label == "1s").unwrap();
            let within: f64 = minutes.iter().map(|truth| truth.within[second] as f64).sum();
            (requests > 0.0).then(|| 1.0 - within / requests)
        }
        About::Increase => Some(requests),
        About::Else => None,
    }
}
