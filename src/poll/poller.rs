//! The loop that holds all due times and starts the polls.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Duration, Instant, interval, sleep_until};

use crate::store::{PollFailure, PollRecord};
use pds_ledger::{Key, restore::Restorer};

use super::error::PANIC;
use super::execute::{self, Outcome};
use super::plan::{Context, Plan};
use super::schedule::tick_after;
use super::transition_log::PERIOD;

/// An idle poller starts polls up to this much late, but at most a hundredth of the shortest interval, so that polls due
/// in between start together. That costs less than half of waking an idle processor for each.
const MAX_SLACK: Duration = Duration::from_millis(100);

/// Interval between searches for ledgers of removed apps.
const TIDYING: Duration = Duration::from_secs(3600);

/// Runs a [`Plan`], and each that replaces it.
#[derive(Debug)]
pub struct Poller {
    context: Arc<Context>,
    plan: Arc<Plan>,
    /// When targets are due that are not polled now, by their index in the plan; the earliest first.
    schedule: BTreeSet<(Instant, usize)>,
    /// One for each poll with requests in flight. A poll that waits for the disk holds none: commits are rare, and with ten
    /// thousand apps hundreds of polls wait for the same one.
    slots: Arc<Semaphore>,
    running: JoinSet<Outcome>,
    /// The target of each running poll.
    tasks: HashMap<Id, Started>,
    origin: Instant,
    /// See [`MAX_SLACK`].
    slack: Duration,
    /// Targets to poll as soon as it is known where they continue.
    restorer: Restorer,
}

#[derive(Debug)]
struct Started {
    /// Index into the plan's targets.
    target: usize,
    at: Instant,
    /// The plan then.
    plan: Arc<Plan>,
    task: AbortHandle,
    /// Whether its target is polled again as soon as it ends.
    again: bool,
}

impl Poller {
    /// A poller of `plan`; every target is due at once, and again when `restorer` knows where its counters continue.
    pub fn new(context: Context, plan: Arc<Plan>, restorer: Restorer) -> Self {
        let mut poller = Self {
            context: Arc::new(context),
            plan: Arc::clone(&plan),
            schedule: BTreeSet::new(),
            slots: slots(&plan),
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
            self.start_due();
            let due = self.schedule.first().map(|(due, _)| *due);
            let (slots, slack) = (Arc::clone(&self.slots), self.slack);
            let restorer = self.restorer.clone();
            let due_with_room = async {
                let _ = slots.acquire().await;
                sleep_until(due.unwrap_or_else(Instant::now) + slack).await;
            };
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                _ = periods.tick() => self.context.transitions.sum_up(),
                Some(plan) = plans.recv() => self.replace(plan),
                Some(ended) = self.running.join_next_with_id() => self.ended(ended),
                keys = restorer.known() => self.poll_at_once(&keys),
                () = due_with_room, if due.is_some() => {}
                _ = tidying.tick() => {
                    let (plan, ledgers) = (Arc::clone(&self.plan), self.context.ledgers.clone());
                    tokio::spawn(async move { plan.tidy(&ledgers).await });
                }
            }
        }
        self.running.shutdown().await;
        self.context.transitions.sum_up();
    }

    /// Follows `plan` from now on. A target that stays keeps its due time or its running poll; a new one is due at once.
    fn replace(&mut self, plan: Arc<Plan>) {
        let after: HashMap<&Key, usize> =
            plan.targets.iter().enumerate().map(|(index, target)| (&target.key, index)).collect();
        self.tasks.retain(|_, started| {
            let key = self.plan.targets.get(started.target).map(|target| &target.key);
            let index = key.and_then(|key| after.get(key));
            match index {
                Some(index) => started.target = *index,
                // A removed target may come back with the next plan; its old poll must not be taken for a new one.
                None => started.task.abort(),
            }
            index.is_some()
        });
        // These are due again when their polls end.
        let running: HashSet<usize> = self.tasks.values().map(|started| started.target).collect();
        let now = Instant::now();
        self.schedule.clear();
        for (index, target) in plan.targets.iter().enumerate().filter(|(index, _)| !running.contains(index)) {
            // A shorter interval applies now, not after the old one has passed.
            let tick = tick_after(&target.key.owner, self.origin, plan.interval(target), now);
            let due = target.progress.due().map_or(now, |due| tick.min(due));
            target.progress.set_due(due);
            self.schedule.insert((due, index));
        }
        let shortest = plan.targets.iter().map(|target| plan.interval(target)).min();
        if plan.config.api.max_concurrent_requests != self.plan.config.api.max_concurrent_requests {
            self.slots = slots(&plan);
        }
        self.slack = shortest.map_or(MAX_SLACK, |interval| (interval / 100).min(MAX_SLACK));
        self.plan = plan;
    }

    /// Polls these at once, or as soon as their running poll ends.
    fn poll_at_once(&mut self, keys: &HashSet<Key>) {
        let now = Instant::now();
        for (mut due, index) in std::mem::take(&mut self.schedule) {
            if let Some(target) = self.plan.targets.get(index).filter(|target| keys.contains(&target.key)) {
                due = due.min(now);
                target.progress.set_due(due);
            }
            self.schedule.insert((due, index));
        }
        for started in self.tasks.values_mut() {
            let target = self.plan.targets.get(started.target);
            started.again |= target.is_some_and(|target| keys.contains(&target.key));
        }
    }

    /// Starts due polls as long as slots are free, the longest due first.
    fn start_due(&mut self) {
        let now = Instant::now();
        while let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            let first = self.schedule.first().copied();
            let Some((due, index)) = first.filter(|(due, _)| *due <= now) else { return };
            self.schedule.pop_first();
            let Some(target) = self.plan.targets.get(index).map(Arc::clone) else { continue };
            self.context.telemetry.poll_lag(now - due);
            let (context, plan) = (Arc::clone(&self.context), Arc::clone(&self.plan));
            let task =
                self.running.spawn(async move { execute::poll(&context, &plan, &target, permit).await });
            let plan = Arc::clone(&self.plan);
            self.tasks.insert(task.id(), Started { target: index, at: now, plan, task, again: false });
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
            // The panic itself is logged and counted where it happens.
            tracing::error!(target = %target.key, "a poll panicked and was contained");
            let message = "the poll panicked: a bug of the exporter".into();
            let failure = Some(PollFailure { class: PANIC, message, is_own: true });
            let (at, took) = (self.context.clock.now(), started.at.elapsed());
            let polled = PollRecord { at, took, behind: false, failure };
            for subject in &target.subjects {
                subject.cell.record(polled.clone(), &self.plan.shown());
            }
        }
        // It may have shown something in the moment of the reload.
        if !Arc::ptr_eq(&started.plan, &self.plan) {
            self.plan.forget_others(target);
        }
        let interval = match outcome {
            Outcome::Usual => self.plan.interval(target),
            Outcome::Slow => self.plan.interval(target).max(self.plan.config.poll.settings_interval),
        };
        // Not sooner than half an interval after its start: the first poll is out of phase, and its first tick may
        // follow at once.
        let after = Instant::now().max(started.at + interval / 2);
        let due = match started.again {
            true => Instant::now(),
            false => tick_after(&target.key.owner, self.origin, interval, after),
        };
        target.progress.set_due(due);
        self.schedule.insert((due, index));
    }
}

/// Slots for the polls of `plan`. Those of a former plan end with its polls.
fn slots(plan: &Plan) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(plan.config.api.max_concurrent_requests.get() as usize))
}
