//! The registry's side of the metrics: the handles that a declaration returns, and the output of their families.

use prometheus::core::{Atomic, Collector, GenericCounterVec};
use prometheus::proto::{MetricFamily, MetricType};
use prometheus::{GaugeVec, HistogramOpts, HistogramVec, Opts, Registry};

use pds_exposition::encode::{LabelNumber, head, label, named_sample};
use pds_exposition::{Family, Format};

use super::FAMILIES;

/// Buckets of durations of requests: from a simulator on this machine to the default timeout and beyond.
const DURATION_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// A handle that can be made from the declaration of its family.
pub(super) trait Handle: Sized {
    /// The handle on `family`, registered in `registry`.
    ///
    /// # Errors
    /// If the registry refuses the family: its name is taken or invalid.
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error>;
}

impl<P: Atomic + 'static> Handle for GenericCounterVec<P> {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        registered(registry, Self::new(Opts::new(family.name, family.help), family.labels)?)
    }
}

impl Handle for HistogramVec {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        let opts = HistogramOpts::new(family.name, family.help).buckets(DURATION_BUCKETS.to_vec());
        registered(registry, Self::new(opts, family.labels)?)
    }
}

fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    collector: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

/// A gauge for each set of label values. A series is missing until its value is known.
#[derive(Debug)]
pub(super) struct Gauges(pub(super) GaugeVec);

impl Handle for Gauges {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauges = GaugeVec::new(Opts::new(family.name, family.help), family.labels)?;
        registered(registry, gauges).map(Self)
    }
}

impl Gauges {
    /// Sets the value of the series with these labels; `None` removes it.
    pub(super) fn set(&self, labels: &[&str], value: impl Into<Option<f64>>) {
        match value.into() {
            Some(value) => self.0.with_label_values(labels).set(value),
            // Fails if there is no such series, which is fine.
            None => drop(self.0.remove_label_values(labels)),
        }
    }

    /// Removes all series.
    pub(super) fn clear(&self) {
        self.0.reset();
    }

    /// The value of a gauge without labels, if it is known.
    pub(super) fn get(&self) -> Option<f64> {
        self.all().first().map(|(_, value)| *value)
    }

    /// The values of the first label with their values.
    pub(super) fn all(&self) -> Vec<(String, f64)> {
        let families = self.0.collect();
        let metrics = families.iter().flat_map(|family| family.get_metric());
        let all = metrics.map(|metric| {
            let label = metric.get_label().first().map_or("", |label| label.value());
            (label.to_owned(), metric.get_gauge().get_value())
        });
        all.collect()
    }
}

/// Writes one family of the registry if it is declared, requested and has a series.
pub(super) fn write(
    out: &mut Vec<u8>,
    format: Format,
    gathered: &MetricFamily,
    wanted: impl Fn(&Family) -> bool,
) {
    let declared = FAMILIES.iter().find(|family| family.name == gathered.name());
    let Some(family) = declared.filter(|family| wanted(family) && !gathered.get_metric().is_empty()) else {
        return;
    };
    head(out, format, family);
    for metric in gathered.get_metric() {
        let mut labels = String::new();
        // An empty label means no label.
        for pair in metric.get_label().iter().filter(|pair| !pair.value().is_empty()) {
            label(&mut labels, pair.name(), pair.value());
        }
        match gathered.get_field_type() {
            MetricType::HISTOGRAM => histogram(out, family, &labels, metric.get_histogram()),
            MetricType::COUNTER => {
                named_sample(out, family.name, "", &labels, "", metric.get_counter().get_value())
            }
            _ => named_sample(out, family.name, "", &labels, "", metric.get_gauge().get_value()),
        }
    }
}

fn histogram(out: &mut Vec<u8>, family: &Family, labels: &str, histogram: &prometheus::proto::Histogram) {
    let bucket = |out: &mut Vec<u8>, bound: f64, count: u64| {
        let mut le = String::new();
        label(&mut le, "le", LabelNumber::default().text(bound));
        named_sample(out, family.name, "_bucket", labels, &le, count as f64);
    };
    for entry in histogram.get_bucket() {
        bucket(out, entry.upper_bound(), entry.cumulative_count());
    }
    bucket(out, f64::INFINITY, histogram.get_sample_count());
    named_sample(out, family.name, "_sum", labels, "", histogram.get_sample_sum());
    named_sample(out, family.name, "_count", labels, "", histogram.get_sample_count() as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_has_no_series_until_it_is_known() {
        let registry = Registry::new();
        let fact = Gauges::register(&Family::gauge("pds_fact", &[], "A fact"), &registry).unwrap();
        let facts = Gauges::register(&Family::gauge("pds_facts", &["token"], "Facts"), &registry).unwrap();
        assert_eq!((fact.get(), facts.all()), (None, Vec::new()));
        fact.set(&[], 0.0);
        facts.set(&["a"], 1.0);
        facts.set(&["b"], 2.0);
        facts.set(&["a"], None);
        facts.set(&["c"], None);
        assert_eq!((fact.get(), facts.all()), (Some(0.0), vec![("b".to_owned(), 2.0)]));
        facts.clear();
        assert_eq!(facts.all(), []);
    }
}
