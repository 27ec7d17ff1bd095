//! Description of a call of the interface.

pub use http::Method;
use pds_core::template::Template;
use serde_json::Value;

use super::param::Param;
use super::polled::{Polled, Terms};
use super::reply::{DecodeError, Format, ReplyBody, json};

/// A call of section 4: a row of [`CALLS`](super::CALLS), declared in the call's own file.
#[derive(Debug)]
pub struct Call {
    /// The name of its module, as in `get_app`.
    pub id: &'static str,
    /// The method; the daemon sends only GET.
    pub method: Method,
    /// The path below the base URL, with `{project_id}` and the like for identifiers.
    pub path: Template<'static>,
    /// Its purpose, as in section 4.
    pub purpose: &'static str,
    /// Its query parameters.
    pub query: &'static [Param],
    /// The fields of its JSON body, all required; empty for a call without a body.
    pub body: &'static [Param],
    /// The format of a successful reply.
    pub format: Format,
    /// The field that a successful reply must have; polled calls check their own.
    needs: Option<&'static str>,
    decodes: fn(&[u8]) -> Result<(), DecodeError>,
    /// The schema of a reply in JSON; the daemon does not use it.
    #[cfg(feature = "openapi")]
    pub schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// Its polling; `None` for calls that only a person makes.
    pub polled: Option<Polled>,
    /// Its subcommand of `pdstool call`.
    pub command: Command,
}

impl Call {
    /// A call answered by an `R`. Without query parameters, body and polling until they are given.
    pub const fn new<R: ReplyBody>(
        id: &'static str,
        method: Method,
        path: &'static str,
        purpose: &'static str,
        command: Command,
    ) -> Self {
        Self {
            id,
            method,
            path: Template(path),
            purpose,
            query: &[],
            body: &[],
            format: R::FORMAT,
            needs: None,
            decodes: |body| R::decode(body).map(drop),
            #[cfg(feature = "openapi")]
            schema: |generator| generator.subschema_for::<R>(),
            polled: None,
            command,
        }
    }

    /// Adds these query parameters.
    #[must_use]
    pub const fn with_query(mut self, query: &'static [Param]) -> Self {
        self.query = query;
        self
    }

    /// Adds these fields to its JSON body.
    #[must_use]
    pub const fn with_body(mut self, body: &'static [Param]) -> Self {
        self.body = body;
        self
    }

    /// Requires this field in each successful reply.
    #[must_use]
    pub const fn needing(mut self, field: &'static str) -> Self {
        self.needs = Some(field);
        self
    }

    /// Judges a successful reply: whether it contains the result of the call. For a polled call, as each poll does.
    ///
    /// # Errors
    /// The problem.
    pub fn judge(&self, body: &[u8], terms: &Terms) -> Result<(), DecodeError> {
        if let Some(polled) = &self.polled {
            let read = polled.decode(body, terms)?;
            let lacks_total = || read(&[]).tally.and_then(|tally| tally.total).is_none();
            let is_complete = polled.counted.is_none() || !lacks_total();
            return if is_complete { Ok(()) } else { Err(DecodeError::Lacks("total")) };
        }
        let secret = self.command.secret;
        (self.decodes)(body).map_err(|error| match (error, secret) {
            // Its text could quote the secret.
            (DecodeError::Json(_) | DecodeError::Reported(_), Some(field)) => DecodeError::Lacks(field),
            (error, _) => error,
        })?;
        let Some(field) = self.needs else { return Ok(()) };
        let reply = json(body);
        let value = reply.get(field).filter(|value| !value.is_null());
        match (value, secret) {
            (None, None) => Err(DecodeError::Lacks(field).explained(body)),
            (value, Some(_)) if value.and_then(Value::as_str).is_none_or(str::is_empty) => {
                Err(DecodeError::Lacks(field))
            }
            _ => Ok(()),
        }
    }

    /// Polled by the daemon.
    #[must_use]
    pub const fn polled_as(mut self, polled: Polled) -> Self {
        self.polled = Some(polled);
        self
    }
}

/// A call as a subcommand of `pdstool call`. Identifiers and body fields become arguments, query parameters become
/// options.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The words that name it: `["app", "get"]`.
    pub words: &'static [&'static str],
    /// An example of the arguments after the words.
    pub example: &'static str,
    /// Irreversible or costly effect, with arguments by name: "deletes the app {app_id}". `None` for calls
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

    /// A subcommand that prompts before it sends.
    pub const fn confirmed(
        words: &'static [&'static str],
        example: &'static str,
        consequence: &'static str,
    ) -> Self {
        Self { words, example, consequence: Some(Template(consequence)), secret: None }
    }
}
