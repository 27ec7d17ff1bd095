//! One poll of a metrics call: its windows, the range to count, and the hour to recheck.

use pds_interface::TimeRange;
use pds_ledger::{HOUR, Ledger, Refusal};

use super::audit;
use super::error::{PollError, Reach};
use super::evidence::Violation;
use super::holes;
use super::ledger_update::LedgerUpdate;
use super::plan::Poll;
use super::ranges::{self, MAX_HALVINGS, Purpose, RangeRequest};
use super::shown::Replies;

/// Requests every range that is due, first those that the previous poll did not reach. The windows and the counted
/// range never block each other, and the outcome for a container does not affect its app. Returns the poll's result,
/// and whether the service answered every request about the app with 404.
pub(super) async fn poll<'a>(poll: Poll<'a>, update: &mut LedgerUpdate<'a>) -> (Result<(), PollError>, bool) {
    let mut all = MetricsPoll {
        poll,
        update,
        replies: Replies::default(),
        settled_step: poll.plan.watermark.settled_step(),
        result: Ok(()),
        answered: false,
        stops_further_requests: false,
        asked: 0,
        not_found: 0,
        shortest_failed: None,
        is_container_silent: false,
        refused: None,
    };
    all.ranges().await;
    all.look_for_hole().await;
    if all.may_go_on() {
        all.update.sample().await;
        if let Some(due) = audit::due(poll) {
            audit::audit(poll, due).await;
        }
    }
    all.replies.show(poll);
    all.replies.compare_containers(poll);
    all.replies.compare_thresholds(poll);
    let gone = all.asked > 0 && all.asked == all.not_found;
    (all.result, gone)
}

struct MetricsPoll<'a, 'u> {
    poll: Poll<'a>,
    update: &'u mut LedgerUpdate<'a>,
    replies: Replies<'a>,
    /// The last whole step that had settled when the poll began.
    settled_step: i64,
    /// The first failure that affects the app.
    result: Result<(), PollError>,
    /// Whether a request about a window or the range to count succeeded.
    answered: bool,
    /// Whether a request for the ledger failed, or all requests of the account fail.
    stops_further_requests: bool,
    /// Requests about the whole app.
    asked: u32,
    /// Requests among these that got a 404.
    not_found: u32,
    /// Length in seconds of the shortest range about the whole app that failed as too long.
    shortest_failed: Option<u64>,
    /// Whether a request for a container got no reply. Those for others would probably cost as much time.
    is_container_silent: bool,
    /// The range at the cursor and the error, if the service refused it.
    refused: Option<(TimeRange, String)>,
}

