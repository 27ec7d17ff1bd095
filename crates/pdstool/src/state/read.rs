//! Ledgers of a state file, and cursors of a Prometheus.

use std::collections::BTreeMap;
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

/// A counter in both sources.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The counter.
    pub(super) key: Key,
    /// Its ledger in the state file.
    pub(super) file: Option<Ledger>,
    /// Its cursor in Prometheus.
    pub(super) prometheus: Option<i64>,
}

impl Row {
    /// Whether the file's ledger was set aside for another shard.
    pub(super) fn is_set_aside(&self) -> bool {
        self.file.as_ref().is_some_and(|ledger| ledger.set_aside)
    }

    /// The source from which the exporter continues.
    pub(super) fn continues_from(&self) -> &'static str {
        match self.file {
            Some(_) if self.prometheus.is_none() || !self.is_set_aside() => "file",
            _ => "prometheus",
        }
    }
}

/// Both sources, by counter.
pub(super) fn rows(file: Vec<(Key, Ledger)>, prometheus: Vec<(Key, i64)>) -> Vec<Row> {
    let mut rows = BTreeMap::new();
    for (key, ledger) in file {
        rows.insert(key.clone(), Row { key, file: Some(ledger), prometheus: None });
    }
    for (key, until) in prometheus {
        let row = rows.entry(key.clone()).or_insert(Row { key, file: None, prometheus: None });
        row.prometheus = Some(until);
    }
    rows.into_values().collect()
}

/// The ledgers in the state file at `path`, which is only read.
pub(super) async fn file(path: &Path) -> Result<Vec<(Key, Ledger)>> {
    Ok(state::read(path).await.map_err(|error| failed(&error))?.into_iter().collect())
}

/// The cursors of the configured apps in the Prometheus of `config`.
pub(super) async fn prometheus(config: &Config) -> Result<Vec<(Key, i64)>> {
    let source = source(config)?;
    let now = Clock::system().unix_seconds();
    let (answers, result) = source.cursors(counters(config), now, &Targets::new()).await;
    result.map_err(|error| failed(&error))?;
    Ok(answers.into_iter().filter_map(|answer| Some((answer.key, answer.cursor?.until))).collect())
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
