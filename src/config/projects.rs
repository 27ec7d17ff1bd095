//! `[[projects]]`, their apps and labels. Each row declares a key.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config::{Map, Value, ValueKind};

use super::key::{Key, Kind, as_written, join};
use super::raw::{Position, Shared, Table};
use super::reader::{Id, List, MILLISECONDS, Reader, SECONDS};
use super::section::{Fixed, Row, Section as _, optional, or_empty, required, section};
use super::token::Tokens;
use super::value;
use pds_client::TokenSource;
use pds_exposition::family::{RESERVED_LABELS, is_label_name};

section! {
    /// One `[[projects]]` entry.
    pub struct Project {
        /// The project's id, as in the service's paths.
        id: Arc<str> = required(Id, "\"p-abc12345\"", "The project's id, as in the service's paths."),
        /// Its own service account, if it has one.
        token: Option<TokenSource> = Tokens {
            file: ("\"/run/secrets/pds/search-token\"",
                "A file with a token for this project, instead of the one under [api]."),
            inline: "The token itself. Excludes `token_file`.",
        },
        /// Labels for the info series of the project and its apps, by name.
        labels: Vec<(String, String)> = or_empty(Labels, "{ team = \"search\" }",
            "Labels added to pds_project_info and pds_app_info."),
        /// The objective of its apps.
        objective: Option<Objective> = optional(Objectives, OBJECTIVE,
            "Objective of the project's apps for the alert rules: this share of requests within one of the service's thresholds."),
        /// Its apps, without duplicates.
        apps: Vec<App> = or_empty(Apps, "[\"p-abc12345-ranker\"]",
            "The project's apps: each an id, or a table with the keys below."),
        /// Whether this shard polls the project's own resources.
        polled: bool = Fixed(true),
    }
}

impl super::Config {
    /// The projects' ids, each with its own service account, if it has one.
    #[must_use]
    pub fn accounts(&self) -> Vec<(Arc<str>, Option<TokenSource>)> {
        self.projects.iter().map(|project| (Arc::clone(&project.id), project.token.clone())).collect()
    }

    /// Which ranges are counted.
    #[must_use]
    pub fn counted_ranges(&self) -> pds_ledger::Config {
        pds_ledger::Config {
            settle: self.poll.settle,
            step: self.accounting.step,
            max_catch_up: self.accounting.max_catch_up,
            recheck_after: self.accounting.recheck_after.clone(),
        }
    }
}

section! {
    /// One app of a project.
    pub struct App {
        /// The app's id, as in the service's paths.
        id: Arc<str> = required(Id, "\"p-abc12345-embed\"", "The app's id, as in the service's paths."),
        /// Overrides [`Poll::interval`](super::Poll::interval).
        interval: Option<Duration> = optional(SECONDS, "\"15s\"",
            "How often this app's metrics are polled, instead of poll.interval."),
        /// Containers whose windows are shown in addition to the app's.
        containers: Vec<Arc<str>> = or_empty(List { of: Id, not_empty: false }, "[\"c-1\"]",
            "Containers whose windows are shown in addition to the app's."),
        /// Labels for the app's info series, those of the project included unless overridden.
        labels: Vec<(String, String)> = or_empty(Labels, "{ tier = \"gold\" }",
            "Labels added to pds_app_info; they override those of the project."),
        /// Its objective, or its project's.
        objective: Option<Objective> = optional(Objectives, OBJECTIVE,
            "Objective of this app, instead of the project's."),
    }
}

const OBJECTIVE: &str = "{ threshold = \"500ms\", share = 0.99 }";

/// The response time objective of an app, exposed for alert rules only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objective {
    /// A request is good if it is done within this time: one of the service's thresholds.
    pub threshold: Duration,
    /// The share of requests that must be good, in millionths.
    pub share_millionths: u32,
}

impl Objective {
    /// The share of requests that must be good; above 0 and below 1.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.share_millionths) / 1e6
    }
}

