//! What the replies of one poll show together: the datapoint behind the gauges, and whether a container filter works.

use std::sync::Arc;

use crate::store::Variant;
use pds_interface::polled::{Reading, Tally};
use pds_interface::{Point, TimeRange, Window};

use super::plan::Poll;
use super::ranges::RangeAsk;

/// Consecutive polls with equal replies for a container and the whole app after which the filter seems to be ignored.
const MAX_EQUAL: u32 = 5;

/// The replies about windows of one poll.
#[derive(Debug, Default)]
pub struct Replies(Vec<WindowReply>);

#[derive(Debug)]
struct WindowReply {
    /// Index into [`Plan::windows`].
    window: usize,
    container: Option<Arc<str>>,
    range: TimeRange,
    tally: Option<Tally>,
    point: Option<Point>,
}

impl Replies {
    /// Records the reply to `wanted`.
    pub(super) fn add(&mut self, Poll { plan, target, .. }: Poll<'_>, wanted: &RangeAsk, reading: &Reading) {
        let range = wanted.range;
        // A range rounded outwards begins with a whole bucket. Data beyond the requested end has not settled.
        let answered = reading.tally.as_ref().and_then(|tally| tally.range);
        let whole =
            TimeRange { start: answered.map_or(range.start, |of| of.start.min(range.start)), ..range };
        for &window in &wanted.windows {
            let of = (window, wanted.container.clone());
            let point = target.endpoint.has_series().then(|| {
                let resolution = plan.config.poll.resolution;
                target.progress.datapoints(|seen| seen.newest(resolution, of, &reading.points, whole))
            });
            self.0.push(WindowReply {
                window,
                container: wanted.container.clone(),
                range,
                tally: reading.tally.clone(),
                point: point.flatten(),
            });
        }
    }

    /// The range of the first configured window without container filter, and how many the reply counts.
    pub fn first_window(&self) -> Option<(TimeRange, u64)> {
        let reply = self.0.iter().find(|reply| reply.window == 0 && reply.container.is_none())?;
        Some((reply.range, reply.tally.as_ref()?.total?))
    }

    /// Shows for each container the datapoint of the first configured window that has a complete one. If no reply has
    /// one, nothing is shown; if a reply is missing, the previous datapoint stays until it is stale.
    pub(super) fn show(&self, Poll { plan, target, .. }: Poll<'_>) {
        let Some(subject) = target.subjects.first().filter(|_| target.endpoint.has_series()) else { return };
        if plan.is_replaced() {
            return;
        }
        for container in super::plan::containers(plan.app_of(target)) {
            let of = || self.0.iter().filter(|reply| reply.container == container);
            let found = of().filter(|reply| reply.point.is_some()).min_by_key(|reply| reply.window);
            if found.is_none() && of().count() < plan.windows.len() {
                continue;
            }
            let reply = found.or_else(|| of().next());
            let sink = reply.and_then(|reply| {
                let label = &plan.windows.get(reply.window)?.label;
                let window = Window {
                    label,
                    container: container.as_deref(),
                    first: reply.window == 0,
                    range: reply.range,
                };
                target.endpoint.show_point(reply.point, plan.subject(subject, Some(window))?)
            });
            if let Some(sink) = sink {
                subject.cell.replace(&Variant { window: 0, container: container.clone() }, sink);
            }
        }
    }

    /// Warns once if the container filter seems to be ignored: for several polls with traffic, the replies for a container
    /// equalled those for the whole app.
    pub(super) fn compare_containers(&self, Poll { plan, target, .. }: Poll<'_>) {
        let whole = |window| self.0.iter().find(|reply| reply.window == window && reply.container.is_none());
        for reply in &self.0 {
            let (Some(container), Some(whole)) = (&reply.container, whole(reply.window)) else { continue };
            let (Some(part), Some(all)) = (&reply.tally, &whole.tally) else { continue };
            if all.total.unwrap_or_default() == 0 || reply.window > 0 {
                continue;
            }
            let equal = (part.total, &part.shares) == (all.total, &all.shares);
            if target.progress.equals(container, equal) == MAX_EQUAL && plan.filter_seems_ignored() {
                tracing::warn!(
                    app = &*target.key.owner.app,
                    container = &**container,
                    "the service says the same of this container as of the whole app: it is the only one, or \
                     api.query_names.container is not the name the service knows"
                );
            }
        }
    }
}
