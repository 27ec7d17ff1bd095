//! Samples by the target they were scraped from.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use crate::interface::{Counted, Resource};
use crate::store::Key;

use super::reply::{Labels, Sample};

/// A part of what a page says of a ledger.
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

/// What the samples of a metric are about: what its counter counts, or the resource that the label `resource` names.
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

/// What one scraped target said of one counter, as it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    pub until: Option<f64>,
    pub total: Option<f64>,
    pub unaccounted: Option<f64>,
    pub late: Option<f64>,
    pub overcounted: Option<f64>,
    pub rechecked_until: Option<f64>,
    /// Threshold as written, and count.
    pub buckets: Vec<(String, f64)>,
}

impl Said {
    fn put(&mut self, part: Part, value: f64, le: Option<&str>) {
        let place = match part {
            Part::Bucket => return self.buckets.push((le.unwrap_or_default().to_owned(), value)),
            Part::Until => &mut self.until,
            Part::Total => &mut self.total,
            Part::Unaccounted => &mut self.unaccounted,
            Part::Late => &mut self.late,
            Part::Overcounted => &mut self.overcounted,
            Part::RecheckedUntil => &mut self.rechecked_until,
        };
        *place = Some(value);
    }
}

/// What each scraped target said, by its labels.
pub(super) type Targets = BTreeMap<String, Said>;

/// A project's id and an app's id.
pub(super) type AppName = (String, String);

/// Everything said of counters, by app and resource and then by scraped target.
#[derive(Debug, Default)]
pub(super) struct Series(HashMap<(AppName, Resource), Targets>);

impl Series {
    /// The groups of these samples. What is no number, or of no metric that holds a ledger, is left out.
    pub fn of(samples: Vec<Sample>) -> Self {
        let mut series = Self::default();
        for sample in samples {
            let Some(value) = sample.value() else { continue };
            let mut labels = sample.labels;
            let name = labels.remove("__name__").unwrap_or_default();
            let Some((_, about, part)) = METRICS.iter().find(|(known, ..)| *known == name) else { continue };
            let Some(app) = take_app(&mut labels) else { continue };
            let resource = match about {
                About::Counted(counted) => resource_of(*counted),
                About::Label => labels.remove("resource").and_then(|name| Resource::find(&name)),
            };
            let Some(resource) = resource else { continue };
            let le = if *part == Part::Bucket { labels.remove("le") } else { None };
            let targets = series.0.entry((app, resource)).or_default();
            targets.entry(identity(&labels)).or_default().put(*part, value, le.as_deref());
        }
        series
    }

    /// What is said of one ledger.
    pub fn take(&mut self, key: &Key) -> Targets {
        let app = (key.owner.project.to_string(), key.owner.app.to_string());
        self.0.remove(&(app, key.resource)).unwrap_or_default()
    }
}

/// The app that a sample is about.
pub(super) fn take_app(labels: &mut Labels) -> Option<AppName> {
    Some((labels.remove("project")?, labels.remove("app")?))
}

/// The scraped target: the labels that are none of ours.
pub(super) fn identity(labels: &Labels) -> String {
    let mut text = String::from("{");
    for (name, value) in labels {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{name}={value:?}", if text.len() > 1 { "," } else { "" });
    }
    text + "}"
}

/// The resource whose replies are counted so.
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
