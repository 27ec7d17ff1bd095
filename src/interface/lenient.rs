//! Replies with values that no JSON reader holds: a number such as `1e400`, lists within lists without end.
//!
//! Such a value is bad; the reply around it is not. Where a reply cannot be read as it is, it is read once more with
//! each of those values as the text that it is written as, which no number and no flag is mistaken for.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Value};

/// How deep values are looked for that cannot be held; the replies of the interface end well above.
const DEEPEST: usize = 6;

/// Reads a reply.
///
/// # Errors
/// If it is no JSON, or lacks the shape of a `T`.
pub(super) fn from_slice<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    // Looked at once as a whole, text need not be looked at again value by value.
    let read = match std::str::from_utf8(body) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(body),
    };
    read.or_else(|error| {
        let raw: &RawValue = serde_json::from_slice(body).map_err(|_| error)?;
        let mut tamed = String::with_capacity(raw.get().len());
        tame(raw.get(), DEEPEST, &mut tamed);
        serde_json::from_str(&tamed)
    })
}

/// Writes valid JSON to `out`, with what cannot be held in it as text.
fn tame(raw: &str, deepest: usize, out: &mut String) {
    if serde_json::from_str::<Value>(raw).is_ok() {
        out.push_str(raw);
    } else if let (Ok(Fields(fields)), true) = (serde_json::from_str(raw), deepest > 0) {
        let fields = fields.into_iter().map(|(name, value)| (Some(name), value));
        tame_all(fields, deepest, ['{', '}'], out);
    } else if let (Ok(items), true) = (serde_json::from_str::<Vec<&RawValue>>(raw), deepest > 0) {
        tame_all(items.into_iter().map(|item| (None, item)), deepest, ['[', ']'], out);
    } else {
        out.push_str(&Value::from(raw).to_string());
    }
}

fn tame_all<'a>(
    values: impl Iterator<Item = (Option<String>, &'a RawValue)>,
    deepest: usize,
    [open, close]: [char; 2],
    out: &mut String,
) {
    out.push(open);
    for (index, (name, value)) in values.enumerate() {
        if index > 0 {
            out.push(',');
        }
        if let Some(name) = name {
            out.push_str(&Value::from(name).to_string());
            out.push(':');
        }
        tame(value.get(), deepest - 1, out);
    }
    out.push(close);
}

/// An object's fields as they stand, those that come twice included.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::call::ReplyBody;
    use crate::interface::get_app::App;
    use crate::interface::response_time;

    #[test]
    fn a_value_that_can_t_be_held_is_read_as_its_text() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let app = format!(r#"{{"novel":1e400,"deep":{deep},"cpu":"2","id":"a"}}"#);
        let app = App::decode(app.as_bytes()).unwrap();
        assert_eq!((app.cpu.value(), &app.extra["novel"]), (Some(2.0), &Value::from("1e400")));
        assert_eq!(app.extra["deep"][0][0][0][0][0].as_str(), deep.get(5..deep.len() - 5));
        let times = br#"{"data":{"total_requests":3,"more":[{"x":-1e999}]},"more":1e400,"status":"success"}"#;
        let times = response_time::Reply::decode(times).unwrap().data;
        assert_eq!(times.total_requests.value(), Some(3.0));
        assert_eq!(times.extra["more"][0]["x"], "-1e999");
    }

    #[test]
    fn what_is_broken_stays_unreadable() {
        for broken in
            ["{\"a\":1e400", "{\"id\":\"a\",\"id\":\"b\",\"x\":1e400}", "", "[1e400]", "{\"a\":NaN}"]
        {
            assert!(App::decode(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
