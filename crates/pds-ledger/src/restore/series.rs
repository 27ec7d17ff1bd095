//! Samples by the target they were scraped from.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::counters::{Number, ROWS, Row, Shows};
use crate::{Key, Owner};
use pds_interface::Resource;

use super::reply::{Labels, Sample};

/// The rows of families that a restore needs.
fn restored() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(|row| row.shows != Shows::Behind)
}

/// The names, as Prometheus stores them, of the metrics that hold a part of a ledger that is `wanted`.
pub(super) fn names(wanted: impl Fn(Shows) -> bool) -> impl Iterator<Item = String> {
    let wanted = restored().filter(move |row| wanted(row.shows));
    wanted.map(|row| [row.family.name, row.family.sample_suffix()].concat())
}

/// The values of one scraped target about one counter, unchecked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ScrapedCounter {
    pub numbers: BTreeMap<Number, f64>,
    /// Whether there are cursors and totals, but none of the same scrape.
    pub apart: bool,
    /// Whether there are scrapes with both, and each of them lacks something that its page had.
    pub partial: bool,
    /// Those of the last page, or the last of each.
    pub buckets: Buckets,
    /// Hours before that of the cursor, as written, and what the total holds of each.
    pub hours: Vec<(String, f64)>,
}

impl ScrapedCounter {
    /// The value of `number`.
    pub(super) fn number(&self, number: Number) -> Option<f64> {
        self.numbers.get(&number).copied()
    }
}

/// All samples of one series.
#[derive(Debug)]
struct Moments {
    shows: Shows,
    label: Option<String>,
    samples: Vec<(f64, f64)>,
}

impl Moments {
    fn at(&self, time: f64) -> Option<f64> {
        self.samples.iter().rev().find(|(at, _)| *at == time).map(|(_, value)| *value)
    }

    /// The threshold of a bucket. Versions of Prometheus write it differently.
    fn threshold(&self) -> Option<f64> {
        let threshold: f64 = self.label.as_deref().filter(|_| self.shows == Shows::Buckets)?.parse().ok()?;
        (!threshold.is_nan()).then_some(threshold)
    }
}

/// When the count on the page of `time` began, which all its pages have in common.
fn began(series: &[Moments], time: f64) -> Option<f64> {
    let at = |number| series.iter().find(|of| of.shows == Shows::Number(number))?.at(time);
    Some(at(Number::Until)? - at(Number::Accounted)? - at(Number::Unaccounted)?)
}

/// A series that stays once it was on a page, whatever the target: what a later page lacks of it is still to come, as
/// some engines make the series of a scrape visible one after the other.
#[derive(Debug, PartialEq)]
struct Lasting {
    shows: Shows,
    threshold: Option<f64>,
    /// The beginning of its count; `None` if it is on the pages of each.
    count: Option<f64>,
    /// The time of the first page with it.
    since: f64,
}

impl Lasting {
    /// Those of a counter, of which these are the series of each target.
    fn of<'a>(targets: impl Iterator<Item = &'a Vec<Moments>>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for series in targets {
            for of in series {
                let first = |least| of.samples.iter().find(|(_, value)| *value >= least).map(|(at, _)| *at);
                let (since, count) = match of.shows {
                    Shows::Number(Number::Accounted | Number::Unaccounted) => (first(0.0), None),
                    Shows::Buckets if of.threshold().is_some() => (first(0.0), None),
                    Shows::Number(Number::Late | Number::Overcounted) => {
                        let since = first(1.0);
                        (since, since.and_then(|since| began(series, since)))
                    }
                    _ => continue,
                };
                let Some(since) = since else { continue };
                let new = Self { shows: of.shows, threshold: of.threshold(), count, since };
                match all.iter_mut().find(|known| Self { since, ..**known } == new) {
                    Some(known) => known.since = known.since.min(since),
                    None => all.push(new),
                }
            }
        }
        all
    }

    /// Whether the page of `time`, of a count that began at `count`, has it if it has to.
    fn is_on(&self, series: &[Moments], time: f64, count: Option<f64>) -> bool {
        let mut same = series.iter().filter(|of| of.shows == self.shows && of.threshold() == self.threshold);
        self.since >= time
            || self.count.is_some_and(|of| count != Some(of))
            || same.any(|of| of.at(time).is_some())
    }
}

