//! The loop that holds all due times and starts the polls.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Duration, Instant, interval, sleep_until};

use crate::store::{PollFailure, PollRecord};
use pds_client::{Permit, Turn};
use pds_ledger::{Key, restore::Restorer};

use super::error::PANIC;
use super::execute::{self, Outcome};
use super::plan::{Context, Plan, Target};
use super::schedule::tick_after;
use super::transition_log::PERIOD;

/// Maximum delay of polls while the poller is idle; also at most a hundredth of the shortest interval. Polls due in
/// between start together, which costs less than half of waking an idle processor for each.
const MAX_SLACK: Duration = Duration::from_millis(100);

/// A failed poll is repeated this soon, and then after as long as polls have been failing, so that one failure does not
/// last for a whole long interval, and an outage does not multiply the requests.
const REPEATED_AFTER: Duration = Duration::from_secs(60);

/// Interval between searches for ledgers of removed apps.
const TIDYING: Duration = Duration::from_secs(3600);

/// Runs a [`Plan`], and the plans that replace it.
#[derive(Debug)]
pub struct Poller {
    context: Arc<Context>,
    plan: Arc<Plan>,
    /// Due times of targets, by their index in the plan; the earliest first. A due target waits in the client, in the
    /// queue of its account, and starts when its first request may be sent.
    schedule: BTreeSet<(Instant, usize)>,
    running: JoinSet<Outcome>,
    /// The target of each running poll.
    tasks: HashMap<Id, Started>,
    origin: Instant,
    /// See [`MAX_SLACK`].
    slack: Duration,
    /// Reports the targets whose cursors have become known.
    restorer: Restorer,
}

#[derive(Debug)]
struct Started {
    /// Index into the plan's targets.
    target: usize,
    at: Instant,
    task: AbortHandle,
    /// Whether to poll the target again as soon as this poll ends.
    again: bool,
}

impl Poller {
    /// A poller of `plan`; every target is due at once, and again when `restorer` has found its cursor.
    pub fn new(context: Context, plan: Arc<Plan>, restorer: Restorer) -> Self {
        let mut poller = Self {
            context: Arc::new(context),
            plan: Arc::clone(&plan),
            schedule: BTreeSet::new(),
            running: JoinSet::new(),
            tasks: HashMap::new(),
            origin: Instant::now(),
            slack: Duration::ZERO,
            restorer,
        };
        poller.replace(plan);
        poller
    }

