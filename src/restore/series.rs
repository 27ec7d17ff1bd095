//! Samples by the target they were scraped from.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use crate::interface::{Counted, Resource};
use crate::store::{Key, Owner};

use super::reply::{Labels, Sample};

/// A part of a ledger that a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Until,
    Total,
    Bucket,
    Unaccounted,
    Late,
    Overcounted,
    RecheckedUntil,
}

/// Which ledger a metric belongs to: that of what its counter counts, or of the resource in the label `resource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Counted(Counted),
    Label,
}

/// The metrics that hold a ledger. Their names are those of `accounting::FAMILIES`, as Prometheus stores them.
const METRICS: &[(&str, About, Part)] = &[
    ("pds_app_requests_total", About::Counted(Counted::Requests), Part::Total),
    ("pds_app_request_duration_seconds_bucket", About::Counted(Counted::Requests), Part::Bucket),
    ("pds_app_runs_total", About::Counted(Counted::Runs), Part::Total),
    ("pds_app_accounted_until_timestamp_seconds", About::Label, Part::Until),
    ("pds_app_unaccounted_seconds_total", About::Label, Part::Unaccounted),
    ("pds_app_late_requests_total", About::Counted(Counted::Requests), Part::Late),
    ("pds_app_late_runs_total", About::Counted(Counted::Runs), Part::Late),
    ("pds_app_overcounted_requests_total", About::Counted(Counted::Requests), Part::Overcounted),
    ("pds_app_overcounted_runs_total", About::Counted(Counted::Runs), Part::Overcounted),
    ("pds_app_rechecked_until_timestamp_seconds", About::Label, Part::RecheckedUntil),
];

/// The names of the metrics that hold a ledger.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|(name, ..)| *name)
}

/// The names of the metrics that are totals.
pub(super) fn names_of_totals() -> impl Iterator<Item = &'static str> {
    METRICS.iter().filter(|(.., part)| *part == Part::Total).map(|(name, ..)| *name)
}

/// The names of the metrics whose samples tell when a cursor and a total were scraped together.
pub(super) fn names_of_moments() -> impl Iterator<Item = &'static str> {
    METRICS.iter().filter(|(.., part)| matches!(part, Part::Until | Part::Total)).map(|(name, ..)| *name)
}

/// The values of one scraped target about one counter, unchecked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ScrapedCounter {
    pub until: Option<f64>,
    pub total: Option<f64>,
    pub unaccounted: Option<f64>,
    pub late: Option<f64>,
    pub overcounted: Option<f64>,
    pub rechecked_until: Option<f64>,
    /// Whether there are cursors and totals, but none of the same scrape.
    pub apart: bool,
    /// Threshold as written, and count.
    pub buckets: Vec<(String, f64)>,
}

impl ScrapedCounter {
    fn put(&mut self, part: Part, value: f64, le: Option<&str>) {
        let slot = match part {
            Part::Bucket => return self.buckets.push((le.unwrap_or_default().to_owned(), value)),
            Part::Until => &mut self.until,
            Part::Total => &mut self.total,
            Part::Unaccounted => &mut self.unaccounted,
            Part::Late => &mut self.late,
            Part::Overcounted => &mut self.overcounted,
            Part::RecheckedUntil => &mut self.rechecked_until,
        };
        *slot = Some(value);
    }
}

/// The values of each scraped target, by its labels.
pub(super) type Targets = BTreeMap<String, ScrapedCounter>;

/// A project's id and an app's id.
pub(super) type AppName = (String, String);

/// The values of all counters, by app and resource and then by scraped target.
#[derive(Debug, Default)]
pub(super) struct Series(HashMap<(AppName, Resource), Targets>);

impl Series {
    /// The groups of these samples. Values that are not numbers, and metrics that hold no ledger, are left out.
    pub(super) fn of(samples: Vec<Sample>) -> Self {
        let mut series = Self::default();
        for sample in samples {
            let Some(value) = sample.value() else { continue };
            let Some(id) = SeriesId::of(sample.labels) else { continue };
            let targets = series.0.entry((id.app, id.resource)).or_default();
            targets.entry(id.target).or_default().put(id.part, value, id.le.as_deref());
        }
        series
    }

