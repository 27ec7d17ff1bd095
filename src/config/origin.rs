//! Where a value came from: default, file, environment or command line.

use std::fmt;

use config::{Value, ValueKind};

use super::key::environment_name;

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Not set.
    Default,
    /// The configuration file.
    File,
    /// An environment variable.
    Environment,
    /// The command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        })
    }
}

impl Origin {
    /// The origin of `value`. The `config` crate records nothing for defaults, the path for a file, and "the environment"
    /// for variables. Merged tables lose their origin; their members keep it.
    pub(super) fn of(value: &Value) -> Self {
        match (value.origin(), &value.kind) {
            (None, ValueKind::Table(members)) => {
                let origins = members.values().map(Self::of);
                origins.reduce(|a, b| if a == Self::Environment { a } else { b }).unwrap_or(Self::Default)
            }
            (origin, _) => Self::named(origin),
        }
    }

    fn named(origin: Option<&str>) -> Self {
        match origin {
            None => Self::Default,
            Some("the environment") => Self::Environment,
            Some(_) => Self::File,
        }
    }
}

/// The variable that set the key at `path`, if `value` came from the environment.
pub(super) fn variable_of(path: &str, value: &Value) -> Option<String> {
    if Origin::of(value) != Origin::Environment {
        return None;
    }
    environment_name(path)
}