/// A table with a threshold and a share.
#[derive(Debug)]
struct Objectives;

impl Reader for Objectives {
    type Value = Objective;

    fn kind(&self) -> Kind {
        Kind::Objective
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Objective> {
        let ValueKind::Table(raw) = &raw.kind else {
            return position.refuse(format!("must be a table such as {OBJECTIVE}"));
        };
        for name in raw.keys().filter(|name| !["threshold", "share"].contains(&name.as_str())) {
            position
                .member(&as_written(name))
                .refuse::<()>(format!("unknown key; write for example {OBJECTIVE}"));
        }
        let field = |name: &str| match raw.get(name) {
            Some(raw) => Some((raw, position.member(name))),
            None => position.member(name).refuse("required"),
        };
        let threshold = field("threshold").and_then(|(raw, position)| MILLISECONDS.read(raw, &position));
        let share = field("share").and_then(|(raw, position)| position.check(value::millionths(raw)));
        Some(Objective { threshold: threshold?, share_millionths: share? })
    }
}

impl Project {
    /// Gives the apps the project's labels and objective, which their own override.
    fn pass_on(&mut self) {
        for app in &mut self.apps {
            app.objective = app.objective.or(self.objective);
            let own = std::mem::take(&mut app.labels);
            let all: BTreeMap<String, String> = self.labels.iter().cloned().chain(own).collect();
            app.labels = all.into_iter().collect();
        }
    }
}

/// The list of projects.
#[derive(Debug)]
pub(super) struct Projects;

impl Row for Projects {
    type Value = Vec<Project>;

    fn declare(&self, path: &str, name: &str, keys: &mut Vec<Key>) {
        Project::declare(&format!("{}[]", join(path, name)), keys);
    }

    fn read(&self, table: &Table<'_>, name: &str) -> Option<Vec<Project>> {
        if table.shared.taken_labels.is_none() {
            return Some(Vec::new());
        }
        let mut lists: Vec<(Position<'_>, &Value)> = Vec::new();
        lists.extend(table.get(name).map(|list| (table.position(name), list)));
        for included in table.shared.included {
            let shared = Shared { folder: included.path.parent().unwrap_or(Path::new("")), ..table.shared };
            lists.push((Position { key: included.key(), variable: None, shared }, &included.projects));
        }
        let mut entries: Vec<(Position<'_>, &Map<String, Value>)> = Vec::new();
        let mut good = true;
        for (position, list) in lists {
            good &= tables(&position, list, &mut entries).is_some();
        }
        if entries.is_empty() && good {
            return table.position(name).refuse("nothing to poll; write a [[projects]] entry with an id");
        }
        check_tokens(table, &entries);
        let mut projects: Vec<Project> = Vec::new();
        let mut known: HashMap<Arc<str>, String> = HashMap::new();
        for (position, entry) in entries {
            let Some(mut project) = Project::read(&Table::new(position.key.clone(), entry, position.shared))
            else {
                continue;
            };
            let position = position.member("id");
            if let Some(first) = known.insert(Arc::clone(&project.id), position.key.clone()) {
                position.refuse::<()>(format!("duplicate of project {:?} at {first}", project.id));
            }
            project.pass_on();
            projects.push(project);
        }
        Some(projects)
    }
}

/// Adds the tables of `list`, each with its position, to `entries`; `None` if it is not a list of tables.
fn tables<'a>(
    position: &Position<'a>,
    list: &'a Value,
    entries: &mut Vec<(Position<'a>, &'a Map<String, Value>)>,
) -> Option<()> {
    let ValueKind::Array(list) = &list.kind else {
        return position.refuse("must be a list; write [[projects]] and its keys below it");
    };
    let mut good = Some(());
    for (index, entry) in list.iter().enumerate() {
        let position = position.item(index);
        match &entry.kind {
            ValueKind::Table(entry) => entries.push((position, entry)),
            _ => good = position.refuse("must be a table; write [[projects]] and its keys below it"),
        }
    }
    good
}

/// Refuses `projects` that have no token while `[api]` has none. Looks at raw values: a bad token has already been
/// reported.
fn check_tokens(table: &Table<'_>, projects: &[(Position<'_>, &Map<String, Value>)]) {
    let has_token =
        |table: &Map<String, Value>| table.contains_key("token") || table.contains_key("token_file");
    if let Some(ValueKind::Table(api)) = table.get("api").map(|value| &value.kind)
        && has_token(api)
    {
        return;
    }
    let without = projects.iter().filter(|(_, project)| !has_token(project));
    let without: Vec<&str> = without.map(|(position, _)| &*position.key).collect();
    if !without.is_empty() {
        table.position("api").member("token_file").refuse::<()>(format!(
            "no token for {}; set token_file or token here or in the project's entry, or set PDS_EXPORTER__API__TOKEN",
            without.join(", ")
        ));
    }
}

