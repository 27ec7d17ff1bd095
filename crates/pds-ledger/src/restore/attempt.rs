//! One attempt to read ledgers back: what it asks for and learns, and what is decided.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use tokio::time::{Duration, Instant};

use crate::{Key, Ledger, Watermark};

use super::http::Error;
use super::ledger::Answer;
use super::source::Source;

/// The interval between log lines about progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// The source, and the clocks.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub source: Source,
    pub watermark: Watermark,
}

/// A counter whose ledger is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// The step that had settled when it was configured; `None` if that was before two clocks agreed.
    pub since: Option<i64>,
    /// Whether Prometheus knew nothing of it.
    pub unknown: bool,
}

/// What one attempt asks for.
#[derive(Debug)]
pub(super) struct Job {
    pub followed: Followed,
    pub missing: BTreeMap<Key, Missing>,
    pub generation: u64,
}

/// What one attempt learned.
#[derive(Debug, Default)]
pub(super) struct Learned {
    pub answers: Vec<(Key, Answer)>,
    /// Of the counters without a ledger, those on a scraped page of this very process.
    pub scraped: HashSet<Key>,
}

/// The counters whose ledgers are known now.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// They have that of Prometheus, each with its cursor.
    pub taken: Vec<(Key, i64)>,
    /// They continue with that of the state file.
    pub kept: Vec<Key>,
    /// They begin a new one.
    pub opened: Vec<Key>,
}

impl Job {
    /// Asks the source for what is missing. `now` is the time by the service's clock, `loaded` when this process loaded
    /// its configuration. After an error, what was `learned` until then holds.
    pub(super) async fn ask(
        &self,
        now: i64,
        loaded: Option<Timestamp>,
        learned: &mut Learned,
    ) -> Result<(), Error> {
        let source = &self.followed.source;
        let at = source.now().await?;
        let scraped = async |keys: Vec<Key>| match loaded.filter(|_| !keys.is_empty()) {
            Some(loaded) => source.scraped(&keys, at, loaded).await,
            None => Ok(HashSet::new()),
        };
        // For apps that were unknown, nothing has changed until this process has been scraped.
        let (unknown, new): (Vec<_>, Vec<_>) = self.missing.iter().partition(|(_, missing)| missing.unknown);
        learned.scraped = scraped(unknown.into_iter().map(|(key, _)| key.clone()).collect()).await?;
        let new = new.into_iter().map(|(key, _)| key);
        let asked: Vec<Key> = new.chain(&learned.scraped).cloned().collect();
        let mut reported = Instant::now();
        let answers = source.ledgers(&asked, at, now, |done, all| {
            if reported.elapsed() >= PROGRESS {
                tracing::info!(done, all, "reading counters back from Prometheus");
                reported = Instant::now();
            }
        });
        let (answers, result) = answers.await;
        let nothing = answers.iter().filter(|(_, answer)| *answer == Answer::Nothing).map(|(key, _)| key);
        let nothing = nothing.filter(|key| !learned.scraped.contains(*key)).cloned().collect();
        learned.answers = answers;
        let more = scraped(nothing).await.map(|more| learned.scraped.extend(more));
        result.and(more)
    }
}

/// Whether `restored` replaces the ledger of the state file. A ledger that is later and yet holds less is another count
/// of the same app: taking it would take back what was shown.
pub fn is_later(restored: &Ledger, known: &Ledger) -> bool {
    restored.until > known.until && (known.set_aside || restored.total >= known.total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_ledger_is_later_if_its_cursor_is_and_it_holds_no_less() {
        let ledger = |until, total| {
            let mut ledger = Ledger::open(until);
            ledger.total = total;
            ledger
        };
        let known = ledger(120, 50);
        let is_later = |restored: Ledger| is_later(&restored, &known);
        assert!(is_later(ledger(180, 50)) && is_later(ledger(180, 51)));
        assert!(!is_later(ledger(180, 49)), "another count of the same app");
        assert!(!is_later(ledger(120, 51)) && !is_later(ledger(60, 51)));
        let aside = known.put_aside().unwrap();
        assert!(super::is_later(&ledger(180, 49), &aside), "another shard has counted it since");
        assert!(!super::is_later(&ledger(120, 51), &aside));
    }
}
