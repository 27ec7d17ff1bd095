//! Which ledgers a Prometheus knows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use crate::Key;
use pds_core::memory::Share;
use pds_http::BuildError;

use super::http::{Error, Http, Prometheus};
use super::query::{self, HOUR, batches, halves};
use super::reply::Sample;
use super::search::{Answer, Search};
use super::series::{identity, take_owner, take_resource};

/// The look-back widens in these steps for counters not found: 250,000 series over a day are a thousand million
/// samples.
const WINDOWS: &[Duration] = &[RECENT, MAX_WINDOW];
/// Samples that were scraped longer ago than this have arrived.
const RECENT: Duration = Duration::from_secs(300);
/// The most apps in one query of the first window; wider windows take a quarter of them.
pub(super) const MAX_APPS: usize = 200;
/// The widest window in which whole pages are searched.
const MAX_WINDOW: Duration = HOUR.unsigned_abs();
/// The most queries in flight.
const MAX_QUERIES: usize = 4;
/// Tolerance of the start time, in seconds: VictoriaMetrics keeps twelve digits.
const SAME_TIME: f64 = 0.002;

/// A Prometheus, or another program with its HTTP API: Thanos, Mimir, VictoriaMetrics. Cloning shares it.
///
/// ```text
/// let source = Source::new(&config, memory)?;
/// let at = source.now().await?;
/// for (key, answer) in source.ledgers(&keys, at, now, |done, all| {}).await? { ... }
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    http: Arc<Http>,
    pub(super) selector: Arc<str>,
    /// The windows that are searched, the narrowest first.
    pub(super) windows: Arc<[Duration]>,
    /// How far back the search goes beyond these.
    pub(super) beyond: Option<Duration>,
}

impl Source {
    /// The Prometheus of `config`, whose replies fit in `memory` until they are decoded.
    ///
    /// # Errors
    /// If its trust anchors cannot be used.
    pub fn new(config: &Prometheus, memory: Share) -> Result<Self, BuildError> {
        let narrower = WINDOWS.iter().copied().filter(|window| *window < config.lookback);
        let widest = (config.lookback <= MAX_WINDOW).then_some(config.lookback);
        Ok(Self {
            http: Arc::new(Http::new(config, memory)?),
            selector: config.selector.trim().into(),
            windows: narrower.chain(widest).collect(),
            beyond: widest.is_none().then_some(config.lookback),
        })
    }

    /// The time by the clock of that Prometheus. All queries of one attempt use it.
    ///
    /// # Errors
    /// If it gives no usable answer.
    pub async fn now(&self) -> Result<Timestamp, Error> {
        let mut seconds = f64::NAN;
        self.http.query(query::TIME, None, |sample| seconds = sample.value().unwrap_or(f64::NAN)).await?;
        let time = SignedDuration::try_from_secs_f64(seconds).ok();
        let time = time.and_then(|since| Timestamp::from_duration(since).ok());
        time.ok_or_else(|| {
            Error::NotPrometheus(self.http.url.clone(), "it does not tell the time".to_owned())
        })
    }

    /// What it knows at `at` (of [`Source::now`]) of each of `keys`, in any order. `now` is the time by the service's
    /// clock, which no cursor may be ahead of. `progress` gets the number of ledgers found, and of all keys.
    ///
    /// If a query is not answered in full, the error is the second value, and the first holds the ledgers found until
    /// then.
    pub async fn ledgers(
        &self,
        keys: &[Key],
        at: Timestamp,
        now: i64,
        mut progress: impl FnMut(usize, usize) + Send,
    ) -> (Vec<(Key, Answer)>, Result<(), Error>) {
        let mut found = |found| progress(found, keys.len());
        let (answers, refused) = (Vec::new(), HashMap::new());
        let mut search = Search { source: self, at, now, answers, refused, progress: &mut found };
        let result = search.run(keys.to_vec()).await;
        (search.answers, result)
    }

    /// Which of `keys` were on a page of this very process that was scraped before `at`. The process is recognised by
    /// `loaded`, the time when it loaded its configuration, which is on every page.
    ///
    /// # Errors
    /// If one query was not answered in full.
    pub async fn scraped(
        &self,
        keys: &[Key],
        at: Timestamp,
        loaded: Timestamp,
    ) -> Result<HashSet<Key>, Error> {
        let window = self.windows.first().copied().unwrap_or_default();
        let loaded = loaded.as_duration().as_secs_f64();
        let mut ours = HashSet::new();
        let put = |sample: Sample| {
            if sample.value().is_some_and(|value| (value - loaded).abs() <= SAME_TIME) {
                ours.insert(identity(&sample.labels));
            }
        };
        self.http.query(&query::processes(&self.selector, window), Some(at), put).await?;
        let mut scraped = HashSet::new();
        if ours.is_empty() {
            return Ok(scraped);
        }
        let questions = |keys: &[Key]| vec![query::polled(keys, &self.selector, window)];
        let ours = Arc::new(ours);
        let put = move |on_page: &mut HashSet<Key>, mut sample: Sample| {
            if let Some(owner) = take_owner(&mut sample.labels)
                && let Some(resource) = take_resource(&mut sample.labels)
                && ours.contains(&identity(&sample.labels))
            {
                on_page.insert(Key { owner, resource });
            }
        };
        self.ask(batches(keys.to_vec(), MAX_APPS), at, questions, put, |keys, answers| {
            let on_page = answers.into_iter().next().unwrap_or_default();
            scraped.extend(keys.into_iter().filter(|key| on_page.contains(key)));
        })
        .await?;
        Ok(scraped)
    }

    /// Runs a query for each of the batches, some at once, and passes on what `put` makes of the answers. A batch whose
    /// answer is too large is divided.
    pub(super) async fn ask<T: Default + Send + 'static>(
        &self,
        mut batches: VecDeque<Vec<Key>>,
        at: Timestamp,
        questions: impl Fn(&[Key]) -> Vec<String>,
        put: impl Fn(&mut T, Sample) + Clone + Send + Sync + 'static,
        mut answered: impl FnMut(Vec<Key>, Vec<T>),
    ) -> Result<(), Error> {
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < MAX_QUERIES
                && let Some(keys) = batches.pop_front()
            {
                let (http, queries, put) = (Arc::clone(&self.http), questions(&keys), put.clone());
                under_way.spawn(async move {
                    let mut answers = Vec::with_capacity(queries.len());
                    for query in queries {
                        let mut answer = T::default();
                        match http.query(&query, Some(at), |sample| put(&mut answer, sample)).await {
                            // What one query finds unknown needs no further query.
                            Ok(0) => break,
                            Ok(_) => answers.push(answer),
                            Err(error) => return (keys, Err(error)),
                        }
                    }
                    (keys, Ok(answers))
                });
            }
            match under_way.join_next().await {
                None => return Ok(()),
                Some(Ok((keys, Ok(answers)))) => answered(keys, answers),
                Some(Ok((keys, Err(error)))) => {
                    let halves = halves(&keys);
                    if !error.is_of_size() || halves.len() < 2 {
                        return Err(error);
                    }
                    // Before all others: if it is not a matter of size, that is known after a few questions.
                    halves.into_iter().rev().for_each(|half| batches.push_front(half));
                }
                // No task is aborted, and a panic would be a bug.
                Some(Err(error)) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => return Ok(()),
                },
            }
        }
    }
}
