//! All keys of the configuration, as the sections declare them.
//!
//! Defaults, environment names, suggestions for unknown keys, `config.example.toml`, the tables of the documentation and
//! the `/config` page derive from [`all`].

use std::cell::RefCell;
use std::path::Path;
use std::sync::LazyLock;

use super::key::{Key, Preset};
use super::raw::{Found, Shared, Table};
use super::section::Section as _;

/// All keys, in the order of the example file.
#[must_use]
pub fn all() -> &'static [Key] {
    static ALL: LazyLock<Vec<Key>> = LazyLock::new(|| {
        let found = RefCell::new(Found { keys: Some(Vec::new()), ..Found::default() });
        let shared = Shared { folder: Path::new(""), taken_labels: None, included: &[], found: &found };
        // Reading a configuration without values declares the keys. That required ones are missing does not matter.
        let _ = super::Config::read(&Table { key: String::new(), values: None, shared });
        found.into_inner().keys.unwrap_or_default()
    });
    &ALL
}

/// The key declared at `path`.
#[must_use]
pub fn find(path: &str) -> Option<&'static Key> {
    all().iter().find(|key| key.path == path)
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

/// The message about the unknown key `name` in `section` (empty at the top). It names the nearest known key, or all.
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

/// The defaults as a TOML text.
#[must_use]
pub fn defaults() -> String {
    let defaults = all().iter().filter_map(|key| match key.preset {
        Preset::Default(value) => Some(format!("{} = {value}\n", key.path)),
        _ => None,
    });
    defaults.collect()
}

/// Minimum similarity for a suggestion (Damerau-Levenshtein, 1 = equal): half of the letters.
const ALIKE: f64 = 0.5;

/// The word of `known` that is nearest to `word`, if any is near; the first of equally near ones.
#[must_use]
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
    use super::*;

    #[test]
    fn a_key_has_one_name_in_the_environment() {
        let name = |path| find(path).unwrap().environment_name();
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
