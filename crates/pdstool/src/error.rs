//! Why a command failed, and its exit code.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use pds_client::{FetchError, Reason};
use pds_config::LoadError;
use pds_core::error_chain::with_sources;
use pds_diagnosis::cause::{GATEWAY_REFUSES, WRONG_ADDRESS};
use pds_http::BuildError;
use pds_interface::{DecodeError, RuleError};
use pds_web::webconfig::WebConfigError;

/// The exit codes, as the help shows them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the service refused or failed, or another error
  2    usage error, or arguments that break a rule of the interface; nothing was sent
  3    no such project, app or domain (404)
  4    no token, or the service refuses it (401, 403)
  78   invalid configuration
  130  interrupted";

/// The result of a command, or of a part of it.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

/// Why a command failed. The causes follow its text.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// Invalid arguments.
    #[error("{0}")]
    Usage(String),
    /// Arguments that break a rule of the interface.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The configuration cannot be read or used.
    #[error(transparent)]
    Config(LoadError),
    /// There is no configuration file.
    #[error("{0}; create one with pdstool init, or use --config.file")]
    NoConfig(LoadError),
    /// The configuration is not valid without the environment of the exporter, which another user runs.
    #[error(
        "{0}\nthe running exporter may set keys in its environment: run pdstool as its user, or set the same variables"
    )]
    HiddenEnvironment(LoadError),
    /// The web configuration cannot be used.
    #[error("{} is no valid web configuration", .0.display())]
    Web(PathBuf, #[source] WebConfigError),
    /// The client cannot be built from the configuration.
    #[error(transparent)]
    Client(#[from] BuildError),
    /// The request got no usable reply.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The list of projects returns 404, so the address is wrong unless another call succeeds; with the remedy.
    #[error("{says}: {0}; {1}", says = WRONG_ADDRESS.says)]
    NoList(FetchError, String),
    /// The reply covers another range than requested.
    #[error("{0}")]
    RangeIgnored(String),
    /// A successful reply without the result of its call.
    #[error("{said}")]
    Reply {
        /// The failure in one sentence.
        said: String,
        /// Why.
        source: DecodeError,
    },
    /// The command ended without success; any details were printed.
    #[error("{message}")]
    Failed {
        /// The failure in one sentence.
        message: String,
        /// The exit code.
        code: u8,
    },
    /// The operating system refuses an operation.
    #[error("{doing}")]
    System {
        /// The attempt: "cannot watch for signals".
        doing: Cow<'static, str>,
        /// Why.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
}

impl From<LoadError> for ToolError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Missing { .. } => Self::NoConfig(error),
            error => Self::Config(error),
        }
    }
}

impl From<DecodeError> for ToolError {
    fn from(source: DecodeError) -> Self {
        let said = "the reply cannot be used".to_owned();
        match &source {
            DecodeError::WebPage(_) => Self::failed(format!("{said}: {source}. {}", GATEWAY_REFUSES.remedy)),
            _ => Self::Reply { said, source },
        }
    }
}

impl ToolError {
    /// A failure with this sentence.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), code: 1 }
    }

    /// The error of an attempt such as "cannot listen".
    pub fn system(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { doing: doing.into(), source }
    }

    /// The error of an attempt, such as "cannot write", at the file at `path`.
    pub fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let doing = format!("{doing} {}", path.display()).into();
        move |source| Self::System { doing, source }
    }

    /// Why, without the request that was sent.
    pub fn reason(&self) -> String {
        match self {
            Self::Fetch(error) => with_sources(&error.reason),
            error => with_sources(error),
        }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Rule(_) => 2,
            Self::Config(_)
            | Self::NoConfig(_)
            | Self::HiddenEnvironment(_)
            | Self::Web(..)
            | Self::Client(_) => 78,
            Self::Fetch(error) if error.is_not_found() => 3,
            Self::Fetch(error) if error.is_unauthorized() => 4,
            Self::Fetch(FetchError { reason: Reason::Credentials(_), .. }) => 4,
            Self::Failed { code, .. } => *code,
            _ => 1,
        }
    }
}
