//! The input of the model.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use tokio::time::Instant;

use crate::poll::error::ADDRESS;
use crate::poll::plan::{Target, TargetSubject};
use crate::poll::{Context, Plan};
use crate::store::{Failure, Health, Store, Variant};
use pds_client::Account;
use pds_config::{App, Project};
use pds_exposition::{Family, Labels, Samples};
use pds_interface::{ReplyBody as _, Resource, Scope, get_app, list_projects};
use pds_ledger::{Owner, Settled, ledger_store::Found};
use pds_telemetry::Snapshot;

use super::incidents::Observed;
use pds_diagnosis::{Cause, cause, mistake_in_id, model};

/// The most unknown ids that a view compares with known ids.
const MAX_COMPARED: usize = 100;

/// Apps prefetched per batch.
const AHEAD: usize = 32;

/// An app in the configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Its index among all apps, and so among the targets of each resource of apps.
    index: usize,
    /// The index of its project, and its own within the project.
    project: usize,
    app: usize,
}

/// A target with one of its subjects (a project or app), its ledger and its status.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) target: &'a Target,
    pub(super) subject: &'a TargetSubject,
    pub(super) found: Option<Found>,
    pub(super) status: model::Resource,
}

impl Part<'_> {
    pub(super) fn resource(&self) -> Resource {
        self.target.key.resource
    }

    /// Its status with the pending seconds, which no verdict needs.
    pub(super) fn whole_status(&self) -> model::Resource {
        let pending_seconds = self.found.as_ref().map_or(0, |found| found.ledger.pending());
        model::Resource { pending_seconds, ..self.status.clone() }
    }
}

/// The input of the model at one moment.
#[derive(Debug)]
pub(super) struct View {
    pub(super) plan: Arc<Plan>,
    pub(super) context: Context,
    pub(super) now: Timestamp,
    pub(super) instant: Instant,
    pub(super) settled: Settled,
    pub(super) snapshot: Snapshot,
    pub(super) observed: Arc<Observed>,
    /// The problems of the last reload, if it was refused.
    pub(super) refused: Option<String>,
    wrong_address: OnceLock<bool>,
    lacks_settings: OnceLock<bool>,
    mismatched_tokens: OnceLock<BTreeMap<String, String>>,
    /// The number of unknown ids compared so far.
    compared: AtomicUsize,
}

impl View {
    pub(super) fn new(
        plan: Arc<Plan>,
        context: Context,
        observed: Arc<Observed>,
        refused: Option<String>,
    ) -> Self {
        Self {
            observed,
            refused,
            wrong_address: OnceLock::new(),
            lacks_settings: OnceLock::new(),
            mismatched_tokens: OnceLock::new(),
            compared: AtomicUsize::new(0),
            now: context.clock.now(),
            instant: Instant::now(),
            settled: plan.watermark.at_present(),
            snapshot: context.telemetry.snapshot(),
            plan,
            context,
        }
    }

    /// Calls `read` for the apps at `range` of all apps, each with its targets.
    pub(super) fn each_app<'a>(&'a self, range: Range<usize>, mut read: impl FnMut(Place, &[Part<'a>])) {
        let runs: Vec<&[Arc<Target>]> = self.app_targets().collect();
        let places: Vec<Place> = self.places().skip(range.start).take(range.len()).collect();
        for places in places.chunks(AHEAD) {
            let targets = places.iter().flat_map(|place| runs.iter().map(|run| &run[place.index]));
            let targets: Vec<_> = targets.filter_map(with_subject).collect();
            fetch(&targets);
            let parts = self.parts(targets);
            for (start, place) in places.iter().enumerate() {
                read(*place, &parts[start * runs.len()..][..runs.len()]);
            }
        }
    }

    /// All apps, in the order of the configuration.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let projects = self.plan.config.projects.iter().enumerate();
        let places = projects.flat_map(|(p, project)| (0..project.apps.len()).map(move |app| (p, app)));
        places.enumerate().map(|(index, (project, app))| Place { index, project, app })
    }

