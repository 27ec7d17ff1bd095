//! What a search has found.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::Key;
use crate::Ledger;

use super::ledger::{Choice, Chosen, InvalidLedger};

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

impl From<Chosen> for Answer {
    fn from((ledger, target): Chosen) -> Self {
        Self::Ledger { ledger, target }
    }
}

/// What was found so far, and why the rest was refused.
pub(super) struct Search<'a> {
    /// The time of all queries, by the clock of that Prometheus.
    pub at: Timestamp,
    /// The time by the service's clock, which no cursor may be ahead of.
    pub now: i64,
    answers: Vec<(Key, Answer)>,
    refused: HashMap<Key, Answer>,
    /// Gets the number of ledgers found.
    progress: &'a mut (dyn FnMut(usize) + Send),
}

impl<'a> Search<'a> {
    pub(super) fn new(at: Timestamp, now: i64, progress: &'a mut (dyn FnMut(usize) + Send)) -> Self {
        Self { at, now, answers: Vec::new(), refused: HashMap::new(), progress }
    }

    /// Notes what a page has of `key`. Returns the key if other pages are to be searched for it.
    pub(super) fn put(&mut self, key: Key, choice: Choice) -> Option<Key> {
        let open = match choice {
            Choice::Taken(chosen) => {
                self.refused.remove(&key);
                self.answers.push((key, Answer::from(*chosen)));
                None
            }
            Choice::Refused(why, target) => {
                self.refused.entry(key.clone()).or_insert(Answer::Refused { why, target });
                Some(key)
            }
            Choice::Arriving(target) => {
                self.answers.push((key, Answer::Refused { why: InvalidLedger::Partial, target }));
                None
            }
            Choice::Incomplete | Choice::Nothing => Some(key),
        };
        (self.progress)(self.answers.len());
        open
    }

    /// Notes that there is no further page: of what was not refused, nothing is known.
    pub(super) fn end(&mut self, unknown: Vec<Key>) {
        let nothing = unknown.into_iter().filter(|key| !self.refused.contains_key(key));
        self.answers.extend(nothing.map(|key| (key, Answer::Nothing)));
        self.answers.extend(self.refused.drain());
    }

    /// The answers, in any order.
    pub(super) fn answers(self) -> Vec<(Key, Answer)> {
        self.answers
    }
}

#[cfg(test)]
mod tests {
    use pds_interface::Resource;

    use crate::Owner;

    use super::*;

    #[test]
    fn a_ledger_that_was_refused_and_is_found_further_back_has_one_answer() {
        let mut progress = |_| {};
        let mut search = Search::new(Timestamp::UNIX_EPOCH, 0, &mut progress);
        let key =
            Key { owner: Owner::new("p".into(), "a".into()), resource: Resource::all().next().unwrap() };
        let refused = Choice::Refused(InvalidLedger::Apart, "{}".to_owned());
        assert_eq!(search.put(key.clone(), refused), Some(key.clone()));
        let found = (Ledger::default(), "{}".to_owned());
        assert_eq!(search.put(key.clone(), Choice::Taken(Box::new(found.clone()))), None);
        search.end(Vec::new());
        assert_eq!(search.answers(), [(key, Answer::from(found))]);
    }
}
