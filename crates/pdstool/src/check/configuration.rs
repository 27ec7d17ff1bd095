//! `pdstool check config`: all problems of a file, or its cost in requests.

use std::path::Path;

use crate::console::Console;
use crate::error::ToolError;
use crate::output::OutputFormat;
use crate::page::{self, Align, Block, Table};
use crate::service::{self, Environment};
use pds_core::units::number;
use pds_exporter::config::Config;

/// Checks the configuration file at `path` with the environment that overrides it.
///
/// # Errors
/// All problems together.
pub fn run(
    console: &mut Console,
    environment: &Environment,
    path: &Path,
    format: OutputFormat,
) -> Result<(), ToolError> {
    let config = service::load(path, environment)?;
    if format.is_for_people() {
        console.print(&format!("{} is valid", path.display()))?;
        return Ok(page::print_as(console, format, &demand(&config, number))?);
    }
    Ok(page::print_as(console, format, &demand(&config, |rate| rate.to_string()))?)
}

/// The requests that the configuration needs, and whether its own limit allows them.
fn demand(config: &Config, number: fn(f64) -> String) -> Vec<Block> {
    let load = config.requests_per_minute();
    let columns =
        page::columns([("PROJECT", Align::Left), ("APP", Align::Left), ("REQUESTS/MIN", Align::Right)]);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (project, of_project) in &load.projects {
        let apps = load.apps.iter().filter(|(of, ..)| of == project);
        rows.extend(apps.map(|(_, app, rate)| vec![project.to_string(), app.to_string(), number(*rate)]));
        rows.push(vec![project.to_string(), "(whole project)".to_owned(), number(*of_project)]);
    }
    rows.push(vec!["(total)".to_owned(), String::new(), number(load.total)]);
    let allowed = match config.api.max_requests_per_second {
        Some(limit) => format!("api.max_requests_per_second allows {} requests/min", limit.get() * 60),
        None => "no limit is set (api.max_requests_per_second = 0)".to_owned(),
    };
    let mut blocks = vec![
        Block::Heading("Expected requests to the service".to_owned()),
        Block::Table(Table { columns, rows, empty: "" }),
    ];
    blocks.extend(load.exceeds(&config.api).is_none().then_some(Block::Text(allowed)));
    blocks.extend(config.warnings().into_iter().map(|warning| Block::Text(format!("warning: {warning}"))));
    blocks
}
