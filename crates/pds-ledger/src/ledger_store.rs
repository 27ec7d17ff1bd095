//! All ledgers: committed first, then shown.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Duration;

use crate::Key;
use crate::observer::Observer;
use pds_interface::Counted;

use super::commits::{Committer, Entry, Hold, Ledgers, NotCommitted, commit_all};
use super::error::StateError;
use super::ledger::Ledger;
use super::record::Record;
use super::state::StateFile;

/// All ledgers by app and resource. Cloning shares them.
#[derive(Clone, Debug)]
pub struct LedgerStore {
    ledgers: Arc<RwLock<Ledgers>>,
    /// Where ledgers go to be committed. `None` if they are kept in memory only.
    commits: Option<mpsc::UnboundedSender<Entry>>,
    closed: Arc<Notify>,
}

/// A ledger, and what keeps it from being shown.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those two")]
pub struct Found {
    pub ledger: Arc<Ledger>,
    pub hold: Option<Hold>,
}

impl LedgerStore {
    /// Opens the ledgers in the file at `path`, which is created if there is none. Without a path they are kept in
    /// memory. Commits are at least `apart` from each other ([`COMMIT_INTERVAL`](super::COMMIT_INTERVAL)).
    ///
    /// # Errors
    /// If the file cannot be used. It is never overwritten and never taken for empty.
    pub async fn open(
        path: Option<&Path>,
        observer: Arc<dyn Observer>,
        apart: Duration,
    ) -> Result<(Self, Committer), StateError> {
        let Some(path) = path else {
            return Ok((
                Self { ledgers: Arc::default(), commits: None, closed: Arc::default() },
                Committer(None),
            ));
        };
        let (state, found) = StateFile::open(path).await?;
        let mut ledgers = Ledgers::default();
        for (key, mut ledger) in found {
            ledger.share_thresholds(&mut ledgers.thresholds);
            ledgers.by_key.insert(key, Arc::new(ledger));
        }
        let (commits, entries) = mpsc::unbounded_channel();
        let closed = Arc::new(Notify::new());
        let ledgers = Self { ledgers: Arc::new(RwLock::new(ledgers)), commits: Some(commits), closed };
        let held = Arc::clone(&ledgers.ledgers);
        let task =
            tokio::spawn(commit_all(state, held, entries, observer, apart, Arc::clone(&ledgers.closed)));
        Ok((ledgers, Committer(Some(task))))
    }

    /// Lets the [`Committer`] end once everything handed over so far is on disk. Later ledgers are not committed.
    pub fn close(&self) {
        self.closed.notify_one();
    }

    /// The ledger of `key`, as last committed.
    #[must_use]
    pub fn ledger(&self, key: &Key) -> Option<Arc<Ledger>> {
        self.read().by_key.get(key).cloned()
    }

