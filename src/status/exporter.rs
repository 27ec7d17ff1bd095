//! The exporter's own part of the model, read from its own metrics.

use jiff::{SignedDuration, Timestamp};
use prometheus::proto::MetricFamily;
use tokio::time::Instant;

use crate::poll::Plan;
use crate::telemetry::Telemetry;

use super::model::{Exporter, Token};

/// The exporter as it fares at `now`.
pub(super) fn exporter(gathered: &Gathered, plan: &Plan, started: Timestamp, now: Timestamp) -> Exporter {
    let good = |name| gathered.value(name, None).map(|value| value > 0.0);
    let tokens = plan.client.accounts().map(|account| Token {
        name: account.name().to_owned(),
        expires: gathered.time("pds_token_expiry_timestamp_seconds", Some(account.name())),
        readable: gathered
            .value("pds_token_last_read_successful", Some(account.name()))
            .map(|value| value > 0.0),
    });
    Exporter {
        version: env!("CARGO_PKG_VERSION"),
        started: whole(started),
        configuration_good: good("pds_exporter_config_last_reload_successful"),
        configuration_loaded: gathered
            .time("pds_exporter_config_last_reload_success_timestamp_seconds", None),
        state_file_good: good("pds_exporter_state_last_commit_successful"),
        next_poll: next_poll(plan.targets.iter().filter_map(|target| target.progress.due()).min(), now),
        poll_lag_seconds: gathered.value("pds_exporter_poll_lag_seconds", None),
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

/// The exporter's own metrics at one moment.
pub(super) struct Gathered(Vec<MetricFamily>);

impl Gathered {
    pub(super) fn new(telemetry: &Telemetry) -> Self {
        Self(telemetry.registry().gather())
    }

    /// The gauge `name`, of the series whose label `token` is `token`, where one is given.
    pub(super) fn value(&self, name: &str, token: Option<&str>) -> Option<f64> {
        let family = self.0.iter().find(|family| family.name() == name)?;
        let metric = family.get_metric().iter().find(|metric| {
            token.is_none_or(|token| metric.get_label().iter().any(|label| label.value() == token))
        })?;
        Some(metric.get_gauge().get_value())
    }

    fn time(&self, name: &str, token: Option<&str>) -> Option<Timestamp> {
        let seconds = SignedDuration::try_from_secs_f64(self.value(name, token)?).ok()?;
        Timestamp::from_duration(seconds).ok().map(whole)
    }
}
