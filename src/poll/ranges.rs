//! The ranges that a metrics target needs.

use std::sync::Arc;

use crate::store::Variant;
use pds_core::units;
use pds_interface::{TimeRange, Window};
use pds_ledger::{Ledger, MAX_MERGED, RangeLimits};

use super::plan::{ConfiguredWindow, Plan, Target, containers};

/// One request of a metrics call, and the purpose of its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRequest<'a> {
    /// The range.
    pub range: TimeRange,
    /// The container that it is limited to.
    pub container: Option<Arc<str>>,
    /// The window that shows its reply, if any.
    pub window: Option<&'a ConfiguredWindow>,
    /// The ledger's use of its reply.
    pub purpose: Purpose,
}

impl RangeRequest<'_> {
    /// A request for the ledger alone.
    pub(super) fn of(range: TimeRange, purpose: Purpose) -> Self {
        Self { range, container: None, window: None, purpose }
    }

    /// Its window, as the decoder of the reply needs it.
    pub(super) fn to_window(&self) -> Option<Window<'_>> {
        let window = self.window?;
        Some(Window {
            label: &window.label,
            container: self.container.as_deref(),
            first: window.index == 0,
            range: self.range,
        })
    }

    /// The variant under which the store keeps its window's series.
    pub(super) fn variant(&self) -> Variant {
        let window = self.window.map_or(0, |window| window.seconds.unsigned_abs());
        Variant { window, container: self.container.clone() }
    }
}

/// The ledger's use of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Learns its thresholds before anything is counted.
    Window,
    /// Adds it to the counters.
    Counted,
    /// Rechecks an hour with it.
    Recheck,
}

/// The windows that a poll of a metrics target needs.
///
/// A window as long as the accounting step is aligned to the steps if the target is polled once per step. Its reply then
/// also serves the counters.
pub fn windows<'a>(plan: &'a Plan, target: &Target) -> Vec<RangeRequest<'a>> {
    let (settled, step) = (plan.watermark.at_present(), plan.watermark.step());
    let polled_every = plan.interval(target).as_secs();
    let mut requests = Vec::new();
    for window in &plan.windows {
        let shared = target.counter.is_some()
            && window.seconds == step
            && polled_every == window.seconds.unsigned_abs();
        let end = if shared { settled.step_end() } else { settled.second };
        let range = TimeRange { start: end - window.seconds, end };
        let for_container =
            |container| RangeRequest { range, container, window: Some(window), purpose: Purpose::Window };
        requests.extend(containers(plan.app_of(target)).map(for_container));
    }
    requests
}

/// The range to count next, up to `settled_step`, which had settled when the poll began. Time that settles during the
/// poll is left to the next poll; otherwise the windows would lag behind the counters. The range is shorter if longer
/// ranges have failed.
pub fn due(plan: &Plan, target: &Target, ledger: Option<&Ledger>, settled_step: i64) -> Option<TimeRange> {
    let ledger = ledger.filter(|ledger| !ledger.set_aside)?;
    let longest = units::whole_seconds(MAX_MERGED);
    let (watermark, settled) = (&plan.watermark, plan.watermark.at_present());
    ledger.due(RangeLimits {
        settled: settled.step_end().min(settled_step),
        step: watermark.step(),
        max_length: longest >> target.progress.lock().halvings.min(MAX_HALVINGS),
        hourly_from: watermark.ages().hourly_from(settled.second),
    })
}

/// Limits the ranges that `target` counts to this length, until requests succeed.
pub(super) fn no_longer_than(target: &Target, seconds: u64) {
    let fits = |halvings: &u8| MAX_MERGED.as_secs() >> halvings <= seconds;
    let halvings = (0..MAX_HALVINGS).find(fits).unwrap_or(MAX_HALVINGS);
    target.progress.lock().halvings = halvings;
}

/// Six hours halved this many times are less than a minute, the default step.
pub(super) const MAX_HALVINGS: u8 = 9;