    /// The ledgers of many, in the order of `keys`.
    pub fn find<'a>(&self, keys: impl Iterator<Item = Option<&'a Key>>) -> Vec<Option<Found>> {
        let ledgers = self.read();
        let find = |key: &Key| {
            let ledger = Arc::clone(ledgers.by_key.get(key)?);
            Some(Found { ledger, hold: ledgers.holds.get(key).copied() })
        };
        keys.map(|key| find(key?)).collect()
    }

    /// The ledger of `key`. The store and the caller share the names in `key` from now on.
    #[must_use]
    pub fn adopt(&self, key: &Key) -> Option<Arc<Ledger>> {
        let mut ledgers = self.ledgers();
        let ledger = ledgers.by_key.remove(key)?;
        ledgers.by_key.insert(key.clone(), Arc::clone(&ledger));
        Some(ledger)
    }

    /// An empty ledger for `key` that begins at `second`. It has the thresholds of other apps, so that they are on the
    /// page before they count.
    #[must_use]
    pub fn new_ledger(&self, key: &Key, second: i64) -> Ledger {
        let ledger = Ledger::open(second);
        match key.resource.polled().counted {
            Some(Counted::Requests) => ledger.learn_thresholds(&*self.read().thresholds).unwrap_or(ledger),
            _ => ledger,
        }
    }

    /// Makes `ledger` the ledger of `key`, once it is on disk.
    ///
    /// # Errors
    /// If it could not be written. The previous ledger stays then.
    pub async fn commit(&self, key: &Key, ledger: Ledger) -> Result<Arc<Ledger>, NotCommitted> {
        let ledger = self.shared(ledger);
        self.write(key, Some(Arc::clone(&ledger))).await?;
        Ok(ledger)
    }

    /// Makes each of these the ledger of its key, once all are on disk.
    ///
    /// # Errors
    /// If they could not be written. The previous ledgers stay then.
    pub async fn commit_all(&self, ledgers: Vec<(Key, Ledger)>) -> Result<(), NotCommitted> {
        let count = ledgers.len();
        let records = ledgers.into_iter().map(|(key, ledger)| (key, Some(self.shared(ledger))));
        if self.write_all(records.collect()).await == count { Ok(()) } else { Err(NotCommitted) }
    }

    /// Makes `ledger` the ledger of `key` in memory only, for facts that cost nothing to learn again.
    pub fn hold(&self, key: &Key, ledger: Ledger) -> Arc<Ledger> {
        let ledger = self.shared(ledger);
        self.ledgers().by_key.insert(key.clone(), Arc::clone(&ledger));
        ledger
    }

    /// Keeps the ledger of `key` from being shown or opened.
    pub fn hold_back(&self, key: &Key, hold: Hold) {
        self.ledgers().holds.insert(key.clone(), hold);
    }

    /// What keeps the ledger of `key` from being shown.
    #[must_use]
    pub fn held_back(&self, key: &Key) -> Option<Hold> {
        self.read().holds.get(key).copied()
    }

    /// Lets the ledger of `key` be shown again.
    pub fn release(&self, key: &Key) {
        // Nearly all are not held back, and those who read wait for those who write.
        if self.held_back(key).is_some() {
            self.ledgers().holds.remove(key);
        }
    }

    /// Sets aside the ledgers of apps that are `elsewhere`: those of other shards.
    pub async fn set_aside(&self, elsewhere: impl Fn(&Key) -> bool) {
        let ledgers: Vec<(Key, Arc<Ledger>)> =
            self.read().by_key.iter().map(|(key, ledger)| (key.clone(), Arc::clone(ledger))).collect();
        let aside = ledgers.into_iter().filter_map(|(key, ledger)| {
            let aside = if elsewhere(&key) { ledger.put_aside() } else { None };
            aside.map(|aside| (key, Some(Arc::new(aside))))
        });
        let aside = self.write_all(aside.collect()).await;
        if aside > 0 {
            tracing::info!(ledgers = aside, "set aside the counters of apps that another shard counts");
        }
    }

    /// Drops the ledgers of apps that are not `wanted` and whose cursor is before `oldest` (Unix seconds), and whatever
    /// keeps those of others that are not wanted from being shown.
    pub async fn prune(&self, wanted: &HashSet<Key>, oldest: i64) {
        self.ledgers().holds.retain(|key, _| wanted.contains(key));
        let gone = |(key, ledger): &(&Key, &Arc<Ledger>)| ledger.until < oldest && !wanted.contains(*key);
        let gone: Vec<Record> =
            self.read().by_key.iter().filter(gone).map(|(key, _)| (key.clone(), None)).collect();
        let dropped = self.write_all(gone).await;
        if dropped > 0 {
            tracing::info!(ledgers = dropped, "dropped the counters of apps removed long ago");
        }
    }

    /// Writes all of them in one commit and returns how many there were.
    async fn write_all(&self, records: Vec<Record>) -> usize {
        let sent: Vec<_> = records.into_iter().map(|(key, ledger)| self.send(key, ledger)).collect();
        let mut written = 0;
        for sent in sent {
            written += usize::from(Self::written(sent).await.is_ok());
        }
        written
    }

    async fn write(&self, key: &Key, ledger: Option<Arc<Ledger>>) -> Result<(), NotCommitted> {
        Self::written(self.send(key.clone(), ledger)).await
    }

    /// Hands a ledger over to be committed. In memory it takes effect at once.
    fn send(
        &self,
        key: Key,
        ledger: Option<Arc<Ledger>>,
    ) -> Result<Option<oneshot::Receiver<bool>>, NotCommitted> {
        let Some(commits) = &self.commits else {
            self.ledgers().take([(key, ledger)]);
            return Ok(None);
        };
        let (done, written) = oneshot::channel();
        commits.send(Entry { key, ledger, done }).map_err(|_| NotCommitted)?;
        Ok(Some(written))
    }

    async fn written(
        sent: Result<Option<oneshot::Receiver<bool>>, NotCommitted>,
    ) -> Result<(), NotCommitted> {
        let Some(written) = sent? else { return Ok(()) };
        if written.await == Ok(true) { Ok(()) } else { Err(NotCommitted) }
    }

    fn shared(&self, mut ledger: Ledger) -> Arc<Ledger> {
        ledger.share_thresholds(&mut self.ledgers().thresholds);
        Arc::new(ledger)
    }

    fn read(&self) -> RwLockReadGuard<'_, Ledgers> {
        self.ledgers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledgers(&self) -> RwLockWriteGuard<'_, Ledgers> {
        self.ledgers.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use pds_interface::Resource;

    use super::*;
    use crate::Owner;
    use crate::observer::Unobserved;

    #[tokio::test]
    async fn what_holds_a_ledger_back_goes_with_its_app() {
        let opened = LedgerStore::open(None, Arc::new(Unobserved), Duration::ZERO).await;
        let ledgers = opened.unwrap().0;
        let resource = Resource::all().find(|resource| resource.polled().counted.is_some()).unwrap();
        let key = |app: &str| Key { owner: Owner::new("p".into(), app.into()), resource };
        for app in ["stays", "goes"] {
            ledgers.hold_back(&key(app), Hold::Unknown);
        }
        ledgers.prune(&HashSet::from([key("stays")]), 0).await;
        assert!(ledgers.held_back(&key("stays")).is_some() && ledgers.held_back(&key("goes")).is_none());
    }
}
