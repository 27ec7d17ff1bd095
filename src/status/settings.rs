//! An app's settings in groups, with their meaning, and their recent changes.
//!
//! A setting is a family of the app endpoint, explained by its HELP, or a label of an info family. Labels that no
//! family declares come from the configuration.

use jiff::Timestamp;

use crate::store::{Change, Fact};
use pds_core::clock::{from_unix_seconds, to_second};
use pds_core::units::{bytes, dollars, number, seconds};
use pds_exposition::Family;
use pds_interface::get_app::{self, family};

use super::view::Values;
use pds_diagnosis::{Incident, IncidentKind};

/// Settings that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Their heading.
    pub title: &'static str,
    /// The settings that the service has sent.
    pub settings: Vec<Setting>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// The meaning of the value.
    pub meaning: &'static str,
    /// The metric family that exposes it.
    pub family: &'static str,
}

/// The value of a setting, as people read it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text or a number.
    Text(String),
    /// A time.
    Time(Timestamp),
}

/// A row of [`SETTINGS`].
#[derive(Clone, Copy, Debug)]
enum Row<'a> {
    /// The heading of a group.
    Title(&'static str),
    /// The value of a family.
    Number(&'a Family),
    /// The value of a family that is 1 or 0: (family, meaning).
    Flag(&'a Family, &'static str),
    /// A label of an info or status: (family, label, meaning).
    Label(&'a Family, &'static str, &'static str),
}

use Row::{Flag, Label, Number, Title};

/// The settings in groups, in the order of the page. A setting is named after its family or label.
const SETTINGS: &[Row<'static>] = &[
    Title("State"),
    Label(&family::STATUS, "status", "The app's current status"),
    Flag(&family::ERROR, "Whether the service reports an error message for the app"),
    Label(&family::LAST_BUILD_STATUS, "status", "Status of the most recent build"),
    Label(&family::BUILD_INFO, "latest_build_id", "The most recent build"),
    Label(&family::BUILD_INFO, "latest_created_build_id", "The most recently created build"),
    Label(&family::BUILD_INFO, "latest_ready_build_id", "The most recent build that reached the ready state"),
    Number(&family::CREATED),
    Number(&family::UPDATED),
    Title("Replicas and cost"),
    Label(&family::INFO, "hardware", "Compute type the app runs on"),
    Number(&family::CPU_CORES),
    Number(&family::MEMORY),
    Number(&family::GPUS),
    Number(&family::REPLICA_COST),
    Label(&family::INFO, "compute_tier", "Whether the service may reclaim replicas"),
    Label(&family::INFO, "hardware_provider", "Cloud provider"),
    Label(&family::INFO, "region", "Deployment region"),
    Title("Scaling"),
    Number(&family::MIN_REPLICAS),
    Number(&family::MAX_REPLICAS),
    Number(&family::REPLICA_CONCURRENCY),
    Label(&family::INFO, "scaling_metric", "Metric that autoscaling watches"),
    Number(&family::SCALING_TARGET),
    Number(&family::SCALING_BUFFER),
    Number(&family::EVALUATION_INTERVAL),
    Number(&family::COOLDOWN),
    Label(&family::INFO, "load_balancing_algorithm", "How requests are distributed over replicas"),
    Title("Deployment"),
    Number(&family::ROLL_OUT_DURATION),
    Number(&family::INITIALIZATION_TIMEOUT),
    Number(&family::RESPONSE_GRACE_PERIOD),
    Title("Image and endpoint"),
    Label(&family::INFO, "name", "The app's name"),
    Label(&family::INFO, "runtime", "Kind of runtime"),
    Label(&family::INFO, "base_image", "Container image the app is built from"),
    Label(&family::INFO, "python_version", "Interpreter version"),
    Label(&family::INFO, "service_version", "Version of the client that deployed the app"),
    Number(&family::PORT),
    Flag(&family::AUTH_DISABLED, "Whether the app's endpoint answers without authentication"),
];

/// The settings in `values`, in groups. Omits settings without a value, and groups without settings.
pub(super) fn groups(values: &Values<'_>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for row in SETTINGS {
        if let Title(title) = row {
            groups.push(Group { title, settings: Vec::new() });
        } else if let Some(group) = groups.last_mut() {
            group.settings.extend(setting(values, *row));
        }
    }
    groups.push(Group { title: "Other settings", settings: others(values) });
    groups.push(Group { title: "Labels from the configuration", settings: configured(values) });
    groups.retain(|group| !group.settings.is_empty());
    groups
}

fn setting(values: &Values<'_>, row: Row<'_>) -> Option<Setting> {
    match row {
        Title(_) => None,
        Label(family, name, meaning) => {
            let value = Value::Text(values.label(family, name)?.into_owned());
            Some(Setting { name: name_of(family.name, Some(name)), value, meaning, family: family.name })
        }
        Number(family) | Flag(family, _) => {
            let value = value_of(family, values.value(family)?)?;
            let meaning = if let Flag(_, meaning) = row { meaning } else { family.help };
            Some(Setting { name: name_of(family.name, None), value, meaning, family: family.name })
        }
    }
}

/// The name of the setting that `family` shows, or one of its labels.
pub(crate) fn name_of(family: &str, label: Option<&str>) -> String {
    match label {
        None | Some("status") => short(family),
        Some(label) => label.replace('_', " "),
    }
}

/// The row that shows the value of `family`.
fn row_of(family: &Family) -> Option<&'static Row<'static>> {
    SETTINGS.iter().find(|row| matches!(row, Number(known) | Flag(known, _) if **known == *family))
}

/// A value of `family`.
fn value_of(family: &Family, value: f64) -> Option<Value> {
    Some(Value::Text(match family.unit() {
        _ if matches!(row_of(family), Some(Flag(..))) => if value > 0.0 { "yes" } else { "no" }.to_owned(),
        // An identifier rather than a quantity.
        _ if *family == family::PORT => value.to_string(),
        Some("seconds") if family.name.ends_with("_timestamp_seconds") => {
            return from_unix_seconds(value).map(to_second).map(Value::Time);
        }
        Some("seconds") => seconds(value),
        Some("bytes") => bytes(value),
        Some("dollars_per_second") => format!("{} / h", dollars(value * 3600.0)),
        _ => number(value),
    }))
}

/// The settings that no group names: values of families without labels.
fn others(values: &Values<'_>) -> Vec<Setting> {
    let others = values.families.iter().filter(|family| family.labels.is_empty() && row_of(family).is_none());
    others.filter_map(|family| setting(values, Number(family))).collect()
}

/// Labels of the info series that come from the configuration.
fn configured(values: &Values<'_>) -> Vec<Setting> {
    let family = family::INFO.name;
    let meaning = "A label configured for the app or its project";
    let labels = values.configured_labels(&family::INFO).into_iter();
    labels.map(|(name, value)| Setting { name, value: Value::Text(value), meaning, family }).collect()
}

/// The short name of a family: `cooldown` for `pds_app_cooldown_seconds`.
fn short(family: &str) -> String {
    let name = family.strip_prefix("pds_app_").unwrap_or(family);
    let units = ["_timestamp_seconds", "_dollars_per_second", "_seconds", "_bytes"];
    let bare = units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    bare.replace('_', " ")
}

/// A fact that the app's `family` shows, as people read it.
pub(crate) fn value(family: &str, fact: &Fact) -> Option<Value> {
    let families = get_app::RESOURCE.polled().families();
    match fact {
        Fact::Text(text) => Some(Value::Text(text.to_string())),
        Fact::Number(number) => value_of(families.iter().find(|known| known.name == family)?, *number),
    }
}

/// Builds that became ready, newest first.
pub(super) fn builds(changes: &[Change]) -> Vec<Incident> {
    let ready = (family::BUILD_INFO.name, Some("latest_ready_build_id"));
    let build = |change: &Change| {
        let Some(Fact::Text(id)) = &change.after else { return None };
        let (kind, at) = (IncidentKind::Build, change.at);
        Some(Incident { kind, start: at, end: Some(at), detail: Some(id.to_string()) })
    };
    changes.iter().filter(|change| (change.family, change.label) == ready).filter_map(build).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_of_an_app_is_in_a_group() {
        for known in get_app::RESOURCE.polled().families() {
            for label in known.labels {
                let is_it = |row: &Row<'_>| matches!(row, Label(family, name, _) if **family == known && name == label);
                assert!(SETTINGS.iter().any(is_it), "{} {label}", known.name);
            }
        }
    }
}
