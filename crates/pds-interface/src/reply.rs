//! Reading and writing of replies.
//!
//! One bad value does not make the reply around it unreadable. A reply that is not JSON is read once more without the
//! common deviations (a byte-order mark, bytes that are not UTF-8, a bare `NaN`, a number such as `.5`, a line break in text,
//! a comma too many), and then with each value that no reader holds (`1e400`, lists within lists without end) as the text
//! that it is written as.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::wire::{Object, Text};

/// Wire format of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// Plain text.
    Text,
    /// No body.
    Empty,
}

/// A successful reply, read and written. JSON unless implemented otherwise.
pub trait ReplyBody: Serialize + DeserializeOwned + JsonSchema {
    /// Its wire format.
    const FORMAT: Format = Format::Json;

    /// Reads a reply.
    ///
    /// # Errors
    /// If the body does not have the shape that the interface describes. A single bad value is not an error.
    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        object(body)
    }

    /// Writes a reply.
    ///
    /// # Errors
    /// Only those of the JSON writer.
    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

/// Maximum depth of the search for unreadable values; replies of the interface are much less deep.
const MAX_DEPTH: usize = 6;

/// Reads a reply.
///
/// # Errors
/// If it is not JSON, or does not have the shape of a `T`.
pub(super) fn from_slice<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    // Checks the whole body for UTF-8 once, not value by value.
    let read = match std::str::from_utf8(body) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(body),
    };
    read.or_else(|error| {
        // A correction does not change a value's type, and its error may quote all of a long reply.
        if error.is_data() {
            return Err(error);
        }
        let text = String::from_utf8_lossy(without_mark(body));
        // A word alone is no reply.
        if !text.trim_start().starts_with(['{', '[']) {
            return Err(error);
        }
        let text = without_deviations(&text);
        serde_json::from_str(&text).or_else(|deviating| match serde_json::from_str::<&RawValue>(&text) {
            Ok(raw) if !deviating.is_data() => {
                serde_json::from_str(&readable(raw.get(), MAX_DEPTH).to_string())
            }
            Ok(_) => Err(deviating),
            // The place in the reply as it was sent.
            Err(_) => Err(error),
        })
    })
    .map_err(|error| page_title(body).map_or(DecodeError::Json(error).explained(body), DecodeError::WebPage))
}

/// A body without its byte-order mark.
fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// The text of a reply, with common deviations from JSON corrected.
fn without_deviations(text: &str) -> String {
    let (mut out, mut rest, mut is_quoted) = (String::with_capacity(text.len()), text, false);
    let is_boundary = |c: char| "\"\\,:[]{} ".contains(c) || c.is_ascii_control();
    while let Some(first) = rest.chars().next() {
        let length = match rest.find(is_boundary) {
            // An escaped character, which may be a quote.
            Some(0) if first == '\\' => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            end => end.unwrap_or(rest.len()).max(1),
        };
        let (token, after) = rest.split_at(length);
        is_quoted ^= token == "\"";
        match token {
            "," if !is_quoted && after.trim_start().starts_with([']', '}']) => {}
            _ if first.is_ascii_control() => out.push(' '),
            _ if is_quoted || is_boundary(first) => out.push_str(token),
            word => out.push_str(&scalar(word)),
        }
        rest = after;
    }
    out
}

/// A bare word as JSON: a number in another notation (`.5`, `05`) becomes text, which is read as that number. Any other word
/// becomes an object, which is unexpected wherever a number or text is due.
fn scalar(word: &str) -> Cow<'_, str> {
    if serde_json::from_str::<IgnoredAny>(word).is_ok() {
        word.into()
    } else if word.parse().is_ok_and(f64::is_finite) {
        format!("\"{word}\"").into()
    } else {
        "{}".into()
    }
}

/// Whether the body of a reply is a web page: of a login, a proxy, or another server.
pub fn is_web_page(body: &[u8]) -> bool {
    page_title(body).is_some()
}

/// The title of a web page, or its text if it has no title, in brackets; `None` for any other body.
fn page_title(body: &[u8]) -> Option<String> {
    const MAX: usize = 60;
    let body = without_mark(body).trim_ascii_start();
    if !body.starts_with(b"<") {
        return None;
    }
    let text = String::from_utf8_lossy(body.get(..body.len().min(4096)).unwrap_or_default()).into_owned();
    // Keeps the places of bytes.
    let lower = text.to_ascii_lowercase();
    let title = || {
        let start = lower.find("<title")?;
        let start = start + lower.get(start..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find('<')?;
        text.get(start..end).filter(|title| !title.trim().is_empty()).map(str::to_owned)
    };
    let untagged = || text.split('<').filter_map(|part| Some(part.split_once('>')?.1)).collect::<Vec<_>>();
    let title = title().unwrap_or_else(|| untagged().join(" "));
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")];
    let title = entities.iter().fold(title, |title, (entity, text)| title.replace(entity, text));
    let title = beginning(&title, MAX);
    Some(if title.is_empty() { title } else { format!(" ({title})") })
}

/// Reads a reply that is an object.
///
/// # Errors
/// Same as [`from_slice`].
pub(super) fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    from_slice(body).map(|Object(reply)| reply)
}

