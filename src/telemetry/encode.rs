//! Writes the registry's families with the catalogue's encoder.

use prometheus::proto::{MetricFamily, MetricType};

use pds_exposition::encode::{LabelNumber, head, label, named_sample};
use pds_exposition::{Family, Format};

use super::{FAMILIES, process_families};

/// Writes one family of the registry if it is declared, requested and has a series.
pub(super) fn family(
    out: &mut Vec<u8>,
    format: Format,
    gathered: &MetricFamily,
    wanted: impl Fn(&Family) -> bool,
) {
    let declared = FAMILIES.iter().chain(process_families()).find(|family| family.name == gathered.name());
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

#[expect(clippy::cast_precision_loss, reason = "counts of requests stay below 2^53")]
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
