//! Replies for people: facts and tables with their units, a bar for a distribution.
//!
//! `Show` has a method for each call whose reply deserves more than a list of its fields. No field is lost: a method
//! takes the fields that it shows out of the reply, and the rest follows unchanged.

mod app;
pub(super) mod fields;
mod metrics;
mod tree;

use std::borrow::Cow;

use serde_json::Value;

use crate::page::{Align, Block, Table};
use pds_core::units;
use pds_interface::{
    Call, DecodeError, Number, ReplyBody, Visitor, branches, change_plan, delete_app, delete_domain,
    file_tree, get_app, list_domains, list_projects, payment_url, response_time, run_execution_time,
    unassign_domain, validate_domain, visits, volume_alerts, zip_contents,
};

use super::View;
use super::raw::Raw;
use fields::{Field, further, names, value};

/// The columns of a domain, each with possible field names in order of preference, as the interface names no field.
const DOMAIN: [(&str, &[&str]); 4] = [
    ("DOMAIN", &["domain", "name", "hostname"]),
    ("STATUS", &["validationStatus", "validation_status", "status", "state"]),
    ("APP", &["appId", "app_id", "app"]),
    ("ID", &["id"]),
];

/// A longer text is a file's content, not a fact about it.
const FACT: usize = 60;

/// The reply of `call` for people; `wide` with all columns.
///
/// # Errors
/// If the reply violates the interface.
pub fn view(call: &'static Call, body: &[u8], wide: bool) -> Result<View, DecodeError> {
    let show = Show { fields: Raw::of(body), wide };
    let visit = visits::<Show>().into_iter().find(|(known, _)| known.id == call.id);
    visit.map_or_else(|| Ok(View::default()), |(_, visit)| visit(&show, body))
}

/// Makes a [`View`] of any reply.
#[derive(Debug)]
struct Show {
    /// All fields of the reply, including fields that the interface does not define.
    fields: Raw,
    /// Whether a table has columns that are not always shown.
    wide: bool,
}

impl Show {
    /// `block`, followed by the fields that are not `shown` in it.
    fn block(&self, block: Block, shown: &[&str]) -> View {
        self.fields.clone().without(shown).after(vec![block]).into()
    }
}

impl Visitor for Show {
    type Output = View;

    fn visit_other<R: ReplyBody>(&self, _: &'static Call, _: R) -> View {
        self.fields.clone().all().into()
    }

    fn list_projects(&self, projects: list_projects::Reply) -> View {
        let others = projects
            .iter()
            .zip(self.fields.each())
            .flat_map(|(project, fields)| fields.clone().without(&["id", "name", "role"]).named(&project.id));
        let others = others.collect();
        let rows = projects.into_iter().map(|project| vec![project.id.0, project.name.0, project.role.0]);
        let table = Table::of_texts(["ID", "NAME", "ROLE"], rows, "no projects");
        further(vec![Block::Table(table)], others).into()
    }

    /// The domains: the columns of [`DOMAIN`], and in a wide table all other fields.
    fn list_domains(&self, _: list_domains::Reply) -> View {
        let domains = self.fields.inside("domains");
        let domains: Vec<Vec<Field>> = domains.each().iter().map(Raw::flat).collect();
        // The interface names no field of a domain.
        let is_known = |(_, names): &&(&str, &[&str])| domains.iter().any(|it| !value(it, names).is_empty());
        let known: Vec<_> = DOMAIN.iter().filter(is_known).collect();
        let is_shown = |name: &&str| DOMAIN.iter().any(|(_, names)| names.contains(name));
        let others: Vec<&str> = names(&domains).into_iter().filter(|name| !is_shown(name)).collect();
        let wide = if self.wide || known.is_empty() { &*others } else { &[] };
        let titles = known.iter().map(|(title, _)| Cow::from(*title));
        let titles = titles.chain(wide.iter().map(|name| name.to_uppercase().into()));
        let columns = titles.map(|title| (title, Align::Left)).collect();
        let cells = |domain: &Vec<Field>| {
            let first = known.iter().map(|(_, names)| value(domain, names));
            first.chain(wide.iter().map(|name| value(domain, &[name]))).collect()
        };
        let rows = domains.iter().map(cells).collect();
        let mut blocks = vec![Block::Table(Table { columns, rows, empty: "no custom domains" })];
        if wide.len() < others.len() {
            let more = units::counted(others.len(), "more column", "more columns");
            blocks.push(Block::Text(format!("{more}: -o wide")));
        }
        self.fields.clone().without(&["domains"]).after(blocks).into()
    }