/// A JSON value; parts that serde_json cannot read become text.
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

/// A JSON reply as written; `None` if it is not JSON.
pub fn raw(body: &[u8]) -> Option<Box<RawValue>> {
    let text = String::from_utf8_lossy(without_mark(body));
    let read = |text: &str| serde_json::from_str(text).ok();
    let corrected = || text.trim_start().starts_with(['{', '[']).then(|| without_deviations(&text));
    read(&text).or_else(|| read(&corrected()?))
}

/// A JSON reply with all fields, known or not; null if it is not JSON.
pub fn json(body: &[u8]) -> Value {
    from_slice(body).unwrap_or_default()
}

/// Plain text without the white space around it; text that is JSON is another reply.
impl ReplyBody for String {
    const FORMAT: Format = Format::Text;

    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        if let Some(title) = page_title(body) {
            return Err(DecodeError::WebPage(title));
        }
        let text = std::str::from_utf8(without_mark(body))?.trim();
        let is_json = serde_json::from_str(text).is_ok_and(|value: Value| !value.is_string());
        if is_json || text.starts_with(['{', '[']) {
            return Err(DecodeError::Other(error_message(body)));
        }
        Ok(text.to_owned())
    }

    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        Ok(self.clone().into_bytes())
    }
}

/// An empty reply.
impl ReplyBody for () {
    const FORMAT: Format = Format::Empty;

    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let text = String::decode(body)?;
        if text.is_empty() { Ok(()) } else { Err(DecodeError::Other(error_message(body))) }
    }

    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        Ok(Vec::new())
    }
}

