//! Section 4.11: list custom domains.

use std::collections::BTreeMap;
use std::iter;

use serde_json::Value;

use super::prelude::*;
use super::reader::DOMAIN_STATUS;
use super::wire::Field;

/// The reply.
pub type Reply = Domains;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "list_domains",
    Method::GET,
    "/v2/projects/{project_id}/domains",
    "list custom domains",
    Command::safe(&["domains", "list"], ""),
)
.polled_as(Polled::of::<Facts>("domains", Scope::Project, Cadence::Settings, EXAMPLE));

const EXAMPLE: &str = r#"{"domains":[{"status":"validated"},{"status":"pending"}]}"#;

/// The call as a resource.
pub const RESOURCE: Resource = Resource::of(Place::list_domains);

impl ReplyBody for Domains {}

/// The words of the validation status in the interface's descriptions. They are always counted; the interface states no
/// list of values.
const STATUSES: [&str; 3] = ["failed", "pending", "validated"];

/// The most words that are counted; further ones count as [`OTHER`].
const MAX_STATUSES: usize = 16;
const OTHER: &str = "other";

/// The fields that may hold the validation status, the likeliest first; the interface does not name it.
const STATUS_FIELDS: [&str; 4] = ["validationStatus", "validation_status", "status", "state"];

/// How many domains there are: far fewer than the 2^53 that f64 counts exactly.
#[derive(Debug)]
pub struct Facts {
    all: usize,
    /// Number by status; empty if the reply has no status, or one that cannot be read.
    by_status: BTreeMap<String, usize>,
}

impl MetricSource for Facts {
    const ROWS: &'static [Row<Self>] = ROWS;

    fn read(body: &[u8], terms: &Terms, unexpected: &mut Unexpected) -> Result<Self, DecodeError> {
        let domains = needed(Domains::decode(body)?.domains, "domains", body)?;
        let configured = terms.domain_status.as_deref().map(|field| [field]);
        let fields = configured.as_ref().map_or(&STATUS_FIELDS[..], |field| &field[..]);
        let stated: Vec<_> = domains.iter().map(|domain| status(domain, fields)).collect();
        let count = |status| stated.iter().filter(|stated| **stated == status).count();
        let has_none = !domains.is_empty() && count(Field::Missing) == domains.len();
        let unknown = count(Field::Unexpected) + usize::from(has_none);
        unexpected.fields.extend(iter::repeat_n(DOMAIN_STATUS, unknown));
        let mut by_status = BTreeMap::new();
        if unknown == 0 {
            by_status.extend(STATUSES.map(|status| (status.to_owned(), 0)));
            let mut words = Vec::from_iter(stated.into_iter().filter_map(Field::value));
            // The same words are counted, whatever the order of the domains.
            words.sort_unstable();
            for word in words {
                let has_room = by_status.len() < MAX_STATUSES || by_status.contains_key(&word);
                *by_status.entry(if has_room { word } else { OTHER.to_owned() }).or_default() += 1;
            }
        }
        Ok(Self { all: domains.len(), by_status })
    }
}

