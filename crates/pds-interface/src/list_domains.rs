//! Section 4.11: list custom domains.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use pds_exposition::Family;

use super::call::{Call, Command, Method};
use super::polled::{Cadence, MetricSource, Polled, Row, Scope};
use super::range::TimeRange;
use super::reader::Unexpected;
use super::reply::ReplyBody;
use super::resource::Resource;
use super::wire::optional_list;

/// The reply.
pub type Reply = Domains;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "list_domains",
    Method::Get,
    "/v2/projects/{project_id}/domains",
    "list custom domains",
    Command::safe(&["domains", "list"], ""),
)
.polled_as(Polled::of::<Reply>("domains", Scope::Project, Cadence::Settings));

/// The call as a resource.
pub const RESOURCE: Resource = Resource::of(&CALL);

impl ReplyBody for Domains {}

/// The words of the validation status, as the interface has them; others are [`OTHER`].
const STATUSES: [&str; 3] = ["pending", "validated", "failed"];
const OTHER: &str = "other";

/// The fields that may hold the validation status, the likeliest first; the interface does not name it.
const STATUS_FIELDS: [&str; 4] = ["validationStatus", "validation_status", "status", "state"];

/// How many domains there are.
#[derive(Debug, Default)]
pub struct Facts {
    all: Option<usize>,
    /// Number by status; empty if the reply has no status.
    by_status: Vec<(&'static str, usize)>,
}

impl MetricSource for Domains {
    type Facts = Facts;
    const ROWS: &'static [Row<Facts>] = ROWS;

    fn facts(self, _: Option<TimeRange>, _: &mut Unexpected) -> Facts {
        let Some(domains) = self.domains else { return Facts::default() };
        let stated: Vec<_> = domains.iter().filter_map(Domain::status).collect();
        let count = |status| (status, stated.iter().filter(|stated| **stated == status).count());
        let known = stated.is_empty() && !domains.is_empty();
        let by_status =
            if known { Vec::new() } else { STATUSES.into_iter().chain([OTHER]).map(count).collect() };
        Facts { all: Some(domains.len()), by_status }
    }
}

impl Domain {
    /// The validation status; `None` if no field holds a word.
    fn status(&self) -> Option<&'static str> {
        let word = STATUS_FIELDS.iter().find_map(|name| self.fields.get(*name)?.as_str())?;
        let word = word.trim();
        let known = STATUSES.into_iter().find(|status| status.eq_ignore_ascii_case(word));
        (!word.is_empty()).then_some(known.unwrap_or(OTHER))
    }
}

/// The custom domains of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Domains {
    /// The custom domains.
    #[schemars(with = "Vec<Domain>")]
    #[serde(deserialize_with = "optional_list")]
    pub domains: Option<Vec<Domain>>,
}

/// A custom domain: its validation status, DNS validation record details, region and timestamps.
// The interface does not name the fields: all are written, and only those that may hold the validation status are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Domain {
    /// All fields.
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}

impl<'de> Deserialize<'de> for Domain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Domain;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a domain")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Domain, A::Error> {
                let mut domain = Domain::default();
                while let Some(name) = map.next_key::<Cow<'_, str>>()? {
                    let raw: &RawValue = map.next_value()?;
                    if STATUS_FIELDS.contains(&&*name) && raw.get().starts_with('"') {
                        domain
                            .fields
                            .extend(serde_json::from_str(raw.get()).map(|word| (name.into_owned(), word)));
                    }
                }
                Ok(domain)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Custom domains of a project.
pub const CUSTOM_DOMAINS: Family = Family::gauge(
    "pds_project_custom_domains",
    &[],
    "Number of custom domains of the project, validated or not",
);

static ROWS: &[Row<Facts>] = &[
    Row {
        family: CUSTOM_DOMAINS,
        read: |facts, reader| {
            #[expect(clippy::cast_precision_loss, reason = "no reply holds 2^53 domains")]
            if let Some(all) = facts.all {
                reader.put(all as f64);
            }
        },
    },
    Row {
        family: Family::gauge(
            "pds_project_custom_domains_by_status",
            &["status"],
            "How many custom domains have this validation status: pending, validated, failed or other",
        ),
        read: |facts, reader| {
            for (status, count) in &facts.by_status {
                #[expect(clippy::cast_precision_loss, reason = "no reply holds 2^53 domains")]
                reader.put_with(&[("status", status)], *count as f64);
            }
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::{exposed, unreadable};

    /// The page for `total` domains, with a count per status.
    fn page(all: usize, by_status: Option<[usize; 4]>) -> String {
        let of = r#"{project="p-1""#;
        let by_status = by_status.into_iter().flat_map(|counts| {
            STATUSES.into_iter().chain([OTHER]).zip(counts).map(|(status, count)| {
                format!("pds_project_custom_domains_by_status{of},status=\"{status}\"}} {count}\n")
            })
        });
        [format!("pds_project_custom_domains{of}}} {all}\n")].into_iter().chain(by_status).collect()
    }

    #[test]
    fn domains_are_counted_by_status() {
        let body = r#"{"domains":[{"id":"d-1","validationStatus":"validated","status":"active","records":[{"type":"CNAME"}]},{"status":" PENDING"},{"validation_status":"verifying"},{"status":null},{"state":"failed"},{}],"next":null}"#;
        assert_eq!(exposed(&CALL, body), (page(6, Some([1, 1, 1, 1])), vec![]));
        assert_eq!(exposed(&CALL, r#"{"domains":[]}"#).0, page(0, Some([0; 4])));
    }

    #[test]
    fn domains_without_a_status_are_only_counted() {
        assert_eq!(exposed(&CALL, r#"{"domains":[{"id":"d-1","status":""},{}]}"#).0, page(2, None));
    }

    #[test]
    fn a_missing_list_of_domains_is_not_zero_domains() {
        assert_eq!(exposed(&CALL, r#"{"domains":null}"#), (String::new(), vec![]));
        assert_eq!(exposed(&CALL, "{}"), (String::new(), vec![]));
        unreadable(&CALL, r#"{"domains":"none"}"#);
        unreadable(&CALL, r#"{"domains":[null]}"#);
    }

    #[test]
    fn only_words_that_may_be_the_status_are_kept() {
        let body = r#"{"domains":[{"id":"d-1","state":"failed","status":{"a":[1]}}]}"#;
        let reply = Domains::decode(body.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&reply).unwrap(), r#"{"domains":[{"state":"failed"}]}"#);
    }
}
