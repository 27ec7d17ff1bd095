//! The content of `/api/v1/status`. Apps are judged at once, and read when they are shown. The comments on [`Status`]
//! are the descriptions in its schema.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use pds_diagnosis::{App, Exporter, Listed, Problem, Project, Service, Summary, Verdict};

use super::judge::Judged;
use super::view::{Place, View};

/// The exporter, the service and all configured projects and apps at one moment. Times are RFC 3339 in UTC; a missing
/// value is null, never 0.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Status {
    /// The exporter itself.
    pub exporter: Exporter,
    /// The polled service.
    pub service: Service,
    /// The verdict, its reasons, and the number of apps in each state.
    pub summary: Summary,
    /// The projects, in the order of the configuration.
    pub projects: Vec<Project>,
    /// The apps, in the order of the configuration.
    #[schemars(with = "Vec<App>")]
    pub apps: Vec<LazyApp>,
    /// How many resources of projects and apps are failing now.
    #[serde(skip)]
    pub failing: usize,
}

impl Status {
    /// The JSON schema of `/api/v1/status` as text; its generator would add 250 kB to the program.
    pub const SCHEMA: &str = include_str!("schema.json");
}

/// An app of the model. The model computes its verdict, because the summary counts it; the rest is read on demand, and
/// for most apps of a large configuration never.
#[derive(Clone, Debug)]
pub struct LazyApp {
    /// The verdict on it.
    pub verdict: Verdict,
    /// The app's own state, whatever its numbers.
    pub state: Verdict,
    /// Why the verdict is not `ok`, most severe first.
    pub problems: Vec<Problem>,
    view: Arc<View>,
    place: Place,
    read: OnceLock<Box<App>>,
}

impl LazyApp {
    /// The app at `place`, and its verdict.
    pub(super) fn new(view: &Arc<View>, place: Place, judged: Judged) -> Self {
        let Judged { verdict, state, problems } = judged;
        Self { verdict, state, problems, view: Arc::clone(view), place, read: OnceLock::new() }
    }

    fn read(&self) -> App {
        let (verdict, problems) = (self.verdict, self.problems.clone());
        let parts = self.view.parts_of(self.place);
        App { verdict, problems, ..self.view.app(self.place, &parts) }
    }
}

impl Deref for LazyApp {
    type Target = App;

    fn deref(&self) -> &App {
        self.read.get_or_init(|| Box::new(self.read()))
    }
}

impl Listed for LazyApp {
    fn ids(&self) -> (&str, &str) {
        let (project, app) = self.view.configured(self.place);
        (&project.id, &app.id)
    }

    fn verdict(&self) -> (Verdict, &[Problem]) {
        (self.verdict, &self.problems)
    }

    fn app(&self) -> &App {
        self
    }
}

impl Serialize for LazyApp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.read.get() {
            Some(app) => app.serialize(serializer),
            // Not kept: a document may name a hundred thousand apps, of a kilobyte each.
            None => self.read().serialize(serializer),
        }
    }
}
