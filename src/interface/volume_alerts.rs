//! Call 10, section 4.10: storage alert thresholds.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::Family;

use super::endpoint::{Ask, Cadence, Polled, Reader, Resource, Row, Scope};
use super::lenient;
use super::number::Number;
use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 10,
    id: "volume_alerts",
    method: Method::Get,
    path: "/v2/projects/{project_id}/volumes/alerts",
    purpose: "storage alert thresholds",
    query: &[],
    body: None,
    reply: ReplyKind::Json(|generator| generator.subschema_for::<Alerts>()),
};

/// The call with its argument.
#[derive(Clone, Copy, Debug)]
pub struct VolumeAlerts<'a> {
    /// The project's id.
    pub project_id: &'a str,
}

impl Call for VolumeAlerts<'_> {
    type Reply = Alerts;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        Request::new(&SPEC, &[("project_id", self.project_id)])
    }

    fn reply(body: &[u8]) -> Result<Alerts, DecodeError> {
        Ok(lenient::from_slice(body)?)
    }
}

/// At which percentages the project's owner is mailed (section 2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Alerts {
    /// The percentages, each one of [`THRESHOLDS`]; empty when alerts are disabled.
    pub thresholds: Option<Vec<Number>>,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// The percentages of section 8.
pub const THRESHOLDS: [u8; 3] = [80, 90, 95];

/// The call as a polled endpoint.
pub static ENDPOINT: Polled<Alerts> = Polled {
    resource: Resource::VolumeAlerts,
    spec: &SPEC,
    scope: Scope::Project,
    cadence: Cadence::Settings,
    request: |ask: &Ask<'_>| VolumeAlerts { project_id: ask.project }.request(),
    decode: <VolumeAlerts<'_> as Call>::reply,
    rows: ROWS,
    tally: None,
};

static ROWS: &[Row<Alerts>] = &[Row {
    family: Family::gauge(
        "pds_project_volume_alert_threshold_enabled",
        &["threshold"],
        "1 where the project's owner is mailed when storage is used to this percentage, 0 where not",
    ),
    read: put_thresholds,
}];

/// The three thresholds of the interface as on or off, then others that are on.
fn put_thresholds(alerts: &Alerts, reader: &mut Reader<'_>) {
    let Some(thresholds) = &alerts.thresholds else { return };
    let mut on = BTreeSet::new();
    for threshold in thresholds {
        if let Some(percentage) = reader.unexpected.check("thresholds", *threshold, 0.0, 100.0) {
            on.insert(percentage.to_string());
        }
    }
    for threshold in THRESHOLDS {
        let threshold = threshold.to_string();
        let enabled = f64::from(u8::from(on.remove(&threshold)));
        reader.put_with(&[("threshold", &threshold)], enabled);
    }
    for threshold in &on {
        reader.put_with(&[("threshold", threshold)], 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::recorded::{exposed, unreadable};

    fn page(on: [u8; 3], more: &str) -> String {
        let known = THRESHOLDS.iter().zip(on).map(|(threshold, on)| {
            format!("pds_project_volume_alert_threshold_enabled{{project=\"p-1\",threshold=\"{threshold}\"}} {on}\n")
        });
        known.chain([more.to_owned()]).collect()
    }

    #[test]
    fn thresholds_are_read_as_numbers_and_as_text() {
        assert_eq!(exposed(&ENDPOINT, r#"{"thresholds":[80,95]}"#).0, page([1, 0, 1], ""));
        assert_eq!(exposed(&ENDPOINT, r#"{"thresholds":["90",90.0," 9e1 "]}"#).0, page([0, 1, 0], ""));
        assert_eq!(exposed(&ENDPOINT, r#"{"thresholds":[]}"#).0, page([0, 0, 0], ""));
    }

    #[test]
    fn other_thresholds_pass_through_as_on() {
        let more = "pds_project_volume_alert_threshold_enabled{project=\"p-1\",threshold=\"82.5\"} 1\n";
        assert_eq!(exposed(&ENDPOINT, r#"{"thresholds":["82.5",80]}"#), (page([1, 0, 0], more), vec![]));
    }

    #[test]
    fn what_is_no_percentage_is_unexpected_and_the_rest_counts() {
        let body = r#"{"thresholds":[null,"","NaN",1e400,"80%",-80,101,95],"mailTo":"owner"}"#;
        assert_eq!(exposed(&ENDPOINT, body), (page([0, 0, 1], ""), vec!["thresholds"; 4]));
    }

    #[test]
    fn thresholds_that_are_not_said_are_not_shown_as_off() {
        assert_eq!(exposed(&ENDPOINT, r#"{"thresholds":null}"#), (String::new(), vec![]));
        assert_eq!(exposed(&ENDPOINT, "{}"), (String::new(), vec![]));
        unreadable(&ENDPOINT, r#"{"thresholds":80}"#);
        unreadable(&ENDPOINT, "[80]");
    }
}
