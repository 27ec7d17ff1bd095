//! Replies with values that no JSON reader holds: a number such as `1e400`, lists within lists without end.
//!
//! Such a value is bad; the reply around it is not. Where a reply cannot be read as it is, it is read once more with
//! each of those values as the text that it is written as, which no number and no flag is mistaken for.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use super::wire::Object;

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
        serde_json::from_str(&readable(raw.get(), DEEPEST).to_string())
    })
}

/// Reads a reply that is an object.
///
/// # Errors
/// As [`from_slice`].
pub(super) fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    from_slice(body).map(|Object(reply)| reply)
}

/// A JSON value, with what serde_json cannot read in it as text.
fn readable(raw: &str, deepest: usize) -> Value {
    if let Ok(value) = serde_json::from_str(raw) {
        return value;
    }
    let inside = |raw: &RawValue| readable(raw.get(), deepest - 1);
    if deepest > 0 {
        if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(raw) {
            return list.into_iter().map(inside).collect();
        }
        if let Ok(object) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw) {
            return object.into_iter().map(|(name, value)| (name, inside(value))).collect();
        }
    }
    raw.into()
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
