//! Projects, and what goes for a whole project.

use crate::call::View;
use crate::page::{self, Align, Block, Table};
use pds_interface::Number;
use pds_interface::list_projects::Reply as Projects;
use pds_interface::volume_alerts::Alerts;

use super::fields::{Fields, table};

/// The projects of a service account.
pub(super) fn list(projects: &Projects, fields: &Fields) -> View {
    let columns = page::columns([("ID", Align::Left), ("NAME", Align::Left), ("ROLE", Align::Left)]);
    let rows =
        projects.iter().map(|project| vec![project.id.clone(), project.name.clone(), project.role.clone()]);
    let mut blocks = vec![Block::Table(Table { columns, rows: rows.collect(), empty: "no projects" })];
    let further = projects.iter().zip(fields.each()).flat_map(|(project, mut fields)| {
        for shown in ["id", "name", "role"] {
            fields.take(shown);
        }
        fields.named(&project.id)
    });
    let further: Vec<_> = further.collect();
    if !further.is_empty() {
        blocks.push(Block::Heading("Further fields".to_owned()));
        blocks.push(table(further));
    }
    blocks.into()
}

/// The percentages at which the owner is mailed.
pub(super) fn volume_alerts(reply: &Alerts, mut fields: Fields) -> View {
    fields.take("thresholds");
    let sentence = match &reply.thresholds {
        None => "The reply does not say whether alerts are enabled.".to_owned(),
        Some(thresholds) if thresholds.is_empty() => "Alerts are disabled.".to_owned(),
        Some(thresholds) => {
            let percentage =
                |threshold: &Number| threshold.value().map_or("?".to_owned(), |v| format!("{v} %"));
            let percentages: Vec<String> = thresholds.iter().map(percentage).collect();
            format!("The project's owner is mailed when storage is used to {}.", percentages.join(", "))
        }
    };
    fields.after(vec![Block::Text(sentence)]).into()
}
