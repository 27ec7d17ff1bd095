//! Builds the daemon from its parts, and the thread that it polls on.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use crate::poll::{Context, Plan, Poller};
use crate::store::Pages;
use pds_client::Client;
use pds_config::Config;
use pds_core::clock::Clock;
use pds_core::memory::Holder;
use pds_http::BuildError;
use pds_ledger::{
    Committer, Key, LedgerStore, Observer as _, Opening, SILENT, StateError, Watermark,
    restore::{Followed, Restorer, Source},
};
use pds_telemetry::Telemetry;

/// Why the daemon cannot start, or does not apply another configuration; then the old one stays in force.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The state file cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The client cannot be built.
    #[error(transparent)]
    Client(#[from] BuildError),
    /// The state file cannot be changed while running.
    #[error("state.path: cannot change while running, from {} to {}; restart to apply it", path_or_memory(.0.as_ref()), path_or_memory(.1.as_ref()))]
    StatePath(Option<PathBuf>, Option<PathBuf>),
}

fn path_or_memory(path: Option<&PathBuf>) -> String {
    path.map_or_else(|| "memory".to_owned(), |path| path.display().to_string())
}

/// The daemon without its web server: the poller and its state.
#[derive(Debug)]
pub struct Daemon {
    /// A handle to this daemon.
    pub handle: Handle,
    poller: Poller,
    plans: mpsc::Receiver<Arc<Plan>>,
    committer: Committer,
    /// The opening of a state file that takes long. Until it completes, nothing is counted.
    pub opening: Option<Opening>,
}

/// The longest that the start waits for the state file. 100,000 ledgers take less.
const MAX_OPENING: Duration = Duration::from_secs(2);

/// A handle to a running daemon. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Handle {
    /// The parts that polls share.
    pub context: Context,
    /// The pages to serve.
    pub pages: Pages,
    /// The reader of cursors in Prometheus.
    pub restorer: Restorer,
    /// The plan in force. A reload holds the lock, so reloads happen one after the other.
    plan: Arc<Mutex<Arc<Plan>>>,
    plans: mpsc::Sender<Arc<Plan>>,
    runtime: runtime::Handle,
}

impl Daemon {
    /// Builds the daemon for `config`. Opens the state file; sends nothing yet. Reloads run on the runtime of this
    /// call, so call [`Daemon::run`] on the same runtime. If the state folder does not answer, the daemon is built
    /// without counters: once [`Daemon::opening`] completes, apply the configuration again.
    ///
    /// # Errors
    /// If a part cannot be built.
    pub async fn build(config: Config, clock: Clock, telemetry: Telemetry) -> Result<Self, DaemonError> {
        let config = Arc::new(config);
        let (ledgers, committer, mut opening) = LedgerStore::begin(
            config.state.path.as_deref(),
            Arc::new(telemetry.clone()),
            pds_ledger::COMMIT_INTERVAL,
        );
        let opening = match timeout(MAX_OPENING, &mut opening).await {
            // The sender sends a result before it ends.
            Ok(opened) => {
                opened.unwrap_or(Ok(()))?;
                None
            }
            Err(_) => {
                telemetry.committed(Err(SILENT));
                Some(opening)
            }
        };
        let restorer = Restorer::new(ledgers.clone(), Arc::new(telemetry.clone()));
        let context = Context::new(ledgers, telemetry, clock);
        let client = client(&config, &context)?;
        let watermark = Watermark::new(&config.counted_ranges(), context.clock.clone());
        let source = source(&config, &context)?;
        let plan = Arc::new(Plan::new(config, client, watermark, &context, None));
        follow(&restorer, source, &plan, None, &context);
        plan.tidy(&context.ledgers).await;
        context.telemetry.config_loaded(Some(context.clock.now()));
        let poller = Poller::new(context.clone(), Arc::clone(&plan), restorer.clone());
        let pages = Pages::new(context.store.clone(), context.telemetry.clone());
        let (sender, plans) = mpsc::channel(1);
        let plan = Arc::new(Mutex::new(plan));
        let runtime = runtime::Handle::current();
        let handle = Handle { context, pages, restorer, plan, plans: sender, runtime };
        Ok(Self { handle, poller, plans, committer, opening })
    }

    /// Polls until `shutdown` completes. Everything counted is on disk when this returns, unless
    /// the disk does not answer.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { handle, poller, plans, committer, .. } = self;
        let restoring = tokio::spawn(handle.restorer.clone().run());
        poller.run(plans, shutdown).await;
        restoring.abort();
        committer.finished().await;
    }
}

impl Handle {
    /// The plan in force.
    pub async fn plan(&self) -> Arc<Plan> {
        Arc::clone(&*self.plan.lock().await)
    }

    /// Whether every target has been polled at least once.
    pub fn is_ready(&self) -> bool {
        self.context.store.is_complete()
    }

    /// Applies `config` and returns its plan. Targets that stay keep their values, schedule and counters.
    ///
    /// Runs on the thread that polls, so that no poll ends while its target moves to the new plan.
    ///
    /// # Errors
    /// If it cannot be applied; then nothing has changed.
    pub async fn reconfigure(&self, config: Config) -> Result<Arc<Plan>, DaemonError> {
        let handle = self.clone();
        resumed(self.runtime.spawn(async move { handle.apply(config).await }).await).await
    }

