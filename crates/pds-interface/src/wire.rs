//! Text, flags, lists and objects as the service sends them.
//!
//! A value of another type makes no other value unreadable, and takes no memory: nothing is kept that is not read.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// The schema that the interface states for a type; its reader takes more than that.
macro_rules! stated_as {
    ($type:ident, $schema:tt) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub(super) use stated_as;

/// A field of a reply with one value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Field<T> {
    /// No value, which is neither 0 nor `false`: absent or `null`.
    #[default]
    Missing,
    /// A value.
    Value(T),
    /// Anything else. Counted, never shown.
    Unexpected,
}

impl<T> Field<T> {
    /// The value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Missing | Self::Unexpected => None,
        }
    }
}

/// A flag of a reply.
pub type Flag = Field<bool>;

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match <&RawValue>::deserialize(deserializer)?.get() {
            "true" => Self::Value(true),
            "false" => Self::Value(false),
            "null" => Self::Missing,
            _ => Self::Unexpected,
        })
    }
}

/// Written as a JSON flag; `null` without a value.
impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

stated_as!(Flag, { "type": "boolean" });

/// Text of a reply: empty if it is absent, `null`, a list or an object; a number or a flag is read as its JSON. An
/// `Option<Text>` distinguishes an absent text, or `null`, from an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Text(pub String);

impl Text {
    /// The text without white space around it; `None` if that is empty.
    pub fn stated(&self) -> Option<&str> {
        Some(self.0.trim()).filter(|text| !text.is_empty())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

stated_as!(Text, { "type": "string" });

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Message::deserialize(deserializer).map(|text| text.value().unwrap_or_default())
    }
}

/// A message of a reply. Unlike with [`Text`], a list or an object is not the same as no message.
pub type Message = Field<Text>;

impl Message {
    /// Its text; empty if there is none.
    pub fn as_str(&self) -> &str {
        if let Self::Value(text) = self { text } else { "" }
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(match raw.as_bytes() {
            [b'n', ..] => Self::Missing,
            [b'[' | b'{', ..] => Self::Unexpected,
            // Most texts have no escapes.
            [b'"', text @ .., b'"'] if !text.contains(&b'\\') => Self::Value(raw[1..raw.len() - 1].into()),
            // Text with half of a surrogate pair stays as written.
            [b'"', text @ .., b'"'] => {
                let written = || String::from_utf8_lossy(text).into_owned();
                Self::Value(serde_json::from_str(raw).unwrap_or_else(|_| written()).into())
            }
            _ => Self::Value(raw.into()),
        })
    }
}

/// Written as a JSON text; empty without a value.
impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_str().serialize(serializer)
    }
}

stated_as!(Message, { "type": "string" });

/// A `T` that is read from an object and from nothing else. A derived reader also takes a list for the fields in their
/// order.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// The most elements of a list. A reply may be as large as `max_response_bytes` allows, the memory it takes may not.
const MAX_ELEMENTS: usize = 10_000;

/// Passes each element of an array to `each`. Returns whether there is an array: `null` is not.
///
/// # Errors
/// If it is neither, an element is not a `T`, or `each` refuses one.
pub(super) fn array<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    each: impl FnMut(T) -> Result<(), String>,
) -> Result<bool, D::Error> {
    struct Each<F, T>(F, PhantomData<T>);
    impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<(), String>> Visitor<'de> for Each<F, T> {
        type Value = bool;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_unit<E>(self) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<bool, A::Error> {
            while let Some(element) = seq.next_element()? {
                (self.0)(element).map_err(A::Error::custom)?;
            }
            Ok(true)
        }
    }
    deserializer.deserialize_any(Each(each, PhantomData))
}

/// A list; `null` gives `None`.
///
/// # Errors
/// If it is anything else, or has more than [`MAX_ELEMENTS`].
pub(super) fn optional_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let mut elements = Vec::new();
    let is_list = array(deserializer, |element| {
        if elements.len() == MAX_ELEMENTS {
            return Err(format!("an array of more than {MAX_ELEMENTS} elements"));
        }
        elements.push(element);
        Ok(())
    })?;
    Ok(is_list.then_some(elements))
}

/// A field that is an [`Object`].
///
/// # Errors
/// If it is anything else.
pub(super) fn an_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_text_is_empty_unless_it_is_optional() {
        let read = |json: &str| serde_json::from_str::<Text>(json).unwrap();
        assert_eq!((&*read("null"), read("\" \"").stated(), read("\" a\"").stated()), ("", None, Some("a")));
        let optional = |json: &str| serde_json::from_str::<Option<Text>>(json).unwrap();
        assert_eq!((optional("null"), optional("\"\"")), (None, Some(Text::default())));
    }
}
