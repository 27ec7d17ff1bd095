//! When cursors are read, and the effect of the answers.
//!
//! A counter without a ledger is held back, neither shown nor opened, until Prometheus has answered:
//!
//! - Prometheus has a cursor. The counter begins there, at 0.
//! - Prometheus has none. The counter begins at the step that had settled when the counter was configured.
//!
//! A counter that begins at a stale cursor counts the time since that cursor twice. So the restorer uses the answer
//! only once Prometheus holds a sample of this process, and waits two minutes at most for one. A shard takes an app
//! over from another target only once its cursor has stood still for two polls.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Duration, Instant, sleep};

use crate::{Hold, Key, Ledger, LedgerStore, Observer, Watermark};

use super::http::Error;
use super::progress::{self, Obstacle, Restoring};
use super::source::{Answer, Cursor, Source};

/// Interval of checks whether two clocks agree, as the first query requires.
const CLOCKS: Duration = Duration::from_millis(200);
/// The first wait after an incomplete attempt, and the interval of queries for a sample of this process.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait, about a scrape interval.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The longest wait for a sample of this process, if Prometheus answers.
const MAX_UNSEEN: Duration = Duration::from_secs(120);
/// The most counters without a cursor that are queried again until Prometheus returns any cursor.
const MAX_UNFOUND: usize = 100;

/// Reads cursors from a [`Source`]. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Restorer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ledgers: LedgerStore,
    observer: Arc<dyn Observer>,
    state: Mutex<State>,
    /// Signals that [`Restorer::follow`] was called: answers to earlier queries are stale.
    changed: watch::Sender<()>,
    /// Signals that [`Restorer::known`] has counters to return.
    known: Notify,
}

/// The source, the clocks, and the exporter's part.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The source of cursors.
    pub source: Source,
    /// The settled time.
    pub watermark: Watermark,
    /// Whether another exporter counts the other apps, and may have counted these.
    pub is_shard: bool,
}

#[derive(Debug, Default)]
struct State {
    /// `None` if nothing is read.
    followed: Option<Followed>,
    /// The counters whose cursors are missing.
    missing: BTreeMap<Key, Missing>,
    /// Since when Prometheus has answered without a sample of this process.
    unseen: Option<Instant>,
    /// Whether Prometheus has returned a cursor, so that tenant, selector and labels are right.
    is_proven: bool,
    /// Some of the counters that had no cursor, to be queried until any cursor is returned.
    unfound: Vec<Key>,
    /// Counters whose cursors have become known, until [`Restorer::known`] returns them.
    known: HashSet<Key>,
    /// The progress so far.
    outcome: Restoring,
}

/// A counter whose cursor is missing.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// The step that had settled when it was configured; `None` if that was before two clocks agreed.
    since: Option<i64>,
    /// The time between two changes of a cursor.
    interval: Duration,
    /// The cursor of another target, and since when it has not moved.
    seen: Option<(i64, Instant)>,
}

/// Queries of one attempt.
#[derive(Debug)]
struct Job {
    followed: Followed,
    keys: Vec<Key>,
    /// Whether the configuration has changed since.
    changed: watch::Receiver<()>,
}

impl Job {
    fn is_stale(&self) -> bool {
        self.changed.has_changed().unwrap_or(true)
    }
}

/// Cursors in Prometheus, why some are lacking, and whether it has no sample of this process.
struct Response {
    cursors: Vec<Answer>,
    complete: Result<(), Error>,
    process_unseen: bool,
}

/// Next step after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing, until the configuration changes.
    Rest,
    /// Queries for a sample of this process again.
    QueryForSample,
    /// Tries again, later each time.
    TryAgain,
}

impl Restorer {
    /// A restorer for `ledgers`, without a source.
    pub fn new(ledgers: LedgerStore, observer: Arc<dyn Observer>) -> Self {
        let (state, changed, known) = (Mutex::default(), watch::Sender::new(()), Notify::new());
        Self(Arc::new(Inner { ledgers, observer, state, changed, known }))
    }

