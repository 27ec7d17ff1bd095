//! Batches of queries.

use std::collections::{HashSet, VecDeque};

use crate::Key;

/// The most bytes of app ids in a query: VictoriaMetrics takes 16 KiB, and an id may be longer quoted.
const MAX_ID_BYTES: usize = 6 << 10;

/// The keys in batches of at most `apps` apps, the resources of an app together.
pub(super) fn batches(mut keys: Vec<Key>, apps: usize) -> VecDeque<Vec<Key>> {
    keys.sort();
    let mut batches: VecDeque<Vec<Key>> = VecDeque::new();
    let (mut count, mut bytes) = (0, 0);
    for key in keys {
        let same = batches
            .back()
            .and_then(|batch| batch.last())
            .is_some_and(|last| last.owner.app == key.owner.app && last.owner.project == key.owner.project);
        let id = key.owner.app.len() + key.owner.project.len();
        match batches.back_mut() {
            Some(batch) if same => batch.push(key),
            Some(batch) if count < apps && bytes + id <= MAX_ID_BYTES => {
                (count, bytes) = (count + 1, bytes + id);
                batch.push(key);
            }
            _ => {
                (count, bytes) = (1, id);
                batches.push_back(vec![key]);
            }
        }
    }
    batches
}

/// Divides the keys into about two batches. Keys of one app stay in one.
pub(super) fn halves(keys: &[Key]) -> VecDeque<Vec<Key>> {
    let apps: HashSet<_> = keys.iter().map(|key| (&key.owner.project, &key.owner.app)).collect();
    batches(keys.to_vec(), (apps.len() / 2).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Owner;
    use pds_interface::Resource;

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
        assert_eq!(sizes(&halves(&keys[..2])), [2]);
        let long = "x".repeat(4000);
        let long = |app: usize| Owner::new("p-1".into(), format!("{app}{long}").into());
        let keys = (0..3).map(|app| Key { owner: long(app), resource: counted().next().unwrap() });
        assert_eq!(sizes(&batches(keys.collect(), 200)), [1, 1, 1]);
    }
}
