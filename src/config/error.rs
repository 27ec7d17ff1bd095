//! Why a configuration was refused.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// One thing to change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The key, as `projects[0].apps[1].id` (counted from 0), or the name of an environment variable.
    pub key: String,
    /// What is wrong with it and what to write instead. Never holds a secret.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// Why a configuration could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// There is no such file.
    #[error("there is no configuration file {}; config.example.toml shows how to write one", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is there, but cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no TOML. The message never shows the text of the file, which may hold a token.
    #[error("{}:{line}:{column}: not valid TOML: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The layers could not be laid over each other: a mistake in the declared defaults.
    #[error("the declared defaults cannot be read")]
    Layers(#[from] config::ConfigError),
    /// The keys and values are not as they have to be.
    #[error("the configuration {}is not valid:\n{}", named(file.as_deref()), lines(problems))]
    Problems {
        /// The file, if any. What the environment has set over it is said with each problem.
        file: Option<PathBuf>,
        /// All problems, sorted by key; told one a line.
        problems: Vec<Problem>,
    },
}

impl LoadError {
    /// All that is to be changed; empty where the file could not be read as TOML.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Problems { problems, .. } => problems,
            _ => &[],
        }
    }
}

fn named(file: Option<&Path>) -> String {
    file.map(|file| format!("{} ", file.display())).unwrap_or_default()
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}
