//! The size of a world, and what it is generated from.

use std::ops::Range;

use super::blueprint;
use super::quirks::Quirks;

/// The size of a world, and what it is generated from.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The same seed gives the same world.
    pub seed: u64,
    /// Number of projects.
    pub projects: usize,
    /// Total number of apps, spread evenly over the projects.
    pub apps: usize,
    /// Seconds by which the metrics calls lag behind the clock: later events are not counted yet.
    pub lag: u32,
    /// Number of requests the journal keeps in full.
    pub journal: usize,
    /// How the metrics calls differ from ideal ones.
    pub quirks: Quirks,
    /// Renamed query parameters, by default name.
    pub names: Vec<(String, String)>,
}

impl Default for Settings {
    /// The demonstration: three projects with eight apps, one of each blueprint.
    fn default() -> Self {
        Self {
            seed: 1,
            projects: 3,
            apps: blueprint::BLUEPRINTS.len(),
            lag: 0,
            journal: 10_000,
            quirks: Quirks::default(),
            names: Vec::new(),
        }
    }
}

impl Settings {
    /// The name of a query parameter here.
    pub(super) fn name_of<'a>(&'a self, default: &'a str) -> &'a str {
        self.names.iter().find_map(|(known, here)| (known == default).then_some(&**here)).unwrap_or(default)
    }

    /// The numbers of the apps of project number `project`.
    pub(super) fn apps_of(&self, project: usize) -> Range<usize> {
        let (each, more) = (self.apps / self.projects.max(1), self.apps % self.projects.max(1));
        let start = project * each + project.min(more);
        start..start + each + usize::from(project < more)
    }
}
