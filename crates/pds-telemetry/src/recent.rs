//! Request rates of the last minutes, for the status page; Prometheus computes its own.

use tokio::time::Instant;

/// Minutes kept, the current one included.
const MINUTES: usize = 5;

/// Requests of the last minutes, by minute.
#[derive(Debug)]
pub(super) struct Recent {
    began: Instant,
    /// (minute since the beginning, requests, failures)
    minutes: [(u64, u32, u32); MINUTES],
}

/// The rate over the last four minutes, or since the start if that is less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestRate {
    /// Requests per minute.
    pub requests_per_minute: f64,
    /// Failed requests per minute.
    pub failures_per_minute: f64,
}

impl Default for Recent {
    fn default() -> Self {
        Self { began: Instant::now(), minutes: [(0, 0, 0); MINUTES] }
    }
}

impl Recent {
    pub(super) fn count(&mut self, failed: bool) {
        let minute = self.began.elapsed().as_secs() / 60;
        if let Some(place) = self.minutes.get_mut((minute % MINUTES as u64) as usize) {
            if place.0 != minute {
                *place = (minute, 0, 0);
            }
            place.1 = place.1.saturating_add(1);
            place.2 = place.2.saturating_add(u32::from(failed));
        }
    }

    /// The rate over whole minutes, so that it changes once a minute; before the first has passed, what it has so far.
    pub(super) fn rate(&self) -> RequestRate {
        let now = self.began.elapsed().as_secs() / 60;
        let oldest = now.saturating_sub(MINUTES as u64 - 1);
        let past = self.minutes.iter().filter(|(minute, ..)| now == 0 || (oldest..now).contains(minute));
        let (requests, failures) = past.fold((0.0, 0.0), |(requests, failures), (_, more, failed)| {
            (requests + f64::from(*more), failures + f64::from(*failed))
        });
        let span = f64::from(u32::try_from(now - oldest).unwrap_or(1).max(1));
        RequestRate { requests_per_minute: requests / span, failures_per_minute: failures / span }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Duration, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_of_the_last_whole_minutes() {
        let mut recent = Recent::default();
        for second in 0..600 {
            recent.count(second >= 450);
            advance(Duration::from_secs(1)).await;
        }
        let rate = recent.rate();
        assert_eq!((rate.requests_per_minute, rate.failures_per_minute), (60.0, 37.5));
        advance(Duration::from_secs(600)).await;
        assert_eq!(recent.rate(), RequestRate::default());
    }
}
