//! A key: its path, default, values, help, and its name in the environment; and all keys, as the sections declare them.
//!
//! Environment names, suggestions for unknown keys, `config.example.toml`, the tables of the documentation and the
//! `/config` page derive from [`all`].

use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::time::Duration;

use pds_core::printable::is_terminal_control;

/// The prefix of the environment names.
pub const ENVIRONMENT_PREFIX: &str = "PDS_EXPORTER";
/// Separates the parts of a path in environment names. So `PDS_EXPORTER_SERVICE_HOST`, which Kubernetes injects, is not
/// mistaken for a key.
pub const ENVIRONMENT_SEPARATOR: &str = "__";

/// A key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its path: `api.base_url`; entries of a list are `[]`: `projects[].id`.
    pub path: String,
    /// Its value if it is not set.
    pub preset: Preset,
    /// The values it accepts.
    pub kind: Kind,
    /// A line of help.
    pub help: &'static str,
}

/// The value of a key that is not set, as TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// This value.
    Default(&'static str),
    /// None: the key is required. Holds an example.
    Required(&'static str),
    /// None: the key is optional. Holds an example.
    Unset(&'static str),
}

/// The values that a key accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any string.
    Text,
    /// A string that is never shown.
    Secret,
    /// An http or https URL.
    Url,
    /// A duration.
    Duration(RangeInclusive<Duration>),
    /// A whole number.
    Count(RangeInclusive<u32>),
    /// A number of bytes.
    Size(RangeInclusive<u64>),
    /// `true` or `false`.
    Flag,
    /// A word of this list.
    Word(Vec<&'static str>),
    /// A list.
    List(Box<Self>),
    /// A table of header names and values, whose values are never shown.
    Headers,
    /// Anything else, as this says.
    Other(&'static str),
}

/// A number of bytes for people: `1KiB`.
pub fn in_bytes(bytes: u64) -> String {
    let unit = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = unit.into_iter().find(|(_, size)| bytes != 0 && bytes.is_multiple_of(*size));
    let (unit, size) = whole.unwrap_or(("B", 1));
    format!("{}{unit}", bytes / size)
}

impl Key {
    /// Its environment variable; `None` for keys of list entries, which only a file can set.
    pub fn environment_name(&self) -> Option<String> {
        environment_name(&self.path)
    }

    /// Its section, and its name there.
    pub fn split(&self) -> (&str, &str) {
        self.path.rsplit_once('.').unwrap_or(("", &self.path))
    }
}

/// The environment variable that sets the key at `path`; `None` for keys of list entries.
pub fn environment_name(path: &str) -> Option<String> {
    if path.contains('[') {
        return None;
    }
    let path = path.to_uppercase().replace('.', ENVIRONMENT_SEPARATOR);
    Some(format!("{ENVIRONMENT_PREFIX}{ENVIRONMENT_SEPARATOR}{path}"))
}

/// A key's name as TOML writes it: bare, or quoted if needed.
pub fn as_written(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { quoted(name) }
}

/// `text` as a TOML string in one line, without characters that change its direction.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' | '\n' | '\r' | '\t' => quoted.extend(c.escape_default()),
            c if is_terminal_control(c) => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// `name` in the section at `path`.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// All keys, in the order of the example file.
pub fn all() -> &'static [Key] {
    static ALL: LazyLock<Vec<Key>> = LazyLock::new(super::declared);
    &ALL
}

/// The message about the unknown key `name` in a section with the keys `beside`; `in_list` if it is an entry of a list.
/// It names the nearest known key, or all.
pub(super) fn unknown_key_message(name: &str, beside: &[&str], in_list: bool) -> String {
    if let Some(near) = nearest(name, beside.iter().copied()) {
        return format!("unknown key; did you mean `{near}`?");
    }
    match all().iter().find(|key| key.split().1 == name && !in_list) {
        Some(key) => format!("unknown key here; did you mean `{}`?", key.path),
        None => format!("unknown key; known keys are {}", beside.join(", ")),
    }
}

/// Minimum similarity for a suggestion (Damerau-Levenshtein, 1 = equal): half of the letters.
const ALIKE: f64 = 0.5;

/// The word of `known` that is nearest to `word`, if any is near; the first of equally near ones.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let mut best = None;
    for candidate in known {
        let likeness = strsim::normalized_damerau_levenshtein(&word, &candidate.to_lowercase());
        if likeness >= ALIKE && best.is_none_or(|(_, most)| likeness > most) {
            best = Some((candidate, likeness));
        }
    }
    best.map(|(candidate, _)| candidate)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_key_has_one_name_in_the_environment() {
        let name = |path| all().iter().find(|key| key.path == path).unwrap().environment_name();
        assert_eq!(name("api.base_url").as_deref(), Some("PDS_EXPORTER__API__BASE_URL"));
        assert_eq!(name("api.query_names.start").as_deref(), Some("PDS_EXPORTER__API__QUERY_NAMES__START"));
        assert_eq!(name("projects[].id"), None);
    }

    #[test]
    fn an_unknown_key_gets_the_closest_one_suggested() {
        let answer = |key: &str, text: &str| {
            let error = crate::load_text(Path::new("x.toml"), text).unwrap_err();
            let crate::LoadError::Problems { problems, .. } = error else { panic!("{error}") };
            problems.into_iter().find(|problem| problem.key == key).unwrap().message
        };
        assert_eq!(answer("api.base_ulr", "api.base_ulr = 1"), "unknown key; did you mean `base_url`?");
        assert_eq!(answer("pol", "pol = 1"), "unknown key; did you mean `poll`?");
        assert_eq!(
            answer("projects[0].apps[0].contaners", "projects = [{ apps = [{ contaners = [] }] }]"),
            "unknown key; did you mean `containers`?"
        );
        assert_eq!(answer("api.settle", "api.settle = 1"), "unknown key here; did you mean `poll.settle`?");
        assert_eq!(
            answer("accounting.zzz", "accounting.zzz = 1"),
            "unknown key; known keys are enabled, step, max_catch_up, recheck_after, range_end, audit"
        );
    }

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        assert_eq!(nearest("intervall", ["timeout", "interval"]), Some("interval"));
        assert_eq!(nearest("polling", ["state", "poll"]), Some("poll"));
        assert_eq!(nearest("TIMEOUT", ["timeout", "interval"]), Some("timeout"));
        assert_eq!(nearest("colour", ["timeout", "interval"]), None);
    }
}
