//! The daemon's side of the web server: readiness, reload, quit.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::{Mutex, Notify};

use crate::status::{self, Refused};
use crate::store::Filter;
use pds_config::{Config, Explained, LoadError, Loaded, Shard};
use pds_core::error_chain::with_sources;
use pds_ledger::{Observer as _, Opening, StateError};
use pds_web::{BoxFuture, Encoding, Negotiated, PageRequest, Response};

use super::daemon::{Handle, resumed};
use super::logging::RunningLog;
use pds_config::flags::Flags;

/// How long changed files must stay unchanged, or the interval of the checks if that is shorter.
const SETTLE: Duration = Duration::from_secs(1);

/// A running daemon, with everything that reloads its configuration. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Served {
    handle: Handle,
    status: status::Source,
    /// `None` for the demo, which has no configuration to load.
    source: Option<Arc<ConfigSource>>,
    /// The log, whose level the configuration sets.
    log: Option<RunningLog>,
    quit: Arc<Notify>,
    /// Checksum of the files at the last attempt to load them. Held by a reload from before it reads the files until
    /// their configuration is in force, so that reloads do not overtake each other.
    attempted: Arc<Mutex<u64>>,
}

/// The source of the configuration, and the flags that override its keys.
#[derive(Clone, Debug)]
pub struct ConfigSource {
    path: PathBuf,
    environment: Vec<(String, String)>,
    state_path: Option<PathBuf>,
    shard: Shard,
}

impl ConfigSource {
    /// The file and the overrides that `flags` name, and the `environment`.
    pub fn new(flags: &Flags, environment: Vec<(String, String)>) -> Self {
        Self {
            path: flags.config_file.clone(),
            environment,
            state_path: flags.state_path.clone(),
            shard: Shard { index: flags.shard_index, count: flags.shard_count },
        }
    }

    /// Applies the flags to a configuration.
    pub fn override_keys(&self, loaded: Loaded) -> Loaded {
        let Loaded { mut config, mut explained } = loaded;
        if let Some(path) = &self.state_path {
            config.state.path = Some(path.clone());
            for row in explained.iter_mut().filter(|row| row.key == "state.path") {
                row.override_with("--state.path", &path.to_string_lossy());
            }
        }
        Loaded { config: config.shard(self.shard), explained }
    }

    /// The checksum of the files, and the configuration in them. The checksum is taken first, so that a change while they
    /// are read is noticed later.
    pub fn read(&self) -> (u64, Result<Loaded, LoadError>) {
        (self.checksum(), self.load())
    }

    /// Loads the configuration.
    ///
    /// # Errors
    /// As [`pds_config::load`], and if CA files cannot be used.
    pub fn load(&self) -> Result<Loaded, LoadError> {
        let loaded = pds_config::load(&self.path, self.environment.iter().cloned())?;
        let loaded = self.override_keys(loaded);
        loaded.config.check_ca_files()?;
        for warning in loaded.config.warnings() {
            tracing::warn!("{warning}");
        }
        Ok(loaded)
    }

    /// Checksum of the files that [`ConfigSource::load`] reads.
    pub fn checksum(&self) -> u64 {
        pds_config::checksum(&self.path, self.environment.iter().cloned())
    }
}

impl Served {
    /// The daemon of `handle`, whose status page is `status`, and which reloads its configuration from a source; the
    /// checksum is that of the files when they were [read](ConfigSource::read). The configuration sets the level of `log`.
    pub fn new(
        handle: Handle,
        status: status::Source,
        source: Option<(ConfigSource, u64)>,
        log: Option<RunningLog>,
    ) -> Self {
        let (source, attempted) = source.unzip();
        Self {
            handle,
            status,
            source: source.map(Arc::new),
            attempted: Arc::new(Mutex::new(attempted.unwrap_or_default())),
            log,
            quit: Arc::default(),
        }
    }

    /// Completes when a client has requested the daemon to quit.
    pub async fn quit_requested(&self) {
        self.quit.notified().await;
    }

    /// Reloads the configuration. A problem changes nothing; it is logged, and a metric shows it. A reload that has begun
    /// is finished even if nobody waits for it.
    ///
    /// # Errors
    /// All problems, as text.
    pub async fn reload(&self) -> Result<(), String> {
        let served = self.clone();
        resumed(tokio::spawn(async move { served.reload_locked().await }).await).await
    }

    async fn reload_locked(&self) -> Result<(), String> {
        let mut attempted = self.attempted.lock().await;
        let telemetry = &self.handle.context.telemetry;
        pds_web::systemd::reloading();
        let result = self.read_and_apply(&mut attempted).await;
        pds_web::systemd::ready();
        let now = self.handle.context.clock.now();
        let refused = result.as_ref().err().map(|problems| Refused { at: now, problems: problems.clone() });
        self.status.reloaded(refused);
        telemetry.config_loaded(result.is_ok().then_some(now));
        // The next page shows the result of the reload.
        self.handle.context.store.touch();
        match &result {
            Ok(()) => tracing::info!("the configuration was reloaded"),
            Err(problems) => {
                tracing::error!(
                    problems,
                    "the configuration was not reloaded; the previous one stays in force"
                )
            }
        }
        result
    }

