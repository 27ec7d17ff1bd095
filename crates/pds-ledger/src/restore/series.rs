//! Samples by the target they were scraped from.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::counters::{Number, ROWS, Row, Shows};
use crate::{Key, Owner};
use pds_interface::Resource;

use super::reply::{Labels, Sample};

/// The rows of families that a restore needs.
fn restored() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(|row| row.shows != Shows::Behind)
}

/// The names, as Prometheus stores them, of the metrics that hold a part of a ledger that is `wanted`.
pub(super) fn names(wanted: impl Fn(Shows) -> bool) -> impl Iterator<Item = String> {
    let wanted = restored().filter(move |row| wanted(row.shows));
    wanted.map(|row| [row.family.name, row.family.sample_suffix()].concat())
}

/// The values of one scraped target about one counter, unchecked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ScrapedCounter {
    /// By [`Number`].
    numbers: [Option<f64>; Number::ALL.len()],
    /// Whether there are cursors and totals, but none of the same scrape.
    pub apart: bool,
    /// Whether there are scrapes with both, and each of them lacks something that its page had.
    pub partial: bool,
    /// Threshold as written, and count.
    pub buckets: Vec<(String, f64)>,
    /// Hours before that of the cursor, as written, and what the total holds of each.
    pub hours: Vec<(String, f64)>,
}

impl ScrapedCounter {
    /// The value of `number`.
    pub(super) fn number(&self, number: Number) -> Option<f64> {
        self.numbers.get(number as usize).copied().flatten()
    }

    /// Sets the value of `number`.
    pub(super) fn set(&mut self, number: Number, value: Option<f64>) {
        if let Some(slot) = self.numbers.get_mut(number as usize) {
            *slot = value;
        }
    }
}

/// All samples of one series.
#[derive(Debug)]
struct Moments {
    shows: Shows,
    label: Option<String>,
    samples: Vec<(f64, f64)>,
}

impl Moments {
    fn at(&self, time: f64) -> Option<f64> {
        self.samples.iter().rev().find(|(at, _)| *at == time).map(|(_, value)| *value)
    }

    /// The threshold of a bucket. Versions of Prometheus write it differently.
    fn threshold(&self) -> Option<f64> {
        let threshold: f64 = self.label.as_deref().filter(|_| self.shows == Shows::Buckets)?.parse().ok()?;
        (!threshold.is_nan()).then_some(threshold)
    }
}

/// When the count on the page of `time` began, which all its pages have in common.
fn began(series: &[Moments], time: f64) -> Option<f64> {
    let at = |number| series.iter().find(|of| of.shows == Shows::Number(number))?.at(time);
    Some(at(Number::Until)? - at(Number::Accounted)? - at(Number::Unaccounted)?)
}

/// A series that stays once it was on a page, whatever the target: what a later page lacks of it is still to come, as
/// some engines make the series of a scrape visible one after the other.
#[derive(Debug, PartialEq)]
struct Lasting {
    shows: Shows,
    threshold: Option<f64>,
    /// The beginning of its count; `None` if it is on the pages of each.
    count: Option<f64>,
    /// The time of the first page with it.
    since: f64,
}

impl Lasting {
    /// Those of a counter, of which these are the series of each target.
    fn of<'a>(targets: impl Iterator<Item = &'a Vec<Moments>>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for series in targets {
            for of in series {
                let first = |least| of.samples.iter().find(|(_, value)| *value >= least).map(|(at, _)| *at);
                let (since, count) = match of.shows {
                    Shows::Number(Number::Accounted | Number::Unaccounted) => (first(0.0), None),
                    Shows::Buckets if of.threshold().is_some() => (first(0.0), None),
                    Shows::Number(Number::Late | Number::Overcounted) => {
                        let since = first(1.0);
                        (since, since.and_then(|since| began(series, since)))
                    }
                    _ => continue,
                };
                let Some(since) = since else { continue };
                let new = Self { shows: of.shows, threshold: of.threshold(), count, since };
                match all.iter_mut().find(|known| Self { since, ..**known } == new) {
                    Some(known) => known.since = known.since.min(since),
                    None => all.push(new),
                }
            }
        }
        all
    }

    /// Whether the page of `time`, of a count that began at `count`, has it if it has to.
    fn is_on(&self, series: &[Moments], time: f64, count: Option<f64>) -> bool {
        let mut same = series.iter().filter(|of| of.shows == self.shows && of.threshold() == self.threshold);
        self.since >= time
            || self.count.is_some_and(|of| count != Some(of))
            || same.any(|of| of.at(time).is_some())
    }
}

