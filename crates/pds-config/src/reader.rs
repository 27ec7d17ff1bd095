//! Readers: the values that a key accepts, and their conversion.
//!
//! A message says what to write instead. It shows the raw text only if that cannot be a secret.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::{Map, Value, ValueKind};
use humantime::format_duration;

use super::key::{Kind, in_bytes};
use super::raw::Position;
use pds_client::{is_jwt, surplus};
use pds_core::secret::Secret;
use pds_interface::Resource;

/// Reads the value of a key.
pub(super) struct Reader<T> {
    /// The values it accepts.
    pub(super) kind: Kind,
    read: Box<Read<T>>,
}

type Read<T> = dyn Fn(&Value, &Position<'_>) -> Option<T>;

impl<T: 'static> Reader<T> {
    /// A reader whose message concerns the value as a whole.
    pub(super) fn new(kind: Kind, read: impl Fn(&Value) -> Result<T, String> + 'static) -> Self {
        Self::at(kind, move |raw, position| position.check(read(raw)))
    }

    /// A reader that records problems itself, for example with an item of a list.
    pub(super) fn at(kind: Kind, read: impl Fn(&Value, &Position<'_>) -> Option<T> + 'static) -> Self {
        Self { kind, read: Box::new(read) }
    }

    /// Reads `raw` at `position`; records a problem and returns `None` if it is not valid.
    pub(super) fn read(&self, raw: &Value, position: &Position<'_>) -> Option<T> {
        (self.read)(raw, position)
    }
}

/// The value of `raw` if it is of this kind; otherwise a message.
macro_rules! of_kind {
    ($raw:expr, $kind:ident, $($message:tt)+) => {
        match &$raw.kind {
            ValueKind::$kind(value) => Ok(value),
            _ => Err(format!($($message)+)),
        }
    };
}

/// An optional value; the empty string means `None`.
pub(super) fn empty_is_none<T: 'static>(of: Reader<T>) -> Reader<Option<T>> {
    Reader::at(of.kind.clone(), move |raw, position| match &raw.kind {
        ValueKind::String(text) if text.is_empty() => Some(None),
        _ => of.read(raw, position).map(Some),
    })
}

/// `true` or `false`.
pub(super) fn flag() -> Reader<bool> {
    Reader::new(Kind::Flag, |raw| of_kind!(raw, Boolean, "must be true or false, without quotes").copied())
}

/// A word of a list, each with its meaning.
pub(super) fn word<T: Clone + 'static>(words: impl AsRef<[(&'static str, T)]> + 'static) -> Reader<T> {
    let kind = Kind::Word(words.as_ref().iter().map(|(word, _)| *word).collect());
    Reader::new(kind, move |raw| {
        let words = words.as_ref();
        let all = || words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let text = of_kind!(raw, String, "must be one of {}", all())?;
        let found = words.iter().find(|(word, _)| word == text);
        let meaning = found.map(|(_, meaning)| meaning.clone());
        meaning.ok_or_else(|| format!("unknown value {text:?}; must be one of {}", all()))
    })
}

/// The name of a polled resource.
pub(super) fn resource() -> Reader<Resource> {
    word(Resource::all().map(|resource| (resource.as_str(), resource)).collect::<Vec<_>>())
}

/// A list of distinct items.
pub(super) fn list<T: PartialEq + 'static>(of: Reader<T>) -> Reader<Vec<T>> {
    Reader::at(Kind::List(Box::new(of.kind.clone())), move |raw, position| {
        let items = position.check(as_list(raw))?;
        let mut read: Vec<T> = Vec::with_capacity(items.len());
        let mut good = true;
        for (index, item) in items.iter().enumerate() {
            let position = position.item(index);
            match of.read(item, &position) {
                Some(item) if !read.contains(&item) => read.push(item),
                Some(_) => good = position.refuse::<()>("duplicate; list each value once").is_some(),
                None => good = false,
            }
        }
        good.then_some(read)
    })
}

/// A list of distinct items, at least one.
pub(super) fn non_empty_list<T: PartialEq + 'static>(of: Reader<T>) -> Reader<Vec<T>> {
    let list = list(of);
    Reader::at(list.kind.clone(), move |raw, position| match &raw.kind {
        ValueKind::Array(items) if items.is_empty() => position.refuse("must not be empty"),
        _ => list.read(raw, position),
    })
}

