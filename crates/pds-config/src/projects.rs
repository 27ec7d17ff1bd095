//! `[[projects]]`, their apps and labels. Each row declares a key.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config::{Map, Value, ValueKind};

use super::key::{Kind, as_written};
use super::raw::{Position, Shared, Table, has_table, key_in};
use super::reader::{Reader, as_list, as_table, as_text, id, list, milliseconds, seconds, share};
use super::section::{declare_entries, fixed, optional, or_empty, read_strictly, required, section, tokens};
use pds_client::{DEFAULT_ACCOUNT, TokenSource};
use pds_core::units;
use pds_exposition::family::{RESERVED_LABELS, is_label_name};

section! {
    /// An entry of `[[projects]]`.
    pub struct Project {
        /// Project id, as in the service's paths.
        id: Arc<str> = required(id(), "\"p-abc12345\"", "Project id, as in the service's paths."),
        /// Its own service account, if it has one.
        token: Option<TokenSource> = tokens(
            ("\"/run/secrets/pds/search-token\"",
                "File with a token for this project, instead of that in [api]."),
            "The token itself. Not together with `token_file`.",
        ),
        /// Labels for the info series of the project and its apps, by name.
        labels: Vec<(String, String)> = or_empty(labels(), "{ team = \"search\" }",
            "Labels added to pds_project_info and pds_app_info."),
        /// The objective of its apps.
        objective: Option<Objective> = optional(objective(), OBJECTIVE,
            "Objective of the project's apps for alerts: share of requests within one of the service's thresholds."),
        /// Its apps, without duplicates.
        apps: Vec<App> = apps,
        /// Whether this shard polls the project's own resources.
        polled: bool = fixed(true),
    }
}

impl super::Config {
    /// The projects' ids, each with its own service account, if it has one.
    pub fn accounts(&self) -> Vec<(Arc<str>, Option<TokenSource>)> {
        self.projects.iter().map(|project| (Arc::clone(&project.id), project.token.clone())).collect()
    }

    /// The counted ranges.
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
    /// An app of a project.
    pub struct App {
        /// App id, as in the service's paths.
        id: Arc<str> = required(id(), "\"p-abc12345-embed\"", "App id, as in the service's paths."),
        /// Overrides [`Poll::interval`](super::Poll::interval).
        interval: Option<Duration> = optional(seconds(), "\"15s\"",
            "Poll interval of this app's metrics, instead of poll.interval."),
        /// Containers with window gauges of their own.
        containers: Vec<Arc<str>> = or_empty(list(id()), "[\"c-1\"]",
            "Containers with window gauges of their own."),
        /// Labels for the app's info series, those of the project included unless overridden.
        labels: Vec<(String, String)> = or_empty(labels(), "{ tier = \"gold\" }",
            "Labels added to pds_app_info; they override those of the project."),
        /// Its objective, or its project's.
        objective: Option<Objective> = optional(objective(), OBJECTIVE,
            "Objective of this app, instead of the project's."),
    }
}

const OBJECTIVE: &str = "{ threshold = \"500ms\", share = 0.99 }";

/// The response time objective of an app, exposed for alert rules only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// A request is good if it is done within this time: one of the service's thresholds.
    pub threshold: Duration,
    /// The share of requests that must be good; above 0 and below 1.
    pub share: f64,
}

impl Objective {
    /// A sentence if shares in steps of `step` are too coarse to show whether it is met.
    pub fn coarse_note(self, step: f64) -> Option<String> {
        // In f64, 1 - 0.9999 is less than 0.0001.
        let allowed = ((1.0 - self.share) * 1e9).round() / 1e9;
        let percent = |share: f64| format!("{} %", units::number(100.0 * share));
        (allowed < step).then(|| {
            format!(
                "The service reports shares in steps of {}, coarser than the {} that the objective allows.",
                percent(step),
                percent(allowed)
            )
        })
    }
}

