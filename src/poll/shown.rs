//! Conclusions from all replies of one poll: the datapoint behind the gauges, and whether a container filter works.

use std::sync::atomic::Ordering;

use crate::store::Variant;
use pds_core::units::as_seconds;
use pds_interface::polled::{Reading, Tally};
use pds_interface::{Counted, Point, TimeRange, run_execution_time};
use tokio::time::{Duration, Instant};

use super::plan::{ConfiguredWindow, Plan, Poll, Target, containers};
use super::ranges::{Purpose, RangeRequest};

/// Number of consecutive polls with equal replies for a container and the whole app after which the filter seems
/// ignored.
const MAX_EQUAL: u32 = 5;

/// The replies about windows of one poll.
#[derive(Debug, Default)]
pub struct Replies<'a>(Vec<WindowReply<'a>>);

#[derive(Debug)]
struct WindowReply<'a> {
    asked: RangeRequest<'a>,
    tally: Option<Tally>,
    point: Option<Point>,
}

impl<'a> Replies<'a> {
    /// Records the reply to `asked` if a window shows it or it is counted. Counted ranges are aligned and contiguous,
    /// so each bucket is whole in one of them, however short the windows are.
    pub(super) fn add(
        &mut self,
        Poll { plan, target, .. }: Poll<'_>,
        asked: &RangeRequest<'a>,
        reading: &Reading,
    ) {
        if asked.purpose == Purpose::Recheck {
            return;
        }
        // A range that is only counted has the index after the last window.
        let window = asked.window.map_or(plan.windows.len(), |window| window.index);
        // A range rounded outwards begins with a whole bucket. Data beyond the requested end has not settled.
        let answered = reading.tally.as_ref().and_then(|tally| tally.range);
        let start = answered.map_or(asked.range.start, |of| of.start.min(asked.range.start));
        let whole = TimeRange { start, ..asked.range };
        let point = target.endpoint.has_series.then(|| {
            let (resolution, of) = (plan.config.poll.resolution, (window, asked.container.clone()));
            let seen = &mut target.progress.lock().datapoints;
            seen.get_or_insert_default().newest(resolution, of, &reading.points, whole)
        });
        let (tally, point) = (reading.tally.clone(), point.flatten());
        self.0.push(WindowReply { asked: asked.clone(), tally, point });
    }

    /// The count of the first configured window without container filter, if it had traffic.
    fn first_window(&self) -> Option<&Tally> {
        let reply = self.of_first_window().find(|reply| reply.asked.container.is_none())?;
        reply.tally.as_ref().filter(|tally| tally.total > Some(0))
    }

    fn of_first_window(&self) -> impl Iterator<Item = &WindowReply<'a>> {
        self.0.iter().filter(|reply| reply.asked.window.is_some_and(|window| window.index == 0))
    }

    /// Shows the newest complete datapoint for each container, from the first configured window, and counted ranges that
    /// are as new. A window shorter than two datapoints may hold no complete one, so the first longer one stands for it,
    /// or the longest. An older datapoint never replaces a newer one, which stays until it is stale.
    pub(super) fn show(&self, Poll { plan, target, .. }: Poll<'_>) {
        let Some(subject) = target.subjects.first().filter(|_| target.endpoint.has_series) else { return };
        if plan.is_replaced() {
            return;
        }
        let width = target.progress.lock().datapoints.as_ref().and_then(|seen| seen.width());
        let holds_one =
            |window: &&ConfiguredWindow| width.is_none_or(|width| window.seconds as f64 >= 2.0 * width);
        let longest = plan.windows.iter().max_by_key(|window| window.seconds);
        let Some(window) = plan.windows.iter().find(holds_one).or(longest) else { return };
        if !holds_one(&window) {
            warn_of_short_windows(plan, target, window, width.unwrap_or_default());
        }
        let oldest = plan.watermark.settled_step() - window.seconds;
        let counts = |RangeRequest { purpose, window: of, range, .. }: &RangeRequest<'_>| {
            (*purpose == Purpose::Counted && range.end >= oldest)
                || of.is_some_and(|of| of.index == window.index)
        };
        for container in containers(plan.app_of(target)) {
            let replies = self.0.iter().filter(|reply| reply.asked.container == container);
            let whole = replies.filter(|reply| counts(&reply.asked));
            let whole = whole.filter_map(|reply| Some((reply.point?, reply)));
            let newest = whole.rev().max_by(|(one, _), (other, _)| one.time.total_cmp(&other.time));
            let Some((point, reply)) = newest else { continue };
            let variant = Variant { window: 0, container };
            let previous = subject.cell.fresh(&variant, Instant::now());
            let families = target.endpoint.families();
            let since = previous.and_then(|previous| {
                Some(previous.series(&families, &run_execution_time::TIMESTAMP).next()?.1)
            });
            if let Some(of) = plan.subject(subject, reply.asked.to_window())
                && since.is_none_or(|since| point.time >= since)
            {
                subject.cell.replace(&variant, run_execution_time::show(point, of));
            }
        }
    }

    /// Warns once if the service does not send a configured threshold.
    pub(super) fn compare_thresholds(&self, Poll { plan, target, .. }: Poll<'_>) {
        let Some(tally) = self.first_window() else { return };
        let is_sent = |threshold: &Duration| {
            tally.shares.iter().any(|(sent, _)| sent.total_cmp(&as_seconds(*threshold)).is_eq())
        };
        let mut thresholds = plan.config.poll.thresholds.iter();
        if target.endpoint.counted == Some(Counted::Requests)
            && let Some(missing) = thresholds.find(|threshold| !is_sent(threshold))
            && !plan.thresholds_warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                app = &*target.key.owner.app,
                threshold = %humantime::format_duration(*missing),
                "the service does not send this threshold of poll.thresholds, so it has no series"
            );
        }
    }

    /// Warns once if the container filter seems to be ignored: for several polls with traffic, the replies for a container
    /// equalled those for the whole app.
    pub(super) fn compare_containers(&self, Poll { plan, target, .. }: Poll<'_>) {
        let Some(all) = self.first_window() else { return };
        for reply in self.of_first_window() {
            let (Some(container), Some(part)) = (&reply.asked.container, &reply.tally) else { continue };
            let equal = (part.total, &part.shares) == (all.total, &all.shares);
            if target.progress.lock().note_equal(container, equal) == MAX_EQUAL
                && !plan.filter_warned.swap(true, Ordering::Relaxed)
            {
                tracing::warn!(
                    app = &*target.key.owner.app,
                    container = &**container,
                    "the service reports the same for this container as for the whole app: it is the only container, or \
                     api.query_names.container is wrong"
                );
            }
        }
    }
}

/// Warns once that every window is shorter than two datapoints, the `longest` too, so that each may hold no whole one.
fn warn_of_short_windows(plan: &Plan, target: &Target, longest: &ConfiguredWindow, width: f64) {
    if !plan.windows_warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            app = &*target.key.owner.app,
            window = longest.label,
            datapoints_apart_seconds = width,
            "every window in poll.windows is shorter than two datapoints of run execution times and may hold no \
             complete datapoint: the gauges come from the longest window and from counted ranges, those of containers \
             from the window alone; add a window of two datapoints"
        );
    }
}
