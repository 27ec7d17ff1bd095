//! A valid request, and what all answers need.

use std::sync::Arc;

use jiff::Timestamp;

use super::answer::ErrorReply;
use super::state::{App, Domain, Project};
use super::world::World;

/// A request with a valid token for its project and with valid parameters.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) world: World,
    pub(super) now: Timestamp,
    /// The project of the service account, and of the path if that names one.
    pub(super) project: Arc<str>,
    /// Identifiers in the path.
    pub(super) ids: Vec<(&'static str, String)>,
    /// Query parameters and fields of the body.
    pub(super) values: Vec<(String, String)>,
}

impl Asked {
    /// The identifier `name` of the path; empty if the path has none.
    pub(super) fn id(&self, name: &str) -> &str {
        self.ids.iter().find_map(|(id, value)| (*id == name).then_some(value.as_str())).unwrap_or_default()
    }

    /// The query parameter or body field `name`.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find_map(|(key, value)| (key == name).then_some(value.as_str()))
    }

    /// The app in the path.
    pub(super) fn app(&self) -> Result<App, ErrorReply> {
        let app = self.world.state(|state| state.projects.get(&self.project)?.app(self.id("app_id")));
        app.ok_or_else(|| ErrorReply::new(404, "there is no such app"))
    }

    /// Reads or changes the project.
    pub(super) fn with_project<T>(
        &self,
        read: impl FnOnce(&mut Project) -> Result<T, ErrorReply>,
    ) -> Result<T, ErrorReply> {
        self.world.state(|state| match state.projects.get_mut(&self.project) {
            Some(project) => read(project),
            None => Err(ErrorReply::new(404, "there is no such project")),
        })
    }

    /// Reads or changes the domain in the path.
    pub(super) fn with_domain<T>(
        &self,
        read: impl FnOnce(&mut Domain) -> Result<T, ErrorReply>,
    ) -> Result<T, ErrorReply> {
        self.with_project(|project| match project.domains.get_mut(self.id("domain_id")) {
            Some(domain) => read(domain),
            None => Err(ErrorReply::new(404, "there is no such domain")),
        })
    }
}
