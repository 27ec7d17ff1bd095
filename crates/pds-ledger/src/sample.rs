//! Samples: an hour that is requested again at greater ages after its last recheck, to determine how much of it arrived
//! too late to be counted.

use pds_interface::TimeRange;

use super::ledger::{Ledger, exact};
use super::recheck::{Ages, Recheck};
use super::stretch::{Completeness, HOUR, Sample};

/// The ages at which samples are requested, as the label `age` and in seconds.
pub const AGES: [(&str, i64); 3] = [("3h", 3 * HOUR), ("24h", 24 * HOUR), ("3d", 72 * HOUR)];

/// The minimum part of a sampled hour that must be counted in time.
pub const MIN_RATIO: f64 = 0.99;

/// The minimum count of an hour that becomes a sample.
const MIN_COUNTED: u64 = 1000;

impl Sample {
    /// The hour.
    pub fn range(self) -> TimeRange {
        TimeRange { start: self.start, end: self.start + HOUR }
    }

    /// The last result at an age of [`AGES`].
    pub fn result(&self, age: &str) -> Option<Completeness> {
        self.results().find_map(|(at, result)| (at == age).then_some(result))
    }

    /// The last result at each age.
    fn results(&self) -> impl Iterator<Item = (&'static str, Completeness)> + use<> {
        AGES.into_iter().zip(self.results).filter_map(|((age, _), result)| Some((age, result?)))
    }

    /// The least age at which the service had all that it had at `age`, so that a recheck at that age would count it.
    pub fn complete_at(&self, age: &'static str) -> &'static str {
        let Some(of) = self.result(age) else { return age };
        let has_all = |at: Completeness| at.start == of.start && of.ratio >= at.ratio * MIN_RATIO;
        self.results().find(|(_, at)| has_all(*at)).map_or(age, |(least, _)| least)
    }
}

impl Ledger {
    /// The sample that begins with the recheck of `range`, if that was the last recheck of a whole hour with enough
    /// traffic. `before` is the ledger before it.
    pub fn sample_of(
        &self,
        before: &Self,
        range: TimeRange,
        recheck: Recheck,
        ages: &Ages,
    ) -> Option<Sample> {
        let is_last = !recheck.doubtful && !recheck.disputed && self.added_in_hour(range.start).is_none();
        let counted = before.added_in_hour(range.start).filter(|_| is_last)? + recheck.late;
        let counted = counted.checked_sub(recheck.overcounted).filter(|counted| *counted >= MIN_COUNTED)?;
        let asked = AGES.iter().filter(|(_, age)| ages.last() >= Some(*age)).count();
        let former = before.sample.as_deref().copied().unwrap_or_default();
        let is_idle = before.sample.is_none() || usize::from(former.asked) >= AGES.len();
        (is_idle && asked < AGES.len()).then_some(Sample {
            start: range.start,
            counted,
            asked: u8::try_from(asked).ok()?,
            results: former.results,
        })
    }

    /// The sample that is due for a request; each age begins `phase` seconds later.
    pub fn sample_due(&self, phase: i64) -> Option<Sample> {
        let sample = *self.sample.as_deref()?;
        let (_, age) = AGES.get(usize::from(sample.asked))?;
        (sample.range().end + age + phase <= self.until).then_some(sample)
    }

    /// The ledger after a request for its sample, for which the service reports `known`. A lower count than the
    /// ledger's proves nothing, as the service has dropped data.
    #[must_use]
    pub fn after_sample(&self, known: Option<u64>) -> Self {
        let Some(mut sample) = self.sample.as_deref().copied() else { return self.clone() };
        let asked = usize::from(sample.asked);
        sample.asked = sample.asked.saturating_add(1);
        let ratio =
            known.filter(|known| *known >= sample.counted).map(|known| exact(sample.counted) / exact(known));
        let result = ratio.map(|ratio| Completeness { start: sample.start, ratio });
        if let Some(place) = sample.results.get_mut(asked).filter(|_| result.is_some()) {
            *place = result;
        }
        Self { sample: Some(Box::new(sample)), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use pds_interface::Tally;

    use super::*;
    use crate::recheck::Due;

    /// The sample of a ledger of one hour with 1,200 requests after a recheck at that age returned `known`.
    fn recheck(age: i64, known: u64) -> Option<Sample> {
        recheck_of(Ledger::open(0), age, known)
    }

    fn recheck_of(ledger: Ledger, age: i64, known: u64) -> Option<Sample> {
        let tally = |total| Tally { total: Some(total), ..Tally::default() };
        let hour = TimeRange { start: 0, end: HOUR };
        let ages = Ages::new([age]);
        let mut ledger = ledger.add(hour, &tally(1200), false, 0).unwrap();
        ledger.until = HOUR + age;
        let due = Due { ages: &ages, phase: 0, oldest: None };
        let mut sample = None;
        for _ in 0..2 {
            let (next, recheck) = ledger.recheck(hour, &tally(known), false, due).unwrap()?;
            sample = next.sample_of(&ledger, hour, recheck, &ages);
            ledger = next;
        }
        sample
    }

    #[test]
    fn an_hour_becomes_a_sample_with_its_last_recheck() {
        let sample = |counted, asked| Some(Sample { start: 0, counted, asked, results: [None; 3] });
        assert_eq!(recheck(HOUR, 1250), sample(1250, 0));
        assert_eq!(recheck(12 * HOUR, 1250), sample(1250, 1));
        assert_eq!(recheck(100 * HOUR, 1250), None, "no age is greater");
        assert_eq!(recheck(HOUR, 10), None, "disputed");
    }

    #[test]
    fn a_sample_is_due_at_each_greater_age_once_and_the_next_one_keeps_its_results() {
        let sample = Sample { start: 0, counted: 1900, ..Sample::default() };
        let mut ledger = Ledger { sample: Some(Box::new(sample)), ..Ledger::default() };
        let mut due = Vec::new();
        for hour in 0..200 {
            ledger.until = hour * HOUR;
            if ledger.sample_due(60).is_some() {
                // A lower count proves nothing.
                ledger = ledger.after_sample(Some([1899, 2000, 2001][due.len()]));
                due.push(hour);
            }
        }
        assert_eq!(due, [5, 26, 74]);
        let done = *ledger.sample.clone().unwrap();
        let results: Vec<_> = done.results().map(|(age, of)| (age, of.start, of.ratio)).collect();
        assert_eq!(results, [("24h", 0, 0.95), ("3d", 0, 1900.0 / 2001.0)]);
        assert_eq!(["24h", "3d"].map(|age| done.complete_at(age)), ["24h"; 2], "nothing more came later");

        let next = recheck_of(Ledger { until: 0, ..ledger }, HOUR, 1250).unwrap();
        assert_eq!(next, Sample { counted: 1250, asked: 0, ..done });
    }
}
