//! All ledgers: first to disk, many in one commit, then to the page.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Duration;

use super::commits::{Committer, Observer, QueuedCommit, commit_all};
use super::error::{NotCommitted, StateError};
use super::key::{Key, Owner};
use super::ledger::{Hold, Ledger};
use super::record::Record;
use super::state::{Ledgers, StateFile};

/// Minimum time between commits: ten thousand apps cost one commit per second, and no ledger waits much longer.
pub const COMMIT_INTERVAL: Duration = Duration::from_secs(1);

/// All ledgers by app and resource. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct LedgerStore {
    ledgers: Arc<RwLock<Ledgers>>,
    /// Queue of ledgers to commit. `None` if they are kept in memory only.
    commits: Option<mpsc::UnboundedSender<QueuedCommit>>,
}

/// Completes once the state file is open, or with the reason why it cannot be used.
pub type Opening = oneshot::Receiver<Result<(), StateError>>;

/// A ledger, and the hold that keeps it from being shown.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those two")]
pub struct Found {
    pub ledger: Arc<Ledger>,
    pub hold: Option<Hold>,
}

impl LedgerStore {
    /// Opens the ledgers in the file at `path`, which is created if missing. Without a path, ledgers are kept in
    /// memory. Commits are at least `apart` ([`COMMIT_INTERVAL`]).
    ///
    /// # Errors
    /// If the file cannot be used. It is never overwritten and never treated as empty.
    pub async fn open(
        path: Option<&Path>,
        observer: Arc<dyn Observer>,
        apart: Duration,
    ) -> Result<(Self, Committer), StateError> {
        let (store, committer, opening) = Self::begin(path, observer, apart);
        // The sender sends a result before it ends.
        opening.await.unwrap_or(Ok(()))?;
        Ok((store, committer))
    }

    /// Like [`LedgerStore::open`], without waiting. Until `Opening` completes, the store holds no ledger, is not
    /// [open](Self::is_open), and must not be written.
    pub fn begin(
        path: Option<&Path>,
        observer: Arc<dyn Observer>,
        apart: Duration,
    ) -> (Self, Committer, Opening) {
        let (done, opening) = oneshot::channel();
        let Some(path) = path.map(Path::to_owned) else {
            let _ = done.send(Ok(()));
            return (Self::default(), Committer(None), opening);
        };
        let (commits, entries) = mpsc::unbounded_channel();
        let ledgers = Arc::new(RwLock::new(Ledgers { is_opening: true, ..Ledgers::default() }));
        let (held, closed) = (Arc::clone(&ledgers), Arc::new(Notify::new()));
        let end = Arc::clone(&closed);
        let task = tokio::spawn(async move {
            let opened = tokio::select! {
                opened = StateFile::open(&path) => opened,
                () = end.notified() => return,
            };
            match opened {
                Ok((state, found)) => {
                    held.write().open(found);
                    let _ = done.send(Ok(()));
                    commit_all(state, held, entries, observer, apart, end).await;
                }
                Err(error) => drop(done.send(Err(error))),
            }
        });
        (Self { ledgers, commits: Some(commits) }, Committer(Some((task, closed))), opening)
    }

    /// Whether the ledgers in the file have been read.
    pub fn is_open(&self) -> bool {
        !self.ledgers.read().is_opening
    }

    /// The ledger of `key`, as last committed.
    pub fn ledger(&self, key: &Key) -> Option<Arc<Ledger>> {
        self.ledgers.read().by_key.get(key).cloned()
    }