impl ScrapedCounter {
    /// The last whole page among the samples of a target: a cursor with an older total would lose the time in between.
    /// `buckets` are those to take instead of the page's.
    fn of(series: &[Moments], lasting: &[Lasting], buckets: Option<Buckets>) -> Self {
        let mut scraped = Self::default();
        let of = |shows: Shows| series.iter().filter(move |moments| moments.shows == shows);
        let infinite = || of(Shows::Buckets).filter(|of| of.threshold() == Some(f64::INFINITY));
        let totals = || of(Shows::Number(Number::Total)).chain(infinite());
        let cursors = of(Shows::Number(Number::Until)).next().map_or(&[][..], |cursors| &cursors.samples);
        let total_at = |time| totals().find_map(|total| total.at(time));
        // The last page first, each with the one before it.
        let of_both = || {
            let before = std::iter::once(None).chain(cursors.iter().map(Some));
            let times: Vec<_> = before.zip(cursors).collect();
            times.into_iter().rev().filter_map(|(before, (time, _))| Some((before, *time, total_at(*time)?)))
        };
        let whole = of_both().find(|(before, time, _)| {
            let count = began(series, *time);
            // It goes with the configuration: what the page before had.
            let was_there = |of: &Moments| before.is_some_and(|(before, _)| of.at(*before).is_some());
            of(Shows::Number(Number::RecheckedUntil)).all(|of| of.at(*time).is_some() || !was_there(of))
                && lasting.iter().all(|lasting| lasting.is_on(series, *time, count))
        });
        let Some((_, time, total)) = whole else {
            scraped.partial = of_both().next().is_some();
            scraped.apart = !scraped.partial && totals().any(|total| !total.samples.is_empty());
            // The furthest of all may be the one that is still arriving.
            scraped.numbers.extend(cursors.last().map(|(_, until)| (Number::Until, *until)));
            return scraped;
        };
        let value = |number: &Number| Some((*number, of(Shows::Number(*number)).next()?.at(time)?));
        scraped.numbers = Number::ALL.iter().filter_map(value).collect();
        scraped.numbers.insert(Number::Total, total);
        let labelled = |shows| of(shows).filter_map(|of| Some((of.label.clone()?, of.at(time)?))).collect();
        scraped.hours = labelled(Shows::OpenHours);
        scraped.buckets = buckets.unwrap_or_else(|| labelled(Shows::Buckets));
        scraped
    }
}

/// The values of each scraped target, by its labels.
pub(super) type Targets = BTreeMap<String, ScrapedCounter>;

/// Buckets of a target: threshold as written, and count.
type Buckets = Vec<(String, f64)>;

/// The series of all counters, by key and then by scraped target.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Of the query for the samples of a range: these are the targets.
    moments: HashMap<Key, BTreeMap<String, Vec<Moments>>>,
    /// Of the query for the last buckets.
    buckets: HashMap<Key, BTreeMap<String, Buckets>>,
}

impl Series {
    /// Adds a series of an answer. Values that are not numbers, and metrics that hold no ledger, are left out.
    pub(super) fn put(&mut self, mut sample: Sample) {
        let Some(SeriesId { key, shows, label, target }) = SeriesId::of(std::mem::take(&mut sample.labels))
        else {
            return;
        };
        if sample.is_range() {
            let moments = Moments { shows, label, samples: sample.values().collect() };
            self.moments.entry(key).or_default().entry(target).or_default().push(moments);
        } else if let Some(count) = sample.value()
            && shows == Shows::Buckets
        {
            let buckets = self.buckets.entry(key).or_default().entry(target).or_default();
            buckets.push((label.unwrap_or_default(), count));
        }
    }

