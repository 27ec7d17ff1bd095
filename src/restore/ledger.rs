//! The series of one scraped target about one counter, as a ledger, if they belong together.

use crate::accounting::{Ledger, MAX_THRESHOLDS};

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
    /// A value that an exporter never writes.
    #[error("its {what} is {value}, which is not a whole number")]
    NotWhole {
        /// Which value.
        what: &'static str,
        /// The value.
        value: f64,
    },
    /// The cursor lies ahead of both clocks.
    #[error(
        "it was counted until {until}, which is in the future: it is {now} by the clock of the service (Unix seconds)"
    )]
    Future {
        /// The cursor.
        until: i64,
        /// The time.
        now: i64,
    },
    /// A threshold is not a number.
    #[error("a bucket has the threshold {0:?}, which is not a number of seconds")]
    Threshold(String),
    /// More buckets than a ledger holds.
    #[error("it has {0} buckets, more than an exporter writes")]
    TooManyBuckets(usize),
    /// There are buckets or a total, but no `+Inf` bucket.
    #[error("its +Inf bucket is missing")]
    NoInfinite,
    /// The buckets and the total are not of one page.
    #[error("its +Inf bucket holds {infinite} and its total is {total}: they are not of one scrape")]
    OtherTotal {
        /// The `+Inf` bucket.
        infinite: u64,
        /// The total.
        total: u64,
    },
    /// A bucket holds less than one with a lower threshold.
    #[error("its bucket {threshold} holds {count}, less than the one below it")]
    NotCumulative {
        /// The threshold.
        threshold: f64,
        /// The count of the bucket.
        count: u64,
    },
}

impl InvalidLedger {
    /// Whether an earlier scrape may hold what is missing: counters that are behind leave the page before their cursor
    /// does.
    pub(super) fn is_incomplete(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Apart)
    }
}

/// The ledger of the target that counted furthest, and the labels of that target.
pub(super) type Chosen = (Ledger, String);

/// The outcome of choosing among the targets that know one ledger.
#[derive(Debug)]
pub(super) enum Choice {
    /// This ledger.
    Taken(Box<Chosen>),
    /// The counters of the furthest one had left the page within this window. A wider one may have them.
    Incomplete,
    /// None of them is usable: why the furthest is not, and its labels.
    Refused(InvalidLedger, String),
    /// No target knows it.
    Nothing,
}

/// Chooses among `targets` at `now` by the service's clock: the furthest cursor first, and the next one if its series
/// do not belong together. `distributed` says whether there are buckets. `last` says that no wider window follows;
/// then a target that lacks something is skipped.
pub(super) fn choose(targets: &Targets, distributed: bool, now: i64, last: bool) -> Choice {
    let mut known: Vec<(&String, &ScrapedCounter)> = targets.iter().collect();
    // Of targets with the same cursor (two jobs that scrape one exporter), the one with the higher total.
    let rank =
        |scraped: &ScrapedCounter| (scraped.until.unwrap_or(f64::MIN), scraped.total.unwrap_or(f64::MIN));
    known.sort_by(|(_, one), (_, other)| {
        let ((until, total), (other_until, other_total)) = (rank(one), rank(other));
        other_until.total_cmp(&until).then(other_total.total_cmp(&total))
    });
    let mut refused = None;
    for (target, scraped) in known {
        match ledger(scraped, distributed, now) {
            Ok(ledger) => return Choice::Taken(Box::new((ledger, target.clone()))),
            Err(missing) if missing.is_incomplete() && !last => return Choice::Incomplete,
            // No counter was ever scraped, only series that belong to one, so nothing can go back.
            Err(_) if scraped.total.is_none() && !scraped.apart => {}
            Err(why) => drop(refused.get_or_insert((why, target.clone()))),
        }
    }
    refused.map_or(Choice::Nothing, |(why, target)| Choice::Refused(why, target))
}

