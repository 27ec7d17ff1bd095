//! Numeric values as the service sends them.
//!
//! The interface transmits many numbers as strings; replies have been seen with numbers, strings, `null`, `""`
//! and `"NaN"` for the same field. All of them are accepted, and none makes the rest of a reply unreadable.

use std::borrow::Cow;
use std::fmt;

use compact_str::CompactString;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::wire::{Field, stated_as};

/// A numeric field of a reply: its value is finite. `""` and NaN are no value; a word, an object and a number too large to
/// hold are unexpected.
pub type Number = Field<f64>;

impl Number {
    /// Reads a JSON value in its raw form. Numbers are parsed here and not by `serde_json`, which refuses a
    /// whole reply for one `1e400`.
    fn from_json(raw: &str) -> Self {
        match raw.as_bytes().first() {
            Some(b'"') => match serde_json::from_str::<Cow<'_, str>>(raw) {
                Ok(text) => Self::from_text(&text),
                Err(_) => Self::Unexpected,
            },
            Some(b'n') => Self::Missing,
            Some(b'-' | b'0'..=b'9') => decimal(raw).map_or_else(|| Self::from_text(raw), Self::Value),
            _ => Self::Unexpected,
        }
    }

    fn from_text(text: &str) -> Self {
        match text.trim() {
            "" => Self::Missing,
            text => match text.parse::<f64>() {
                Ok(value) if value.is_nan() => Self::Missing,
                Ok(value) if value.is_finite() => Self::Value(value),
                _ => Self::Unexpected,
            },
        }
    }
}

/// Powers of ten that f64 holds exactly.
const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A short decimal number without sign and exponent, the most frequent kind in replies; `None` for any other text.
/// Digits that f64 holds exactly, divided by an exact power of ten, are the f64 nearest to what is written: the same
/// that `parse` gives, in a fifth of the time.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let (mut digits, mut point) = (0u64, None);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() && at > 0 => point = Some(at),
            _ => return None,
        }
        // Fifteen digits are below 2^53.
        if at > 14 {
            return None;
        }
    }
    let fraction = point.map_or(0, |point| text.len() - point - 1);
    if text.is_empty() || (point.is_some() && fraction == 0) {
        return None;
    }
    Some(digits as f64 / POWERS.get(fraction)?)
}

/// `value` times 10 to the power of `exponent`, in decimal as it was written: 715384.615 ms are 715.384615 s, where f64
/// alone would give 715.3846149999999.
pub(super) fn scaled(value: f64, exponent: i32) -> f64 {
    if exponent == 0 {
        return value;
    }
    // Only one decimal of fifteen digits at most reads as this value; see `decimal` for the rest.
    let millionths = (value * 1e6).round();
    let power = usize::try_from(6 - exponent).ok().and_then(|power| POWERS.get(power));
    if let Some(power) = power.filter(|_| millionths.abs() < 1e15 && millionths / 1e6 == value) {
        return millionths / power;
    }
    format!("{value}e{exponent}").parse().unwrap_or(value * 10_f64.powi(exponent))
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self::from_json(raw.get()))
    }
}

/// Written as a JSON number, without a fraction if it is whole; `null` without a value.
impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
        match self.value() {
            Some(value) if value.trunc() == value && value.abs() < 1e15 => {
                serializer.serialize_i64(value as i64)
            }
            Some(value) => serializer.serialize_f64(value),
            None => serializer.serialize_none(),
        }
    }
}

stated_as!(Number, { "type": ["number", "null"] });

/// A number as an app's settings carry it (section 2): written as a string holding it, `""` where there is no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct NumberText(pub Number);

impl Serialize for NumberText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.value() {
            Some(value) => serializer.collect_str(&value),
            None => serializer.serialize_str(""),
        }
    }
}

impl From<NumberText> for Number {
    fn from(text: NumberText) -> Self {
        text.0
    }
}

stated_as!(NumberText, { "type": "string", "format": "decimal" });

