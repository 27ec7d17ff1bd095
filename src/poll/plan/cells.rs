//! The cells that a configuration wants in the store, and who owns them.

use std::sync::Arc;

use tokio::time::Duration;

use crate::config::{App, Config};
use crate::store::{Desired, Section, Store, Variant};
use pds_exposition::Sink;
use pds_exposition::encode::LabelNumber;
use pds_interface::{Cadence, Counted, Resource, Scope};
use pds_ledger::{Key, Owner};

/// The time between two polls.
pub(super) fn interval(config: &Config, cadence: Cadence, app: Option<&App>) -> Duration {
    match cadence {
        Cadence::Settings => config.poll.settings_interval,
        Cadence::Metrics => app.and_then(|app| app.interval).unwrap_or(config.poll.interval),
    }
}

/// When samples are stale: after three intervals at least, so that one failed poll never makes a series vanish.
pub(super) fn stale_after(config: &Config, cadence: Cadence, app: Option<&App>) -> Duration {
    config.poll.stale_after.max(interval(config, cadence, app) * 3)
}

/// The owners of a project's own targets, and of those of each of its apps.
pub(super) type Owners = (Arc<Owner>, Vec<Arc<Owner>>);

/// The owners of all targets, parallel to the configuration's projects.
pub(super) fn owners(config: &Config) -> Vec<Owners> {
    let none: Arc<str> = "".into();
    let owners = config.projects.iter().map(|project| {
        let of = |app: &Arc<str>| Owner::new(Arc::clone(&project.id), Arc::clone(app));
        (of(&none), project.apps.iter().map(|app| of(&app.id)).collect())
    });
    owners.collect()
}

/// The polled resources, in the order of their families on the page.
pub(super) fn polled(config: &Config) -> impl Iterator<Item = Resource> {
    Resource::all().filter(|resource| config.poll.resources.contains(resource))
}

/// The apps of a configuration with their owners.
pub(super) fn apps<'a>(
    config: &'a Config,
    owners: &'a [Owners],
) -> impl Iterator<Item = (&'a App, &'a Arc<Owner>)> {
    config.projects.iter().zip(owners).flat_map(|(project, (_, owners))| project.apps.iter().zip(owners))
}

/// The cells that a configuration wants in the store.
pub(super) fn wanted(config: &Config, owners: &[Owners]) -> Vec<Desired> {
    let promised = apps(config, owners).filter(|(app, _)| app.objective.is_some());
    let mut cells: Vec<Desired> = promised
        .filter_map(|(_, owner)| objective(owner))
        .map(|key| Desired { key, section: Section::Objective, stale_after: None })
        .collect();
    for resource in polled(config) {
        let endpoint = resource.polled();
        for (project, (of_project, of_apps)) in config.projects.iter().zip(owners) {
            let about: Vec<(&Arc<Owner>, Option<&App>)> = match endpoint.scope {
                Scope::App => of_apps.iter().zip(project.apps.iter().map(Some)).collect(),
                Scope::Project | Scope::Account => {
                    project.polled.then_some((of_project, None)).into_iter().collect()
                }
            };
            for (owner, app) in about {
                let key = Key { owner: Arc::clone(owner), resource };
                if endpoint.counted.is_some() && config.accounting.enabled {
                    cells.push(Desired { key: key.clone(), section: Section::Counters, stale_after: None });
                }
                let stale_after = Some(stale_after(config, endpoint.cadence, app));
                cells.push(Desired { key, section: Section::Endpoint, stale_after });
            }
        }
    }
    cells
}

/// Writes the configured objectives of apps, which alert rules read, to their cells.
pub(super) fn show_objectives<'a>(apps: impl Iterator<Item = (&'a App, &'a Arc<Owner>)>, store: &Store) {
    for (app, owner) in apps {
        let Some(promised) = app.objective else { continue };
        let cell = objective(owner).and_then(|key| store.cell(&key, Section::Objective));
        let Some(cell) = cell else { continue };
        let mut sink = Sink::default();
        sink.next_family();
        let seconds = promised.threshold.as_secs_f64();
        sink.put_with(&[("threshold", LabelNumber::default().text(seconds))], promised.share());
        cell.replace(&Variant::default(), sink);
    }
}

/// The key of an app's objective: that of its response times, which the objective is about.
fn objective(owner: &Arc<Owner>) -> Option<Key> {
    let resource = Resource::all().find(|resource| resource.polled().counted == Some(Counted::Requests))?;
    Some(Key { owner: Arc::clone(owner), resource })
}
