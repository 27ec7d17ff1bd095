//! Samples: after its last recheck, an hour is requested again at greater ages, to determine how much of it arrived too
//! late to be counted.

use pds_interface::TimeRange;

use super::ledger::{Ledger, exact};
use super::recheck::{Ages, Recheck};
use super::stretch::{HOUR, Sample};

/// The ages at which samples are requested, as the label `age` and in seconds.
pub const AGES: [(&str, i64); 3] = [("3h", 3 * HOUR), ("24h", 24 * HOUR), ("3d", 72 * HOUR)];

/// The least that an hour has counted to be a sample.
const MIN_COUNTED: u64 = 1000;

impl Sample {
    /// The hour.
    pub fn range(self) -> TimeRange {
        TimeRange { start: self.start, end: self.start + HOUR }
    }

    /// The part of the hour that was counted, if there are `known` in all. `None` if there are fewer than were counted:
    /// the service has forgotten some.
    pub fn completeness(self, known: u64) -> Option<f64> {
        (known >= self.counted).then(|| exact(self.counted) / exact(known))
    }
}

impl Ledger {
    /// The sample that the recheck of `range` makes of `before`, if it was the last one of a whole hour with enough traffic.
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
        (asked < AGES.len()).then_some(Sample {
            start: range.start,
            counted,
            asked: u8::try_from(asked).ok()?,
        })
    }

    /// The sample that is due to be requested, and its age; each age counts from `phase` seconds later.
    pub fn sample_due(&self, phase: i64) -> Option<(Sample, &'static str)> {
        let sample = *self.sample.as_deref()?;
        let (label, age) = AGES.get(usize::from(sample.asked))?;
        (sample.range().end + age + phase <= self.until).then_some((sample, label))
    }

    /// The ledger after its sample was requested, whether the service answered or not.
    #[must_use]
    pub fn after_sample(&self) -> Self {
        let asked = self.sample.iter().map(|sample| Sample { asked: sample.asked + 1, ..**sample });
        let sample = asked.filter(|sample| usize::from(sample.asked) < AGES.len()).map(Box::new).next();
        Self { sample, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use pds_interface::Tally;

    use super::*;
    use crate::recheck::Due;

    /// A ledger of one hour of 1,200 and what its recheck at that age makes of `known`.
    fn recheck(age: i64, known: u64) -> Option<Sample> {
        let tally = |total| Tally { total: Some(total), ..Tally::default() };
        let hour = TimeRange { start: 0, end: HOUR };
        let ages = Ages::new([age]);
        let mut ledger = Ledger::open(0).add(hour, &tally(1200), false, 0).unwrap();
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
        let sample = |counted, asked| Some(Sample { start: 0, counted, asked });
        assert_eq!(recheck(HOUR, 1250), sample(1250, 0));
        assert_eq!(recheck(12 * HOUR, 1250), sample(1250, 1));
        assert_eq!(recheck(100 * HOUR, 1250), None, "no age is greater");
        assert_eq!(recheck(HOUR, 10), None, "disputed");
    }

    #[test]
    fn a_sample_is_due_at_each_greater_age_once() {
        let sample = Sample { start: 0, counted: 1900, asked: 0 };
        let mut ledger = Ledger { sample: Some(Box::new(sample)), ..Ledger::default() };
        let mut due = Vec::new();
        for hour in 0..200 {
            ledger.until = hour * HOUR;
            if let Some((_, age)) = ledger.sample_due(60) {
                due.push((hour, age));
                ledger = ledger.after_sample();
            }
        }
        assert_eq!(due, [(5, "3h"), (26, "24h"), (74, "3d")]);
        assert_eq!(ledger.sample, None);
        assert_eq!((sample.completeness(2000), sample.completeness(1899)), (Some(0.95), None));
    }
}