/// Entries of an object with numeric values, in the order sent. Their names are short, and held without allocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumberMap(pub Vec<(CompactString, Number)>);

/// Room for a distribution or some percentiles without growing.
const USUAL_ENTRIES: usize = 32;

/// The most entries that are kept: more than are shown, so that one too many is still noted.
const MAX_ENTRIES: usize = 1024;

impl<'de> Deserialize<'de> for NumberMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = NumberMap;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with numeric values, or null")
            }
            fn visit_unit<E>(self) -> Result<NumberMap, E> {
                Ok(NumberMap::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NumberMap, A::Error> {
                let mut entries = Vec::with_capacity(USUAL_ENTRIES);
                while let Some(entry) = map.next_entry::<CompactString, Number>()? {
                    if entries.len() < MAX_ENTRIES {
                        entries.push(entry);
                    }
                }
                Ok(NumberMap(entries))
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

impl Serialize for NumberMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

stated_as!(NumberMap, { "type": "object", "additionalProperties": { "type": "number" } });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_number_is_read() {
        let read = |json: &str| serde_json::from_str::<Number>(json).unwrap();
        for (json, number) in [
            ("12", Number::Value(12.0)),
            ("-0.5", Number::Value(-0.5)),
            ("\"12\"", Number::Value(12.0)),
            ("\" 1.5e3 \"", Number::Value(1500.0)),
            ("\"\\u0031\"", Number::Value(1.0)),
            ("null", Number::Missing),
            ("\"\"", Number::Missing),
            ("\"NaN\"", Number::Missing),
            ("\"+Inf\"", Number::Unexpected),
            ("1e400", Number::Unexpected),
            ("\"12abc\"", Number::Unexpected),
            ("true", Number::Unexpected),
            ("[1]", Number::Unexpected),
            ("{\"a\":1}", Number::Unexpected),
        ] {
            assert_eq!(read(json), number, "{json}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_short_decimal_is_read_as_the_standard_library_reads_it(text in "[0-9]{1,9}(\\.[0-9]{1,8})?") {
            let read = decimal(&text).map(f64::to_bits);
            let expected = text.parse::<f64>().unwrap().to_bits();
            if text.len() <= 15 {
                assert_eq!(read, Some(expected), "{text}");
            } else {
                assert_eq!(read, None, "{text}");
            }
        }
    }

    #[test]
    fn scaled_numbers_keep_their_digits() {
        assert_eq!(scaled(715_384.615, -3).to_string(), "715.384615");
        assert_eq!(scaled(1.1, 9).to_string(), "1100000000");
        assert_eq!(scaled(0.05, -2).to_string(), "0.0005");
        assert_eq!(scaled(f64::MAX, 9), f64::INFINITY);
        assert_eq!(scaled(5e-324, -3), 0.0);
    }

    #[test]
    fn scaling_gives_the_number_nearest_to_the_text() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..100_000 {
            let digits = random.i64(-10_i64.pow(16)..10_i64.pow(16)) >> random.u32(0..54);
            let text = format!("{digits}e-{}", random.u32(0..12));
            let value: f64 = text.parse().unwrap();
            for exponent in [-9, -3, -2, 1, 6, 9] {
                let nearest: f64 = format!("{value}e{exponent}").parse().unwrap();
                assert_eq!(scaled(value, exponent).to_bits(), nearest.to_bits(), "{text}, {exponent}");
            }
        }
    }

    #[test]
    fn long_decimals_are_left_to_the_standard_library() {
        for text in ["", ".", "1.", ".5", "-1", "1e3", "1.2.3", "1 ", "NaN", "12345678901234567"] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }

    #[test]
    fn a_map_keeps_the_order_and_every_entry() {
        let map: NumberMap = serde_json::from_str(r#"{"b":"1","a":null,"b":2}"#).unwrap();
        assert_eq!(
            map.0,
            [
                ("b".into(), Number::Value(1.0)),
                ("a".into(), Number::Missing),
                ("b".into(), Number::Value(2.0))
            ]
        );
    }
}
