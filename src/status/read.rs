//! Values of samples by family and label.

use std::sync::Arc;

use crate::store::Store;
use pds_exposition::{Family, Labels, Samples};
use pds_interface::Resource;

/// The samples of one target with their families.
#[derive(Clone, Debug)]
pub(super) struct Values<'a> {
    families: &'a [Family],
    samples: Option<Arc<Samples>>,
}

impl<'a> Values<'a> {
    /// The samples of `resource`, if it has any.
    pub(super) fn new(store: &'a Store, resource: Resource, samples: Option<Arc<Samples>>) -> Self {
        let families = store.families().get(resource.index());
        Self { families: families.map_or(&[], Vec::as_slice), samples }
    }

    /// The families.
    pub(super) fn families(&self) -> &'a [Family] {
        self.families
    }

    /// The series of `family`.
    fn series(&self, family: &Family) -> impl Iterator<Item = (Labels<'_>, f64)> {
        self.samples.iter().flat_map(|samples| samples.series(self.families, family))
    }

    /// The value of the only series of `family`.
    pub(super) fn value(&self, family: &Family) -> Option<f64> {
        self.series(family).next().map(|(_, value)| value)
    }

    /// The values of the series of `family` whose label `label` is one of `wanted`, in that order.
    pub(super) fn values_where<const N: usize>(
        &self,
        family: &Family,
        label: &str,
        wanted: [&str; N],
    ) -> [Option<f64>; N] {
        let mut values = [None; N];
        for (labels, value) in self.series(family) {
            let found = labels.get(label);
            let place = wanted.iter().position(|wanted| found == Some(*wanted));
            if let Some(place) = place.and_then(|place| values.get_mut(place)) {
                *place = Some(value);
            }
        }
        values
    }

    /// The value of the label `label` of the first series of `family`; `None` if it is empty.
    pub(super) fn label(&self, family: &Family, label: &str) -> Option<&str> {
        self.series(family).next()?.0.get(label).filter(|value| !value.is_empty())
    }

    /// The labels of the first series of `family` beyond those that it declares: the configured ones.
    pub(super) fn configured_labels(&self, family: &Family) -> Vec<(String, String)> {
        let labels = self.series(family).next().into_iter().flat_map(|(labels, _)| labels.iter());
        let configured = labels.filter(|(name, _)| !family.labels.contains(name));
        configured.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The series of `family` by the value of their label `label`.
    pub(super) fn by(&self, family: &Family, label: &str) -> Vec<(String, f64)> {
        let by_label = |(labels, value): (Labels<'_>, f64)| Some((labels.get(label)?.to_owned(), value));
        self.series(family).filter_map(by_label).collect()
    }
}
