//! A reply as comma-separated values: raw, as the service sends them.

use std::io;

use serde_json::{Map, Value};

use crate::console::Console;
use crate::page::print_csv_rows;

use super::show::fields::{cell, flat};

/// Prints the reply: a row for each entry of its list, or for each of its fields if it has none.
///
/// # Errors
/// If it cannot be written.
pub fn print(console: &mut Console, reply: &[u8]) -> io::Result<()> {
    let reply = match serde_json::from_slice(reply) {
        Ok(reply) => reply,
        Err(_) => Value::from(String::from_utf8_lossy(reply).trim()),
    };
    let Some(entries) = entries(&reply) else {
        let rows = match &reply {
            Value::Object(fields) => flat(fields),
            other => vec![vec![String::new(), cell(other)]],
        };
        return print_csv_rows(console, &["field", "value"], &rows);
    };
    let mut names: Vec<String> = Vec::new();
    let rows: Vec<Vec<Vec<String>>> = entries.iter().map(|entry| flat(entry)).collect();
    for name in rows.iter().flatten().filter_map(|field| field.first()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let value = |row: &[Vec<String>], name: &str| {
        let found = row.iter().find(|field| field.first().is_some_and(|known| known == name));
        found.and_then(|field| field.get(1)).cloned().unwrap_or_default()
    };
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| names.iter().map(|name| value(row, name)).collect()).collect();
    print_csv_rows(console, &names, &rows)
}

/// The entries of the reply's list: the reply itself, or its only field that holds a list of objects.
fn entries(reply: &Value) -> Option<Vec<&Map<String, Value>>> {
    if let Some(entries) = objects(reply) {
        return Some(entries);
    }
    let fields = reply.get("data").unwrap_or(reply).as_object()?;
    fields.values().find_map(objects)
}

/// A list of objects.
fn objects(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    value.as_array()?.iter().map(Value::as_object).collect()
}