/// The ledger behind the page of a target. Fractions of buckets, hours still to be counted again and pending late data
/// are not on a page.
fn ledger(scraped: &ScrapedCounter, distributed: bool, now: i64) -> Result<Ledger, InvalidLedger> {
    if scraped.apart {
        return Err(InvalidLedger::Apart);
    }
    let until = scraped.until.ok_or(InvalidLedger::Missing("cursor"))?;
    let total = whole("total", scraped.total.ok_or(InvalidLedger::Missing("total"))?)?;
    let until = seconds("cursor", until)?;
    if until > now {
        return Err(InvalidLedger::Future { until, now });
    }
    let optional = |what, value: Option<f64>| value.map_or(Ok(0), |value| whole(what, value));
    let mut ledger = Ledger::open(until);
    ledger.total = total;
    ledger.unaccounted = optional("unaccounted time", scraped.unaccounted)?;
    ledger.late = optional("late data", scraped.late)?;
    ledger.overcounted = optional("overcounted data", scraped.overcounted)?;
    ledger.rechecked_until = scraped
        .rechecked_until
        .map_or(Ok(0), |value| seconds("end of the last hour counted again", value))?;
    if distributed { Ok(ledger.with_buckets(&buckets(scraped, total)?)) } else { Ok(ledger) }
}

/// The buckets below `+Inf`, by rising threshold.
fn buckets(scraped: &ScrapedCounter, total: u64) -> Result<Vec<(f64, u64)>, InvalidLedger> {
    let mut buckets = Vec::with_capacity(scraped.buckets.len());
    for (le, count) in &scraped.buckets {
        let threshold = le.parse::<f64>().ok().filter(|threshold| *threshold > 0.0);
        let threshold = threshold.ok_or_else(|| InvalidLedger::Threshold(le.chars().take(20).collect()))?;
        buckets.push((threshold, whole("bucket", *count)?));
    }
    buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    // The same threshold in two notations, of two versions of Prometheus: the later one has the higher count.
    buckets.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.max(next.1);
        }
        same
    });
    let infinite = buckets.pop_if(|(threshold, _)| threshold.is_infinite());
    let (_, infinite) = infinite.ok_or(InvalidLedger::NoInfinite)?;
    if infinite != total {
        return Err(InvalidLedger::OtherTotal { infinite, total });
    }
    if buckets.len() > MAX_THRESHOLDS {
        return Err(InvalidLedger::TooManyBuckets(buckets.len()));
    }
    let mut below = 0;
    for (threshold, count) in &buckets {
        if *count < below || *count > total {
            return Err(InvalidLedger::NotCumulative { threshold: *threshold, count: *count });
        }
        below = *count;
    }
    Ok(buckets)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be whole and in range"
)]
fn whole(what: &'static str, value: f64) -> Result<u64, InvalidLedger> {
    let fits = value.fract() == 0.0 && (0.0..=MAX_EXACT).contains(&value);
    if fits { Ok(value as u64) } else { Err(InvalidLedger::NotWhole { what, value }) }
}

