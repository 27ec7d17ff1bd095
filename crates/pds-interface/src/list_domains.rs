//! Section 4.11: list custom domains.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use pds_exposition::Family;

use super::call::{Call, Command, Method};
use super::lenient;
use super::polled::{Cadence, MetricSource, Polled, Row, Scope, Terms};
use super::reader::{DOMAIN_STATUS, Unexpected};
use super::reply::{DecodeError, ReplyBody};
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
.polled_as(Polled::of::<Reply>(
    "domains",
    Scope::Project,
    Cadence::Settings,
    r#"{"domains":[{"status":"validated"},{"status":"pending"}]}"#,
));

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

    fn facts(body: &[u8], terms: &Terms, unexpected: &mut Unexpected) -> Result<Facts, DecodeError> {
        /// Of a list of any length, only statuses are kept.
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Listed {
            domains: Option<Box<RawValue>>,
        }
        let Some(list) = lenient::from_slice::<Listed>(body)?.domains else { return Ok(Facts::default()) };
        let domains: Vec<&RawValue> = serde_json::from_str(list.get())?;
        let fields = terms.domain_status.as_deref().map(|field| [field]);
        let status = Status(fields.as_ref().map_or(&STATUS_FIELDS[..], |field| &field[..]));
        let mut stated = Vec::new();
        for domain in &domains {
            stated.extend(status.deserialize(&mut serde_json::Deserializer::from_str(domain.get()))?);
        }
        let count = |status| (status, stated.iter().filter(|stated| **stated == status).count());
        let unknown = stated.is_empty() && !domains.is_empty();
        if unknown {
            unexpected.0.push(DOMAIN_STATUS);
        }
        let by_status =
            if unknown { Vec::new() } else { STATUSES.into_iter().chain([OTHER]).map(count).collect() };
        Ok(Facts { all: Some(domains.len()), by_status })
    }
}

/// Reads the validation status of a domain from the first of these fields that holds a text; `None` if none holds a word.
#[derive(Clone, Copy)]
struct Status<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Status<'_> {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Status<'_> {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a domain")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found: Option<(usize, Option<&'static str>)> = None;
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            let raw: &RawValue = map.next_value()?;
            let rank = self.0.iter().position(|field| *field == name);
            let word = rank.and_then(|_| serde_json::from_str::<String>(raw.get()).ok());
            if let (Some(rank), Some(word)) = (rank, word)
                && found.is_none_or(|(first, _)| rank <= first)
            {
                let word = word.trim();
                let known = STATUSES.into_iter().find(|status| status.eq_ignore_ascii_case(word));
                found = Some((rank, (!word.is_empty()).then_some(known.unwrap_or(OTHER))));
            }
        }
        Ok(found.and_then(|(_, status)| status))
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
// The interface does not name the fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Domain {
    /// All fields.
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
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
    fn domains_without_a_status_are_only_counted_and_it_is_said() {
        let body = r#"{"domains":[{"id":"d-1","status":""},{}]}"#;
        assert_eq!(exposed(&CALL, body), (page(2, None), vec![DOMAIN_STATUS]));
    }

    #[test]
    fn a_configured_field_alone_holds_the_status() {
        let body =
            r#"{"domains":[{"phase":"validated","status":"failed"},{"phase":"new"},{"status":"failed"}]}"#;
        let by_status = |field: &str| {
            let terms = Terms { domain_status: Some(field.to_owned()), ..Terms::default() };
            Domains::facts(body.as_bytes(), &terms, &mut Unexpected::default()).unwrap().by_status
        };
        let counted = [("pending", 0), ("validated", 1), ("failed", 0), (OTHER, 1)];
        assert_eq!(by_status("phase"), counted);
        assert_eq!(by_status("id"), []);
    }

    #[test]
    fn a_missing_list_of_domains_is_not_zero_domains() {
        assert_eq!(exposed(&CALL, r#"{"domains":null}"#), (String::new(), vec![]));
        assert_eq!(exposed(&CALL, "{}"), (String::new(), vec![]));
        unreadable(&CALL, r#"{"domains":"none"}"#);
        unreadable(&CALL, r#"{"domains":[null]}"#);
    }
}