    /// Reads cursors from `followed` from now on. Holds back the counters in `added` (with their poll intervals) that
    /// have no ledger, so call this before any of them is polled. Drops counters that are no longer `wanted`. Without a
    /// source, holds back nothing.
    pub fn follow(
        &self,
        followed: Option<Followed>,
        wanted: impl Fn(&Key) -> bool,
        added: impl IntoIterator<Item = (Key, Duration)>,
    ) {
        let mut state = self.0.state.lock();
        self.0.changed.send_replace(());
        state.unseen = None;
        state.missing.retain(|key, _| {
            let stays = followed.is_some() && wanted(key);
            if !stays {
                self.0.ledgers.release(key);
            }
            stays
        });
        let Some(followed) = followed else {
            *state = State::default();
            return self.0.observer.restoring(None);
        };
        let (since, step) = (followed.watermark.first_cursor(), followed.watermark.step().unsigned_abs());
        for (key, interval) in added {
            if self.0.ledgers.ledger(&key).is_none_or(|ledger| ledger.set_aside) {
                self.0.ledgers.set_hold(&key, Hold::Unknown);
                let interval = interval.max(Duration::from_secs(step));
                state.missing.insert(key, Missing { since, interval, seen: None });
            }
        }
        state.followed = Some(followed);
        if !state.missing.is_empty() {
            tracing::info!(counters = state.missing.len(), "reading the cursors of counters from Prometheus");
        }
        self.report(&mut state, None);
    }

    /// Waits for counters whose cursors have become known. Poll them at once: they are hidden until then.
    pub async fn known(&self) -> HashSet<Key> {
        loop {
            let known = std::mem::take(&mut self.0.state.lock().known);
            if !known.is_empty() {
                return known;
            }
            self.0.known.notified().await;
        }
    }

    /// Reads missing cursors, for ever.
    pub async fn run(self) {
        let (mut wait, mut changed) = (Duration::ZERO, self.0.changed.subscribe());
        loop {
            changed.mark_unchanged();
            let followed = self.0.state.lock().followed.clone();
            if followed.is_some_and(|followed| followed.watermark.now().is_none()) {
                sleep(CLOCKS).await;
                continue;
            }
            wait = match self.attempt().await {
                Next::Rest => {
                    // The sender lives as long as `self`.
                    let _ = changed.changed().await;
                    wait = Duration::ZERO;
                    continue;
                }
                Next::QueryForSample => FIRST_WAIT,
                Next::TryAgain => (2 * wait).clamp(FIRST_WAIT, MAX_WAIT),
            };
            tokio::select! {
                () = sleep(wait.mul_f64(0.75 + fastrand::f64() / 2.0)) => {}
                _ = changed.changed() => wait = Duration::ZERO,
            }
        }
    }

    /// Queries all missing cursors once, if two clocks agree. Returns whether none is missing any more.
    pub async fn restore(&self) -> bool {
        self.attempt().await;
        self.0.state.lock().missing.is_empty()
    }

    /// Queries once, and logs and records the outcome.
    async fn attempt(&self) -> Next {
        let job = {
            let state = self.0.state.lock();
            let keys: Vec<Key> = match state.missing.is_empty() {
                true => state.unfound.clone(),
                false => state.missing.keys().cloned().collect(),
            };
            let followed = state.followed.clone().filter(|_| !keys.is_empty());
            let Some(followed) = followed else { return Next::Rest };
            Job { followed, keys, changed: self.0.changed.subscribe() }
        };
        let Some(now) = job.followed.watermark.now() else { return Next::TryAgain };
        let applied = self.apply_when_ready(&job, self.query(&job, now)).await;
        let mut state = self.0.state.lock();
        if job.is_stale() {
            return Next::TryAgain;
        }
        let (next, obstacle) = applied.unwrap_or_else(|error| {
            state.unseen = None;
            (Next::TryAgain, Some(Obstacle::of(&error)))
        });
        self.report(&mut state, obstacle);
        next
    }

    /// Queries once. `now` is the time by the service's clock. `None` while a sample of this process is awaited.
    async fn query(&self, job: &Job, now: i64) -> Result<Option<Response>, Error> {
        let source = &job.followed.source;
        let own = source.targets(self.0.observer.config_load_time()).await?;
        let unseen = || self.0.state.lock().unseen.get_or_insert_with(Instant::now).elapsed();
        if own.is_empty() && unseen() < MAX_UNSEEN {
            return Ok(None);
        }
        let (cursors, complete) = source.cursors(job.keys.clone(), now, &own).await;
        Ok(Some(Response { cursors, complete, process_unseen: own.is_empty() }))
    }

