//! The cursors that a Prometheus holds.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;

use crate::{Key, Owner};
use pds_core::memory::Share;
use pds_http::BuildError;
use pds_interface::Resource;

use super::http::{Error, Http, Prometheus};
use super::query::{self, batches, halves};
use super::reply::{self, Labels, Series};

/// The window of the first queries. Restarts are short, and a day of 200,000 series holds a billion samples.
const RECENT: Duration = Duration::from_secs(600);
/// The most apps per query.
const MAX_APPS: usize = 200;
/// The most queries in flight.
const MAX_QUERIES: usize = 4;
/// Tolerance of the load time, in seconds: VictoriaMetrics keeps twelve digits.
const SAME_TIME: f64 = 0.002;
/// Whole numbers up to this one are exact as `f64`.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A Prometheus, or another program with its HTTP API: Thanos, Mimir, VictoriaMetrics. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Source(Arc<Http>);

/// Scraped targets: hashes of the labels that Prometheus sets on them.
pub type Targets = HashSet<u64>;

/// A cursor in Prometheus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The end of the last range added, Unix seconds.
    pub until: i64,
    /// Whether it was scraped from the same target as this process.
    pub is_own: bool,
    /// Seconds given up before `until` that the process of the cursor had yet to request again.
    pub pending: u64,
}

/// A counter, as Prometheus has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The counter.
    pub key: Key,
    /// The greatest cursor up to now; `None` if there is none within the lookback.
    pub cursor: Option<Cursor>,
    /// The greatest cursor after now, which is ignored.
    pub later: Option<i64>,
}

/// The result of one query for a counter.
#[derive(Debug, Default)]
struct Found {
    /// The greatest cursor up to now; 0 if there is none.
    until: i64,
    /// The targets with this cursor, and the pending seconds of each that has any.
    targets: Vec<u64>,
    pending: Vec<u64>,
    /// The greatest cursor after now.
    later: Option<i64>,
}

impl Found {
    fn cursor(&self, own: &Targets) -> Option<Cursor> {
        let is_own = self.targets.iter().any(|target| own.contains(target));
        // The last target to be scraped with this cursor has the least pending time.
        let all_have = self.pending.len() == self.targets.len();
        let pending = self.pending.iter().min().filter(|_| all_have).copied().unwrap_or_default();
        (self.until > 0).then_some(Cursor { until: self.until, is_own, pending })
    }
}

/// The result of one query, by counter.
type Cursors = HashMap<Key, Found>;

impl Source {
    /// The Prometheus of `config`, whose replies fit in `memory` until they are decoded.
    ///
    /// # Errors
    /// If its trust anchors cannot be used.
    pub fn new(config: &Prometheus, memory: Share) -> Result<Self, BuildError> {
        Ok(Self(Arc::new(Http::new(config, memory)?)))
    }

    /// The label matchers of every query.
    pub fn selector(&self) -> &str {
        self.0.config.selector.trim()
    }

    /// The series that `query` returns now, with their labels.
    ///
    /// # Errors
    /// If the query was not answered in full.
    pub async fn series(&self, query: &str) -> Result<Vec<(Labels, f64)>, Error> {
        let mut series = Vec::new();
        let put = |one: Series| {
            let value = one.values().next();
            series.extend(value.map(|value| (one.labels, value)));
        };
        self.0.query(query, put).await?;
        Ok(series)
    }

    /// The targets with a sample of the process that loaded its configuration at `loaded`, a time that is on every
    /// page. Prometheus then also holds all samples scraped before.
    ///
    /// # Errors
    /// If the query was not answered in full.
    pub async fn targets(&self, loaded: Option<Timestamp>) -> Result<Targets, Error> {
        let loaded = loaded.map_or(f64::NAN, |loaded| loaded.as_duration().as_secs_f64());
        let mut targets = Targets::new();
        let put = |series: Series| {
            if series.values().any(|value| (value - loaded).abs() <= SAME_TIME) {
                targets.insert(target(series.labels));
            }
        };
        self.0.query(&query::processes(self.selector()), put).await?;
        Ok(targets)
    }

