//! The fields of a reply, taken out as they are shown.

use serde_json::{Map, Value};

use crate::page::{self, Align, Block, Table};
use pds_core::units;
use pds_interface::reply::json;

/// The fields of a reply that are not shown yet, as they are on the wire.
#[derive(Clone, Debug)]
pub(super) struct Fields(Value);

impl Fields {
    /// Those of a reply; none if it is not JSON.
    pub(super) fn of(body: &[u8]) -> Self {
        Self(json(body))
    }

    /// Those of an object inside.
    pub(super) fn inside(&self, name: &str) -> Self {
        Self(self.0.get(name).cloned().unwrap_or_default())
    }

    /// Those of each element of a list.
    pub(super) fn each(&self) -> impl Iterator<Item = Self> {
        self.0.as_array().into_iter().flatten().cloned().map(Self)
    }

    /// Takes a field out.
    pub(super) fn take(&mut self, name: &str) -> Value {
        self.0.as_object_mut().and_then(|fields| fields.remove(name)).unwrap_or_default()
    }

    /// Takes a field out as text; empty if it has no value.
    pub(super) fn text(&mut self, name: &str) -> String {
        cell(&self.take(name))
    }

    /// Takes a number out as text with its unit; empty if it has no value.
    pub(super) fn with_unit(&mut self, name: &str, unit: &str) -> String {
        let text = self.text(name);
        if text.is_empty() { text } else { text + unit }
    }

    /// Takes a number of seconds out as a duration; empty if it has no value.
    pub(super) fn duration(&mut self, name: &str) -> String {
        match self.text(name).parse::<f64>() {
            Ok(seconds) => units::seconds(seconds),
            Err(_) => String::new(),
        }
    }

    /// `blocks`, and after them the fields that are left.
    pub(super) fn after(self, mut blocks: Vec<Block>) -> Vec<Block> {
        let rows = match &self.0 {
            Value::Object(fields) => flat(fields),
            _ => Vec::new(),
        };
        if !rows.is_empty() {
            blocks.push(Block::Heading("Further fields".to_owned()));
            blocks.push(table(rows));
        }
        blocks
    }

    /// A row per field that is left, named as one of `owner`.
    pub(super) fn named(self, owner: &str) -> Vec<Vec<String>> {
        let fields = self.0.as_object().into_iter().flatten();
        fields.map(|(name, value)| vec![format!("{owner} {name}"), cell(value)]).collect()
    }

    /// All fields; for a list those of each entry.
    pub(super) fn all(self) -> Vec<Block> {
        match self.0 {
            Value::Object(fields) => vec![table(flat(&fields))],
            Value::Array(entries) => entries.into_iter().flat_map(|entry| Self(entry).all()).collect(),
            Value::Null => vec![Block::Text("Done.".to_owned())],
            other => vec![Block::Text(cell(&other))],
        }
    }
}

impl From<Value> for Fields {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

/// Fields and their values as a table.
pub(super) fn table(rows: Vec<Vec<String>>) -> Block {
    let columns = page::columns([("FIELD", Align::Left), ("VALUE", Align::Left)]);
    Block::Table(Table { columns, rows, empty: "no fields" })
}

/// A row per field that has a value: its name, for a field of a nested object its path (`record.name`), and its value.
pub(in crate::call) fn flat(fields: &Map<String, Value>) -> Vec<Vec<String>> {
    fn collect(path: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    collect(&format!("{path}.{name}"), value, rows);
                }
            }
            Value::Null => {}
            value => rows.push(vec![path.to_owned(), cell(value)]),
        }
    }
    let mut rows = Vec::new();
    for (name, value) in fields {
        collect(name, value, &mut rows);
    }
    rows
}

/// A JSON value as a cell: text without its quotes, everything else as JSON, nothing for null.
pub(in crate::call) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