    /// The ledgers of several keys, in the order of `keys`.
    pub fn find<'a>(&self, keys: impl Iterator<Item = Option<&'a Key>>) -> Vec<Option<Found>> {
        let ledgers = self.ledgers.read();
        let find = |key: &Key| {
            let ledger = Arc::clone(ledgers.by_key.get(key)?);
            Some(Found { ledger, hold: ledgers.holds.get(key).copied() })
        };
        keys.map(|key| find(key?)).collect()
    }

    /// The ledger of `key`. The store and the caller share the names in `key` from now on.
    pub fn adopt(&self, key: &Key) -> Option<Arc<Ledger>> {
        let mut ledgers = self.ledgers.write();
        let ledger = ledgers.by_key.remove(key)?;
        ledgers.by_key.insert(key.clone(), Arc::clone(&ledger));
        Some(ledger)
    }

    /// Commits `ledger` as the ledger of `key`.
    ///
    /// # Errors
    /// If it could not be written; the previous ledger stays.
    pub async fn commit(&self, key: &Key, ledger: Ledger) -> Result<Arc<Ledger>, NotCommitted> {
        let ledger = self.ledgers.write().shared(ledger);
        self.write(vec![(key.clone(), Some(Arc::clone(&ledger)))]).await?;
        Ok(ledger)
    }

    /// Commits each of these as the ledger of its key, all or none.
    ///
    /// # Errors
    /// If they could not be written; the previous ledgers stay.
    pub async fn commit_all(&self, ledgers: Vec<(Key, Ledger)>) -> Result<(), NotCommitted> {
        let shared = |ledger| self.ledgers.write().shared(ledger);
        let records: Vec<Record> =
            ledgers.into_iter().map(|(key, ledger)| (key, Some(shared(ledger)))).collect();
        if records.is_empty() { Ok(()) } else { self.write(records).await }
    }

    /// Restricts how the ledger of `key` is shown or opened.
    pub fn set_hold(&self, key: &Key, hold: Hold) {
        self.ledgers.write().holds.insert(key.clone(), hold);
    }

    /// The hold of the ledger of `key`.
    pub fn hold(&self, key: &Key) -> Option<Hold> {
        self.ledgers.read().holds.get(key).copied()
    }

    /// Allows the ledger of `key` to be shown again.
    pub fn release(&self, key: &Key) {
        // Few ledgers are held back, so most calls need no write lock.
        if self.hold(key).is_some() {
            self.ledgers.write().holds.remove(key);
        }
    }

    /// Sets aside the ledgers of apps that are `elsewhere`, in other shards.
    pub async fn set_aside(&self, elsewhere: impl Fn(&Key) -> bool) {
        let aside = |(key, ledger): (&Key, &Arc<Ledger>)| {
            let aside = if elsewhere(key) { ledger.put_aside() } else { None };
            aside.map(|aside| (key.clone(), Some(Arc::new(aside))))
        };
        let aside: Vec<Record> = self.ledgers.read().by_key.iter().filter_map(aside).collect();
        let ledgers = aside.len();
        if ledgers > 0 && self.write(aside).await.is_ok() {
            tracing::info!(ledgers, "set aside the counters of apps that another shard counts");
        }
    }

    /// The app and end (Unix seconds) of each ledger that is not set aside.
    pub fn ends(&self) -> Vec<(Arc<Owner>, i64)> {
        let ledgers = self.ledgers.read();
        let counted = ledgers.by_key.iter().filter(|(_, ledger)| !ledger.set_aside);
        counted.map(|(key, ledger)| (Arc::clone(&key.owner), ledger.until)).collect()
    }

    /// Drops the ledgers that are not `wanted` and whose cursor is before `oldest` (Unix seconds), and the holds of all
    /// that are not wanted.
    pub async fn prune(&self, wanted: &HashSet<Key>, oldest: i64) {
        self.ledgers.write().holds.retain(|key, _| wanted.contains(key));
        let gone = |(key, ledger): &(&Key, &Arc<Ledger>)| ledger.until < oldest && !wanted.contains(*key);
        let gone: Vec<Record> =
            self.ledgers.read().by_key.iter().filter(gone).map(|(key, _)| (key.clone(), None)).collect();
        let ledgers = gone.len();
        if ledgers > 0 && self.write(gone).await.is_ok() {
            tracing::info!(ledgers, "dropped the counters of apps removed long ago");
        }
    }

    /// Queues these, and waits until all are on disk. Without a file, they take effect at once.
    async fn write(&self, records: Vec<Record>) -> Result<(), NotCommitted> {
        let Some(commits) = &self.commits else {
            self.ledgers.write().take(records);
            return Ok(());
        };
        let (done, written) = oneshot::channel();
        commits.send(QueuedCommit { records, done }).map_err(|_| NotCommitted)?;
        if written.await == Ok(true) { Ok(()) } else { Err(NotCommitted) }
    }
}

#[cfg(test)]
mod tests {
    use pds_interface::response_time;

    use parking_lot::Mutex;
    use tokio::time::Instant;

    use super::*;
    use crate::commits::Unobserved;
    use crate::state::{MAX_COMMIT, tests::state_file};
    use crate::{Owner, state};

    fn requests(app: &str) -> Key {
        Key { owner: Owner::new("p".into(), app.into()), resource: response_time::RESOURCE }
    }

    async fn in_memory() -> LedgerStore {
        LedgerStore::open(None, Arc::new(Unobserved), Duration::ZERO).await.unwrap().0
    }

