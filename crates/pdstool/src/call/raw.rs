//! JSON whose numbers stay as the service writes them: `serde_json::Value` rounds to 64 bits.

use std::collections::BTreeMap;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use pds_interface::reply::raw;

/// Deeper values stay text.
const MAX_DEPTH: usize = 64;

/// A JSON value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Raw {
    /// `null`.
    #[default]
    Null,
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// An object.
    Fields(BTreeMap<String, Self>),
    /// A number, a truth value, or unreadable text, as written.
    Other(String),
}

impl Raw {
    /// A reply; [`Raw::Null`] if it is not JSON.
    pub fn of(body: &[u8]) -> Self {
        raw(body).map(|raw| Self::read(&raw, MAX_DEPTH)).unwrap_or_default()
    }

    fn read(raw: &RawValue, depth: usize) -> Self {
        let text = raw.get();
        let inside = |raw: &RawValue| Self::read(raw, depth - 1);
        let read = match text.as_bytes().first() {
            Some(b'n') => Some(Self::Null),
            Some(b'"') => serde_json::from_str(text).ok().map(Self::Text),
            Some(b'[') if depth > 0 => {
                let list: Option<Vec<&RawValue>> = serde_json::from_str(text).ok();
                list.map(|list| Self::List(list.into_iter().map(inside).collect()))
            }
            Some(b'{') if depth > 0 => {
                let fields: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(text).ok();
                let fields =
                    fields.map(|fields| fields.into_iter().map(|(name, value)| (name, inside(value))));
                fields.map(|fields| Self::Fields(fields.collect()))
            }
            _ => None,
        };
        read.unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    /// The fields of an object.
    pub fn fields(&self) -> Option<&BTreeMap<String, Self>> {
        if let Self::Fields(fields) = self { Some(fields) } else { None }
    }

    /// The same, to change them.
    pub fn fields_mut(&mut self) -> Option<&mut BTreeMap<String, Self>> {
        if let Self::Fields(fields) = self { Some(fields) } else { None }
    }

    /// The entries of a list of objects.
    pub fn entries(&self) -> Option<Vec<&BTreeMap<String, Self>>> {
        if let Self::List(list) = self { list.iter().map(Self::fields).collect() } else { None }
    }

    /// As a cell: text without its quotes, everything else as JSON, nothing for null.
    pub fn cell(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Text(text) | Self::Other(text) => text.clone(),
            other => serde_json::to_string(other).unwrap_or_default(),
        }
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => serializer.collect_seq(list),
            Self::Fields(fields) => serializer.collect_map(fields),
            Self::Other(text) => {
                RawValue::from_string(text.clone()).map_err(S::Error::custom)?.serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_were_read() {
        for json in ["{\"a\":99.23594907172567,\"b\":[1e2,1e400,18446744073709551616],\"c\":null}", "true"] {
            assert_eq!(serde_json::to_string(&Raw::of(json.as_bytes())).unwrap(), json);
        }
        assert_eq!(Raw::of(b"{\"a\":\"\\ud800\"}").fields().unwrap()["a"].cell(), "\"\\ud800\"");
        assert_eq!(Raw::of(b"<html>"), Raw::Null);
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Raw::of(deep.as_bytes()).cell(), deep);
    }
}
