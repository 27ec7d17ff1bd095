//! What targets are about, and their names.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use crate::catalogue::encode::label;
use crate::interface::Resource;

/// A project, or an app of one: what the targets of a few resources are about, and all of them share.
#[derive(Debug)]
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
    /// The app of that id in the project of that id; the project itself where `app` is empty.
    #[must_use]
    pub fn new(project: Arc<str>, app: Arc<str>) -> Arc<Self> {
        let mut labels = String::new();
        label(&mut labels, "project", &project);
        if !app.is_empty() {
            label(&mut labels, "app", &app);
        }
        let digest = digest(&project, &app);
        Arc::new(Self { project, app, labels: labels.into(), digest })
    }

    /// A number that its name decides, in any process, version and platform; evenly spread over `u64`.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The labels that all its series have, as they stand on the page.
    pub(super) fn labels(&self) -> &Arc<str> {
        &self.labels
    }
}

/// SipHash-1-3 with a zero key over the length of the project's id (8 bytes, little endian), that id and the app's.
/// State files are in its order.
fn digest(project: &str, app: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(&(project.len() as u64).to_le_bytes());
    hasher.write(project.as_bytes());
    hasher.write(app.as_bytes());
    hasher.finish()
}

/// Names a target and its cells: which resource of which project or app.
#[derive(Clone, Debug)]
pub struct Key {
    /// What it is about.
    pub owner: Arc<Owner>,
    /// What is asked.
    pub resource: Resource,
}

impl Key {
    fn parts(&self) -> (&str, &str, Resource) {
        (&self.owner.project, &self.owner.app, self.resource)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.resource == other.resource
            && (Arc::ptr_eq(&self.owner, &other.owner) || self.parts() == other.parts())
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.owner.digest, self.resource).hash(state);
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (project, app, resource) = self.parts();
        write!(f, "{project}/{}", resource.as_str())?;
        if app.is_empty() { Ok(()) } else { write!(f, "/{app}") }
    }
}
