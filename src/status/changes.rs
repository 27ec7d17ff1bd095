//! Recent changes to an app's settings.

use jiff::Timestamp;

use crate::store::{Change, Fact};
use pds_exposition::Family;
use pds_interface::get_app::family;

use super::exporter::to_second;
use super::settings::{Value, name_of, value_of};

/// A changed setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// When a poll first said so.
    pub at: Timestamp,
    /// The setting's name.
    pub name: String,
    /// The value before; `None` if the service sent none.
    pub before: Option<Value>,
    /// The value now.
    pub after: Option<Value>,
}

/// A build that became ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Deploy {
    /// When a poll first said so.
    pub at: Timestamp,
    /// The build's id.
    pub build: String,
}

/// `changes` for people.
pub(super) fn changed(changes: &[Change], families: &[Family]) -> Vec<Changed> {
    let value = |change: &Change, fact: &Option<Fact>| {
        Some(match fact.as_ref()? {
            Fact::Text(text) => Value::Text(text.to_string()),
            Fact::Number(number) => {
                value_of(families.iter().find(|family| family.name == change.family)?, *number)
            }
        })
    };
    let changed = |change: &Change| Changed {
        at: to_second(change.at),
        name: name_of(change.family, change.label),
        before: value(change, &change.before),
        after: value(change, &change.after),
    };
    changes.iter().map(changed).collect()
}

/// Builds that became ready, newest first.
pub(super) fn deploys(changes: &[Change]) -> Vec<Deploy> {
    let build = |change: &Change| match &change.after {
        Some(Fact::Text(id))
            if change.family == family::BUILD_INFO.name && change.label == Some("latest_ready_build_id") =>
        {
            Some(Deploy { at: to_second(change.at), build: id.to_string() })
        }
        _ => None,
    };
    changes.iter().filter_map(build).collect()
}