    /// The targets of each project.
    pub(super) fn of_projects(&self) -> Vec<Vec<Part<'_>>> {
        let mut found = vec![Vec::new(); self.plan.config.projects.len()];
        let others = Resource::all().filter(|resource| resource.polled().scope != Scope::App);
        for target in others.flat_map(|resource| self.targets_of(resource)) {
            for subject in &target.subjects {
                found[subject.project].push((&**target, subject));
            }
        }
        found.into_iter().map(|of_project| self.parts(of_project)).collect()
    }

    /// The targets of one app.
    pub(super) fn parts_of(&self, place: Place) -> Vec<Part<'_>> {
        self.parts(self.app_targets().filter_map(|run| with_subject(&run[place.index])).collect())
    }

    /// The targets with their ledgers and their status.
    fn parts<'a>(&self, targets: Vec<(&'a Target, &'a TargetSubject)>) -> Vec<Part<'a>> {
        let keys = targets.iter().map(|(target, _)| target.counter.as_ref().map(|_| &target.key));
        let found = self.context.ledgers.find(keys);
        let part = |((target, subject), found): ((&'a Target, &'a TargetSubject), Option<Found>)| Part {
            status: self.resource(target, subject, found.as_ref()),
            target,
            subject,
            found,
        };
        targets.into_iter().zip(found).map(part).collect()
    }

    /// The targets of each polled resource of apps: one of each app, in the order of the configuration.
    fn app_targets(&self) -> impl Iterator<Item = &[Arc<Target>]> {
        let of_apps = Resource::all().filter(|resource| resource.polled().scope == Scope::App);
        of_apps.map(|resource| self.targets_of(resource)).filter(|run| !run.is_empty())
    }

    /// The targets of `resource`. A plan lists its targets by resource.
    fn targets_of(&self, resource: Resource) -> &[Arc<Target>] {
        let start = self.plan.targets.partition_point(|target| target.key.resource < resource);
        let end = self.plan.targets.partition_point(|target| target.key.resource <= resource);
        self.plan.targets.get(start..end).unwrap_or_default()
    }

    /// The cause of failures of this class with `account`.
    pub(super) fn cause_of(&self, class: &str, account: &Account) -> &'static Cause {
        let token = || self.snapshot.tokens.get(account.name()).filter(|token| token.accepted != Some(true));
        let has_expired = || token().and_then(|token| token.expires).is_some_and(|at| at <= self.now);
        Cause::within(
            class,
            self.has_wrong_address(),
            self.other_project(account.name()).is_some(),
            has_expired,
        )
    }

    /// The project of a token that is set for another one, in words, unless the token reads anything there.
    pub(super) fn other_project(&self, token: &str) -> Option<&str> {
        let others = self.mismatched_tokens.get_or_init(|| {
            let mut others = self.plan.client.mismatched_tokens();
            for target in self.plan.targets.iter().filter(|target| target.endpoint.scope != Scope::Account) {
                let token = target.account.name();
                if others.contains_key(token) && self.health(target).up == Some(true) {
                    others.remove(token);
                }
            }
            others
        });
        others.get(token).map(String::as_str)
    }

    /// Whether the service has no list of projects at the configured address, and answers nothing else there.
    fn has_wrong_address(&self) -> bool {
        *self.wrong_address.get_or_init(|| {
            let lists = self.targets_of(list_projects::RESOURCE).iter();
            let mut failing = lists.filter_map(|target| self.health(target).failing);
            failing.any(|failure| failure.class == ADDRESS)
                && !self.plan.targets.iter().any(|target| self.health(target).up == Some(true))
        })
    }

    /// Whether the service returns 404 for the settings of all apps, which are more than one.
    pub(super) fn lacks_settings(&self) -> bool {
        *self.lacks_settings.get_or_init(|| {
            let settings = self.targets_of(get_app::RESOURCE);
            let mut failing = settings.iter().map(|target| self.health(target).failing);
            let is_missing = |failure: Arc<Failure>| *Cause::of_class(failure.class) == cause::NOT_FOUND;
            settings.len() > 1 && failing.all(|failure| failure.is_some_and(is_missing))
        })
    }

    /// The outcome of the last poll of `target`.
    fn health(&self, target: &Target) -> Health {
        let health = |subject: &TargetSubject| subject.cell.health_at(&Variant::default(), self.instant).0;
        target.subjects.first().map(health).unwrap_or_default()
    }

    /// The likely mistake in an id that the service does not know. Stops comparing after [`MAX_COMPARED`] calls, as a
    /// list may be long.
    pub(super) fn known_as(&self, owner: &Owner) -> Option<String> {
        if self.compared.fetch_add(1, Ordering::Relaxed) >= MAX_COMPARED {
            return None;
        }
        let configured = self.plan.config.projects.iter().map(|project| &*project.id);
        mistake_in_id(&owner.project, &owner.app, configured, || {
            let account = self.plan.client.account(&owner.project);
            let list =
                self.targets_of(list_projects::RESOURCE).iter().find(|target| target.account == account)?;
            let reply = self.context.store.replies().of(&list.key)?;
            let projects = list_projects::Reply::decode(reply.text.as_bytes()).ok()?;
            Some(projects.into_iter().map(|project| project.id.0).collect())
        })
    }

    /// A project of the configuration and one of its apps.
    pub(super) fn configured(&self, place: Place) -> (&Project, &App) {
        let project = &self.plan.config.projects[place.project];
        (project, &project.apps[place.app])
    }
}

