//! The fields of a reply, taken out as they are shown.

use std::collections::BTreeMap;

use crate::call::raw::Raw;
use crate::output::{Block, Table};
use pds_core::units;

/// A field with its value as a cell.
pub(in crate::call) type Field = (String, String);

impl Raw {
    /// The value of a field.
    pub(super) fn inside(&self, name: &str) -> Self {
        self.fields().and_then(|fields| fields.get(name)).cloned().unwrap_or_default()
    }

    /// The text of a field, if it is a text.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        if let Self::Text(text) = self.fields()?.get(name)? { Some(text) } else { None }
    }

    /// The elements of a list.
    pub(super) fn each(&self) -> &[Self] {
        if let Self::List(list) = self { list } else { &[] }
    }

    /// Takes a field out.
    pub(super) fn take(&mut self, name: &str) -> Self {
        self.fields_mut().and_then(|fields| fields.remove(name)).unwrap_or_default()
    }

    /// Takes a field out as text; empty if it has no value.
    pub(super) fn text(&mut self, name: &str) -> String {
        self.take(name).cell()
    }

    /// The value of a number, perhaps in quotes.
    pub(super) fn number(&self) -> Option<f64> {
        self.cell().trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Takes a number out as text with its unit; empty if it has no value.
    pub(super) fn with_unit(&mut self, name: &str, unit: &str) -> String {
        let text = self.text(name);
        if text.is_empty() { text } else { text + unit }
    }

    /// Takes a number of seconds out as a duration, any other value as text; empty if it has no value.
    pub(super) fn duration(&mut self, name: &str) -> String {
        let value = self.take(name);
        value.number().map_or_else(|| value.cell(), units::seconds)
    }

    /// The fields except these.
    pub(super) fn without(mut self, shown: &[&str]) -> Self {
        for name in shown {
            self.take(name);
        }
        self
    }

    /// Like [`flat`]; empty if this is no object.
    pub(super) fn flat(&self) -> Vec<Field> {
        self.fields().map(|fields| flat(fields, false)).unwrap_or_default()
    }

    /// `blocks`, followed by the remaining fields.
    pub(super) fn after(self, blocks: Vec<Block>) -> Vec<Block> {
        further(blocks, self.flat())
    }

    /// All fields; for a list, the fields of each entry.
    pub(super) fn all(self) -> Vec<Block> {
        match self {
            Self::Fields(fields) => vec![table(flat(&fields, false))],
            Self::List(entries) => entries.into_iter().flat_map(Self::all).collect(),
            Self::Null => vec![Block::Text("Done.".to_owned())],
            other => vec![Block::Text(other.cell())],
        }
    }
}

/// `blocks`, followed by these fields.
pub(super) fn further(mut blocks: Vec<Block>, fields: Vec<Field>) -> Vec<Block> {
    if !fields.is_empty() {
        blocks.extend([Block::Heading("Further fields".to_owned()), table(fields)]);
    }
    blocks
}

fn table(fields: Vec<Field>) -> Block {
    let rows = fields.into_iter().map(|(name, value)| vec![name, value]);
    Block::Table(Table::of_texts(["FIELD", "VALUE"], rows, "no fields"))
}

/// The fields that have a value, or `all`; a nested field is named by its path (`record.name`).
pub(in crate::call) fn flat(fields: &BTreeMap<String, Raw>, all: bool) -> Vec<Field> {
    let flatten = |(name, value): (&String, &Raw)| match value {
        Raw::Fields(inner) if !(all && inner.is_empty()) => {
            let inner = flat(inner, all).into_iter();
            inner.map(|(inner, value)| (format!("{name}.{inner}"), value)).collect()
        }
        Raw::Null if !all => Vec::new(),
        value => vec![(name.clone(), value.cell())],
    };
    fields.iter().flat_map(flatten).collect()
}

/// The names of the fields of all entries, each once.
pub(in crate::call) fn names(entries: &[Vec<Field>]) -> Vec<&str> {
    let mut names = Vec::new();
    for (name, _) in entries.iter().flatten() {
        if !names.contains(&&**name) {
            names.push(name);
        }
    }
    names
}

/// The value of the field; empty if the entry lacks it.
pub(in crate::call) fn value(entry: &[Field], name: &str) -> String {
    let known = entry.iter().find(|(known, _)| known == name);
    known.map(|(_, value)| value.clone()).unwrap_or_default()
}
