//! Every key of the configuration, as the sections declare it: its path, default, values and help.
//!
//! The defaults, the names in the environment, the suggestions for unknown keys, `config.example.toml`, the tables of
//! the documentation and the `/config` page are derived from [`all`].

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use super::section::Section as _;
use super::suggest::nearest;
use super::value::in_bytes;

/// The prefix of the environment names.
pub const ENVIRONMENT_PREFIX: &str = "PDS_EXPORTER";
/// Stands in environment names where a path has a dot. `PDS_EXPORTER_SERVICE_HOST`, which Kubernetes injects, is
/// therefore no key.
pub const ENVIRONMENT_SEPARATOR: &str = "__";

/// One key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its path: `api.base_url`; entries of a list are `[]`: `projects[].id`.
    pub path: String,
    /// What holds if it is not set.
    pub preset: Preset,
    /// Which values it takes.
    pub kind: Kind,
    /// What it is for, in one line.
    pub why: &'static str,
}

/// What holds for a key that is not set; all texts are TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// This value.
    Default(&'static str),
    /// Nothing: it must be set, for instance to this.
    Required(&'static str),
    /// Nothing; it may be set, for instance to this.
    Unset(&'static str),
}

impl Preset {
    /// The default, or what it might be set to.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Default(toml) | Self::Required(toml) | Self::Unset(toml) => toml,
        }
    }
}

/// Which values a key takes. Displays as the documentation has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any string.
    Text,
    /// A string that is never shown.
    Secret,
    /// The path of a file, relative to the folder of the configuration file.
    Path,
    /// An http or https URL.
    Url,
    /// A duration.
    Duration {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
        /// Whether it must be whole seconds.
        whole_seconds: bool,
    },
    /// A whole number.
    Count {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// A number of bytes.
    Size {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(Vec<&'static str>),
    /// A list.
    List(Box<Self>),
    /// A table of label names and values.
    Labels,
    /// A table of header names and values, whose values are never shown.
    Headers,
    /// A table with the duration `threshold` and the number `share`.
    Objective,
    /// A list of app ids, or of tables with the keys `projects[].apps[].`...
    Apps,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = humantime::format_duration;
        match self {
            Self::Text | Self::Secret => f.write_str("string"),
            Self::Path => f.write_str("path"),
            Self::Url => f.write_str("URL"),
            Self::Duration { min, max, whole_seconds: false } => {
                write!(f, "duration, {} to {}", span(*min), span(*max))
            }
            Self::Duration { min, max, whole_seconds: true } => {
                write!(f, "duration in whole seconds, {} to {}", span(*min), span(*max))
            }
            Self::Count { min, max } => write!(f, "number, {min} to {max}"),
            Self::Size { min, max } => write!(f, "size, {} to {}", in_bytes(*min), in_bytes(*max)),
            Self::Flag => f.write_str("`true` or `false`"),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
                f.write_str(&words.join(", "))
            }
            Self::List(of) => write!(f, "list of: {of}"),
            Self::Labels | Self::Headers => f.write_str("table of strings"),
            Self::Objective => f.write_str("table of `threshold` (duration) and `share` (above 0, below 1)"),
            Self::Apps => f.write_str("list of: string or table"),
        }
    }
}

/// All keys, in the order of the example file.
#[must_use]
pub fn all() -> &'static [Key] {
    static ALL: LazyLock<Vec<Key>> = LazyLock::new(|| {
        let mut keys = Vec::new();
        super::Config::declare("", &mut keys);
        keys
    });
    &ALL
}

impl Key {
    /// The key declared at `path`.
    #[must_use]
    pub fn find(path: &str) -> Option<&'static Self> {
        all().iter().find(|key| key.path == path)
    }

    /// Its environment variable; `None` for keys of list entries, which only a file can set.
    #[must_use]
    pub fn environment_name(&self) -> Option<String> {
        if self.path.contains("[]") {
            return None;
        }
        let path = self.path.to_uppercase().replace('.', ENVIRONMENT_SEPARATOR);
        Some(format!("{ENVIRONMENT_PREFIX}{ENVIRONMENT_SEPARATOR}{path}"))
    }

    /// The section it stands in, and its name there.
    #[must_use]
    pub fn split(&self) -> (&str, &str) {
        self.path.rsplit_once('.').unwrap_or(("", &self.path))
    }
}

/// Whether keys are declared below `path`.
#[must_use]
pub fn is_section(path: &str) -> bool {
    all().iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// Whether `path` is a list whose entries have keys.
#[must_use]
pub fn is_list(path: &str) -> bool {
    is_section(&format!("{path}[]"))
}

/// The problem with the unknown key `name` in `section` (empty for the top): names the nearest known key, or all.
#[must_use]
pub fn instead_of(section: &str, name: &str) -> String {
    let elsewhere = all().iter().find(|key| key.split().1 == name && !section.contains("[]"));
    let beside = names_in(section);
    if let Some(near) = nearest(name, beside.iter().copied()) {
        return format!("unknown key; did you mean `{near}`?");
    }
    if let Some(key) = elsewhere {
        return format!("unknown key here; did you mean `{}`?", key.path);
    }
    format!("unknown key; known keys are {}", beside.join(", "))
}

/// The names directly in `section`, in the order of [`all`].
fn names_in(section: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for key in all() {
        let rest = match section {
            "" => Some(&*key.path),
            _ => key.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')),
        };
        let name = rest.and_then(|rest| rest.split(['.', '[']).next());
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

/// A key's name as TOML writes it: bare, or quoted if needed.
#[must_use]
pub fn as_written(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { format!("{name:?}") }
}

/// The defaults as a TOML text.
#[must_use]
pub fn defaults() -> String {
    let mut toml = String::new();
    for key in all() {
        if let Preset::Default(value) = key.preset {
            toml.push_str(&key.path);
            toml.push_str(" = ");
            toml.push_str(value);
            toml.push('\n');
        }
    }
    toml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_name_in_the_environment() {
        let name = |path| Key::find(path).unwrap().environment_name();
        assert_eq!(name("api.base_url").as_deref(), Some("PDS_EXPORTER__API__BASE_URL"));
        assert_eq!(name("api.query_names.start").as_deref(), Some("PDS_EXPORTER__API__QUERY_NAMES__START"));
        assert_eq!(name("projects[].id"), None);
    }

    #[test]
    fn an_unknown_key_is_answered_with_the_nearest_one() {
        assert_eq!(instead_of("api", "base_ulr"), "unknown key; did you mean `base_url`?");
        assert_eq!(instead_of("", "pol"), "unknown key; did you mean `poll`?");
        assert_eq!(instead_of("projects[].apps[]", "contaners"), "unknown key; did you mean `containers`?");
        assert_eq!(instead_of("api", "settle"), "unknown key here; did you mean `poll.settle`?");
        assert_eq!(
            instead_of("accounting", "zzz"),
            "unknown key; known keys are enabled, step, max_catch_up, recheck_after, range_end"
        );
    }
}