    /// Waits for the replies to `queries`, unless the configuration changes meanwhile, and applies them. A commit is not
    /// given up: its ledgers would be shown without their holds.
    async fn apply_when_ready(
        &self,
        job: &Job,
        queries: impl Future<Output = Result<Option<Response>, Error>>,
    ) -> Result<(Next, Option<Obstacle>), Error> {
        let mut changed = job.changed.clone();
        let response = tokio::select! {
            response = queries => response?,
            _ = changed.changed() => return Ok((Next::TryAgain, None)),
        };
        let Some(response) = response else {
            return Ok((Next::QueryForSample, Some(Obstacle::unseen())));
        };
        self.apply(job, response).await?;
        let state = self.0.state.lock();
        Ok(match state.missing.len() {
            0 if state.unfound.is_empty() => (Next::Rest, None),
            0 => (Next::TryAgain, Some(Obstacle::nothing_found(job.followed.source.selector()))),
            moving => (Next::TryAgain, Some(Obstacle::still_counted(moving))),
        })
    }

    /// Applies the cursors of `response`, commits, and releases the counters. Returns why cursors are lacking, if any are.
    async fn apply(&self, job: &Job, response: Response) -> Result<(), Error> {
        let Response { cursors: answers, complete, process_unseen } = response;
        let (mut decided, mut opened, mut committed) = (Vec::new(), Vec::new(), Vec::new());
        let later = answers.iter().find_map(|answer| Some((answer.key.clone(), answer.later?)));
        let is_proven = answers.iter().any(|answer| answer.cursor.is_some());
        for Answer { key, cursor, .. } in answers {
            let Some(missing) = self.decidable(job, &key, cursor) else { continue };
            let (ledger, hold) = match (cursor, self.0.ledgers.ledger(&key)) {
                // Set aside, and not counted by another shard since.
                (Some(Cursor { until, .. }), Some(known)) if known.set_aside && until <= known.until => {
                    (Some(known.resumed_at(until)), None)
                }
                // Nothing requests pending time again.
                (Some(Cursor { until, pending, .. }), _) => {
                    let ledger = Ledger { unaccounted: pending, ..Ledger::open(until) };
                    (Some(ledger), Some(Hold::Begun { until, pending }))
                }
                (None, Some(_)) => (None, None),
                (None, None) => {
                    let since = missing.since.or(job.followed.watermark.at_present().started);
                    (since.map(Ledger::open), None)
                }
            };
            committed.extend(ledger.map(|ledger| (key.clone(), ledger)));
            opened.extend(cursor.is_none().then(|| key.clone()));
            decided.push((key, hold));
        }
        let begun = decided.len() - opened.len();
        if job.is_stale() {
            return complete;
        }
        self.0.ledgers.commit_all(committed).await?;
        progress::log(job.followed.source.selector(), begun, &opened, later, process_unseen);
        let mut state = self.0.state.lock();
        state.outcome.restored += begun;
        state.outcome.opened += opened.len();
        state.is_proven |= is_proven;
        let room = if state.is_proven { 0 } else { MAX_UNFOUND };
        state.unfound.extend(opened);
        state.unfound.truncate(room);
        // Others were released meanwhile, because they are no longer wanted.
        decided.retain(|(key, _)| state.missing.remove(key).is_some());
        for (key, hold) in decided {
            hold.map_or_else(|| self.0.ledgers.release(&key), |hold| self.0.ledgers.set_hold(&key, hold));
            state.known.insert(key);
        }
        self.0.known.notify_one();
        complete
    }

    /// The missing counter that an answer is about. `None` if it is not missing, or another target may still move its
    /// cursor.
    fn decidable(&self, job: &Job, key: &Key, cursor: Option<Cursor>) -> Option<Missing> {
        let mut state = self.0.state.lock();
        if job.is_stale() {
            return None;
        }
        let missing = state.missing.get_mut(key)?;
        let Some(cursor) = cursor.filter(|cursor| job.followed.is_shard && !cursor.is_own) else {
            return Some(*missing);
        };
        let now = (cursor.until, Instant::now());
        let (_, since) =
            *missing.seen.insert(missing.seen.filter(|seen| seen.0 == cursor.until).unwrap_or(now));
        (since.elapsed() >= 2 * missing.interval).then_some(*missing)
    }

    /// Reports the progress. Changes are logged.
    fn report(&self, state: &mut State, obstacle: Option<Obstacle>) {
        state.outcome.becomes(state.missing.len(), obstacle);
        self.0.observer.restoring(Some(state.outcome.clone()));
    }
}

#[cfg(test)]
mod tests {
    use pds_core::clock::Clock;
    use pds_core::memory::{Holder, MemoryBudget};
    use pds_interface::response_time;

    use super::super::http::Prometheus;
    use super::*;
    use crate::{Config, Owner, Unobserved};

    const INTERVAL: Duration = Duration::from_secs(60);
    /// A step that has settled by the clock of [`watermark`].
    const SETTLED: i64 = 1_772_366_340;

    fn key(app: &str) -> Key {
        Key { owner: Owner::new("p".into(), app.into()), resource: response_time::RESOURCE }
    }

