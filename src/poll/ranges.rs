//! Which ranges a metrics target asks for, each once, whoever wants it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::accounting::{Ledger, MAX_MERGED, Watermark};
use crate::interface::TimeRange;

use super::plan::{Plan, Target, containers};
use super::progress::Progress;

/// One request of a metrics call, and who waits for its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeAsk {
    /// The range.
    pub range: TimeRange,
    /// The container it is restricted to.
    pub container: Option<Arc<str>>,
    /// The windows that show it, as indices into [`Plan::windows`].
    pub windows: Vec<usize>,
    /// Whether it is added to the counters.
    pub counted: bool,
}

/// What a poll of a metrics target asks, the windows first: they are what somebody looks at now.
///
/// A window as long as the accounting step, where the target is polled once a step, lies on the steps: one reply then
/// serves both.
#[must_use]
pub fn asks(plan: &Plan, target: &Target, ledger: Option<&Ledger>) -> Vec<RangeAsk> {
    let (settled, settled_step, step) =
        (plan.watermark.settled(), plan.watermark.settled_step(), plan.watermark.step());
    let app = target.subjects.first().and_then(|subject| plan.app(subject));
    let polled_every = plan.interval(target).as_secs();
    let mut asks: Vec<RangeAsk> = Vec::new();
    for (index, window) in plan.windows.iter().enumerate() {
        let shared = target.counter.is_some()
            && window.seconds == step
            && polled_every == window.seconds.unsigned_abs();
        let end = if shared { settled_step } else { settled };
        let range = TimeRange { start: end - window.seconds, end };
        for container in containers(app) {
            match asks.iter_mut().find(|ask| ask.range == range && ask.container == container) {
                Some(ask) => ask.windows.push(index),
                None => asks.push(RangeAsk { range, container, windows: vec![index], counted: false }),
            }
        }
    }
    if let Some(range) = ledger.and_then(|ledger| due(&plan.watermark, &target.progress, ledger)) {
        match asks.iter_mut().find(|ask| ask.range == range && ask.container.is_none()) {
            Some(ask) => ask.counted = true,
            None => asks.push(RangeAsk { range, container: None, windows: Vec::new(), counted: true }),
        }
    }
    asks
}

/// The range to be counted next; shorter than could be where longer ones have failed.
fn due(watermark: &Watermark, progress: &Progress, ledger: &Ledger) -> Option<TimeRange> {
    let most = i64::try_from(MAX_MERGED.as_secs()).unwrap_or(i64::MAX);
    let most = most >> progress.halvings.load(Ordering::Relaxed).min(MAX_HALVINGS);
    ledger.due(watermark.settled_step(), watermark.step(), most, i64::MAX)
}

/// Six hours halved so often are less than a minute, the usual step.
pub(super) const MAX_HALVINGS: u32 = 9;
