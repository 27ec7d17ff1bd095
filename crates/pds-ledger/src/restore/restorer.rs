//! Which ledgers are read back, and what happens to the answers.
//!
//! A counter whose ledger is missing or behind is held back from the start: it is neither shown nor opened, and
//! nothing is added to it, until one of these is certain:
//!
//! - Prometheus knows a later ledger. It is taken, and shown once its cursor has reached the last whole step that had
//!   settled. By then it holds everything that an earlier process can have shown.
//! - Prometheus knows none later than that of the state file, which continues.
//! - Prometheus knows nothing of it, and has returned a page of this very process with this app on it, so URL, tenant
//!   and selector are right. The counter begins at the step that had settled when it was configured.
//!
//! Until then Prometheus is asked again and again.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Duration, sleep};

use crate::{Hold, Key, Ledger, LedgerStore, Observer, Watermark};
use pds_core::error_chain::with_sources;

use super::attempt::{Decision, Followed, Job, Learned, Missing, is_later};
use super::http::Error;
use super::ledger::Answer;
use super::source::Source;

/// Two clocks have to agree before the first query. This is how often that is checked.
const CLOCKS: Duration = Duration::from_millis(200);
/// The first wait after an incomplete attempt. Each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait, about a scrape interval.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The most refused counters that the log names.
const MAX_NAMED: usize = 10;

/// The progress of restoring counters from Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restoring {
    /// Counters that are hidden because their former value is not known yet.
    pub missing: usize,
    /// Counters that continue from Prometheus.
    pub restored: usize,
    /// Counters that continue from the state file: Prometheus has nothing later.
    pub kept: usize,
    /// Counters that begin at 0: Prometheus has scraped this process, but has no such counter.
    pub opened: usize,
    /// Why some are still missing; `None` before the first answer.
    pub obstacle: Option<Obstacle>,
}

/// Why counters are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The reason as text.
    pub text: Arc<str>,
    /// Whether this is expected: Prometheus has not scraped this process yet.
    pub expected: bool,
}

/// Reads ledgers back from a [`Source`]. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Restorer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ledgers: LedgerStore,
    observer: Arc<dyn Observer>,
    state: Mutex<State>,
    changed: Notify,
    /// Signals that [`Restorer::known`] has counters to return.
    known: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The source. `None` if nothing is read back.
    followed: Option<Followed>,
    /// The counters whose ledgers are missing.
    missing: BTreeMap<Key, Missing>,
    /// Incremented by [`Restorer::follow`]: answers to earlier queries are stale.
    generation: u64,
    /// Counters that have become known, until [`Restorer::known`] returns them.
    known: HashSet<Key>,
    /// The progress of the others, and why these are missing.
    outcome: Restoring,
    /// Refused counters that were named in the log.
    named: HashSet<Key>,
}

impl Restorer {
    /// A restorer for `ledgers`, without a source.
    #[must_use]
    pub fn new(ledgers: LedgerStore, observer: Arc<dyn Observer>) -> Self {
        let (state, changed, known) = (Mutex::default(), Notify::new(), Notify::new());
        Self(Arc::new(Inner { ledgers, observer, state, changed, known }))
    }

    /// Reads back from `source` from now on. Of the counters in `added`, each with its poll interval, those without a
    /// ledger that keeps up are held back, so call this before any of them is polled. Counters that are no longer
    /// `wanted` are dropped. Without a source nothing is held back.
    pub fn follow(
        &self,
        source: Option<Source>,
        watermark: &Watermark,
        wanted: impl Fn(&Key) -> bool,
        added: impl IntoIterator<Item = (Key, Duration)>,
    ) {
        let mut state = self.state();
        state.generation += 1;
        state.missing.retain(|key, missing| {
            // Another source may know what the previous one did not.
            missing.unknown = false;
            let stays = source.is_some() && wanted(key);
            if !stays {
                self.0.ledgers.release(key);
            }
            stays
        });
        let Some(source) = source else {
            *state = State { generation: state.generation, ..State::default() };
            return self.0.observer.restoring(None);
        };
        state.followed = Some(Followed { source, watermark: watermark.clone() });
        for (key, interval) in added {
            let keeps_up = |ledger: &Ledger| {
                !ledger.set_aside && watermark.at_present().keeps_up_for(ledger.until, interval).is_some()
            };
            if !self.0.ledgers.ledger(&key).is_some_and(|ledger| keeps_up(&ledger)) {
                self.0.ledgers.hold_back(&key, Hold::Unknown);
                state.missing.insert(key, Missing { since: watermark.first_cursor(), unknown: false });
            }
        }
        if !state.missing.is_empty() {
            tracing::info!(counters = state.missing.len(), "counters are to be read back from Prometheus");
        }
        self.tell(&mut state, None);
        drop(state);
        self.0.changed.notify_one();
    }

