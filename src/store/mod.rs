//! The last samples of every target, and the pages made of them.
//!
//! A [`TargetState`] holds the last samples of one target (a resource of a project or app). A poll replaces them as a
//! whole, and they expire. These cells are grouped in sections in the order of the page: one per endpoint, one for the
//! counters, one for the objectives. A scrape takes a [`Snapshot`] (shared pointers, no copies of values) and renders
//! it. Scrapes and polls wait for each other only while one of them reads or writes a cell.
//!
//! - [`target_state`]: one target's samples, health and expiry.
//! - [`history`]: its events, including the log's transitions; [`six_hours`]: its last samples; `changes`: changes of
//!   its settings.
//! - `gone`: apps that the service or the configuration no longer has.
//! - [`replies`]: last replies in full, within a memory limit.
//! - [`render`]: a snapshot as text, chunk by chunk; `filter`: the part of it that a query selects.
//! - [`pages`]: rendered pages, at most one per change; `gzip`: their bytes, plain or compressed.

mod changes;
mod filter;
mod gone;
mod gzip;
pub mod history;
pub mod pages;
pub mod render;
pub mod replies;
pub mod six_hours;
pub mod target_state;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::time::Instant;

use pds_exposition::Family;
use pds_exposition::samples::Layouts;
use pds_interface::{Resource, response_time};
use pds_ledger::{Key, Owner};
use pds_telemetry::catalogue::OBJECTIVE;

pub use changes::{Change, Fact};
pub use filter::Filter;
pub use gone::GoneApps;
pub use history::{Event, Events, Failure, History, PollFailure, PollRecord, Transition, What};
pub use pages::{Pages, RenderPanicked};
pub use render::Snapshot;
pub use replies::{Replies, Reply};
pub use six_hours::{Point, SlotSummary};
pub use target_state::{Health, TargetState, Variant};

/// The section of a cell: its endpoint's, the counters' or the objectives'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// Samples from the service.
    Endpoint,
    /// Counters. Visible for as long as [`TargetState::put_counters`] says.
    Counters,
    /// The configured objective of an app; never stale.
    Objective,
}

/// All cells. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Store(Arc<StoreInner>);

#[derive(Debug)]
struct StoreInner {
    /// Families by section: one for each endpoint, then the counters', then the objective.
    families: Vec<Vec<Family>>,
    cells: RwLock<Arc<Index>>,
    replies: Replies,
    gone: Mutex<GoneApps>,
    shared: Arc<Shared>,
}

/// Shared by the store and its cells.
#[derive(Debug, Default)]
struct Shared {
    layouts: Layouts,
    /// Rises with every change of any cell.
    version: AtomicU64,
    /// The version of the last whole page.
    read: AtomicU64,
    /// Seconds per slot of the apps' last hours.
    slot_seconds: AtomicU32,
}

/// Indices of the cells.
#[derive(Debug, Default)]
struct Index {
    /// The cells by section, each section sorted by key.
    sections: Vec<Vec<Arc<TargetState>>>,
    /// The apps, sorted by their own id.
    apps: Vec<Arc<Owner>>,
    /// Cells known to be polled, from the first one on.
    polled: AtomicUsize,
}

impl Index {
    fn cell(&self, key: &Key, section: Section) -> Option<&Arc<TargetState>> {
        let cells = self.sections.get(section_index(section, key.resource))?;
        cells.get(cells.binary_search_by(|cell| cell.key.cmp(key)).ok()?)
    }

    fn has_app(&self, owner: &Owner) -> bool {
        let place = self
            .apps
            .binary_search_by(|known| (&known.app, &known.project).cmp(&(&owner.app, &owner.project)));
        place.is_ok()
    }
}

impl Store {
    /// An empty store whose counters' section has the given families.
    pub fn new(counters: &[Family]) -> Self {
        let constant = [counters.to_vec(), vec![OBJECTIVE]];
        let families = Resource::all().map(|resource| resource.polled().families()).chain(constant).collect();
        Self(Arc::new(StoreInner {
            families,
            cells: RwLock::default(),
            replies: Replies::default(),
            gone: Mutex::default(),
            shared: Arc::default(),
        }))
    }

