//! One poll of a metrics call: its windows, the range to count, and the hour to recheck.

use std::sync::atomic::Ordering;

use crate::store::Variant;
use pds_interface::{Counted, TimeRange, Window};
use pds_ledger::{Refusal, hour::HOUR};

use super::ask::{ask, show, subjects};
use super::audit;
use super::error::{PollError, Reach};
use super::evidence::Assumption;
use super::holes;
use super::ledger_update::LedgerUpdate;
use super::plan::{Context, Plan, Target};
use super::ranges::{self, MAX_HALVINGS, Purpose, RangeAsk};
use super::shown::Replies;
use super::transition_log::TransitionLog;

/// The most hours that one poll counts again.
const MAX_RECHECKS_AT_ONCE: usize = 8;

/// Requests every range that is due, first those that the previous poll did not reach. The windows and the counted range
/// never block each other, and the outcome for a container does not affect its app. Returns the poll's result, and
/// whether the service says that the app does not exist.
pub async fn poll(
    context: &Context,
    plan: &Plan,
    target: &Target,
    update: &mut LedgerUpdate,
    transitions: &TransitionLog,
) -> (Result<(), PollError>, bool) {
    let mut poll = MetricsPoll {
        context,
        plan,
        target,
        transitions,
        update,
        replies: Replies::default(),
        settled_step: plan.watermark.settled_step(),
        result: Ok(()),
        asked: 0,
        not_found: 0,
        shortest_failed: None,
        refused: None,
        counted: None,
    };
    poll.all().await;
    poll.look_for_hole().await;
    poll.audit().await;
    poll.compare_window();
    poll.replies.show(plan, target);
    poll.replies.compare_containers(plan, target);
    let gone = poll.asked > 0 && poll.asked == poll.not_found;
    (poll.result, gone)
}

struct MetricsPoll<'a> {
    context: &'a Context,
    plan: &'a Plan,
    target: &'a Target,
    transitions: &'a TransitionLog,
    update: &'a mut LedgerUpdate,
    replies: Replies,
    /// The last whole step that had settled when the poll began.
    settled_step: i64,
    /// The first failure that affects the app.
    result: Result<(), PollError>,
    /// Requests about the whole app, and how many got a 404.
    asked: u32,
    not_found: u32,
    /// The shortest range of the whole app that was too long for the service, in seconds.
    shortest_failed: Option<u64>,
    /// The range at the cursor, if the service refused it, and how.
    refused: Option<(TimeRange, String)>,
    /// The range that was counted last, and how many there were.
    counted: Option<(TimeRange, u64)>,
}