    /// Waits for counters that have become known. Poll them at once: they are hidden until then.
    pub async fn known(&self) -> HashSet<Key> {
        loop {
            let known = std::mem::take(&mut self.state().known);
            if !known.is_empty() {
                return known;
            }
            self.0.known.notified().await;
        }
    }

    /// Reads back what is missing, for ever.
    pub async fn run(self) {
        let mut wait = FIRST_WAIT;
        loop {
            if self.state().followed.as_ref().is_some_and(|followed| followed.watermark.now().is_none()) {
                sleep(CLOCKS).await;
                continue;
            }
            if self.restore().await {
                self.0.changed.notified().await;
                wait = FIRST_WAIT;
                continue;
            }
            tokio::select! {
                () = sleep(wait.mul_f64(0.75 + fastrand::f64() / 2.0)) => wait = (2 * wait).min(MAX_WAIT),
                () = self.0.changed.notified() => wait = FIRST_WAIT,
            }
        }
    }

    /// Asks once for everything that is missing, if two clocks agree. Returns whether nothing is missing any more.
    pub async fn restore(&self) -> bool {
        let job = {
            let state = self.state();
            match &state.followed {
                Some(followed) if !state.missing.is_empty() => Job {
                    followed: followed.clone(),
                    missing: state.missing.clone(),
                    generation: state.generation,
                },
                _ => return true,
            }
        };
        let Some(now) = job.followed.watermark.now() else { return false };
        self.attempt(&job, now).await;
        self.state().missing.is_empty()
    }

    /// Asks once, and logs and records the outcome. `now` is the time by the service's clock.
    async fn attempt(&self, job: &Job, now: i64) {
        let mut learned = Learned::default();
        let asked = tokio::select! {
            asked = job.ask(now, self.0.observer.config_loaded(), &mut learned) => asked,
            // The counters, and perhaps the source, are others now.
            () = self.replaced(job) => return self.0.changed.notify_one(),
        };
        let obstacle = self.take(job, learned).await;
        if self.state().generation != job.generation {
            return;
        }
        let obstacle = asked
            .and(obstacle)
            .unwrap_or_else(|error| Some(Obstacle { text: with_sources(&error).into(), expected: false }));
        self.tell(&mut self.state(), obstacle);
    }

    /// Waits until [`Restorer::follow`] has replaced what `job` asks for.
    async fn replaced(&self, job: &Job) {
        while self.state().generation == job.generation {
            self.0.changed.notified().await;
        }
    }

