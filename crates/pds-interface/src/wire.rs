//! Text, flags, lists and objects as the service sends them.
//!
//! A value of another type makes no other value unreadable, and takes no memory: nothing is kept that is not read.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// A flag of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flag {
    /// Absent or `null`.
    #[default]
    Missing,
    /// `true` or `false`.
    Value(bool),
    /// Anything else. Counted, never shown.
    Unexpected,
}

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

/// Written as a JSON flag; what has no value is `null`.
impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => serializer.serialize_bool(*value),
            Self::Missing | Self::Unexpected => serializer.serialize_none(),
        }
    }
}

impl JsonSchema for Flag {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Flag".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

/// A `T` that is read from an object and from nothing else. A derived reader also takes a list for the fields in their
/// order.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(FromObject(deserializer)).map(Self)
    }
}

/// A deserializer that gives a struct an object only.
struct FromObject<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for FromObject<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    /// Raw values are read as such.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The most elements of a list. A reply may be as large as `max_response_bytes` allows, the memory it takes may not.
const MAX_ELEMENTS: usize = 10_000;

/// A list of objects.
///
/// # Errors
/// If it is not a list of objects, or has more than [`MAX_ELEMENTS`].
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct List<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut elements = Vec::new();
            while let Some(Object(element)) = seq.next_element()? {
                if elements.len() == MAX_ELEMENTS {
                    return Err(A::Error::custom(format_args!(
                        "an array of more than {MAX_ELEMENTS} elements"
                    )));
                }
                elements.push(element);
            }
            Ok(elements)
        }
    }
    deserializer.deserialize_seq(List(PhantomData))
}

/// As [`list`]; `null` gives `None`.
///
/// # Errors
/// As [`list`].
pub(super) fn optional_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    struct Elements<T>(Vec<T>);
    impl<'de, T: Deserialize<'de>> Deserialize<'de> for Elements<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            list(deserializer).map(Self)
        }
    }
    Ok(Option::<Elements<T>>::deserialize(deserializer)?.map(|elements| elements.0))
}

/// The texts of a list. Other elements are left out; a value that is not a list gives an empty one.
///
/// # Errors
/// Only where the JSON itself is malformed.
pub(super) fn lenient_texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Texts;
    impl<'de> Visitor<'de> for Texts {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut texts = Vec::new();
            while let Some(raw) = seq.next_element::<&RawValue>()? {
                if texts.len() < MAX_ELEMENTS {
                    texts.extend(serde_json::from_str::<String>(raw.get()));
                }
            }
            Ok(texts)
        }
    }
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::Deserializer::from_str(raw.get()).deserialize_seq(Texts).unwrap_or_default())
}

/// Text that may be absent, `null` or of another type; what is not text is read as its JSON.
///
/// # Errors
/// Only where the JSON itself is malformed.
pub fn lenient_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Text;
    impl<'de> Visitor<'de> for Text {
        type Value = String;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("text")
        }
        fn visit_str<E>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
        fn visit_unit<E>(self) -> Result<String, E> {
            Ok(String::new())
        }
        fn visit_bool<E>(self, value: bool) -> Result<String, E> {
            Ok(value.to_string())
        }
        fn visit_i64<E>(self, value: i64) -> Result<String, E> {
            Ok(value.to_string())
        }
        fn visit_u64<E>(self, value: u64) -> Result<String, E> {
            Ok(value.to_string())
        }
        fn visit_f64<E>(self, value: f64) -> Result<String, E> {
            Ok(value.to_string())
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<String, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(String::new())
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(String::new())
        }
    }
    deserializer.deserialize_any(Text)
}

/// An object that may be `null`, which reads as its default.
///
/// # Errors
/// As the value's own.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<Object<T>>::deserialize(deserializer)?.map(|object| object.0).unwrap_or_default())
}
