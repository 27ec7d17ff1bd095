//! How a call of the interface is described, and how a request of it is made ready to send.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

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

/// One call of section 4, declared in the call's own file.
#[derive(Debug)]
pub struct Spec {
    /// Its row in the table of section 4 (1 to 16).
    pub number: u8,
    /// A name of its own, as in `get_app`.
    pub id: &'static str,
    /// The method.
    pub method: Method,
    /// The path below the base URL, with `{project_id}` and the like where identifiers stand.
    pub path: &'static str,
    /// What it is for, in the words of section 4.
    pub purpose: &'static str,
    /// Its query parameters.
    pub query: &'static [Param],
    /// The shape of its JSON body, where it has one.
    pub body: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// What it answers on success.
    pub reply: ReplyKind,
}

/// A query parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its default name; the interface fixes none of them.
    pub name: &'static str,
    /// Which values it takes.
    pub kind: ParamKind,
    /// What it is for.
    pub purpose: &'static str,
}

/// Which values a query parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// Text of at most so many characters.
    Text {
        /// The limit in characters, where section 8 gives one.
        max_chars: Option<usize>,
    },
    /// An RFC 3339 timestamp.
    DateTime,
    /// A calendar date, YYYY-MM-DD.
    Date,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// What a call answers on success.
#[derive(Clone, Copy, Debug)]
pub enum ReplyKind {
    /// JSON of this schema.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Plain text.
    Text,
    /// Nothing.
    Empty,
}

/// One call with its arguments.
pub trait Call {
    /// What it answers.
    type Reply;

    /// Its description.
    fn spec(&self) -> &'static Spec;

    /// The request, once the rules of sections 4 and 8 hold for the arguments.
    ///
    /// # Errors
    /// The first rule that does not hold; nothing is to be sent then.
    fn request(&self) -> Result<Request, RuleError>;

    /// Reads a successful reply's body.
    ///
    /// # Errors
    /// Where the body is not what the interface says, in so far as the call can't do without it.
    fn reply(body: &[u8]) -> Result<Self::Reply, DecodeError>;
}

/// A request ready to send, but for base URL and token.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path with percent-encoded identifiers, from `/v2` or `/v4` on.
    pub path: String,
    /// Query parameters, not yet encoded.
    pub query: Vec<(String, String)>,
    /// A JSON body.
    pub body: Option<Value>,
}

/// Everything but RFC 3986's unreserved characters is encoded in a path segment or query value.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

impl Request {
    /// A request of `spec` for the identifiers `ids`, given as (name in the path, value).
    ///
    /// # Errors
    /// Where an identifier is empty, or `.` or `..`, which no URL can carry as a segment.
    pub fn new(spec: &Spec, ids: &[(&'static str, &str)]) -> Result<Self, RuleError> {
        let mut path = String::with_capacity(spec.path.len() + 32);
        for segment in spec.path.split('/').skip(1) {
            path.push('/');
            let Some(name) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
                path.push_str(segment);
                continue;
            };
            let id = ids.iter().find_map(|(id, value)| (*id == name).then_some(*value)).unwrap_or_default();
            if matches!(id, "" | "." | "..") {
                return Err(RuleError::Identifier { name: name.to_owned(), value: id.to_owned() });
            }
            path.extend(utf8_percent_encode(id, RESERVED));
        }
        Ok(Self { method: spec.method, path, query: Vec::new(), body: None })
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    /// Path and query as they stand in the request line, everything encoded.
    #[must_use]
    pub fn target(&self) -> String {
        let mut target = self.path.clone();
        if let Some(query) = self.encoded_query() {
            target.push('?');
            target.push_str(&query);
        }
        target
    }

    /// The query as it stands in the request line, encoded; `None` where there is none.
    #[must_use]
    pub fn encoded_query(&self) -> Option<String> {
        let mut encoded = String::with_capacity(128);
        for (name, value) in &self.query {
            if !encoded.is_empty() {
                encoded.push('&');
            }
            encoded.extend(utf8_percent_encode(name, RESERVED));
            encoded.push('=');
            encoded.extend(utf8_percent_encode(value, RESERVED));
        }
        (!encoded.is_empty()).then_some(encoded)
    }
}

/// A rule of the interface that arguments break; found before anything is sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A path identifier that no path can carry.
    #[error("{name} must be a non-empty identifier other than '.' and '..', not '{value}'")]
    Identifier {
        /// The identifier's name in the path.
        name: String,
        /// What was given.
        value: String,
    },
    /// Text over its limit (section 8).
    #[error("{name} may have at most {max} characters, not {len}")]
    TooLong {
        /// The parameter by meaning.
        name: &'static str,
        /// Its limit.
        max: usize,
        /// How long it was.
        len: usize,
    },
    /// An expiration date that is not in the future (section 4.1).
    #[error("the expiration date must be in the future, and {date} is not")]
    NotInFuture {
        /// The date given.
        date: String,
    },
    /// A plan code beyond the three of section 8.
    #[error("the plan must be hobby, standard or enterprise, not '{plan}'")]
    UnknownPlan {
        /// The code given.
        plan: String,
    },
    /// A range that ends before it starts (section 4.4).
    #[error("the range must not end before it starts: {start} to {end}")]
    EndBeforeStart {
        /// Start as sent.
        start: String,
        /// End as sent.
        end: String,
    },
}

/// A successful reply whose body is not what the interface says.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or not of the shape that the call can't do without.
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
    // What an error page says beyond this no log line needs.
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

    static SPEC: Spec = Spec {
        number: 3,
        id: "x",
        method: Method::Get,
        path: "/v2/projects/{project_id}/apps/{app_id}",
        purpose: "",
        query: &[],
        body: None,
        reply: ReplyKind::Empty,
    };

    #[test]
    fn identifiers_and_query_values_are_percent_encoded() {
        let request = Request::new(&SPEC, &[("project_id", "p/1"), ("app_id", "ä b?#%")]).unwrap();
        assert_eq!(request.path, "/v2/projects/p%2F1/apps/%C3%A4%20b%3F%23%25");
        let target = request.with("start", "2026-01-01T00:00:00Z").with("a&b", "c=d").target();
        assert!(target.ends_with("?start=2026-01-01T00%3A00%3A00Z&a%26b=c%3Dd"), "{target}");
    }

    #[test]
    fn identifiers_no_path_can_carry_are_refused() {
        for bad in ["", ".", ".."] {
            let refused = Request::new(&SPEC, &[("project_id", "p"), ("app_id", bad)]);
            assert_eq!(refused, Err(RuleError::Identifier { name: "app_id".into(), value: bad.into() }));
        }
    }

    #[test]
    fn error_bodies_give_their_message_and_others_their_beginning() {
        assert_eq!(error_message(br#"{"message":"no such app"}"#), "no such app");
        assert_eq!(error_message(b"<html>\n <b>Bad gateway</b>"), "<html> <b>Bad gateway</b>");
        assert_eq!(error_message(&[b'x'; 9000]).len(), 200);
        assert_eq!(error_message(b""), "");
    }
}
