//! `pdstool check`: checks of configuration, tokens, web configuration, and of the service's behaviour.
//!
//! - [`service`]: behaviour that the interface leaves open, determined by requests.
//! - [`token`]: a service account's token.

pub mod service;
pub mod token;

use std::path::{Path, PathBuf};

use clap::Subcommand;

use pds_config::Config;
use pds_config::flags::DEFAULT_CONFIG;
use pds_core::units::{number, rounded};
use pds_web::webconfig::{self, Demands, Rate};

use super::console::Console;
use super::error::{Result, ToolError};
use super::options::{OutputArg, OutputFormat};
use super::output::{self, Align, Block, Table};
use super::service::{Environment, file, load};

/// `pdstool check`.
#[derive(Clone, Debug, Subcommand)]
pub enum Check {
    /// Print all problems of a configuration file, or the requests it needs.
    #[command(after_help = "Example:\n  pdstool check config /etc/pds-exporter/pds-exporter.toml")]
    Config {
        /// Configuration file.
        #[arg(value_name = "FILE", default_value = DEFAULT_CONFIG)]
        file: PathBuf,
        /// The output format.
        #[command(flatten)]
        output: OutputArg,
    },
    /// Check a web configuration file, as --web.config.file reads it.
    #[command(after_help = "Example:\n  pdstool check web-config /etc/pds-exporter/web.yml")]
    WebConfig {
        /// Web configuration file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The output format.
        #[command(flatten)]
        output: OutputArg,
    },
    /// Print the projects and expiry of tokens, and which of the needed calls they may make.
    #[command(
        after_help = "Examples:\n  pdstool check token\n  pdstool check token --base-url https://api.example.com --token-file token --project p-abc12345"
    )]
    Token(token::TokenArgs),
    /// Find out what the service does not document: query names, range ends, late data, filters, limits.
    Service(service::CheckServiceArgs),
}

/// Runs the check.
///
/// # Errors
/// If a check fails.
pub async fn run(console: &mut Console, environment: &Environment, check: &Check) -> Result<()> {
    match check {
        Check::Config { file, output } => config(console, environment, file, output.format),
        Check::WebConfig { file, output } => web_config(console, file, output.format),
        Check::Token(args) => token::run(console, environment, args).await,
        Check::Service(args) => service::run(console, environment, args).await,
    }
}

/// Prints all problems of the configuration file at `path`, or its cost in requests.
fn config(console: &mut Console, environment: &Environment, path: &Path, format: OutputFormat) -> Result<()> {
    let config = load(path, environment)?;
    config.check_ca_files()?;
    let mut rate: fn(f64) -> String = |rate| rate.to_string();
    if format.is_for_people() {
        console.print(&format!("{} is valid", file(path).display()))?;
        rate = number;
    }
    Ok(output::print_as(console, format, &demand(&config, rate))?)
}

/// The requests that the configuration needs, and whether its own limit allows them.
fn demand(config: &Config, number: fn(f64) -> String) -> Vec<Block> {
    let demand = config.requests_per_minute();
    let columns =
        output::columns([("PROJECT", Align::Left), ("APP", Align::Left), ("REQUESTS/MIN", Align::Right)]);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (project, rate) in &demand.projects {
        let apps = demand.apps.iter().filter(|app| app.project == *project);
        rows.extend(apps.map(|app| vec![project.to_string(), app.app.to_string(), number(app.rate)]));
        rows.push(vec![project.to_string(), "(whole project)".to_owned(), number(*rate)]);
    }
    rows.push(vec!["(total)".to_owned(), String::new(), number(demand.total)]);
    let allowed = match config.api.max_requests_per_second {
        Some(limit) => {
            let allowed = rounded(f64::from(limit.get()) * 60.0);
            format!("api.max_requests_per_second allows {allowed} requests/min")
        }
        None => "no limit is set (api.max_requests_per_second = 0)".to_owned(),
    };
    let mut blocks = vec![
        Block::Heading("Expected requests to the service".to_owned()),
        Block::Table(Table { columns, rows, empty: "" }),
    ];
    blocks.extend(config.memory_of_rechecks().map(Block::Text));
    blocks.extend(demand.overload(&config.api).is_none().then_some(Block::Text(allowed)));
    blocks.extend(config.check_warnings().map(|warning| Block::Text(format!("warning: {warning}"))));
    blocks
}

/// Prints the meaning of a web configuration file, checked as the daemon would, or its first problem.
fn web_config(console: &mut Console, path: &Path, format: OutputFormat) -> Result<()> {
    let summary = webconfig::check(path).map_err(|source| ToolError::Web(path.to_owned(), source))?;
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let users =
        if summary.users == 0 { "none (no password required)".to_owned() } else { summary.users.to_string() };
    let facts = vec![
        ("TLS", yes(summary.tls)),
        ("HTTP/2", yes(summary.http2)),
        ("client certificates", certificates(summary.demands)),
        ("users", users),
        ("rate limit", summary.rate.map_or_else(|| "none".to_owned(), |rate| limit(&rate))),
    ];
    let mut blocks = vec![Block::Text(format!("{} is valid", path.display())), Block::Facts(facts)];
    blocks.extend(summary.notes.iter().map(|note| Block::Text(format!("note: {note}"))));
    Ok(output::print_as(console, format, &blocks)?)
}

/// The demands on client certificates in words.
fn certificates(demands: Demands) -> String {
    if !demands.requested {
        return "not requested".to_owned();
    }
    let needed = if demands.mandatory { "required" } else { "requested, optional" };
    let verified = match (demands.verified, demands.own_ca) {
        (false, _) => "not verified",
        (true, true) => "verified against the client CA",
        (true, false) => "verified against the system's CAs",
    };
    let named = if demands.named { ", with an allowed name" } else { "" };
    format!("{needed}, {verified}{named}")
}

/// A limit on requests in words.
fn limit(rate: &Rate) -> String {
    let seconds = rate.interval.as_secs_f64();
    let lasting = if seconds > 0.0 { number(1.0 / seconds) } else { "unlimited".to_owned() };
    format!("{lasting} requests/s, bursts of {}", rounded(f64::from(rate.burst.get())))
}
