//! The series of one scraped target about one counter, as a ledger, if they belong together.

use std::time::Duration;

use jiff::Timestamp;

use crate::counters::Number;
use crate::{Ledger, MAX_THRESHOLDS};

use super::series::{ScrapedCounter, Targets};

/// Whole numbers up to here are exact as `f64`.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Why the series of a target do not make a ledger.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InvalidLedger {
    /// The cursor or the total is missing.
    #[error("its {0} is missing")]
    Missing(&'static str),
    /// The cursor and the total are not of one page.
    #[error("its cursor and its total were never scraped together")]
    Apart,
    /// None of its pages is there as a whole.
    #[error("its last scrape is there in part only")]
    Partial,
    /// A value that an exporter never writes.
    #[error("its {0} is {1}, which is not a whole number")]
    NotWhole(&'static str, f64),
    /// The cursor lies ahead of both clocks; the second is the time.
    #[error(
        "it was counted until {0}, which is in the future: it is {1} by the clock of the service (Unix seconds)"
    )]
    Future(i64, i64),
    /// A threshold is not a number.
    #[error("a bucket has the threshold {0:?}, which is not a number of seconds")]
    Threshold(String),
    /// More buckets than a ledger holds.
    #[error("it has {0} buckets, more than an exporter writes")]
    TooManyBuckets(usize),
    /// There are buckets or a total, but no `+Inf` bucket.
    #[error("its +Inf bucket is missing")]
    NoInfinite,
    /// The `+Inf` bucket and the total are not of one page.
    #[error("its +Inf bucket holds {0} and its total is {1}: they are not of one scrape")]
    OtherTotal(u64, u64),
    /// Another target counts the same app from another beginning.
    #[error(
        "{other} counts the same app, and the two do not go together ({total} until {until}, and {other_total} until \
         {other_until}): set state.prometheus_selector so that it names the one to go on from"
    )]
    OtherCount {
        /// The labels of the other target.
        other: String,
        /// The cursor of this one.
        until: i64,
        /// The total of this one.
        total: u64,
        /// The cursor of the other one.
        other_until: i64,
        /// The total of the other one.
        other_total: u64,
    },
    /// A bucket, here its threshold and count, holds less than one with a lower threshold.
    #[error("its bucket {0} holds {1}, less than the one below it")]
    NotCumulative(f64, u64),
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

/// Chooses among `targets` at `now` by the service's clock: the furthest cursor first, and the next one if its series
/// do not belong together. `distributed` says whether there are buckets. The answer is [`Answer::Nothing`], too, if the
/// counters of the furthest one had left the page within this window and a wider one may have them.
pub(super) fn choose(targets: &Targets, distributed: bool, now: i64, window: Window) -> Answer {
    let mut known: Vec<(&String, &ScrapedCounter)> = targets.iter().collect();
    // Of targets with the same cursor (two jobs that scrape one exporter), the one with the higher total.
    let rank = |scraped: &ScrapedCounter| {
        [Number::Until, Number::Total].map(|n| scraped.number(n).unwrap_or(f64::MIN))
    };
    known.sort_by(|(_, one), (_, other)| {
        let ([until, total], [other_until, other_total]) = (rank(one), rank(other));
        other_until.total_cmp(&until).then(other_total.total_cmp(&total))
    });
    let (mut refused, mut taken): (Option<Answer>, Option<(Ledger, String)>) = (None, None);
    for (target, scraped) in known {
        let target = target.clone();
        match (ledger(scraped, distributed, now), &taken) {
            (Err(why @ InvalidLedger::Partial), None) if window.recent => {
                return Answer::Refused { why, target };
            }
            (Ok(ledger), None) => taken = Some((ledger, target)),
            (Ok(earlier), Some((later, of))) if is_another_count(later, &earlier) => {
                let (until, total) = (later.until, later.total);
                let (other, other_until, other_total) = (target, earlier.until, earlier.total);
                let why = InvalidLedger::OtherCount { other, until, total, other_until, other_total };
                return Answer::Refused { why, target: of.clone() };
            }
            (_, Some(_)) => {}
            // An earlier scrape may hold what is missing: counters that are behind leave the page before their cursor.
            (Err(InvalidLedger::Missing(_) | InvalidLedger::Apart), None) if !window.last => {
                return Answer::Nothing;
            }
            // No counter was ever scraped, only series that belong to one, so nothing can go back.
            (Err(_), None)
                if scraped.number(Number::Total).is_none() && !scraped.apart && !scraped.partial => {}
            (Err(why), None) => drop(refused.get_or_insert(Answer::Refused { why, target })),
        }
    }
    match taken {
        Some((ledger, target)) => Answer::Ledger { ledger, target },
        None => refused.unwrap_or(Answer::Nothing),
    }
}