    /// The cursors of `keys`, in any order; `now` is the time by the service's clock. Cursors of `own` targets are marked.
    ///
    /// If a query is not answered in full, the second value is the error, and the first holds the answers so far.
    pub async fn cursors(&self, keys: Vec<Key>, now: i64, own: &Targets) -> (Vec<Answer>, Result<(), Error>) {
        let mut answers = Vec::new();
        let result = self.look(keys, now, own, &mut answers).await;
        (answers, result)
    }

    async fn look(
        &self,
        keys: Vec<Key>,
        now: i64,
        own: &Targets,
        answers: &mut Vec<Answer>,
    ) -> Result<(), Error> {
        let lookback = self.0.config.lookback;
        let recent = RECENT.min(lookback);
        let (mut open, mut later) = (Vec::new(), Vec::new());
        self.query_batches(keys, now, own, query::greatest, recent, |answer| match answer {
            Answer { key, later: Some(_), .. } => later.push(key),
            Answer { key, cursor: None, .. } => open.push(key),
            found => answers.push(found),
        })
        .await?;
        self.query_batches(open, now, own, query::greatest, lookback, |answer| match answer {
            Answer { key, later: Some(_), .. } => later.push(key),
            other => answers.push(other),
        })
        .await?;
        // The greatest cursor of a series hides the others.
        self.query_batches(later, now, own, query::all, lookback, |answer| answers.push(answer)).await
    }