    /// Polls until `shutdown` completes, following each new plan. At shutdown, running polls may finish writing and are
    /// otherwise dropped.
    pub async fn run(mut self, mut plans: mpsc::Receiver<Arc<Plan>>, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        let (mut tidying, mut periods) = (interval(TIDYING), interval(PERIOD));
        loop {
            self.enqueue_due();
            let (plan, slack) = (Arc::clone(&self.plan), self.slack);
            let due = self.schedule.first().map(|(due, _)| *due);
            let restorer = self.restorer.clone();
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                _ = periods.tick() => self.context.transitions.sum_up(),
                Some(plan) = plans.recv() => self.replace(plan),
                Some(ended) = self.running.join_next_with_id() => self.ended(ended),
                keys = restorer.known() => self.poll_at_once(&keys),
                started = plan.client.started() => self.start(started),
                () = sleep_until(due.unwrap_or_else(Instant::now) + slack), if due.is_some() => {}
                _ = tidying.tick() => {
                    let (plan, ledgers) = (Arc::clone(&self.plan), self.context.ledgers.clone());
                    tokio::spawn(async move { plan.tidy(&ledgers).await });
                }
            }
        }
        self.running.shutdown().await;
        self.context.transitions.sum_up();
    }

    /// Switches to `plan`. A target that stays keeps its due time; a new one, or one with a new subject, is due at once.
    /// Running polls end, and are repeated.
    fn replace(&mut self, plan: Arc<Plan>) {
        self.plan.client.withdraw_polls();
        // At the start, none is running.
        let all = plan.targets.iter().enumerate().filter(|_| !self.tasks.is_empty());
        let after: HashMap<&Key, usize> = all.map(|(index, target)| (&target.key, index)).collect();
        self.tasks.retain(|_, started| {
            let index = self.plan.targets.get(started.target).and_then(|target| after.get(&target.key));
            match index {
                // Its reply will not be shown.
                Some(index) => (started.target, started.again) = (*index, true),
                // A removed target may return with the next plan; its old poll must not be mistaken for a new one.
                None => started.task.abort(),
            }
            index.is_some()
        });
        // Running targets are scheduled when their polls end.
        let running: HashSet<usize> = self.tasks.values().map(|started| started.target).collect();
        let now = Instant::now();
        self.schedule.clear();
        for (index, target) in plan.targets.iter().enumerate().filter(|(index, _)| !running.contains(index)) {
            // A shorter interval applies immediately.
            let tick = tick_after(&target.key.owner, self.origin, plan.interval(target), now);
            let is_polled = target.subjects.iter().all(|subject| subject.cell.is_polled());
            // A target that waits for its first poll keeps its place before the others.
            let latest = if is_polled { tick } else { now };
            let due = target.progress.lock().due.map_or(now, |due| due.min(latest));
            target.progress.lock().due = Some(due);
            self.schedule.insert((due, index));
        }
        let shortest = plan.targets.iter().map(|target| plan.interval(target)).min();
        if shortest.is_none() {
            self.context.telemetry.poll_lag(None);
        }
        self.slack = shortest.map_or(MAX_SLACK, |interval| (interval / 100).min(MAX_SLACK));
        self.plan = plan;
    }

    /// Polls these targets at once, or as soon as their running polls end.
    fn poll_at_once(&mut self, keys: &HashSet<Key>) {
        let now = Instant::now();
        for (mut due, index) in std::mem::take(&mut self.schedule) {
            if let Some(target) = self.plan.targets.get(index).filter(|target| keys.contains(&target.key)) {
                due = due.min(now);
                target.progress.lock().due = Some(due);
            }
            self.schedule.insert((due, index));
        }
        for started in self.tasks.values_mut() {
            let target = self.plan.targets.get(started.target);
            started.again |= target.is_some_and(|target| keys.contains(&target.key));
        }
    }

    /// Queues all polls that are due.
    fn enqueue_due(&mut self) {
        let now = Instant::now();
        if self.schedule.first().is_none_or(|(due, _)| *due > now) {
            return;
        }
        let later = self.schedule.split_off(&(now, usize::MAX));
        let due = std::mem::replace(&mut self.schedule, later);
        let targets = &self.plan.targets;
        let polls = due.iter().filter_map(|(due, index)| Some((*index, &targets.get(*index)?.account, *due)));
        self.plan.client.enqueue(polls);
    }

    /// Starts the polls whose first requests may be sent.
    fn start(&mut self, started: Vec<(usize, Permit)>) {
        let now = Instant::now();
        for (index, permit) in started {
            let Some(target) = self.plan.targets.get(index).map(Arc::clone) else { continue };
            let due = target.progress.lock().due.unwrap_or(now);
            let late = now - due;
            self.context.telemetry.poll_lag(Some(late));
            let turn = Turn::admitted(&target.account, due, permit, late.saturating_sub(self.slack));
            let (context, plan) = (Arc::clone(&self.context), Arc::clone(&self.plan));
            let task = self.running.spawn(async move { execute::poll(&context, &plan, &target, turn).await });
            self.tasks.insert(task.id(), Started { target: index, at: now, task, again: false });
        }
    }

    /// Schedules the target of a finished poll again.
    fn ended(&mut self, ended: Result<(Id, Outcome), JoinError>) {
        let (id, outcome) = match &ended {
            Ok((id, outcome)) => (*id, *outcome),
            Err(error) => (error.id(), Outcome::Usual),
        };
        // The target was removed by a new plan.
        let Some(started) = self.tasks.remove(&id) else { return };
        let index = started.target;
        let Some(target) = self.plan.targets.get(index) else { return };
        if ended.is_err() {
            // The panic hook has logged and counted the panic.
            tracing::error!(target = %target.key, "a poll panicked; other polls continue");
            let message = "the poll panicked: a bug in the exporter".into();
            let failure = Some(PollFailure { class: PANIC, message, is_own: true });
            let (at, took) = (self.context.clock.now(), started.at.elapsed());
            let polled = PollRecord { at, took, behind: false, failure };
            for subject in &target.subjects {
                subject.cell.record(polled.clone(), &self.plan.shown());
            }
        }
        let usual = self.plan.interval(target);
        let failing = self.failing_for(target).map_or(usual, |failing| failing.max(REPEATED_AFTER));
        let interval = match outcome {
            Outcome::Slow => usual.max(self.plan.config.poll.settings_interval),
            Outcome::Soon => usual.min(failing).min(self.plan.config.poll.interval),
            _ => usual.min(failing),
        };
        // At least half an interval after the start of this poll: the first poll is out of phase, so the first tick may
        // be close.
        let now = Instant::now();
        let tick = tick_after(&target.key.owner, self.origin, interval, now.max(started.at + interval / 2));
        let due = match outcome {
            _ if started.again => now,
            Outcome::NotBefore(wait) => tick.max(now + wait),
            Outcome::Within(wait) => tick.min(now + wait),
            Outcome::Usual | Outcome::Slow | Outcome::Soon => tick,
        };
        target.progress.lock().due = Some(due);
        self.schedule.insert((due, index));
    }

    /// How long the polls of `target` have been failing; `None` if the last one succeeded.
    fn failing_for(&self, target: &Target) -> Option<Duration> {
        let since = target.subjects.first()?.cell.history(|history| Some(history.failing()?.since))?;
        Some(self.context.clock.now().duration_since(since).try_into().unwrap_or_default())
    }
}