    /// The last whole page of each target about one ledger; `aligned` says whether its buckets are the page's, or the last of
    /// each.
    pub(super) fn take(&mut self, key: &Key, aligned: bool) -> Targets {
        let series = self.moments.remove(key).unwrap_or_default();
        let mut buckets = self.buckets.remove(key).unwrap_or_default();
        let lasting = Lasting::of(series.values());
        let page = |(target, series): (&String, &Vec<Moments>)| {
            let buckets = (!aligned).then(|| buckets.remove(target).unwrap_or_default());
            (target.clone(), ScrapedCounter::of(series, &lasting, buckets))
        };
        series.iter().map(page).collect()
    }
}

/// The times of samples, by counter and whatever the target.
pub(super) type Times = HashMap<Key, Vec<f64>>;

/// Adds a series of an answer.
pub(super) fn put_times(times: &mut Times, mut sample: Sample) {
    let Some(id) = SeriesId::of(std::mem::take(&mut sample.labels)) else { return };
    times.entry(id.key).or_default().extend(sample.values().map(|(time, _)| time));
}

/// The ledger and part that a sample belongs to.
struct SeriesId {
    key: Key,
    shows: Shows,
    /// The threshold of a bucket, or which hour.
    label: Option<String>,
    target: String,
}

impl SeriesId {
    fn of(mut labels: Labels) -> Option<Self> {
        let name = labels.remove("__name__")?;
        let Row { of, shows, .. } = restored().find(|row| {
            name.strip_prefix(row.family.name).is_some_and(|suffix| suffix == row.family.sample_suffix())
        })?;
        let owner = take_owner(&mut labels)?;
        let resource = match of {
            None => take_resource(&mut labels)?,
            counted => Resource::all().find(|resource| resource.polled().counted == *counted)?,
        };
        let label = match shows {
            Shows::Buckets => labels.remove("le"),
            Shows::OpenHours => labels.remove("hours_ago"),
            _ => None,
        };
        Some(Self { key: Key { owner, resource }, shows: *shows, label, target: identity(&labels) })
    }
}

/// The app of a sample.
pub(super) fn take_owner(labels: &mut Labels) -> Option<Arc<Owner>> {
    Some(Owner::new(labels.remove("project")?.into(), labels.remove("app")?.into()))
}

/// The resource that a sample names.
pub(super) fn take_resource(labels: &mut Labels) -> Option<Resource> {
    Resource::find(&labels.remove("resource")?)
}

/// The scraped target: all labels that neither the exporter nor Prometheus itself sets (`__type__`, `__unit__`).
pub(super) fn identity(labels: &Labels) -> String {
    let mut text = String::from("{");
    for (name, value) in labels.iter().filter(|(name, _)| !name.starts_with("__")) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{name}={value:?}", if text.len() > 1 { "," } else { "" });
    }
    text + "}"
}

#[cfg(test)]
mod tests {
    use pds_interface::{Counted, response_time};

    use super::*;
    use crate::restore::reply;

    const UNTIL: Shows = Shows::Number(Number::Until);
    const TOTAL: Shows = Shows::Number(Number::Total);
    const ACCOUNTED: Shows = Shows::Number(Number::Accounted);
    const UNACCOUNTED: Shows = Shows::Number(Number::Unaccounted);
    const LATE: Shows = Shows::Number(Number::Late);
    const RECHECKED: Shows = Shows::Number(Number::RecheckedUntil);

    /// A series: what it shows, the threshold or hour if it has one, and its samples.
    type Shown<'a> = (Shows, &'a str, &'a [(f64, f64)]);

    fn key() -> Key {
        Key { owner: Owner::new("p".into(), "a".into()), resource: response_time::RESOURCE }
    }

