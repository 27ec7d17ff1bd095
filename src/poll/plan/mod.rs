//! The targets of a configuration, and their cells in the store.

mod cells;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::{MappedMutexGuard, Mutex};
use tokio::time::{Duration, Instant};

use crate::store::{Section, Store, TargetState, Variant};
use pds_client::{Account, Client, Turn};
use pds_config::{App, Config};
use pds_core::clock::Clock;
use pds_core::units;
use pds_interface::polled::Polled;
use pds_interface::{Cadence, Resource, Scope, Subject, Window};
use pds_ledger::{KEPT_AFTER_REMOVAL, Key, LedgerStore, Watermark};
use pds_telemetry::Telemetry;

use super::evidence::{Evidence, EvidenceStore};
use super::progress::Progress;
use super::transition_log::TransitionLog;

pub(super) use cells::containers;
use cells::{add_objectives, places, polled, within};

/// The parts that polls share, independent of the configuration.
#[derive(Clone, Debug)]
pub struct Context {
    /// The store of samples.
    pub store: Store,
    /// The store of counters.
    pub ledgers: LedgerStore,
    /// The exporter's own metrics.
    pub telemetry: Telemetry,
    /// The log of failures and recoveries.
    pub transitions: Arc<TransitionLog>,
    /// The wall clock.
    pub clock: Clock,
}

impl Context {
    /// A context in which nothing has been polled.
    pub fn new(ledgers: LedgerStore, telemetry: Telemetry, clock: Clock) -> Self {
        let store = Store::new(pds_ledger::FAMILIES);
        Self { store, ledgers, telemetry, transitions: Arc::default(), clock }
    }
}

/// The time of the last check, and when the service last seemed to be down for an account and resource.
pub(super) type Silences = (Option<Instant>, HashMap<(Arc<str>, Resource), Instant>);

/// The targets of a configuration.
#[derive(Debug)]
pub struct Plan {
    /// The configuration.
    pub config: Arc<Config>,
    /// The client for the service.
    pub client: Client,
    /// How far time has settled.
    pub watermark: Watermark,
    /// The windows that metrics targets show.
    pub windows: Vec<ConfiguredWindow>,
    /// The targets.
    pub targets: Vec<Arc<Target>>,
    /// The evidence about each service account.
    pub evidence: Arc<EvidenceStore>,
    /// How the configuration exceeds its rate limit, if it does.
    pub overload: Option<String>,
    /// Whether a warning was logged that this container filter seems to be ignored.
    pub filter_warned: AtomicBool,
    /// Whether a warning was logged that the windows are shorter than two datapoints.
    pub windows_warned: AtomicBool,
    /// Whether a warning was logged that the service does not send a configured threshold.
    pub thresholds_warned: AtomicBool,
    /// When the service seemed to be down although it answered.
    pub(super) silences: Mutex<Silences>,
    /// Whether the ledgers were loaded when the plan was built; otherwise it has no counters.
    knows_ledgers: bool,
    /// Whether another plan has replaced it.
    replaced: AtomicBool,
}

/// A configured window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredWindow {
    /// Its index in [`Plan::windows`].
    pub index: usize,
    /// Its length as in the label `window`.
    pub label: String,
    /// Its length in seconds.
    pub seconds: i64,
}

/// One endpoint polled for one app, project or service account.
#[derive(Debug)]
pub struct Target {
    /// How the call of [`Target::key`] is polled.
    pub endpoint: &'static Polled,
    /// Its name; for a service account, the name of its first project.
    pub key: Key,
    /// The service account it is polled with.
    pub account: Account,
    /// The project or app that its replies describe; several projects only for a service account.
    pub subjects: Vec<TargetSubject>,
    /// The cell of its counters, for calls that are counted.
    pub counter: Option<Arc<TargetState>>,
    /// State passed from poll to poll; kept across reloads.
    pub progress: Arc<Mutex<Progress>>,
}

/// One poll of a target: the arguments of its steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poll<'a> {
    pub(super) context: &'a Context,
    pub(super) plan: &'a Plan,
    pub(super) target: &'a Target,
    /// The turn of its account.
    pub(super) turn: &'a Turn,
}

