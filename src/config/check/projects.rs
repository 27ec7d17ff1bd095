//! `[[projects]]`, their apps and labels.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use config::{Map, Value, ValueKind};

use super::{Checker, Section, table};
use crate::catalogue::family::{RESERVED_LABELS, is_label_name};
use crate::config::keys::as_written;
use crate::config::{App, Project, value};

/// Label names and values by name, so that their order does not depend on the file.
type Labels = BTreeMap<String, String>;

impl Checker<'_> {
    pub(super) fn projects(&mut self, values: &Map<String, Value>) -> Vec<Project> {
        let entries = match values.get("projects").map(|value| &value.kind) {
            None => &[][..],
            Some(ValueKind::Array(entries)) => entries,
            Some(_) => {
                self.refuse("projects".to_owned(), "is a list; write [[projects]] and its keys below it");
                return Vec::new();
            }
        };
        if entries.is_empty() {
            self.refuse(
                "projects".to_owned(),
                "there is nothing to poll; write a [[projects]] entry with an id",
            );
        }
        let mut projects: Vec<Project> = Vec::new();
        let mut known: HashSet<Arc<str>> = HashSet::new();
        for (index, entry) in entries.iter().enumerate() {
            let shown = format!("projects[{index}]");
            let Some(entry) = table(Some(entry)) else {
                self.refuse(shown, "is no table; write [[projects]] and its keys below it");
                continue;
            };
            let at = Section { shown, declared: "projects[]", values: Some(entry) };
            let Some(project) = self.project(&at) else { continue };
            if !known.insert(Arc::clone(&project.id)) {
                let message = format!("is {:?} like a project before it; name each once", project.id);
                self.refuse(at.key("id"), message);
            }
            projects.push(project);
        }
        projects
    }

    /// Refuses projects for which there is no token, neither of their own nor in `[api]`. Looks at the raw
    /// values: a token that is wrong is a problem already.
    pub(super) fn every_project_has_a_token(&mut self, values: &Map<String, Value>) {
        let has_token = |table: Option<&Map<String, Value>>| {
            table.is_some_and(|table| table.contains_key("token") || table.contains_key("token_file"))
        };
        if has_token(table(values.get("api"))) {
            return;
        }
        let Some(ValueKind::Array(entries)) = values.get("projects").map(|value| &value.kind) else { return };
        let without: Vec<String> = entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| table(Some(entry)).is_some_and(|entry| !has_token(Some(entry))))
            .map(|(index, _)| format!("projects[{index}]"))
            .collect();
        if !without.is_empty() {
            let message = format!(
                "there is no token for {}; write token_file or token here or in the project's entry, \
                 or set PDS_EXPORTER__API__TOKEN",
                without.join(", ")
            );
            self.refuse("api.token_file".to_owned(), message);
        }
    }

    fn project(&mut self, at: &Section<'_>) -> Option<Project> {
        let id = self.id(at);
        let token = self.token(at);
        let labels = self.labels(at);
        let apps = self.apps(at, &labels);
        Some(Project { id: id?, token, labels: labels.into_iter().collect(), apps, polled: true })
    }

    fn apps(&mut self, project: &Section<'_>, inherited: &Labels) -> Vec<App> {
        let entries = match project.get("apps").map(|value| &value.kind) {
            None => return Vec::new(),
            Some(ValueKind::Array(entries)) => entries,
            Some(_) => {
                self.refuse(project.key("apps"), "must be a list in brackets");
                return Vec::new();
            }
        };
        let mut apps: Vec<App> = Vec::with_capacity(entries.len());
        let mut known: HashSet<Arc<str>> = HashSet::new();
        for (index, entry) in entries.iter().enumerate() {
            let shown = format!("{}[{index}]", project.key("apps"));
            let Some((key, app)) = self.app(shown, entry, inherited) else { continue };
            if !known.insert(Arc::clone(&app.id)) {
                self.refuse(key, format!("is {:?} like an app before it; name each once", app.id));
            }
            apps.push(app);
        }
        apps
    }

    /// An app, given as its id or as a table, and the key its id stands at.
    fn app(&mut self, shown: String, entry: &Value, inherited: &Labels) -> Option<(String, App)> {
        let labels = |telemetry: Labels| inherited.clone().into_iter().chain(telemetry).collect::<Labels>();
        match &entry.kind {
            ValueKind::Table(values) => {
                let at = Section { shown, declared: "projects[].apps[]", values: Some(values) };
                let id = self.id(&at);
                let interval = self.duration(&at, "interval");
                let containers = self.list(&at, "containers", |raw| value::id(raw).map(Arc::from));
                let labels = labels(self.labels(&at)).into_iter().collect();
                let app = App { id: id?, interval, containers: containers.unwrap_or_default(), labels };
                Some((at.key("id"), app))
            }
            ValueKind::String(_) => match value::id(entry) {
                Ok(id) => {
                    let labels = labels(Labels::new()).into_iter().collect();
                    let app = App { id: Arc::from(id), interval: None, containers: Vec::new(), labels };
                    Some((shown, app))
                }
                Err(message) => {
                    self.refuse(shown, message);
                    None
                }
            },
            _ => {
                self.refuse(shown, "must be an app's id in quotes, or a table such as { id = \"...\" }");
                None
            }
        }
    }

    fn id(&mut self, at: &Section<'_>) -> Option<Arc<str>> {
        if at.get("id").is_none() {
            self.refuse(at.key("id"), "is missing; write the id as the service's paths have it");
        }
        self.read(at, "id", |raw| value::id(raw).map(Arc::from))
    }

    fn labels(&mut self, at: &Section<'_>) -> Labels {
        let mut labels = Labels::new();
        let raw = match at.get("labels").map(|value| &value.kind) {
            None => return labels,
            Some(ValueKind::Table(raw)) => raw,
            Some(_) => {
                self.refuse(at.key("labels"), "must be a table such as { team = \"search\" }");
                return labels;
            }
        };
        for (name, raw) in raw {
            let key = format!("{}.{}", at.key("labels"), as_written(name));
            match self.refused_name(name) {
                Some(message) => self.refuse(key, message),
                None => match value::text(raw) {
                    Ok(value) => {
                        labels.insert(name.clone(), value.to_owned());
                    }
                    Err(message) => self.refuse(key, message),
                },
            }
        }
        labels
    }

    fn refused_name(&self, name: &str) -> Option<String> {
        if !is_label_name(name) {
            Some("is no label name; use letters, digits and _, not beginning with a digit".to_owned())
        } else if name.starts_with("__") {
            Some("is reserved: names that begin with __ belong to Prometheus; rename it".to_owned())
        } else if RESERVED_LABELS.contains(&name) {
            Some("is reserved: Prometheus or its operator sets this label; rename it".to_owned())
        } else if self.taken_labels.contains(&name) {
            Some("is a label that the info series have already; rename it".to_owned())
        } else {
            None
        }
    }
}
