//! Valid out: the raw tree becomes a [`Config`], or the list of everything that is wrong with it.
//!
//! - [`service`]: `[api]`, `[poll]`, `[accounting]`, `[state]`, `[log]`.
//! - [`projects`]: `[[projects]]`, their apps and labels.

mod projects;
mod service;

use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{Map, Value, ValueKind};

use super::error::Problem;
use super::keys::{Key, Kind};
use super::{Config, Level, TokenSource, value};
use crate::secret::Secret;

/// Checks `values` as a whole, after the problems that reading it already showed. Without `taken_labels` no projects
/// are wanted, and none are read.
///
/// # Errors
/// All problems, sorted by key.
pub(super) fn check(
    values: &Map<String, Value>,
    folder: &Path,
    taken_labels: Option<&[&str]>,
    problems: Vec<Problem>,
) -> Result<Config, Vec<Problem>> {
    let mut checker = Checker { folder, taken_labels: taken_labels.unwrap_or_default(), problems };
    let api = checker.api(&Section::top(values, "api"));
    let poll = checker.poll(&Section::top(values, "poll"));
    let accounting = checker.accounting(&Section::top(values, "accounting"));
    let state_path = checker.path(&Section::top(values, "state"), "path");
    let log_level = checker.word(&Section::top(values, "log"), "level").and_then(Level::from_word);
    let projects = if taken_labels.is_some() { checker.projects(values) } else { Vec::new() };
    checker.every_project_has_a_token(values);
    let mut problems = checker.problems;
    problems.sort();
    match (api, poll, accounting) {
        (Some(api), Some(poll), Some(accounting)) if problems.is_empty() => {
            Ok(Config { api, poll, accounting, state_path, log_level, projects })
        }
        _ => Err(problems),
    }
}

/// A table of the tree and where it stands.
#[derive(Debug)]
struct Section<'a> {
    /// As shown to the user: `projects[0]`.
    shown: String,
    /// As declared: `projects[]`.
    declared: &'static str,
    /// Its values; `None` where there is no such table.
    values: Option<&'a Map<String, Value>>,
}

impl<'a> Section<'a> {
    fn top(values: &'a Map<String, Value>, name: &'static str) -> Self {
        Self { shown: name.to_owned(), declared: name, values: table(values.get(name)) }
    }

    fn inner(&self, name: &str, declared: &'static str) -> Self {
        Self { shown: self.key(name), declared, values: table(self.get(name)) }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.values?.get(name)
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.shown)
    }

    fn kind(&self, name: &str) -> Option<Kind> {
        Key::find(&format!("{}.{name}", self.declared)).map(|key| key.kind)
    }
}

fn table(value: Option<&Value>) -> Option<&Map<String, Value>> {
    match &value?.kind {
        ValueKind::Table(table) => Some(table),
        _ => None,
    }
}

/// Collects problems while values are read. Every reader answers `None` where the key is not set and where it
/// is wrong; the second is noted, so that nothing is built from what is left.
#[derive(Debug)]
struct Checker<'a> {
    folder: &'a Path,
    taken_labels: &'a [&'a str],
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn refuse(&mut self, key: String, message: impl Into<String>) {
        self.problems.push(Problem { key, message: message.into() });
    }

    /// Reads `name` with `parse`; the sentence of a wrong value that came from the environment names its
    /// variable.
    fn read<T>(
        &mut self,
        at: &Section<'_>,
        name: &str,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        let value = at.get(name)?;
        match parse(value) {
            Ok(value) => Some(value),
            Err(mut message) => {
                if let Some(variable) = super::variable_of(&at.key(name), value) {
                    message.push_str(&format!(" (set by {variable})"));
                }
                self.refuse(at.key(name), message);
                None
            }
        }
    }

    fn duration(&mut self, at: &Section<'_>, name: &str) -> Option<Duration> {
        self.read(at, name, value::duration)
    }

    fn flag(&mut self, at: &Section<'_>, name: &str) -> Option<bool> {
        self.read(at, name, value::flag)
    }

    fn count(&mut self, at: &Section<'_>, name: &str) -> Option<u32> {
        let Some(Kind::Count { min, max }) = at.kind(name) else { return None };
        self.read(at, name, |value| value::count(value, min, max))
    }

    fn word(&mut self, at: &Section<'_>, name: &str) -> Option<&'static str> {
        let Some(Kind::Word(words)) = at.kind(name) else { return None };
        self.read(at, name, |value| value::word(value, words))
    }

    /// A path, resolved against the configuration file's folder; `None` where it is empty.
    fn path(&mut self, at: &Section<'_>, name: &str) -> Option<PathBuf> {
        let path = self.read(at, name, |value| value::text(value).map(PathBuf::from))?;
        (!path.as_os_str().is_empty()).then(|| self.folder.join(path))
    }

    /// The items of a list, each read with `parse` and none equal to another.
    fn list<T: PartialEq>(
        &mut self,
        at: &Section<'_>,
        name: &str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let items = self.read(at, name, |value| match &value.kind {
            ValueKind::Array(items) => Ok(items.clone()),
            _ => Err("must be a list in brackets".to_owned()),
        })?;
        let mut parsed = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let key = format!("{}[{index}]", at.key(name));
            match parse(item) {
                Ok(value) if parsed.contains(&value) => {
                    self.refuse(key, "is there already; name each once");
                }
                Ok(value) => parsed.push(value),
                Err(message) => self.refuse(key, message),
            }
        }
        Some(parsed)
    }

    /// `token` or `token_file` of a section, never both.
    fn token(&mut self, at: &Section<'_>) -> Option<TokenSource> {
        let inline = self.read(at, "token", |value| value::token(value).map(Secret::new));
        let file = self.path(at, "token_file");
        if at.get("token").is_some() && at.get("token_file").is_some() {
            let mut message = "is set beside token_file; keep one of the two".to_owned();
            let variable = |name: &str| super::variable_of(&at.key(name), at.get(name)?);
            for variable in [variable("token"), variable("token_file")].into_iter().flatten() {
                message.push_str(&format!(" (one comes from {variable})"));
            }
            self.refuse(at.key("token"), message);
        } else if at.get("token_file").is_some_and(|value| matches!(value::text(value), Ok(""))) {
            self.refuse(
                at.key("token_file"),
                "is empty; write the path of the token's file, or leave the key out",
            );
        }
        inline.map(TokenSource::Inline).or(file.map(TokenSource::File))
    }
}