impl<'a> MetricsPoll<'a, '_> {
    async fn ranges(&mut self) {
        let Poll { plan, target, .. } = self.poll;
        let mut windows = ranges::windows(plan, target);
        let places = windows.len().max(1);
        let begin_with = |window: usize| {
            target.progress.lock().unreached_window = u16::try_from(window % places).unwrap_or_default();
        };
        let (first, mut counted) = {
            let mut progress = target.progress.lock();
            let first = usize::from(std::mem::take(&mut progress.unreached_window)) % places;
            (first, std::mem::take(&mut progress.unreached_counted))
        };
        windows.rotate_left(first);
        if counted && self.counted().await == Reach::All {
            begin_with(first);
            return;
        }
        for (place, mut window) in windows.into_iter().enumerate() {
            if !counted && self.is_counted(&window) {
                window.purpose = Purpose::Counted;
                counted = true;
            }
            let was_silent = self.is_container_silent;
            if was_silent && window.container.is_some() {
                continue;
            }
            let reach = self.range(&window).await;
            if !was_silent && (self.is_container_silent || reach != Reach::Itself) {
                begin_with(first + place + 1);
            }
            if reach == Reach::Itself {
                continue;
            }
            if reach == Reach::All {
                target.progress.lock().unreached_counted = !counted;
                return;
            }
            break;
        }
        if !counted && self.counted().await != Reach::Itself {
            return;
        }
        if let Some(range) = self.update.recheck_due().filter(|_| self.may_go_on()) {
            self.range(&RangeRequest::of(range, Purpose::Recheck)).await;
        }
    }

    /// Whether a recheck, sample or audit may follow: a failing window does not prevent it, an outage does.
    fn may_go_on(&self) -> bool {
        !self.stops_further_requests && (self.answered || self.result.is_ok())
    }

    /// Requests the range to count, if any. It usually comes last, because earlier replies may reveal the service's
    /// time. If the range had to end on the hour, the next range follows at once.
    async fn counted(&mut self) -> Reach {
        let (mut reach, mut last) = (Reach::Itself, None);
        for _ in 0..2 {
            let Some(range) = self.due().filter(|range| last != Some(*range) && reach == Reach::Itself)
            else {
                break;
            };
            last = Some(range);
            reach = self.range(&RangeRequest::of(range, Purpose::Counted)).await;
            if range.end % HOUR != 0 {
                break;
            }
        }
        reach
    }

    /// Whether the reply about this window also serves the counters.
    fn is_counted(&self, window: &RangeRequest<'_>) -> bool {
        window.container.is_none() && self.due() == Some(window.range)
    }

    /// The range to count next.
    fn due(&self) -> Option<TimeRange> {
        ranges::due(self.poll.plan, self.poll.target, self.update.ledger(), self.settled_step)
    }

    /// Requests one range. Returns the other requests that would fail as well.
    async fn range(&mut self, asked: &RangeRequest<'a>) -> Reach {
        let Poll { context, plan, target, .. } = self.poll;
        let answer = self.answer(asked).await;
        let is_of_app = asked.container.is_none() && asked.purpose != Purpose::Recheck;
        self.asked += u32::from(is_of_app);
        let Err(error) = answer else {
            if let Some(container) = &asked.container {
                target.progress.lock().container_fails(container, false);
            }
            self.answered |= is_of_app;
            return Reach::Itself;
        };
        let reach = error.reach();
        if let Some(container) = &asked.container
            && reach != Reach::All
        {
            if target.progress.lock().container_fails(container, true) {
                context.transitions.container_failed(&target.key, container, &error);
            }
            self.is_container_silent |= error.is_silence();
            return Reach::Itself;
        }
        if asked.purpose == Purpose::Recheck {
            let is_refusal = error.is_refusal();
            let is_unanswered = |ledger: &Ledger| ledger.is_unanswered(asked.range);
            let is_temporary =
                error.is_server_error() || matches!(error, PollError::Refused(Refusal::TooMany(_)));
            let is_final = is_refusal && (!is_temporary || self.update.ledger().is_some_and(is_unanswered));
            self.update.not_answered(asked.range, is_final);
            tracing::debug!(target = %target.key, range = ?asked.range, %error, "a recheck failed");
            if is_refusal {
                // A service may refuse old ranges and still answer new ones.
                return Reach::Itself;
            }
        }
        if is_of_app {
            self.not_found += u32::from(error.is_not_found());
            let failed = error.is_of_size().then(|| asked.range.seconds());
            self.shortest_failed = [self.shortest_failed, failed].into_iter().flatten().min();
        }
        if asked.purpose == Purpose::Counted
            && error.is_refusal()
            && target.progress.lock().refused(
                asked.range.start,
                plan.interval(target),
                error.is_server_error(),
            )
        {
            self.refused = Some((asked.range, error.to_string()));
        }
        self.stops_further_requests |= asked.purpose != Purpose::Window || reach == Reach::All;
        if self.result.is_ok() {
            self.result = Err(error);
        }
        reach
    }

    /// Gives up time that the service always refuses although it answers for later time.
    async fn look_for_hole(&mut self) {
        if let Some((range, reason)) = self.refused.take()
            && holes::give_up(self.poll, self.update, range, &reason).await
        {
            // At once, because the service drops more old data every second.
            self.counted().await;
        }
    }

    async fn answer(&mut self, asked: &RangeRequest<'a>) -> Result<(), PollError> {
        let Poll { plan, target, .. } = self.poll;
        let subjects = self.poll.subjects(asked.to_window());
        let answer = self.poll.request(Some(asked.range), asked.container.as_deref(), &subjects).await;
        if asked.purpose == Purpose::Counted {
            self.follow_size(asked.range, answer.as_ref().err());
        }
        let (mut reading, date) = answer?;
        if let Some(answered) = reading.tally.as_ref().and_then(|tally| tally.range) {
            self.compare(asked, answered)?;
        }
        self.replies.add(self.poll, asked, &reading);
        let tally = reading.tally.take().unwrap_or_default();
        if asked.purpose != Purpose::Window {
            self.update.verify(&tally, asked.range).await;
        }
        if tally.range.is_none() && plan.evidence(target).ignores_ranges() {
            self.replies = Replies::default();
            target.subjects.iter().for_each(|subject| subject.cell.clear());
        } else {
            self.poll.show(reading, &asked.variant());
        }
        self.update.take(&tally, asked, date)
    }

    /// Compares the range that a reply states with the requested range. The ledger checks that a counted range is
    /// exact.
    fn compare(&self, asked: &RangeRequest<'_>, answered: TimeRange) -> Result<(), PollError> {
        let Poll { plan, target, .. } = self.poll;
        let account = &target.account;
        if answered.is_rounded_from(asked.range) {
            account.range_honoured();
            return Ok(());
        }
        if let Some(ignored) = answered.ignored_bounds(asked.range) {
            let text = plan.config.api.query_names.describe_ignored(ignored, asked.range, answered);
            if account.range_ignored(&text) {
                return Err(PollError::NotBelieved { violation: Violation::IgnoresBounds(ignored), text });
            }
        }
        if asked.window.is_none() {
            return Ok(());
        }
        Err(Refusal::OtherRange { asked: asked.range, answered }.into())
    }

    /// Halves the range to count after each failure that a shorter range may avoid; each success doubles it again. If a
    /// range of at most this length has just failed too, length is not the cause.
    fn follow_size(&self, range: TimeRange, error: Option<&PollError>) {
        let Poll { plan, target, .. } = self.poll;
        let halvings = &mut target.progress.lock().halvings;
        let too_long = |error: &PollError| {
            error.is_of_size()
                && range.end - range.start > plan.watermark.step()
                && self.shortest_failed.is_none_or(|seconds| seconds > range.seconds())
        };
        *halvings = match error {
            None => halvings.saturating_sub(1),
            Some(error) if too_long(error) => (*halvings + 1).min(MAX_HALVINGS),
            Some(_) => return,
        };
    }
}
