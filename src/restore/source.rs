//! Which ledgers a Prometheus knows.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use crate::accounting::Ledger;
use crate::client::{BuildError, Network};
use crate::config::Prometheus;
use crate::interface::Counted;
use crate::store::Key;

use super::error::Error;
use super::http::Http;
use super::ledger::{Choice, Refusal, choose};
use super::query;
use super::reply::Sample;
use super::series::{AppName, Series, identity, take_app};

/// The look-back widens in these steps, for those not found: 250,000 series over a day are a thousand million samples.
const WINDOWS: &[Duration] = &[Duration::from_secs(300), Duration::from_secs(3600)];
/// So many apps are asked for at once in the first window, and a quarter of them in wider ones.
const MAX_APPS: usize = 200;
/// The most bytes of app ids in a query: VictoriaMetrics takes 16 KiB, and an id may be longer quoted.
const MAX_ID_BYTES: usize = 6 << 10;
/// So many queries are under way at once.
const MAX_QUERIES: usize = 4;
/// The same start time, as far as an engine keeps it: VictoriaMetrics has twelve digits.
const SAME_TIME: f64 = 0.002;

/// A Prometheus, or what has its HTTP API: Thanos, Mimir, VictoriaMetrics. Cloning shares it.
///
/// ```text
/// let source = Source::new(&config, None)?;
/// let at = source.now().await?;
/// for (key, answer) in source.ledgers(&keys, at, now, |done, all| {}).await? { ... }
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    http: Arc<Http>,
    selector: Arc<str>,
    windows: Arc<[Duration]>,
}

/// What a Prometheus knows of one ledger.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The ledger, as of the last scrape that had it.
    Ledger {
        /// The ledger.
        ledger: Ledger,
        /// The labels of the target that it was scraped from.
        target: String,
    },
    /// Something, but none of it belongs together.
    Refused {
        /// Why what counted furthest was refused.
        why: Refusal,
        /// The labels of the target that it was scraped from.
        target: String,
    },
    /// Nothing.
    Nothing,
}

impl Source {
    /// The Prometheus of `config`; asked on the thread of `network`, where there is one.
    ///
    /// # Errors
    /// If its trust anchors cannot be used.
    pub fn new(config: &Prometheus, network: Option<Network>) -> Result<Self, BuildError> {
        let narrower = WINDOWS.iter().copied().filter(|window| *window < config.lookback);
        Ok(Self {
            http: Arc::new(Http::new(config, network)?),
            selector: config.selector.trim().into(),
            windows: narrower.chain([config.lookback]).collect(),
        })
    }

    /// The time by the clock of the Prometheus: when all questions that belong together are to be answered for.
    ///
    /// # Errors
    /// If it does not say.
    pub async fn now(&self) -> Result<Timestamp, Error> {
        let samples = self.http.query(query::TIME, None).await?;
        let seconds = samples.first().and_then(Sample::value).unwrap_or(f64::NAN);
        let time = SignedDuration::try_from_secs_f64(seconds).ok();
        let time = time.and_then(|since| Timestamp::from_duration(since).ok());
        time.ok_or_else(|| self.http.no_answer("it does not tell the time"))
    }

