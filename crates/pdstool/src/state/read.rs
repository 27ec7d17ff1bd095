//! Ledgers of a state file and of a Prometheus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::ToolError;
use crate::service::{self, Environment};
use pds_core::error_chain::with_sources;
use pds_core::memory::{Holder, MemoryBudget};
use pds_exporter::config::Config;
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
#[derive(Clone, Debug, Default)]
pub(super) struct Pair {
    /// The state file.
    pub(super) file: Option<Held>,
    /// Prometheus.
    pub(super) prometheus: Option<Held>,
}

impl Pair {
    /// What one of them holds.
    pub(super) fn held(&self) -> Option<&Held> {
        self.file.as_ref().or(self.prometheus.as_ref())
    }

    /// The ledgers of both.
    pub(super) fn ledgers(&self) -> (Option<&Ledger>, Option<&Ledger>) {
        fn ledger(held: Option<&Held>) -> Option<&Ledger> {
            held?.ledger.as_ref()
        }
        (ledger(self.file.as_ref()), ledger(self.prometheus.as_ref()))
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
    let mut pairs: BTreeMap<Key, Pair> = BTreeMap::new();
    for held in file {
        let pair = pairs.entry(held.key.clone()).or_default();
        pair.file = Some(held);
    }
    for held in prometheus {
        let pair = pairs.entry(held.key.clone()).or_default();
        pair.prometheus = Some(held);
    }
    pairs.into_values().collect()
}

/// The ledgers in the state file at `path`, which is only read.
pub(super) async fn file(path: &Path) -> Result<Vec<Held>, ToolError> {
    let ledgers = state::read(path).await.map_err(|error| failed(&error))?;
    let held = ledgers.into_iter().map(|(key, ledger)| Held {
        key,
        ledger: Some(ledger),
        target: String::new(),
        problem: String::new(),
    });
    let mut held: Vec<Held> = held.collect();
    held.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(held)
}

/// What a configuration names.
#[derive(Debug)]
pub(super) struct Origins {
    /// The state file.
    pub(super) file: Option<PathBuf>,
    config: Config,
}

impl Origins {
    /// Those of the configuration file at `config`, with `state_path` in the place of its state file.
    pub(super) fn load(
        config: &Path,
        state_path: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, ToolError> {
        let config = service::load(config, environment)?;
        let file = state_path.map(Path::to_owned).or_else(|| config.state.path.clone());
        Ok(Self { file, config })
    }

    /// What its Prometheus holds of the configured apps, sorted. `now` is the time that no cursor may be ahead of.
    pub(super) async fn prometheus(&self, now: i64) -> Result<Vec<Held>, ToolError> {
        let Some(prometheus) = &self.config.state.prometheus else {
            let message = "no Prometheus: state.prometheus_url is empty";
            return Err(ToolError::Usage(message.to_owned()));
        };
        let source = Source::new(prometheus, MemoryBudget::default().share(Holder::Restoring))?;
        let at = source.now().await.map_err(|error| failed(&error))?;
        let (answers, result) = source.ledgers(&self.counters(), at, now, |_, _| {}).await;
        result.map_err(|error| failed(&error))?;
        let mut held: Vec<Held> = answers.into_iter().map(|(key, answer)| of(key, answer)).collect();
        held.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(held)
    }

    /// The counters of all configured apps.
    fn counters(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        for project in &self.config.projects {
            for app in &project.apps {
                let owner = Owner::new(Arc::clone(&project.id), Arc::clone(&app.id));
                let counted = self.config.poll.resources.iter();
                let counted = counted.filter(|resource| resource.polled().counted.is_some());
                keys.extend(counted.map(|resource| Key { owner: Arc::clone(&owner), resource: *resource }));
            }
        }
        keys
    }
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
    ToolError::Failed { message: with_sources(error), code: 1 }
}
