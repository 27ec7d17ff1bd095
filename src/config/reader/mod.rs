//! Readers: which values a key takes, and what they become.

mod number;
mod text;

use std::fmt::Debug;

use config::{Value, ValueKind};

use super::key::{Key, Kind};
use super::raw::Place;
use super::value;
use crate::interface::Resource;

pub(super) use number::{Count, Limit, MILLISECONDS, Positive, SECONDS, Size, Step};
pub(super) use text::{File, Id, Text, Token, Url};

/// Reads the value of a key.
pub(super) trait Reader {
    /// What the program gets.
    type Value;

    /// Which values it takes.
    fn kind(&self) -> Kind;

    /// Adds the keys below this one; only a list of tables has any.
    fn declare_below(&self, _path: &str, _keys: &mut Vec<Key>) {}

    /// Reads `raw`, which stands at `place`; `None` if it has a problem.
    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<Self::Value>;
}

/// Another reader's value; `None` for the empty string.
#[derive(Debug)]
pub(super) struct EmptyIsNone<R>(pub(super) R);

impl<R: Reader> Reader for EmptyIsNone<R> {
    type Value = Option<R::Value>;

    fn kind(&self) -> Kind {
        self.0.kind()
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<Self::Value> {
        match &raw.kind {
            ValueKind::String(text) if text.is_empty() => Some(None),
            _ => self.0.read(raw, place).map(Some),
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

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<bool> {
        place.check(value::flag(raw))
    }
}

/// One of these words, each with its meaning.
#[derive(Debug)]
pub(super) struct Word<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Clone + Debug> Reader for Word<T> {
    type Value = T;

    fn kind(&self) -> Kind {
        Kind::Word(self.0.iter().map(|(word, _)| *word).collect())
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<T> {
        place.check(value::word(raw, self.0))
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

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<Resource> {
        let words: Vec<(&str, Resource)> =
            Resource::all().map(|resource| (resource.as_str(), resource)).collect();
        place.check(value::word(raw, &words))
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

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<Self::Value> {
        let items = place.check(value::list(raw))?;
        if self.not_empty && items.is_empty() {
            return place.refuse("must not be empty");
        }
        let mut read: Vec<R::Value> = Vec::with_capacity(items.len());
        let mut good = true;
        for (index, item) in items.iter().enumerate() {
            let place = place.item(index);
            match self.of.read(item, &place) {
                Some(item) if !read.contains(&item) => read.push(item),
                Some(_) => good = place.refuse::<()>("duplicate; list each value once").is_some(),
                None => good = false,
            }
        }
        good.then_some(read)
    }
}