/// The items of a list.
pub(super) fn as_list(raw: &Value) -> Result<&[Value], String> {
    of_kind!(raw, Array, "must be a list in brackets").map(Vec::as_slice)
}

/// The members of a table, which looks like `example`.
pub(super) fn as_table<'a>(raw: &'a Value, example: &str) -> Result<&'a Map<String, Value>, String> {
    of_kind!(raw, Table, "must be a table such as {example}")
}

/// The longest duration of any key: the service keeps data no longer.
pub const MAX_DURATION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A duration of whole seconds, because the program counts in seconds.
pub(super) fn seconds() -> Reader<Duration> {
    span(Duration::from_secs(1), true)
}

/// A duration from a millisecond.
pub(super) fn milliseconds() -> Reader<Duration> {
    span(Duration::from_millis(1), false)
}

fn span(min: Duration, whole_seconds: bool) -> Reader<Duration> {
    Reader::new(Kind::Duration(min..=MAX_DURATION), move |raw| {
        let duration = duration(raw)?;
        if whole_seconds && duration.subsec_nanos() != 0 {
            return Err(format!("{raw} is not a whole number of seconds"));
        }
        if !(min..=MAX_DURATION).contains(&duration) {
            let (min, max) = (format_duration(min), format_duration(MAX_DURATION));
            return Err(format!("{raw} is out of range; must be from {min} to {max}"));
        }
        Ok(duration)
    })
}

/// Whole seconds that divide a day.
pub(super) fn step() -> Reader<Duration> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let seconds = seconds();
    Reader::at(Kind::Other("1s to 1day"), move |raw, position| {
        let step = seconds.read(raw, position)?;
        if step <= DAY && DAY.as_secs().is_multiple_of(step.as_secs()) {
            return Some(step);
        }
        position.refuse(format!("{raw} does not divide a day; use for example \"60s\", \"5m\" or \"1h\""))
    })
}

/// A duration as humantime writes it: `1m30s`, `1h 30m`. It is longer than zero.
fn duration(raw: &Value) -> Result<Duration, String> {
    const USE: &str = "use a number with a unit, such as \"90s\", \"5m\" or \"24h\"";
    let text = of_kind!(raw, String, "must be a duration; {USE}")?;
    let parsed = humantime::parse_duration(text);
    if text.trim_start().starts_with('-') || parsed == Ok(Duration::ZERO) {
        return Err(format!("{text:?} must be longer than zero"));
    }
    parsed.map_err(|_| format!("{text:?} is not a duration; {USE}"))
}

/// A whole number.
pub(super) fn count(min: u32, max: u32) -> Reader<u32> {
    Reader::new(Kind::Count(min..=max), move |raw| {
        let number = of_kind!(raw, I64, "must be a whole number without quotes, from {min} to {max}")?;
        let count = u32::try_from(*number).ok().filter(|count| (min..=max).contains(count));
        count.ok_or_else(|| format!("{number} is out of range; must be from {min} to {max}"))
    })
}

/// A whole number from 1.
pub(super) fn positive(max: u32) -> Reader<NonZeroU32> {
    let count = count(1, max);
    Reader::at(count.kind.clone(), move |raw, position| NonZeroU32::new(count.read(raw, position)?))
}

/// A whole number; 0 means no limit.
pub(super) fn limit(max: u32) -> Reader<Option<NonZeroU32>> {
    let count = count(0, max);
    Reader::at(count.kind.clone(), move |raw, position| count.read(raw, position).map(NonZeroU32::new))
}

