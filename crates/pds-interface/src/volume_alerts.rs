//! Section 4.10: storage alert thresholds.

use std::collections::BTreeSet;

use serde_json::json;

use super::prelude::*;

/// The reply.
pub type Reply = Alerts;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "volume_alerts",
    Method::GET,
    "/v2/projects/{project_id}/volumes/alerts",
    "storage alert thresholds",
    Command::safe(&["volume-alerts"], ""),
)
.polled_as(Polled::of::<Reply>("volume_alerts", Scope::Project, Cadence::Settings, EXAMPLE));

const EXAMPLE: &str = r#"{"thresholds":[80,95]}"#;

/// The call as a resource.
pub const RESOURCE: Resource = Resource::of(Place::volume_alerts);

impl ReplyBody for Alerts {}

impl MetricSource for Alerts {
    const ROWS: &'static [Row<Self>] = ROWS;

    fn read(body: &[u8], _: &Terms, _: &mut Unexpected) -> Result<Self, DecodeError> {
        let thresholds = needed(Self::decode(body)?.thresholds, "thresholds", body)?;
        Ok(Self { thresholds: Some(thresholds) })
    }
}

/// Volume alert thresholds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Alerts {
    /// Percentages at which the project owner is emailed; empty array when alerts are disabled.
    #[schemars(with = "Vec<Number>", extend("items" = json!({ "type": "integer", "enum": THRESHOLDS })))]
    #[serde(deserialize_with = "optional_list")]
    pub thresholds: Option<Vec<Number>>,
}

/// The percentages of section 8.
pub const THRESHOLDS: [u8; 3] = [80, 90, 95];

rows! { Alerts, "from the project's volume alerts, polled every poll.settings_interval":
    ENABLED: gauge(
        "pds_project_volume_alert_threshold_enabled",
        ["threshold"],
        "1 if the owner gets an email when storage use reaches this percentage, 0 otherwise"
    ) => put_thresholds;
}

/// The most thresholds beyond those of the interface that are shown.
const MAX_OTHERS: usize = 16;

/// The three thresholds of the interface as on or off, then others that are on. If a percentage cannot be read, no
/// threshold is shown as off: it may be the unreadable percentage.
fn put_thresholds(alerts: &Alerts, reader: &mut Reader<'_>) {
    let Some(thresholds) = &alerts.thresholds else { return };
    let (mut on, mut all_read) = (BTreeSet::new(), true);
    for threshold in thresholds {
        match reader.unexpected.check("thresholds", *threshold, 0.0, 100.0) {
            Some(percentage) => _ = on.insert(percentage.to_string()),
            None => all_read = false,
        }
    }
    for threshold in THRESHOLDS {
        let threshold = threshold.to_string();
        let is_on = on.remove(&threshold);
        if is_on || all_read {
            reader.put_with(&[("threshold", &threshold)], f64::from(is_on));
        }
    }
    reader.unexpected.fields.extend(on.iter().skip(MAX_OTHERS).map(|_| "thresholds"));
    for threshold in on.iter().take(MAX_OTHERS) {
        reader.put_with(&[("threshold", threshold)], 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{exposed, unreadable};

    fn page(on: [u8; 3], more: &str) -> String {
        let known = THRESHOLDS.iter().zip(on).map(|(threshold, on)| {
            format!("pds_project_volume_alert_threshold_enabled{{project=\"p-1\",threshold=\"{threshold}\"}} {on}\n")
        });
        known.chain([more.to_owned()]).collect()
    }

    fn only_95() -> String {
        "pds_project_volume_alert_threshold_enabled{project=\"p-1\",threshold=\"95\"} 1\n".to_owned()
    }

    #[test]
    fn thresholds_are_read_as_numbers_and_as_text() {
        assert_eq!(exposed(&CALL, r#"{"thresholds":[80,95]}"#).0, page([1, 0, 1], ""));
        assert_eq!(exposed(&CALL, r#"{"thresholds":["90",90.0," 9e1 "]}"#).0, page([0, 1, 0], ""));
        assert_eq!(exposed(&CALL, r#"{"thresholds":[]}"#).0, page([0, 0, 0], ""));
    }

    #[test]
    fn other_thresholds_pass_through_as_on() {
        let more = "pds_project_volume_alert_threshold_enabled{project=\"p-1\",threshold=\"82.5\"} 1\n";
        assert_eq!(exposed(&CALL, r#"{"thresholds":["82.5",80]}"#), (page([1, 0, 0], more), vec![]));
    }

    #[test]
    fn a_reply_has_a_bounded_number_of_thresholds() {
        let many: Vec<String> = (0..100).map(|threshold| format!("{threshold}.5")).collect();
        let (page, unexpected) = exposed(&CALL, &format!(r#"{{"thresholds":[{}]}}"#, many.join(",")));
        assert_eq!(
            (page.lines().count(), unexpected.len()),
            (THRESHOLDS.len() + MAX_OTHERS, 100 - MAX_OTHERS)
        );
    }

    #[test]
    fn an_invalid_percentage_is_unexpected_and_the_others_count() {
        let body = r#"{"thresholds":[null,"","NaN",1e400,"80%",-80,101,95],"mailTo":"owner"}"#;
        assert_eq!(exposed(&CALL, body), (only_95(), vec!["thresholds"; 4]));
    }

    #[test]
    fn no_threshold_is_off_if_a_percentage_cannot_be_read() {
        for body in [r#"{"thresholds":["80%","90%"]}"#, r#"{"thresholds":[{"percent":80},[90]]}"#] {
            assert_eq!(exposed(&CALL, body), (String::new(), vec!["thresholds"; 2]), "{body}");
        }
        assert_eq!(exposed(&CALL, r#"{"thresholds":["80%",95]}"#), (only_95(), vec!["thresholds"]));
        assert_eq!(exposed(&CALL, r#"{"thresholds":[null,95]}"#), (only_95(), vec![]));
    }

    #[test]
    fn missing_thresholds_are_not_shown_as_off() {
        unreadable(&CALL, r#"{"thresholds":null}"#);
        unreadable(&CALL, "{}");
        unreadable(&CALL, r#"{"thresholds":80}"#);
        unreadable(&CALL, "[80]");
    }
}