    /// What it knows at `at` (of [`Source::now`]) of each of `keys`, in any order. `now` is the time by the service's clock,
    /// which no cursor may be ahead of. `progress` is told how many of how many are answered.
    ///
    /// # Errors
    /// If one question was not answered in full; nothing is known then.
    pub async fn ledgers(
        &self,
        keys: &[Key],
        at: Timestamp,
        now: i64,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Vec<(Key, Answer)>, Error> {
        let mut answers = Vec::with_capacity(keys.len());
        let mut open: Vec<Key> = keys.to_vec();
        for (index, window) in self.windows.iter().enumerate() {
            let last = index + 1 == self.windows.len();
            let apps = if index == 0 { MAX_APPS } else { MAX_APPS / 4 };
            let asked = std::mem::take(&mut open);
            let question = |keys: &[Key]| query::ledgers(keys, &self.selector, *window);
            self.ask(batches(asked, apps), at, question, |keys, samples| {
                let mut series = Series::of(samples);
                for key in keys {
                    let distributed = key.resource.polled().counted == Some(Counted::Requests);
                    let answer = match choose(&series.take(&key), distributed, now, last) {
                        Choice::Taken(chosen) => Answer::Ledger { ledger: chosen.0, target: chosen.1 },
                        Choice::Incomplete => {
                            open.push(key);
                            continue;
                        }
                        _ if !last => {
                            open.push(key);
                            continue;
                        }
                        Choice::Refused(why, target) => Answer::Refused { why, target },
                        Choice::Nothing => Answer::Nothing,
                    };
                    answers.push((key, answer));
                }
                progress(answers.len(), answers.capacity());
            })
            .await?;
            if open.is_empty() {
                break;
            }
        }
        Ok(answers)
    }

    /// Which of `keys` were on a page of this very process that was scraped before `at`. The process is recognised by
    /// the time `loaded` when it loaded its configuration, which every page has.
    ///
    /// # Errors
    /// If one question was not answered in full.
    pub async fn scraped(
        &self,
        keys: &[Key],
        at: Timestamp,
        loaded: Timestamp,
    ) -> Result<HashSet<Key>, Error> {
        let window = self.windows.first().copied().unwrap_or_default();
        let loaded = loaded.as_duration().as_secs_f64();
        let processes = self.http.query(&query::processes(&self.selector, window), Some(at)).await?;
        let ours: HashSet<String> = processes
            .into_iter()
            .filter(|sample| sample.value().is_some_and(|value| (value - loaded).abs() <= SAME_TIME))
            .map(|sample| {
                let mut labels = sample.labels;
                labels.remove("__name__");
                identity(&labels)
            })
            .collect();
        let mut scraped = HashSet::new();
        if ours.is_empty() {
            return Ok(scraped);
        }
        let question = |keys: &[Key]| query::polled(keys, &self.selector, window);
        self.ask(batches(keys.to_vec(), MAX_APPS), at, question, |keys, samples| {
            let mut on_page: HashSet<(AppName, String)> = HashSet::new();
            for sample in samples {
                let mut labels = sample.labels;
                labels.remove("__name__");
                let (Some(app), Some(resource)) = (take_app(&mut labels), labels.remove("resource")) else {
                    continue;
                };
                if ours.contains(&identity(&labels)) {
                    on_page.insert((app, resource));
                }
            }
            let is_on_page = |key: &Key| {
                let app = (key.owner.project.to_string(), key.owner.app.to_string());
                on_page.contains(&(app, key.resource.as_str().to_owned()))
            };
            scraped.extend(keys.into_iter().filter(is_on_page));
        })
        .await?;
        Ok(scraped)
    }

    /// Asks a question about each of the batches, some at once, and hands over what is answered. A batch whose answer is
    /// too large is divided.
    async fn ask(
        &self,
        mut batches: VecDeque<Vec<Key>>,
        at: Timestamp,
        question: impl Fn(&[Key]) -> String,
        mut answered: impl FnMut(Vec<Key>, Vec<Sample>),
    ) -> Result<(), Error> {
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < MAX_QUERIES
                && let Some(keys) = batches.pop_front()
            {
                let (http, query) = (Arc::clone(&self.http), question(&keys));
                under_way.spawn(async move { (keys, http.query(&query, Some(at)).await) });
            }
            match under_way.join_next().await {
                None => return Ok(()),
                Some(Ok((keys, Ok(samples)))) => answered(keys, samples),
                Some(Ok((keys, Err(error)))) => {
                    let mut halves = batches_of_half(&keys);
                    if !error.is_of_size() || halves.len() < 2 {
                        return Err(error);
                    }
                    batches.append(&mut halves);
                }
                // Nothing here is aborted, and a panic is ours.
                Some(Err(error)) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => return Ok(()),
                },
            }
        }
    }
}

/// The keys in batches of at most `apps` apps, the resources of an app together.
fn batches(mut keys: Vec<Key>, apps: usize) -> VecDeque<Vec<Key>> {
    keys.sort();
    let mut batches: VecDeque<Vec<Key>> = VecDeque::new();
    let (mut count, mut bytes) = (0, 0);
    for key in keys {
        let same = batches
            .back()
            .and_then(|batch| batch.last())
            .is_some_and(|last| last.owner.app == key.owner.app && last.owner.project == key.owner.project);
        let id = key.owner.app.len() + key.owner.project.len();
        match batches.back_mut() {
            Some(batch) if same => batch.push(key),
            Some(batch) if count < apps && bytes + id <= MAX_ID_BYTES => {
                (count, bytes) = (count + 1, bytes + id);
                batch.push(key);
            }
            _ => {
                (count, bytes) = (1, id);
                batches.push_back(vec![key]);
            }
        }
    }
    batches
}

fn batches_of_half(keys: &[Key]) -> VecDeque<Vec<Key>> {
    let apps: HashSet<_> = keys.iter().map(|key| (&key.owner.project, &key.owner.app)).collect();
    batches(keys.to_vec(), (apps.len() / 2).max(1))
}
