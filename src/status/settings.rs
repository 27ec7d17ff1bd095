//! An app's settings in groups, with their meaning.
//!
//! A setting is a family of the app endpoint, and its meaning that family's help; or it is a label of one of its
//! infos. Labels beyond those declared are the configured ones.

use super::read::{Values, label};

/// Settings that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they are about.
    pub title: &'static str,
    /// The settings that the service has stated.
    pub settings: Vec<Setting>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// What it is set to.
    pub value: Value,
    /// What that means.
    pub meaning: &'static str,
    /// The metric family that exposes it.
    pub family: &'static str,
}

/// What a setting is set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text as the service sent it.
    Text(String),
    /// A number of a unit: that of the family, or `""`.
    Number(f64, &'static str),
    /// Unix seconds.
    Time(f64),
    /// On or off.
    Flag(bool),
}

/// Where a setting is read.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The value of a family.
    Family(&'static str),
    /// The value of a family that is 1 or 0.
    Flag(&'static str),
    /// A label of an info or status: (family, label, meaning).
    Label(&'static str, &'static str, &'static str),
}

use Place::{Family, Flag, Label};

const INFO: &str = "pds_app_info";
const BUILD: &str = "pds_app_build_info";

/// The groups, in the order of the page. A setting is named after its family or label.
const GROUPS: &[(&str, &[Place])] = &[
    (
        "State",
        &[
            Label("pds_app_status", "status", "The app's present status"),
            Flag("pds_app_error"),
            Label("pds_app_last_build_status", "status", "Status of the most recent build"),
            Label(BUILD, "latest_build_id", "The most recent build"),
            Label(BUILD, "latest_created_build_id", "The most recently created build"),
            Label(BUILD, "latest_ready_build_id", "The most recent build that reached the ready state"),
            Family("pds_app_created_timestamp_seconds"),
            Family("pds_app_updated_timestamp_seconds"),
        ],
    ),
    (
        "Replicas and cost",
        &[
            Label(INFO, "hardware", "Compute type the app runs on"),
            Family("pds_app_cpu_cores"),
            Family("pds_app_memory_bytes"),
            Family("pds_app_gpus"),
            Family("pds_app_replica_cost_dollars_per_second"),
            Label(INFO, "compute_tier", "Whether the service may take replicas back"),
            Label(INFO, "hardware_provider", "Cloud provider"),
            Label(INFO, "region", "Deployment region"),
        ],
    ),
    (
        "Scaling",
        &[
            Family("pds_app_min_replicas"),
            Family("pds_app_max_replicas"),
            Family("pds_app_replica_concurrency"),
            Label(INFO, "scaling_metric", "Metric that autoscaling watches"),
            Family("pds_app_scaling_target"),
            Family("pds_app_scaling_buffer_replicas"),
            Family("pds_app_evaluation_interval_seconds"),
            Family("pds_app_cooldown_seconds"),
            Label(INFO, "load_balancing_algorithm", "How requests are spread over replicas"),
        ],
    ),
    (
        "Deployment",
        &[
            Family("pds_app_roll_out_duration_seconds"),
            Family("pds_app_deployment_initialization_timeout_seconds"),
            Family("pds_app_response_grace_period_seconds"),
        ],
    ),
    (
        "Image and endpoint",
        &[
            Label(INFO, "name", "The app's name"),
            Label(INFO, "runtime", "Kind of runtime"),
            Label(INFO, "base_image", "Container image the app is built from"),
            Label(INFO, "python_version", "Interpreter version"),
            Label(INFO, "service_version", "Version of the client that deployed the app"),
            Family("pds_app_port"),
            Flag("pds_app_auth_disabled"),
        ],
    ),
];

/// The settings in `values`, in groups. Settings without a value and groups without settings are left
/// there.
pub(super) fn groups(values: &Values<'_>) -> Vec<Group> {
    let mut groups: Vec<Group> = GROUPS
        .iter()
        .map(|(title, settings)| Group {
            title,
            settings: settings.iter().filter_map(|from| setting(values, *from)).collect(),
        })
        .collect();
    groups.push(Group { title: "Labels from the configuration", settings: configured(values) });
    groups.retain(|group| !group.settings.is_empty());
    groups
}

fn setting(values: &Values<'_>, from: Place) -> Option<Setting> {
    match from {
        Label(family, name, meaning) => {
            let value = Value::Text(label(&values.labels(family), name)?);
            let name = if name == "status" { short(family) } else { name.replace('_', " ") };
            Some(Setting { name, value, meaning, family })
        }
        Family(name) | Flag(name) => {
            let family = values.families().iter().find(|family| family.name == name)?;
            let value = values.value(name)?;
            let value = match (from, family.unit()) {
                (Flag(_), _) => Value::Flag(value > 0.0),
                (_, Some("seconds")) if name.ends_with("_timestamp_seconds") => Value::Time(value),
                (_, unit) => Value::Number(value, unit.unwrap_or("")),
            };
            Some(Setting { name: short(name), value, meaning: family.help, family: family.name })
        }
    }
}

/// Labels of the info series that come from the configuration.
fn configured(values: &Values<'_>) -> Vec<Setting> {
    let Some(family) = values.families().iter().find(|family| family.name == INFO) else { return Vec::new() };
    let labels = values.labels(INFO).into_iter().filter(|(name, _)| !family.labels.contains(&name.as_str()));
    let meaning = "A label configured for the app or its project";
    labels.map(|(name, value)| Setting { name, value: Value::Text(value), meaning, family: INFO }).collect()
}

/// The short name of a family: `cooldown` for `pds_app_cooldown_seconds`.
fn short(family: &str) -> String {
    let name = family.strip_prefix("pds_app_").unwrap_or(family);
    let units = ["_timestamp_seconds", "_dollars_per_second", "_seconds", "_bytes"];
    let bare = units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    bare.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::get_app;

    #[test]
    fn every_family_and_label_of_an_app_is_among_the_settings() {
        let polled = get_app::RESOURCE.polled();
        let placed: Vec<(&str, Option<&str>)> = GROUPS
            .iter()
            .flat_map(|(_, settings)| *settings)
            .map(|from| match *from {
                Family(family) | Flag(family) => (family, None),
                Label(family, label, _) => (family, Some(label)),
            })
            .collect();
        for family in polled.families() {
            if family.labels.is_empty() {
                assert!(placed.contains(&(family.name, None)), "{}", family.name);
            }
            for label in family.labels {
                assert!(placed.contains(&(family.name, Some(label))), "{} {label}", family.name);
            }
        }
    }
}
