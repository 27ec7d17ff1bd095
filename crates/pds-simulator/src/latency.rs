//! Request latencies: how many requests are within each threshold, exactly.
//!
//! The requests of a stream are numbered. A fixed number of each thousand is within each threshold; a permutation
//! selects them. So the count within a threshold among the first n requests needs no list of requests, and counts of
//! adjacent ranges add up exactly.

use std::sync::LazyLock;

use pds_interface::response_time::threshold_seconds;

use super::chance::hash;

/// The thresholds of the distribution, as sent.
pub const THRESHOLDS: [&str; 22] = [
    "1ms", "5ms", "10ms", "25ms", "50ms", "75ms", "100ms", "250ms", "500ms", "750ms", "1s", "2.5s", "5s",
    "7.5s", "10s", "30s", "1min", "2min", "5min", "15min", "30min", "1hr",
];

/// The same in milliseconds.
static MILLIS: LazyLock<[f64; THRESHOLDS.len()]> =
    LazyLock::new(|| THRESHOLDS.map(|label| (1000.0 * threshold_seconds(label).unwrap_or_default()).round()));

/// Counts within each of [`THRESHOLDS`].
pub(super) type Within = [u64; THRESHOLDS.len()];

/// The latency distribution of a stream: log-logistic, with a long tail like real ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latency {
    /// The median.
    pub(super) median_millis: u32,
    /// 2 gives a long tail, 4 a short one.
    pub(super) steepness: i32,
}

/// Number of requests that holds each share of the distribution exactly.
const PERIOD: u64 = 1000;

impl Latency {
    /// How many of a thousand requests are within each threshold.
    fn of_thousand(self) -> [u64; THRESHOLDS.len()] {
        MILLIS.map(|millis| {
            let odds = (millis / f64::from(self.median_millis)).powi(self.steepness);
            #[expect(clippy::cast_possible_truncation, reason = "a share of 0..=1, times 1000")]
            let count = (1000.0 * (odds / (1.0 + odds))).round() as u64;
            count
        })
    }

    /// How many of the first `requests` of the stream with this `seed` are within each threshold.
    pub(super) fn within(self, seed: u64, requests: u64) -> Within {
        let periods = requests / PERIOD;
        let mut within = self.within_of(seed, periods * PERIOD..requests);
        for (within, of_thousand) in within.iter_mut().zip(self.of_thousand()) {
            *within += periods * of_thousand;
        }
        within
    }

    /// Whether the request with this number takes more than a second.
    pub(super) fn is_slow(self, seed: u64, number: u64) -> bool {
        const SECOND: usize = 10;
        self.of_thousand().get(SECOND).is_some_and(|count| *count <= rank(seed, number))
    }

    /// How many of the requests with these numbers are within each threshold.
    pub(super) fn within_of(self, seed: u64, numbers: impl IntoIterator<Item = u64>) -> Within {
        let of_thousand = self.of_thousand();
        let mut within = [0; THRESHOLDS.len()];
        for number in numbers {
            let rank = rank(seed, number);
            // Requests longer than the last threshold are within none.
            if let Some(first) = within.get_mut(of_thousand.partition_point(|count| *count <= rank)) {
                *first += 1;
            }
        }
        let mut sum = 0;
        within.map(|first| {
            sum += first;
            sum
        })
    }
}

/// The rank of a request among the thousand that represent the distribution exactly. Multiplying by a number coprime to
/// the period is a permutation; each period is rotated differently.
fn rank(seed: u64, number: u64) -> u64 {
    let turn = hash(&[seed, number / PERIOD]) % PERIOD;
    (number % PERIOD * 387 + turn) % PERIOD
}

/// The time in milliseconds within which `share` (0..=1) of `total` requests are, evenly spread between the
/// thresholds around it; `None` if `total` is 0.
// Counts are far below 2^53.
pub(super) fn percentile(within: &Within, total: u64, share: f64) -> Option<f64> {
    if total == 0 {
        return None;
    }
    let wanted = share * total as f64;
    let (mut low, mut below) = (0.0, 0.0);
    // Requests beyond the last threshold take less than twice as long.
    let last = MILLIS.last().map_or(0.0, |millis| 2.0 * millis);
    for (high, count) in MILLIS.into_iter().chain([last]).zip(within.iter().copied().chain([total])) {
        let count = count as f64;
        if count >= wanted && count > below {
            return Some(low + (high - low) * ((wanted - below) / (count - below)));
        }
        (low, below) = (high, count);
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Latency = Latency { median_millis: 80, steepness: 2 };

    #[test]
    fn counts_within_thresholds_are_cumulative_and_grow_with_each_request() {
        for latency in [USUAL, Latency { median_millis: 200_000, steepness: 2 }] {
            let mut last = [0; THRESHOLDS.len()];
            for requests in 0..2500 {
                let within = latency.within(9, requests);
                assert!(within.is_sorted(), "{within:?}");
                assert!(within.iter().all(|count| *count <= requests));
                assert!(last.iter().zip(within).all(|(last, now)| *last <= now && now <= *last + 1));
                last = within;
            }
        }
    }

    #[test]
    fn single_requests_add_up_to_the_count() {
        for requests in [0, 1, 999, 1000, 2345] {
            assert_eq!(USUAL.within_of(9, 0..requests), USUAL.within(9, requests));
        }
    }

    #[test]
    fn percentiles_lie_between_the_thresholds_that_hold_them() {
        let within = USUAL.within(9, 10_000);
        for (share, low, high) in [(0.5, 75.0, 100.0), (0.9, 100.0, 250.0), (0.99, 750.0, 1000.0)] {
            let millis = percentile(&within, 10_000, share).unwrap();
            assert!((low..=high).contains(&millis), "{share}: {millis}");
        }
        assert_eq!(percentile(&within, 0, 0.5), None);
        assert_eq!(percentile(&[0; THRESHOLDS.len()], 4, 0.5), Some(5_400_000.0));
    }
}
