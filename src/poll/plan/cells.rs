//! The projects and apps of a configuration, and their cells in the store.

use std::sync::Arc;

use crate::store::{NewCells, Section, Variant};
use pds_config::{App, Config};
use pds_core::units::as_seconds;
use pds_exposition::Sink;
use pds_exposition::encode::LabelNumber;
use pds_interface::{Resource, Scope, response_time};
use pds_ledger::{Key, Owner};

/// A project, or one of its apps.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// The index of the project in the configuration.
    pub(super) project: usize,
    /// The app, and its index in the project.
    pub(super) app: Option<(usize, &'a App)>,
    pub(super) owner: Arc<Owner>,
}

impl Place<'_> {
    pub(super) fn key(&self, resource: Resource) -> Key {
        Key { owner: Arc::clone(&self.owner), resource }
    }
}

/// The projects that are polled themselves, and all apps, in the order of the configuration.
pub(super) fn places(config: &Config) -> Vec<Place<'_>> {
    let none: Arc<str> = "".into();
    let mut places = Vec::new();
    for (index, project) in config.projects.iter().enumerate() {
        let owner = |app: &Arc<str>| Owner::new(Arc::clone(&project.id), Arc::clone(app));
        if project.polled {
            places.push(Place { project: index, app: None, owner: owner(&none) });
        }
        let apps = project.apps.iter().enumerate();
        places.extend(apps.map(|app| Place { project: index, app: Some(app), owner: owner(&app.1.id) }));
    }
    places
}

/// The `places` that calls of this scope describe.
pub(super) fn within<'a>(scope: Scope, places: &'a [Place<'a>]) -> impl Iterator<Item = &'a Place<'a>> {
    places.iter().filter(move |place| place.app.is_some() == (scope == Scope::App))
}

/// The polled resources, in the order of their families on the page.
pub(super) fn polled(config: &Config) -> impl Iterator<Item = Resource> {
    Resource::all().filter(|resource| config.poll.resources.contains(resource))
}

/// Adds the cells of the configured objectives, which alert rules read, under the keys of the response times that they
/// limit.
pub(super) fn add_objectives(places: &[Place<'_>], cells: &mut NewCells<'_>) {
    for place in places {
        let Some(promised) = place.app.and_then(|(_, app)| app.objective) else { continue };
        let mut sink = Sink::default();
        sink.next_family();
        let seconds = as_seconds(promised.threshold);
        sink.put_with(&[("threshold", LabelNumber::default().text(seconds))], promised.share);
        let cell = cells.add(place.key(response_time::RESOURCE), Section::Objective);
        cell.replace(&Variant::default(), sink);
    }
}

/// `None` for the whole app, then the configured containers.
pub(in crate::poll) fn containers(app: Option<&App>) -> impl Iterator<Item = Option<Arc<str>>> {
    let configured = app.map_or(&[][..], |app| &app.containers).iter();
    std::iter::once(None).chain(configured.map(|container| Some(Arc::clone(container))))
}
