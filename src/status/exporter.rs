//! The exporter's own part of the model, read from a snapshot of its metrics.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::poll::Plan;
use crate::telemetry::Snapshot;

use super::model::{Exporter, Token};

/// The exporter as it fares at `now`.
pub(super) fn exporter(snapshot: &Snapshot, plan: &Plan, started: Timestamp, now: Timestamp) -> Exporter {
    let tokens = plan.client.accounts().map(|account| {
        let known = snapshot.tokens.get(account.name()).copied().unwrap_or_default();
        Token { name: account.name().to_owned(), expires: known.expires.map(whole), readable: known.readable }
    });
    Exporter {
        version: env!("CARGO_PKG_VERSION"),
        started: whole(started),
        configuration_good: snapshot.config_good,
        configuration_loaded: snapshot.config_loaded.map(whole),
        state_file_good: snapshot.state_good,
        next_poll: next_poll(plan.targets.iter().filter_map(|target| target.progress.due()).min(), now),
        poll_lag_seconds: Some(snapshot.poll_lag_seconds),
        tokens: tokens.collect(),
    }
}

/// A due time by the wall clock, to the second.
pub(super) fn next_poll(due: Option<Instant>, now: Timestamp) -> Option<Timestamp> {
    let ahead = due?.saturating_duration_since(Instant::now());
    Some(whole(now.checked_add(SignedDuration::try_from(ahead).ok()?).ok()?))
}

/// `time` rounded to the second: nobody reads more of it.
pub(super) fn whole(time: Timestamp) -> Timestamp {
    time.round(jiff::Unit::Second).unwrap_or(time)
}
