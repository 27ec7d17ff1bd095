//! The progress of reading cursors from Prometheus, and its log lines.

use std::sync::Arc;

use pds_core::error_chain::with_sources;
use pds_core::units::count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Key;

use super::http::Error;

/// Progress of reading cursors, where counters continue, from Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Restoring {
    /// Counters hidden until their cursor is known.
    pub missing: usize,
    /// Counters that continue at a cursor from Prometheus.
    pub restored: usize,
    /// Counters that began when they were configured, because Prometheus has no cursor for them.
    pub opened: usize,
    /// Why cursors are still missing, or why all counters began at 0; null before the first reply.
    pub obstacle: Option<Arc<str>>,
    /// Whether that should end soon: Prometheus has not scraped this process yet, or another shard still counts.
    pub expected: bool,
}

/// Obstacle that keeps counters from continuing.
#[derive(Debug)]
pub(super) struct Obstacle {
    /// The reason as text.
    text: Arc<str>,
    /// Whether it is expected to pass soon.
    expected: bool,
}

impl Restoring {
    /// Sets the number of missing counters and the obstacle. Changes are logged.
    pub(super) fn becomes(&mut self, missing: usize, obstacle: Option<Obstacle>) {
        let is_expected = obstacle.as_ref().is_some_and(|obstacle| obstacle.expected);
        let obstacle = obstacle.map(|obstacle| obstacle.text);
        if let Some(reason) = obstacle.as_deref()
            && (self.obstacle.as_deref(), self.expected) != (Some(reason), is_expected)
        {
            match is_expected {
                true => tracing::info!(missing, reason, "counters wait for Prometheus"),
                false => {
                    tracing::warn!(missing, reason, "the cursors of counters cannot be read from Prometheus")
                }
            }
        }
        if missing == 0 && self.missing > 0 {
            let Self { restored, opened, .. } = *self;
            tracing::info!(restored, opened, "restored the cursors of all counters");
        }
        (self.missing, self.obstacle, self.expected) = (missing, obstacle, is_expected);
    }
}

impl Obstacle {
    /// Prometheus returns no usable reply.
    pub(super) fn of(error: &Error) -> Self {
        Self { text: with_sources(error).into(), expected: false }
    }

    /// Prometheus holds no sample of this process.
    pub(super) fn unseen() -> Self {
        let text = "Prometheus has not scraped this process yet; if this persists, the URL, the tenant or the selector is \
                    wrong";
        Self { text: text.into(), expected: true }
    }

    /// Another shard still moves the cursors of this many counters.
    pub(super) fn still_counted(counters: usize) -> Self {
        let counters = count(counters);
        let text = format!(
            "another shard still counts {counters} of them: this shard takes them over once their cursors stand still"
        );
        Self { text: text.into(), expected: true }
    }

    /// Prometheus holds a sample of this process, and no cursor of any counter.
    pub(super) fn nothing_found(selector: &str) -> Self {
        let with = if selector.is_empty() { String::new() } else { format!(" with {selector}") };
        let text = format!(
            "Prometheus holds no cursor of any counter{with}: a new counter needs a scrape or two; if this persists, the tenant or \
             state.prometheus_selector is wrong, or target labels `app` or `project` rename the exporter's to \
             `exported_app` and `exported_project` (set honor_labels)"
        );
        Self { text: text.into(), expected: false }
    }
}

/// Logs the decisions: how many counters have `begun` at a cursor, which were `opened` without one, a cursor in the
/// future, and whether Prometheus has no sample of this process.
pub(super) fn log(selector: &str, begun: usize, opened: &[Key], later: Option<(Key, i64)>, unseen: bool) {
    if unseen && begun > 0 {
        tracing::warn!(
            counters = begun,
            "Prometheus holds no sample of this process after two minutes; counters continue at its cursors, which may be old"
        );
    }
    if let Some((counter, until)) = later {
        tracing::warn!(%counter, until, "ignored cursors in Prometheus that are ahead of the service's clock");
    }
    if let Some(first) = opened.first() {
        tracing::warn!(
            counters = opened.len(),
            %first,
            selector,
            "Prometheus holds no cursor of these counters, so they begin now; if they are not new, check the selector, the \
             lookback, and whether a target label `app` or `project` renames the exporter's to `exported_app` (set honor_labels)"
        );
    }
}