/// The validation status of a domain in lower case, from the first of `fields` that holds a word; unexpected if they hold
/// other values instead.
fn status(domain: &Domain, fields: &[&str]) -> Field<String> {
    let mut values = fields.iter().filter_map(|field| domain.fields.get(*field)).filter(|it| !it.is_null());
    let mut words = values.clone().filter_map(Value::as_str).map(str::trim);
    match words.find(|word| !word.is_empty()) {
        Some(word) => Field::Value(word.to_ascii_lowercase()),
        None if values.any(|value| !value.is_string()) => Field::Unexpected,
        None => Field::Missing,
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

rows! { Facts, "from the project's domains, polled every poll.settings_interval":
    CUSTOM_DOMAINS: gauge(
        "pds_project_custom_domains", [], "Number of custom domains, validated or not"
    ) => |facts, reader| reader.put(facts.all as f64);
    BY_STATUS: gauge(
        "pds_project_custom_domains_by_status",
        ["status"],
        "Number of custom domains by validation status in lower case; other beyond 16 words"
    ) => |facts, reader| {
        for (status, count) in &facts.by_status {
            reader.put_with(&[("status", status)], *count as f64);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{exposed, unreadable};

    /// The page for `all` domains, with a count per status.
    fn page(all: usize, by_status: &[(&str, usize)]) -> String {
        let labels = r#"{project="p-1""#;
        let by_status = by_status.iter().map(|(status, count)| {
            format!("pds_project_custom_domains_by_status{labels},status=\"{status}\"}} {count}\n")
        });
        [format!("pds_project_custom_domains{labels}}} {all}\n")].into_iter().chain(by_status).collect()
    }

    #[test]
    fn domains_are_counted_by_status() {
        let body = r#"{"domains":[{"id":"d-1","validationStatus":"validated","status":"active","records":[{"type":"CNAME"}]},{"status":" PENDING"},{"validation_status":"Verifying"},{"status":null},{"state":"failed"},{}],"next":null}"#;
        let counts = [("failed", 1), ("pending", 1), ("validated", 1), ("verifying", 1)];
        assert_eq!(exposed(&CALL, body), (page(6, &counts), vec![]));
        assert_eq!(exposed(&CALL, r#"{"domains":[]}"#).0, page(0, &STATUSES.map(|status| (status, 0))));
    }

    #[test]
    fn only_so_many_statuses_are_counted() {
        let domains: Vec<String> =
            (0..30).rev().map(|n| format!(r#"{{"status":"{:02}"}}"#, n % 15)).collect();
        let (page, unexpected) = exposed(&CALL, &format!(r#"{{"domains":[{}]}}"#, domains.join(",")));
        assert!(page.contains("status=\"12\"} 2") && !page.contains("status=\"13\""), "{page}");
        assert!(page.contains("status=\"other\"} 4"), "{page}");
        assert!(BY_STATUS.help.ends_with(&format!("beyond {MAX_STATUSES} words")));
        assert_eq!(unexpected, [""; 0]);
    }

    #[test]
    fn an_empty_field_does_not_hide_the_status_in_another() {
        let body = r#"{"domains":[{"validationStatus":" ","status":"validated"},{"status":"pending"}]}"#;
        let counts = [("failed", 0), ("pending", 1), ("validated", 1)];
        assert_eq!(exposed(&CALL, body), (page(2, &counts), vec![]));
    }

    #[test]
    fn domains_without_a_status_are_only_counted_and_reported() {
        let body = r#"{"domains":[{"id":"d-1","status":""},{}]}"#;
        assert_eq!(exposed(&CALL, body), (page(2, &[]), vec![DOMAIN_STATUS]));
    }

    #[test]
    fn no_status_is_counted_if_one_cannot_be_read() {
        for unreadable in [r#"{"validationStatus":{"word":"failed"}}"#, r#"{"status":3}"#, r#"{"state":[]}"#]
        {
            let body = format!(r#"{{"domains":[{unreadable},{{"status":"validated"}},{{}}]}}"#);
            assert_eq!(exposed(&CALL, &body), (page(3, &[]), vec![DOMAIN_STATUS]), "{unreadable}");
        }
    }

    #[test]
    fn a_configured_field_alone_holds_the_status() {
        let body =
            r#"{"domains":[{"phase":"validated","status":"failed"},{"phase":"new"},{"status":"failed"}]}"#;
        let by_status = |field: &str| {
            let terms = Terms { domain_status: Some(field.to_owned()), ..Terms::default() };
            Facts::read(body.as_bytes(), &terms, &mut Unexpected::default()).unwrap().by_status
        };
        let counted = [("failed", 0), ("new", 1), ("pending", 0), ("validated", 1)];
        assert_eq!(by_status("phase"), counted.map(|(status, count)| (status.to_owned(), count)).into());
        assert!(by_status("id").is_empty());
    }

    #[test]
    fn a_missing_list_of_domains_is_not_zero_domains() {
        unreadable(&CALL, r#"{"domains":null}"#);
        unreadable(&CALL, "{}");
        unreadable(&CALL, r#"{"domains":"none"}"#);
        unreadable(&CALL, r#"{"domains":[null]}"#);
    }
}
