//! `pdstool check`: checks of configuration, tokens, web configuration, and of what the service does.
//!
//! - [`configuration`]: a configuration file.
//! - [`service`]: what the interface leaves open, found out by asking.
//! - [`token`]: a service account's token.
//! - [`web`]: a web configuration file.

pub mod configuration;
pub mod service;
pub mod token;
pub mod web;

use std::path::PathBuf;

use clap::Subcommand;

use pds_exporter::app::flags::DEFAULT_CONFIG;

use super::console::Console;
use super::error::ToolError;
use super::output::OutputArg;
use super::service::Environment;

/// `pdstool check`.
#[derive(Clone, Debug, Subcommand)]
pub enum Check {
    /// A configuration file: all its problems, or how many requests it needs.
    #[command(after_help = "Example:\n  pdstool check config /etc/pds-exporter/pds-exporter.toml")]
    Config {
        /// Configuration file.
        #[arg(value_name = "FILE", default_value = DEFAULT_CONFIG)]
        file: PathBuf,
        /// The output format.
        #[command(flatten)]
        output: OutputArg,
    },
    /// A web configuration file, as --web.config.file takes it: TLS, users, client certificates, rate limit.
    #[command(after_help = "Example:\n  pdstool check web-config /etc/pds-exporter/web.yml")]
    WebConfig {
        /// Web configuration file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The output format.
        #[command(flatten)]
        output: OutputArg,
    },
    /// Tokens: their projects, expiry, and which of the needed calls they may make.
    #[command(
        after_help = "Examples:\n  pdstool check token\n  pdstool check token --base-url https://api.example.com --token-file token --project p-abc12345"
    )]
    Token(token::TokenArgs),
    /// What the service does where its interface is open: query names, range ends, late data, filters, limits.
    Service(service::CheckServiceArgs),
}

/// Runs the check.
///
/// # Errors
/// If a check fails.
pub async fn run(console: &mut Console, environment: &Environment, check: &Check) -> Result<(), ToolError> {
    match check {
        Check::Config { file, output } => configuration::run(console, environment, file, output.format),
        Check::WebConfig { file, output } => web::run(console, file, output.format),
        Check::Token(args) => token::run(console, environment, args).await,
        Check::Service(args) => service::run(console, environment, args).await,
    }
}
