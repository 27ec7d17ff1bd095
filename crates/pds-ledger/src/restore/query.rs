//! The queries, in PromQL.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::Key;

/// A metric that is on every page and whose value identifies the process: the time when it loaded its configuration, to
/// the microsecond. `--web.disable-exporter-metrics` does not remove it.
const PROCESS: &str = "pds_exporter_config_last_reload_success_timestamp_seconds";

/// The gauges to read.
const CURSOR: &str = "pds_app_accounted_until_timestamp_seconds";
const PENDING: &str = "pds_app_pending_seconds";

/// The processes scraped within the last five minutes, as of five seconds ago: samples of one moment become visible within
/// seconds of each other, in any order.
pub(super) fn processes(selector: &str) -> String {
    format!("last_over_time({{__name__=\"{PROCESS}\",{selector}}}[300s] offset 5s)")
}

/// The greatest cursor within `window` of each counter and target.
pub(super) fn greatest(keys: &[Key], selector: &str, window: Duration) -> String {
    format!("max_over_time({})", all(keys, selector, window))
}

/// All cursors within `window`.
pub(super) fn all(keys: &[Key], selector: &str, window: Duration) -> String {
    samples(CURSOR, keys, selector, window)
}

/// The last pending time within `window` of each counter and target that has any.
pub(super) fn pending(keys: &[Key], selector: &str, window: Duration) -> String {
    format!("last_over_time({}) > 0", samples(PENDING, keys, selector, window))
}

/// All samples of `metric` within `window`.
fn samples(metric: &str, keys: &[Key], selector: &str, window: Duration) -> String {
    let resources = one_of("resource", keys.iter().map(|key| key.resource.as_str()));
    // With several projects, these match a few other apps too.
    let projects = one_of("project", keys.iter().map(|key| &*key.owner.project));
    let apps = one_of("app", keys.iter().map(|key| &*key.owner.app));
    let window = window.as_secs().max(1);
    format!("{{__name__=\"{metric}\",{resources}{projects}{apps}{selector}}}[{window}s]")
}

/// The matcher `name=~"a|b",` for these values, each once.
fn one_of<'a>(name: &str, values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<String> = BTreeSet::from_iter(values).into_iter().map(literal).collect();
    format!("{name}=~\"{}\",", values.join("|"))
}

/// `value` as a regular expression that matches only itself, inside a quoted string: characters with a meaning in either
/// are written as `\\x{2e}`.
fn literal(value: &str) -> String {
    let mut out = String::new();
    for character in value.chars() {
        match character {
            plain if plain.is_alphanumeric() || plain == '-' || plain == '_' => out.push(plain),
            other => out.push_str(&format!("\\\\x{{{:x}}}", u32::from(other))),
        }
    }
    out
}

/// The most bytes of app ids in a query. VictoriaMetrics accepts queries of 16 KiB, and quoting may lengthen an id.
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
    fn a_query_names_metric_apps_and_selector() {
        for name in [CURSOR, PENDING] {
            assert!(crate::FAMILIES.iter().any(|family| family.name == name));
        }
        let keys = [key("p-1", "p-1-b"), key("p-1", "p-1-a.b"), key("p-1", "p-1-b")];
        assert_eq!(
            greatest(&keys, "job=\"pds\"", Duration::from_secs(300)),
            "max_over_time({__name__=\"pds_app_accounted_until_timestamp_seconds\",resource=~\"response_time\",\
             project=~\"p-1\",app=~\"p-1-a\\\\x{2e}b|p-1-b\",job=\"pds\"}[300s])"
        );
        assert!(all(&keys[..1], "", Duration::ZERO).ends_with(",app=~\"p-1-b\",}[1s]"));
        assert!(pending(&keys[..1], "", Duration::ZERO).ends_with(",app=~\"p-1-b\",}[1s]) > 0"));
        assert_eq!(
            processes("job=\"pds\""),
            "last_over_time({__name__=\"pds_exporter_config_last_reload_success_timestamp_seconds\",job=\"pds\"}\
             [300s] offset 5s)"
        );
    }

    #[test]
    fn an_id_matches_itself_alone() {
        let out = literal("a\\b\"c-\n(d_é)\u{7}$");
        assert_eq!(out, r#"a\\x{5c}b\\x{22}c-\\x{a}\\x{28}d_é\\x{29}\\x{7}\\x{24}"#);
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