    /// Replaces cursors and totals by those of the last scrape that has both in `samples`. A cursor with an older total
    /// would lose the time in between: some engines make the samples of a scrape visible one after the other, and the
    /// cursor stays on the page when its counters leave it.
    pub(super) fn align(&mut self, samples: Vec<Sample>) {
        let mut totals: HashMap<(AppName, Resource, String), Vec<(f64, f64)>> = HashMap::new();
        let mut cursors = Vec::new();
        for mut sample in samples {
            let Some(id) = SeriesId::of(std::mem::take(&mut sample.labels)) else { continue };
            let key = (id.app, id.resource, id.target);
            let values: Vec<_> = sample.values().collect();
            match id.part {
                Part::Total => drop(totals.insert(key, values)),
                _ => cursors.push((key, values)),
            }
        }
        for ((app, resource, target), cursors) in cursors {
            let key = (app, resource, target);
            let totals = totals.remove(&key).unwrap_or_default();
            let of_both = cursors.iter().rev().find_map(|(at, until)| {
                let (_, total) = totals.iter().rev().find(|(time, _)| time == at)?;
                Some((*until, *total))
            });
            let (app, resource, target) = key;
            if let Some(scraped) =
                self.0.get_mut(&(app, resource)).and_then(|targets| targets.get_mut(&target))
            {
                scraped.until = of_both.map(|(until, _)| until).or(scraped.until);
                scraped.total = of_both.map(|(_, total)| total);
                scraped.apart = of_both.is_none() && !totals.is_empty();
            }
        }
    }

    /// The values of one ledger.
    pub(super) fn take(&mut self, key: &Key) -> Targets {
        let app = (key.owner.project.to_string(), key.owner.app.to_string());
        self.0.remove(&(app, key.resource)).unwrap_or_default()
    }
}

/// The times of samples, by counter and whatever the target.
pub(super) fn times(samples: Vec<Sample>) -> HashMap<Key, Vec<f64>> {
    let mut times: HashMap<Key, Vec<f64>> = HashMap::new();
    for mut sample in samples {
        let Some(id) = SeriesId::of(std::mem::take(&mut sample.labels)) else { continue };
        let (project, app) = id.app;
        let key = Key { owner: Owner::new(project.into(), app.into()), resource: id.resource };
        times.entry(key).or_default().extend(sample.values().map(|(time, _)| time));
    }
    times
}

/// The ledger and part that a sample belongs to.
struct SeriesId {
    app: AppName,
    resource: Resource,
    part: Part,
    le: Option<String>,
    target: String,
}

impl SeriesId {
    fn of(mut labels: Labels) -> Option<Self> {
        let name = labels.remove("__name__")?;
        let (_, about, part) = METRICS.iter().find(|(known, ..)| *known == name)?;
        let app = take_app(&mut labels)?;
        let resource = match about {
            About::Counted(counted) => resource_of(*counted),
            About::Label => labels.remove("resource").and_then(|name| Resource::find(&name)),
        };
        let le = if *part == Part::Bucket { labels.remove("le") } else { None };
        Some(Self { app, resource: resource?, part: *part, le, target: identity(&labels) })
    }
}

/// The app of a sample.
pub(super) fn take_app(labels: &mut Labels) -> Option<AppName> {
    Some((labels.remove("project")?, labels.remove("app")?))
}

/// The scraped target: all labels that the exporter does not set.
pub(super) fn identity(labels: &Labels) -> String {
    let mut text = String::from("{");
    for (name, value) in labels {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{name}={value:?}", if text.len() > 1 { "," } else { "" });
    }
    text + "}"
}

/// The resource whose replies are counted by this.
fn resource_of(counted: Counted) -> Option<Resource> {
    Resource::all().find(|resource| resource.polled().counted == Some(counted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::FAMILIES;
    use crate::catalogue::Kind;

    #[test]
    fn the_metrics_are_those_of_the_counters_section() {
        let stored = FAMILIES.iter().map(|family| match family.kind {
            Kind::Histogram => format!("{}_bucket", family.name),
            _ => family.name.to_owned(),
        });
        assert_eq!(names().collect::<Vec<_>>(), stored.collect::<Vec<_>>());
    }
}
