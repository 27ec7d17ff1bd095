//! Targets' keys: owner and resource.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use pds_exposition::encode;
use pds_interface::Resource;

/// A project or an app. Shared by its targets, one per resource.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The project's id.
    pub project: Arc<str>,
    /// The app's id; empty for the project itself.
    pub app: Arc<str>,
    /// `project="..."` and, for an app, `app="..."`, escaped once.
    labels: Arc<str>,
    /// See [`Owner::digest`].
    digest: u64,
}

impl Owner {
    /// The given app of the given project; the project itself if `app` is empty.
    pub fn new(project: Arc<str>, app: Arc<str>) -> Arc<Self> {
        let of_app = Some(("app", &*app)).filter(|_| !app.is_empty());
        let labels = encode::labels([("project", &*project)].into_iter().chain(of_app));
        let digest = digest(&project, &app);
        Arc::new(Self { project, app, labels: labels.into(), digest })
    }

    /// A hash of its name, evenly spread over `u64` and the same in every process, version and platform.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The labels of all its series, as written on the page.
    pub fn labels(&self) -> &Arc<str> {
        &self.labels
    }
}

/// SipHash-1-3 with a zero key over the length of the project's id (8 bytes, little endian), that id and the app's.
/// The phases of polls depend on it.
fn digest(project: &str, app: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(&(project.len() as u64).to_le_bytes());
    hasher.write(project.as_bytes());
    hasher.write(app.as_bytes());
    hasher.finish()
}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

/// Identifies a target and its cells: a resource of a project or app.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The project or app.
    pub owner: Arc<Owner>,
    /// The resource.
    pub resource: Resource,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner { project, app, .. } = &*self.owner;
        write!(f, "{project}/{}", self.resource.as_str())?;
        if app.is_empty() { Ok(()) } else { write!(f, "/{app}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pds_interface::response_time;

    #[test]
    fn the_digest_of_a_name_is_the_same_in_every_version() {
        let digest = |project: &str, app: &str| Owner::new(project.into(), app.into()).digest();
        assert_eq!(digest("p-1", "p-1-ranker"), 4_787_669_383_641_749_773);
        assert_ne!(digest("p-1", ""), digest("p", "-1"), "a project is not an app of a shorter one");
    }

    #[test]
    fn a_key_reads_as_project_resource_and_app() {
        let key = |app: &str| {
            let key = Key { owner: Owner::new("p-1".into(), app.into()), resource: response_time::RESOURCE };
            key.to_string()
        };
        assert_eq!([key("p-1-ranker"), key("")], ["p-1/response_time/p-1-ranker", "p-1/response_time"]);
    }
}