    /// Begins the cells of another configuration.
    pub fn new_cells(&self) -> NewCells<'_> {
        let index = Index { sections: vec![Vec::new(); self.0.families.len()], ..Index::default() };
        NewCells { store: &self.0, before: self.index(), index }
    }

    /// Records apps that an earlier process counted until these times. Those no longer configured are gone since then.
    pub fn recall(&self, counted: impl Iterator<Item = (Arc<Owner>, Timestamp)>, now: Timestamp) {
        let index = self.index();
        let configured: HashSet<&Arc<Owner>> = index.apps.iter().collect();
        self.0.gone.lock().recall(counted.filter(|(owner, _)| !configured.contains(owner)), now);
    }

    /// The cell with this key, if there is one.
    pub fn cell(&self, key: &Key, section: Section) -> Option<Arc<TargetState>> {
        self.index().cell(key, section).cloned()
    }

    /// Whether the last poll of every target that `filter` selects failed, or there is no such target.
    pub fn is_down(&self, filter: &Filter) -> bool {
        let index = self.index();
        let selectors = filter.select(&index.apps);
        index.sections.iter().all(|cells| {
            let mut rest = cells.as_slice();
            let mut selected = selectors.iter().flat_map(|selector| selector.take(&mut rest));
            selected.all(|cell| cell.section != Section::Endpoint || cell.is_down())
        })
    }

    /// The apps that are gone, or may be.
    pub fn gone(&self) -> MutexGuard<'_, GoneApps> {
        self.0.gone.lock()
    }

    /// The last replies in full, within their memory limit.
    pub fn replies(&self) -> &Replies {
        &self.0.replies
    }

    /// Whether every target was polled at least once.
    pub fn is_complete(&self) -> bool {
        let index = self.index();
        // Cells stay polled, so each call continues where the last one ended.
        let known = index.polled.load(Ordering::Relaxed);
        let mut others = index.sections.iter().flatten().skip(known);
        let next = others.position(|cell| !cell.is_polled());
        index.polled.store(next.map_or(usize::MAX, |next| known + next), Ordering::Relaxed);
        next.is_none()
    }

    /// Makes the next page render anew, because something outside the store has changed.
    pub fn touch(&self) {
        self.0.shared.version.fetch_add(1, Ordering::Release);
    }

    /// A number that rises with every change.
    pub fn version(&self) -> u64 {
        self.0.shared.version.load(Ordering::Acquire)
    }

    /// Whether a whole page was requested since it had this version.
    pub fn was_read(&self, version: u64) -> bool {
        self.0.shared.read.load(Ordering::Acquire) >= version
    }

    /// The samples to expose at `now` that `filter` selects, without stale ones.
    pub fn snapshot(&self, now: Instant, filter: &Filter) -> Snapshot {
        let version = self.version();
        if filter.is_empty() {
            self.0.shared.read.fetch_max(version, Ordering::AcqRel);
        }
        let index = self.index();
        let selectors = filter.select(&index.apps);
        let sections = self.0.families.iter().zip(&index.sections).map(|(families, cells)| {
            let mut rest = cells.as_slice();
            let selected = selectors.iter().flat_map(move |selector| selector.take(&mut rest));
            (families, if filter.spans_targets() { cells.len() } else { 0 }, selected)
        });
        // Polls need this lock, so it is released before the cells are read.
        let gone = self.0.gone.lock().named(now);
        Snapshot::new(version, filter, sections, gone, now)
    }

    /// The families of each section, in the order of the page.
    pub fn families(&self) -> &[Vec<Family>] {
        &self.0.families
    }

    fn index(&self) -> Arc<Index> {
        Arc::clone(&self.0.cells.read())
    }
}

/// The cells of another configuration, until they replace those of the store.
#[derive(Debug)]
pub struct NewCells<'a> {
    store: &'a StoreInner,
    before: Arc<Index>,
    index: Index,
}

impl NewCells<'_> {
    /// Adds the cell of `key`. An existing cell keeps its contents.
    pub fn add(&mut self, key: Key, section: Section) -> Arc<TargetState> {
        let owner = &key.owner;
        if !owner.app.is_empty() && self.index.apps.last().is_none_or(|last| !Arc::ptr_eq(last, owner)) {
            self.index.apps.push(Arc::clone(owner));
        }
        let place = section_index(section, key.resource);
        let new = |key| Arc::new(TargetState::new(key, section, Arc::clone(&self.store.shared)));
        let cell = self.before.cell(&key, section).cloned().unwrap_or_else(|| new(key));
        if let Some(cells) = self.index.sections.get_mut(place) {
            cells.push(Arc::clone(&cell));
        }
        cell
    }

    /// Makes the store hold exactly these cells from `at` on. The next page omits obsolete cells, and names the apps
    /// that are gone.
    pub fn replace(self, at: Timestamp) {
        let Self { store, before, mut index } = self;
        for cells in &mut index.sections {
            cells.sort_by(|a, b| a.key.cmp(&b.key));
            cells.shrink_to_fit();
        }
        index.apps.sort_by(|a, b| (&a.app, &a.project).cmp(&(&b.app, &b.project)));
        index.apps.dedup_by(|a, b| (&a.app, &a.project) == (&b.app, &b.project));
        index.apps.shrink_to_fit();
        let is_configured = |owner: &Owner| index.has_app(owner);
        let removed = before.apps.iter().filter(|owner| !is_configured(owner)).cloned();
        store.gone.lock().removed(removed, at, is_configured);
        store.replies.retain(|key| index.cell(key, Section::Endpoint).is_some());
        let apps = index.sections.get(response_time::RESOURCE.index()).map_or(0, Vec::len);
        *store.cells.write() = Arc::new(index);
        store.shared.slot_seconds.store(six_hours::slot_seconds(apps), Ordering::Relaxed);
        store.shared.version.fetch_add(1, Ordering::Release);
    }
}

/// The index of a section: endpoints in their order, then the counters, then the objectives.
fn section_index(section: Section, resource: Resource) -> usize {
    match section {
        Section::Endpoint => resource.index(),
        Section::Counters => Resource::COUNT,
        Section::Objective => Resource::COUNT + 1,
    }
}

#[cfg(test)]
mod tests;
