//! The configuration in force, for people: each key and flag with its value and where that came from.

use std::borrow::Cow;
use std::fmt;

use config::{Map, Value, ValueKind};
use url::Url;

use super::key::{Kind, as_written, quoted};
use pds_core::secret::REDACTED;

/// Origin of a value.
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

/// A key or flag in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The key: `projects[0].id`, counted from 0, after the name of an included file; or the flag: `--state.path`.
    pub key: String,
    /// The value as TOML; secrets and credentials of URLs redacted.
    pub value: String,
    /// Its origin.
    pub origin: Origin,
    /// The environment variable or flag that set it.
    pub variable: Option<String>,
    /// Its help text.
    pub help: Cow<'static, str>,
}

impl Explained {
    /// The flag `name` with the value `value`, which was `given` on the command line or is the default.
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
        self.value = quoted(value);
        self.origin = Origin::Flag;
        self.variable = Some(name.to_owned());
    }
}

/// The value of a key as TOML; secrets and credentials of URLs redacted.
pub(super) fn redacted_toml(value: &Value, kind: &Kind) -> String {
    let text = match (kind, &value.kind) {
        (Kind::Secret, _) => REDACTED.to_owned(),
        (Kind::Headers, ValueKind::Table(headers)) => toml_table(headers, |_| format!("{REDACTED:?}")),
        (Kind::Headers, _) => REDACTED.to_owned(),
        (Kind::Url, ValueKind::String(text)) => quoted(redacted_url(text).as_deref().unwrap_or(text)),
        _ => toml_text(value),
    };
    // It lives as long as the configuration, so the spare capacity of a long list is dropped.
    text.into_boxed_str().into_string()
}

/// Whether `url` contains a user name or password.
pub(super) fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The URL without its credentials; `None` if there are none.
fn redacted_url(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok()?;
    if !has_credentials(&url) {
        return None;
    }
    let hidden = url.set_username("").and_then(|()| url.set_password(None));
    Some(if hidden.is_ok() { url.to_string() } else { REDACTED.to_owned() })
}

fn toml_text(value: &Value) -> String {
    match &value.kind {
        ValueKind::String(text) => quoted(text),
        ValueKind::Array(items) => {
            format!("[{}]", items.iter().map(toml_text).collect::<Vec<_>>().join(", "))
        }
        ValueKind::Table(members) => toml_table(members, toml_text),
        _ => value.to_string(),
    }
}

/// The table of `members`, whose values have this `text`, sorted by name.
fn toml_table(members: &Map<String, Value>, text: impl Fn(&Value) -> String) -> String {
    let mut members: Vec<_> =
        members.iter().map(|(name, value)| format!("{} = {}", as_written(name), text(value))).collect();
    members.sort();
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
}