/// A project or app by its index in the configuration, and its cell.
#[derive(Debug)]
pub struct TargetSubject {
    /// Index into [`Config::projects`].
    pub project: usize,
    /// Index into [`Project::apps`](pds_config::Project::apps).
    pub app: Option<usize>,
    /// The cell of its series.
    pub cell: Arc<TargetState>,
}

impl Plan {
    /// The evidence of the call and account of `target`.
    pub(super) fn evidence(&self, target: &Target) -> MappedMutexGuard<'_, Evidence> {
        self.evidence.of_call(&target.account, target.key.resource)
    }

    /// Builds the plan of `config`, creates its cells in the store, and shows known counters. Targets that stay keep
    /// their state from the plan `before`.
    pub fn new(
        config: Arc<Config>,
        client: Client,
        watermark: Watermark,
        context: &Context,
        before: Option<&Self>,
    ) -> Self {
        let places = places(&config);
        if let Some(before) = before {
            before.replaced.store(true, Ordering::Release);
        }
        let now = context.clock.now();
        let knows_ledgers = context.ledgers.is_open();
        let counts = config.accounting.enabled && knows_ledgers;
        let mut cells = context.store.new_cells();
        add_objectives(&places, &mut cells);
        let windows: Vec<ConfiguredWindow> = config
            .poll
            .windows
            .iter()
            .enumerate()
            .map(|(index, window)| ConfiguredWindow {
                index,
                label: humantime::format_duration(*window).to_string(),
                seconds: units::whole_seconds(*window),
            })
            .collect();
        let progress: HashMap<&Key, &Arc<Mutex<Progress>>> = before
            .iter()
            .flat_map(|plan| &plan.targets)
            .map(|target| (&target.key, &target.progress))
            .collect();
        let evidence = before.map(|plan| (&plan.evidence, &plan.client));
        let evidence = EvidenceStore::new(&config, &client, evidence, &context.telemetry);
        let mut plan = Self {
            config: Arc::clone(&config),
            client,
            watermark,
            windows,
            evidence,
            targets: Vec::new(),
            overload: config.requests_per_minute().overload(&config.api),
            filter_warned: AtomicBool::default(),
            windows_warned: AtomicBool::default(),
            thresholds_warned: AtomicBool::default(),
            silences: Mutex::default(),
            knows_ledgers,
            replaced: AtomicBool::new(false),
        };
        let mut targets: Vec<Target> = Vec::new();
        for resource in polled(&config) {
            let (endpoint, first) = (resource.polled(), targets.len());
            for place in within(endpoint.scope, &places) {
                let account = plan.client.account(&place.owner.project);
                let cell = cells.add(place.key(resource), Section::Endpoint);
                // An existing cell keeps its key, which is shared.
                let key = cell.key.clone();
                let app = place.app.map(|(index, _)| index);
                let subject = TargetSubject { project: place.project, app, cell };
                let of_account = match endpoint.scope {
                    Scope::Account => targets.iter_mut().skip(first).find(|known| known.account == account),
                    _ => None,
                };
                if let Some(target) = of_account {
                    target.subjects.push(subject);
                    continue;
                }
                let is_counted = counts && endpoint.counted.is_some();
                targets.push(Target {
                    endpoint,
                    account,
                    subjects: vec![subject],
                    counter: is_counted.then(|| cells.add(key.clone(), Section::Counters)),
                    progress: progress.get(&key).map(|known| Arc::clone(known)).unwrap_or_default(),
                    key,
                });
            }
        }
        plan.targets = targets.into_iter().map(Arc::new).collect();
        cells.replace(now);
        let counted = plan.targets.iter().filter(|target| target.counter.is_some());
        let counted = counted.map(|target| (&target.account, target.key.resource));
        plan.evidence.forget_unaudited(&config, &plan.client, counted, &context.telemetry);
        let lists = plan.targets.iter().filter(|target| target.endpoint.scope == Scope::Account);
        let lists: HashSet<&str> = lists.map(|target| target.account.name()).collect();
        context.store.gone().keep_addresses(|account| lists.contains(account));
        plan.targets.iter().for_each(|target| plan.show_known(context, target));
        // Ledgers now share the names of configured apps, which makes comparing them quick.
        if knows_ledgers && before.is_none_or(|before| !before.knows_ledgers) {
            let ends = context.ledgers.ends().into_iter();
            let ends = ends.filter(|(app, _)| config.shard.owns_app(&app.project, &app.app));
            let ends = ends.filter_map(|(app, at)| Some((app, Timestamp::from_second(at).ok()?)));
            context.store.recall(ends, now);
        }
        context.telemetry.targets(plan.targets.iter().map(|target| target.subjects.len()).sum());
        plan
    }

    /// Prepares the cells of `target`: drops samples of windows that only earlier plans had, and shows known counters.
    fn show_known(&self, context: &Context, target: &Target) {
        let ledger = target.counter.as_ref().and_then(|_| context.ledgers.adopt(&target.key));
        let (stale_after, variants) = (self.stale_after(target), self.variants(target));
        for subject in &target.subjects {
            subject.cell.set_stale_after(Some(stale_after));
            subject.cell.retain(|variant| variants.contains(variant));
        }
        // Counters are hidden until replies have shown which time has settled.
        if let Some(ledger) = ledger.filter(|_| self.watermark.at_present().started.is_some()) {
            self.show_counters(context, target, &ledger, None);
        }
    }

    /// Whether another plan has replaced it. Its remaining polls show nothing, as their targets may no longer be
    /// configured. Plans are built on the thread that polls, so none is between this check and the samples shown.
    pub fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Acquire)
    }

    /// The variants that a target shows: one per window and container. For a call with a series, window 0 holds the
    /// datapoint.
    fn variants(&self, target: &Target) -> Vec<Variant> {
        match target.endpoint.cadence {
            Cadence::Settings => vec![Variant::default()],
            Cadence::Metrics => {
                let windows = self.windows.iter().map(|window| window.seconds.unsigned_abs());
                let point = target.endpoint.has_series.then_some(0);
                let containers = || containers(self.app_of(target));
                let variants = |window| containers().map(move |container| Variant { window, container });
                windows.chain(point).flat_map(variants).collect()
            }
        }
    }

    /// The first window without container filter, which represents the app where a single window is shown.
    pub fn shown(&self) -> Variant {
        let window = self.windows.first().map_or(0, |window| window.seconds.unsigned_abs());
        Variant { window, container: None }
    }

    /// The time between two polls of `target`.
    pub fn interval(&self, target: &Target) -> Duration {
        let poll = &self.config.poll;
        match target.endpoint.cadence {
            Cadence::Settings => poll.settings_interval,
            Cadence::Metrics => self.app_of(target).and_then(|app| app.interval).unwrap_or(poll.interval),
        }
    }

    /// How long samples of `target` stay without a successful poll: at least three intervals, so that one failed poll
    /// never makes a series vanish.
    pub fn stale_after(&self, target: &Target) -> Duration {
        self.config.poll.stale_after.max(self.interval(target) * 3)
    }

    /// The app that `target` is about, if it is about one.
    pub fn app_of(&self, target: &Target) -> Option<&App> {
        self.app(target.subjects.first()?)
    }

    /// The app of a subject, if it is about one.
    fn app(&self, subject: &TargetSubject) -> Option<&App> {
        self.config.projects.get(subject.project)?.apps.get(subject.app?)
    }

    /// A subject as plain data, for reading a reply about `window`.
    pub fn subject<'a>(&'a self, of: &TargetSubject, window: Option<Window<'a>>) -> Option<Subject<'a>> {
        let project = self.config.projects.get(of.project)?;
        let app = self.app(of);
        let labels = app.map_or(&project.labels, |app| &app.labels);
        Some(Subject { project: &project.id, app: app.map_or("", |app| &app.id), labels, window })
    }

    /// Sets aside ledgers of apps that another shard counts, and drops ledgers of apps removed long ago. Drops none
    /// until the state file is loaded and two clocks agree on the time.
    pub async fn tidy(&self, ledgers: &LedgerStore) {
        ledgers.set_aside(|key| !self.config.shard.owns_app(&key.owner.project, &key.owner.app)).await;
        if !self.knows_ledgers || self.watermark.oldest().is_none() || self.is_replaced() {
            return;
        }
        let wanted: HashSet<Key> =
            self.targets.iter().filter(|t| t.counter.is_some()).map(|t| t.key.clone()).collect();
        let kept = KEPT_AFTER_REMOVAL.max(self.config.accounting.max_catch_up);
        let kept = units::whole_seconds(kept);
        ledgers.prune(&wanted, self.watermark.settled().saturating_sub(kept)).await;
    }
}
