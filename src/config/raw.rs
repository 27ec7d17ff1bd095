//! The raw configuration: its tables, and the position of each value for error messages.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use config::{Map, Value, ValueKind};

use super::error::Problem;
use super::key::join;
use super::origin::variable_of;

/// The `[[projects]]` of an included file.
#[derive(Debug)]
pub(super) struct Included {
    /// The file.
    pub(super) path: PathBuf,
    /// The value of `projects`.
    pub(super) projects: Value,
}

impl Included {
    /// The key of the projects, as shown to the user: file and key.
    pub(super) fn key(&self) -> String {
        key_in(&self.path, "projects")
    }
}

/// The key `name` of the file at `path`, as shown to the user.
pub(super) fn key_in(path: &Path, name: &str) -> String {
    format!("{}: {name}", path.display())
}

/// Shared by everything that reads one configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared<'a> {
    /// The folder of the file; relative paths start there.
    pub(super) folder: &'a Path,
    /// Label names that configured labels must not use; `None` if no projects are read.
    pub(super) taken_labels: Option<&'a [&'a str]>,
    /// The included files.
    pub(super) included: &'a [Included],
    /// All problems so far.
    pub(super) problems: &'a RefCell<Vec<Problem>>,
}

/// A table of the raw configuration.
#[derive(Debug)]
pub(super) struct Table<'a> {
    /// Its key as shown to the user: `projects[0]`; empty at the top.
    key: String,
    values: Option<&'a Map<String, Value>>,
    /// Shared state.
    pub(super) shared: Shared<'a>,
}

impl<'a> Table<'a> {
    /// The table of all values.
    pub(super) fn top(values: &'a Map<String, Value>, shared: Shared<'a>) -> Self {
        Self::new(String::new(), values, shared)
    }

    /// The table `values`, shown to the user as `key`.
    pub(super) fn new(key: String, values: &'a Map<String, Value>, shared: Shared<'a>) -> Self {
        Self { key, values: Some(values), shared }
    }

    /// The value of `name`, if it is set.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.values?.get(name)
    }

    /// The position of `name`.
    pub(super) fn position(&self, name: &str) -> Position<'a> {
        let key = join(&self.key, name);
        let variable = self.get(name).and_then(|value| variable_of(&key, value));
        Position { key, variable, shared: self.shared }
    }

    /// The table at `name`; without values where there is none.
    pub(super) fn inner(&self, name: &str) -> Self {
        let values = match self.get(name).map(|value| &value.kind) {
            Some(ValueKind::Table(table)) => Some(table),
            _ => None,
        };
        Self { key: join(&self.key, name), values, shared: self.shared }
    }
}

/// The position of a value in the configuration; errors name it.
#[derive(Clone, Debug)]
pub(super) struct Position<'a> {
    /// The key, as shown to the user.
    pub(super) key: String,
    /// The environment variable that set it.
    pub(super) variable: Option<String>,
    /// Shared state.
    pub(super) shared: Shared<'a>,
}

impl Position<'_> {
    /// Records a problem; returns `None`.
    pub(super) fn refuse<T>(&self, message: impl Into<String>) -> Option<T> {
        let mut message = message.into();
        if let Some(variable) = &self.variable {
            message.push_str(&format!(" (set by {variable})"));
        }
        self.shared.problems.borrow_mut().push(Problem { key: self.key.clone(), message });
        None
    }

    /// Returns the value, or records the problem and returns `None`.
    pub(super) fn check<T>(&self, result: Result<T, String>) -> Option<T> {
        result.map_or_else(|message| self.refuse(message), Some)
    }

    /// The position of a list's item.
    pub(super) fn item(&self, index: usize) -> Self {
        Self { key: format!("{}[{index}]", self.key), ..self.clone() }
    }

    /// The position of a table's member.
    pub(super) fn member(&self, name: &str) -> Self {
        Self { key: join(&self.key, name), ..self.clone() }
    }
}
