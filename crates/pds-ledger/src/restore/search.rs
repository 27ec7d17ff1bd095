//! The search for ledgers: in windows that widen, and then in hours further back.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use pds_interface::Counted;

use crate::{Key, Ledger};

use super::http::Error;
use super::ledger::{InvalidLedger, choose};
use super::query::{self, HOUR, batches};
use super::series::{self, Series};
use super::source::{MAX_APPS, Source};

/// How far before the last hour with a total of a counter its pages are searched.
const SEARCHED: SignedDuration = SignedDuration::from_hours(6);

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
    /// Something, but nothing usable.
    Refused {
        /// Why the furthest one was refused.
        why: InvalidLedger,
        /// The labels of the target that it was scraped from.
        target: String,
    },
    /// Nothing.
    Nothing,
}

/// The time before `at` in which pages are searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub at: Timestamp,
    pub width: Duration,
    /// Whether some samples may still arrive.
    pub recent: bool,
    /// Whether no wider one follows; then a target that lacks something is skipped.
    pub last: bool,
}

/// The hours in which a counter was on a page, the latest first, each by its end.
type Hours = VecDeque<Timestamp>;

/// A search, what it has found so far, and why the rest was refused.
pub(super) struct Search<'a> {
    pub source: &'a Source,
    /// The time of all queries, by the clock of that Prometheus.
    pub at: Timestamp,
    /// The time by the service's clock, which no cursor may be ahead of.
    pub now: i64,
    pub answers: Vec<(Key, Answer)>,
    pub refused: HashMap<Key, Answer>,
    /// Gets the number of ledgers found.
    pub progress: &'a mut (dyn FnMut(usize) + Send),
}

impl Search<'_> {
    /// Searches for `keys`.
    ///
    /// # Errors
    /// If a query was not answered in full. What was found until then is among the answers.
    pub(super) async fn run(&mut self, keys: Vec<Key>) -> Result<(), Error> {
        let (mut open, Source { windows, beyond, .. }) = (keys, self.source);
        for (index, width) in windows.iter().enumerate() {
            let last = index + 1 == windows.len() && beyond.is_none();
            let window = Window { at: self.at, width: *width, recent: index == 0, last };
            open = self.look(open, window).await?;
        }
        if let Some(lookback) = *beyond {
            open = self.further_back(open, lookback).await?;
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
        // Of the last minutes, series of a scrape may still arrive: buckets are read as of one scrape, too.
        let questions = |keys: &[Key]| {
            let moments = query::moments(keys, &source.selector, width, recent);
            vec![query::ledgers(keys, &source.selector, width), moments]
        };
        let mut open = Vec::new();
        let answered = source.ask(batches(keys, apps), at, questions, Series::put, |keys, answers| {
            let mut answers = answers.into_iter();
            let mut series: Series = answers.next().unwrap_or_default();
            series.align(answers.next().unwrap_or_default(), recent);
            for key in keys {
                let distributed = key.resource.polled().counted == Some(Counted::Requests);
                let answer = choose(&series.take(&key), distributed, now, window);
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
    async fn further_back(&mut self, keys: Vec<Key>, lookback: Duration) -> Result<Vec<Key>, Error> {
        let begin = self.at - SignedDuration::try_from(lookback).unwrap_or_default();
        let mut places: BTreeMap<Timestamp, BTreeMap<Key, Hours>> = BTreeMap::new();
        let mut unknown = Vec::new();
        let source = self.source;
        // The second is asked only where the first finds something.
        let questions = |keys: &[Key]| {
            let selector = &source.selector;
            vec![query::totals(keys, selector, lookback), query::hours(keys, selector, lookback)]
        };
        let batches = batches(keys, MAX_APPS / 4);
        let answered = source.ask(batches, self.at, questions, series::put_times, |keys, answers| {
            let mut answers = answers.into_iter();
            let known: series::Times = answers.next().unwrap_or_default();
            let mut hours = answers.next().unwrap_or_default();
            for key in keys {
                match hours.remove(&key).as_ref().and_then(|times| latest(times)) {
                    Some((last, earlier)) => drop(places.entry(last).or_default().insert(key, earlier)),
                    None if known.contains_key(&key) => self.refuse(key),
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

    use crate::Owner;

    use super::super::http::Prometheus;
    use super::*;

    #[test]
    fn a_ledger_that_was_refused_and_is_found_further_back_has_one_answer() {
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
        let mut search = Search { source: &source, at, now: 0, answers, refused, progress: &mut |_| {} };
        let key =
            Key { owner: Owner::new("p".into(), "a".into()), resource: Resource::all().next().unwrap() };
        search.refuse(key.clone());
        let found = Answer::Ledger { ledger: Ledger::default(), target: "{}".to_owned() };
        assert_eq!(search.put(key.clone(), found.clone(), false), None);
        assert!(search.refused.is_empty());
        assert_eq!(search.answers, [(key, found)]);
    }
}
