//! Handles on metrics: what a declaration gives to those who count.

use prometheus::core::Collector;
use prometheus::{
    CounterVec, Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use pds_exposition::Family;

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

/// A gauge without labels. It has no series until its value is known.
#[derive(Debug)]
pub(super) struct OptionalGauge(GaugeVec);

impl OptionalGauge {
    pub(super) fn set(&self, value: f64) {
        self.0.with_label_values::<&str>(&[]).set(value);
    }

    /// Removes the series.
    pub(super) fn clear(&self) {
        self.0.reset();
    }

    /// The value, if it is known.
    pub(super) fn get(&self) -> Option<f64> {
        Some(self.0.collect().first()?.get_metric().first()?.get_gauge().get_value())
    }
}

/// A gauge with one label. A label value has no series until its value is known.
#[derive(Debug)]
pub(super) struct OptionalGauges(GaugeVec);

impl OptionalGauges {
    /// Sets the value of `label`; `None` removes its series.
    pub(super) fn set(&self, label: &str, value: impl Into<Option<f64>>) {
        match value.into() {
            Some(value) => self.0.with_label_values(&[label]).set(value),
            // Fails if there is no such series, which is fine.
            None => drop(self.0.remove_label_values(&[label])),
        }
    }

    /// Removes all series.
    pub(super) fn clear(&self) {
        self.0.reset();
    }

    /// All label values with their values.
    pub(super) fn all(&self) -> Vec<(String, f64)> {
        let families = self.0.collect();
        let metrics = families.iter().flat_map(|family| family.get_metric());
        metrics
            .filter_map(|metric| {
                let label = metric.get_label().first()?;
                Some((label.value().to_owned(), metric.get_gauge().get_value()))
            })
            .collect()
    }
}

impl Handle for OptionalGauge {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        GaugeVec::register(family, registry).map(Self)
    }
}

impl Handle for OptionalGauges {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        GaugeVec::register(family, registry).map(Self)
    }
}

impl Handle for Gauge {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        registered(registry, Self::with_opts(opts(family))?)
    }
}

impl Handle for GaugeVec {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        registered(registry, Self::new(opts(family), family.labels)?)
    }
}

impl Handle for IntCounter {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        registered(registry, Self::with_opts(opts(family))?)
    }
}

impl Handle for IntCounterVec {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        registered(registry, Self::new(opts(family), family.labels)?)
    }
}

impl Handle for CounterVec {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        registered(registry, Self::new(opts(family), family.labels)?)
    }
}

impl Handle for HistogramVec {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        let opts = HistogramOpts::new(family.name, family.help).buckets(DURATION_BUCKETS.to_vec());
        registered(registry, Self::new(opts, family.labels)?)
    }
}

pub(super) fn opts(family: &Family) -> Opts {
    Opts::new(family.name, family.help)
}

fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    collector: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_has_no_series_until_it_is_known() {
        let registry = Registry::new();
        let fact = OptionalGauge::register(&Family::gauge("pds_fact", &[], "A fact"), &registry).unwrap();
        let facts =
            OptionalGauges::register(&Family::gauge("pds_facts", &["token"], "Facts"), &registry).unwrap();
        assert_eq!((fact.get(), facts.all()), (None, Vec::new()));
        fact.set(0.0);
        facts.set("a", 1.0);
        facts.set("b", 2.0);
        facts.set("a", None);
        facts.set("c", None);
        assert_eq!((fact.get(), facts.all()), (Some(0.0), vec![("b".to_owned(), 2.0)]));
        facts.clear();
        assert_eq!(facts.all(), []);
    }
}
