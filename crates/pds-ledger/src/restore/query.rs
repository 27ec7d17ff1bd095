//! The queries, in PromQL.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::SignedDuration;

use crate::Key;
use crate::counters::{Number, Shows};

use super::series;

/// The widest window in which whole pages are searched, and the step of [`hours`].
pub(super) const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// A metric that every page of an exporter has, and whose value no two processes share: the time when the process
/// loaded its configuration, to the microsecond. `--web.disable-exporter-metrics` leaves it.
pub(super) const PROCESS: &str = "pds_exporter_config_last_reload_success_timestamp_seconds";

/// A metric that every page has for each target that was polled.
pub(super) const POLLED: &str = "pds_up";

/// The time by the clock of that Prometheus.
pub(super) const TIME: &str = "time()";

/// The buckets of the apps of `keys`, as of the last scrape within `window` that had them.
pub(super) fn buckets(keys: &[Key], selector: &str, window: Duration) -> String {
    let buckets = series::names(|shows| shows == Shows::Buckets);
    last(&[one_of("__name__", buckets), apps(keys)].concat(), selector, window)
}

/// All samples within `window` of what is needed as of one scrape of the apps of `keys`, each with its own time; without
/// `buckets`, only of the bucket `+Inf`, which stands in for a total that relabelling has dropped.
pub(super) fn moments(keys: &[Key], selector: &str, window: Duration, buckets: bool) -> String {
    let buckets = if buckets { String::new() } else { one_of("le", ["", "+Inf"].into_iter()) };
    let matchers = [one_of("__name__", series::names(|_| true)), buckets, apps(keys)].concat();
    format!("{{{matchers}{selector}}}[{}s]", window.as_secs().max(1))
}

/// The last totals within `window` of the counters of the apps of `keys`.
pub(super) fn totals(keys: &[Key], selector: &str, window: Duration) -> String {
    let totals = series::names(|shows| shows == Shows::Number(Number::Total));
    last(&[one_of("__name__", totals), apps(keys)].concat(), selector, window)
}

/// The hours within `window` in which totals of the apps of `keys` were scraped: a sample at the end of each.
pub(super) fn hours(keys: &[Key], selector: &str, window: Duration) -> String {
    let (window, hour) = (window.as_secs().max(1), HOUR.unsigned_abs());
    format!("{}[{window}s:{}s]", totals(keys, selector, hour), hour.as_secs())
}

/// The processes scraped within `window`.
pub(super) fn processes(selector: &str, window: Duration) -> String {
    last(&format!("__name__=\"{PROCESS}\","), selector, window)
}

/// Which resources of the apps of `keys` were on a page scraped within `window`.
pub(super) fn polled(keys: &[Key], selector: &str, window: Duration) -> String {
    let resources = one_of("resource", keys.iter().map(|key| key.resource.as_str()));
    last(&[format!("__name__=\"{}\",", POLLED), resources, apps(keys)].concat(), selector, window)
}

fn last(matchers: &str, selector: &str, window: Duration) -> String {
    format!("last_over_time({{{matchers}{selector}}}[{}s])", window.as_secs().max(1))
}

/// Matchers for the apps of `keys`. For several projects they match a little more than that.
fn apps(keys: &[Key]) -> String {
    let projects = one_of("project", keys.iter().map(|key| &*key.owner.project));
    projects + &one_of("app", keys.iter().map(|key| &*key.owner.app))
}

/// The matcher `name=~"a|b",` for these values, each once.
fn one_of(name: &str, values: impl Iterator<Item = impl AsRef<str> + Ord>) -> String {
    let mut values: Vec<_> = values.collect();
    values.sort();
    values.dedup();
    let values: Vec<String> = values.iter().map(|value| literal(value.as_ref())).collect();
    format!("{name}=~\"{}\",", values.join("|"))
}

