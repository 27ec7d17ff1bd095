//! How commands reach the service: through the daemon's configuration, or two flags.

use std::path::{Path, PathBuf};

use std::sync::Arc;

use clap::Args;
use url::Url;

use pds_client::{Client, Unobserved};
use pds_core::clock::Clock;
use pds_exporter::app::flags::DEFAULT_CONFIG;
use pds_exporter::config::{self, Config};

use super::error::ToolError;

/// The environment, as pairs of name and value.
pub type Environment = Vec<(String, String)>;

/// The service's address and credentials.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Service")]
pub struct ServiceArgs {
    /// The daemon's configuration file: service, tokens, proxy and limits.
    #[arg(
        long = "config.file",
        value_name = "FILE",
        default_value = DEFAULT_CONFIG,
        conflicts_with = "base_url",
        global = true
    )]
    pub config_file: PathBuf,

    /// Address of the service, instead of a configuration file. PDS_EXPORTER__API__... variables still apply.
    #[arg(long = "base-url", value_name = "URL", value_parser = base_url, global = true)]
    pub base_url: Option<Url>,

    /// With --base-url: file with the token [default: the variable PDS_EXPORTER__API__TOKEN].
    #[arg(long = "token-file", value_name = "FILE", requires = "base_url", global = true)]
    pub token_file: Option<PathBuf>,
}

/// Parses the address of a service.
///
/// # Errors
/// If it is not a valid address.
pub fn base_url(text: &str) -> Result<Url, String> {
    config::value::url(&::config::Value::new(None, text))
}

/// A client of the service with its configuration.
#[derive(Clone, Debug)]
pub struct Service {
    /// The configuration in force.
    pub config: Config,
    /// Sends the requests.
    pub client: Client,
}

impl ServiceArgs {
    /// Loads the configuration that the flags name.
    ///
    /// # Errors
    /// If it is not valid.
    pub fn load(&self, environment: &Environment) -> Result<Config, ToolError> {
        let Some(base_url) = &self.base_url else { return load(&self.config_file, environment) };
        let mut environment = environment.clone();
        let mut set = |name: &str, value: String| {
            environment.retain(|(known, _)| known != name);
            environment.push((name.to_owned(), value));
        };
        set("PDS_EXPORTER__API__BASE_URL", base_url.to_string());
        if let Some(file) = &self.token_file {
            set("PDS_EXPORTER__API__TOKEN_FILE", file.display().to_string());
            environment.retain(|(name, _)| name != "PDS_EXPORTER__API__TOKEN");
        }
        Ok(config::load_without_file(environment)?)
    }

    /// Opens the service that the flags name.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn open(&self, environment: &Environment) -> Result<Service, ToolError> {
        Service::new(self.load(environment)?)
    }
}

/// Loads the configuration file at `path`.
///
/// # Errors
/// If it is not valid.
pub fn load(path: &Path, environment: &Environment) -> Result<Config, ToolError> {
    Ok(config::load(path, environment.iter().cloned())?.config)
}

impl Service {
    /// The service of `config`.
    ///
    /// # Errors
    /// If no client can be built for it.
    pub fn new(config: Config) -> Result<Self, ToolError> {
        let client = Client::new(&config.api, &config.accounts(), Arc::new(Unobserved), Clock::system())?
            .asking_again_after(config.poll.settings_interval);
        Ok(Self { config, client })
    }

    /// The given project, or the only one configured.
    ///
    /// # Errors
    /// If none is given and the configuration does not have exactly one.
    pub fn project(&self, given: Option<&str>) -> Result<String, ToolError> {
        project(&self.config, given)
    }
}

/// The given project, or the only one of `config`.
///
/// # Errors
/// If none is given and the configuration does not have exactly one.
pub fn project(config: &Config, given: Option<&str>) -> Result<String, ToolError> {
    match (given, &*config.projects) {
        (Some(project), _) => Ok(project.to_owned()),
        (None, [only]) => Ok(only.id.to_string()),
        (None, []) => {
            Err(ToolError::Usage("no project given; use --project or set PDSTOOL_PROJECT".to_owned()))
        }
        (None, several) => {
            let ids: Vec<&str> = several.iter().map(|project| &*project.id).collect();
            Err(ToolError::Usage(format!(
                "several projects are configured ({}); use --project",
                ids.join(", ")
            )))
        }
    }
}