    fn response(cursors: Vec<Answer>) -> Response {
        Response { cursors, complete: Ok(()), process_unseen: false }
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

    fn followed(is_shard: bool) -> Followed {
        let config = Prometheus {
            url: "http://localhost".parse().unwrap(),
            login: None,
            ca_file: None,
            headers: Vec::new(),
            selector: String::new(),
            lookback: Duration::ZERO,
        };
        let source = Source::new(&config, MemoryBudget::default().share(Holder::Restoring)).unwrap();
        Followed { source, watermark: watermark(), is_shard }
    }

    /// A restorer that lacks the cursors of these apps, and its queries.
    async fn lacking(ledgers: &LedgerStore, apps: &[&str], is_shard: bool) -> (Restorer, Job) {
        let restorer = Restorer::new(ledgers.clone(), Arc::new(Unobserved));
        let added = apps.iter().map(|app| (key(app), INTERVAL));
        restorer.follow(Some(followed(is_shard)), |_| true, added);
        let state = restorer.0.state.lock();
        let (followed, keys) = (state.followed.clone().unwrap(), state.missing.keys().cloned().collect());
        let job = Job { followed, keys, changed: restorer.0.changed.subscribe() };
        drop(state);
        (restorer, job)
    }

    async fn in_memory() -> LedgerStore {
        LedgerStore::open(None, Arc::new(Unobserved), Duration::ZERO).await.unwrap().0
    }

    fn answer(app: &str, until: Option<i64>) -> Answer {
        let cursor = until.map(|until| Cursor { until, ..Cursor::default() });
        Answer { key: key(app), cursor, later: None }
    }

    fn missing(restorer: &Restorer) -> Vec<String> {
        restorer.0.state.lock().missing.keys().map(|key| key.owner.app.to_string()).collect()
    }

    #[tokio::test]
    async fn counters_without_a_ledger_of_their_own_are_held_back() {
        let ledgers = in_memory().await;
        ledgers.commit(&key("known"), Ledger::open(SETTLED - 3600)).await.unwrap();
        ledgers.commit(&key("set aside"), Ledger::open(SETTLED).put_aside().unwrap()).await.unwrap();
        let (restorer, _) = lacking(&ledgers, &["known", "new", "set aside"], false).await;
        assert_eq!(missing(&restorer), ["new", "set aside"]);
        let held = |app: &str| ledgers.hold(&key(app));
        assert_eq!((held("new"), held("known")), (Some(Hold::Unknown), None));

        restorer.follow(Some(followed(false)), |key| *key.owner.app != *"new", []);
        assert_eq!((missing(&restorer).len(), held("new")), (1, None));
        restorer.follow(None, |_| true, []);
        assert_eq!((missing(&restorer).len(), held("set aside")), (0, None));
        assert!(restorer.restore().await, "nothing is missing");
    }

    #[tokio::test]
    async fn each_answer_decides_where_a_counter_continues() {
        let ledgers = in_memory().await;
        let aside = Ledger { total: 5, ..Ledger::open(SETTLED - 3600) }.put_aside().unwrap();
        for app in ["aside", "moved"] {
            ledgers.commit(&key(app), aside.clone()).await.unwrap();
        }
        let apps = ["aside", "found", "moved", "new", "unanswered"];
        let (restorer, job) = lacking(&ledgers, &apps, false).await;
        let cursor = Some(Cursor { until: SETTLED - 7200, pending: 900, ..Cursor::default() });
        let answers = vec![
            answer("aside", Some(SETTLED - 3600)),
            Answer { cursor, ..answer("found", None) },
            answer("moved", Some(SETTLED - 60)),
            answer("new", None),
        ];
        restorer.apply(&job, response(answers)).await.unwrap();
        let now =
            |app| ledgers.ledger(&key(app)).map(|ledger| (ledger.until, ledger.total, ledger.unaccounted));
        let expected = [
            Some((SETTLED - 3600, 5, 0)),
            Some((SETTLED - 7200, 0, 900)),
            Some((SETTLED - 60, 0, 0)),
            Some((SETTLED, 0, 0)),
            None,
        ];
        assert_eq!(apps.map(now), expected);
        assert!(!ledgers.ledger(&key("aside")).unwrap().set_aside);
        let begun = |until, pending| Some(Hold::Begun { until, pending });
        let held = [None, begun(SETTLED - 7200, 900), begun(SETTLED - 60, 0), None, Some(Hold::Unknown)];
        assert_eq!(apps.map(|app| ledgers.hold(&key(app))), held);
        assert_eq!(restorer.known().await, ["aside", "found", "moved", "new"].map(key).into());
        assert_eq!(missing(&restorer), ["unanswered"]);
        let Restoring { restored, opened, .. } = restorer.0.state.lock().outcome;
        assert_eq!((restored, opened), (3, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reload_while_cursors_are_committed_loses_no_hold() {
        let folder = tempfile::tempdir().unwrap();
        let (path, apart) = (folder.path().join("state.log"), Duration::from_secs(600));
        let (ledgers, _committer) =
            LedgerStore::open(Some(&path), Arc::new(Unobserved), apart).await.unwrap();
        // The next commit waits.
        ledgers.commit(&key("earlier"), Ledger::open(SETTLED)).await.unwrap();
        let (restorer, job) = lacking(&ledgers, &["found", "removed"], false).await;
        let (until, pending) = (SETTLED - 7200, 900);
        let cursor = Some(Cursor { until, pending, ..Cursor::default() });
        let found = |app| Answer { cursor, ..answer(app, None) };
        let cursors = vec![found("found"), found("removed")];
        let queries = async { Ok(Some(response(cursors))) };
        let reload = async {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(ledgers.ledger(&key("found")), None, "it is being committed");
            restorer.follow(Some(followed(false)), |key| *key.owner.app != *"removed", []);
        };
        let (applied, ()) = tokio::join!(restorer.apply_when_ready(&job, queries), reload);
        applied.unwrap();
        assert_eq!(ledgers.ledger(&key("found")).map(|ledger| ledger.until), Some(until));
        let held = |app| ledgers.hold(&key(app));
        assert_eq!((held("found"), held("removed")), (Some(Hold::Begun { until, pending }), None));
        assert!(missing(&restorer).is_empty());
    }

    #[tokio::test]
    async fn a_commit_that_succeeded_too_late_to_count_keeps_no_counter_from_being_shown_at_0() {
        let ledgers = in_memory().await;
        let (restorer, job) = lacking(&ledgers, &["a"], false).await;
        // The disk answered after the attempt had failed.
        ledgers.commit(&key("a"), Ledger::open(SETTLED)).await.unwrap();
        restorer.apply(&job, response(vec![answer("a", Some(SETTLED))])).await.unwrap();
        assert_eq!(ledgers.hold(&key("a")), Some(Hold::Begun { until: SETTLED, pending: 0 }));
    }

    #[tokio::test]
    async fn counters_without_a_cursor_are_queried_until_prometheus_has_any_cursor() {
        let ledgers = in_memory().await;
        let (restorer, job) = lacking(&ledgers, &["a", "b"], false).await;
        restorer.apply(&job, response(vec![answer("a", None), answer("b", None)])).await.unwrap();
        assert_eq!(restorer.0.state.lock().unfound, ["a", "b"].map(key));
        restorer.apply(&job, response(vec![answer("a", Some(SETTLED))])).await.unwrap();
        assert_eq!(restorer.0.state.lock().unfound, []);
        assert_eq!(ledgers.hold(&key("a")), None, "it has begun already");
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_takes_an_app_over_once_its_cursor_has_stood_still_for_two_polls() {
        let ledgers = in_memory().await;
        let (restorer, job) = lacking(&ledgers, &["own", "other"], true).await;
        let cursor = Some(Cursor { until: SETTLED - 60, is_own: true, ..Cursor::default() });
        let own = Answer { cursor, ..answer("own", None) };
        restorer.apply(&job, response(vec![own, answer("other", Some(SETTLED - 60))])).await.unwrap();
        assert_eq!(missing(&restorer), ["other"]);
        for (seconds, until, left) in [(60, SETTLED, 1), (119, SETTLED, 1), (1, SETTLED, 0)] {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            restorer.apply(&job, response(vec![answer("other", Some(until))])).await.unwrap();
            assert_eq!(missing(&restorer).len(), left, "{seconds} s later");
        }
        assert_eq!(ledgers.hold(&key("other")), Some(Hold::Begun { until: SETTLED, pending: 0 }));
    }

    #[tokio::test]
    async fn answers_to_an_earlier_query_change_nothing() {
        let ledgers = in_memory().await;
        let (restorer, job) = lacking(&ledgers, &["a", "b"], false).await;
        restorer.follow(Some(followed(false)), |_| true, []);
        restorer.apply(&job, response(vec![answer("a", Some(SETTLED)), answer("b", None)])).await.unwrap();
        assert_eq!((missing(&restorer).len(), ledgers.ledger(&key("a"))), (2, None));
    }
}
