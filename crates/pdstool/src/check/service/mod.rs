//! `pdstool check service`: what the interface leaves open, found out by asking the live service.
//!
//! - [`asking`]: the requests, counted; [`patch`]: what is suggested, written into a configuration.
//! - [`ranges`]: query names, rounding, ends, the longest range; [`late`]: late data.
//! - [`filters`]: container filter and resolution; [`exchange`]: HTTP version, compression.

pub mod asking;
pub mod exchange;
pub mod filters;
pub mod late;
pub mod patch;
pub mod ranges;

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};

use crate::console::{Console, STRONG};
use crate::error::ToolError;
use crate::output::{OutputArg, OutputFormat};
use crate::page;
use crate::report::{Finding, Report, State};
use crate::service::{Environment, Service, ServiceArgs};
use pds_core::units;

use asking::Asking;

/// `pdstool check service`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Sends at most 60 GET requests, mostly for an hour that ended two hours ago; with --late-for 25 more. \
Prints findings, and configuration lines to fix them; --write writes these into the configuration file.

Exit code: 0 if the configuration fits the service, 1 if it should be changed.

Examples:
  pdstool check service
  pdstool check service --write
  pdstool check service --app p-abc12345-ranker --late-for 10m
  pdstool check service --base-url https://api.example.com --token-file token --project p-abc12345 --app p-abc12345-ranker"
)]
pub struct CheckServiceArgs {
    /// Project of --app [default: the configured project that has it].
    #[arg(long, value_name = "ID", env = "PDSTOOL_PROJECT", hide_env_values = true)]
    project: Option<String>,

    /// App with traffic [default: the busiest of the first five configured].
    #[arg(long, value_name = "ID")]
    app: Option<String>,

    /// Watch for late data this long, such as 10m, and suggest poll.settle.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    late_for: Option<Duration>,

    /// Write the suggested lines into the configuration file; its comments stay.
    #[arg(long, conflicts_with = "base_url")]
    write: bool,

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    service: ServiceArgs,
}

/// What was found, and what it suggests.
#[derive(Debug, Default)]
pub struct Findings {
    /// The findings.
    pub report: Report,
    /// Section, key and value as TOML.
    pub lines: Vec<(&'static str, &'static str, String)>,
    /// The findings that the lines correct, by place in the report.
    corrected: Vec<usize>,
}

impl Findings {
    /// Suggests a line of the configuration that corrects the last finding.
    pub fn suggest(&mut self, section: &'static str, key: &'static str, value: impl Into<String>) {
        self.lines.push((section, key, value.into()));
        self.corrected.push(self.report.findings().len().saturating_sub(1));
    }

    /// Warnings and problems that no line corrects.
    pub fn left(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.report.findings().iter().enumerate();
        let wrong = findings.filter(|(_, finding)| finding.state >= State::Warning);
        wrong.filter(|(place, _)| !self.corrected.contains(place)).map(|(_, finding)| finding)
    }

    /// The lines as TOML.
    fn toml(&self) -> Vec<String> {
        let mut sections: Vec<&str> = Vec::new();
        for (section, ..) in &self.lines {
            if !sections.contains(section) {
                sections.push(section);
            }
        }
        let lines = |section: &str| {
            let lines = self.lines.iter().filter(|(of, ..)| *of == section);
            let lines: Vec<String> = lines.map(|(_, key, value)| format!("{key} = {value}")).collect();
            format!("[{section}]\n{}", lines.join("\n"))
        };
        sections.into_iter().map(lines).collect()
    }

    fn print(&self, console: &mut Console, format: OutputFormat, requests: usize) -> Result<(), ToolError> {
        if format == OutputFormat::Json {
            let mut json = self.report.json();
            let keys = self.lines.iter();
            let keys = keys.map(|(section, key, value)| (format!("{section}.{key}"), Value::from(&**value)));
            json["suggested"] = keys.collect::<Map<String, Value>>().into();
            json["requests"] = requests.into();
            return Ok(page::print_json(console, &json)?);
        }
        self.report.print(console, format)?;
        if format != OutputFormat::Csv {
            let toml = self.toml();
            if !toml.is_empty() {
                let heading = console.styled(STRONG, "Suggested configuration");
                console.print(&format!("\n{heading}\n{}", toml.join("\n")))?;
            }
            console.print(&format!("\n{} sent", units::counted(requests, "GET request", "GET requests")))?;
        }
        Ok(console.out.flush()?)
    }
}

/// Asks the service and prints what was found.
///
/// # Errors
/// If there is no app to ask about or no answer, or the configuration does not suit the service.
pub async fn run(
    console: &mut Console,
    environment: &Environment,
    args: &CheckServiceArgs,
) -> Result<(), ToolError> {
    let config = args.service.load(environment)?;
    let apps = apps(&config, args)?;
    let mut asking = Asking::new(Service::new(config)?);
    let mut findings = Findings::default();
    if examine(&mut asking, &mut findings, &apps).await? {
        match args.late_for {
            Some(period) => late::watch(console, &mut asking, &mut findings, period).await?,
            None => findings.report.note("late data", "not watched; use --late-for 10m"),
        }
    }
    exchange::clock(&asking, &mut findings);
    exchange::check(&mut asking, &mut findings).await;
    findings.print(console, args.output.format, asking.sent)?;
    if !args.write || findings.lines.is_empty() {
        return findings.report.result();
    }
    let file = &args.service.config_file;
    patch::file(file, &findings.lines, environment)?;
    let lines = units::counted(findings.lines.len(), "line", "lines");
    console
        .say(&format!("Wrote {lines} into {}. A running exporter takes them at a reload.", file.display()));
    if findings.left().next().is_none() { Ok(()) } else { findings.report.result() }
}

/// Finds out about ranges, filters and resolution by asking about the busiest of `apps`. Returns whether the service
/// heeds any names of a range; without, nothing else can be found out.
///
/// # Errors
/// If the service does not answer.
pub async fn examine(
    asking: &mut Asking,
    findings: &mut Findings,
    apps: &[(String, String)],
) -> Result<bool, ToolError> {
    let requests = asking.choose(apps).await?;
    findings
        .report
        .ok("app", format!("{}, with {} requests in the hour examined", asking.app, units::count(requests)));
    let heeded = ranges::names(asking, findings).await?;
    if heeded {
        ranges::rounding(asking, findings).await?;
        ranges::ends(asking, findings).await?;
        ranges::longest(asking, findings).await?;
        filters::container(asking, findings).await?;
        filters::resolution(asking, findings).await?;
    }
    Ok(heeded)
}

/// The apps to choose from, with their projects.
fn apps(
    config: &pds_exporter::config::Config,
    args: &CheckServiceArgs,
) -> Result<Vec<(String, String)>, ToolError> {
    let configured = config
        .projects
        .iter()
        .flat_map(|project| project.apps.iter().map(|app| (project.id.to_string(), app.id.to_string())));
    let apps: Vec<(String, String)> = match (&args.app, &args.project) {
        (Some(app), Some(project)) => vec![(project.clone(), app.clone())],
        (Some(app), None) => configured.filter(|(_, known)| known == app).collect(),
        (None, project) => configured
            .filter(|(known, _)| project.as_ref().is_none_or(|project| project == known))
            .take(5)
            .collect(),
    };
    if apps.is_empty() {
        let message = "no app to ask about is configured; use --project and --app";
        return Err(ToolError::Usage(message.to_owned()));
    }
    Ok(apps)
}
