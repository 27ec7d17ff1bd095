//! The search for pages that were scraped more than an hour ago.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::store::Key;

use super::batches::batches;
use super::error::Error;
use super::ledger::{Choice, InvalidLedger};
use super::query;
use super::series::{Series, Targets};
use super::source::{Answer, MAX_APPS, MAX_WINDOW, Source};

/// How many hours before that of the last cursor are searched first.
const MAX_TRIES: usize = 6;

impl Source {
    /// Searches all of the look-back for `keys`: first for cursors, then for pages in the hour of the cursor and
    /// before. Searching all of it for pages would take as long as 24 such hours, so that is left for counters that
    /// were on a page long after their cursor, as after a suspended machine. Returns the keys that were not found.
    pub(super) async fn further_back(
        &self,
        keys: Vec<Key>,
        (at, lookback): (Timestamp, Duration),
        now: i64,
        refused: &mut HashMap<Key, Answer>,
        answers: &mut Vec<(Key, Answer)>,
    ) -> Result<Vec<Key>, Error> {
        let mut places: BTreeMap<Timestamp, Vec<(Key, usize)>> = BTreeMap::new();
        let (mut unfound, mut elsewhere) = (Vec::new(), Vec::new());
        let questions = |keys: &[Key]| vec![query::hints(keys, &self.selector, lookback)];
        self.ask(batches(keys, MAX_APPS), at, questions, |keys, samples| {
            let mut series = Series::of(samples.into_iter().flatten().collect());
            for key in keys {
                match furthest(&series.take(&key)) {
                    Some(until) => places.entry(hour_after(until).min(at)).or_default().push((key, 0)),
                    None => unfound.push(key),
                }
            }
        })
        .await?;
        while let Some((place, tries)) = places.pop_last() {
            let tried: HashMap<Key, usize> = tries.into_iter().collect();
            let before = place - SignedDuration::from_secs(3600);
            let mut further = Vec::new();
            let asked = (tried.keys().cloned().collect(), MAX_APPS / 4);
            self.chosen(asked, (place, MAX_WINDOW), now, false, |key, choice| {
                let (why, target) = match choice {
                    Choice::Taken(chosen) => return answers.push((key, Answer::from(*chosen))),
                    Choice::Refused(why, target) => (why, target),
                    Choice::Incomplete | Choice::Nothing => (InvalidLedger::Apart, String::new()),
                };
                refused.entry(key.clone()).or_insert(Answer::Refused { why, target });
                match tried.get(&key) {
                    Some(tries) if *tries < MAX_TRIES => further.push((key, tries + 1)),
                    _ => elsewhere.push(key),
                }
            })
            .await?;
            if !further.is_empty() {
                places.entry(before).or_default().extend(further);
            }
        }
        unfound.extend(self.anywhere(elsewhere, (at, lookback), now, answers).await?);
        Ok(unfound)
    }

    /// Searches all of the look-back for pages with `keys`, the latest first. Returns the keys that were not found.
    async fn anywhere(
        &self,
        mut keys: Vec<Key>,
        (at, lookback): (Timestamp, Duration),
        now: i64,
        answers: &mut Vec<(Key, Answer)>,
    ) -> Result<Vec<Key>, Error> {
        let mut place = at;
        while !keys.is_empty() && place > at - SignedDuration::try_from(lookback).unwrap_or_default() {
            let asked = (std::mem::take(&mut keys), MAX_APPS / 4);
            self.chosen(asked, (place, MAX_WINDOW), now, false, |key, choice| match choice {
                Choice::Taken(chosen) => answers.push((key, Answer::from(*chosen))),
                _ => keys.push(key),
            })
            .await?;
            place -= SignedDuration::from_secs(3600);
        }
        Ok(keys)
    }
}

/// The furthest cursor of targets with a total.
fn furthest(targets: &Targets) -> Option<i64> {
    let cursors =
        targets.values().filter(|scraped| scraped.total.is_some()).filter_map(|scraped| scraped.until);
    #[expect(clippy::cast_possible_truncation, reason = "only decides where to look")]
    cursors.max_by(f64::total_cmp).map(|until| until as i64)
}

/// When an hour ends in which a page with the cursor `until` was scraped: half an hour after it or more.
fn hour_after(until: i64) -> Timestamp {
    let second = until.div_euclid(1800).saturating_add(2).saturating_mul(1800);
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}
