//! Replies for people: facts and tables with their units, a bar for a distribution.
//!
//! [`view`] has a line for each call whose reply deserves more than a list of its fields. No field is lost: a view takes
//! the fields that it shows out of the reply, and the rest follows unchanged.

mod app;
pub(super) mod fields;
mod metrics;
mod tree;

use std::borrow::Cow;

use crate::page::{Align, Block, Table};
use pds_core::units;
use pds_interface::{Call, DecodeError, ReplyBody as _, payment_url, response_time, run_execution_time};

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
pub fn view(call: &Call, body: &[u8], wide: bool) -> Result<Vec<Block>, DecodeError> {
    let mut fields = Raw::of(body);
    Ok(match call.id {
        "list_projects" => projects(fields),
        "list_domains" => domains(fields, wide),
        "volume_alerts" => volume_alerts(fields),
        "get_app" => app::view(fields),
        "delete_app" => match &*String::decode(body)? {
            "" => text("The app was deleted."),
            message => text(message),
        },
        "response_time" => {
            metrics::response_time(&response_time::Reply::decode(body)?.data, fields.inside("data"))
        }
        "run_execution_time" => {
            metrics::run_execution_time(&run_execution_time::Reply::decode(body)?.data, fields.inside("data"))
        }
        "change_plan" => change_plan(fields),
        // The checkout URL alone, so that it can be passed on.
        "payment_url" => text(&payment_url::Reply::decode(body)?.0),
        "zip_contents" => zip_contents(fields),
        "file_tree" => tree::view(fields),
        "branches" => branches(fields),
        "validate_domain" => {
            let message = Block::Text(fields.text("message"));
            fields.without(&["success"]).after(vec![message])
        }
        "unassign_domain" => text("The domain was unassigned."),
        "delete_domain" => text("The domain was deleted."),
        _ => fields.all(),
    })
}

/// The reason, if the call succeeded but its action did not.
pub fn failure(call: &Call, body: &[u8]) -> Option<&'static str> {
    let is_refused = call.id == "validate_domain" && Raw::of(body).text("success") == "false";
    is_refused.then_some("the domain is not validated")
}

fn text(text: &str) -> Vec<Block> {
    vec![Block::Text(text.to_owned())]
}

fn projects(fields: Raw) -> Vec<Block> {
    let mut others = Vec::new();
    let row = |project: &Raw| {
        let mut project = project.clone();
        let row = ["id", "name", "role"].map(|name| project.text(name));
        others.extend(project.named(&row[0]));
        row.to_vec()
    };
    let rows: Vec<_> = fields.each().iter().map(row).collect();
    let table = Table::of_texts(["ID", "NAME", "ROLE"], rows, "no projects");
    further(vec![Block::Table(table)], others)
}

/// The domains: the columns of [`DOMAIN`], and in a wide table all other fields.
fn domains(mut fields: Raw, wide: bool) -> Vec<Block> {
    let domains = fields.take("domains");
    let domains: Vec<Vec<Field>> = domains.each().iter().map(Raw::flat).collect();
    // The interface names no field of a domain.
    let is_known = |(_, names): &&(&str, &[&str])| domains.iter().any(|it| !value(it, names).is_empty());
    let known: Vec<_> = DOMAIN.iter().filter(is_known).collect();
    // A column shows one field of each domain.
    let has = |domain: &Vec<Field>, name: &str| domain.iter().any(|(known, _)| known == name);
    let is_second = |name: &str, names: &[&str]| {
        let mut before = names.iter().take_while(|known| **known != name);
        before.any(|first| domains.iter().any(|it| has(it, first) && has(it, name)))
    };
    let is_shown =
        |name: &&str| DOMAIN.iter().any(|(_, names)| names.contains(name) && !is_second(name, names));
    let others: Vec<&str> = names(&domains).into_iter().filter(|name| !is_shown(name)).collect();
    let wide = if wide || known.is_empty() { &*others } else { &[] };
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
    fields.after(blocks)
}

/// The percentages at which the owner gets an email.
fn volume_alerts(mut fields: Raw) -> Vec<Block> {
    let percentage = |threshold: &Raw| threshold.number().map_or("?".to_owned(), |v| format!("{v} %"));
    let sentence = match fields.take("thresholds").each() {
        [] => "Alerts are disabled.".to_owned(),
        thresholds => {
            let percentages = thresholds.iter().map(percentage).collect::<Vec<_>>().join(", ");
            format!("The project's owner gets an email when storage use reaches {percentages}.")
        }
    };
    fields.after(vec![Block::Text(sentence)])
}

fn change_plan(mut fields: Raw) -> Vec<Block> {
    let sentence = match &*fields.text("redirectUrl") {
        "" => "The plan was changed; no payment is due.".to_owned(),
        url => format!("To complete the payment, open\n{url}"),
    };
    fields.after(vec![Block::Text(sentence)])
}

fn zip_contents(mut fields: Raw) -> Vec<Block> {
    let heading = Block::Heading(format!("Build {}", fields.text("id")));
    let table = Table::of_texts(["FILE", "CONTENT"], files("", &fields.take("zipFiles")), "no files");
    fields.after(vec![heading, Block::Table(table)])
}

fn branches(mut fields: Raw) -> Vec<Block> {
    let mark = |flag: String| match &*flag {
        "true" => "yes".to_owned(),
        "false" => String::new(),
        _ => flag,
    };
    let branches = fields.take("branches");
    let rows = branches.each().iter().cloned().map(|mut branch| {
        let flags = ["default", "protected"].map(|name| mark(branch.text(name)));
        [&[branch.text("name")], &flags[..], &[branch.text("sha")]].concat()
    });
    let table = Table::of_texts(["BRANCH", "DEFAULT", "PROTECTED", "SHA"], rows, "no branches");
    fields.after(vec![Block::Table(table)])
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

#[cfg(test)]
mod tests {
    use super::*;
    use pds_interface::CALLS;

    #[test]
    fn a_reply_that_a_poll_can_read_can_be_shown() {
        for (call, polled) in CALLS.iter().filter_map(|call| Some((call, call.polled.as_ref()?))) {
            let field =
                |value: &str| ["domains", "thresholds", "data"].map(|name| format!("{{\"{name}\":{value}}}"));
            let fields = ["null", "[]", "{}", "8", "\"x\"", "[null]", "[{}]"].map(field).concat();
            let is_good = |reply: &&str| call.judge(reply.as_bytes()).is_ok();
            for reply in fields.iter().map(String::as_str).chain(["[]", polled.example]).filter(is_good) {
                assert!(view(call, reply.as_bytes(), false).is_ok(), "{} {reply}", call.id);
            }
        }
    }
}