/// A list of apps, each an id or a table.
#[derive(Debug)]
struct Apps;

impl Reader for Apps {
    type Value = Vec<App>;

    fn kind(&self) -> Kind {
        Kind::Apps
    }

    fn declare_below(&self, path: &str, keys: &mut Vec<Key>) {
        App::declare(&format!("{path}[]"), keys);
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Vec<App>> {
        let entries = position.check(value::list(raw))?;
        let mut apps: Vec<App> = Vec::with_capacity(entries.len());
        let mut known: HashMap<Arc<str>, String> = HashMap::new();
        for (index, entry) in entries.iter().enumerate() {
            let position = position.item(index);
            let (app, id_at) = match &entry.kind {
                ValueKind::Table(values) => (
                    App::read(&Table::new(position.key.clone(), values, position.shared)),
                    position.member("id"),
                ),
                ValueKind::String(_) => (Id.read(entry, &position).map(App::named), position),
                _ => {
                    position
                        .refuse::<()>("must be an app's id in quotes, or a table such as { id = \"...\" }");
                    continue;
                }
            };
            let Some(app) = app else { continue };
            if let Some(first) = known.insert(Arc::clone(&app.id), id_at.key.clone()) {
                id_at.refuse::<()>(format!("duplicate of app {:?} at {first}", app.id));
            }
            apps.push(app);
        }
        Some(apps)
    }
}

impl App {
    /// An app given by its id alone.
    fn named(id: Arc<str>) -> Self {
        Self { id, interval: None, containers: Vec::new(), labels: Vec::new(), objective: None }
    }
}

/// A table of label names and values.
#[derive(Debug)]
struct Labels;

impl Reader for Labels {
    type Value = Vec<(String, String)>;

    fn kind(&self) -> Kind {
        Kind::Labels
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Self::Value> {
        let ValueKind::Table(raw) = &raw.kind else {
            return position.refuse("must be a table such as { team = \"search\" }");
        };
        let taken = position.shared.taken_labels.unwrap_or_default();
        let mut labels = BTreeMap::new();
        for (name, raw) in raw {
            let position = position.member(&as_written(name));
            let name = position.check(allowed(name, taken));
            let value = position.check(value::text(raw));
            labels.extend(name.zip(value).map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        Some(labels.into_iter().collect())
    }
}

/// A label name that may be configured.
fn allowed<'a>(name: &'a str, taken: &[&str]) -> Result<&'a str, String> {
    let problem = if !is_label_name(name) {
        "not a valid label name; use letters, digits and _, and no digit first"
    } else if name.starts_with("__") {
        "reserved: names that begin with __ belong to Prometheus; rename it"
    } else if RESERVED_LABELS.contains(&name) {
        "reserved: Prometheus or its operator sets this label; rename it"
    } else if taken.contains(&name) {
        "the info series already have this label; rename it"
    } else {
        return Ok(name);
    };
    Err(problem.to_owned())
}