impl MetricsPoll<'_> {
    async fn all(&mut self) {
        let progress = &self.target.progress;
        let mut windows = ranges::windows(self.plan, self.target);
        let places = windows.len().max(1);
        let first = progress.unreached_window.swap(0, Ordering::Relaxed) as usize % places;
        let begin_with = |window: usize| {
            let window = u32::try_from(window % places).unwrap_or_default();
            progress.unreached_window.store(window, Ordering::Relaxed);
        };
        windows.rotate_left(first);
        let mut counted = false;
        if progress.unreached_counted.swap(false, Ordering::Relaxed) {
            counted = true;
            if self.counted().await == Reach::All {
                begin_with(first);
                return;
            }
        }
        for (place, mut window) in windows.into_iter().enumerate() {
            if !counted && self.is_counted(&window) {
                window.purpose = Purpose::Counted;
                counted = true;
            }
            let reach = self.range(&window).await;
            if reach != Reach::Itself {
                begin_with(first + place + 1);
            }
            match reach {
                Reach::Itself => {}
                Reach::SameKind => break,
                Reach::All => {
                    progress.unreached_counted.store(!counted, Ordering::Relaxed);
                    return;
                }
            }
        }
        if !counted && self.counted().await != Reach::Itself {
            return;
        }
        // Restored counters wait for the hours that were due, so those are asked for one after the other.
        let held = self.context.ledgers.held_back(&self.target.key).is_some();
        for _ in 0..if held { MAX_RECHECKS_AT_ONCE } else { 1 } {
            let due = self.update.recheck_due(self.plan, self.target).filter(|_| self.result.is_ok());
            let Some(range) = due else { break };
            self.range(&RangeAsk { range, container: None, windows: Vec::new(), purpose: Purpose::Recheck })
                .await;
        }
    }

    /// Requests the range to count, if any, last: earlier replies may have told the service's time. A range that had to
    /// end on the hour is followed by the next one at once.
    async fn counted(&mut self) -> Reach {
        let (mut reach, mut last) = (Reach::Itself, None);
        for _ in 0..2 {
            let due = ranges::due(self.plan, self.target, self.update.ledger(), self.settled_step);
            let Some(range) = due.filter(|range| last != Some(*range) && reach == Reach::Itself) else {
                break;
            };
            last = Some(range);
            let purpose = Purpose::Counted;
            reach = self.range(&RangeAsk { range, container: None, windows: Vec::new(), purpose }).await;
            if range.end % HOUR != 0 {
                break;
            }
        }
        reach
    }

    /// Whether the reply about this window also serves the counters.
    fn is_counted(&self, window: &RangeAsk) -> bool {
        window.container.is_none()
            && ranges::due(self.plan, self.target, self.update.ledger(), self.settled_step)
                == Some(window.range)
    }

    /// Requests one range. Returns which other requests would fail as well.
    async fn range(&mut self, asked: &RangeAsk) -> Reach {
        let Err(error) = self.answer(asked).await else {
            if let Some(container) = &asked.container {
                self.target.progress.container_answers(container);
            }
            if asked.container.is_none() && asked.purpose != Purpose::Recheck {
                self.asked += 1;
            }
            return Reach::Itself;
        };
        if let Some(container) =
            asked.container.as_ref().filter(|_| error.is_status() && error.reach() != Reach::All)
        {
            if error.is_not_found() {
                self.forget(asked);
            }
            if self.target.progress.container_fails(container) {
                self.transitions.container_failed(&self.target.key, container, &error);
            }
            return Reach::Itself;
        }
        if asked.container.is_none() && asked.purpose != Purpose::Recheck {
            self.asked += 1;
            self.not_found += u32::from(error.is_not_found());
            let failed = error.is_of_size().then(|| asked.range.seconds());
            self.shortest_failed = [self.shortest_failed, failed].into_iter().flatten().min();
        }
        let reach = error.reach();
        if asked.purpose == Purpose::Counted && error.is_refusal() {
            let interval = self.plan.interval(self.target);
            if self.target.progress.is_refused(asked.range.start, interval) {
                self.refused = Some((asked.range, error.to_string()));
            }
        }
        if self.result.is_ok() {
            self.result = Err(error);
        }
        reach
    }

    /// A window that holds less than the counted ranges within it is unexpected.
    fn compare_window(&self) {
        let (Some(counted), Some((window, total))) = (self.counted, self.replies.first_window()) else {
            return;
        };
        if self.target.progress.is_short(window, total, counted) {
            let key = &self.target.key;
            let field = match self.target.endpoint.counted {
                Some(Counted::Requests) => "total_requests",
                _ => "total_runs",
            };
            self.context.telemetry.unexpected(key.resource, &[field], &key.to_string());
        }
    }

    /// Gives up time that the service always refuses, while it answers for later time.
    async fn look_for_hole(&mut self) {
        if let Some((range, reason)) = self.refused.take() {
            let search = (self.context, self.plan, self.target);
            if holes::give_up(search, self.update, self.transitions, range, &reason).await {
                // At once: what the service keeps begins later with every second.
                self.counted().await;
            }
        }
    }

    /// Audits a range if one is due and everything else went well.
    async fn audit(&self) {
        if self.result.is_err() {
            return;
        }
        if let Some(range) = audit::due(self.context, self.plan, self.target) {
            audit::audit(self.context, self.plan, self.target, range).await;
        }
    }

    /// Hides the samples of the range's windows.
    fn forget(&self, asked: &RangeAsk) {
        for subject in &self.target.subjects {
            for &window in &asked.windows {
                subject.cell.forget(&self.variant(asked, window));
            }
            // The datapoint that all windows share.
            subject.cell.forget(&Variant { window: 0, container: asked.container.clone() });
        }
    }

    fn variant(&self, asked: &RangeAsk, window: usize) -> Variant {
        let window = self.plan.windows.get(window).map_or(0, |window| window.seconds.unsigned_abs());
        Variant { window, container: asked.container.clone() }
    }

    async fn answer(&mut self, asked: &RangeAsk) -> Result<(), PollError> {
        let (plan, target) = (self.plan, self.target);
        let windows: Vec<Window<'_>> = asked
            .windows
            .iter()
            .filter_map(|&index| plan.windows.get(index).map(|window| (index, window)))
            .map(|(index, window)| Window {
                label: &window.label,
                container: asked.container.as_deref(),
                first: index == 0,
                range: asked.range,
            })
            .collect();
        let subjects = subjects(plan, target, &windows);
        let container = asked.container.as_deref();
        let answer = ask(self.context, plan, target, Some(asked.range), container, &subjects).await;
        match (asked.purpose, &answer) {
            (Purpose::Counted, answer) => {
                let step = plan.watermark.step();
                follow_size(target, asked.range, step, answer.as_ref().err(), self.shortest_failed);
            }
            (Purpose::Recheck, Err(_)) => target.progress.recheck_failed(),
            _ => {}
        }
        let mut answer = answer?;
        if let Some(answered) = answer.reading.tally.as_ref().and_then(|tally| tally.range) {
            self.compare(asked, answered)?;
        }
        self.replies.add(plan, target, asked, &answer.reading);
        let tally = answer.reading.tally.take();
        if asked.purpose == Purpose::Counted {
            self.counted = tally.as_ref().and_then(|tally| Some((asked.range, tally.total?)));
        }
        let is_unnamed = tally.as_ref().is_some_and(|tally| tally.range.is_none());
        if is_unnamed
            && tally.as_ref().is_some_and(|tally| tally.total > Some(0))
            && asked.purpose == Purpose::Counted
            && plan.audit.believes(target.account.name()) != Ok(true)
        {
            audit::verify(self.context, plan, target).await;
        }
        if is_unnamed && plan.audit.ignores_ranges(target.account.name()) {
            self.replies = Replies::default();
            ranges::windows(plan, target).iter().for_each(|window| self.forget(window));
        } else {
            show(self.context, plan, target, answer.reading, |index| {
                self.variant(asked, asked.windows.get(index).copied().unwrap_or(usize::MAX))
            });
        }
        match tally {
            Some(tally) => self.update.take(self.context, plan, target, &tally, asked, answer.date),
            None => Ok(()),
        }
    }
}