/// A successful reply whose body violates the interface.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or not of the shape that the call needs.
    #[error("the reply is not the JSON that the interface describes")]
    Json(#[from] serde_json::Error),
    /// HTML: of a login, a proxy, or another server. Holds its title.
    #[error("the reply is a web page{0}")]
    WebPage(String),
    /// An error, or a message alone. Holds the service's words.
    #[error("the service reports: {0}")]
    Reported(String),
    /// JSON without a single expected field.
    #[error("the reply contains no field of the interface")]
    Nothing,
    /// JSON without the field that the call is made for.
    #[error("the reply has no {0}")]
    Lacks(&'static str),
    /// Settings of another app or project. Holds the field that names it, and its id.
    #[error("the reply is about another app: its {0} is '{1}'")]
    OtherApp(&'static str, String),
    /// Text where an address is due.
    #[error("the reply is not an http address")]
    Address,
    /// JSON where plain text is due, or anything where nothing is. Holds its message or beginning.
    #[error("the reply is not what the interface describes: {0}")]
    Other(String),
    /// A plain text reply that is not UTF-8.
    #[error("the reply is not UTF-8 text")]
    Text(#[from] std::str::Utf8Error),
}

/// The word of an envelope when data was retrieved.
pub(super) const SUCCESS: &str = "success";

/// The error body of section 7, or one of another form.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ErrorBody {
    error_message: Text,
    message: Text,
    error: Text,
    status: Text,
}

impl ErrorBody {
    /// The error body in `body`; empty if there is none.
    fn of(body: &[u8]) -> Self {
        let read = serde_json::from_slice(without_mark(body)).map(|Object(error)| error);
        read.ok().filter(|error: &Self| *error.status != *SUCCESS).unwrap_or_default()
    }

    /// The service's words.
    fn words(self) -> Option<String> {
        let texts = [self.error_message, self.message, self.error].map(|text| beginning(&text, MAX_WORDS));
        texts.into_iter().find(|text| !text.is_empty())
    }
}

impl DecodeError {
    /// The error that the service reports in the body of a successful reply, or else this one.
    pub(super) fn explained(self, body: &[u8]) -> Self {
        let error = ErrorBody::of(body);
        let status = beginning(&error.status, MAX_WORDS);
        let status = (!status.is_empty()).then(|| format!("status '{status}'"));
        error.words().or(status).map_or(self, Self::Reported)
    }
}

/// The service's words in an error body; `None` in any other body.
pub(super) fn error_words(body: &[u8]) -> Option<String> {
    ErrorBody::of(body).words()
}

/// The `value` of the field that the call is made for.
///
/// # Errors
/// If there is none.
pub(super) fn needed<T>(value: Option<T>, field: &'static str, body: &[u8]) -> Result<T, DecodeError> {
    value.ok_or_else(|| DecodeError::Lacks(field).explained(body))
}

/// The words of `text`, one space between them, at most so many characters.
fn beginning(text: &str, max: usize) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(max).collect()
}

/// The most characters of an error: enough for a log line.
const MAX_WORDS: usize = 200;

/// The service's words in an error body. A web page gives its title, any other body its beginning.
pub fn error_message(body: &[u8]) -> String {
    if let Some(title) = page_title(body) {
        return format!("a web page{title}");
    }
    let text = || String::from_utf8_lossy(&body[..body.len().min(4 * MAX_WORDS)]).into_owned();
    ErrorBody::of(body).words().unwrap_or_else(|| beginning(&text(), MAX_WORDS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::get_app::App;
    use crate::number::Number;
    use crate::response_time;

    #[test]
    fn error_bodies_give_their_message_and_others_their_beginning() {
        assert_eq!(error_message(br#"{"message":"no such app"}"#), "no such app");
        assert_eq!(error_message(br#"{"status":503,"error":"Unavailable","message":"\n"}"#), "Unavailable");
        assert_eq!(error_message(b"upstream\n fell  over"), "upstream fell over");
        assert_eq!(error_message(&[b'x'; 9000]).len(), 200);
        assert_eq!(error_message(b""), "");
    }

    #[test]
    fn plain_text_is_trimmed_and_must_be_utf_8() {
        assert_eq!(String::decode(b"app deleted\n").unwrap(), "app deleted");
        assert!(matches!(String::decode(b"\xff"), Err(DecodeError::Text(_))));
    }

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
    fn common_deviations_from_json_cost_the_deviating_value_and_no_other() {
        let values: Value =
            from_slice(b"\xef\xbb\xbf{\"a\":NaN,\"b\":[-Infinity,1],\"c\":\"NaN \\\" caf\xe9\",\"d\":2}")
                .unwrap();
        assert_eq!(values["a"], serde_json::json!({}));
        assert_eq!(values["b"], serde_json::json!([{}, 1]));
        assert_eq!(values["c"], "NaN \" caf\u{fffd}");
        assert_eq!(values["d"], 2);
        let values: Value =
            from_slice(b"{\"a\":[nan,-inf,undefined,],\"b\":\"one\ntwo,] .5\",\"c\":null,\n\"d\":true , }\n")
                .unwrap();
        assert_eq!(
            values,
            serde_json::json!({ "a": [{}, {}, {}], "b": "one two,] .5", "c": null, "d": true })
        );
        let app =
            App::decode(br#"{"cpu":.5,"memory":02,"gpuCount":+1,"port":0x50,"minReplicaCount":1}"#).unwrap();
        let [cpu, memory, gpus] = [app.cpu.0, app.memory.0, app.gpu_count.0].map(Number::value);
        assert_eq!([cpu, memory, gpus], [Some(0.5), Some(2.0), Some(1.0)]);
        assert_eq!((app.port, app.min_replica_count.0.value()), (Number::Unexpected, Some(1.0)));
        assert!(from_slice::<Value>(b"NaN").is_err());
    }

    #[test]
    fn a_web_page_is_named_by_its_title() {
        for (body, expected) in [
            ("<!DOCTYPE html><html><head><TITLE lang=en>Sign\n in</title>", "a web page (Sign in)"),
            (" <html><body><h1>Bad\n <i>gateway</i></h1> x</body>", "a web page (Bad gateway x)"),
            ("<title>A &amp; B&#39;s &amp;lt;</title>", "a web page (A & B's &lt;)"),
            ("<title> </title><b>Go away</b>", "a web page (Go away)"),
            ("<title>", "a web page"),
        ] {
            assert_eq!(error_message(body.as_bytes()), expected);
            let expected = format!("the reply is {expected}");
            assert_eq!(App::decode(body.as_bytes()).unwrap_err().to_string(), expected);
            assert_eq!(String::decode(body.as_bytes()).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_broken_reply_stays_unreadable() {
        for broken in
            ["{\"a\":1e400", "{\"id\":\"a\",\"id\":\"b\",\"x\":1e400}", "", "[1e400]", "{\"a\":NaN}"]
        {
            assert!(App::decode(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
