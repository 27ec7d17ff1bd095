//! All keys of the configuration, as the sections declare them.
//!
//! Environment names, suggestions for unknown keys, `config.example.toml`, the tables of the documentation and
//! the `/config` page derive from [`all`].

use std::sync::LazyLock;

use super::key::Key;

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
