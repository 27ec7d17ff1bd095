//! Changes of an app's settings that polls find.

use jiff::Timestamp;

use pds_exposition::{Family, Labels, Samples};

/// A changed setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When a poll first saw it.
    pub at: Timestamp,
    /// The family that shows it.
    pub family: &'static str,
    /// Its label that changed; `None` if its value did.
    pub label: Option<&'static str>,
    /// The former value; `None` if there was none.
    pub before: Option<Fact>,
    /// The new value.
    pub after: Option<Fact>,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// The value of a label.
    Text(Box<str>),
    /// The value of a series.
    Number(f64),
}

/// The changes between two replies, the second of which came at `at`.
pub(super) fn changes(at: Timestamp, families: &[Family], before: &Samples, after: &Samples) -> Vec<Change> {
    families.iter().flat_map(|family| differences(at, families, family, before, after)).collect()
}

/// The differences in the first series of `family`. Times are skipped: they change with every other setting.
fn differences(
    at: Timestamp,
    families: &[Family],
    family: &Family,
    before: &Samples,
    after: &Samples,
) -> Vec<Change> {
    if family.name.ends_with("_timestamp_seconds") {
        return Vec::new();
    }
    let (before, after) = (before.series(families, family).next(), after.series(families, family).next());
    let (name, stated) = (family.name, before.is_some() && after.is_some());
    let change = |label, before, after| Change { at, family: name, label, before, after };
    if family.labels.is_empty() {
        let number = |series: Option<(Labels<'_>, f64)>| series.map(|(_, value)| Fact::Number(value));
        let (before, after) = (number(before), number(after));
        return if before == after { Vec::new() } else { vec![change(None, before, after)] };
    }
    // A whole family that appears or vanishes is not a change of each of its labels.
    let labels = family.labels.iter().filter(|_| stated);
    labels
        .filter_map(|label| {
            let text = |series: &Option<(Labels<'_>, f64)>| {
                let value = series.as_ref()?.0.get(label).filter(|value| !value.is_empty())?;
                Some(Fact::Text(value.into()))
            };
            let (before, after) = (text(&before), text(&after));
            (before != after).then(|| change(Some(*label), before, after))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pds_exposition::Sink;
    use pds_exposition::samples::Layouts;

    const FAMILIES: [Family; 3] = [
        Family::gauge("pds_app_info", &["region", "hardware"], "x"),
        Family::gauge("pds_app_max_replicas", &[], "x"),
        Family::gauge("pds_app_updated_timestamp_seconds", &[], "x"),
    ];

    fn samples(region: &str, replicas: Option<f64>, updated: f64) -> Samples {
        let mut sink = Sink::default();
        sink.next_family();
        sink.put_with(&[("region", region), ("hardware", "A10")], 1.0);
        sink.next_family();
        replicas.into_iter().for_each(|value| sink.put(value));
        sink.next_family();
        sink.put(updated);
        sink.finish(&Layouts::default())
    }

    #[test]
    fn a_change_has_the_old_and_the_new_value() {
        let second = Timestamp::from_second(20).unwrap();
        let found = |before: &Samples, after: &Samples| changes(second, &FAMILIES, before, after);
        let first = samples("us", Some(4.0), 1.0);
        assert_eq!(found(&first, &samples("us", Some(4.0), 2.0)), [], "the last update is no setting");
        let text = |text: &str| Some(Fact::Text(text.into()));
        let number = |value| Some(Fact::Number(value));
        let change = |family, label, before, after| Change { at: second, family, label, before, after };
        assert_eq!(
            found(&first, &samples("eu", Some(8.0), 2.0)),
            [
                change("pds_app_info", Some("region"), text("us"), text("eu")),
                change("pds_app_max_replicas", None, number(4.0), number(8.0)),
            ]
        );
        assert_eq!(
            found(&first, &samples("us", None, 2.0)),
            [change("pds_app_max_replicas", None, number(4.0), None)]
        );
    }
}
