//! The projects and apps of a configuration, and their cells in the store.

use std::sync::Arc;

use crate::store::{Section, TargetState, Variant};
use pds_config::{App, Config, Objective};
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

    /// The configured objective, which alert rules read, under the key of the response times that it limits.
    fn objective(&self) -> Option<(Key, Objective)> {
        Some((self.key(response_time::RESOURCE), self.app?.1.objective?))
    }
}

/// A place with its cells for one call.
#[derive(Debug)]
pub(super) struct Celled<'a> {
    pub(super) place: &'a Place<'a>,
    pub(super) cell: Arc<TargetState>,
    pub(super) counter: Option<Arc<TargetState>>,
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

/// The cells that a configuration needs in the store; cells of counters only if it `counts`.
pub(super) fn wanted(config: &Config, places: &[Place<'_>], counts: bool) -> Vec<(Key, Section)> {
    let objectives = places.iter().filter_map(Place::objective);
    let mut cells: Vec<(Key, Section)> = objectives.map(|(key, _)| (key, Section::Objective)).collect();
    for resource in polled(config) {
        let endpoint = resource.polled();
        for place in within(endpoint.scope, places) {
            if endpoint.counted.is_some() && counts {
                cells.push((place.key(resource), Section::Counters));
            }
            cells.push((place.key(resource), Section::Endpoint));
        }
    }
    cells
}

/// Writes the configured objectives to their cells, which precede the others.
pub(super) fn show_objectives(places: &[Place<'_>], cells: &mut impl Iterator<Item = Arc<TargetState>>) {
    for ((_, promised), cell) in places.iter().filter_map(Place::objective).zip(cells) {
        let mut sink = Sink::default();
        sink.next_family();
        let seconds = promised.threshold.as_secs_f64();
        sink.put_with(&[("threshold", LabelNumber::default().text(seconds))], promised.share());
        cell.replace(&Variant::default(), sink);
    }
}

/// `None` for the whole app, then the configured containers.
pub(in crate::poll) fn containers(app: Option<&App>) -> impl Iterator<Item = Option<Arc<str>>> {
    let configured = app.map_or(&[][..], |app| &app.containers).iter();
    std::iter::once(None).chain(configured.map(|container| Some(Arc::clone(container))))
}
