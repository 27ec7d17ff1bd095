//! The exporter's own part of the model, read from a snapshot of its metrics.

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Duration, Instant};

use crate::poll::Plan;
use pds_telemetry::Snapshot;

use super::incidents::GoingOn;
use super::view::View;
use pds_core::clock::to_second;
use pds_diagnosis::{Exporter, Token, Unexpected};

/// How long a panic counts as a reason.
const PANIC_SHOWN: Duration = Duration::from_secs(3600);

/// How long a poll may take beyond its interval.
const POLL_TIME: Duration = Duration::from_secs(10);

/// The state of the exporter, whose next poll is `due`.
pub(super) fn exporter(
    View { plan, now, snapshot, observed, .. }: &View,
    due: Option<Instant>,
    going_on: &GoingOn,
    started: Timestamp,
) -> Exporter {
    let tokens = plan.client.accounts().map(|account| {
        let known = snapshot.tokens.get(account.name()).copied().unwrap_or_default();
        Token {
            name: account.name().to_owned(),
            expires: known.expires.map(to_second),
            file: account.file().map(|file| file.display().to_string()),
            readable: known.readable,
            problem: account.problem(),
            range_ignored: account.ignored_range(),
            incidents: observed.incidents(account.name(), going_on, *now),
        }
    });
    Exporter {
        version: env!("CARGO_PKG_VERSION").into(),
        started: to_second(started),
        shard: plan.config.shard.index,
        shards: plan.config.shard.count.get(),
        configuration_good: snapshot.config_good,
        configuration_loaded: snapshot.config_loaded.map(to_second),
        web_configuration_good: snapshot.web_config_good,
        panicked: snapshot.last_panic.is_some_and(|at| at.elapsed() < PANIC_SHOWN),
        unexpected: unexpected(snapshot, plan),
        state_file_good: snapshot.state_good,
        restoring: snapshot.restoring.clone(),
        next_poll: next_poll(due, *now),
        poll_lag_seconds: snapshot.poll_lag_seconds,
        tokens: tokens.collect(),
    }
}

/// The fields with unexpected values within the last two polls.
fn unexpected(snapshot: &Snapshot, plan: &Plan) -> Vec<Unexpected> {
    let fields = snapshot.unexpected.iter().filter_map(|((resource, field), value)| {
        let targets = plan.targets.iter().filter(|target| target.key.resource.as_str() == *resource);
        let interval = targets.map(|target| plan.interval(target)).max().unwrap_or_default();
        let is_recent = value.at.elapsed() <= 2 * interval + POLL_TIME;
        let target = value.target.clone();
        is_recent.then(|| Unexpected { resource: (*resource).into(), field: (*field).into(), target })
    });
    fields.collect()
}

/// A due time by the wall clock, to the second.
pub(super) fn next_poll(due: Option<Instant>, now: Timestamp) -> Option<Timestamp> {
    let ahead = due?.saturating_duration_since(Instant::now());
    Some(to_second(now.checked_add(SignedDuration::try_from(ahead).ok()?).ok()?))
}
