//! How replies are read and written.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lenient;

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

/// A successful reply, read and written. JSON unless implemented otherwise.
pub trait ReplyBody: Serialize + DeserializeOwned + JsonSchema {
    /// How it is written.
    const FORMAT: Format = Format::Json;

    /// Reads a reply.
    ///
    /// # Errors
    /// If the body does not have the shape that the interface describes. A single bad value is not an error.
    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        Ok(lenient::object(body)?)
    }

    /// Writes a reply.
    ///
    /// # Errors
    /// Only those of the JSON writer.
    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

/// A JSON reply with all fields, known or not; null if it is not JSON.
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

/// An empty reply. A body is ignored.
impl ReplyBody for () {
    const FORMAT: Format = Format::Empty;

    fn decode(_: &[u8]) -> Result<Self, DecodeError> {
        Ok(())
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
    /// The envelope of a metrics reply does not say `success`.
    #[error("the reply's status is '{0}', not 'success'")]
    Status(String),
    /// JSON without a single expected field.
    #[error("the reply holds nothing of what the interface describes")]
    Nothing,
    /// A plain text reply that is not UTF-8.
    #[error("the reply is not UTF-8 text")]
    Text(#[from] std::str::Utf8Error),
}

/// The error body of section 7: `{message}`. Any other body (raw text, HTML) gives its beginning.
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
