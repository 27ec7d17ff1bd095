//! How many requests went to the service in the last minutes, for people: Prometheus makes rates itself.

use tokio::time::Instant;

/// The minutes looked back on.
const MINUTES: usize = 5;

/// Requests of the last five minutes, by minute.
#[derive(Debug)]
pub(super) struct Recent {
    began: Instant,
    /// (minute since the beginning, requests, failures)
    minutes: [(u64, u32, u32); MINUTES],
}

/// A rate over the last five minutes, or since the start where that is less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestRate {
    /// Requests a minute.
    pub requests_per_minute: f64,
    /// Of them, those that failed.
    pub failures_per_minute: f64,
}

impl Recent {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), minutes: [(0, 0, 0); MINUTES] }
    }

    pub(super) fn note(&mut self, failed: bool) {
        let minute = self.began.elapsed().as_secs() / 60;
        if let Some(place) = self.minutes.get_mut((minute % MINUTES as u64) as usize) {
            if place.0 != minute {
                *place = (minute, 0, 0);
            }
            place.1 = place.1.saturating_add(1);
            place.2 = place.2.saturating_add(u32::from(failed));
        }
    }

    pub(super) fn rate(&self) -> RequestRate {
        let elapsed = self.began.elapsed().as_secs_f64() / 60.0;
        let now = self.began.elapsed().as_secs() / 60;
        let recent = self.minutes.iter().filter(|(minute, ..)| minute + MINUTES as u64 > now);
        let (requests, failures) = recent.fold((0.0, 0.0), |sum, (_, requests, failures)| {
            (sum.0 + f64::from(*requests), sum.1 + f64::from(*failures))
        });
        // The minute that runs counts as far as it has come; less than one is no base for a rate.
        let span = elapsed.min(MINUTES as f64 - 1.0 + elapsed.fract()).max(1.0);
        RequestRate { requests_per_minute: requests / span, failures_per_minute: failures / span }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Duration, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_of_the_last_five_minutes() {
        let mut recent = Recent::new();
        for second in 0..600 {
            recent.note(second >= 450);
            advance(Duration::from_secs(1)).await;
        }
        let rate = recent.rate();
        assert_eq!((rate.requests_per_minute, rate.failures_per_minute), (60.0, 37.5));
        advance(Duration::from_secs(600)).await;
        assert_eq!(recent.rate(), RequestRate::default());
    }
}
