//! Call 9, section 4.9: trigger DNS validation of a custom domain.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::number::lenient_text;
use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 9,
    id: "validate_domain",
    method: Method::Post,
    path: "/v2/projects/{project_id}/domains/{domain_id}/validate",
    purpose: "trigger DNS validation",
    query: &[],
    body: None,
    reply: ReplyKind::Json(|generator| generator.subschema_for::<Validation>()),
};

/// The call with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct ValidateDomain<'a> {
    /// The project's id.
    pub project_id: &'a str,
    /// The domain's id.
    pub domain_id: &'a str,
}

impl Call for ValidateDomain<'_> {
    type Reply = Validation;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        Request::new(&SPEC, &[("project_id", self.project_id), ("domain_id", self.domain_id)])
    }

    fn reply(body: &[u8]) -> Result<Validation, DecodeError> {
        Ok(serde_json::from_slice(body)?)
    }
}

/// The result (section 2, domain validation result).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Validation {
    /// What the service says of it.
    #[serde(deserialize_with = "lenient_text")]
    pub message: String,
    /// Whether the domain is validated; `None` where the service does not say.
    pub success: Option<bool>,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_says_whether_and_why() {
        let request = ValidateDomain { project_id: "p-1", domain_id: "d-1" }.request().unwrap();
        assert_eq!(
            (request.method, request.path.as_str()),
            (Method::Post, "/v2/projects/p-1/domains/d-1/validate")
        );
        let reply = ValidateDomain::reply(br#"{"message":"no TXT record","success":false}"#).unwrap();
        assert_eq!((reply.message.as_str(), reply.success), ("no TXT record", Some(false)));
    }
}
