//! How a call of the interface is described, and how its reply is read and written.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lenient;
use super::param::Param;
use super::polled::Polled;
use super::template::Template;

/// HTTP methods that the interface uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads; the only one the daemon sends.
    Get,
    /// Creates or triggers.
    Post,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The method's name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// One call of section 4: a row of [`CALLS`](super::CALLS), declared in the call's own file.
#[derive(Debug)]
pub struct Call {
    /// Its number in the table of section 4 (1 to 16).
    pub number: u8,
    /// The name of its module, as in `get_app`.
    pub id: &'static str,
    /// The method.
    pub method: Method,
    /// The path below the base URL, with `{project_id}` and the like for identifiers.
    pub path: Template<'static>,
    /// What it is for, in the words of section 4.
    pub purpose: &'static str,
    /// Its query parameters.
    pub query: &'static [Param],
    /// The fields of its JSON body, all required; empty for a call without a body.
    pub body: &'static [Param],
    /// What it answers on success.
    pub reply: ReplyFormat,
    /// How it is polled; `None` for calls that only a person makes.
    pub polled: Option<Polled>,
    /// Its subcommand of `pdstool call`.
    pub command: Command,
}

/// A call as a subcommand of `pdstool call`. Identifiers and body fields become arguments, query parameters become
/// options.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The words that name it: `["app", "get"]`.
    pub words: &'static [&'static str],
    /// An example of the arguments after the words.
    pub example: &'static str,
    /// What cannot be undone or costs money, with arguments by name: "deletes the app {app_id}". `None` for calls
    /// that are safe to repeat.
    pub consequence: Option<Template<'static>>,
    /// The field of the reply that is a secret, printed alone.
    pub secret: Option<&'static str>,
}

impl Command {
    /// A subcommand that is safe to repeat.
    pub const fn safe(words: &'static [&'static str], example: &'static str) -> Self {
        Self { words, example, consequence: None, secret: None }
    }

    /// A subcommand that asks before it sends.
    pub const fn confirmed(
        words: &'static [&'static str],
        example: &'static str,
        consequence: &'static str,
    ) -> Self {
        Self { words, example, consequence: Some(Template(consequence)), secret: None }
    }
}

/// How a reply is written on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// Plain text.
    Text,
    /// No body.
    Empty,
}

/// The format of a reply and, for JSON, its schema.
#[derive(Clone, Copy, Debug)]
pub struct ReplyFormat {
    /// How it is written.
    pub format: Format,
    /// Its schema.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl ReplyFormat {
    /// The format of an `R`.
    pub const fn of<R: ReplyBody>() -> Self {
        Self { format: R::FORMAT, schema: |generator| generator.subschema_for::<R>() }
    }
}

/// A successful reply, read and written. JSON unless implemented otherwise.
pub trait ReplyBody: Serialize + DeserializeOwned + JsonSchema {
    /// How it is written.
    const FORMAT: Format = Format::Json;

    /// Reads a reply.
    ///
    /// # Errors
    /// If the body does not have the shape that the interface describes. A single bad value is not an error.
    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        Ok(lenient::from_slice(body)?)
    }

    /// Writes a reply.
    ///
    /// # Errors
    /// Only those of the JSON writer.
    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

/// All that a JSON reply holds, the fields included that the interface does not show; null if it is not JSON.
#[must_use]
pub fn json(body: &[u8]) -> serde_json::Value {
    lenient::from_slice(body).unwrap_or_default()
}

/// Plain text without the white space around it.
impl ReplyBody for String {
    const FORMAT: Format = Format::Text;

    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        Ok(std::str::from_utf8(body)?.trim().to_owned())
    }

    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        Ok(self.clone().into_bytes())
    }
}

/// An empty reply; a body that comes nevertheless is ignored.
impl ReplyBody for () {
    const FORMAT: Format = Format::Empty;

    fn decode(_: &[u8]) -> Result<Self, DecodeError> {
        Ok(())
    }

    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        Ok(Vec::new())
    }
}

/// A successful reply whose body is not what the interface says.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or not of the shape that the call needs.
    #[error("the reply is not the JSON that the interface describes")]
    Json(#[from] serde_json::Error),
    /// The envelope of a metrics reply does not say `success`.
    #[error("the reply's status is '{0}', not 'success'")]
    Status(String),
    /// JSON, but without a single field of what was asked for.
    #[error("the reply holds nothing of what the interface describes")]
    Nothing,
    /// A plain text reply that is not UTF-8.
    #[error("the reply is not UTF-8 text")]
    Text(#[from] std::str::Utf8Error),
}

/// The error body of section 7: `{message}`. Anything else (raw text, HTML) gives its beginning as text.
#[must_use]
pub fn error_message(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Message {
        message: String,
    }
    // Enough for a log line.
    const MAX: usize = 200;
    let text = match serde_json::from_slice::<Message>(body) {
        Ok(Message { message }) => message,
        Err(_) => {
            String::from_utf8_lossy(body.get(..body.len().min(4 * MAX)).unwrap_or_default()).into_owned()
        }
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bodies_give_their_message_and_others_their_beginning() {
        assert_eq!(error_message(br#"{"message":"no such app"}"#), "no such app");
        assert_eq!(error_message(b"<html>\n <b>Bad gateway</b>"), "<html> <b>Bad gateway</b>");
        assert_eq!(error_message(&[b'x'; 9000]).len(), 200);
        assert_eq!(error_message(b""), "");
    }

    #[test]
    fn plain_text_is_trimmed_and_must_be_utf_8() {
        assert_eq!(String::decode(b"app deleted\n").unwrap(), "app deleted");
        assert!(matches!(String::decode(b"\xff"), Err(DecodeError::Text(_))));
    }
}