    /// Waits until a slow state file is open, and then begins to count with the current configuration. Returns at once
    /// if the file was open at the start.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub async fn count_after(&self, opening: Option<Opening>) -> Result<(), StateError> {
        let Some(opening) = opening else { return Ok(()) };
        // The daemon ended before the folder answered.
        let Ok(opened) = opening.await else { return Ok(()) };
        opened?;
        let _one_at_a_time = self.attempted.lock().await;
        let config = Config::clone(&self.handle.plan().await.config);
        // A file that the configuration names may have become unusable since.
        match self.apply(config, self.status.configuration().0.to_vec()).await {
            Ok(()) => {
                tracing::info!("the state folder answers; counting begins");
                self.handle.context.telemetry.committed(Ok(()));
            }
            Err(problems) => {
                tracing::error!(problems, "counting begins with the next reload");
                self.handle.context.telemetry.committed(Err(&problems));
            }
        }
        Ok(())
    }

    /// Checks the files every `interval`, for ever, and reloads the configuration when they have changed. A change
    /// counts once two checks find the same files, so that files are not read while they are being written.
    pub async fn follow_files(&self, interval: Duration) {
        let (Some(source), false) = (&self.source, interval.is_zero()) else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(interval).await;
            if self.has_changed(source, interval.min(SETTLE)).await {
                tracing::info!("the configuration files have changed");
                // The reload itself logs its outcome and sets the metric.
                drop(self.reload().await);
            }
        }
    }

    /// Whether the files differ from those of the last attempt, and stay so for `settle`.
    async fn has_changed(&self, source: &Arc<ConfigSource>, settle: Duration) -> bool {
        let attempted = *self.attempted.lock().await;
        let Some(now) = checksum(source).await.filter(|now| *now != attempted) else { return false };
        tokio::time::sleep(settle).await;
        checksum(source).await == Some(now)
    }

    async fn read_and_apply(&self, attempted: &mut u64) -> Result<(), String> {
        let Some(source) = &self.source else {
            return Err("the demo has no configuration file to load".to_owned());
        };
        // The file of ten thousand apps is large, and a disk may be slow.
        let read = Arc::clone(source);
        let (checksum, loaded) = resumed(tokio::task::spawn_blocking(move || read.read()).await).await;
        *attempted = checksum;
        let Loaded { config, explained } = loaded.map_err(|error| with_sources(&error))?;
        self.apply(config, explained).await
    }

    async fn apply(&self, config: Config, explained: Vec<Explained>) -> Result<(), String> {
        let plan = self.handle.reconfigure(config).await.map_err(|error| with_sources(&error))?;
        if let Some(log) = &self.log {
            log.set_level(plan.config.log.level);
        }
        self.status.set_plan(plan, explained);
        Ok(())
    }
}

/// Checksum of the files. They are read on another thread because a disk may be slow. `None` if that thread is gone.
async fn checksum(source: &Arc<ConfigSource>) -> Option<u64> {
    let source = Arc::clone(source);
    tokio::task::spawn_blocking(move || source.checksum()).await.ok()
}

impl pds_web::Backend for Served {
    fn metrics(
        &self,
        asked: Negotiated,
        encoding: Encoding,
        request: PageRequest,
    ) -> BoxFuture<'_, Response> {
        Box::pin(async move {
            let filter = Filter::parse(request.raw_query());
            let fails = request.query("fail").is_some_and(|value| value == "1");
            if fails && self.handle.context.store.is_down(&filter) {
                let text = "no selected target can be polled\n";
                return Response::text(StatusCode::SERVICE_UNAVAILABLE, text);
            }
            match self.handle.pages.page(asked.format, encoding, &filter, request).await {
                Ok(page) => Response::metrics(asked, encoding, page),
                Err(error) => Response::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            }
        })
    }

    fn ready(&self) -> Result<(), String> {
        if self.handle.is_ready() { Ok(()) } else { Err("not every target has been polled yet".to_owned()) }
    }

    fn reload(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(Served::reload(self))
    }

    fn quit(&self) {
        self.quit.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;
    use pds_config::Origin;
    use pds_config::flags::CommandLine;

    #[test]
    fn a_flag_that_overrides_a_key_is_shown_as_its_origin() {
        let text = "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"t\"\n[[projects]]\nid = \"p\"\n";
        let row = |arguments: &[&str]| {
            let line = CommandLine::parse(arguments.iter().map(OsString::from)).unwrap();
            let loaded = pds_config::load_text(Path::new("x.toml"), text).unwrap();
            let loaded = ConfigSource::new(&line.flags, Vec::new()).override_keys(loaded);
            let row = loaded.explained.iter().find(|row| row.key == "state.path").unwrap().clone();
            (row.value, row.origin, row.variable)
        };
        assert_eq!(row(&["pds-exporter"]), ("\"\"".to_owned(), Origin::Default, None));
        assert_eq!(
            row(&["pds-exporter", "--state.path=/var/lib/counters"]),
            ("\"/var/lib/counters\"".to_owned(), Origin::Flag, Some("--state.path".to_owned()))
        );
    }
}
