//! One raw value at a time: from what TOML can hold to what the program uses.
//!
//! Each function answers with the value, or with the sentence of what to write instead. The sentences show the
//! raw text only where it can't be a secret.

use std::time::Duration;

use config::{Value, ValueKind};
use url::Url;

/// The longest duration of any key: the service keeps no data longer than that.
pub const MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The bounds of a size: a reply of a few hundred bytes must fit, and no reply may fill the machine's memory.
const SIZES: std::ops::RangeInclusive<u64> = 1024..=1024 * 1024 * 1024;

/// The units of a size and their bytes, the longer before those they end in.
const UNITS: [(&str, u64); 7] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("b", 1),
];

/// A text.
///
/// # Errors
/// Where it is none; its content is not shown.
pub fn text(value: &Value) -> Result<&str, String> {
    match &value.kind {
        ValueKind::String(text) => Ok(text),
        _ => Err("must be a text in quotes".to_owned()),
    }
}

/// `true` or `false`.
///
/// # Errors
/// Where it is neither.
pub fn flag(value: &Value) -> Result<bool, String> {
    match value.kind {
        ValueKind::Boolean(flag) => Ok(flag),
        _ => Err("must be true or false, without quotes".to_owned()),
    }
}

/// A whole number from `min` to `max`.
///
/// # Errors
/// Where it is no number, or outside.
pub fn count(value: &Value, min: u32, max: u32) -> Result<u32, String> {
    let ValueKind::I64(number) = value.kind else {
        return Err(format!("must be a whole number without quotes, from {min} to {max}"));
    };
    u32::try_from(number)
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("is {number}, but must be from {min} to {max}"))
}

/// A duration above zero, at most [`MAX`].
///
/// # Errors
/// Where it is no humantime text, or outside.
pub fn duration(value: &Value) -> Result<Duration, String> {
    const WRITE: &str = "write a number with its unit, such as \"90s\", \"5m\" or \"24h\"";
    let ValueKind::String(text) = &value.kind else {
        return Err(format!("must be a duration; {WRITE}"));
    };
    if text.trim_start().starts_with('-') {
        return Err(format!("is {text:?}, but must be longer than zero"));
    }
    let duration =
        humantime::parse_duration(text).map_err(|_| format!("is {text:?}, which is no duration; {WRITE}"))?;
    if duration.is_zero() {
        return Err(format!("is {text:?}, but must be longer than zero"));
    }
    if duration > MAX {
        return Err(format!("is {text:?}, but must be at most {}", humantime::format_duration(MAX)));
    }
    Ok(duration)
}

/// Bytes.
///
/// # Errors
/// Where it is neither a number nor a text with a unit, or not from 1 KiB to 1 GiB.
pub fn size(value: &Value) -> Result<u64, String> {
    let bytes = match &value.kind {
        ValueKind::I64(number) => u64::try_from(*number).ok(),
        ValueKind::String(text) => parse_size(text),
        _ => None,
    };
    let bytes = bytes.ok_or("must be a size such as \"16MiB\", or a whole number of bytes")?;
    if SIZES.contains(&bytes) { Ok(bytes) } else { Err("must be from \"1KiB\" to \"1GiB\"".to_owned()) }
}

fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let (number, factor) =
        UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes))).unwrap_or((&text, 1));
    number.trim_end().parse::<u64>().ok()?.checked_mul(factor)
}

/// An http or https URL without query and fragment.
///
/// # Errors
/// Where it is anything else. The text is not shown: it may hold credentials.
pub fn url(value: &Value) -> Result<Url, String> {
    let url = Url::parse(text(value)?)
        .map_err(|error| format!("is no URL ({error}); write one such as \"https://api.example.com\""))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or fragment; end it before the `?` or `#`".to_owned());
    }
    Ok(url)
}

/// One of `words`.
///
/// # Errors
/// Where it is none of them.
pub fn word(value: &Value, words: &[&'static str]) -> Result<&'static str, String> {
    let all = || words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    let ValueKind::String(text) = &value.kind else {
        return Err(format!("must be one of {}", all()));
    };
    words
        .iter()
        .find(|word| *word == text)
        .copied()
        .ok_or_else(|| format!("is {text:?}, but must be one of {}", all()))
}

/// A bearer token: visible ASCII, as a header takes it.
///
/// # Errors
/// Where it is none. The text is never shown.
pub fn token(value: &Value) -> Result<&str, String> {
    let token = text(value)?;
    if token.is_empty() {
        return Err("is empty; write the token, or leave the key out".to_owned());
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("holds spaces, line ends or letters that no token has; copy it again".to_owned());
    }
    Ok(token)
}

/// An id as it stands in the service's paths.
///
/// # Errors
/// Where it is no text, or would vanish from a path.
pub fn id(value: &Value) -> Result<&str, String> {
    let id = text(value)?;
    match id {
        "" => Err("is empty; write the id as the service's paths have it".to_owned()),
        "." | ".." => Err(format!("is {id:?}, which a path cannot hold; write the id of the service")),
        _ => Ok(id),
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
        assert_eq!(size(&raw("16MiB")), Ok(16 << 20));
        assert_eq!(size(&raw("2 kB")), Ok(2_000));
        assert_eq!(size(&raw("4096")), Ok(4096));
        assert_eq!(size(&Value::new(None, 4096)), Ok(4096));
        for wrong in ["", "MiB", "-1", "1.5MiB", "99999999999GiB", "1023", "2GiB"] {
            assert!(size(&raw(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_duration_has_a_unit_and_is_longer_than_zero() {
        assert_eq!(duration(&raw("1h 30m")), Ok(Duration::from_secs(5400)));
        for wrong in ["", "60", "0s", "-5s", "31days", "99999999999999999999y", "5 parsecs"] {
            assert!(duration(&raw(wrong)).is_err(), "{wrong}");
        }
        assert!(duration(&Value::new(None, 60)).is_err());
    }

    #[test]
    fn a_refused_url_or_token_is_not_shown() {
        let refused = [url(&raw("ftp://hunter2@x")).unwrap_err(), url(&raw("hunter2")).unwrap_err()];
        let tokens = [token(&raw("hunter2 ")).unwrap_err(), token(&Value::new(None, 12)).unwrap_err()];
        assert!(
            refused.iter().chain(&tokens).all(|text| !text.contains("hunter2")),
            "{refused:?} {tokens:?}"
        );
    }
}
