//! Conversions from raw TOML values to the program's types.
//!
//! Each function returns the value, or a message that says what to write instead. A message shows the raw text only if
//! the text cannot be a secret.

use std::time::Duration;

use config::{Value, ValueKind};
use url::Url;

/// The longest duration of any key: the service keeps data no longer.
pub const MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The units of a size and their bytes. Kubernetes writes `Ki` to `Ti`.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1_000),
    ("kb", 1_000),
    ("ki", 1 << 10),
    ("kib", 1 << 10),
    ("mb", 1_000_000),
    ("mi", 1 << 20),
    ("mib", 1 << 20),
    ("gb", 1_000_000_000),
    ("gi", 1 << 30),
    ("gib", 1 << 30),
    ("ti", 1 << 40),
    ("tib", 1 << 40),
];

/// A string.
///
/// # Errors
/// If the value is not a string. The message does not show it.
pub fn text(value: &Value) -> Result<&str, String> {
    match &value.kind {
        ValueKind::String(text) => Ok(text),
        _ => Err("must be a string".to_owned()),
    }
}

/// `true` or `false`.
///
/// # Errors
/// If the value is neither.
pub fn flag(value: &Value) -> Result<bool, String> {
    match value.kind {
        ValueKind::Boolean(flag) => Ok(flag),
        _ => Err("must be true or false, without quotes".to_owned()),
    }
}

/// A list.
///
/// # Errors
/// If the value is not a list.
pub fn list(value: &Value) -> Result<&[Value], String> {
    match &value.kind {
        ValueKind::Array(items) => Ok(items),
        _ => Err("must be a list in brackets".to_owned()),
    }
}

/// A whole number from `min` to `max`.
///
/// # Errors
/// If it is not a number, or out of range.
pub fn count(value: &Value, min: u32, max: u32) -> Result<u32, String> {
    let ValueKind::I64(number) = value.kind else {
        return Err(format!("must be a whole number without quotes, from {min} to {max}"));
    };
    u32::try_from(number)
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("{number} is out of range; must be from {min} to {max}"))
}

/// A number above 0 and below 1, as millionths.
///
/// # Errors
/// If it is not a number, or out of range.
pub fn millionths(value: &Value) -> Result<u32, String> {
    const MILLION: f64 = 1e6;
    let share = match value.kind {
        ValueKind::Float(share) => (share * MILLION).round(),
        _ => f64::NAN,
    };
    if share > 0.0 && share < MILLION {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
        return Ok(share as u32);
    }
    Err("must be a number above 0 and below 1, for example 0.99".to_owned())
}

/// A duration longer than zero, as humantime writes it: `1m30s`, `1h 30m`.
///
/// # Errors
/// If the value is not a duration, or zero.
pub fn duration(value: &Value) -> Result<Duration, String> {
    const USE: &str = "use a number with a unit, such as \"90s\", \"5m\" or \"24h\"";
    let ValueKind::String(text) = &value.kind else {
        return Err(format!("must be a duration; {USE}"));
    };
    if text.trim_start().starts_with('-') {
        return Err(format!("{text:?} must be longer than zero"));
    }
    let duration =
        humantime::parse_duration(text).map_err(|_| format!("{text:?} is not a duration; {USE}"))?;
    if duration.is_zero() {
        return Err(format!("{text:?} must be longer than zero"));
    }
    Ok(duration)
}

/// A number of bytes: a whole number, or a string with a unit such as `16MiB` or `16Mi`.
///
/// # Errors
/// If it is neither.
pub fn size(value: &Value) -> Result<u64, String> {
    let bytes = match &value.kind {
        ValueKind::I64(number) => u64::try_from(*number).ok(),
        ValueKind::String(text) => parse_size(text),
        _ => None,
    };
    bytes.ok_or_else(|| "must be a size such as \"16MiB\", or a whole number of bytes".to_owned())
}

fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let (_, bytes) = UNITS.iter().find(|(known, _)| *known == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

/// A number of bytes for people: `1KiB`.
#[must_use]
pub fn in_bytes(bytes: u64) -> String {
    let unit = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = unit.into_iter().find(|(_, size)| bytes != 0 && bytes.is_multiple_of(*size));
    let (unit, size) = whole.unwrap_or(("B", 1));
    format!("{}{unit}", bytes / size)
}

/// An http or https URL without query and fragment.
///
/// # Errors
/// If the value is anything else. The message does not show it: it may hold credentials.
pub fn url(value: &Value) -> Result<Url, String> {
    let url = Url::parse(text(value)?)
        .map_err(|error| format!("not a valid URL ({error}); use for example \"https://api.example.com\""))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or fragment; remove everything from `?` or `#`".to_owned());
    }
    Ok(url)
}

/// The meaning of one of `words`.
///
/// # Errors
/// If the value is not one of them.
pub fn word<T: Clone>(value: &Value, words: &[(&str, T)]) -> Result<T, String> {
    let all = || words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    let ValueKind::String(text) = &value.kind else {
        return Err(format!("must be one of {}", all()));
    };
    match words.iter().find(|(word, _)| word == text) {
        Some((_, meaning)) => Ok(meaning.clone()),
        None => Err(format!("unknown value {text:?}; must be one of {}", all())),
    }
}

/// A bearer token: visible ASCII, which a header can carry.
///
/// # Errors
/// If the value cannot be a token. The message never shows it.
pub fn token(value: &Value) -> Result<&str, String> {
    let token = text(value)?;
    if token.is_empty() {
        return Err("must not be empty; set the token, or remove the key".to_owned());
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(
            "contains spaces, line breaks or other characters that are not allowed in a token".to_owned()
        );
    }
    Ok(token)
}

/// An id as in the service's paths.
///
/// # Errors
/// If it is not a string, or cannot be a segment of a path.
pub fn id(value: &Value) -> Result<&str, String> {
    let id = text(value)?;
    match id {
        "" => Err("must not be empty; use the id from the service's paths".to_owned()),
        "." | ".." => Err(format!("{id:?} cannot be part of a path; use the id from the service's paths")),
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
        assert_eq!(size(&raw("16Mi")), Ok(16 << 20));
        assert_eq!(size(&raw("1Ti")), Ok(1 << 40));
        assert_eq!(size(&raw("4096")), Ok(4096));
        assert_eq!(size(&Value::new(None, 4096)), Ok(4096));
        for wrong in ["", "MiB", "-1", "1.5MiB", "99999999999GiB", "1 2", "5 parsecs"] {
            assert!(size(&raw(wrong)).is_err(), "{wrong}");
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
