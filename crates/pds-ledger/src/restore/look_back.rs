//! The search for pages that were scraped more than an hour ago.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::Key;

use super::error::Error;
use super::ledger::{Choice, InvalidLedger, Window};
use super::query::batches;
use super::query::{self, HOUR};
use super::search::Search;
use super::series;
use super::source::{MAX_APPS, Source};

/// How far before the last hour with a total of a counter its pages are searched.
const SEARCHED: SignedDuration = SignedDuration::from_hours(6);

/// The hours in which a counter was on a page, the latest first, each by its end.
type Hours = VecDeque<Timestamp>;

impl Source {
    /// Searches the look-back for `keys`: in the last hour in which their totals were scraped, and in those of the six
    /// hours before it. Returns the keys whose totals were never scraped.
    ///
    /// The hour is that of the scrape, not of the cursor: after a suspended machine, a page is much younger than its
    /// cursors.
    pub(super) async fn further_back(
        &self,
        keys: Vec<Key>,
        lookback: Duration,
        search: &mut Search<'_>,
    ) -> Result<Vec<Key>, Error> {
        let begin = search.at - SignedDuration::try_from(lookback).unwrap_or_default();
        let mut places: BTreeMap<Timestamp, Vec<(Key, Hours)>> = BTreeMap::new();
        let mut unknown = Vec::new();
        // The second is asked only where the first finds something.
        let questions = |keys: &[Key]| {
            let selector = &self.selector;
            vec![query::totals(keys, selector, lookback), query::hours(keys, selector, lookback)]
        };
        self.ask(batches(keys, MAX_APPS / 4), search.at, questions, series::put_times, |keys, answers| {
            let mut answers = answers.into_iter();
            let known: series::Times = answers.next().unwrap_or_default();
            let mut hours = answers.next().unwrap_or_default();
            for key in keys {
                match hours.remove(&key).as_ref().and_then(|times| latest(times)) {
                    Some((last, earlier)) => places.entry(last).or_default().push((key, earlier)),
                    // A counter that was scraped must not begin at 0.
                    None if known.contains_key(&key) => drop(search.put(key, apart())),
                    None => unknown.push(key),
                }
            }
        })
        .await?;
        while let Some((place, keys)) = places.pop_last() {
            let mut earlier: BTreeMap<Key, Hours> = keys.into_iter().collect();
            let asked = (earlier.keys().cloned().collect(), MAX_APPS / 4);
            let width = place.duration_since(begin).clamp(SignedDuration::from_secs(1), HOUR).unsigned_abs();
            self.chosen(asked, (place, Window { width, last: false }), search.now, |key, choice| {
                let choice = match choice {
                    Choice::Incomplete | Choice::Nothing | Choice::Arriving(_) => apart(),
                    choice => choice,
                };
                let Some(key) = search.put(key, choice) else { return };
                let mut hours = earlier.remove(&key).unwrap_or_default();
                if let Some(next) = hours.pop_front() {
                    places.entry(next).or_default().push((key, hours));
                }
            })
            .await?;
        }
        Ok(unknown)
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

fn apart() -> Choice {
    Choice::Refused(InvalidLedger::Apart, String::new())
}