    /// Decides by the answers, commits, and shows or opens the counters. Returns why something is still missing, if so.
    async fn take(&self, job: &Job, learned: Learned) -> Result<Option<Obstacle>, Error> {
        let (mut decided, mut committed) = (Vec::new(), Vec::new());
        let mut refused: Vec<(Key, String)> = Vec::new();
        for (key, answer) in learned.answers {
            let decision = match (answer, self.0.ledgers.ledger(&key)) {
                (Answer::Refused { why, target }, _) => {
                    let why = match &*target {
                        "" => why.to_string(),
                        target => format!("what {target} says is refused: {why}"),
                    };
                    refused.push((key, why));
                    continue;
                }
                (Answer::Ledger { ledger, .. }, known)
                    if known.as_ref().is_none_or(|known| is_later(&ledger, known)) =>
                {
                    let until = ledger.until;
                    committed.push((key.clone(), ledger));
                    Decision::Take(until)
                }
                (Answer::Nothing, _) if !learned.scraped.contains(&key) => {
                    let mut state = self.state();
                    if state.generation == job.generation
                        && let Some(missing) = state.missing.get_mut(&key)
                    {
                        missing.unknown = true;
                    }
                    continue;
                }
                (_, Some(known)) => {
                    // Prometheus would know any other exporter that has counted since.
                    if known.set_aside {
                        committed.push((key.clone(), known.resumed_at(known.until)));
                    }
                    Decision::Keep
                }
                (_, None) => {
                    let since = job.missing.get(&key).and_then(|missing| missing.since);
                    let Some(step) = since.or_else(|| job.followed.watermark.started()) else { continue };
                    committed.push((key.clone(), self.0.ledgers.new_ledger(&key, step)));
                    Decision::Open
                }
            };
            decided.push((key, decision));
        }
        if self.state().generation == job.generation {
            self.0.ledgers.commit_all(committed).await?;
            self.carry_out(job, decided);
        }
        Ok(self.obstacle(refused))
    }

    /// Shows or opens the counters of what is committed.
    fn carry_out(&self, job: &Job, decided: Vec<(Key, Decision)>) {
        let settled = job.followed.watermark.settled_step();
        let mut state = self.state();
        for (key, decision) in decided {
            let count = match decision {
                Decision::Take(_) => &mut state.outcome.restored,
                Decision::Keep => &mut state.outcome.kept,
                Decision::Open => &mut state.outcome.opened,
            };
            *count += 1;
            match decision {
                Decision::Take(until) => self.0.ledgers.hold_back(&key, Hold::Until(settled.max(until))),
                Decision::Keep | Decision::Open => self.0.ledgers.release(&key),
            }
            state.missing.remove(&key);
            state.known.insert(key);
        }
        drop(state);
        self.0.known.notify_one();
    }

    /// Why something is still missing. Refused counters are logged once.
    fn obstacle(&self, refused: Vec<(Key, String)>) -> Option<Obstacle> {
        let mut state = self.state();
        if let Some((first, why)) = refused.first() {
            let text = match refused.len() {
                1 => format!("{first}: {why}"),
                count => format!("{count} counters are refused, the first is {first}: {why}"),
            };
            for (key, why) in &refused {
                let room = state.named.len() < MAX_NAMED;
                if room && state.named.insert(key.clone()) {
                    tracing::warn!(counter = %key, why, "a counter cannot be read back from Prometheus");
                }
            }
            return Some(Obstacle { text: text.into(), expected: false });
        }
        let count = state.missing.len();
        (count > 0).then(|| Obstacle {
            text: format!(
                "nothing is known of {count} of them, and no page of this process was scraped yet that has them: \
                 if that stays, the URL, the tenant or the selector is wrong"
            )
            .into(),
            expected: true,
        })
    }

    /// Reports the progress. Changes are logged.
    fn tell(&self, state: &mut State, obstacle: Option<Obstacle>) {
        let missing = state.missing.len();
        let obstacle = obstacle.filter(|_| missing > 0);
        if let Some(Obstacle { text: reason, expected }) = &obstacle
            && state.outcome.obstacle != obstacle
        {
            if *expected {
                tracing::info!(missing, reason = &**reason, "counters are not read back from Prometheus yet");
            } else {
                tracing::warn!(
                    missing,
                    reason = &**reason,
                    "counters cannot be read back from Prometheus and stay hidden"
                );
            }
        }
        let Restoring { restored, kept, opened, .. } = state.outcome;
        if missing == 0 && state.outcome.missing > 0 {
            tracing::info!(restored, kept, opened, "all counters are read back from Prometheus");
        }
        state.outcome = Restoring { missing, obstacle, ..state.outcome };
        self.0.observer.restoring(Some(state.outcome.clone()));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
