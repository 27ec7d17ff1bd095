//! Projects, and what goes for a whole project.

use std::collections::BTreeMap;

use crate::interface::list_projects::ListProjects;
use crate::interface::spec::{Call as _, DecodeError};
use crate::interface::volume_alerts::VolumeAlerts;
use crate::tool::call::View;
use crate::tool::page::{Align, Block, Table};

use super::{cell, further};

/// The projects of a service account.
///
/// # Errors
/// Where the reply is no list of projects.
pub fn list(body: &[u8]) -> Result<View, DecodeError> {
    let projects = ListProjects::reply(body)?;
    let columns = vec![("ID", Align::Left), ("NAME", Align::Left), ("ROLE", Align::Left)];
    let rows =
        projects.iter().map(|project| vec![project.id.clone(), project.name.clone(), project.role.clone()]);
    let rows = rows.collect();
    let beyond = projects.iter().flat_map(|project| {
        project.extra.iter().map(|(name, value)| (format!("{} {name}", project.id), cell(value).into()))
    });
    let mut blocks = vec![Block::Table(Table { columns, rows, empty: "no projects" })];
    blocks.extend(further(&beyond.collect::<BTreeMap<_, _>>()));
    Ok(blocks.into())
}

/// At which percentages the owner is mailed.
///
/// # Errors
/// Where the reply is none about alerts.
pub fn volume_alerts(body: &[u8]) -> Result<View, DecodeError> {
    let alerts = VolumeAlerts::reply(body)?;
    let thresholds = alerts.thresholds.unwrap_or_default();
    let values: Vec<f64> = thresholds.iter().filter_map(|threshold| threshold.value()).collect();
    let text = if values.is_empty() {
        "Alerts are disabled.".to_owned()
    } else {
        let percentages: Vec<String> = values.iter().map(|value| format!("{value} %")).collect();
        format!("The project's owner is mailed when storage is used to {}.", percentages.join(", "))
    };
    let mut blocks = vec![Block::Text(text)];
    blocks.extend(further(&alerts.extra));
    Ok(blocks.into())
}