/// Whether two pages, the first of a later cursor, are not of one count: it holds less, or they began at different times.
/// A process that goes on from another's page keeps the beginning, and version 0.2 shows none.
fn is_another_count(later: &Ledger, earlier: &Ledger) -> bool {
    let began = |ledger: &Ledger| {
        let since = ledger.accounted.saturating_add(ledger.unaccounted);
        (ledger.accounted > 0).then(|| ledger.until.saturating_sub_unsigned(since))
    };
    let both = began(later).zip(began(earlier));
    later.total < earlier.total || both.is_some_and(|(one, other)| one != other)
}

/// The ledger behind the page of a target. Fractions of buckets are not on a page, nor is the distribution of late data:
/// its hour is counted again.
fn ledger(scraped: &ScrapedCounter, distributed: bool, now: i64) -> Result<Ledger, InvalidLedger> {
    if scraped.apart {
        return Err(InvalidLedger::Apart);
    }
    if scraped.partial {
        return Err(InvalidLedger::Partial);
    }
    let mut ledger = Ledger::default();
    for &number in Number::ALL {
        let value = match (number, scraped.number(number)) {
            (Number::Until | Number::Total, None) => return Err(InvalidLedger::Missing(number.as_str())),
            (_, value) => whole_number(number.as_str(), value.unwrap_or_default())?,
        };
        number.put(&mut ledger, value);
    }
    if ledger.until > now {
        return Err(InvalidLedger::Future(ledger.until, now));
    }
    let buckets = if distributed { buckets(scraped, ledger.total)? } else { Vec::new() };
    let hour = |(ago, added): &(String, f64)| {
        let added = whole_number("hour", *added).ok().filter(|added| *added <= ledger.total)?;
        Some((ago.parse().ok()?, added))
    };
    let hours: Vec<(u32, u64)> = scraped.hours.iter().filter_map(hour).collect();
    Ok(ledger.with_rounded_buckets(&buckets).with_open_hours(hours))
}

