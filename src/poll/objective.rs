//! The configured objectives of apps, exposed for alert rules.

use std::sync::Arc;

use crate::config::App;
use crate::store::{Desired, Section, Store, Variant};
use pds_exposition::Sink;
use pds_exposition::encode::LabelNumber;
use pds_interface::Resource;
use pds_interface::polled::Counted;
use pds_ledger::{Key, Owner};

/// The cells of the apps that have an objective.
pub(super) fn wanted<'a>(apps: impl Iterator<Item = (&'a App, &'a Arc<Owner>)>) -> Vec<Desired> {
    let promised = apps.filter(|(app, _)| app.objective.is_some());
    promised
        .filter_map(|(_, owner)| {
            Some(Desired { key: key(owner)?, section: Section::Objective, stale_after: None })
        })
        .collect()
}

/// Writes the objectives to their cells.
pub(super) fn show<'a>(apps: impl Iterator<Item = (&'a App, &'a Arc<Owner>)>, store: &Store) {
    for (app, owner) in apps {
        let Some(objective) = app.objective else { continue };
        let Some(cell) = key(owner).and_then(|key| store.cell(&key, Section::Objective)) else { continue };
        let mut sink = Sink::default();
        sink.next_family();
        let seconds = objective.threshold.as_secs_f64();
        sink.put_with(&[("threshold", LabelNumber::default().text(seconds))], objective.share());
        cell.replace(&Variant::default(), sink);
    }
}

/// The key of an app's objective: that of its response times, which the objective is about.
fn key(owner: &Arc<Owner>) -> Option<Key> {
    let resource = Resource::all().find(|resource| resource.polled().counted == Some(Counted::Requests))?;
    Some(Key { owner: Arc::clone(owner), resource })
}
