//! The configuration: raw in, valid out.
//!
//! After [`load`] the program sees only checked values. All problems are reported together, each with its key and what
//! to write instead.
//!
//! A key is one row of `sections` or `projects`: its type, reader with bounds, default, and help. Everything else about
//! it is derived: the struct's field, the environment variable, `config.example.toml`, the tables of the documentation,
//! the `/config` page, suggestions for misspelt keys.
//!
//! - `sections`, `state`, `projects`: the rows.
//! - `section`: how rows become a struct, its reading and its keys.
//! - `reader`, `selector`, `url`: which values a key takes.
//! - [`key`](mod@key): a key, and all of them, as declared by the rows.
//! - `raw`: the tables that are read, and where a value stands in them.
//! - `file`: reads the TOML file and the environment; `include`: further files with projects.
//! - `error`: why a configuration was refused.
//! - `explain`: the configuration in force, where each value came from, and the whole as a file.
//! - `demand`: the requests that a configuration needs.
//! - `warnings`: what is allowed, but hardly intended.
//! - [`shard`]: which of several daemons polls what.
//! - [`flags`]: the command line of the daemon; [`running`]: that of a running exporter.

mod demand;
mod error;
mod explain;
mod file;
pub mod flags;
mod include;
pub mod key;
mod projects;
mod raw;
mod reader;
pub mod running;
mod section;
mod sections;
mod selector;
pub mod shard;
mod state;
mod url;
mod warnings;

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;

pub use demand::{AppDemand, Demand, HEADROOM};
pub use error::{LoadError, Problem};
pub use explain::{Explained, Origin, toml};
pub use projects::{App, Objective, Project};
pub use reader::{MAX_DURATION, file_path};
pub use sections::{Accounting, Config, Log, Poll, Web};
pub use shard::Shard;
pub use state::State;
pub use url::{UrlTemplate, parse_url};

pub use pds_client::{Config as Api, TokenSource};
use pds_interface::taken_labels;

use key::Key;
use raw::{Found, Shared, Table};
use section::{Section as _, read_strictly};

/// The version of the programs, with the revision of the sources if it is known.
pub const VERSION: &str = env!("PDS_EXPORTER_VERSION");
/// The commit the programs are built from; empty if it is not known.
pub const REVISION: &str = env!("PDS_EXPORTER_BUILT_FROM");

/// Result of [`load`].
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Each key in force with its value (secrets redacted) and where it came from, in the order of [`key::all`].
    pub explained: Vec<Explained>,
}

/// Loads the configuration: defaults, overridden by the TOML file at `path`, overridden by `environment`
/// (`PDS_EXPORTER__API__BASE_URL` and so on; other names are ignored).
///
/// # Errors
/// If the file cannot be read or is not TOML; otherwise with all problems together.
pub fn load(
    path: &Path,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Loaded, LoadError> {
    load_layers(file::read(path)?, Some(path), environment)
}

/// Loads the configuration from the text of a file named `path`, which need not exist, without an environment.
///
/// # Errors
/// Same as [`load`].
pub fn load_text(path: &Path, text: &str) -> Result<Loaded, LoadError> {
    load_layers(file::parse(path, text)?, Some(path), [])
}

/// Loads defaults, overridden by `environment`. It has no projects: for a program that gets those elsewhere.
///
/// # Errors
/// With all problems together.
pub fn load_without_file(
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, LoadError> {
    load_layers(config::Map::new(), None, environment).map(|loaded| loaded.config)
}

fn load_layers(
    values: config::Map<String, config::Value>,
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Loaded, LoadError> {
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    let proxy_variables = proxy_variables(&environment);
    let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let mut found = Found::default();
    let environment = file::read_environment(environment, &mut found.problems);
    let include = environment.get("include").or_else(|| values.get("include"));
    // Without a file no projects are wanted.
    let taken_labels = file.map(|_| taken_labels());
    let included = file.map(|path| include::read(include, path, &mut found));
    let included = included.unwrap_or_default();
    let found = RefCell::new(found);
    let (environment, taken_labels) = (&environment, taken_labels.as_deref());
    let shared = Shared { folder, environment, taken_labels, included: &included, found: &found };
    let config = read_strictly::<Config>(&Table::new(String::new(), Some(&values), shared));
    let Found { mut problems, warnings, explained, .. } = found.into_inner();
    problems.sort();
    let (Some(mut config), true) = (config, problems.is_empty()) else {
        return Err(LoadError::Problems { file: file.map(Path::to_owned), problems });
    };
    config.api.proxy_variables = proxy_variables;
    config.include_warnings = warnings;
    Ok(Loaded { config, explained })
}

/// The keys of all rows. Reading a configuration without values declares them; what is missing there does not matter.
fn declared() -> Vec<Key> {
    let found = RefCell::new(Found { keys: Some(Vec::new()), ..Found::default() });
    let environment = &config::Map::new();
    let shared =
        Shared { folder: Path::new(""), environment, taken_labels: None, included: &[], found: &found };
    let _ = Config::read(&Table::new(String::new(), None, shared));
    found.into_inner().keys.unwrap_or_default()
}

/// A checksum of the configuration file at `path` and of all files it includes under this `environment`. It changes
/// when a file changes, appears, vanishes, or becomes unreadable. Reads all of them; a pipe is left for [`load`].
pub fn checksum(path: &Path, environment: impl IntoIterator<Item = (String, String)>) -> u64 {
    if !path.is_file() {
        return 0;
    }
    let values = file::read(path).unwrap_or_default();
    let environment = file::read_environment(environment, &mut Vec::new());
    let include = environment.get("include").or_else(|| values.get("include"));
    include::checksum(path, include)
}

/// The `variables` that may be the exporter's, whose names are Unicode. A value that is not is refused by [`load`].
pub fn environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(String, String)> {
    let variable = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    };
    variables.into_iter().filter_map(variable).collect()
}

/// The variables by which other programs choose a proxy, as far as they are set, in either case.
fn proxy_variables(environment: &[(String, String)]) -> Vec<String> {
    const NAMES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
    let is_one = |name: &str| NAMES.iter().any(|known| name.eq_ignore_ascii_case(known));
    let set = environment.iter().filter(|(name, value)| is_one(name) && !value.is_empty());
    set.map(|(name, _)| name.clone()).collect()
}

pds_core::worded! {
    /// Severity of a log message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
    pub enum Level {
        /// A bug, or nothing works.
        Error = "error",
        /// A person may have to do something.
        Warn = "warn",
        /// State changes: started, reloaded, recovered.
        Info = "info",
        /// Each poll and scrape.
        Debug = "debug",
        /// Each step of each request, the libraries' included, without frames of HTTP/2; never a token.
        Trace = "trace",
    }
}
