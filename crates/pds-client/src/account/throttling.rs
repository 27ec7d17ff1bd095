//! Pauses that the service requests of an account, and the account's pace.

use std::time::Duration;

use humantime::format_duration;
use tokio::time::Instant;

use super::{Account, State};
use crate::error::whole_seconds;
use crate::pace::Pace;

/// The longest pause of a whole account. If a reply requests a longer pause, only its target waits for the rest.
const MAX_PAUSE: Duration = Duration::from_secs(300);

impl Account {
    /// Ends a pause that the service requested.
    pub(crate) fn end_pause(&self) {
        self.inner.queue.pace(|pace, _| pace.resume());
        self.report_pace(&self.inner.state.lock());
    }

    /// Reports the pace: 0 in a pause that requests do not wait for.
    pub(super) fn report_pace(&self, state: &State) {
        let is_paused = state.paused_since.is_some();
        let per_second = self.inner.queue.pace(|pace, _| match is_paused && !pace.pause_left().is_zero() {
            true => Some(0.0),
            false => pace.per_second(),
        });
        self.reporter().update(|facts| facts.pace = per_second);
    }

    /// Records that the service requests a pause of the account. Logs a pause longer than `patience`, which requests do
    /// not wait for.
    pub(crate) fn pause(&self, wait: Duration, patience: Duration) {
        let wait = wait.min(MAX_PAUSE);
        self.inner.queue.pace(|pace, _| pace.pause(wait));
        let mut state = self.inner.state.lock();
        if wait > patience && state.paused_since.is_none() {
            state.paused_since = Some(Instant::now());
            let wait = format_duration(whole_seconds(wait)).to_string();
            self.reporter().log(|observer, name| observer.paused(name, &wait));
        }
        self.report_pace(&state);
    }

    /// Records that a request sent at `sent` was answered by a 429, which may request a pause, as [`Account::pause`] does.
    pub(crate) fn too_many(&self, sent: Instant, wait: Option<Duration>, patience: Duration) {
        self.adapt(|pace, _| pace.too_many(sent));
        match wait {
            Some(wait) => self.pause(wait, patience),
            None => self.end_expired_pause(),
        }
    }

    /// Records that a request ended without a 429 and without a new pause; `accepted` if the service replied with a status
    /// below 500.
    pub(crate) fn ended_unthrottled(&self, accepted: bool) {
        self.adapt(|pace, waits| pace.ended(accepted, waits));
        self.end_expired_pause();
    }

    fn end_expired_pause(&self) {
        let mut state = self.inner.state.lock();
        // A reply to a request sent before the pause does not end it.
        let is_over = self.inner.queue.pace(|pace, _| pace.pause_left().is_zero());
        if let Some(since) = state.paused_since.take_if(|_| is_over) {
            self.report_pace(&state);
            let after = format_duration(whole_seconds(since.elapsed())).to_string();
            tracing::info!(token = self.name(), after, "requests are sent again after a pause");
        }
    }

    /// Changes the pace, and reports it.
    fn adapt(&self, change: impl FnOnce(&mut Pace, bool)) {
        let (before, now) = self.inner.queue.pace(|pace, waits| {
            let before = pace.per_second();
            change(pace, waits);
            (before, pace.per_second())
        });
        if before == now {
            return;
        }
        self.report_pace(&self.inner.state.lock());
        match (before, now) {
            (None, Some(requests_per_second)) => tracing::warn!(
                token = self.name(),
                requests_per_second = (requests_per_second * 100.0).round() / 100.0,
                "the service repeatedly answers 429: requests are slowed down"
            ),
            (Some(_), None) => tracing::info!(token = self.name(), "requests are back at full pace"),
            _ => {}
        }
    }
}
