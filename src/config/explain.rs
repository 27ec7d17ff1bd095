//! The configuration in force, for people: each key and flag with its value and where that came from.

use std::borrow::Cow;

use config::{Map, Value, ValueKind};
use url::Url;

use super::key::{Key, Kind, as_written};
use super::keys;
use super::origin::{Origin, variable_of};
use super::raw::Included;
use pds_core::secret::REDACTED;

/// One key or flag in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The key: `projects[0].id`, counted from 0, after the name of an included file; or the flag: `--state.path`.
    pub key: String,
    /// The value as TOML; secrets and credentials of URLs redacted.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
    /// The environment variable or flag that set it.
    pub variable: Option<String>,
    /// Its help text.
    pub help: Cow<'static, str>,
}

impl Explained {
    /// The flag `name` with the value `value`, which was `given` on the command line or is the default.
    #[must_use]
    pub fn flag(name: &str, value: &str, given: bool, help: String) -> Self {
        Self {
            key: format!("--{name}"),
            value: redacted_url(value).unwrap_or_else(|| value.to_owned()),
            origin: if given { Origin::Flag } else { Origin::Default },
            variable: None,
            help: help.into(),
        }
    }

    /// Replaces the value with that of the flag `name`.
    pub fn override_with(&mut self, name: &str, value: &str) {
        self.value = format!("{value:?}");
        self.origin = Origin::Flag;
        self.variable = Some(name.to_owned());
    }
}

/// All keys that have a value, in the order of declaration; projects in the order of the files.
pub(super) fn explain(values: &Map<String, Value>, included: &[Included]) -> Vec<Explained> {
    let mut explained = Vec::new();
    for key in keys::all().iter().filter(|key| !key.path.contains("[]")) {
        let found = key.path.split('.').try_fold(None, |at: Option<&Value>, name| match at {
            None => values.get(name).map(Some),
            Some(at) => member(at, name).map(Some),
        });
        if let Some(Some(value)) = found {
            explained.push(row(key.path.clone(), value, key, &key.kind));
        }
    }
    if let Some(projects) = values.get("projects") {
        explain_entries(projects, "projects", "projects", &mut explained);
    }
    for file in included {
        explain_entries(&file.projects, "projects", &file.key(), &mut explained);
    }
    explained
}

fn explain_entries(list: &Value, declared: &str, shown: &str, explained: &mut Vec<Explained>) {
    let ValueKind::Array(entries) = &list.kind else { return };
    for (index, entry) in entries.iter().enumerate() {
        let shown = format!("{shown}[{index}]");
        if !matches!(entry.kind, ValueKind::Table(_)) {
            explained.extend(keys::find(declared).map(|key| row(shown, entry, key, &Kind::Text)));
            continue;
        }
        for key in keys::all() {
            let name = key.path.strip_prefix(declared).and_then(|rest| rest.strip_prefix("[]."));
            let Some(name) = name.filter(|name| !name.contains("[]")) else { continue };
            match member(entry, name) {
                None => {}
                // Apps given as tables have rows of their own. A list of ids, which may be thousands, is one row.
                Some(apps) if key.kind == Kind::Apps && has_table(apps) => {
                    explain_entries(apps, &key.path, &format!("{shown}.{name}"), explained);
                }
                Some(value) => explained.push(row(format!("{shown}.{name}"), value, key, &key.kind)),
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

fn row(shown: String, value: &Value, key: &Key, kind: &Kind) -> Explained {
    let text = match (kind, &value.kind) {
        (Kind::Secret, _) => REDACTED.to_owned(),
        (Kind::Headers, ValueKind::Table(headers)) => redacted_values(headers),
        (Kind::Headers, _) => REDACTED.to_owned(),
        (Kind::Url, ValueKind::String(text)) => {
            format!("{:?}", redacted_url(text).unwrap_or_else(|| text.clone()))
        }
        _ => toml_text(value),
    };
    Explained {
        key: shown,
        // Rows live as long as the configuration, so the spare capacity of a long list is dropped.
        value: text.into_boxed_str().into_string(),
        origin: Origin::of(value),
        variable: variable_of(&key.path, value),
        help: Cow::Borrowed(key.why),
    }
}

/// A table with the names of `members` and redacted values.
fn redacted_values(members: &Map<String, Value>) -> String {
    let mut names: Vec<_> = members.keys().map(|name| as_written(name)).collect();
    names.sort();
    let members: Vec<_> = names.iter().map(|name| format!("{name} = \"{REDACTED}\"")).collect();
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
}

/// The URL without its credentials; `None` if there are none.
fn redacted_url(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok()?;
    if url.password().is_none() && url.username().is_empty() {
        return None;
    }
    let hidden = url.set_username("").and_then(|()| url.set_password(None));
    Some(if hidden.is_ok() { url.to_string() } else { REDACTED.to_owned() })
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
