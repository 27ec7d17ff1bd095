//! Readers: the values that a key accepts, and their conversion.

mod number;
mod text;

use std::fmt::Debug;

use config::{Value, ValueKind};

use super::key::{Key, Kind};
use super::raw::Position;
use super::value;
use pds_interface::Resource;

pub(super) use number::{Count, Limit, MILLISECONDS, Positive, SECONDS, Size, Step};
pub(super) use text::{File, Id, Text, Token, Url};

/// Reads the value of a key.
pub(super) trait Reader {
    /// The converted value.
    type Value;

    /// The values it accepts.
    fn kind(&self) -> Kind;

    /// Adds the keys below this one. Only lists of tables have any.
    fn declare_below(&self, _path: &str, _keys: &mut Vec<Key>) {}

    /// Reads `raw` at `position`; records a problem and returns `None` if it is not valid.
    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Self::Value>;
}

/// Reads an optional value; the empty string means `None`.
#[derive(Debug)]
pub(super) struct EmptyIsNone<R>(pub(super) R);

impl<R: Reader> Reader for EmptyIsNone<R> {
    type Value = Option<R::Value>;

    fn kind(&self) -> Kind {
        self.0.kind()
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Self::Value> {
        match &raw.kind {
            ValueKind::String(text) if text.is_empty() => Some(None),
            _ => self.0.read(raw, position).map(Some),
        }
    }
}

/// `true` or `false`.
#[derive(Debug)]
pub(super) struct Flag;

impl Reader for Flag {
    type Value = bool;

    fn kind(&self) -> Kind {
        Kind::Flag
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<bool> {
        position.check(value::flag(raw))
    }
}

/// One of several words, each with its meaning.
#[derive(Debug)]
pub(super) struct Word<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Clone + Debug> Reader for Word<T> {
    type Value = T;

    fn kind(&self) -> Kind {
        Kind::Word(self.0.iter().map(|(word, _)| *word).collect())
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<T> {
        position.check(value::word(raw, self.0))
    }
}

/// The name of a polled resource.
#[derive(Debug)]
pub(super) struct ResourceName;

impl Reader for ResourceName {
    type Value = Resource;

    fn kind(&self) -> Kind {
        Kind::Word(Resource::all().map(Resource::as_str).collect())
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Resource> {
        let words: Vec<(&str, Resource)> =
            Resource::all().map(|resource| (resource.as_str(), resource)).collect();
        position.check(value::word(raw, &words))
    }
}

/// A list of distinct items.
#[derive(Debug)]
pub(super) struct List<R> {
    /// Reads an item.
    pub(super) of: R,
    /// Whether there must be at least one.
    pub(super) not_empty: bool,
}

impl<R: Reader<Value: PartialEq>> Reader for List<R> {
    type Value = Vec<R::Value>;

    fn kind(&self) -> Kind {
        Kind::List(Box::new(self.of.kind()))
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Self::Value> {
        let items = position.check(value::list(raw))?;
        if self.not_empty && items.is_empty() {
            return position.refuse("must not be empty");
        }
        let mut read: Vec<R::Value> = Vec::with_capacity(items.len());
        let mut good = true;
        for (index, item) in items.iter().enumerate() {
            let position = position.item(index);
            match self.of.read(item, &position) {
                Some(item) if !read.contains(&item) => read.push(item),
                Some(_) => good = position.refuse::<()>("duplicate; list each value once").is_some(),
                None => good = false,
            }
        }
        good.then_some(read)
    }
}