    /// The percentages at which the owner gets an email.
    fn volume_alerts(&self, reply: volume_alerts::Reply) -> View {
        let percentage = |threshold: &Number| threshold.value().map_or("?".to_owned(), |v| format!("{v} %"));
        let sentence = match reply.thresholds.as_deref().unwrap_or_default() {
            [] => "Alerts are disabled.".to_owned(),
            thresholds => {
                let percentages = thresholds.iter().map(percentage).collect::<Vec<_>>().join(", ");
                format!("The project's owner gets an email when storage use reaches {percentages}.")
            }
        };
        self.block(Block::Text(sentence), &["thresholds"])
    }

    fn get_app(&self, reply: get_app::Reply) -> View {
        app::view(&reply, self.fields.clone())
    }

    fn delete_app(&self, message: delete_app::Reply) -> View {
        text(if message.is_empty() { "The app was deleted." } else { &message })
    }

    fn response_time(&self, reply: response_time::Reply) -> View {
        metrics::response_time(&reply.data, self.fields.inside("data"))
    }

    fn run_execution_time(&self, reply: run_execution_time::Reply) -> View {
        metrics::run_execution_time(&reply.data, self.fields.inside("data"))
    }

    fn change_plan(&self, _: change_plan::Reply) -> View {
        let sentence = match &*self.fields.clone().text("redirectUrl") {
            "" => "The plan was changed; no payment is due.".to_owned(),
            url => format!("To complete the payment, open\n{url}"),
        };
        self.block(Block::Text(sentence), &["redirectUrl"])
    }

    /// The checkout URL alone, so that it can be passed on.
    fn payment_url(&self, url: payment_url::Reply) -> View {
        text(&url.0)
    }

    fn zip_contents(&self, _: zip_contents::Reply) -> View {
        let mut fields = self.fields.clone();
        let heading = Block::Heading(format!("Build {}", fields.text("id")));
        let table = Table::of_texts(["FILE", "CONTENT"], files("", &fields.take("zipFiles")), "no files");
        fields.after(vec![heading, Block::Table(table)]).into()
    }

    fn file_tree(&self, reply: file_tree::Reply) -> View {
        tree::view(&reply, self.fields.clone())
    }

    fn branches(&self, reply: branches::Reply) -> View {
        let mark = |value: &Value| match value {
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) | Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let rows = reply
            .branches
            .into_iter()
            .map(|branch| vec![branch.name.0, mark(&branch.default), mark(&branch.protected), branch.sha.0]);
        let table = Table::of_texts(["BRANCH", "DEFAULT", "PROTECTED", "SHA"], rows, "no branches");
        self.block(Block::Table(table), &["branches"])
    }

    /// The result of a validation; an unsuccessful validation is a failure.
    fn validate_domain(&self, reply: validate_domain::Reply) -> View {
        let message = Block::Text(self.fields.clone().text("message"));
        let failure = (reply.success == Some(false)).then(|| "the domain is not validated".to_owned());
        View { failure, ..self.block(message, &["message", "success"]) }
    }

    fn unassign_domain(&self, (): unassign_domain::Reply) -> View {
        text("The domain was unassigned.")
    }

    fn delete_domain(&self, (): delete_domain::Reply) -> View {
        text("The domain was deleted.")
    }
}

fn text(text: &str) -> View {
    vec![Block::Text(text.to_owned())].into()
}

/// The files of a build's archive. Their structure is unknown, so nested objects are treated as folders.
fn files(folder: &str, entries: &Raw) -> Vec<Vec<String>> {
    let rows = |(name, value): (&String, &Raw)| {
        let path = format!("{folder}{name}");
        match value {
            Raw::Fields(inside) if !inside.is_empty() => files(&format!("{path}/"), value),
            Raw::Text(text) if text.chars().count() > FACT || text.contains('\n') => {
                vec![vec![path, format!("{} bytes of text", text.len())]]
            }
            value => vec![vec![path, value.cell()]],
        }
    };
    entries.fields().into_iter().flatten().flat_map(rows).collect()
}
