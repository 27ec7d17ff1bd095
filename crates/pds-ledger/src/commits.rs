//! Commits of ledgers: first to disk, then to the page, many in one commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

use pds_core::error_chain::with_sources;

use super::error::StateError;
use super::key::Key;
use super::ledger::Ledger;
use super::observer::Observer;
use super::record::Record;
use super::state::StateFile;

/// Commits are at least this far apart, so that ten thousand apps cost one of them a second; none waits much longer
/// than this.
pub const COMMIT_INTERVAL: Duration = Duration::from_secs(1);

/// The ledgers in memory, as last committed.
#[derive(Debug, Default)]
pub(super) struct Ledgers {
    pub(super) by_key: HashMap<Key, Arc<Ledger>>,
    /// Why some are not shown or not opened yet.
    pub(super) holds: HashMap<Key, Hold>,
    /// The thresholds of the last ledger. Usually all apps have the same and share one list.
    pub(super) thresholds: Arc<[f64]>,
}

/// Why a ledger is not shown yet, beyond being behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is not known yet what was counted before. No ledger is opened until then.
    Unknown,
    /// Until its cursor has reached this second (Unix time). It may hold less than was shown elsewhere.
    Until(i64),
}

impl Ledgers {
    pub(super) fn take(&mut self, records: impl IntoIterator<Item = Record>) {
        for (key, ledger) in records {
            match ledger {
                Some(ledger) => drop(self.by_key.insert(key, ledger)),
                None => drop(self.by_key.remove(&key)),
            }
        }
    }

    pub(super) fn records(&self) -> Vec<Record> {
        self.by_key.iter().map(|(key, ledger)| (key.clone(), Some(Arc::clone(ledger)))).collect()
    }
}

/// A ledger on its way to disk.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    /// `None` removes it.
    pub(super) ledger: Option<Arc<Ledger>>,
    pub(super) done: oneshot::Sender<bool>,
}

/// A ledger could not be written and counts as not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state file could not be written")]
pub struct NotCommitted;

/// The task that commits. Await it after [`LedgerStore::close`](super::LedgerStore::close), so that everything is on disk.
#[derive(Debug)]
pub struct Committer(pub(super) Option<JoinHandle<()>>);

impl Committer {
    /// Waits until everything handed over is on disk.
    pub async fn finished(self) {
        if let Some(task) = self.0 {
            // A panic of the task was reported when its commits failed.
            let _ = task.await;
        }
    }
}

/// Commits whatever has come in since the last commit, until the store is closed or the last of its clones is gone.
pub(super) async fn commit_all(
    state: StateFile,
    ledgers: Arc<RwLock<Ledgers>>,
    mut entries: mpsc::UnboundedReceiver<Entry>,
    observer: Arc<dyn Observer>,
    apart: Duration,
    closed: Arc<Notify>,
) {
    let state = Arc::new(Mutex::new(state));
    let mut batch = Vec::new();
    let mut next = Instant::now();
    let mut good = true;
    loop {
        let wait = async {
            let received = entries.recv_many(&mut batch, usize::MAX).await;
            tokio::time::sleep_until(next).await;
            received
        };
        tokio::select! {
            received = wait => if received == 0 { return },
            () = closed.notified() => entries.close(),
        }
        while let Ok(entry) = entries.try_recv() {
            batch.push(entry);
        }
        if batch.is_empty() {
            return;
        }
        next = Instant::now() + apart;
        let records: Vec<Record> =
            batch.iter().map(|entry| (entry.key.clone(), entry.ledger.clone())).collect();
        let (file, held) = (Arc::clone(&state), Arc::clone(&ledgers));
        let written = tokio::task::spawn_blocking(move || {
            let before = || held.read().unwrap_or_else(PoisonError::into_inner).records();
            file.lock().unwrap_or_else(PoisonError::into_inner).commit(&records, before)?;
            // Memory follows the disk before those who wait for the commit go on.
            held.write().unwrap_or_else(PoisonError::into_inner).take(records);
            Ok::<(), StateError>(())
        })
        .await
        .map_err(|panic| panic.to_string())
        .and_then(|result| result.map_err(|error| with_sources(&error)));
        observer.committed(written.is_ok());
        match &written {
            Err(error) if good => {
                tracing::error!(error, "the state cannot be written; counters stand still until it can");
            }
            Ok(()) if !good => tracing::info!("the state can be written again"),
            _ => {}
        }
        good = written.is_ok();
        for entry in batch.drain(..) {
            // The caller may have been shut down meanwhile.
            let _ = entry.done.send(written.is_ok());
        }
    }
}