/// The buckets below `+Inf`, by rising threshold.
fn buckets(scraped: &ScrapedCounter, total: u64) -> Result<Vec<(f64, u64)>, InvalidLedger> {
    let mut buckets = Vec::with_capacity(scraped.buckets.len());
    for (le, count) in &scraped.buckets {
        let threshold = le.parse::<f64>().ok().filter(|threshold| *threshold > 0.0);
        let threshold = threshold.ok_or_else(|| InvalidLedger::Threshold(le.chars().take(20).collect()))?;
        buckets.push((threshold, whole_number("bucket", *count)?));
    }
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    // The same threshold in two notations, of two versions of Prometheus: the later one has the higher count.
    buckets.dedup_by_key(|(threshold, _)| *threshold);
    let infinite = buckets.pop_if(|(threshold, _)| threshold.is_infinite());
    let (_, infinite) = infinite.ok_or(InvalidLedger::NoInfinite)?;
    if infinite != total {
        return Err(InvalidLedger::OtherTotal(infinite, total));
    }
    if buckets.len() > MAX_THRESHOLDS {
        return Err(InvalidLedger::TooManyBuckets(buckets.len()));
    }
    let mut below = 0;
    for (threshold, count) in &buckets {
        if *count < below || *count > total {
            return Err(InvalidLedger::NotCumulative(*threshold, *count));
        }
        below = *count;
    }
    Ok(buckets)
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
fn whole_number(what: &'static str, value: f64) -> Result<u64, InvalidLedger> {
    let fits = value.fract() == 0.0 && (0.0..=MAX_EXACT).contains(&value);
    if fits { Ok(value as u64) } else { Err(InvalidLedger::NotWhole(what, value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_772_366_400;

    fn window(recent: bool, last: bool) -> Window {
        let (at, width) = (Timestamp::UNIX_EPOCH, Duration::ZERO);
        Window { at, width, recent, last }
    }

    fn of(numbers: &[(Number, f64)]) -> ScrapedCounter {
        ScrapedCounter { numbers: numbers.iter().copied().collect(), ..ScrapedCounter::default() }
    }

    fn scraped() -> ScrapedCounter {
        let mut scraped = of(&[
            (Number::Until, NOW as f64 - 60.0),
            (Number::Total, 9.0),
            (Number::Accounted, 600.0),
            (Number::Unaccounted, 120.0),
            (Number::Late, 2.0),
            (Number::Overcounted, 1.0),
            (Number::RecheckedUntil, NOW as f64 - 3600.0),
        ]);
        scraped.buckets = [("+Inf", 9.0), ("1", 7.0), ("0.25", 4.0), ("1.0", 8.0)]
            .map(|(le, count)| (le.to_owned(), count))
            .to_vec();
        scraped.hours =
            [("0", 3.0), ("2", 6.0), ("3", 10.0), ("x", 1.0)].map(|(ago, n)| (ago.to_owned(), n)).to_vec();
        scraped
    }

    fn refused(change: impl FnOnce(&mut ScrapedCounter)) -> String {
        let mut scraped = scraped();
        change(&mut scraped);
        ledger(&scraped, true, NOW).unwrap_err().to_string()
    }

    #[test]
    fn a_page_holds_a_ledger() {
        let ledger = ledger(&scraped(), true, NOW).unwrap();
        assert_eq!((ledger.until, ledger.total, ledger.unaccounted), (NOW - 60, 9, 120));
        assert_eq!(ledger.accounted, 600);
        assert_eq!((ledger.late, ledger.overcounted, ledger.rechecked_until), (2, 1, NOW - 3600));
        assert_eq!(ledger.buckets().collect::<Vec<_>>(), [(0.25, 4), (1.0, 8)]);
        assert_eq!(ledger.open_hours().collect::<Vec<_>>(), [(2, 6), (0, 3)]);
        assert!(!ledger.set_aside);
    }

    #[test]
    fn a_page_with_all_that_a_ledger_can_have_is_one() {
        let mut full = scraped();
        full.numbers.insert(Number::Until, NOW as f64);
        full.buckets = (1..=MAX_THRESHOLDS).map(|threshold| (threshold.to_string(), 9.0)).collect();
        full.buckets.push(("+Inf".to_owned(), 9.0));
        let ledger = ledger(&full, true, NOW).unwrap();
        assert_eq!((ledger.until, ledger.buckets().len()), (NOW, MAX_THRESHOLDS));
    }

    #[test]
    fn a_page_of_an_older_version_lacks_what_came_later() {
        let mut older = scraped();
        older.numbers.retain(|number, _| [Number::Until, Number::Total].contains(number));
        let ledger = ledger(&older, true, NOW).unwrap();
        assert_eq!((ledger.late, ledger.overcounted, ledger.rechecked_until, ledger.accounted), (0, 0, 0, 0));
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let lacking = |number| refused(|scraped| scraped.numbers.retain(|of, _| *of != number));
        assert_eq!(lacking(Number::Total), "its total is missing");
        assert_eq!(lacking(Number::Until), "its cursor is missing");
        let with = |number, value| refused(|scraped| scraped.numbers.extend([(number, value)]));
        assert_eq!(with(Number::Total, 8.5), "its total is 8.5, which is not a whole number");
        assert_eq!(with(Number::Late, -1.0), "its late data is -1, which is not a whole number");
        assert_eq!(with(Number::Total, f64::NAN), "its total is NaN, which is not a whole number");
        assert!(with(Number::Until, NOW as f64 + 1.0).contains("which is in the future"));
        assert!(with(Number::Total, 10.0).contains("they are not of one scrape"));
        assert_eq!(refused(|scraped| drop(scraped.buckets.remove(0))), "its +Inf bucket is missing");
        let bucket = |le: &str, count| (le.to_owned(), count);
        assert!(
            refused(|scraped| scraped.buckets.push(bucket("0.5", 3.0))).contains("less than the one below")
        );
        assert!(refused(|scraped| scraped.buckets.push(bucket("2.5", 10.0))).contains("bucket 2.5 holds 10"));
        assert!(refused(|scraped| scraped.buckets.push(bucket("fast", 3.0))).contains("\"fast\""));
        assert!(refused(|scraped| scraped.buckets.push(bucket("NaN", 3.0))).contains("\"NaN\""));
        assert!(refused(|scraped| scraped.buckets.push(bucket("0", 3.0))).contains("\"0\""));
        let many = |scraped: &mut ScrapedCounter| {
            scraped.buckets.extend((0..=MAX_THRESHOLDS).map(|n| bucket(&format!("{}", 10 + n), 9.0)));
        };
        assert!(refused(many).contains("more than an exporter writes"));
    }

    #[test]
    fn two_counts_of_one_app_are_refused_and_both_are_named() {
        let at = |until: f64, total: f64, accounted: f64| {
            of(&[(Number::Until, until), (Number::Total, total), (Number::Accounted, accounted)])
        };
        let chosen = |one: ScrapedCounter, other: ScrapedCounter| {
            let targets = [("{job=\"a\"}".to_owned(), one), ("{job=\"b\"}".to_owned(), other)].into();
            match choose(&targets, false, NOW, window(false, true)) {
                Answer::Ledger { target, .. } => target,
                Answer::Refused { why, target } => format!("{target}: {why}"),
                Answer::Nothing => "nothing".to_owned(),
            }
        };
        // The one went on from the other's page.
        assert_eq!(chosen(at(6000.0, 50.0, 3000.0), at(6600.0, 50.0, 3600.0)), "{job=\"b\"}");
        let less = chosen(at(6000.0, 50.0, 3000.0), at(6600.0, 49.0, 3600.0));
        assert!(less.starts_with("{job=\"b\"}: {job=\"a\"} counts the same app"), "{less}");
        assert!(less.contains("state.prometheus_selector"), "{less}");
        let others = chosen(at(6000.0, 50.0, 3000.0), at(6600.0, 900.0, 60.0));
        assert!(others.contains("50 until 6000"), "{others}");
        // Version 0.2 does not say since when it counts.
        assert_eq!(chosen(at(6000.0, 50.0, 0.0), at(6600.0, 900.0, 60.0)), "{job=\"b\"}");
    }

    #[test]
    fn the_furthest_valid_ledger_is_chosen() {
        let at = |until: f64, total: f64| of(&[(Number::Until, until), (Number::Total, total)]);
        let targets = |scraped: &[ScrapedCounter]| -> Targets {
            scraped.iter().enumerate().map(|(index, scraped)| (index.to_string(), scraped.clone())).collect()
        };
        let chosen = |scraped: &[ScrapedCounter], last| match choose(
            &targets(scraped),
            false,
            NOW,
            window(false, last),
        ) {
            Answer::Ledger { target, .. } => target,
            Answer::Refused { why, .. } => why.to_string(),
            Answer::Nothing => "nothing".to_owned(),
        };
        assert_eq!(chosen(&[at(60.0, 5.0), at(120.0, 9.0), at(60.0, 9.0)], false), "1");
        assert_eq!(chosen(&[at(60.0, 5.0), at(60.0, 6.0)], false), "1", "equally far: more");
        assert_eq!(chosen(&[at(60.0, 5.0), at(120.0, 6.5)], false), "0");
        assert_eq!(chosen(&[at(120.0, 6.5)], false), "its total is 6.5, which is not a whole number");
        let hidden = of(&[(Number::Until, 180.0)]);
        assert_eq!(chosen(&[at(60.0, 5.0), hidden.clone()], false), "nothing");
        assert_eq!(chosen(&[at(60.0, 5.0), hidden.clone()], true), "0");
        assert_eq!(chosen(std::slice::from_ref(&hidden), true), "nothing", "no counter was ever seen");
        let mut apart = hidden;
        apart.apart = true;
        assert_eq!(chosen(std::slice::from_ref(&apart), false), "nothing");
        assert_eq!(chosen(&[apart], true), "its cursor and its total were never scraped together");
        assert_eq!(chosen(&[], true), "nothing");
    }

    #[test]
    fn a_target_whose_last_scrape_is_there_in_part_is_waited_for_while_the_rest_may_arrive() {
        let page = |until, partial| {
            let mut scraped = of(&[(Number::Until, until), (Number::Total, 9.0)]);
            scraped.partial = partial;
            scraped
        };
        let chosen = |recent| {
            let targets = [("a".to_owned(), page(60.0, false)), ("b".to_owned(), page(120.0, true))].into();
            match choose(&targets, false, NOW, window(recent, true)) {
                Answer::Ledger { target, .. } => target,
                other => format!("{other:?}"),
            }
        };
        assert_eq!(chosen(true), "Refused { why: Partial, target: \"b\" }");
        assert_eq!(chosen(false), "a");
    }
}
