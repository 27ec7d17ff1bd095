//! The configuration in force: each key and flag with its value and where that came from, and the whole as a file.

use std::borrow::Cow;
use std::fmt::Write as _;

use config::{Map, Value, ValueKind};
use url::Url;

use super::key::{Kind, as_written, quoted};
use pds_core::secret::REDACTED;

pds_core::worded! {
    /// Origin of a value.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Origin {
        /// Not set.
        Default = "default",
        /// The configuration file.
        File = "file",
        /// An environment variable.
        Environment = "environment",
        /// The command line.
        Flag = "flag",
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

/// All settings that differ from the defaults, as a configuration file. Keys with a redacted value are comments.
/// Projects of included files appear like the others.
pub fn toml(rows: &[Explained]) -> String {
    let included = rows.iter().any(|row| row.key.contains(": projects["));
    let keys = rows.iter().filter(|row| row.origin != Origin::Default && !row.key.starts_with("--"));
    let keys = keys.filter(|row| !(included && row.key == "include"));
    let mut text = String::new();
    let mut open = String::new();
    for row in keys {
        let key = row.key.split_once(": ").map_or(row.key.as_str(), |(_, key)| key);
        let (table, name) = match key.rsplit_once('.') {
            // An app given as an id.
            _ if key.ends_with(']') => (key, "id"),
            Some(parts) => parts,
            None => ("", key),
        };
        // The same index in another file is another project.
        let position = format!("{}{table}", row.key.strip_suffix(key).unwrap_or_default());
        if position != open {
            header(&mut text, table);
            open = position;
        }
        let hidden = if row.value.contains(REDACTED) { "# " } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{hidden}{name} = {}", row.value);
    }
    text
}

/// The header of `table`: an entry of a list ends in its index.
fn header(text: &mut String, table: &str) {
    let path: String = table.split(['[', ']']).step_by(2).collect();
    let gap = if text.is_empty() { "" } else { "\n" };
    let _ = match (table, table.ends_with(']')) {
        ("", _) => Ok(()),
        (_, true) => writeln!(text, "{gap}[[{path}]]"),
        (_, false) => writeln!(text, "{gap}[{path}]"),
    };
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Config, load_text};

    use super::*;

    /// The configuration of `text`, and the file of it, which means the same.
    fn written(text: &str) -> (Config, String) {
        let loaded = load_text(Path::new("x.toml"), text).unwrap();
        let file = toml(&loaded.explained);
        let again = load_text(Path::new("x.toml"), &file).unwrap_or_else(|error| panic!("{error}\n{file}"));
        assert_eq!(again.config, loaded.config, "{file}");
        (loaded.config, file)
    }

    #[test]
    fn the_file_means_the_same() {
        let text = "include = []\n[api]\nbase_url = \"https://api.example.com\"\ntoken_file = \"/run/token\"\n\
            [api.query_names]\nstart = \"from\"\n[poll]\nwindows = [\"5m\", \"1h\"]\n\
            [[projects]]\nid = \"p-1\"\nlabels = { team = \"a \\\"b\\\"\" }\n\
            apps = [\"p-1-a\", { id = \"p-1-b\", interval = \"15s\", containers = [\"c\"] }]\n\
            [[projects]]\nid = \"p-2\"\napps = [\"p-2-a\", \"p-2-b\"]\n";
        let (_, file) = written(text);
        assert!(!file.contains("max_retries"), "what is as by default is left out");
    }

    #[test]
    fn every_character_survives() {
        let team = "a\u{301}\u{0}\u{7f}\u{85}\u{200e}\u{202e}🦀'\n\t\r\\\\u0041";
        let escaped: String = team.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
        let text = format!(
            "[api]\nbase_url = \"https://api.example.com\"\ntoken_file = \"t\"\n\
             [[projects]]\nid = \"p-1\"\nlabels = {{ team = \"{escaped}\" }}\n"
        );
        let (config, file) = written(&text);
        assert_eq!(config.projects[0].labels, [("team".to_owned(), team.to_owned())]);
        assert!(!file.contains('\u{202e}'), "{file}");
    }

    #[test]
    fn a_secret_is_a_comment() {
        let text =
            "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"hunter2\"\n[[projects]]\nid = \"p\"\n";
        let file = toml(&load_text(Path::new("x.toml"), text).unwrap().explained);
        assert!(file.contains("# token = ") && !file.contains("hunter2"), "{file}");
    }
}
