//! Call 11, section 4.11: list custom domains.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::Family;

use super::endpoint::{Ask, Cadence, Polled, Resource, Row, Scope};
use super::lenient;
use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 11,
    id: "list_domains",
    method: Method::Get,
    path: "/v2/projects/{project_id}/domains",
    purpose: "list custom domains",
    query: &[],
    body: None,
    reply: ReplyKind::Json(|generator| generator.subschema_for::<Domains>()),
};

/// The call with its argument.
#[derive(Clone, Copy, Debug)]
pub struct ListDomains<'a> {
    /// The project's id.
    pub project_id: &'a str,
}

impl Call for ListDomains<'_> {
    type Reply = Domains;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        Request::new(&SPEC, &[("project_id", self.project_id)])
    }

    fn reply(body: &[u8]) -> Result<Domains, DecodeError> {
        Ok(lenient::from_slice(body)?)
    }
}

/// The custom domains of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Domains {
    /// One item a domain.
    pub domains: Option<Vec<Domain>>,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// A custom domain. The interface names none of its fields, so all are kept as they come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Domain {
    /// Validation status, DNS validation record, region, timestamps and whatever else is sent.
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}

/// The call as a polled endpoint.
pub static ENDPOINT: Polled<Domains> = Polled {
    resource: Resource::Domains,
    spec: &SPEC,
    scope: Scope::Project,
    cadence: Cadence::Settings,
    request: |ask: &Ask<'_>| ListDomains { project_id: ask.project }.request(),
    decode: <ListDomains<'_> as Call>::reply,
    rows: ROWS,
    tally: None,
};

static ROWS: &[Row<Domains>] = &[Row {
    family: Family::gauge(
        "pds_project_custom_domains",
        &[],
        "How many custom domains the project has, whether validated or not",
    ),
    read: |reply, reader| {
        if let Some(domains) = &reply.domains {
            #[expect(clippy::cast_precision_loss, reason = "no reply holds 2^53 domains")]
            reader.put(domains.len() as f64);
        }
    },
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::recorded::{exposed, unreadable};

    #[test]
    fn domains_are_counted_whatever_their_fields() {
        let body =
            r#"{"domains":[{"id":"d-1","status":"validated","records":[{"type":"CNAME"}]},{}],"next":null}"#;
        assert_eq!(exposed(&ENDPOINT, body).0, "pds_project_custom_domains{project=\"p-1\"} 2\n");
        assert_eq!(
            exposed(&ENDPOINT, r#"{"domains":[]}"#).0,
            "pds_project_custom_domains{project=\"p-1\"} 0\n"
        );
    }

    #[test]
    fn domains_that_are_not_said_are_not_none() {
        assert_eq!(exposed(&ENDPOINT, r#"{"domains":null}"#), (String::new(), vec![]));
        assert_eq!(exposed(&ENDPOINT, "{}"), (String::new(), vec![]));
        unreadable(&ENDPOINT, r#"{"domains":"none"}"#);
        unreadable(&ENDPOINT, r#"{"domains":[null]}"#);
    }

    #[test]
    fn fields_of_a_domain_are_kept() {
        let body = r#"{"domains":[{"id":"d-1","region":"eu"}]}"#;
        let reply = ListDomains::reply(body.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&reply).unwrap(), body);
    }
}
