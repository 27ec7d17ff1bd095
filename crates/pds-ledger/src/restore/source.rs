//! Which ledgers a Prometheus knows: the search in windows that widen, and then in hours further back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use crate::Key;
use pds_core::memory::Share;
use pds_http::BuildError;
use pds_interface::Counted;

use super::http::{Error, Http, Prometheus};
use super::ledger::{Answer, InvalidLedger, Window, choose};
use super::query::{self, HOUR, batches, halves};
use super::reply::Sample;
use super::series::{self, Series, identity, take_owner, take_resource};

/// Samples that were scraped longer ago than this have arrived.
const RECENT: Duration = Duration::from_secs(300);
/// The widest window in which whole pages are searched.
const MAX_WINDOW: Duration = HOUR.unsigned_abs();
/// How far before the last hour with a total of a counter its pages are searched.
const SEARCHED: SignedDuration = SignedDuration::from_hours(6);
/// The most apps in one query of the first window; wider windows take a quarter of them.
const MAX_APPS: usize = 200;
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
    selector: Arc<str>,
    /// How far back it is searched.
    lookback: Duration,
}

impl Source {
    /// The Prometheus of `config`, whose replies fit in `memory` until they are decoded.
    ///
    /// # Errors
    /// If its trust anchors cannot be used.
    pub fn new(config: &Prometheus, memory: Share) -> Result<Self, BuildError> {
        Ok(Self {
            http: Arc::new(Http::new(config, memory)?),
            selector: config.selector.trim().into(),
            lookback: config.lookback,
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
        let window = RECENT.min(self.lookback);
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
        self.ask(batches(keys.to_vec(), MAX_APPS), at, questions, put, |keys, on_page| {
            scraped.extend(keys.into_iter().filter(|key| on_page.contains(key)));
        })
        .await?;
        Ok(scraped)
    }

    /// Runs queries for each of the batches, some at once, and passes on what `put` makes of all their answers. A batch whose
    /// answers are too large is divided.
    async fn ask<T: Default + Send + 'static>(
        &self,
        mut batches: VecDeque<Vec<Key>>,
        at: Timestamp,
        questions: impl Fn(&[Key]) -> Vec<String>,
        put: impl Fn(&mut T, Sample) + Clone + Send + Sync + 'static,
        mut answered: impl FnMut(Vec<Key>, T),
    ) -> Result<(), Error> {
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < MAX_QUERIES
                && let Some(keys) = batches.pop_front()
            {
                let (http, queries, put) = (Arc::clone(&self.http), questions(&keys), put.clone());
                under_way.spawn(async move {
                    let mut answer = T::default();
                    for query in queries {
                        match http.query(&query, Some(at), |sample| put(&mut answer, sample)).await {
                            // What one query finds unknown needs no further query.
                            Ok(0) => break,
                            Ok(_) => {}
                            Err(error) => return (keys, Err(error)),
                        }
                    }
                    (keys, Ok(answer))
                });
            }
            match under_way.join_next().await {
                None => return Ok(()),
                Some(Ok((keys, Ok(answer)))) => answered(keys, answer),
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

/// The hours in which a counter was on a page, the latest first, each by its end.
type Hours = VecDeque<Timestamp>;

/// A search, what it has found so far, and why the rest was refused.
struct Search<'a> {
    source: &'a Source,
    /// The time of all queries, by the clock of that Prometheus.
    at: Timestamp,
    /// The time by the service's clock, which no cursor may be ahead of.
    now: i64,
    answers: Vec<(Key, Answer)>,
    refused: HashMap<Key, Answer>,
    /// Gets the number of ledgers found.
    progress: &'a mut (dyn FnMut(usize) + Send),
}

impl Search<'_> {
    /// Searches for `keys`.
    ///
    /// # Errors
    /// If a query was not answered in full. What was found until then is among the answers.
    async fn run(&mut self, keys: Vec<Key>) -> Result<(), Error> {
        let (mut open, lookback) = (keys, self.source.lookback);
        // It widens in steps for those not found: 250,000 series over a day are a thousand million samples.
        for width in BTreeSet::from([RECENT, MAX_WINDOW].map(|width| width.min(lookback))) {
            let window = Window { at: self.at, width, recent: width <= RECENT, last: width == lookback };
            open = self.look(open, window).await?;
        }
        if lookback > MAX_WINDOW {
            open = self.further_back(open).await?;
        }
        // There is no further page: of what was not refused, nothing is known.
        open.retain(|key| !self.refused.contains_key(key));
        self.answers.extend(open.into_iter().map(|key| (key, Answer::Nothing)));
        self.answers.extend(self.refused.drain());
        Ok(())
    }

    /// Looks at the last pages within `window`. Returns the keys that other pages are to be searched for.
    async fn look(&mut self, keys: Vec<Key>, window: Window) -> Result<Vec<Key>, Error> {
        let Window { at, width, recent, .. } = window;
        let (source, now) = (self.source, self.now);
        let apps = if recent { MAX_APPS } else { MAX_APPS / 4 };
        // Of the last minutes, series of a scrape may still arrive, and two queries may see different ones: buckets are read
        // as of one scrape, too.
        let questions = |keys: &[Key]| {
            let mut queries = vec![query::moments(keys, &source.selector, width, recent)];
            queries.extend((!recent).then(|| query::buckets(keys, &source.selector, width)));
            queries
        };
        let mut open = Vec::new();
        let answered = source.ask(batches(keys, apps), at, questions, Series::put, |keys, mut series| {
            for key in keys {
                let distributed = key.resource.polled().counted == Some(Counted::Requests);
                let answer = choose(&series.take(&key, recent), distributed, now, window);
                open.extend(self.put(key, answer, recent));
            }
        });
        answered.await?;
        Ok(open)
    }

    /// Notes what a page has of `key`. Returns the key if other pages are to be searched for it.
    fn put(&mut self, key: Key, answer: Answer, recent: bool) -> Option<Key> {
        let open = match answer {
            Answer::Nothing => Some(key),
            // A scrape that is arriving will soon be whole.
            Answer::Refused { ref why, .. } if *why != InvalidLedger::Partial || !recent => {
                self.refused.entry(key.clone()).or_insert(answer);
                Some(key)
            }
            found => {
                self.refused.remove(&key);
                self.answers.push((key, found));
                None
            }
        };
        (self.progress)(self.answers.len());
        open
    }

    /// Searches the look-back for `keys`: in the last hour in which their totals were scraped, and in those of the six
    /// hours before it. Returns the keys whose totals were never scraped.
    ///
    /// The hour is that of the scrape, not of the cursor: after a suspended machine, a page is much younger than its
    /// cursors.
    async fn further_back(&mut self, keys: Vec<Key>) -> Result<Vec<Key>, Error> {
        let (source, lookback) = (self.source, self.source.lookback);
        let begin = self.at - SignedDuration::try_from(lookback).unwrap_or_default();
        let mut places: BTreeMap<Timestamp, BTreeMap<Key, Hours>> = BTreeMap::new();
        let mut unknown = Vec::new();
        // The second is asked only where the first finds something.
        let questions = |keys: &[Key]| {
            let selector = &source.selector;
            vec![query::totals(keys, selector, lookback), query::hours(keys, selector, lookback)]
        };
        let batches = batches(keys, MAX_APPS / 4);
        let answered = source.ask(batches, self.at, questions, series::put_times, |keys, mut times| {
            for key in keys {
                let times = times.remove(&key);
                match times.as_ref().and_then(|times| latest(times)) {
                    Some((last, earlier)) => drop(places.entry(last).or_default().insert(key, earlier)),
                    None if times.is_some() => self.refuse(key),
                    None => unknown.push(key),
                }
            }
        });
        answered.await?;
        while let Some((at, mut earlier)) = places.pop_last() {
            let width = at.duration_since(begin).clamp(SignedDuration::from_secs(1), HOUR).unsigned_abs();
            let window = Window { at, width, recent: false, last: false };
            for key in self.look(earlier.keys().cloned().collect(), window).await? {
                self.refuse(key.clone());
                let mut hours = earlier.remove(&key).unwrap_or_default();
                if let Some(next) = hours.pop_front() {
                    places.entry(next).or_default().insert(key, hours);
                }
            }
        }
        Ok(unknown)
    }

    /// Notes that no page has all of `key`, if nothing else is wrong with it: a counter that was scraped must not begin
    /// at 0.
    fn refuse(&mut self, key: Key) {
        let apart = Answer::Refused { why: InvalidLedger::Apart, target: String::new() };
        self.refused.entry(key).or_insert(apart);
    }
}

/// The last of these hours, and those before it that are searched.
fn latest(times: &[f64]) -> Option<(Timestamp, Hours)> {
    #[expect(clippy::cast_possible_truncation, reason = "only decides where to look")]
    let mut hours: Vec<_> =
        times.iter().filter_map(|time| Timestamp::from_second(time.ceil() as i64).ok()).collect();
    hours.sort_unstable_by(|one, other| other.cmp(one));
    hours.dedup();
    let last = *hours.first()?;
    let earlier = hours.into_iter().skip(1).take_while(|hour| last.duration_since(*hour) <= SEARCHED);
    Some((last, earlier.collect()))
}

#[cfg(test)]
mod tests {
    use pds_core::memory::{Holder, MemoryBudget};
    use pds_interface::Resource;

    use super::*;
    use crate::{Ledger, Owner};

    /// What becomes of a search by `with`, which finds nothing by itself.
    fn searching(with: impl FnOnce(&mut Search<'_>)) {
        let config = Prometheus {
            url: "http://localhost".parse().unwrap(),
            login: None,
            ca_file: None,
            headers: Vec::new(),
            selector: String::new(),
            lookback: Duration::ZERO,
        };
        let source = Source::new(&config, MemoryBudget::default().share(Holder::Restoring)).unwrap();
        let (at, answers, refused) = (Timestamp::UNIX_EPOCH, Vec::new(), HashMap::new());
        with(&mut Search { source: &source, at, now: 0, answers, refused, progress: &mut |_| {} });
    }

    fn key() -> Key {
        Key { owner: Owner::new("p".into(), "a".into()), resource: Resource::all().next().unwrap() }
    }

    #[test]
    fn a_ledger_that_was_refused_and_is_found_further_back_has_one_answer() {
        searching(|search| {
            search.refuse(key());
            assert!(search.refused.contains_key(&key()), "a counter that was scraped does not begin at 0");
            let found = Answer::Ledger { ledger: Ledger::default(), target: "{}".to_owned() };
            assert_eq!(search.put(key(), found.clone(), false), None);
            assert!(search.refused.is_empty());
            assert_eq!(search.answers, [(key(), found)]);
        });
    }

    #[test]
    fn other_pages_are_searched_unless_one_is_still_arriving() {
        let refused = |why| Answer::Refused { why, target: String::new() };
        let (partial, apart) = (refused(InvalidLedger::Partial), refused(InvalidLedger::Apart));
        for (answer, recent) in [(&partial, false), (&apart, true), (&apart, false)] {
            searching(|search| {
                assert_eq!(search.put(key(), answer.clone(), recent), Some(key()), "{answer:?}");
                assert_eq!((search.refused.get(&key()), search.answers.len()), (Some(answer), 0));
            });
        }
        searching(|search| {
            assert_eq!(search.put(key(), partial.clone(), true), None);
            assert_eq!((search.refused.len(), search.answers.len()), (0, 1));
        });
    }

    #[test]
    fn pages_are_searched_in_the_last_hour_and_in_those_of_the_six_hours_before_it() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let hours = [0.0, 3599.5, 3600.0, 25_199.0, 25_200.0];
        let earlier = [25_199, 3600].map(at);
        assert_eq!(latest(&hours), Some((at(25_200), earlier.into())));
        assert_eq!(latest(&[]), None);
    }
}
