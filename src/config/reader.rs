//! Readers: which values a key takes, and what they become.

use std::fmt::Debug;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::{Value, ValueKind};

use super::keys::{Key, Kind};
use super::section::Place;
use super::value;
use crate::interface::Resource;
use crate::secret::Secret;

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

/// A string that is not empty.
#[derive(Debug)]
pub(super) struct Text;

impl Reader for Text {
    type Value = String;

    fn kind(&self) -> Kind {
        Kind::Text
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<String> {
        match place.check(value::text(raw))? {
            "" => place.refuse("must not be empty"),
            text => Some(text.to_owned()),
        }
    }
}

/// An id as in the service's paths.
#[derive(Debug)]
pub(super) struct Id;

impl Reader for Id {
    type Value = Arc<str>;

    fn kind(&self) -> Kind {
        Kind::Text
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<Arc<str>> {
        place.check(value::id(raw)).map(Arc::from)
    }
}

/// A bearer token.
#[derive(Debug)]
pub(super) struct Token;

impl Reader for Token {
    type Value = Secret;

    fn kind(&self) -> Kind {
        Kind::Secret
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<Secret> {
        place.check(value::token(raw)).map(Secret::new)
    }
}

/// The path of a file, relative to the folder of the configuration file.
#[derive(Debug)]
pub(super) struct File;

impl Reader for File {
    type Value = PathBuf;

    fn kind(&self) -> Kind {
        Kind::Path
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<PathBuf> {
        match place.check(value::text(raw))? {
            "" => place.refuse("must not be empty; set the path of a file, or remove the key"),
            path => Some(place.reading.folder.join(path)),
        }
    }
}

/// An http or https URL.
#[derive(Debug)]
pub(super) struct Url {
    /// The keys that take user and password instead; `None` if the URL may hold them.
    pub(super) credentials_in: Option<&'static str>,
}

impl Reader for Url {
    type Value = url::Url;

    fn kind(&self) -> Kind {
        Kind::Url
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<url::Url> {
        let url = place.check(value::url(raw))?;
        match self.credentials_in {
            Some(keys) if !url.username().is_empty() || url.password().is_some() => {
                place.refuse(format!("must not contain credentials; use {keys}"))
            }
            _ => Some(url),
        }
    }
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

/// A duration within bounds.
#[derive(Debug)]
pub(super) struct Span {
    /// The shortest.
    pub(super) min: Duration,
    /// The longest.
    pub(super) max: Duration,
    /// Whether it must be whole seconds, because the program counts in seconds.
    pub(super) whole_seconds: bool,
}

/// A duration of whole seconds, from a second to [`value::MAX`].
pub(super) const SECONDS: Span = Span { min: Duration::from_secs(1), max: value::MAX, whole_seconds: true };

/// A duration from a millisecond to [`value::MAX`].
pub(super) const MILLISECONDS: Span =
    Span { min: Duration::from_millis(1), max: value::MAX, whole_seconds: false };

impl Reader for Span {
    type Value = Duration;

    fn kind(&self) -> Kind {
        Kind::Duration { min: self.min, max: self.max, whole_seconds: self.whole_seconds }
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<Duration> {
        let duration = place.check(value::duration(raw))?;
        if self.whole_seconds && duration.subsec_nanos() != 0 {
            return place.refuse(format!("{raw} is not a whole number of seconds"));
        }
        if !(self.min..=self.max).contains(&duration) {
            let (min, max) = (humantime::format_duration(self.min), humantime::format_duration(self.max));
            return place.refuse(format!("{raw} is out of range; must be from {min} to {max}"));
        }
        Some(duration)
    }
}

/// Whole seconds that divide a day.
#[derive(Debug)]
pub(super) struct Step;

impl Reader for Step {
    type Value = Duration;

    fn kind(&self) -> Kind {
        SECONDS.kind()
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<Duration> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let step = SECONDS.read(raw, place)?;
        if step <= DAY && DAY.as_secs().is_multiple_of(step.as_secs()) {
            return Some(step);
        }
        place.refuse(format!("{raw} does not divide a day; use for example \"60s\", \"5m\" or \"1h\""))
    }
}

/// A whole number within bounds.
#[derive(Debug)]
pub(super) struct Count {
    /// The smallest.
    pub(super) min: u32,
    /// The largest.
    pub(super) max: u32,
}

impl Reader for Count {
    type Value = u32;

    fn kind(&self) -> Kind {
        Kind::Count { min: self.min, max: self.max }
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<u32> {
        place.check(value::count(raw, self.min, self.max))
    }
}

/// A whole number from 1.
#[derive(Debug)]
pub(super) struct Positive {
    /// The largest.
    pub(super) max: u32,
}

impl Reader for Positive {
    type Value = NonZeroU32;

    fn kind(&self) -> Kind {
        Kind::Count { min: 1, max: self.max }
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<NonZeroU32> {
        place.check(value::count(raw, 1, self.max)).and_then(NonZeroU32::new)
    }
}

/// A whole number; 0 means no limit.
#[derive(Debug)]
pub(super) struct Limit {
    /// The largest.
    pub(super) max: u32,
}

impl Reader for Limit {
    type Value = Option<NonZeroU32>;

    fn kind(&self) -> Kind {
        Kind::Count { min: 0, max: self.max }
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<Self::Value> {
        place.check(value::count(raw, 0, self.max)).map(NonZeroU32::new)
    }
}

/// A number of bytes within bounds.
#[derive(Debug)]
pub(super) struct Size {
    /// The smallest.
    pub(super) min: u64,
    /// The largest.
    pub(super) max: u64,
}

impl Reader for Size {
    type Value = u64;

    fn kind(&self) -> Kind {
        Kind::Size { min: self.min, max: self.max }
    }

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<u64> {
        let bytes = place.check(value::size(raw))?;
        if (self.min..=self.max).contains(&bytes) {
            return Some(bytes);
        }
        let (min, max) = (value::in_bytes(self.min), value::in_bytes(self.max));
        place.refuse(format!("must be from {min} to {max}"))
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