impl ScrapedCounter {
    /// Sets all numbers to those of the last page that is whole; with `buckets`, these too.
    fn align(&mut self, series: &[Moments], lasting: &[Lasting], buckets: bool) {
        let of = |shows: Shows| series.iter().filter(move |moments| moments.shows == shows);
        let infinite = || of(Shows::Buckets).filter(|of| of.threshold() == Some(f64::INFINITY));
        let totals = || of(Shows::Number(Number::Total)).chain(infinite());
        let cursors = of(Shows::Number(Number::Until)).next().map_or(&[][..], |cursors| &cursors.samples);
        let total_at = |time| totals().find_map(|total| total.at(time));
        // The last page first, each with the one before it.
        let of_both = || {
            let before = std::iter::once(None).chain(cursors.iter().map(Some));
            let times: Vec<_> = before.zip(cursors).collect();
            times.into_iter().rev().filter_map(|(before, (time, _))| Some((before, *time, total_at(*time)?)))
        };
        let whole = of_both().find(|(before, time, _)| {
            let count = began(series, *time);
            // It goes with the configuration: what the page before had.
            let was_there = |of: &Moments| before.is_some_and(|(before, _)| of.at(*before).is_some());
            of(Shows::Number(Number::RecheckedUntil)).all(|of| of.at(*time).is_some() || !was_there(of))
                && lasting.iter().all(|lasting| lasting.is_on(series, *time, count))
        });
        self.partial = whole.is_none() && of_both().next().is_some();
        self.apart = whole.is_none() && !self.partial && totals().any(|total| !total.samples.is_empty());
        let Some((_, time, total)) = whole else { return self.set(Number::Total, None) };
        for number in Number::ALL {
            let value = of(Shows::Number(*number)).next().and_then(|moments| moments.at(time));
            self.set(*number, value);
        }
        self.set(Number::Total, Some(total));
        let labelled = |shows| of(shows).filter_map(|of| Some((of.label.clone()?, of.at(time)?))).collect();
        self.hours = labelled(Shows::OpenHours);
        if buckets {
            self.buckets = labelled(Shows::Buckets);
        }
    }
}

/// The values of each scraped target, by its labels.
pub(super) type Targets = BTreeMap<String, ScrapedCounter>;

/// The values of all counters, by key and then by scraped target.
#[derive(Debug, Default)]
pub(super) struct Series {
    counters: HashMap<Key, Targets>,
    /// Of a query for the samples of a range.
    moments: HashMap<Key, BTreeMap<String, Vec<Moments>>>,
}

impl Series {
    /// Adds a series of an answer. Values that are not numbers, and metrics that hold no ledger, are left out.
    pub(super) fn put(&mut self, mut sample: Sample) {
        let Some(SeriesId { key, shows, label, target }) = SeriesId::of(std::mem::take(&mut sample.labels))
        else {
            return;
        };
        if sample.is_range() {
            let moments = Moments { shows, label, samples: sample.values().collect() };
            self.moments.entry(key).or_default().entry(target).or_default().push(moments);
        } else if let Some(value) = sample.value() {
            let scraped = self.counters.entry(key).or_default().entry(target).or_default();
            match shows {
                Shows::Buckets => scraped.buckets.push((label.unwrap_or_default(), value)),
                Shows::Number(number) => scraped.set(number, Some(value)),
                // As of one scrape only.
                Shows::OpenHours | Shows::Behind => {}
            }
        }
    }

    /// Replaces all numbers, and with `buckets` these, by those of the last whole page in `range` with a cursor and a total.
    /// A cursor with an older total would lose the time in between.
    pub(super) fn align(&mut self, range: Self, buckets: bool) {
        for (counter, series) in range.moments {
            let Some(targets) = self.counters.get_mut(&counter) else { continue };
            let lasting = Lasting::of(series.values());
            for (target, scraped) in targets {
                if let Some(series) = series.get(target) {
                    scraped.align(series, &lasting, buckets);
                }
            }
        }
    }

    /// The values of one ledger.
    pub(super) fn take(&mut self, key: &Key) -> Targets {
        self.counters.remove(key).unwrap_or_default()
    }
}

/// The times of samples, by counter and whatever the target.
pub(super) type Times = HashMap<Key, Vec<f64>>;

/// Adds a series of an answer.
pub(super) fn put_times(times: &mut Times, mut sample: Sample) {
    let Some(id) = SeriesId::of(std::mem::take(&mut sample.labels)) else { return };
    times.entry(id.key).or_default().extend(sample.values().map(|(time, _)| time));
}

/// The ledger and part that a sample belongs to.
struct SeriesId {
    key: Key,
    shows: Shows,
    /// The threshold of a bucket, or which hour.
    label: Option<String>,
    target: String,
}

impl SeriesId {
    fn of(mut labels: Labels) -> Option<Self> {
        let name = labels.remove("__name__")?;
        let Row { of, shows, .. } = restored().find(|row| {
            name.strip_prefix(row.family.name).is_some_and(|suffix| suffix == row.family.sample_suffix())
        })?;
        let owner = take_owner(&mut labels)?;
        let resource = match of {
            None => take_resource(&mut labels)?,
            counted => Resource::all().find(|resource| resource.polled().counted == *counted)?,
        };
        let label = match shows {
            Shows::Buckets => labels.remove("le"),
            Shows::OpenHours => labels.remove("hours_ago"),
            _ => None,
        };
        Some(Self { key: Key { owner, resource }, shows: *shows, label, target: identity(&labels) })
    }
}

/// The app of a sample.
pub(super) fn take_owner(labels: &mut Labels) -> Option<Arc<Owner>> {
    Some(Owner::new(labels.remove("project")?.into(), labels.remove("app")?.into()))
}

/// The resource that a sample names.
pub(super) fn take_resource(labels: &mut Labels) -> Option<Resource> {
    Resource::find(&labels.remove("resource")?)
}

/// The scraped target: all labels that neither the exporter nor Prometheus itself sets (`__type__`, `__unit__`).
pub(super) fn identity(labels: &Labels) -> String {
    let mut text = String::from("{");
    for (name, value) in labels.iter().filter(|(name, _)| !name.starts_with("__")) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{name}={value:?}", if text.len() > 1 { "," } else { "" });
    }
    text + "}"
}
