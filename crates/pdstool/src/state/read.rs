//! Ledgers of a state file and of a Prometheus.

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
    restore::{Answer, Source, is_later},
    state,
};

/// What one origin holds of a counter.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The counter.
    pub(super) key: Key,
    /// Its ledger; `None` if there is none that can be used.
    pub(super) ledger: Option<Ledger>,
    /// The labels of the scraped target; empty for a file.
    pub(super) target: String,
    /// Why the ledger is missing.
    pub(super) problem: String,
}

/// Of what Prometheus holds nothing.
const UNKNOWN: &str = "nothing is known";

impl Held {
    /// Whether the origin has never seen the counter.
    pub(super) fn is_unknown(&self) -> bool {
        self.problem == UNKNOWN
    }
}

/// What the two origins hold of a counter.
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
    /// The ledgers of both.
    pub(super) fn ledgers(&self) -> (Option<&Ledger>, Option<&Ledger>) {
        let [file, prometheus] =
            [&self.file, &self.prometheus].map(|held| held.as_ref().and_then(|held| held.ledger.as_ref()));
        (file, prometheus)
    }

    /// Whether neither of them has ever seen the counter.
    pub(super) fn is_unknown(&self) -> bool {
        self.file.is_none() && self.prometheus.as_ref().is_none_or(Held::is_unknown)
    }

    /// Whether both have counted the same as far.
    pub(super) fn is_same(&self) -> bool {
        let of = |ledger: &Ledger| (ledger.until, ledger.total, ledger.unaccounted);
        matches!(self.ledgers(), (Some(file), Some(prometheus)) if of(file) == of(prometheus))
    }

    /// From which of them the exporter would go on.
    pub(super) fn goes_on_from(&self) -> &'static str {
        match self.ledgers() {
            (Some(file), Some(prometheus)) if is_later(prometheus, file) => "prometheus",
            (Some(_), _) => "file",
            (None, Some(_)) => "prometheus",
            (None, None) => "",
        }
    }
}

/// Both, by counter.
pub(super) fn pairs(file: Vec<Held>, prometheus: Vec<Held>) -> Vec<Pair> {
    let mut pairs: BTreeMap<Key, (Option<Held>, Option<Held>)> = BTreeMap::new();
    for held in file {
        let (in_file, _) = pairs.entry(held.key.clone()).or_default();
        *in_file = Some(held);
    }
    for held in prometheus {
        let (_, in_prometheus) = pairs.entry(held.key.clone()).or_default();
        *in_prometheus = Some(held);
    }
    pairs.into_iter().map(|(key, (file, prometheus))| Pair { key, file, prometheus }).collect()
}

/// The ledgers in the state file at `path`, which is only read, by counter.
pub(super) async fn file(path: &Path) -> Result<Vec<Held>> {
    let ledgers = state::read(path).await.map_err(|error| failed(&error))?;
    let answer = |ledger| Answer::Ledger { ledger, target: String::new() };
    Ok(ledgers.into_iter().map(|(key, ledger)| of(key, answer(ledger))).collect())
}

/// What the Prometheus of `config` holds of the configured apps, by counter.
pub(super) async fn prometheus(config: &Config) -> Result<Vec<Held>> {
    let none = || ToolError::Usage("no Prometheus: state.prometheus_url is empty".to_owned());
    let prometheus = config.state.prometheus.as_ref().ok_or_else(none)?;
    let source = Source::new(prometheus, MemoryBudget::default().share(Holder::Restoring))?;
    let at = source.now().await.map_err(|error| failed(&error))?;
    let now = Clock::system().unix_seconds();
    let (answers, result) = source.ledgers(&counters(config), at, now, |_, _| {}).await;
    result.map_err(|error| failed(&error))?;
    let mut held: Vec<Held> = answers.into_iter().map(|(key, answer)| of(key, answer)).collect();
    held.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(held)
}

/// The counters of all configured apps.
fn counters(config: &Config) -> Vec<Key> {
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

fn of(key: Key, answer: Answer) -> Held {
    let (ledger, target, problem) = match answer {
        Answer::Ledger { ledger, target } => (Some(ledger), target, String::new()),
        Answer::Refused { why, target } => (None, target, format!("refused: {why}")),
        Answer::Nothing => (None, String::new(), UNKNOWN.to_owned()),
    };
    Held { key, ledger, target, problem }
}

pub(super) fn failed(error: &(dyn std::error::Error + 'static)) -> ToolError {
    ToolError::failed(with_sources(error))
}
