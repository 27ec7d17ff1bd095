//! The configuration in force, for people: each key with its value and where that came from.

use std::fmt;

use config::{Map, Value, ValueKind};
use url::Url;

use super::keys::{self, Key, Kind};
use crate::secret::REDACTED;

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The configuration file.
    File,
    /// An environment variable.
    Environment,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
        })
    }
}

impl Origin {
    /// Where `value` came from. The `config` crate notes it at each value: nothing for the defaults, the path
    /// for a file, these words for the environment.
    pub(super) fn of(value: &Value) -> Self {
        match value.origin() {
            None => Self::Default,
            Some("the environment") => Self::Environment,
            Some(_) => Self::File,
        }
    }
}

/// One key in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The key: `projects[0].id`, counted from 0.
    pub key: String,
    /// The value as TOML; secrets and credentials of URLs redacted.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

/// The keys that have a value, in the order in which they are declared, projects in the order of the file.
pub(super) fn explain(values: &Map<String, Value>) -> Vec<Explained> {
    let mut explained = Vec::new();
    for key in keys::all().iter().filter(|key| !key.path.contains("[]")) {
        let found = key.path.split('.').try_fold(None, |at: Option<&Value>, name| match at {
            None => values.get(name).map(Some),
            Some(at) => member(at, name).map(Some),
        });
        if let Some(Some(value)) = found {
            explained.push(row(key.path.clone(), value, &key.kind));
        }
    }
    if let Some(projects) = values.get("projects") {
        explain_entries(projects, "projects", "projects", &mut explained);
    }
    explained
}

fn explain_entries(list: &Value, declared: &str, shown: &str, explained: &mut Vec<Explained>) {
    let ValueKind::Array(entries) = &list.kind else { return };
    for (index, entry) in entries.iter().enumerate() {
        let shown = format!("{shown}[{index}]");
        if !matches!(entry.kind, ValueKind::Table(_)) {
            explained.push(row(shown, entry, &Kind::Text));
            continue;
        }
        for key in keys::all() {
            let name = key.path.strip_prefix(declared).and_then(|rest| rest.strip_prefix("[]."));
            let Some(name) = name.filter(|name| !name.contains("[]")) else { continue };
            match (member(entry, name), &key.kind) {
                (None, _) => {}
                // Apps with settings of their own have rows; a list of ids, which may be thousands, is one.
                (Some(apps), Kind::Apps) if has_table(apps) => {
                    explain_entries(apps, &key.path, &format!("{shown}.{name}"), explained);
                }
                (Some(value), kind) => explained.push(row(format!("{shown}.{name}"), value, kind)),
            }
        }
    }
}

fn has_table(list: &Value) -> bool {
    matches!(&list.kind, ValueKind::Array(entries) if entries.iter().any(|entry| matches!(entry.kind, ValueKind::Table(_))))
}

fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match &value.kind {
        ValueKind::Table(table) => table.get(name),
        _ => None,
    }
}

fn row(key: String, value: &Value, kind: &Kind) -> Explained {
    let shown = match kind {
        Kind::Secret => REDACTED.to_owned(),
        Kind::Url => toml_text(&without_credentials(value)),
        _ => toml_text(value),
    };
    // Kept for as long as the configuration is: a list of thousands of ids without the room that it grew into.
    Explained { key, value: shown.into_boxed_str().into_string(), origin: Origin::of(value) }
}

fn without_credentials(value: &Value) -> Value {
    let ValueKind::String(text) = &value.kind else { return value.clone() };
    match Url::parse(text) {
        Ok(mut url) if url.password().is_some() || !url.username().is_empty() => {
            let hidden = url.set_username("").and_then(|()| url.set_password(None));
            let shown = if hidden.is_ok() { url.to_string() } else { REDACTED.to_owned() };
            Value::new(None, shown)
        }
        _ => value.clone(),
    }
}

fn toml_text(value: &Value) -> String {
    match &value.kind {
        ValueKind::String(text) => format!("{text:?}"),
        ValueKind::Array(items) => {
            format!("[{}]", items.iter().map(toml_text).collect::<Vec<_>>().join(", "))
        }
        ValueKind::Table(table) => {
            let mut members: Vec<_> = table.iter().collect();
            members.sort_by_key(|(name, _)| name.as_str());
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name} = {}", toml_text(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        _ => value.to_string(),
    }
}

/// The variable that set the key at `path`, where `value` came from the environment.
pub(super) fn variable_of(path: &str, value: &Value) -> Option<String> {
    if Origin::of(value) != Origin::Environment {
        return None;
    }
    Key::find(path)?.environment_name()
}
