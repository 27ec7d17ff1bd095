//! The declaration of a metric family, and the catalogue of families for people.

/// Label names that Prometheus or its operator sets, or that have a special meaning in the formats. Neither families nor
/// configured labels may use them, nor names that begin with `__`.
pub const RESERVED_LABELS: &[&str] =
    &["job", "instance", "endpoint", "service", "container", "pod", "namespace", "cluster", "le", "quantile"];

/// The type of a family, as Prometheus names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only grows while the process runs; its name ends in `_total`.
    Counter,
    /// Cumulative buckets with an `le` label; samples are named `<family>_bucket`.
    Histogram,
    /// Facts in labels, its value always 1; its name ends in `_info`. Text 0.0.4 calls it a gauge.
    Info,
}

impl Kind {
    /// The type's name in OpenMetrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// A metric family: name, type, help and labels. Declared as a constant beside the code that reads its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The full name as in text 0.0.4 (for counters with `_total`; for histograms without `_bucket`).
    pub name: &'static str,
    /// The type.
    pub kind: Kind,
    /// The meaning of the value: a sentence without a full stop, and without characters that need an escape.
    pub help: &'static str,
    /// The source of the value, and how often it is updated: follows `help`, and needs no escape either. Empty if `help`
    /// says it.
    pub source: &'static str,
    /// The label names, in the order they are written, without configured ones.
    pub labels: &'static [&'static str],
}

/// Units that a name may end in, the longer before the shorter.
const UNITS: &[&str] = &["dollars_per_second", "seconds", "bytes", "ratio"];

impl Family {
    /// A gauge.
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Gauge, help, labels, source: "" }
    }

    /// A counter; `name` ends in `_total`.
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Counter, help, labels, source: "" }
    }

    /// A histogram; `labels` do not hold `le`.
    pub const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Histogram, help, labels, source: "" }
    }

    /// An info; `name` ends in `_info`.
    pub const fn info(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Info, help, labels, source: "" }
    }

    /// The family with this source.
    #[must_use]
    pub const fn with_source(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    /// The text between `help` and `source`.
    pub fn separator(&self) -> &'static str {
        if self.source.is_empty() { "" } else { "; " }
    }

    /// The name of the family in OpenMetrics, where samples of counters and infos carry the suffix but the
    /// family does not.
    pub fn base_name(&self) -> &'static str {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        self.name.strip_suffix(suffix).unwrap_or(self.name)
    }

    /// The suffix of sample names beyond `name`; the same in both formats.
    pub fn sample_suffix(&self) -> &'static str {
        if self.kind == Kind::Histogram { "_bucket" } else { "" }
    }

    /// The unit at the end of the name, if any; infos have none.
    pub fn unit(&self) -> Option<&'static str> {
        if self.kind == Kind::Info {
            return None;
        }
        let base = self.base_name();
        UNITS.iter().copied().find(|unit| base.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
    }
}

/// Whether `name` is a label name that both formats accept: `[a-zA-Z_][a-zA-Z0-9_]*`.
pub fn is_label_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Families under a heading.
#[derive(Clone, Debug)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The families, in the order of the page.
    pub families: Vec<Family>,
}

/// The groups as Markdown, with an item per family. Families are gauges unless their item says otherwise. Sources are
/// left out: all families of a group have the same.
pub fn markdown(groups: &[Group]) -> String {
    let item = |family: &Family| {
        let labels =
            if family.labels.is_empty() { String::new() } else { format!("{{{}}}", family.labels.join(",")) };
        let kind =
            if family.kind == Kind::Gauge { String::new() } else { format!(" ({})", family.kind.as_str()) };
        format!("- `{}{labels}`{kind}: {}\n", family.name, family.help)
    };
    let list = |group: &Group| {
        let items: Vec<_> = group.families.iter().map(item).collect();
        format!("### {}\n\n{}", group.title, items.concat())
    };
    groups.iter().map(list).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_and_the_openmetrics_name_follow_from_the_name() {
        let total = Family::counter("pds_app_unaccounted_seconds_total", &[], "");
        assert_eq!((total.base_name(), total.unit()), ("pds_app_unaccounted_seconds", Some("seconds")));
        let cost = Family::gauge("pds_app_replica_cost_dollars_per_second", &[], "");
        assert_eq!(cost.unit(), Some("dollars_per_second"));
        assert_eq!(Family::gauge("pds_up", &[], "").unit(), None);
        assert_eq!(Family::info("pds_some_seconds_info", &[], "").unit(), None);
        assert_eq!(Family::info("pds_app_info", &[], "").base_name(), "pds_app");
    }

    #[test]
    fn label_names_are_those_both_formats_accept() {
        assert!(is_label_name("team") && is_label_name("_a1"));
        assert!(!is_label_name("") && !is_label_name("1a") && !is_label_name("a-b") && !is_label_name("é"));
    }
}
