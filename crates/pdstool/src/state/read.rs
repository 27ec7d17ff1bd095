//! Ledgers of a state file, and cursors of a Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Result, ToolError};
use pds_config::Config;
use pds_core::clock::Clock;
use pds_core::error_chain::with_sources;
use pds_core::memory::{Holder, MemoryBudget};
use pds_ledger::{
    Key, Ledger, Owner,
    restore::{Source, Targets},
    state,
};

/// A counter in one source.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The counter.
    pub(super) key: Key,
    /// The cursor.
    pub(super) until: i64,
    /// The ledger, which only a file holds.
    pub(super) ledger: Option<Ledger>,
}

/// A counter in both sources.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// The counter.
    pub(super) key: Key,
    /// The state file.
    pub(super) file: Option<Held>,
    /// Prometheus.
    pub(super) prometheus: Option<Held>,
}

impl Pair {
    /// Whether both have the same cursor.
    pub(super) fn is_same(&self) -> bool {
        matches!((&self.file, &self.prometheus), (Some(file), Some(prometheus)) if file.until == prometheus.until)
    }

    /// Whether the file's ledger was set aside for another shard.
    pub(super) fn is_set_aside(&self) -> bool {
        self.file.as_ref().and_then(|file| file.ledger.as_ref()).is_some_and(|ledger| ledger.set_aside)
    }

    /// The source from which the exporter continues.
    pub(super) fn continues_from(&self) -> &'static str {
        match (&self.file, &self.prometheus) {
            (_, Some(_)) if self.is_set_aside() => "prometheus",
            (Some(_), _) => "file",
            (None, _) => "prometheus",
        }
    }
}

/// Both, by counter.
pub(super) fn pairs(file: Vec<Held>, prometheus: Vec<Held>) -> Vec<Pair> {
    let by_key = |held: Vec<Held>| -> BTreeMap<Key, Held> {
        held.into_iter().map(|held| (held.key.clone(), held)).collect()
    };
    let (mut file, mut prometheus) = (by_key(file), by_key(prometheus));
    let keys: BTreeSet<Key> = file.keys().chain(prometheus.keys()).cloned().collect();
    let pair = |key| Pair { file: file.remove(&key), prometheus: prometheus.remove(&key), key };
    keys.into_iter().map(pair).collect()
}

/// The ledgers in the state file at `path`, which is only read, by counter.
pub(super) async fn file(path: &Path) -> Result<Vec<Held>> {
    let ledgers = state::read(path).await.map_err(|error| failed(&error))?;
    let held = |(key, ledger): (Key, Ledger)| Held { key, until: ledger.until, ledger: Some(ledger) };
    Ok(ledgers.into_iter().map(held).collect())
}

/// The cursors of the configured apps in the Prometheus of `config`, by counter.
pub(super) async fn prometheus(config: &Config) -> Result<Vec<Held>> {
    let source = source(config)?;
    let now = Clock::system().unix_seconds();
    let (answers, result) = source.cursors(counters(config), now, &Targets::new()).await;
    result.map_err(|error| failed(&error))?;
    let held = answers
        .into_iter()
        .filter_map(|answer| Some(Held { key: answer.key, until: answer.cursor?.until, ledger: None }));
    let mut held: Vec<Held> = held.collect();
    held.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(held)
}

/// The Prometheus of `config`.
pub(crate) fn source(config: &Config) -> Result<Source> {
    let none = || ToolError::Usage("no Prometheus: state.prometheus_url is empty".to_owned());
    let prometheus = config.state.prometheus.as_ref().ok_or_else(none)?;
    Ok(Source::new(prometheus, MemoryBudget::default().share(Holder::Restoring))?)
}

/// The counters of all configured apps.
pub(crate) fn counters(config: &Config) -> Vec<Key> {
    let counted = || config.poll.resources.iter().filter(|resource| resource.polled().counted.is_some());
    let mut keys = Vec::new();
    for project in &config.projects {
        for app in &project.apps {
            let owner = Owner::new(Arc::clone(&project.id), Arc::clone(&app.id));
            keys.extend(counted().map(|resource| Key { owner: Arc::clone(&owner), resource: *resource }));
        }
    }
    keys
}

pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> ToolError {
    ToolError::failed(with_sources(error))
}
