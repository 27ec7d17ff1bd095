//! Samples by the target they were scraped from.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use crate::counters::{Number, ROWS, Row, Shows};
use crate::{Key, Owner};
use pds_exposition::Family;
use pds_interface::{Counted, Resource};

use super::reply::{Labels, Sample};

/// The rows of families that a restore needs.
fn restored() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(|row| row.shows != Shows::Behind)
}

/// The name of a family as Prometheus stores it.
fn stored(family: &Family) -> String {
    [family.name, family.sample_suffix()].concat()
}

/// The names of the metrics that hold a ledger, but for what is read as of one scrape only.
pub(super) fn names() -> impl Iterator<Item = String> {
    restored().filter(|row| row.shows != Shows::OpenHours).map(|row| stored(&row.family))
}

/// The names of the metrics that are totals.
pub(super) fn names_of_totals() -> impl Iterator<Item = String> {
    restored().filter(|row| row.shows == Shows::Number(Number::Total)).map(|row| stored(&row.family))
}

/// The names of the metrics that are read as of one scrape: all of them, with the bucket `+Inf`, which stands in for a
/// total that relabelling has dropped.
pub(super) fn names_of_moments() -> impl Iterator<Item = String> {
    restored().map(|row| stored(&row.family))
}

/// The values of one scraped target about one counter, unchecked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ScrapedCounter {
    /// By [`Number`].
    numbers: [Option<f64>; Number::ALL.len()],
    /// Whether there are cursors and totals, but none of the same scrape.
    pub apart: bool,
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

    fn put(&mut self, shows: Shows, value: f64, le: Option<&str>) {
        match shows {
            Shows::Buckets => self.buckets.push((le.unwrap_or_default().to_owned(), value)),
            Shows::Number(number) => self.set(number, Some(value)),
            // As of one scrape only.
            Shows::OpenHours | Shows::Behind => {}
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
}

impl ScrapedCounter {
    fn align(&mut self, series: &[Moments]) {
        let of = |shows: Shows| series.iter().filter(move |moments| moments.shows == shows);
        let totals = || of(Shows::Number(Number::Total)).chain(of(Shows::Buckets));
        // These are on each page of a counter, so what one had and the next one lacks is still to come.
        let lasting = [
            Number::Unaccounted,
            Number::Late,
            Number::Overcounted,
            Number::RecheckedUntil,
            Number::Accounted,
        ];
        let is_whole = |before: Option<&(f64, f64)>, time: f64| {
            let was_there =
                |moments: &&Moments| before.is_some_and(|(before, _)| moments.at(*before).is_some());
            let mut known = lasting.iter().flat_map(|number| of(Shows::Number(*number))).filter(was_there);
            known.all(|moments| moments.at(time).is_some())
        };
        let of_both = of(Shows::Number(Number::Until)).next().and_then(|cursors| {
            let total_at = |time| totals().find_map(|total| total.at(time));
            let times = cursors.samples.iter().enumerate().rev();
            let mut whole = times.filter(|(index, (time, _))| {
                is_whole(index.checked_sub(1).and_then(|before| cursors.samples.get(before)), *time)
            });
            whole.find_map(|(_, (time, until))| Some((*time, *until, total_at(*time)?)))
        });
        self.apart = of_both.is_none() && totals().any(|total| !total.samples.is_empty());
        self.set(Number::Total, of_both.map(|(.., total)| total));
        let Some((time, until, _)) = of_both else { return };
        self.set(Number::Until, Some(until));
        for number in lasting.into_iter().chain([Number::Debt]) {
            self.set(number, of(Shows::Number(number)).next().and_then(|moments| moments.at(time)));
        }
        let hours = of(Shows::OpenHours).filter_map(|hour| Some((hour.label.clone()?, hour.at(time)?)));
        self.hours = hours.collect();
    }
}

/// The values of each scraped target, by its labels.
pub(super) type Targets = BTreeMap<String, ScrapedCounter>;

/// A project's id and an app's id.
pub(super) type AppName = (String, String);

/// The values of all counters, by app and resource and then by scraped target.
#[derive(Debug, Default)]
pub(super) struct Series {
    counters: HashMap<(AppName, Resource), Targets>,
    /// Of a query for the samples of a range.
    moments: HashMap<(AppName, Resource, String), Vec<Moments>>,
}

impl Series {
    /// Adds a series of an answer. Values that are not numbers, and metrics that hold no ledger, are left out.
    pub(super) fn put(&mut self, mut sample: Sample) {
        let Some(id) = SeriesId::of(std::mem::take(&mut sample.labels)) else { return };
        if sample.is_range() {
            let (key, samples) = ((id.app, id.resource, id.target), sample.values().collect());
            self.moments.entry(key).or_default().push(Moments { shows: id.shows, label: id.label, samples });
        } else if let Some(value) = sample.value() {
            let targets = self.counters.entry((id.app, id.resource)).or_default();
            targets.entry(id.target).or_default().put(id.shows, value, id.label.as_deref());
        }
    }

    /// Replaces all numbers by those of the last scrape that has a cursor and a total in `range`. A cursor with an older
    /// total would lose the time in between: some engines make the samples of a scrape visible one after the other.
    pub(super) fn align(&mut self, range: Self) {
        for ((app, resource, target), series) in range.moments {
            let targets = self.counters.get_mut(&(app, resource));
            if let Some(scraped) = targets.and_then(|targets| targets.get_mut(&target)) {
                scraped.align(&series);
            }
        }
    }

    /// The values of one ledger.
    pub(super) fn take(&mut self, key: &Key) -> Targets {
        let app = (key.owner.project.to_string(), key.owner.app.to_string());
        self.counters.remove(&(app, key.resource)).unwrap_or_default()
    }
}

/// The times of samples, by counter and whatever the target.
pub(super) type Times = HashMap<Key, Vec<f64>>;

/// Adds a series of an answer.
pub(super) fn put_times(times: &mut Times, mut sample: Sample) {
    let Some(id) = SeriesId::of(std::mem::take(&mut sample.labels)) else { return };
    let (project, app) = id.app;
    let key = Key { owner: Owner::new(project.into(), app.into()), resource: id.resource };
    times.entry(key).or_default().extend(sample.values().map(|(time, _)| time));
}

/// The ledger and part that a sample belongs to.
struct SeriesId {
    app: AppName,
    resource: Resource,
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
        let app = take_app(&mut labels)?;
        let resource = match of {
            Some(counted) => resource_of(*counted),
            None => labels.remove("resource").and_then(|name| Resource::find(&name)),
        };
        let label = match shows {
            Shows::Buckets => labels.remove("le"),
            Shows::OpenHours => labels.remove("hours_ago"),
            _ => None,
        };
        Some(Self { app, resource: resource?, shows: *shows, label, target: identity(&labels) })
    }
}

/// The app of a sample.
pub(super) fn take_app(labels: &mut Labels) -> Option<AppName> {
    Some((labels.remove("project")?, labels.remove("app")?))
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

/// The resource whose replies are counted by this.
fn resource_of(counted: Counted) -> Option<Resource> {
    Resource::all().find(|resource| resource.polled().counted == Some(counted))
}
