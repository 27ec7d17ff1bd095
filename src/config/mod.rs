//! The configuration: raw in, valid out.
//!
//! After [`load`] the program sees only checked values. All problems of a file are found before any is
//! reported; each names its key and says what to write instead.
//!
//! - [`keys`]: every key, declared once; defaults, environment names, suggestions and the example come from it.
//! - `file`: defaults, TOML file and environment laid over each other.
//! - [`value`]: one raw value at a time.
//! - `check`: the raw tree into a [`Config`].
//! - [`error`]: why a configuration was refused.
//! - [`explain`]: what is in force, and where it came from.
//! - [`example`](mod@example): the text of `config.example.toml`.
//! - [`demand`]: how many requests a configuration asks for.
//! - [`shard`]: which of several daemons polls what.

mod check;
pub mod demand;
pub mod error;
pub mod example;
pub mod explain;
mod file;
pub mod keys;
pub mod shard;
pub mod suggest;
pub mod value;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::secret::Secret;

pub use demand::{Load, Overload};
pub use error::{LoadError, Problem};
pub use explain::{Explained, Origin};
pub use shard::{Shard, ShardError};

use explain::variable_of;

/// What [`load`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Each key in force with its value (secrets redacted) and where it came from, in the order of
    /// [`keys::KEYS`].
    pub explained: Vec<Explained>,
}

/// Loads the configuration: defaults, over them the TOML file at `path`, over that `environment`
/// (`PDS_EXPORTER__API__BASE_URL` and so on; other names are ignored). `taken_labels` are the label names of the
/// info families, which a configured label must not repeat.
///
/// # Errors
/// Where the file can't be read or is no TOML; otherwise with all problems together.
pub fn load(
    path: &Path,
    environment: impl IntoIterator<Item = (String, String)>,
    taken_labels: &[&str],
) -> Result<Loaded, LoadError> {
    load_layers(file::read(path)?, Some(path), environment, Some(taken_labels))
}

/// Loads the configuration from the text of a file named `path`, which need not exist; the environment has no say.
///
/// # Errors
/// As [`load`].
pub fn load_text(path: &Path, text: &str, taken_labels: &[&str]) -> Result<Loaded, LoadError> {
    load_layers(file::parse(path, text)?, Some(path), [], Some(taken_labels))
}

/// Loads what there is without a configuration file: defaults, over them `environment`. It has no projects; for a
/// program that is told elsewhere what to ask about.
///
/// # Errors
/// With all problems together.
pub fn load_without_file(
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, LoadError> {
    load_layers(config::Map::new(), None, environment, None).map(|loaded| loaded.config)
}

fn load_layers(
    values: config::Map<String, config::Value>,
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
    taken_labels: Option<&[&str]>,
) -> Result<Loaded, LoadError> {
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    let no_proxy = no_proxy(&environment);
    let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let raw = file::layers(values, environment)?;
    let mut config = check::check(&raw.values, folder, taken_labels, raw.problems)
        .map_err(|problems| LoadError::Problems { file: file.map(Path::to_owned), problems })?;
    config.api.no_proxy = no_proxy;
    Ok(Loaded { config, explained: explain::explain(&raw.values) })
}

/// The one variable that is no key of ours: every program behind a proxy heeds it, in either spelling.
fn no_proxy(environment: &[(String, String)]) -> Option<String> {
    let found = environment.iter().find(|(name, _)| name.eq_ignore_ascii_case("no_proxy"));
    found.map(|(_, value)| value.clone())
}

/// The whole configuration in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How the service is reached.
    pub api: Api,
    /// What is asked, and how often.
    pub poll: Poll,
    /// Exact counters from consecutive ranges.
    pub accounting: Accounting,
    /// Where counters survive a restart; `None` keeps them in memory.
    pub state_path: Option<PathBuf>,
    /// The least severe messages that are logged; `None` leaves it to the command line.
    pub log_level: Option<Level>,
    /// The projects, each once.
    pub projects: Vec<Project>,
}

/// `[log]`: severity of log messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// A bug, or nothing works.
    Error,
    /// A person may have to do something.
    Warn,
    /// State changes: started, reloaded, recovered.
    Info,
    /// Each poll and scrape.
    Debug,
    /// Each step of each request, the libraries' included; never a token.
    Trace,
}

impl Level {
    /// The level that `word`, one of [`keys::LEVELS`], names.
    fn from_word(word: &str) -> Option<Self> {
        clap::ValueEnum::from_str(word, false).ok()
    }
}

