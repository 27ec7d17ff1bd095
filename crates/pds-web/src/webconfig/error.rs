//! What can be wrong with a web configuration file, in the exporter toolkit's words where they are clear.

use std::io;
use std::path::PathBuf;

/// The first thing wrong with a web configuration file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebConfigError {
    /// A file cannot be read.
    #[error("cannot read {what} {}", path.display())]
    Read {
        /// The key that names it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not valid YAML of this format; the text holds no values, as they may be secret.
    #[error("{0}")]
    Yaml(String),
    /// A value that means nothing, misleads, or does not go with the others.
    #[error("{key}: {problem}")]
    Value {
        /// The key or section.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// Valid settings that TLS does not work with.
    #[error("tls_server_config: {problem}")]
    Tls {
        /// What is wrong.
        problem: &'static str,
        /// What rustls said.
        source: rustls::Error,
    },
    /// Client certificates cannot be verified.
    #[error("tls_server_config: the client CA cannot be used")]
    ClientCa(#[source] rustls::server::VerifierBuilderError),
}

impl WebConfigError {
    pub(super) fn value(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Value { key: key.into(), problem: problem.into() }
    }

    /// For a key of `tls_server_config`.
    pub(super) fn tls(key: &str, problem: impl Into<String>) -> Self {
        Self::value(format!("tls_server_config.{key}"), problem)
    }

    /// For `tls_server_config` as a whole.
    pub(super) fn section(problem: impl Into<String>) -> Self {
        Self::value("tls_server_config", problem)
    }
}
