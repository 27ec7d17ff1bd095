//! Custom domains.

use serde_json::Value;

use crate::call::View;
use crate::page::{self, Align, Block, Table};
use pds_interface::list_domains::Domains;
use pds_interface::validate_domain::Validation;

use super::fields::{Fields, flat};

/// The names of a column in the order in which they are looked for; the interface names no field of a domain.
const COLUMNS: [(&str, &[&str]); 4] = [
    ("DOMAIN", &["domain", "name", "hostname"]),
    ("STATUS", &["validationStatus", "validation_status", "status", "state"]),
    ("APP", &["appId", "app_id", "app"]),
    ("ID", &["id"]),
];

/// The domains: what people know them by, and in a wide table all other fields.
pub(super) fn list(reply: &Domains, mut fields: Fields) -> View {
    let domains = match fields.take("domains") {
        Value::Array(domains) => domains,
        _ => Vec::new(),
    };
    if reply.domains.is_none() {
        let text = "The reply does not say which custom domains there are.";
        return fields.after(vec![Block::Text(text.to_owned())]).into();
    }
    let rows: Vec<Vec<Vec<String>>> =
        domains.iter().map(|domain| domain.as_object().map(flat).unwrap_or_default()).collect();
    let value = |row: &[Vec<String>], names: &[&str]| {
        let field = |name: &&str| row.iter().find(|field| field.first().is_some_and(|known| known == name));
        names.iter().find_map(|name| field(name)?.get(1).cloned()).unwrap_or_default()
    };
    let shown = COLUMNS.iter().flat_map(|(_, names)| *names).copied().collect::<Vec<_>>();
    let mut others: Vec<&str> = Vec::new();
    for name in rows.iter().flatten().filter_map(|field| field.first()) {
        if !shown.contains(&&**name) && !others.contains(&&**name) {
            others.push(name);
        }
    }
    let mut columns = page::columns(COLUMNS.map(|(name, _)| (name, Align::Left)));
    columns.extend(others.iter().map(|name| (name.to_uppercase().into(), Align::Left)));
    let cells = |row: &Vec<Vec<String>>| {
        let first = COLUMNS.iter().map(|(_, names)| value(row, names));
        first.chain(others.iter().map(|name| value(row, &[name]))).collect()
    };
    let table = Table { columns, rows: rows.iter().map(cells).collect(), empty: "no custom domains" };
    fields.after(vec![Block::Columns(table, COLUMNS.len())]).into()
}

/// The result of a validation; one that did not succeed is a failure.
pub(super) fn validated(reply: &Validation, mut fields: Fields) -> View {
    fields.take("success");
    let blocks = vec![Block::Text(fields.text("message"))];
    let failure = match reply.success {
        Some(false) => Some("the domain is not validated".to_owned()),
        Some(true) | None => None,
    };
    View { blocks: fields.after(blocks), failure }
}
