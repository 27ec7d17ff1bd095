//! A key: its path, default, values, help, and its name in the environment.

use std::ops::RangeInclusive;
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