/// `value` as a regular expression that matches only itself, inside a quoted string.
fn literal(value: &str) -> String {
    let mut out = String::new();
    for character in value.chars() {
        match character {
            // A backslash for the expression, and each backslash twice for the string.
            '\\' => out.push_str("\\\\\\\\"),
            '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' => {
                out.push_str("\\\\");
                out.push(character);
            }
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            // Characters that a quoted string cannot hold.
            control if control.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out
}

/// The most bytes of app ids in a query: VictoriaMetrics takes 16 KiB, and an id may be longer quoted.
const MAX_ID_BYTES: usize = 6 << 10;

/// The keys in batches of at most `apps` apps, the resources of an app together.
pub(super) fn batches(mut keys: Vec<Key>, apps: usize) -> VecDeque<Vec<Key>> {
    keys.sort();
    let mut batches: VecDeque<Vec<Key>> = VecDeque::new();
    let (mut count, mut bytes) = (0, 0);
    for of_app in keys.chunk_by(|one, other| one.owner == other.owner) {
        let id = of_app[0].owner.app.len() + of_app[0].owner.project.len();
        match batches.back_mut() {
            Some(batch) if count < apps && bytes + id <= MAX_ID_BYTES => {
                (count, bytes) = (count + 1, bytes + id);
                batch.extend_from_slice(of_app);
            }
            _ => {
                (count, bytes) = (1, id);
                batches.push_back(of_app.to_vec());
            }
        }
    }
    batches
}

/// Divides a batch into about two. Keys of one app stay in one.
pub(super) fn halves(keys: &[Key]) -> VecDeque<Vec<Key>> {
    let apps = keys.chunk_by(|one, other| one.owner == other.owner).count();
    batches(keys.to_vec(), (apps / 2).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Owner;
    use pds_interface::Resource;

    fn key(project: &str, app: &str) -> Key {
        let resource = Resource::all().find(|resource| resource.polled().counted.is_some()).unwrap();
        Key { owner: Owner::new(project.into(), app.into()), resource }
    }

    #[test]
    fn a_question_names_metrics_apps_and_selector() {
        let keys = [key("p-1", "p-1-b"), key("p-1", "p-1-a.b"), key("p-1", "p-1-b")];
        assert_eq!(
            polled(&keys, "job=\"pds\"", Duration::from_secs(300)),
            "last_over_time({__name__=\"pds_up\",resource=~\"response_time\",project=~\"p-1\",\
             app=~\"p-1-a\\\\.b|p-1-b\",job=\"pds\"}[300s])"
        );
        assert!(buckets(&keys, "", Duration::from_secs(300)).starts_with(
            "last_over_time({__name__=~\"pds_app_request_duration_seconds_bucket\",project=~\"p-1\",app="
        ));
        let range = "project=~\"p-1\",app=~\"p-1-b\",job=\"pds\"}[300s]";
        let moments = |buckets| moments(&keys[..1], "job=\"pds\"", Duration::from_secs(300), buckets);
        assert!(moments(true).ends_with(&format!("_total\",{range}")), "{}", moments(true));
        assert!(moments(false).ends_with(&format!(",le=~\"|\\\\+Inf\",{range}")), "{}", moments(false));
        assert_eq!(
            hours(&keys[..1], "", Duration::from_secs(86_400)),
            "last_over_time({__name__=~\"pds_app_requests_total|pds_app_runs_total\",project=~\"p-1\",\
             app=~\"p-1-b\",}[3600s])[86400s:3600s]"
        );
        assert_eq!(
            processes("", Duration::ZERO),
            "last_over_time({__name__=\"pds_exporter_config_last_reload_success_timestamp_seconds\",}[1s])"
        );
    }

    #[test]
    fn an_id_matches_itself_alone() {
        let out = literal("a\\b\"c\n(d)\u{7}$");
        assert_eq!(out, "a\\\\\\\\b\\\"c\\n\\\\(d\\\\)\\u0007\\\\$");
    }

    #[test]
    fn an_app_is_in_one_batch_and_no_batch_has_too_many() {
        let counted = || Resource::all().filter(|resource| resource.polled().counted.is_some());
        let keys: Vec<Key> = (0..450)
            .map(|app| Owner::new("p-1".into(), format!("p-1-{app}").into()))
            .flat_map(|owner| counted().map(move |resource| Key { owner: owner.clone(), resource }))
            .collect();
        let sizes = |batches: &VecDeque<Vec<Key>>| batches.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(&batches(keys.clone(), 200)), [400, 400, 100]);
        assert_eq!(sizes(&halves(&keys[..6])), [2, 2, 2]);
        assert_eq!(sizes(&halves(&keys[..8])), [4, 4]);
        assert_eq!(sizes(&halves(&keys[..2])), [2]);
        let long = "x".repeat(4000);
        let long = |app: usize| Owner::new("p-1".into(), format!("{app}{long}").into());
        let keys = (0..3).map(|app| Key { owner: long(app), resource: counted().next().unwrap() });
        assert_eq!(sizes(&batches(keys.collect(), 200)), [1, 1, 1]);
        let long =
            |app: usize| Owner::new("p".repeat(1000).into(), format!("{app}{}", "x".repeat(2000)).into());
        let keys = (0..3).map(|app| Key { owner: long(app), resource: counted().next().unwrap() });
        assert_eq!(sizes(&batches(keys.collect(), 200)), [2, 1], "an id of the project counts, too");
    }
}