/// A table with a threshold and a share.
fn objective() -> Reader<Objective> {
    let kind = Kind::Other("table of `threshold` (duration) and `share` (above 0, below 1)");
    Reader::at(kind, |raw, position| {
        let members = position.check(as_table(raw, OBJECTIVE))?;
        for name in members.keys().filter(|name| !["threshold", "share"].contains(&name.as_str())) {
            let unknown = position.member(&as_written(name));
            unknown.refuse::<()>(format!("unknown key; write for example {OBJECTIVE}"));
        }
        let member = |name: &str| match members.get(name) {
            Some(raw) => Some((raw, position.member(name))),
            None => position.member(name).refuse("required"),
        };
        let threshold = member("threshold").and_then(|(raw, at)| milliseconds().read(raw, &at));
        let share = member("share").and_then(|(raw, at)| at.check(share(raw)));
        Some(Objective { threshold: threshold?, share: share? })
    })
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

/// The row of the list of projects.
pub(super) fn projects(table: &Table<'_>, name: &'static str) -> Option<Vec<Project>> {
    declare_entries::<Project>(table, name);
    let shared = table.shared;
    if shared.taken_labels.is_none() {
        return Some(Vec::new());
    }
    let own = table.get(name).map(|list| (table.position(name), list));
    let included = shared.included.iter().map(|file| {
        let shared = Shared { folder: file.path.parent().unwrap_or(Path::new("")), ..shared };
        (Position { key: key_in(&file.path, name), variable: None, shared }, &file.projects)
    });
    let mut entries: Vec<(Position<'_>, &Map<String, Value>)> = Vec::new();
    let mut good = true;
    for (position, list) in own.into_iter().chain(included) {
        good &= tables(&position, list, &mut entries).is_some();
    }
    if entries.is_empty() && good {
        let unmatched =
            shared.found.borrow().warnings.iter().map(|warning| format!("; {warning}")).collect::<String>();
        let none = format!("nothing to poll; write a [[projects]] entry with an id{unmatched}");
        return table.position(name).refuse(none);
    }
    check_tokens(table, &entries);
    let mut known = HashMap::new();
    let projects = entries.into_iter().filter_map(|(position, entry)| {
        let mut project = read_strictly::<Project>(&position.table(entry))?;
        let id_at = position.member("id");
        refuse_duplicate(&mut known, "project", &project.id, &id_at);
        if &*project.id == DEFAULT_ACCOUNT && project.token.is_some() {
            id_at.refuse::<()>("names the token of [api]; set the project's token there");
        }
        project.pass_on();
        Some(project)
    });
    Some(projects.collect())
}

/// Refuses the `id` at this position if it is `known`, which holds the position of each id.
fn refuse_duplicate(
    known: &mut HashMap<Arc<str>, String>,
    what: &str,
    id: &Arc<str>,
    position: &Position<'_>,
) {
    if let Some(first) = known.insert(Arc::clone(id), position.key.clone()) {
        position.refuse::<()>(format!("duplicate of {what} {id:?} at {first}"));
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
    let has_token = |table: &Table<'_>| table.get("token").or(table.get("token_file")).is_some();
    if has_token(&table.inner("api")) {
        return;
    }
    let without = projects.iter().filter(|(position, project)| !has_token(&position.table(project)));
    let without: Vec<&str> = without.map(|(position, _)| &*position.key).collect();
    if !without.is_empty() {
        table.position("api").member("token_file").refuse::<()>(format!(
            "no token for {}; set token_file or token here or in the project's entry, or set PDS_EXPORTER__API__TOKEN",
            without.join(", ")
        ));
    }
}

/// The row of the list of a project's apps, each an id or a table.
fn apps(table: &Table<'_>, name: &'static str) -> Option<Vec<App>> {
    const WHY: &str = "The project's apps: ids, or tables with the keys below.";
    let read = |raw: &Value, position: &Position<'_>| {
        let mut known = HashMap::new();
        let apps = position.check(as_list(raw))?.iter().enumerate().filter_map(|(index, entry)| {
            let position = position.item(index);
            let (app, id_at) = match &entry.kind {
                ValueKind::Table(entry) => {
                    (read_strictly::<App>(&position.table(entry))?, position.member("id"))
                }
                ValueKind::String(_) => {
                    // A list of ids alone, which may be thousands, is explained as a whole.
                    if has_table(raw) {
                        position.explain(entry, false, &Kind::Text, WHY);
                    }
                    (App::named(id().read(entry, &position)?), position)
                }
                _ => {
                    return position
                        .refuse("must be an app's id in quotes, or a table such as { id = \"...\" }");
                }
            };
            refuse_duplicate(&mut known, "app", &app.id, &id_at);
            Some(app)
        });
        Some(apps.collect::<Vec<_>>())
    };
    let reader = Reader::at(Kind::Other("list of: string or table"), read);
    let apps = or_empty(reader, "[\"p-abc12345-ranker\"]", WHY)(table, name);
    declare_entries::<App>(table, name);
    apps
}

impl App {
    /// An app given by its id alone.
    fn named(id: Arc<str>) -> Self {
        Self { id, interval: None, containers: Vec::new(), labels: Vec::new(), objective: None }
    }
}

/// A table of label names and values.
fn labels() -> Reader<Vec<(String, String)>> {
    Reader::at(Kind::Other("table of strings"), |raw, position| {
        let members = position.check(as_table(raw, "{ team = \"search\" }"))?;
        let taken = position.shared.taken_labels.unwrap_or_default();
        let mut labels = BTreeMap::new();
        for (name, raw) in members {
            let position = position.member(&as_written(name));
            let name = position.check(allowed(name, taken));
            let value = position.check(as_text(raw));
            labels.extend(name.zip(value).map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        Some(labels.into_iter().collect())
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_in_steps_of_what_an_objective_allows_are_not_too_coarse() {
        let objective = Objective { threshold: Duration::from_millis(500), share: 0.9999 };
        assert_eq!(objective.coarse_note(0.0001), None);
        let note = "The service reports shares in steps of 0.1 %, coarser than the 0.01 % that the objective allows.";
        assert_eq!(objective.coarse_note(0.001).as_deref(), Some(note));
    }
}