impl MetricsPoll<'_> {
    /// Compares the range of a reply with the one asked for. Whether a counted range is exact is left to the ledger.
    fn compare(&self, asked: &RangeAsk, answered: TimeRange) -> Result<(), PollError> {
        let account = &self.target.account;
        if answered.is_rounded_from(asked.range) {
            account.range_honoured();
            return Ok(());
        }
        if let Some(ignored) = answered.ignores(asked.range) {
            let told = self.plan.config.api.query_names.told(ignored, asked.range, answered);
            if account.range_ignored(&told) {
                return Err(PollError::NotBelieved { broken: Assumption::Names(ignored), told });
            }
        }
        if asked.windows.is_empty() {
            return Ok(());
        }
        Err(Refusal::OtherRange { asked: asked.range, answered }.into())
    }
}

/// A range that is too long for the service is halved, again and again; a success makes ranges longer again. If a range
/// that is no longer has just failed too, length is not the cause.
fn follow_size(
    target: &Target,
    range: TimeRange,
    step: i64,
    error: Option<&PollError>,
    shortest_failed: Option<u64>,
) {
    let halvings = target.progress.halvings.load(Ordering::Relaxed);
    let next = match error {
        None => halvings.saturating_sub(1),
        Some(_) if shortest_failed.is_some_and(|seconds| seconds <= range.seconds()) => halvings,
        Some(error) if error.is_of_size() && range.end - range.start > step => {
            (halvings + 1).min(MAX_HALVINGS)
        }
        Some(_) => halvings,
    };
    target.progress.halvings.store(next, Ordering::Relaxed);
}
