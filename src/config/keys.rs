//! Every key of the configuration, declared once: its path, its kind, its default and one line of why.
//!
//! The defaults, the names in the environment, the suggestions for unknown keys, `config.example.toml` and the
//! view of the configuration in force are all derived from [`KEYS`].

use super::suggest::nearest;

/// The prefix of the environment names.
pub const ENVIRONMENT_PREFIX: &str = "PDS_EXPORTER";
/// What stands in environment names where a path has a dot; so `PDS_EXPORTER_SERVICE_HOST`, which Kubernetes
/// injects, is no key.
pub const ENVIRONMENT_SEPARATOR: &str = "__";

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Where it stands: `api.base_url`; entries of a list are `[]`: `projects[].id`.
    pub path: &'static str,
    /// What stands for it where nobody sets it.
    pub preset: Preset,
    /// Which values it takes.
    pub kind: Kind,
    /// Why one would set it, for the example file.
    pub why: &'static str,
}

/// What stands for a key that is not set; all texts are TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// This value.
    Default(&'static str),
    /// Nothing: it has to be set, for instance to this.
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

/// Which values a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A text that is never shown.
    Secret,
    /// The path of a file; a relative one is resolved against the configuration file's folder.
    Path,
    /// An http or https URL.
    Url,
    /// A humantime text, above zero and at most [`super::value::MAX`].
    Duration,
    /// A list of such.
    Durations,
    /// A whole number within these bounds.
    Count {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// Bytes: a whole number, or a text with a unit such as `16MiB`.
    Size,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A table of label names and values.
    Labels,
    /// A list of app ids, or of tables with the keys `projects[].apps[].`...
    Apps,
}

/// The words of `poll.resolution`.
pub const RESOLUTIONS: &[&str] = &["standard", "medium", "high"];
/// The words of `log.level`; empty leaves it to the command line.
pub const LEVELS: &[&str] = &["", "error", "warn", "info", "debug", "trace"];

const fn key(path: &'static str, preset: Preset, kind: Kind, why: &'static str) -> Key {
    Key { path, preset, kind, why }
}

use Preset::{Default, Required, Unset};

/// All keys, in the order of the example file.
#[rustfmt::skip] // a table: one row a key
pub const KEYS: &[Key] = &[
    key("api.base_url", Required("\"https://api.example.com\""), Kind::Url,
        "The address of the service. May have a path, but no query and no credentials."),
    key("api.token_file", Unset("\"/run/secrets/pds/token\""), Kind::Path,
        "A file that holds the service account token. It is read again whenever it changes. Excludes `token`."),
    key("api.token", Unset("\"...\""), Kind::Secret,
        "The token itself. Better set as PDS_EXPORTER__API__TOKEN than written here."),
    key("api.timeout", Default("\"10s\""), Kind::Duration,
        "Time limit of a whole request, body included."),
    key("api.connect_timeout", Default("\"3s\""), Kind::Duration,
        "Time limit of name lookup, TCP connect and TLS handshake."),
    key("api.max_concurrent_requests", Default("32"), Kind::Count { min: 1, max: 10_000 },
        "Maximum number of requests in flight, over all targets."),
    key("api.max_requests_per_second", Default("50"), Kind::Count { min: 0, max: 1_000_000 },
        "Maximum number of requests per second, over all targets; 0 means no limit."),
    key("api.max_response_bytes", Default("\"16MiB\""), Kind::Size,
        "Maximum size of a reply; a larger one fails the poll."),
    key("api.max_retries", Default("2"), Kind::Count { min: 0, max: 10 },
        "How often a failed request is retried within one poll."),
    key("api.ca_file", Default("\"\""), Kind::Path,
        "Additional trust anchors (PEM), for a service with a private certificate authority; empty means none."),
    key("api.proxy_url", Default("\"\""), Kind::Url,
        "The http or https proxy to the service; the variable NO_PROXY names hosts reached without it. Empty means none."),
    key("api.query_names.start", Default("\"start\""), Kind::Text,
        "Query parameter for the start of a range. The service does not document these names."),
    key("api.query_names.end", Default("\"end\""), Kind::Text,
        "Query parameter for the end of a range."),
    key("api.query_names.container", Default("\"container_id\""), Kind::Text,
        "Query parameter for the container filter."),
    key("api.query_names.resolution", Default("\"resolution\""), Kind::Text,
        "Query parameter for the data resolution."),
    key("poll.interval", Default("\"60s\""), Kind::Duration,
        "How often response times and run execution times are polled."),
    key("poll.settings_interval", Default("\"5m\""), Kind::Duration,
        "How often apps, volume alerts, domains and projects are polled."),
    key("poll.windows", Default("[\"5m\"]"), Kind::Durations,
        "Trailing ranges shown as gauges, in whole seconds. Each costs one more request per metrics call."),
    key("poll.settle", Default("\"30s\""), Kind::Duration,
        "How far behind now every range ends, so that it includes late data."),
    key("poll.resolution", Default("\"standard\""), Kind::Word(RESOLUTIONS),
        "How many data points the service returns: standard, medium or high."),
    key("poll.stale_after", Default("\"5m\""), Kind::Duration,
        "A target's series vanish after this time without a successful poll, but not before 3 of its intervals."),
    key("accounting.enabled", Default("true"), Kind::Flag,
        "Keep exact counters: ask for every second in exactly one range."),
    key("accounting.step", Default("\"60s\""), Kind::Duration,
        "Ranges of the counters are aligned to this: whole seconds that divide a day."),
    key("accounting.max_catch_up", Default("\"24h\""), Kind::Duration,
        "How far back to ask after an outage. Older time is counted as unaccounted."),
    key("state.path", Default("\"\""), Kind::Path,
        "The file that keeps the counters across restarts; empty keeps them in memory only."),
    key("log.level", Default("\"\""), Kind::Word(LEVELS),
        "Minimum severity of log messages: error, warn, info, debug or trace; empty follows --log.level."),
    key("projects[].id", Required("\"p-abc12345\""), Kind::Text,
        "The project's id, as in the service's paths."),
    key("projects[].token_file", Unset("\"/run/secrets/pds/search-token\""), Kind::Path,
        "A file with a token for this project, instead of the one under [api]."),
    key("projects[].token", Unset("\"...\""), Kind::Secret,
        "The token itself. Excludes `token_file`."),
    key("projects[].labels", Unset("{ team = \"search\" }"), Kind::Labels,
        "Labels added to pds_project_info and pds_app_info."),
    key("projects[].apps", Unset("[\"p-abc12345-ranker\"]"), Kind::Apps,
        "The project's apps: an id each, or a table with the keys below."),
    key("projects[].apps[].id", Required("\"p-abc12345-embed\""), Kind::Text,
        "The app's id, as in the service's paths."),
    key("projects[].apps[].interval", Unset("\"15s\""), Kind::Duration,
        "How often this app's metrics are polled, instead of poll.interval."),
    key("projects[].apps[].containers", Unset("[\"c-1\"]"), Kind::Texts,
        "Containers whose windows are shown in addition to the app's."),
    key("projects[].apps[].labels", Unset("{ tier = \"gold\" }"), Kind::Labels,
        "Labels added to pds_app_info; they override those of the project."),
];

impl Key {
    /// The key declared at `path`.
    #[must_use]
    pub fn find(path: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.path == path)
    }

    /// Its name in the environment; `None` for keys of list entries, which only a file can set.
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
    pub fn split(&self) -> (&'static str, &'static str) {
        self.path.rsplit_once('.').unwrap_or(("", self.path))
    }
}

