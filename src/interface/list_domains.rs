//! Call 11, section 4.11: list custom domains.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::Family;

use super::call::{Call, Command, Method, ReplyBody, ReplyFormat};
use super::polled::{Cadence, MetricSource, Polled, Row, Scope};
use super::range::TimeRange;
use super::reader::Unexpected;
use super::resource::Resource;
use super::template::Template;

/// The reply.
pub type Reply = Domains;

/// The call.
pub static CALL: Call = Call {
    number: 11,
    id: "list_domains",
    method: Method::Get,
    path: Template("/v2/projects/{project_id}/domains"),
    purpose: "list custom domains",
    query: &[],
    body: &[],
    reply: ReplyFormat::of::<Reply>(),
    polled: Some(Polled::of::<Reply>("domains", Scope::Project, Cadence::Settings)),
    command: Command::safe(&["domains", "list"], ""),
};

/// The call as a resource.
pub const RESOURCE: Resource = Resource::of(&CALL);

impl ReplyBody for Domains {}

impl MetricSource for Domains {
    type Facts = Self;
    const ROWS: &'static [Row<Self>] = ROWS;

    fn facts(self, _: Option<TimeRange>, _: &mut Unexpected) -> Self {
        self
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
        assert_eq!(exposed(&CALL, body).0, "pds_project_custom_domains{project=\"p-1\"} 2\n");
        assert_eq!(exposed(&CALL, r#"{"domains":[]}"#).0, "pds_project_custom_domains{project=\"p-1\"} 0\n");
    }

    #[test]
    fn domains_that_are_not_said_are_not_none() {
        assert_eq!(exposed(&CALL, r#"{"domains":null}"#), (String::new(), vec![]));
        assert_eq!(exposed(&CALL, "{}"), (String::new(), vec![]));
        unreadable(&CALL, r#"{"domains":"none"}"#);
        unreadable(&CALL, r#"{"domains":[null]}"#);
    }

    #[test]
    fn fields_of_a_domain_are_kept() {
        let body = r#"{"domains":[{"id":"d-1","region":"eu"}]}"#;
        let reply = Domains::decode(body.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&reply).unwrap(), body);
    }
}