fn seconds(what: &'static str, value: f64) -> Result<i64, InvalidLedger> {
    Ok(i64::try_from(whole(what, value)?).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_772_366_400;

    fn scraped() -> ScrapedCounter {
        ScrapedCounter {
            until: Some(NOW as f64 - 60.0),
            total: Some(9.0),
            unaccounted: Some(120.0),
            late: Some(2.0),
            overcounted: Some(1.0),
            rechecked_until: Some(NOW as f64 - 3600.0),
            apart: false,
            buckets: [("+Inf", 9.0), ("1", 7.0), ("0.25", 4.0), ("1.0", 8.0)]
                .map(|(le, count)| (le.to_owned(), count))
                .to_vec(),
        }
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
        assert_eq!((ledger.late, ledger.overcounted, ledger.rechecked_until), (2, 1, NOW - 3600));
        assert_eq!(ledger.buckets().collect::<Vec<_>>(), [(0.25, 4), (1.0, 8)]);
        assert!(!ledger.set_aside);
    }

    #[test]
    fn a_page_of_an_older_version_lacks_what_came_later() {
        let older = ScrapedCounter {
            unaccounted: None,
            late: None,
            overcounted: None,
            rechecked_until: None,
            ..scraped()
        };
        let ledger = ledger(&older, true, NOW).unwrap();
        assert_eq!((ledger.late, ledger.overcounted, ledger.rechecked_until), (0, 0, 0));
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        assert_eq!(refused(|scraped| scraped.total = None), "its total is missing");
        assert_eq!(refused(|scraped| scraped.until = None), "its cursor is missing");
        assert_eq!(
            refused(|scraped| scraped.total = Some(8.5)),
            "its total is 8.5, which is not a whole number"
        );
        assert_eq!(
            refused(|scraped| scraped.late = Some(-1.0)),
            "its late data is -1, which is not a whole number"
        );
        assert_eq!(
            refused(|scraped| scraped.total = Some(f64::NAN)),
            "its total is NaN, which is not a whole number"
        );
        assert!(refused(|scraped| scraped.until = Some(NOW as f64 + 1.0)).contains("which is in the future"));
        assert!(refused(|scraped| scraped.total = Some(10.0)).contains("they are not of one scrape"));
        assert_eq!(refused(|scraped| drop(scraped.buckets.remove(0))), "its +Inf bucket is missing");
        let bucket = |le: &str, count| (le.to_owned(), count);
        assert!(
            refused(|scraped| scraped.buckets.push(bucket("0.5", 3.0))).contains("less than the one below")
        );
        assert!(refused(|scraped| scraped.buckets.push(bucket("2.5", 10.0))).contains("bucket 2.5 holds 10"));
        assert!(refused(|scraped| scraped.buckets.push(bucket("fast", 3.0))).contains("\"fast\""));
        assert!(refused(|scraped| scraped.buckets.push(bucket("NaN", 3.0))).contains("\"NaN\""));
        let many = |scraped: &mut ScrapedCounter| {
            scraped.buckets.extend((0..=MAX_THRESHOLDS).map(|n| bucket(&format!("{}", 10 + n), 9.0)));
        };
        assert!(refused(many).contains("more than an exporter writes"));
    }

    #[test]
    fn the_furthest_valid_ledger_is_chosen() {
        let at = |until: f64, total: f64| ScrapedCounter {
            until: Some(until),
            total: Some(total),
            ..ScrapedCounter::default()
        };
        let targets = |scraped: &[ScrapedCounter]| -> Targets {
            scraped.iter().enumerate().map(|(index, scraped)| (index.to_string(), scraped.clone())).collect()
        };
        let chosen = |scraped: &[ScrapedCounter], last| match choose(&targets(scraped), false, NOW, last) {
            Choice::Taken(taken) => taken.1,
            Choice::Incomplete => "incomplete".to_owned(),
            Choice::Refused(why, _) => why.to_string(),
            Choice::Nothing => "nothing".to_owned(),
        };
        assert_eq!(chosen(&[at(60.0, 5.0), at(120.0, 6.0), at(60.0, 9.0)], false), "1");
        assert_eq!(chosen(&[at(60.0, 5.0), at(60.0, 6.0)], false), "1", "equally far: more");
        assert_eq!(chosen(&[at(60.0, 5.0), at(120.0, 6.5)], false), "0");
        assert_eq!(chosen(&[at(120.0, 6.5)], false), "its total is 6.5, which is not a whole number");
        let hidden = ScrapedCounter { total: None, ..at(180.0, 0.0) };
        assert_eq!(chosen(&[at(60.0, 5.0), hidden.clone()], false), "incomplete");
        assert_eq!(chosen(&[at(60.0, 5.0), hidden.clone()], true), "0");
        assert_eq!(chosen(std::slice::from_ref(&hidden), true), "nothing", "no counter was ever seen");
        let apart = ScrapedCounter { apart: true, ..hidden };
        assert_eq!(chosen(std::slice::from_ref(&apart), false), "incomplete");
        assert_eq!(chosen(&[apart], true), "its cursor and its total were never scraped together");
        assert_eq!(chosen(&[], true), "nothing");
    }
}