/// A number above 0 and below 1.
pub(super) fn share(raw: &Value) -> Result<f64, String> {
    match raw.kind {
        ValueKind::Float(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("must be a number above 0 and below 1, for example 0.99".to_owned()),
    }
}

/// A number of bytes: a whole number, or a string with a unit such as `16MiB` or `16Mi`.
pub(super) fn size(min: u64, max: u64) -> Reader<u64> {
    Reader::new(Kind::Size(min..=max), move |raw| {
        let bytes = match &raw.kind {
            ValueKind::I64(number) => u64::try_from(*number).ok(),
            ValueKind::String(text) => bytes(text),
            _ => None,
        };
        match bytes {
            None => Err("must be a size such as \"16MiB\", or a whole number of bytes".to_owned()),
            Some(bytes) if (min..=max).contains(&bytes) => Ok(bytes),
            Some(_) => Err(format!("must be from {} to {}", in_bytes(min), in_bytes(max))),
        }
    })
}

/// The number of bytes that `text` says with or without a unit. Kubernetes writes `Ki` to `Ti`.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let bytes: u64 = match unit.trim_start() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(bytes)
}

/// A string.
pub(super) fn as_text(raw: &Value) -> Result<&str, String> {
    of_kind!(raw, String, "must be a string").map(String::as_str)
}

/// A string that is not empty; `instead` says what to do about an empty one.
fn not_empty<'a>(raw: &'a Value, instead: &str) -> Result<&'a str, String> {
    match as_text(raw)? {
        "" => Err(format!("must not be empty{instead}")),
        text => Ok(text),
    }
}

/// A string that is not empty.
pub(super) fn text() -> Reader<String> {
    Reader::new(Kind::Text, |raw| not_empty(raw, "").map(str::to_owned))
}

/// An id as in the service's paths.
pub(super) fn id() -> Reader<Arc<str>> {
    Reader::new(Kind::Text, |raw| match not_empty(raw, "; use the id from the service's paths")? {
        id @ ("." | "..") => {
            Err(format!("{id:?} cannot be part of a path; use the id from the service's paths"))
        }
        id if id.trim() != id => Err(format!("{id:?} has white space around it; remove it")),
        id => Ok(Arc::from(id)),
    })
}

/// A bearer token: visible ASCII, which a header can carry, and nothing else. Messages never show it.
pub(super) fn token() -> Reader<Secret> {
    Reader::new(Kind::Secret, |raw| {
        // A variable that is made from a file may end in a line end.
        let token = as_text(raw)?.trim_end();
        if token.is_empty() {
            return Err("must not be empty; set the token, or remove the key".to_owned());
        }
        let unfit = !token.bytes().all(|byte| byte.is_ascii_graphic());
        match surplus(token).or(unfit.then_some("holds other characters")) {
            Some(problem) => Err(format!("{problem}; write only the token, on one line")),
            None => Ok(Secret::new(token)),
        }
    })
}

/// The path of a file, relative to the folder of the configuration file.
pub(super) fn file() -> Reader<PathBuf> {
    Reader::at(Kind::Other("path"), |raw, position| {
        let path = position.check(not_empty(raw, "; set the path of a file, or remove the key"))?;
        Some(position.shared.folder.join(position.check(file_path(path))?))
    })
}

/// The path of a file as written.
///
/// # Errors
/// If it looks like a token. The message does not show it.
pub fn file_path(text: &str) -> Result<PathBuf, String> {
    match text.split_whitespace().any(is_jwt) {
        true => Err("looks like a token; write the path of its file".to_owned()),
        false => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Value {
        Value::new(None, text)
    }

    #[test]
    fn a_size_is_a_number_with_or_without_a_unit() {
        assert_eq!(bytes("16MiB"), Some(16 << 20));
        assert_eq!(bytes("2 kB"), Some(2_000));
        assert_eq!(bytes("16Mi"), Some(16 << 20));
        assert_eq!(bytes("1Ti"), Some(1 << 40));
        assert_eq!(bytes("4096"), Some(4096));
        for wrong in ["", "MiB", "-1", "1.5MiB", "99999999999GiB", "1 2", "5 parsecs"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_duration_has_a_unit_and_is_longer_than_zero() {
        assert_eq!(duration(&raw("1h 30m")), Ok(Duration::from_secs(5400)));
        assert_eq!(duration(&raw("1m30s")), Ok(Duration::from_secs(90)));
        for wrong in ["", "60", "0s", "-5s", "99999999999999999999y", "5 parsecs"] {
            assert!(duration(&raw(wrong)).is_err(), "{wrong}");
        }
        assert!(duration(&Value::new(None, 60)).is_err());
    }
}
