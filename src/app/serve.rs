//! The daemon as the web server sees it.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::catalogue::Format;
use crate::config::shard::{Shard, ShardError};
use crate::config::{self, Loaded};
use crate::error_chain::with_sources;
use crate::status;
use crate::store::{self, Coding, Filter};
use crate::web::{self, BoxFuture, Encoding, Page};

use super::daemon::Handle;
use super::flags::Flags;
use super::logging::LogLevel;

/// A running daemon with what it takes to load its configuration again. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Served {
    handle: Handle,
    status: status::Source,
    /// `None` for the demo, which has no configuration to load.
    source: Option<Arc<Source>>,
    /// Whose level a new configuration may change.
    log: Option<LogLevel>,
    quit: Arc<Notify>,
}

/// Where the configuration comes from.
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    environment: Vec<(String, String)>,
    state_path: Option<PathBuf>,
    shard: Shard,
}

impl Source {
    /// What the flags and the environment say.
    ///
    /// # Errors
    /// Where there is no such shard.
    pub fn new(flags: &Flags, environment: Vec<(String, String)>) -> Result<Self, ShardError> {
        let shard = Shard::new(flags.shard_index, flags.shard_count)?;
        Ok(Self { path: flags.config_file.clone(), environment, state_path: flags.state_path.clone(), shard })
    }

    /// Loads the configuration.
    ///
    /// # Errors
    /// As [`config::load`].
    pub fn load(&self) -> Result<Loaded, config::LoadError> {
        let mut loaded = config::load(&self.path, self.environment.iter().cloned())?;
        if let Some(path) = &self.state_path {
            loaded.config.state.path = Some(path.clone());
        }
        loaded.config = loaded.config.shard(self.shard);
        if let Some(overload) = loaded.config.requests_per_minute().exceeds(&loaded.config.api) {
            tracing::warn!("{overload}");
        }
        Ok(loaded)
    }
}

impl Served {
    /// `handle`'s daemon, whose model for people is `status`, loading its configuration from `source`.
    #[must_use]
    pub fn new(handle: Handle, status: status::Source, source: Option<Source>) -> Self {
        Self { handle, status, source: source.map(Arc::new), log: None, quit: Arc::default() }
    }

    /// With a log whose level follows the configuration.
    #[must_use]
    pub fn with_log(self, log: Option<LogLevel>) -> Self {
        Self { log, ..self }
    }

    /// Completes when somebody has asked to quit.
    pub async fn quit_asked(&self) {
        self.quit.notified().await;
    }

    /// Loads the configuration again and follows it. A problem changes nothing; it is logged, and a metric says so.
    ///
    /// # Errors
    /// All problems, as text.
    pub async fn load_again(&self) -> Result<(), String> {
        let telemetry = &self.handle.context().telemetry;
        web::notify::reloading();
        let result = self.follow().await;
        web::notify::ready();
        telemetry.config_loaded(result.is_ok().then(|| self.handle.context().clock.now()));
        match &result {
            Ok(()) => tracing::info!("the configuration was loaded again"),
            Err(problems) => {
                tracing::error!(problems, "the configuration was not loaded; the old one stays in force")
            }
        }
        result
    }
}

impl Served {
    async fn follow(&self) -> Result<(), String> {
        let Some(source) = &self.source else {
            return Err("the demo has no configuration file to load".to_owned());
        };
        let loaded = source.load().map_err(|error| with_sources(&error))?;
        let plan = self.handle.reconfigure(loaded.config).await.map_err(|error| with_sources(&error))?;
        if let Some(log) = &self.log {
            log.follow(plan.config.log.level);
        }
        self.status.follow(plan, loaded.explained);
        Ok(())
    }
}

impl web::Backend for Served {
    fn metrics<'a>(&'a self, format: Format, encoding: Encoding, filter: &'a Filter) -> BoxFuture<'a, Page> {
        Box::pin(async move {
            // Any other encoding is made on the way out.
            let (coding, encoding) = match encoding {
                Encoding::Gzip => (Coding::Gzip, Encoding::Gzip),
                _ => (Coding::Identity, Encoding::Identity),
            };
            let body = match self.handle.pages().page(format, coding, filter).await {
                store::PageBody::Whole(parts) => web::ResponseBody::Parts(parts.into()),
                store::PageBody::Pieces(pieces) => web::ResponseBody::Channel(pieces),
            };
            Page { encoding, body }
        })
    }

    fn ready(&self) -> Result<(), String> {
        if self.handle.is_ready() { Ok(()) } else { Err("not every target was asked yet".to_owned()) }
    }

    fn reload(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.load_again())
    }

    fn quit(&self) {
        self.quit.notify_one();
    }
}