    async fn apply(&self, config: Config) -> Result<Arc<Plan>, DaemonError> {
        let mut current = self.plan.lock().await;
        if config.state.path != current.config.state.path {
            return Err(DaemonError::StatePath(current.config.state.path.clone(), config.state.path));
        }
        let config = Arc::new(config);
        let source = source(&config, &self.context)?;
        // Logs the tokens that cannot be used, so no later step fails.
        let client = current.client.successor(&config.api, &config.accounts())?;
        let client = client.retrying_refused_after(config.poll.settings_interval);
        client.take_over(Some(&current.client));
        let watermark = current.watermark.reconfigured(&config.counted_ranges());
        let plan = Arc::new(Plan::new(config, client, watermark, &self.context, Some(&current)));
        follow(&self.restorer, source, &plan, Some(&current), &self.context);
        // The poller is gone only when the daemon is shutting down.
        let _ = self.plans.send(Arc::clone(&plan)).await;
        plan.tidy(&self.context.ledgers).await;
        *current = Arc::clone(&plan);
        Ok(plan)
    }
}

fn client(config: &Config, context: &Context) -> Result<Client, BuildError> {
    let observer = Arc::new(context.telemetry.clone());
    let client = Client::new(&config.api, &config.accounts(), observer, context.clock.clone())?;
    let client = client.with_reply_memory(context.telemetry.memory());
    Ok(client.retrying_refused_after(config.poll.settings_interval))
}

/// The Prometheus that cursors are read from, if any.
fn source(config: &Config, context: &Context) -> Result<Option<Source>, BuildError> {
    let memory = context.telemetry.memory().share(Holder::Restoring);
    config.state.prometheus.as_ref().map(|prometheus| Source::new(prometheus, memory)).transpose()
}

/// Reads the cursors of the counters that `plan` has and the plan `before` does not; if `before` read no cursors, of all
/// counters without a ledger.
fn follow(
    restorer: &Restorer,
    source: Option<Source>,
    plan: &Plan,
    before: Option<&Plan>,
    context: &Context,
) {
    let counted = |plan: &Plan| -> HashMap<Key, Duration> {
        let counted = plan.targets.iter().filter(|target| target.counter.is_some());
        counted.map(|target| (target.key.clone(), plan.interval(target))).collect()
    };
    let is_new = before.is_none_or(|before| before.config.state.prometheus.is_none());
    let wanted = source.as_ref().map(|_| counted(plan)).unwrap_or_default();
    let known = before.map(counted).unwrap_or_default();
    let has_ledger = |key: &Key| context.ledgers.ledger(key).is_some();
    let added = wanted.iter().filter(|(key, _)| !known.contains_key(*key) || (is_new && !has_ledger(key)));
    let added: Vec<_> = added.map(|(key, interval)| (key.clone(), *interval)).collect();
    let (watermark, is_shard) = (plan.watermark.clone(), plan.config.shard.count.get() > 1);
    let followed = source.map(|source| Followed { source, watermark, is_shard });
    restorer.follow(followed, |key| wanted.contains_key(key), added);
}

/// Threads for blocking work that a runtime starts with. It starts more under load; if the system has no thread left,
/// work waits for these.
const BLOCKING_THREADS: usize = 4;

/// Longer than any process runs.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A runtime on the current thread, with threads for blocking work that never end. Without them, tokio panics when the
/// system has no thread left, and a task that waits for the work waits for ever.
///
/// # Errors
/// If the system has no threads or descriptors left.
pub(super) fn runtime() -> io::Result<runtime::Runtime> {
    let runtime = runtime::Builder::new_current_thread().enable_all().thread_keep_alive(FOR_EVER).build()?;
    // This panic stands for an error, not for a bug.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (starting, started) = watch::channel(());
    let start = || {
        for _ in 0..BLOCKING_THREADS {
            let (handle, mut started) = (runtime.handle().clone(), started.clone());
            // Each thread waits until all have started, so that none takes the work of another.
            drop(runtime.spawn_blocking(move || drop(handle.block_on(started.changed()))));
        }
    };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(start));
    std::panic::set_hook(hook);
    drop(starting);
    result
        .map(|()| runtime)
        .map_err(|_| io::Error::other("the system allows no further thread (ulimit -u, pids.max, TasksMax=)"))
}

/// The thread on which the daemon polls, so that nothing the service sends delays a scrape. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct PollThread {
    runtime: runtime::Handle,
    _running: oneshot::Sender<()>,
}

impl PollThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread or descriptors left.
    pub(super) fn start() -> io::Result<Self> {
        let (running, ended) = oneshot::channel::<()>();
        let (started, start) = std::sync::mpsc::channel();
        std::thread::Builder::new().name("polls".to_owned()).spawn(move || match runtime() {
            Ok(runtime) => {
                // The starter of the thread waits for this.
                let _ = started.send(Ok(runtime.handle().clone()));
                // Only ever dropped.
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            }
            Err(error) => drop(started.send(Err(error))),
        })?;
        let runtime = start.recv().map_err(io::Error::other)??;
        Ok(Self { runtime, _running: running })
    }

    /// Runs `work` on the thread. Dropping the returned future cancels it.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work, &self.runtime);
        match tasks.join_next().await {
            Some(joined) => resumed(joined).await,
            None => std::future::pending().await,
        }
    }
}

/// The result of a task. Propagates its panic. If its runtime has ended, so does the daemon, and this never completes.
pub(super) async fn resumed<T>(joined: Result<T, JoinError>) -> T {
    match joined {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => std::future::pending().await,
    }
}
