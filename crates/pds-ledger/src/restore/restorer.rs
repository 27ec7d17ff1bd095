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
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Duration, sleep};

use crate::{Hold, Key, Ledger, LedgerStore, Observer, Watermark};
use pds_core::error_chain::with_sources;

use super::attempt::{Decided, Followed, Job, Learned, Missing, is_later};
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
        let mut state = self.0.state.lock();
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
            let known = std::mem::take(&mut self.0.state.lock().known);
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
            let followed = self.0.state.lock().followed.clone();
            if followed.is_some_and(|followed| followed.watermark.now().is_none()) {
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
            let state = self.0.state.lock();
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
        self.0.state.lock().missing.is_empty()
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
        if self.0.state.lock().generation != job.generation {
            return;
        }
        let obstacle = asked
            .and(obstacle)
            .unwrap_or_else(|error| Some(Obstacle { text: with_sources(&error).into(), expected: false }));
        self.tell(&mut self.0.state.lock(), obstacle);
    }

    /// Waits until [`Restorer::follow`] has replaced what `job` asks for.
    async fn replaced(&self, job: &Job) {
        while self.0.state.lock().generation == job.generation {
            self.0.changed.notified().await;
        }
    }

    /// Decides by the answers, commits, and shows or opens the counters. Returns why something is still missing, if so.
    async fn take(&self, job: &Job, learned: Learned) -> Result<Option<Obstacle>, Error> {
        let (mut decided, mut committed) = (Decided::default(), Vec::new());
        let mut refused: Vec<(Key, String)> = Vec::new();
        for (key, answer) in learned.answers {
            match (answer, self.0.ledgers.ledger(&key)) {
                (Answer::Refused { why, target }, _) => {
                    let why = match &*target {
                        "" => why.to_string(),
                        target => format!("what {target} says is refused: {why}"),
                    };
                    refused.push((key, why));
                }
                (Answer::Ledger { ledger, .. }, known)
                    if known.as_ref().is_none_or(|known| is_later(&ledger, known)) =>
                {
                    decided.taken.push((key.clone(), ledger.until));
                    committed.push((key, ledger));
                }
                (Answer::Nothing, _) if !learned.scraped.contains(&key) => {
                    let mut state = self.0.state.lock();
                    if state.generation == job.generation
                        && let Some(missing) = state.missing.get_mut(&key)
                    {
                        missing.unknown = true;
                    }
                }
                (_, Some(known)) => {
                    // Prometheus would know any other exporter that has counted since.
                    if known.set_aside {
                        committed.push((key.clone(), known.resumed_at(known.until)));
                    }
                    decided.kept.push(key);
                }
                (_, None) => {
                    let since = job.missing.get(&key).and_then(|missing| missing.since);
                    let Some(step) = since.or(job.followed.watermark.at_present().started) else { continue };
                    committed.push((key.clone(), self.0.ledgers.new_ledger(&key, step)));
                    decided.opened.push(key);
                }
            }
        }
        if self.0.state.lock().generation == job.generation {
            self.0.ledgers.commit_all(committed).await?;
            self.carry_out(job, decided);
        }
        Ok(self.obstacle(refused))
    }

    /// Shows or opens the counters of what is committed.
    fn carry_out(&self, job: &Job, Decided { taken, kept, opened }: Decided) {
        let settled = job.followed.watermark.settled_step();
        let mut state = self.0.state.lock();
        state.outcome.restored += taken.len();
        state.outcome.kept += kept.len();
        state.outcome.opened += opened.len();
        for (key, until) in &taken {
            self.0.ledgers.hold_back(key, Hold::Until(settled.max(*until)));
        }
        kept.iter().chain(&opened).for_each(|key| self.0.ledgers.release(key));
        for key in taken.into_iter().map(|(key, _)| key).chain(kept).chain(opened) {
            state.missing.remove(&key);
            state.known.insert(key);
        }
        self.0.known.notify_one();
    }

    /// Why something is still missing. Refused counters are logged once.
    fn obstacle(&self, refused: Vec<(Key, String)>) -> Option<Obstacle> {
        let mut state = self.0.state.lock();
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
}

#[cfg(test)]
mod tests {
    use pds_core::clock::Clock;
    use pds_core::memory::{Holder, MemoryBudget};
    use pds_interface::response_time;

    use super::super::http::Prometheus;
    use super::super::ledger::InvalidLedger;
    use super::*;
    use crate::{Config, Owner, Unobserved};

    const INTERVAL: Duration = Duration::from_secs(60);
    /// A step that has settled by the clock of [`watermark`].
    const SETTLED: i64 = 1_772_366_340;

    fn key(app: &str) -> Key {
        Key { owner: Owner::new("p".into(), app.into()), resource: response_time::RESOURCE }
    }

    /// Two clocks agree that it is 12:00:07.
    fn watermark() -> Watermark {
        let (settle, step) = (Duration::from_secs(30), Duration::from_secs(60));
        let max_catch_up = Duration::from_secs(86_400);
        let config = Config { settle, step, max_catch_up, recheck_after: Vec::new() };
        let clock = Clock::starting_at("2026-03-01T12:00:07Z".parse().unwrap());
        let watermark = Watermark::new(&config, clock.clone());
        watermark.observe(Some(clock.now()));
        watermark
    }

    fn source() -> Source {
        let config = Prometheus {
            url: "http://localhost".parse().unwrap(),
            login: None,
            ca_file: None,
            headers: Vec::new(),
            selector: String::new(),
            lookback: Duration::ZERO,
        };
        Source::new(&config, MemoryBudget::default().share(Holder::Restoring)).unwrap()
    }

