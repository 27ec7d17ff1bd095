//! Replies for people, one file a resource: facts and tables with their units, a bar for a distribution.
//!
//! Fields that the interface does not show stand at the end, as they came.

pub mod api_key;
pub mod app;
pub mod build;
pub mod domain;
pub mod metrics;
pub mod plan;
pub mod project;
pub mod repo;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::tool::page::{Align, Block, Table};

/// A JSON value as a cell: text without its quotes, everything else as JSON, nothing for null.
#[must_use]
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Fields beyond the interface, where there are any.
#[must_use]
pub fn further(extra: &BTreeMap<String, Value>) -> Vec<Block> {
    if extra.is_empty() {
        return Vec::new();
    }
    let columns = vec![("FIELD", Align::Left), ("VALUE", Align::Left)];
    let rows = extra.iter().map(|(name, value)| vec![name.clone(), cell(value)]).collect();
    vec![Block::Heading("Further fields".to_owned()), Block::Table(Table { columns, rows, empty: "" })]
}

/// Fields of which the interface names none, those of objects inside by their path: `record.name`.
#[must_use]
pub fn flat(fields: &BTreeMap<String, Value>) -> Vec<(String, String)> {
    fn collect(path: &str, value: &Value, flat: &mut Vec<(String, String)>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    collect(&format!("{path}.{name}"), value, flat);
                }
            }
            Value::Null => {}
            value => flat.push((path.to_owned(), cell(value))),
        }
    }
    let mut flat = Vec::new();
    for (name, value) in fields {
        collect(name, value, &mut flat);
    }
    flat
}
