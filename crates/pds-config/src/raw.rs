//! The raw configuration: its tables, the position of each value for error messages, and what reading it finds.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

use config::{Map, Value, ValueKind};

use super::error::Problem;
use super::explain::{Explained, Origin, redacted_toml};
use super::key::{Key, Kind, as_written, environment_name, join, unknown_key_message};

/// The `[[projects]]` of an included file.
#[derive(Debug)]
pub(super) struct Included {
    /// The file.
    pub(super) path: PathBuf,
    /// The value of `projects`.
    pub(super) projects: Value,
}

/// The key `name` of the included file at `path`, as shown to the user.
pub(super) fn key_in(path: &Path, name: &str) -> String {
    format!("{}: {name}", path.display())
}

/// Results of reading a configuration.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// All problems so far.
    pub(super) problems: Vec<Problem>,
    /// Patterns of `include` that match no file.
    pub(super) warnings: Vec<String>,
    /// The keys in force so far.
    pub(super) explained: Vec<Explained>,
    /// The declared keys so far; `None` if nobody wants them.
    pub(super) keys: Option<Vec<Key>>,
}

/// Shared by everything that reads one configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared<'a> {
    /// The folder of the file; relative paths start there.
    pub(super) folder: &'a Path,
    /// The values that the environment sets, by key.
    pub(super) environment: &'a Map<String, Value>,
    /// Label names that configured labels must not use; `None` if no projects are read.
    pub(super) taken_labels: Option<&'a [&'a str]>,
    /// The included files.
    pub(super) included: &'a [Included],
    /// Results so far.
    pub(super) found: &'a RefCell<Found>,
}

/// A table of the raw configuration.
#[derive(Debug)]
pub(super) struct Table<'a> {
    /// Its key as shown to the user: `projects[0]`; empty at the top.
    pub(super) key: String,
    values: Option<&'a Map<String, Value>>,
    /// The names that rows read: the keys that the table may have.
    known: RefCell<Vec<&'static str>>,
    /// Shared state.
    pub(super) shared: Shared<'a>,
}

impl<'a> Table<'a> {
    /// The table `values`, shown to the user as `key`; without values if the section is missing.
    pub(super) fn new(key: String, values: Option<&'a Map<String, Value>>, shared: Shared<'a>) -> Self {
        Self { key, values, known: RefCell::default(), shared }
    }

    /// The value of `name`, if it is set: that of the environment, or of the table.
    pub(super) fn get(&self, name: &'static str) -> Option<&'a Value> {
        let mut known = self.known.borrow_mut();
        if !known.contains(&name) {
            known.push(name);
        }
        let variable = self.shared.environment.get(&join(&self.key, name));
        variable.or_else(|| self.values?.get(name))
    }

    /// Refuses the keys that no row reads.
    pub(super) fn refuse_unknown(&self) {
        let known = self.known.borrow();
        let names = self.values.into_iter().flat_map(Map::keys);
        for name in names.filter(|name| !known.contains(&name.as_str())) {
            let key = join(&self.key, &as_written(name));
            let message = unknown_key_message(name, &known, self.key.contains('['));
            Position { key, variable: None, shared: self.shared }.refuse::<()>(message);
        }
    }

    /// The position of `name`.
    pub(super) fn position(&self, name: &'static str) -> Position<'a> {
        let key = join(&self.key, name);
        let variable = self.shared.environment.get(&key).and(environment_name(&key));
        Position { key, variable, shared: self.shared }
    }

    /// The table at `name`; empty if there is none.
    pub(super) fn inner(&self, name: &'static str) -> Self {
        let values = match self.get(name).map(|value| &value.kind) {
            Some(ValueKind::Table(table)) => Some(table),
            _ => None,
        };
        Self::new(join(&self.key, name), values, self.shared)
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

impl<'a> Position<'a> {
    /// Records a problem; returns `None`.
    pub(super) fn refuse<T>(&self, message: impl Into<String>) -> Option<T> {
        let mut message = message.into();
        if let Some(variable) = &self.variable {
            message.push_str(&format!(" (set by {variable})"));
        }
        self.shared.found.borrow_mut().problems.push(Problem { key: self.key.clone(), message });
        None
    }

    /// Returns the value, or records the problem and returns `None`.
    pub(super) fn check<T>(&self, result: Result<T, String>) -> Option<T> {
        result.map_or_else(|message| self.refuse(message), Some)
    }

    /// Explains the value `raw`, perhaps a default, unless it is a list with tables: their keys are explained one by one.
    pub(super) fn explain(&self, raw: &Value, is_default: bool, kind: &Kind, help: &'static str) {
        let origin = match self.variable {
            _ if is_default => Origin::Default,
            Some(_) => Origin::Environment,
            None => Origin::File,
        };
        if !has_table(raw) {
            self.shared.found.borrow_mut().explained.push(Explained {
                key: self.key.clone(),
                value: redacted_toml(raw, kind),
                origin,
                variable: self.variable.clone(),
                help: Cow::Borrowed(help),
            });
        }
    }

    /// The position of a list's item.
    pub(super) fn item(&self, index: usize) -> Self {
        Self { key: format!("{}[{index}]", self.key), ..self.clone() }
    }

    /// The position of a table's member.
    pub(super) fn member(&self, name: &str) -> Self {
        Self { key: join(&self.key, name), ..self.clone() }
    }

    /// The table `values` at this position.
    pub(super) fn table(&self, values: &'a Map<String, Value>) -> Table<'a> {
        Table::new(self.key.clone(), Some(values), self.shared)
    }
}

/// Whether `raw` is a list that contains a table.
pub(super) fn has_table(raw: &Value) -> bool {
    matches!(&raw.kind, ValueKind::Array(items) if items.iter().any(|item| matches!(item.kind, ValueKind::Table(_))))
}
