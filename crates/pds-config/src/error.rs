//! Why a configuration was refused.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("{key}: {message}")]
pub struct Problem {
    /// The key, as `projects[0].apps[1].id` (counted from 0), or the name of an environment variable.
    pub key: String,
    /// The problem and the remedy. Never holds a secret.
    pub message: String,
}

/// Why a configuration could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file does not exist.
    #[error("there is no configuration file {}; config.example.toml shows how to write one", path.display())]
    Missing {
        /// Its path.
        path: PathBuf,
    },
    /// The file exists but cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not valid TOML. The message never shows the file's text, which may hold a token.
    #[error("{}:{line}:{column}: not valid TOML: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
        /// The problem.
        message: String,
    },
    /// Keys or values are not valid.
    #[error("the configuration {}is not valid:\n{}", named(file.as_deref()), lines(problems))]
    Problems {
        /// The file, if any. Problems name the environment variables that override it.
        file: Option<PathBuf>,
        /// All problems, sorted by key; displayed one per line.
        problems: Vec<Problem>,
    },
}

fn named(file: Option<&Path>) -> String {
    file.map(|file| format!("{} ", file.display())).unwrap_or_default()
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}
