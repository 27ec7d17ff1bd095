//! Section 4.9: trigger DNS validation of a custom domain.

use super::prelude::*;

/// The reply.
pub type Reply = Validation;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "validate_domain",
    Method::POST,
    "/v2/projects/{project_id}/domains/{domain_id}/validate",
    "trigger DNS validation",
    Command::safe(&["domains", "validate"], "d-1"),
)
.needing("success");

impl ReplyBody for Validation {}

/// The result of a domain validation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Validation {
    /// Message about the result.
    pub message: Text,
    /// Whether the domain is validated.
    #[schemars(with = "bool")]
    pub success: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_has_the_status_and_the_reason() {
        let reply = Validation::decode(br#"{"message":"no TXT record","success":false}"#).unwrap();
        assert_eq!((&*reply.message, reply.success), ("no TXT record", Some(false)));
    }
}
