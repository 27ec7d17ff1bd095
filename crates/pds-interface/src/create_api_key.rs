//! Section 4.1: create an API key.

use pds_core::secret::Secret;
use serde::Serializer;

use super::prelude::*;

/// The default name of a key (section 4.1).
pub const DEFAULT_NAME: &str = "API Key";

/// The `expiresAt` of a key that does not expire (section 2).
pub const NEVER: &str = "never";

const NAME: Param = Param {
    name: "name",
    configured: Some(|names| &names.key_name),
    kind: ParamKind::Text { max_chars: Some(50), default: Some(DEFAULT_NAME) },
    purpose: "name of the key",
};
const DESCRIPTION: Param = Param {
    name: "description",
    configured: Some(|names| &names.key_description),
    kind: ParamKind::Text { max_chars: Some(255), default: None },
    purpose: "description of the key",
};
const EXPIRES_AT: Param = Param {
    name: "expiresAt",
    configured: Some(|names| &names.key_expires_at),
    kind: ParamKind::FutureDate,
    purpose: "expiration date, which must be in the future; when omitted the key never expires",
};

/// The reply.
pub type Reply = ApiKey;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "create_api_key",
    Method::POST,
    "/v2/projects/{project_id}/api-keys",
    "create an API key",
    Command {
        secret: Some("apiKey"),
        ..Command::confirmed(
            &["api-key", "create"],
            "--name ci --expires-at 2030-01-31 --secret-file ci.key",
            "creates an API key of project {project_id}",
        )
    },
)
.with_query(&[NAME, DESCRIPTION, EXPIRES_AT])
.needing("apiKey");

impl ReplyBody for ApiKey {}

/// An API key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiKey {
    /// The secret key value; returned in the creation response.
    #[serde(serialize_with = "expose")]
    #[schemars(with = "String")]
    pub api_key: Secret,
    /// Unique identifier of the key.
    pub id: Text,
    /// Name of the key.
    pub name: Text,
    /// Description of the key.
    pub description: Text,
    /// Project the key belongs to.
    pub project_id: Text,
    /// Origin of the key.
    pub source: Text,
    /// Status of the key.
    pub status: Text,
    /// RFC 3339 timestamp of creation.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Text,
    /// RFC 3339 timestamp of last update.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: Text,
    /// RFC 3339 timestamp, or the literal word never when the key does not expire.
    pub expires_at: Text,
}

/// The reply is the one place that shows a key.
fn expose<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_read_written_and_never_printed() {
        let body = r#"{"apiKey":"pk-secret","id":"k-1","name":"API Key","description":"","projectId":"p-1","source":"api","status":"active","createdAt":"","updatedAt":"","expiresAt":"never","scopes":["all"]}"#;
        let key = ApiKey::decode(body.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&key).unwrap(), body.replace(r#","scopes":["all"]"#, ""));
        assert!(!format!("{key:?}").contains("pk-secret"));
    }
}