/// Whether keys are declared below `path`.
#[must_use]
pub fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// Whether `path` is a list whose entries have keys.
#[must_use]
pub fn is_list(path: &str) -> bool {
    is_section(&format!("{path}[]"))
}

/// What to write in place of the unknown key `name` in `section` (empty for the top): the nearest known key, or
/// all there are.
#[must_use]
pub fn instead_of(section: &str, name: &str) -> String {
    let elsewhere = KEYS.iter().find(|key| key.split().1 == name && !section.contains("[]"));
    let beside = names_in(section);
    if let Some(near) = nearest(name, beside.iter().copied()) {
        return format!("is no key; did you mean `{near}`?");
    }
    if let Some(key) = elsewhere {
        return format!("is no key here; did you mean `{}`?", key.path);
    }
    format!("is no key; there are {}", beside.join(", "))
}

/// The names that may stand directly in `section`, in the order of [`KEYS`].
fn names_in(section: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for key in KEYS {
        let rest = match section {
            "" => Some(key.path),
            _ => key.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')),
        };
        let name = rest.and_then(|rest| rest.split(['.', '[']).next());
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

/// A key's name as TOML has it: bare, or in quotes where it has to be.
#[must_use]
pub fn as_written(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { format!("{name:?}") }
}

/// The defaults as a TOML text.
#[must_use]
pub fn defaults() -> String {
    let mut toml = String::new();
    for key in KEYS {
        if let Default(value) = key.preset {
            toml.push_str(key.path);
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
        assert_eq!(instead_of("api", "base_ulr"), "is no key; did you mean `base_url`?");
        assert_eq!(instead_of("", "pol"), "is no key; did you mean `poll`?");
        assert_eq!(instead_of("projects[].apps[]", "contaners"), "is no key; did you mean `containers`?");
        assert_eq!(instead_of("api", "settle"), "is no key here; did you mean `poll.settle`?");
        assert_eq!(instead_of("accounting", "zzz"), "is no key; there are enabled, step, max_catch_up");
    }
}