    fn ledger(until: i64, total: u64) -> Ledger {
        let mut ledger = Ledger::open(until);
        ledger.total = total;
        ledger
    }

    /// A restorer that lacks the ledgers of these apps, and what it asks for.
    async fn lacking(ledgers: &LedgerStore, apps: &[&str]) -> (Restorer, Job) {
        let restorer = Restorer::new(ledgers.clone(), Arc::new(Unobserved));
        let added = apps.iter().map(|app| (key(app), INTERVAL));
        restorer.follow(Some(source()), &watermark(), |_| true, added);
        let (followed, missing, generation) = {
            let state = restorer.0.state.lock();
            (state.followed.clone().unwrap(), state.missing.clone(), state.generation)
        };
        (restorer, Job { followed, missing, generation })
    }

    async fn in_memory() -> LedgerStore {
        LedgerStore::open(None, Arc::new(Unobserved), Duration::ZERO).await.unwrap().0
    }

    fn missing(restorer: &Restorer) -> Vec<String> {
        restorer.0.state.lock().missing.keys().map(|key| key.owner.app.to_string()).collect()
    }

    #[tokio::test]
    async fn counters_without_a_ledger_that_keeps_up_are_held_back() {
        let ledgers = in_memory().await;
        ledgers.hold(&key("behind"), ledger(SETTLED - 3600, 5));
        ledgers.hold(&key("keeps up"), ledger(SETTLED, 5));
        ledgers.hold(&key("set aside"), ledger(SETTLED, 5).put_aside().unwrap());
        let (restorer, _) = lacking(&ledgers, &["behind", "keeps up", "new", "set aside"]).await;
        assert_eq!(missing(&restorer), ["behind", "new", "set aside"]);
        let held = |app: &str| ledgers.held_back(&key(app));
        assert_eq!((held("new"), held("keeps up")), (Some(Hold::Unknown), None));

        let is_wanted = |key: &Key| *key.owner.app != *"new";
        restorer.follow(Some(source()), &watermark(), is_wanted, []);
        assert_eq!((missing(&restorer).len(), held("new")), (2, None));
        restorer.follow(None, &watermark(), |_| true, []);
        assert_eq!((missing(&restorer).len(), held("behind")), (0, None));
        assert!(restorer.restore().await, "nothing is missing");
    }

    #[tokio::test]
    async fn each_answer_decides_what_becomes_of_a_counter() {
        let ledgers = in_memory().await;
        for app in ["earlier", "later"] {
            ledgers.hold(&key(app), ledger(SETTLED - 3600, 5));
        }
        ledgers.hold(&key("set aside"), ledger(SETTLED, 5).put_aside().unwrap());
        let apps = ["earlier", "later", "new", "not scraped", "refused", "set aside"];
        let (restorer, job) = lacking(&ledgers, &apps).await;
        let page = |until, total| Answer::Ledger { ledger: ledger(until, total), target: "{}".to_owned() };
        let why = InvalidLedger::Missing("total");
        let answers = vec![
            (key("earlier"), page(SETTLED - 7200, 4)),
            (key("later"), page(SETTLED - 60, 9)),
            (key("new"), Answer::Nothing),
            (key("not scraped"), Answer::Nothing),
            (key("refused"), Answer::Refused { why, target: r#"{job="a"}"#.to_owned() }),
            (key("set aside"), Answer::Nothing),
        ];
        let scraped = HashSet::from([key("new"), key("set aside")]);
        let obstacle = restorer.take(&job, Learned { answers, scraped }).await.unwrap().unwrap();
        assert!(!obstacle.expected);
        assert_eq!(
            &*obstacle.text,
            r#"p/response_time/refused: what {job="a"} says is refused: its total is missing"#
        );
        let now = |app: &str| ledgers.ledger(&key(app)).map(|ledger| (ledger.until, ledger.total));
        assert_eq!((now("earlier"), now("later")), (Some((SETTLED - 3600, 5)), Some((SETTLED - 60, 9))));
        assert_eq!((now("new"), now("not scraped"), now("refused")), (Some((SETTLED, 0)), None, None));
        assert!(!ledgers.ledger(&key("set aside")).unwrap().set_aside);
        let held = |app: &str| ledgers.held_back(&key(app));
        assert_eq!((held("later"), held("new")), (Some(Hold::Until(SETTLED)), None));
        assert_eq!(restorer.known().await, ["earlier", "later", "new", "set aside"].map(key).into());
        let unknown =
            restorer.0.state.lock().missing.values().map(|missing| missing.unknown).collect::<Vec<_>>();
        assert_eq!(
            (missing(&restorer), unknown),
            (vec!["not scraped".into(), "refused".into()], vec![true, false])
        );
        let Restoring { restored, kept, opened, .. } = restorer.0.state.lock().outcome;
        assert_eq!((restored, kept, opened), (1, 2, 1));
    }

    #[tokio::test]
    async fn answers_to_an_earlier_question_change_nothing() {
        let ledgers = in_memory().await;
        let (restorer, job) = lacking(&ledgers, &["a", "b"]).await;
        restorer.follow(Some(source()), &watermark(), |_| true, []);
        let page = Answer::Ledger { ledger: ledger(SETTLED, 9), target: "{}".to_owned() };
        let answers = vec![(key("a"), page), (key("b"), Answer::Nothing)];
        let obstacle = restorer.take(&job, Learned { answers, scraped: HashSet::new() }).await.unwrap();
        assert!(obstacle.unwrap().expected, "none of the two is known");
        assert_eq!((missing(&restorer).len(), ledgers.ledger(&key("a"))), (2, None));
        assert!(restorer.0.state.lock().missing.values().all(|missing| !missing.unknown));
    }
}
