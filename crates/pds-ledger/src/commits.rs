//! Ledgers on their way to disk. Each commit writes everything that has arrived since the last.

use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

use pds_core::error_chain::with_sources;

use super::error::StateError;
use super::record::Record;
use super::restore::Restoring;
use super::state::{Ledgers, MAX_COMMIT, StateFile};

/// Reported to [`Observer::committed`] until the state file is read, and while a commit takes longer than
/// [`MAX_COMMIT`].
pub const SILENT: &str = "the state folder does not answer";

/// Receives the results of commits and of restoring. The default methods ignore them. The ledgers log them themselves.
#[expect(unused_variables, reason = "names of arguments are documentation")]
pub trait Observer: Debug + Send + Sync {
    /// A commit ended; on failure with the reason.
    fn committed(&self, written: Result<(), &str>) {}

    /// The progress of restoring; `None` if it is no longer configured.
    fn restoring(&self, now: Option<Restoring>) {}

    /// When this process loaded its configuration, as its page states. This time identifies samples of the process.
    fn config_load_time(&self) -> Option<Timestamp> {
        None
    }
}

/// An observer that shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Ledgers on their way to disk.
#[derive(Debug)]
pub(super) struct QueuedCommit {
    pub(super) records: Vec<Record>,
    pub(super) done: oneshot::Sender<bool>,
}

/// The task that commits, and the signal that ends it.
#[derive(Debug)]
pub struct Committer(pub(super) Option<(JoinHandle<()>, Arc<Notify>)>);

impl Committer {
    /// Completes once everything queued is on disk, or the disk has not answered for [`MAX_COMMIT`]. Later ledgers are
    /// not committed.
    pub async fn finished(self) {
        if let Some((task, closed)) = self.0 {
            closed.notify_one();
            // A panic of the task was reported when its commits failed.
            let _ = task.await;
        }
    }
}

/// Commits everything queued since the last commit, until `closed` or the last clone of the store is dropped.
pub(super) async fn commit_all(
    state: StateFile,
    ledgers: Arc<RwLock<Ledgers>>,
    mut queue: mpsc::UnboundedReceiver<QueuedCommit>,
    observer: Arc<dyn Observer>,
    apart: Duration,
    closed: Arc<Notify>,
) {
    let state = Arc::new(Mutex::new(state));
    let mut batch: Vec<QueuedCommit> = Vec::new();
    let mut next = Instant::now();
    let mut good = true;
    loop {
        let wait = async {
            let received = queue.recv_many(&mut batch, usize::MAX).await;
            if received > 0 {
                tokio::time::sleep_until(next).await;
            }
            received
        };
        tokio::select! {
            received = wait => if received == 0 { return },
            () = closed.notified() => queue.close(),
        }
        while let Ok(commit) = queue.try_recv() {
            batch.push(commit);
        }
        if batch.is_empty() {
            return;
        }
        next = Instant::now() + apart;
        let records: Vec<Record> =
            batch.iter_mut().flat_map(|commit| std::mem::take(&mut commit.records)).collect();
        let (file, held) = (Arc::clone(&state), Arc::clone(&ledgers));
        let mut writing = tokio::task::spawn_blocking(move || {
            let before = || held.read().records();
            file.lock().commit(&records, before)?;
            // Memory follows the disk before the commit's callers continue.
            held.write().take(records);
            Ok::<(), StateError>(())
        });
        let mut is_late = false;
        let written = loop {
            tokio::select! {
                written = &mut writing => break written.map_err(|panic| panic.to_string()),
                () = closed.notified() => queue.close(),
                () = tokio::time::sleep(MAX_COMMIT) => is_late = true,
            }
            if !is_late {
                continue;
            }
            while let Ok(commit) = queue.try_recv() {
                batch.push(commit);
            }
            end(&mut batch, &*observer, &mut good, Err(SILENT.to_owned()));
            if queue.is_closed() {
                return;
            }
        };
        let written = written.and_then(|result| result.map_err(|error| with_sources(&error)));
        end(&mut batch, &*observer, &mut good, written);
    }
}

/// Ends the commit of `batch`. Reports the result, and logs it if it differs from the last result, `good`.
fn end(batch: &mut Vec<QueuedCommit>, observer: &dyn Observer, good: &mut bool, written: Result<(), String>) {
    observer.committed(written.as_ref().copied().map_err(String::as_str));
    match &written {
        Err(error) if *good => {
            tracing::error!(error, "the state cannot be written; nothing is counted until it can");
        }
        Ok(()) if !*good => tracing::info!("the state can be written again"),
        _ => {}
    }
    *good = written.is_ok();
    for commit in batch.drain(..) {
        // The caller may have been shut down meanwhile.
        let _ = commit.done.send(*good);
    }
}
