//! The service's part of the model, derived from the state of all targets.

use crate::client::Class;
use crate::clock::differ;
use crate::interface::{self, Cadence};
use crate::poll::error::ANSWERED;
use crate::telemetry::Snapshot;

use super::model::{App, Project, Resource, Service, ServiceState, State};
use super::view::View;

/// The state of the service when all failures are of one of these classes.
const TELLING: [(Class, ServiceState); 5] = [
    (Class::Credentials, ServiceState::NotAsked),
    (Class::Status(401), ServiceState::TokenRefused),
    (Class::UnauthorizedPaused, ServiceState::TokenRefused),
    (Class::Status(429), ServiceState::Throttled),
    (Class::Paused, ServiceState::Throttled),
];

/// The state of the service as the targets of `projects` and `apps` show it.
pub(super) fn service(view: &View<'_>, snapshot: &Snapshot, projects: &[Project], apps: &[App]) -> Service {
    let resources = || {
        let of_projects = projects.iter().flat_map(|project| &project.resources);
        of_projects.chain(apps.iter().flat_map(|app| &app.resources))
    };
    let metrics = |resource: &&Resource| {
        let known = interface::Resource::find(resource.resource);
        known.is_some_and(|known| known.polled().cadence == Cadence::Metrics)
    };
    // Settings are polled too rarely to tell; without apps there is nothing else.
    let telling: Vec<&Resource> = match apps.is_empty() {
        true => resources().collect(),
        false => resources().filter(metrics).collect(),
    };
    let state = state(&telling);
    let fails = !matches!(state, ServiceState::Waiting | ServiceState::Up);
    let failing = || telling.iter().filter_map(|resource| resource.failing.as_ref()).filter(|_| fails);
    let rate = view.context.telemetry.request_rate();
    let skew = snapshot.clock_skew_seconds;
    Service {
        base_url: view.plan.config.api.base_url.to_string(),
        state,
        last_success: resources().filter_map(|resource| resource.last_success).max(),
        // Since the last success of any target; without one, since the first failure.
        down_since: failing()
            .map(|failing| failing.since)
            .min()
            .map(|first| telling.iter().filter_map(|r| r.last_success).max().unwrap_or(first)),
        reason: failing().max_by_key(|failing| failing.since).map(|failing| failing.message.to_string()),
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds; a cast saturates")]
        clock_skew_seconds: skew.map(|skew| skew.round() as i64),
        clocks_differ: skew.is_some_and(differ),
        requests_per_minute: rate.requests_per_minute,
        failures_per_minute: rate.failures_per_minute,
    }
}

fn state(telling: &[&Resource]) -> ServiceState {
    if telling.iter().all(|resource| resource.state == State::Waiting) {
        return ServiceState::Waiting;
    }
    let classes = telling.iter().map(|resource| resource.failing.as_ref().map(|failing| failing.class));
    // One target that got its reply is enough.
    let unanswered = classes.map(|class| class.filter(|class| !ANSWERED.contains(class)));
    let Some(unanswered) = unanswered.collect::<Option<Vec<_>>>() else { return ServiceState::Up };
    let mut states = unanswered.into_iter().map(|class| {
        let told = TELLING.iter().find(|(known, _)| known.as_str() == class);
        told.map_or(ServiceState::Down, |(_, state)| *state)
    });
    let first = states.next().unwrap_or(ServiceState::Down);
    if states.all(|state| state == first) { first } else { ServiceState::Down }
}