    /// A ledger that stands at `until`, with two buckets.
    fn ledger(until: i64) -> Ledger {
        Ledger::open(until).with_buckets(&[(0.5, 0), (2.5, 0)])
    }

    /// Whether each commit was written.
    #[derive(Debug, Default)]
    struct Commits(Mutex<Vec<bool>>);

    impl Observer for Commits {
        fn committed(&self, written: Result<(), &str>) {
            self.0.lock().push(written.is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    #[expect(clippy::await_holding_lock, reason = "it stands for a disk that hangs")]
    async fn a_disk_that_hangs_fails_commits_until_it_answers() {
        let (_dir, path) = state_file();
        let commits = Arc::new(Commits::default());
        let observer: Arc<dyn Observer> = Arc::<Commits>::clone(&commits);
        let (store, committer) = LedgerStore::open(Some(&path), observer, Duration::ZERO).await.unwrap();
        let write = |until| store.write(vec![(requests("a"), Some(Arc::new(ledger(until))))]);
        // A commit ends by writing this.
        let hanging = store.ledgers.read();
        let pass = async || {
            for _ in 0..20 {
                tokio::time::advance(MAX_COMMIT).await;
                // The committer notices it.
                tokio::task::yield_now().await;
            }
        };
        assert!(tokio::join!(write(60), pass()).0.is_err());
        drop(hanging);
        write(120).await.unwrap();
        assert_eq!(store.ledger(&requests("a")).unwrap().until, 120);
        let commits = std::mem::take(&mut *commits.0.lock());
        assert!(commits.contains(&false) && commits.ends_with(&[true]), "{commits:?}");

        let _hanging = store.ledgers.read();
        let stop = async {
            pass().await;
            tokio::join!(committer.finished(), pass());
        };
        assert!(tokio::join!(write(180), stop).0.is_err(), "and a stop does not wait for it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_for_the_disk_and_not_for_the_time_of_the_next_commit() {
        let (_dir, path) = state_file();
        let apart = Duration::from_secs(3600);
        let (store, committer) = LedgerStore::open(Some(&path), Arc::new(Unobserved), apart).await.unwrap();
        let (key, began) = (requests("a"), Instant::now());
        let (written, ()) = tokio::join!(store.commit(&key, ledger(60)), committer.finished());
        assert!(written.is_ok() && began.elapsed() < apart, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_ledger_that_was_committed_is_on_disk_and_there_after_a_restart() {
        let (_dir, path) = state_file();
        let observer: Arc<dyn Observer> = Arc::new(Unobserved);
        let open = || LedgerStore::open(Some(&path), Arc::clone(&observer), Duration::ZERO);
        let (store, committer) = open().await.unwrap();
        store.commit(&requests("a"), ledger(60)).await.unwrap();
        store.commit_all(vec![(requests("b"), ledger(120)), (requests("c"), ledger(180))]).await.unwrap();
        store.commit_all(Vec::new()).await.unwrap();
        let all = [("a", 60), ("b", 120), ("c", 180)].map(|(app, until)| (requests(app), ledger(until)));
        assert_eq!(state::read(&path).await.unwrap(), all);
        committer.finished().await;
        assert_eq!(store.commit(&requests("a"), ledger(240)).await, Err(NotCommitted), "after the end");

        let (store, _committer) = open().await.unwrap();
        for (key, ledger) in &all {
            assert_eq!(store.ledger(key).as_deref(), Some(ledger));
        }
        assert_eq!(store.ledger(&requests("d")), None);
    }

    #[tokio::test]
    async fn a_ledger_that_cannot_be_written_stays_as_it_was() {
        let (dir, path) = state_file();
        let aside = dir.path().join("aside");
        let commits = Arc::new(Commits::default());
        let observer = Arc::clone(&commits) as Arc<dyn Observer>;
        let (store, committer) = LedgerStore::open(Some(&path), observer, Duration::ZERO).await.unwrap();
        store.commit(&requests("a"), ledger(60)).await.unwrap();
        std::fs::rename(&path, &aside).unwrap();
        std::fs::write(&path, "another file").unwrap();
        assert_eq!(store.commit(&requests("a"), ledger(120)).await, Err(NotCommitted));
        assert_eq!(store.ledger(&requests("a")).unwrap().until, 60);
        std::fs::rename(&aside, &path).unwrap();
        store.commit(&requests("a"), ledger(180)).await.unwrap();
        assert_eq!(store.ledger(&requests("a")).unwrap().until, 180);
        drop(store);
        committer.finished().await;
        assert_eq!(*commits.0.lock(), [true, false, true]);
    }

    #[tokio::test]
    async fn a_file_removed_while_it_is_in_use_is_written_anew_with_all_ledgers() {
        let (_dir, path) = state_file();
        let opened = LedgerStore::open(Some(&path), Arc::new(Unobserved), Duration::ZERO).await;
        let (store, _committer) = opened.unwrap();
        store.commit(&requests("a"), ledger(60)).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        store.commit(&requests("b"), ledger(120)).await.unwrap();
        let both = [("a", 60), ("b", 120)].map(|(app, until)| (requests(app), ledger(until)));
        assert_eq!(state::read(&path).await.unwrap(), both);
    }

    #[tokio::test(start_paused = true)]
    async fn commits_are_apart_and_changes_between_two_are_written_together() {
        let (_dir, path) = state_file();
        let commits = Arc::new(Commits::default());
        let observer = Arc::clone(&commits) as Arc<dyn Observer>;
        let (store, _committer) = LedgerStore::open(Some(&path), observer, COMMIT_INTERVAL).await.unwrap();
        store.commit(&requests("a"), ledger(60)).await.unwrap();
        let begun = Instant::now();
        let (b, c) = (requests("b"), requests("c"));
        let (one, other) = tokio::join!(store.commit(&b, ledger(60)), store.commit(&c, ledger(60)));
        assert!(one.is_ok() && other.is_ok());
        let took = begun.elapsed();
        assert!(took <= COMMIT_INTERVAL && took > COMMIT_INTERVAL / 2, "{took:?}");
        assert_eq!(*commits.0.lock(), [true, true]);
    }

    #[tokio::test]
    async fn ledgers_are_found_in_the_order_of_the_keys_with_their_holds() {
        let store = in_memory().await;
        for (app, until) in [("a", 60), ("b", 120)] {
            store.commit(&requests(app), ledger(until)).await.unwrap();
        }
        let begun = Hold::Begun { until: 30, pending: 0 };
        store.set_hold(&requests("a"), begun);
        store.set_hold(&requests("b"), Hold::Unknown);
        assert_eq!(store.hold(&requests("b")), Some(Hold::Unknown));
        store.release(&requests("b"));
        let keys = [Some(requests("b")), None, Some(requests("c")), Some(requests("a"))];
        let found = store.find(keys.iter().map(Option::as_ref));
        let found: Vec<_> =
            found.into_iter().map(|found| found.map(|found| (found.ledger.until, found.hold))).collect();
        assert_eq!(found, [Some((120, None)), None, None, Some((60, Some(begun)))]);
    }

    #[tokio::test]
    async fn a_ledger_that_is_adopted_shares_the_names_of_its_key() {
        let store = in_memory().await;
        store.commit(&requests("a"), ledger(60)).await.unwrap();
        let key = requests("a");
        assert_eq!(store.adopt(&key).unwrap().until, 60);
        let ledgers = store.ledgers.read();
        let (held, ledger) = ledgers.by_key.get_key_value(&key).unwrap();
        assert!(Arc::ptr_eq(&held.owner, &key.owner));
        assert_eq!(ledger.until, 60);
        drop(ledgers);
        assert_eq!(store.adopt(&requests("b")), None);
    }

    #[tokio::test]
    async fn ledgers_of_other_shards_are_set_aside() {
        let store = in_memory().await;
        for app in ["here", "elsewhere"] {
            store.commit(&requests(app), ledger(60)).await.unwrap();
        }
        store.set_aside(|key| *key.owner.app == *"elsewhere").await;
        let aside = ["here", "elsewhere"].map(|app| store.ledger(&requests(app)).unwrap().set_aside);
        assert_eq!(aside, [false, true]);
    }

    #[tokio::test]
    async fn ledgers_of_apps_removed_long_ago_are_dropped() {
        let store = in_memory().await;
        for (app, until) in [("wanted", 60), ("gone long ago", 60), ("gone", 120)] {
            store.commit(&requests(app), ledger(until)).await.unwrap();
        }
        store.prune(&HashSet::from([requests("wanted")]), 120).await;
        let left = ["wanted", "gone long ago", "gone"].map(|app| store.ledger(&requests(app)).is_some());
        assert_eq!(left, [true, false, true]);
    }

    #[tokio::test]
    async fn a_hold_goes_with_its_app() {
        let store = in_memory().await;
        for app in ["stays", "goes"] {
            store.set_hold(&requests(app), Hold::Unknown);
        }
        store.prune(&HashSet::from([requests("stays")]), 0).await;
        assert!(store.hold(&requests("stays")).is_some() && store.hold(&requests("goes")).is_none());
    }
}
