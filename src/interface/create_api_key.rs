//! Call 1, section 4.1: create an API key.

use std::collections::BTreeMap;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::secret::Secret;

use super::number::lenient_text;
use super::spec::{Call, DecodeError, Method, Param, ParamKind, ReplyKind, Request, RuleError, Spec};

/// The most characters of a key's name (section 8).
pub const MAX_NAME: usize = 50;

/// The most characters of a key's description (section 8).
pub const MAX_DESCRIPTION: usize = 255;

/// The name of a key that was given none (section 4.1).
pub const DEFAULT_NAME: &str = "API Key";

/// What `expiresAt` says of a key that does not expire (section 2).
pub const NEVER: &str = "never";

const NAME: Param = Param {
    name: "name",
    kind: ParamKind::Text { max_chars: Some(MAX_NAME) },
    purpose: "name of the key; \"API Key\" when omitted",
};
const DESCRIPTION: Param = Param {
    name: "description",
    kind: ParamKind::Text { max_chars: Some(MAX_DESCRIPTION) },
    purpose: "description of the key",
};
const EXPIRES_AT: Param = Param {
    name: "expiresAt",
    kind: ParamKind::Date,
    purpose: "expiration date, which must be in the future; the key never expires when omitted",
};

/// The call's description. The interface fixes no parameter's name.
pub static SPEC: Spec = Spec {
    number: 1,
    id: "create_api_key",
    method: Method::Post,
    path: "/v2/projects/{project_id}/api-keys",
    purpose: "create an API key",
    query: &[NAME, DESCRIPTION, EXPIRES_AT],
    body: None,
    reply: ReplyKind::Json(|generator| generator.subschema_for::<ApiKey>()),
};

/// The call with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct CreateApiKey<'a> {
    /// The project's id.
    pub project_id: &'a str,
    /// The key's name.
    pub name: Option<&'a str>,
    /// Its description.
    pub description: Option<&'a str>,
    /// Its last day; none is never.
    pub expires: Option<Date>,
    /// The date in UTC, after which `expires` must lie.
    pub today: Date,
}

impl Call for CreateApiKey<'_> {
    type Reply = ApiKey;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        let mut request = Request::new(&SPEC, &[("project_id", self.project_id)])?;
        for (param, text, max) in
            [(NAME, self.name, MAX_NAME), (DESCRIPTION, self.description, MAX_DESCRIPTION)]
        {
            let Some(text) = text else { continue };
            let len = text.chars().count();
            if len > max {
                return Err(RuleError::TooLong { name: param.name, max, len });
            }
            request = request.with(param.name, text);
        }
        if let Some(date) = self.expires {
            check_future(date, self.today)?;
            request = request.with(EXPIRES_AT.name, date.to_string());
        }
        Ok(request)
    }

    fn reply(body: &[u8]) -> Result<ApiKey, DecodeError> {
        Ok(serde_json::from_slice(body)?)
    }
}

/// The rule of section 4.1 that an expiration date lies in the future.
///
/// # Errors
/// Where it does not.
pub fn check_future(date: Date, today: Date) -> Result<(), RuleError> {
    if date > today { Ok(()) } else { Err(RuleError::NotInFuture { date: date.to_string() }) }
}

/// An API key (section 2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each field means what section 2 of the interface says of it")]
pub struct ApiKey {
    /// The key itself; shown this once.
    #[serde(serialize_with = "expose")]
    #[schemars(with = "String")]
    pub api_key: Secret,
    #[serde(default, deserialize_with = "lenient_text")]
    pub id: String,
    #[serde(default, deserialize_with = "lenient_text")]
    pub name: String,
    #[serde(default, deserialize_with = "lenient_text")]
    pub description: String,
    #[serde(default, deserialize_with = "lenient_text")]
    pub project_id: String,
    #[serde(default, deserialize_with = "lenient_text")]
    pub source: String,
    #[serde(default, deserialize_with = "lenient_text")]
    pub status: String,
    #[serde(default, deserialize_with = "lenient_text")]
    pub created_at: String,
    #[serde(default, deserialize_with = "lenient_text")]
    pub updated_at: String,
    /// RFC 3339, or [`NEVER`].
    #[serde(default, deserialize_with = "lenient_text")]
    pub expires_at: String,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// The reply is the one place that shows a key.
fn expose<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const CALL: CreateApiKey<'_> = CreateApiKey {
        project_id: "p-1",
        name: None,
        description: None,
        expires: None,
        today: date(2026, 1, 31),
    };

    #[test]
    fn only_what_is_given_is_sent() {
        let path = "/v2/projects/p-1/api-keys";
        assert_eq!(CALL.request().unwrap().target(), path);
        let call = CreateApiKey { name: Some("ci & cd"), expires: Some(date(2026, 2, 1)), ..CALL }
            .request()
            .unwrap();
        assert_eq!(call.target(), format!("{path}?name=ci%20%26%20cd&expiresAt=2026-02-01"));
        assert_eq!((call.method, call.body), (Method::Post, None));
    }

    #[test]
    fn limits_are_counted_in_characters() {
        let (fits, exceeds) = ("ü".repeat(50), "ü".repeat(51));
        assert!(CreateApiKey { name: Some(&fits), ..CALL }.request().is_ok());
        let refused = CreateApiKey { name: Some(&exceeds), ..CALL }.request();
        assert_eq!(refused, Err(RuleError::TooLong { name: "name", max: 50, len: 51 }));
        let description = "x".repeat(256);
        let refused = CreateApiKey { description: Some(&description), ..CALL }.request();
        assert_eq!(refused, Err(RuleError::TooLong { name: "description", max: 255, len: 256 }));
    }

    #[test]
    fn an_expiration_date_lies_in_the_future() {
        for past in [date(2026, 1, 31), date(2026, 1, 30)] {
            let refused = CreateApiKey { expires: Some(past), ..CALL }.request();
            assert_eq!(refused, Err(RuleError::NotInFuture { date: past.to_string() }));
        }
    }

    #[test]
    fn the_key_is_read_written_and_never_printed() {
        let body = r#"{"apiKey":"pk-secret","id":"k-1","name":"API Key","description":"","projectId":"p-1","source":"api","status":"active","createdAt":"","updatedAt":"","expiresAt":"never","scopes":["all"]}"#;
        let key = CreateApiKey::reply(body.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&key).unwrap(), body);
        assert!(!format!("{key:?}").contains("pk-secret"));
    }
}
