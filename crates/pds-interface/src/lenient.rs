//! Replies with values that no JSON reader holds: a number such as `1e400`, lists within lists without end.
//!
//! Such a value is bad; the reply around it is not. Where a reply cannot be read as it is, it is read once more with
//! each of those values as the text that it is written as, which no number and no flag is mistaken for.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use super::wire::{Object, Text};

/// How deep values that cannot be read are looked for; the replies of the interface end well above.
const DEEPEST: usize = 6;

/// Reads a reply.
///
/// # Errors
/// If it is not JSON, or does not have the shape of a `T`.
pub(super) fn from_slice<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    // Looked at once as a whole, text need not be looked at again value by value.
    let read = match std::str::from_utf8(body) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(body),
    };
    read.or_else(|error| {
        // A value of the wrong type is one in any form, and its error may quote all of a long reply.
        if error.is_data() {
            return Err(error);
        }
        let raw: &RawValue = serde_json::from_slice(body).map_err(|_| error)?;
        let mut readable = String::with_capacity(raw.get().len());
        quote_unreadable(raw.get(), DEEPEST, &mut readable);
        serde_json::from_str(&readable)
    })
}

/// Reads a reply that is an object.
///
/// # Errors
/// As [`from_slice`].
pub(super) fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    from_slice(body).map(|Object(reply)| reply)
}

/// Writes valid JSON to `out`, with what serde_json cannot read in it as text.
fn quote_unreadable(raw: &str, deepest: usize, out: &mut String) {
    // Text is read from any value.
    if serde_json::from_str::<Text>(raw).is_ok() {
        out.push_str(raw);
        return;
    }
    let before = out.len();
    if deepest > 0 && raw.starts_with(['{', '[']) {
        let mut reader = serde_json::Deserializer::from_str(raw);
        if reader.deserialize_any(QuoteEach { deepest, out: &mut *out }).is_ok() {
            return;
        }
    }
    out.truncate(before);
    out.push_str(&Value::from(raw).to_string());
}

/// Writes the elements of a list or object to `out`, with what cannot be read as text.
struct QuoteEach<'a> {
    deepest: usize,
    out: &'a mut String,
}

impl<'de> Visitor<'de> for QuoteEach<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.out.push('[');
        let mut separator = "";
        while let Some(item) = seq.next_element::<&RawValue>()? {
            self.out.push_str(std::mem::replace(&mut separator, ","));
            quote_unreadable(item.get(), self.deepest - 1, self.out);
        }
        self.out.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.out.push('{');
        let mut separator = "";
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            self.out.push_str(std::mem::replace(&mut separator, ","));
            self.out.push_str(&Value::from(name).to_string());
            self.out.push(':');
            quote_unreadable(value.get(), self.deepest - 1, self.out);
        }
        self.out.push('}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::get_app::App;
    use crate::reply::ReplyBody;
    use crate::response_time;

    #[test]
    fn a_value_that_can_t_be_held_is_read_as_its_text() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let app = format!(r#"{{"novel":1e400,"deep":{deep},"cpu":"2","id":"a"}}"#);
        assert_eq!(App::decode(app.as_bytes()).unwrap().cpu.0.value(), Some(2.0));
        let fields: Value = from_slice(app.as_bytes()).unwrap();
        assert_eq!(fields["novel"], "1e400");
        assert_eq!(fields["deep"][0][0][0][0][0].as_str(), deep.get(5..deep.len() - 5));
        let times = br#"{"data":{"total_requests":3,"more":[{"x":-1e999}]},"more":1e400,"status":"success"}"#;
        let total = response_time::Reply::decode(times).unwrap().data.total_requests;
        assert_eq!(total.value(), Some(3.0));
        let fields: Value = from_slice(times).unwrap();
        assert_eq!(fields["data"]["more"][0]["x"], "-1e999");
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
