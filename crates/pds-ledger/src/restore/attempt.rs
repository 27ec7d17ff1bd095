//! One attempt to read ledgers back.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use tokio::time::{Duration, Instant};

use crate::Key;
use crate::{Ledger, Watermark};

use super::error::Error;
use super::search::Answer;
use super::source::Source;

/// The interval between log lines about progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// The source, and the clocks.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub source: Source,
    pub watermark: Watermark,
}

/// One attempt.
#[derive(Debug)]
pub(super) struct Job {
    pub followed: Followed,
    pub missing: BTreeMap<Key, Missing>,
    pub generation: u64,
}

/// What one attempt learned.
#[derive(Debug)]
pub(super) struct Asked {
    pub answers: Vec<(Key, Answer)>,
    /// Of the counters without a ledger, those on a scraped page of this very process.
    pub scraped: HashSet<Key>,
    /// Why some of it is unknown.
    pub error: Option<Error>,
}

impl Job {
    /// Asks the source for what is missing. `now` is the time by the service's clock, `loaded` when this process loaded
    /// its configuration.
    pub(super) async fn ask(&self, now: i64, loaded: Option<Timestamp>) -> Result<Asked, Error> {
        let source = &self.followed.source;
        let at = source.now().await?;
        let scraped = async |keys: Vec<Key>| match loaded.filter(|_| !keys.is_empty()) {
            Some(loaded) => source.scraped(&keys, at, loaded).await,
            None => Ok(HashSet::new()),
        };
        // For apps that were unknown, nothing has changed until this process has been scraped.
        let (unknown, new): (Vec<_>, Vec<_>) = self.missing.iter().partition(|(_, missing)| missing.unknown);
        let mut known = scraped(unknown.into_iter().map(|(key, _)| key.clone()).collect()).await?;
        let asked: Vec<Key> =
            new.into_iter().map(|(key, _)| key.clone()).chain(known.iter().cloned()).collect();
        let mut reported = Instant::now();
        let answers = source.ledgers(&asked, at, now, |done, all| {
            if reported.elapsed() >= PROGRESS {
                tracing::info!(done, all, "reading counters back from Prometheus");
                reported = Instant::now();
            }
        });
        let (answers, result) = answers.await;
        let nothing = answers.iter().filter(|(_, answer)| *answer == Answer::Nothing).map(|(key, _)| key);
        let more = scraped(nothing.filter(|key| !known.contains(*key)).cloned().collect()).await;
        let error = match more {
            Ok(more) => {
                known.extend(more);
                result.err()
            }
            Err(error) => result.err().or(Some(error)),
        };
        Ok(Asked { answers, scraped: known, error })
    }
}

/// A counter whose ledger is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// The step that had settled when it was configured; `None` if that was before two clocks agreed.
    pub since: Option<i64>,
    /// Whether Prometheus knew nothing of it.
    pub unknown: bool,
}

/// What to do with the ledger of a counter.
#[derive(Debug)]
pub(super) enum Decision {
    /// Take this one.
    Take(Ledger),
    /// Continue with that of the state file.
    Keep,
    /// Open it at this step.
    Open(i64),
}

/// Whether `restored` replaces the ledger of the state file. A ledger that is later and yet holds less is another count
/// of the same app: taking it would take back what was shown.
#[must_use]
pub fn is_later(restored: &Ledger, known: &Ledger) -> bool {
    restored.until > known.until && (known.set_aside || restored.total >= known.total)
}