/// `[api]`: the service and how gently it is treated.
#[derive(Clone, Debug, PartialEq)]
pub struct Api {
    /// http or https; may carry a path, never a query, fragment or credentials.
    pub base_url: Url,
    /// The default service account; `None` only where every project has one of its own.
    pub token: Option<TokenSource>,
    /// The whole request, body included.
    pub timeout: Duration,
    /// Name look-up, TCP and TLS.
    pub connect_timeout: Duration,
    /// Requests under way at once, over all targets.
    pub max_concurrent_requests: NonZeroU32,
    /// Requests a second, over all targets; `None` is no limit.
    pub max_requests_per_second: Option<NonZeroU32>,
    /// The largest reply that is read, in bytes after decompression.
    pub max_response_bytes: u64,
    /// Further tries of one request inside one poll.
    pub max_retries: u32,
    /// Trust anchors beyond the built-in ones (PEM).
    pub ca_file: Option<PathBuf>,
    /// An http(s) proxy.
    pub proxy_url: Option<Url>,
    /// Hosts that are reached without the proxy, as the variable `NO_PROXY` has them.
    pub no_proxy: Option<String>,
    /// Names of the metrics calls' query parameters.
    pub query_names: QueryNames,
}

/// Where a bearer token comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenSource {
    /// Given in the configuration or the environment.
    Inline(Secret),
    /// A file, read again whenever it changes.
    File(PathBuf),
}

/// `[api.query_names]`: sections 4.4 and 4.5 of the interface leave these names open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryNames {
    /// Start of the range.
    pub start: String,
    /// End of the range.
    pub end: String,
    /// Container filter.
    pub container: String,
    /// Data resolution.
    pub resolution: String,
}

impl Default for QueryNames {
    fn default() -> Self {
        let name = str::to_owned;
        Self {
            start: name("start"),
            end: name("end"),
            container: name("container_id"),
            resolution: name("resolution"),
        }
    }
}

/// `[poll]`: the rhythm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Between polls of response time and of run execution time.
    pub interval: Duration,
    /// Between polls of app, volume alerts, domains and projects.
    pub settings_interval: Duration,
    /// Trailing ranges shown as gauges; at least one, each once, whole seconds.
    pub windows: Vec<Duration>,
    /// How far behind now every range ends.
    pub settle: Duration,
    /// Data resolution of the metrics calls.
    pub resolution: Resolution,
    /// After that long without success a target's series vanish (never sooner than 3 intervals).
    pub stale_after: Duration,
}

/// Section 4.4, data resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Resolution {
    /// The service's default; nothing is sent.
    #[default]
    Standard,
    /// More data points.
    Medium,
    /// Most data points.
    High,
}

impl Resolution {
    /// The resolution that `word`, one of [`keys::RESOLUTIONS`], names.
    fn from_word(word: &str) -> Self {
        match word {
            "medium" => Self::Medium,
            "high" => Self::High,
            _ => Self::Standard,
        }
    }

    /// The word the interface gives it, `None` for the default, which is not sent.
    #[must_use]
    pub fn as_sent(self) -> Option<&'static str> {
        match self {
            Self::Standard => None,
            Self::Medium => Some("medium"),
            Self::High => Some("high"),
        }
    }
}

/// `[accounting]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounting {
    /// Whether counters are kept at all.
    pub enabled: bool,
    /// Ranges are aligned to whole steps of UTC; whole seconds, divides a day.
    pub step: Duration,
    /// After an outage, ask back this far.
    pub max_catch_up: Duration,
}

/// One `[[projects]]` entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The project's id in the service's paths.
    pub id: Arc<str>,
    /// Its own service account, if it has one.
    pub token: Option<TokenSource>,
    /// Labels for the info series of the project and its apps.
    pub labels: Vec<(String, String)>,
    /// Its apps, each once.
    pub apps: Vec<App>,
    /// Whether its own resources are polled here; another shard polls them where not.
    pub polled: bool,
}

/// One app of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// The app's id in the service's paths.
    pub id: Arc<str>,
    /// Overrides [`Poll::interval`].
    pub interval: Option<Duration>,
    /// Containers whose windows are shown beside the app's own.
    pub containers: Vec<Arc<str>>,
    /// Labels for the app's info series, the project's included where not overridden.
    pub labels: Vec<(String, String)>,
}