fn with_subject(target: &Arc<Target>) -> Option<(&Target, &TargetSubject)> {
    Some((target, target.subjects.first()?))
}

/// Prefetches the data of `targets`. Data of a hundred thousand apps is in no cache; otherwise each later read would
/// wait for memory in turn.
fn fetch(targets: &[(&Target, &TargetSubject)]) {
    let read = |(target, subject): &(&Target, &TargetSubject)| {
        let ends = Arc::strong_count(&subject.cell) ^ subject.cell.section as usize;
        ends ^ Arc::strong_count(&target.progress)
    };
    std::hint::black_box(targets.iter().fold(0, |all, target| all ^ read(target)));
}

/// The samples of one target with their families.
#[derive(Clone, Debug)]
pub(super) struct Values<'a> {
    pub(super) families: &'a [Family],
    samples: Option<Arc<Samples>>,
}

impl<'a> Values<'a> {
    /// The samples of `resource`, if it has any.
    pub(super) fn new(store: &'a Store, resource: Resource, samples: Option<Arc<Samples>>) -> Self {
        let families = store.families().get(resource.index());
        Self { families: families.map_or(&[], Vec::as_slice), samples }
    }

    /// The series of `family`.
    fn series(&self, family: &Family) -> impl Iterator<Item = (Labels<'_>, f64)> {
        self.samples.iter().flat_map(|samples| samples.series(self.families, family))
    }

    /// The value of the only series of `family`.
    pub(super) fn value(&self, family: &Family) -> Option<f64> {
        self.series(family).next().map(|(_, value)| value)
    }

    /// The value of the label `label` of the first series of `family`; `None` if it is empty.
    pub(super) fn label(&self, family: &Family, label: &str) -> Option<Cow<'_, str>> {
        self.series(family).next()?.0.get(label).filter(|value| !value.is_empty())
    }

    /// The labels of the first series of `family` that the family does not declare: the configured labels.
    pub(super) fn configured_labels(&self, family: &Family) -> Vec<(String, String)> {
        let labels = self.series(family).next().into_iter().flat_map(|(labels, _)| labels.iter());
        let configured = labels.filter(|(name, _)| !family.labels.contains(name));
        configured.map(|(name, value)| (name.to_owned(), value.into_owned())).collect()
    }

    /// The series of `family` by the value of their label `label`.
    pub(super) fn by(&self, family: &Family, label: &str) -> Vec<(Cow<'_, str>, f64)> {
        self.series(family).filter_map(|(labels, value)| Some((labels.get(label)?, value))).collect()
    }
}
