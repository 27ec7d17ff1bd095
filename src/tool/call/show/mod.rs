//! Replies for people, one file a resource: facts and tables with their units, a bar for a distribution.
//!
//! Fields that the interface does not show stand at the end, as they came.

pub mod app;
pub mod metrics;

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
