//! Values of samples by family name.

use std::sync::Arc;

use crate::catalogue::encode::labels;
use crate::catalogue::{Family, Samples};
use crate::interface::Resource;
use crate::store::Store;

/// The samples of one target with their families.
#[derive(Clone, Debug)]
pub(super) struct Values<'a> {
    families: &'a [Family],
    samples: Option<Arc<Samples>>,
}

impl<'a> Values<'a> {
    /// What `resource` said: `samples`, if it said anything.
    pub(super) fn new(store: &'a Store, resource: Resource, samples: Option<Arc<Samples>>) -> Self {
        let families = store.families().get(resource.index());
        Self { families: families.map_or(&[], Vec::as_slice), samples }
    }

    /// The families.
    pub(super) fn families(&self) -> &'a [Family] {
        self.families
    }

    /// The series of the family `name` as (label text, value).
    fn series(&self, name: &str) -> impl Iterator<Item = (&str, f64)> {
        let family = self.families.iter().position(|family| family.name == name);
        family.into_iter().flat_map(|family| self.samples.iter().flat_map(move |samples| samples.of(family)))
    }

    /// The value of the only series of the family `name`.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.series(name).next().map(|(_, value)| value)
    }

    /// The labels of the first series of the family `name`; empty if it has no series.
    pub(super) fn labels(&self, name: &str) -> Vec<(String, String)> {
        let first = self.series(name).next();
        first
            .into_iter()
            .flat_map(|(text, _)| labels(text))
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// The series of the family `name` by the value of their label `label`.
    pub(super) fn by(&self, name: &str, label: &str) -> Vec<(String, f64)> {
        let value_of = |text| labels(text).find(|(name, _)| *name == label).map(|(_, value)| value);
        self.series(name).filter_map(|(text, value)| Some((value_of(text)?, value))).collect()
    }
}

/// The value of `name` among `labels`, if it is not empty.
pub(super) fn label(labels: &[(String, String)], name: &str) -> Option<String> {
    labels.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.clone())
}
