//! What changed in the settings of an app over the last day.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use pds_exposition::{Family, Labels, Samples};

/// Changes kept per app.
const MAX_CHANGES: usize = 32;
/// How long a change is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

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

/// The changes of one app.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The oldest first.
    kept: VecDeque<Change>,
    /// The samples that the current poll has replaced.
    pub(super) former: Option<Arc<Samples>>,
}

impl Changes {
    /// Adds the changes between two replies, the second of which came at `at`.
    pub(super) fn add(&mut self, at: Timestamp, families: &[Family], before: &Samples, after: &Samples) {
        self.kept.extend(families.iter().flat_map(|family| differences(at, families, family, before, after)));
        let old = |change: &Change| at.duration_since(change.at) > KEPT;
        while self.kept.len() > MAX_CHANGES || self.kept.front().is_some_and(old) {
            self.kept.pop_front();
        }
    }

    /// The changes since `since`, the newest first.
    pub(super) fn since(&self, since: Timestamp) -> Vec<Change> {
        self.kept.iter().rev().filter(|change| change.at >= since).cloned().collect()
    }
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
    // A family that comes or goes as a whole is not a change of each of its labels.
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

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_change_says_what_it_was_and_what_it_is() {
        let mut changes = Changes::default();
        let first = samples("us", Some(4.0), 1.0);
        changes.add(at(10), &FAMILIES, &first, &samples("us", Some(4.0), 2.0));
        assert_eq!(changes.since(at(0)), [], "the time of the last update is no setting");
        changes.add(at(20), &FAMILIES, &first, &samples("eu", Some(8.0), 2.0));
        changes.add(at(30), &FAMILIES, &samples("eu", Some(8.0), 2.0), &samples("eu", None, 2.0));
        let text = |text: &str| Some(Fact::Text(text.into()));
        let number = |value| Some(Fact::Number(value));
        let change =
            |second, family, label, before, after| Change { at: at(second), family, label, before, after };
        assert_eq!(
            changes.since(at(20)),
            [
                change(30, "pds_app_max_replicas", None, number(8.0), None),
                change(20, "pds_app_max_replicas", None, number(4.0), number(8.0)),
                change(20, "pds_app_info", Some("region"), text("us"), text("eu")),
            ]
        );
        assert_eq!(changes.since(at(25)).len(), 1);
    }

    #[test]
    fn changes_are_kept_for_a_day_and_not_without_bounds() {
        let mut changes = Changes::default();
        let flip = |n: i64| samples("us", Some(if n % 2 == 0 { 1.0 } else { 2.0 }), 1.0);
        for n in 0..100 {
            changes.add(at(n), &FAMILIES, &flip(n), &flip(n + 1));
        }
        assert_eq!(changes.since(at(0)).len(), MAX_CHANGES);
        changes.add(at(100 + 24 * 3600), &FAMILIES, &flip(0), &flip(1));
        assert_eq!(changes.since(at(0)).len(), 1);
    }
}