    /// Runs `query` over `window` for batches of `keys`, several at once, and then queries the pending time before the
    /// cursors. Passes on the answer for each key. Divides a batch whose reply is too large.
    async fn query_batches(
        &self,
        keys: Vec<Key>,
        now: i64,
        own: &Targets,
        query: fn(&[Key], &str, Duration) -> String,
        window: Duration,
        mut answered: impl FnMut(Answer),
    ) -> Result<(), Error> {
        let mut batches: VecDeque<Vec<Key>> = batches(keys, MAX_APPS);
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < MAX_QUERIES
                && let Some(keys) = batches.pop_front()
            {
                let http = Arc::clone(&self.0);
                let [query, pending] =
                    [query, query::pending].map(|query| query(&keys, self.selector(), window));
                under_way.spawn(async move {
                    let mut cursors = Cursors::new();
                    let mut result = http.query(&query, |series| put(&mut cursors, series, now)).await;
                    if result.is_ok() && cursors.values().any(|found| found.until > 0) {
                        result = http.query(&pending, |series| put_pending(&mut cursors, series)).await;
                    }
                    (keys, result.map(|()| cursors))
                });
            }
            match under_way.join_next().await {
                None => return Ok(()),
                Some(Ok((keys, Ok(mut cursors)))) => {
                    for key in keys {
                        let found = cursors.remove(&key).unwrap_or_default();
                        answered(Answer { key, cursor: found.cursor(own), later: found.later });
                    }
                }
                Some(Ok((keys, Err(error)))) => {
                    let halves = halves(&keys);
                    if !error.is_of_size() || halves.len() < 2 {
                        return Err(error);
                    }
                    // Ahead of the others, so that a few queries show whether size is the cause.
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

/// Adds a series of a reply.
fn put(cursors: &mut Cursors, mut series: Series, now: i64) {
    let mut labels = std::mem::take(&mut series.labels);
    let Some(key) = take_key(&mut labels) else { return };
    let target = target(labels);
    let found = cursors.entry(key).or_default();
    for until in whole_values(&series) {
        if until > now {
            found.later = found.later.max(Some(until));
        } else if until > found.until {
            (found.until, found.targets) = (until, vec![target]);
        } else if until == found.until && !found.targets.contains(&target) {
            found.targets.push(target);
        }
    }
}

/// Adds a series of pending seconds of a reply, if the target has the greatest cursor.
fn put_pending(cursors: &mut Cursors, mut series: Series) {
    let mut labels = std::mem::take(&mut series.labels);
    let Some(found) = take_key(&mut labels).and_then(|key| cursors.get_mut(&key)) else { return };
    if found.targets.contains(&target(labels)) {
        found.pending.extend(whole_values(&series).map(i64::unsigned_abs).next());
    }
}

/// The values that an exporter may have written: whole numbers above 0.
fn whole_values(series: &Series) -> impl Iterator<Item = i64> {
    let values = series.values().filter(|value| value.fract() == 0.0 && (1.0..MAX_EXACT).contains(value));
    #[expect(clippy::cast_possible_truncation, reason = "each is whole and in range")]
    values.map(|value| value as i64)
}

/// The cursors in a reply of Prometheus, by counter, up to `now` and after it.
///
/// # Errors
/// If it is not a complete reply; the error states the reason.
pub fn parse(reply: &[u8], now: i64) -> Result<Vec<Answer>, String> {
    let mut cursors = Cursors::new();
    reply::read(reply, &mut |series| put(&mut cursors, series, now)).map_err(|bad| format!("{bad:?}"))?;
    let own = Targets::new();
    let answer = |(key, found): (Key, Found)| Answer { key, cursor: found.cursor(&own), later: found.later };
    Ok(cursors.into_iter().map(answer).collect())
}

/// The counter that a series belongs to.
fn take_key(labels: &mut Labels) -> Option<Key> {
    let owner = Owner::new(labels.remove("project")?.into(), labels.remove("app")?.into());
    Some(Key { owner, resource: Resource::find(&labels.remove("resource")?)? })
}

/// The hash of all labels except those that the exporter or Prometheus itself sets (`__type__`, `__unit__`).
fn target(mut labels: Labels) -> u64 {
    labels.retain(|name, _| !name.starts_with("__"));
    let mut hasher = DefaultHasher::new();
    labels.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use pds_interface::response_time;

    use super::*;

    fn one(instance: &str, values: &[&str]) -> Series {
        let values: Vec<_> = values.iter().map(|value| format!(r#"[9,"{value}"]"#)).collect();
        let labels = format!(
            r#""__name__":"x","__type__":"gauge","project":"p","app":"a","resource":"response_time","instance":"{instance}""#
        );
        let json = format!(r#"{{"metric":{{{labels}}},"values":[{}]}}"#, values.join(","));
        serde_json::from_str(&json).unwrap()
    }

    fn key() -> Key {
        Key { owner: Owner::new("p".into(), "a".into()), resource: response_time::RESOURCE }
    }

    #[test]
    fn the_greatest_cursor_up_to_now_counts() {
        let own = Targets::from([target(Labels::from([("instance".to_owned(), "own".to_owned())]))]);
        let cursors_of = |series: &[(&str, &[&str])]| {
            let mut cursors = Cursors::new();
            for (instance, values) in series {
                put(&mut cursors, one(instance, values), 600);
            }
            let found = cursors.remove(&key()).unwrap_or_default();
            (found.cursor(&own).map(|cursor| (cursor.until, cursor.is_own)), found.later)
        };
        assert_eq!(cursors_of(&[("own", &["60", "120"]), ("other", &["180"])]), (Some((180, false)), None));
        assert_eq!(cursors_of(&[("other", &["180"]), ("own", &["180", "60"])]), (Some((180, true)), None));
        assert_eq!(cursors_of(&[("own", &["600", "601", "660"])]), (Some((600, true)), Some(660)));
        assert_eq!(cursors_of(&[("own", &["NaN", "+Inf", "-60", "0", "90.5", "1e300", "x"])]), (None, None));
    }

    #[test]
    fn the_pending_time_of_the_target_with_the_greatest_cursor_counts() {
        let pending_of = |cursors_of: &[(&str, &str)], series: &[(&str, &str)]| {
            let mut cursors = Cursors::new();
            for (instance, until) in cursors_of {
                put(&mut cursors, one(instance, &[until]), 600);
            }
            series.iter().for_each(|(instance, value)| put_pending(&mut cursors, one(instance, &[value])));
            let found = cursors.get(&key());
            found.and_then(|found| found.cursor(&Targets::new())).map(|cursor| cursor.pending)
        };
        let two = [("before", "60"), ("last", "120")];
        assert_eq!(pending_of(&two, &[("last", "900"), ("before", "60")]), Some(900));
        assert_eq!(pending_of(&two, &[("before", "60")]), Some(0));
        for bad in ["NaN", "+Inf", "1e300", "-60", "0.5"] {
            assert_eq!(pending_of(&two, &[("last", bad)]), Some(0), "{bad}");
        }
        let same = [("before", "120"), ("last", "120")];
        assert_eq!(pending_of(&same, &[("last", "60"), ("before", "900")]), Some(60));
        assert_eq!(pending_of(&same, &[("before", "900")]), Some(0), "it is unaccounted since");
        assert_eq!(pending_of(&[], &[("last", "900")]), None, "a counter without a cursor begins now");
    }
}