    /// The series as one of `job`: all its samples, or the last.
    fn sample((shows, label, samples): Shown<'_>, job: &str, range: bool) -> Sample {
        let row = ROWS.iter().find(|row| row.shows == shows && row.of != Some(Counted::Runs)).unwrap();
        let name = [row.family.name, row.family.sample_suffix()].concat();
        let mut labels =
            format!(r#""__name__":"{name}","__type__":"x","project":"p","app":"a","job":"{job}""#);
        if row.of.is_none() {
            labels += r#","resource":"response_time""#;
        }
        labels += &match shows {
            Shows::Buckets => format!(r#","le":"{label}""#),
            Shows::OpenHours => format!(r#","hours_ago":"{label}""#),
            _ => String::new(),
        };
        let points: Vec<String> =
            samples.iter().map(|(time, value)| format!(r#"[{time},"{value}"]"#)).collect();
        let (kind, values) = match (range, points.last()) {
            (true, _) => ("matrix", format!(r#""values":[{}]"#, points.join(","))),
            (false, last) => ("vector", format!(r#""value":{}"#, last.unwrap())),
        };
        let result = format!(r#"[{{"metric":{{{labels}}},{values}}}]"#);
        let body = format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#);
        let mut read = None;
        reply::read(body.as_bytes(), &mut |sample| read = Some(sample)).unwrap();
        read.unwrap()
    }

    /// What is read of the first of two targets.
    fn aligned(one: &[Shown<'_>], other: &[Shown<'_>], buckets: bool) -> ScrapedCounter {
        let mut all = Series::default();
        for (job, series) in [("one", one), ("other", other)] {
            for shown in series {
                all.put(sample(*shown, job, false));
                all.put(sample(*shown, job, true));
            }
        }
        all.take(&key(), buckets).remove(r#"{job="one"}"#).unwrap()
    }

    fn labelled(of: &[(String, f64)]) -> Vec<(&str, f64)> {
        of.iter().map(|(label, value)| (&**label, *value)).collect()
    }

    #[test]
    fn the_last_page_with_a_cursor_and_a_total_is_read_as_a_whole() {
        let series: &[Shown<'_>] = &[
            (UNTIL, "", &[(60.0, 50.0), (120.0, 110.0), (180.0, 170.0)]),
            (TOTAL, "", &[(60.0, 5.0), (120.0, 9.0)]),
            (ACCOUNTED, "", &[(60.0, 30.0), (120.0, 90.0), (180.0, 150.0)]),
            (Shows::Buckets, "0.5", &[(60.0, 2.0), (120.0, 4.0), (180.0, 6.0)]),
            (Shows::Buckets, "+Inf", &[(60.0, 5.0), (120.0, 9.0)]),
            (Shows::OpenHours, "0", &[(60.0, 5.0)]),
            (Shows::OpenHours, "1", &[(120.0, 7.0)]),
        ];
        let page = aligned(series, &[], true);
        let numbers = [Number::Until, Number::Total, Number::Accounted, Number::Late];
        assert_eq!(numbers.map(|of| page.number(of)), [Some(110.0), Some(9.0), Some(90.0), None]);
        assert_eq!(labelled(&page.buckets), [("0.5", 4.0), ("+Inf", 9.0)]);
        assert_eq!(labelled(&page.hours), [("1", 7.0)]);
        assert!(!page.apart && !page.partial);
        let page = aligned(series, &[], false);
        assert_eq!(labelled(&page.buckets), [("0.5", 6.0), ("+Inf", 9.0)], "the last of each");
    }

    #[test]
    fn the_infinite_bucket_stands_in_for_a_total_that_is_missing() {
        let page =
            aligned(&[(UNTIL, "", &[(60.0, 50.0)]), (Shows::Buckets, "+Inf", &[(60.0, 5.0)])], &[], true);
        assert_eq!(page.number(Number::Total), Some(5.0));
    }

    #[test]
    fn a_cursor_and_a_total_of_different_scrapes_are_apart() {
        let read = |series: &[Shown<'_>]| {
            let page = aligned(series, &[], true);
            (page.apart, page.partial, page.number(Number::Total))
        };
        assert_eq!(read(&[(UNTIL, "", &[(60.0, 50.0)]), (TOTAL, "", &[(90.0, 5.0)])]), (true, false, None));
        assert_eq!(read(&[(TOTAL, "", &[(90.0, 5.0)])]), (true, false, None));
        assert_eq!(read(&[(UNTIL, "", &[(60.0, 50.0)])]), (false, false, None));
    }

    #[test]
    fn buckets_of_a_target_without_samples_are_of_no_page() {
        let mut all = Series::default();
        all.put(sample((Shows::Buckets, "+Inf", &[(60.0, 5.0)]), "new", false));
        for shown in [CURSORS, TOTALS] {
            all.put(sample(shown, "one", true));
        }
        let targets = all.take(&key(), false);
        assert_eq!(targets.keys().collect::<Vec<_>>(), [r#"{job="one"}"#]);
        assert!(targets.values().all(|page| page.buckets.is_empty()));
    }

    #[test]
    fn the_cursor_of_a_page_that_is_still_arriving_is_known() {
        let arriving = aligned(&[CURSORS, TOTALS], &[(ACCOUNTED, "", &[(30.0, 0.0)])], true);
        assert_eq!((arriving.partial, arriving.number(Number::Until)), (true, Some(110.0)));
    }

    /// The cursors of the pages of 60 and 120.
    const CURSORS: Shown<'_> = (UNTIL, "", &[(60.0, 50.0), (120.0, 110.0)]);
    const TOTALS: Shown<'_> = (TOTAL, "", &[(60.0, 5.0), (120.0, 9.0)]);

    #[test]
    fn a_page_that_lacks_a_series_of_one_before_is_passed_over() {
        for (shows, label) in [(ACCOUNTED, ""), (UNACCOUNTED, ""), (RECHECKED, ""), (Shows::Buckets, "0.5")] {
            let until = |samples| {
                aligned(&[CURSORS, TOTALS, (shows, label, samples)], &[], true).number(Number::Until)
            };
            assert_eq!(until(&[(60.0, 0.0)]), Some(50.0), "{shows:?}");
            assert_eq!(until(&[(60.0, 0.0), (120.0, 0.0)]), Some(110.0), "{shows:?}");
            assert_eq!(until(&[(120.0, 0.0)]), Some(110.0), "{shows:?} is new");
        }
        let page = aligned(&[CURSORS, TOTALS, (Shows::Buckets, "fast", &[(60.0, 0.0)])], &[], true);
        assert_eq!(page.number(Number::Until), Some(110.0), "a bucket of no threshold is of no page");
        let page = aligned(&[CURSORS, TOTALS], &[(ACCOUNTED, "", &[(30.0, 0.0)])], true);
        assert!(page.partial && !page.apart, "a page of any target");
        assert_eq!(page.number(Number::Total), None);
    }

    #[test]
    fn a_page_without_the_late_data_of_its_own_count_is_passed_over() {
        let until = |late, accounted| {
            let pages = [
                CURSORS,
                TOTALS,
                (UNACCOUNTED, "", &[(60.0, 10.0), (120.0, 20.0)][..]),
                (ACCOUNTED, "", accounted),
                (LATE, "", late),
            ];
            aligned(&pages, &[], true).number(Number::Until)
        };
        let same = &[(60.0, 30.0), (120.0, 80.0)];
        assert_eq!(until(&[(60.0, 1.0)], same), Some(50.0));
        assert_eq!(until(&[(60.0, 0.0)], same), Some(110.0), "none has come");
        assert_eq!(until(&[(60.0, 1.0)], &[(60.0, 30.0), (120.0, 40.0)]), Some(110.0), "of another count");
    }

    #[test]
    fn times_are_by_counter_whatever_the_target() {
        let mut times = Times::new();
        for job in ["one", "other"] {
            put_times(&mut times, sample(CURSORS, job, true));
        }
        assert_eq!(times, Times::from([(key(), vec![60.0, 120.0, 60.0, 120.0])]));
    }
}
