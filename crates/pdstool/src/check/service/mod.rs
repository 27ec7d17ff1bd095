//! `pdstool check service`: what the interface leaves open, found out by asking the live service.
//!
//! - [`asking`]: the requests, counted; [`patch`]: what is suggested, written into a configuration.
//! - [`ranges`]: query names, rounding, ends, the longest range.
//! - [`data`]: container filter, resolution, late data; [`exchange`]: clock, HTTP version, compression.

pub mod asking;
pub mod data;
pub mod exchange;
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
use pds_exporter::config::Config;

use asking::Asking;
use patch::Line;

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

/// The remedy of a finding that one suggested line corrects.
pub const ADD_LINE: &str = "Add the line below to the configuration.";

/// What one check finds.
#[derive(Debug)]
#[must_use]
pub struct Found {
    state: State,
    text: String,
    remedy: &'static str,
    /// The lines of a configuration that correct it.
    lines: Vec<Line>,
}

impl Found {
    fn new(state: State, text: impl Into<String>, remedy: &'static str) -> Self {
        Self { state, text: text.into(), remedy, lines: Vec::new() }
    }

    /// What is well.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(State::Ok, text, "")
    }

    /// What is good to know.
    pub fn note(text: impl Into<String>) -> Self {
        Self::new(State::Note, text, "")
    }

    /// What works, but badly.
    pub fn warning(text: impl Into<String>, remedy: &'static str) -> Self {
        Self::new(State::Warning, text, remedy)
    }

    /// What does not work.
    pub fn problem(text: impl Into<String>, remedy: &'static str) -> Self {
        Self::new(State::Problem, text, remedy)
    }

    /// The same, corrected by a line of the configuration: section, key and value as TOML.
    pub fn with(mut self, section: &'static str, key: &'static str, value: impl Into<String>) -> Self {
        self.lines.push((section, key, value.into()));
        self
    }
}

/// What was found, and what it suggests.
#[derive(Debug, Default)]
pub struct Findings {
    /// The findings.
    pub report: Report,
    /// The suggested lines.
    pub lines: Vec<Line>,
    /// Warnings and problems that no line corrects.
    pub left: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, check: &'static str, found: impl IntoIterator<Item = Found>) {
        for found in found {
            match found.state {
                State::Ok => self.report.ok(check, found.text),
                State::Note => self.report.note(check, found.text),
                State::Warning => self.report.warning(check, found.text, found.remedy),
                State::Problem => self.report.problem(check, found.text, found.remedy),
            }
            if found.state >= State::Warning && found.lines.is_empty() {
                self.left.extend(self.report.findings().last().cloned());
            }
            self.lines.extend(found.lines);
        }
    }

    /// The lines as TOML, each section once.
    fn toml(&self) -> String {
        let mut text = String::new();
        for (index, (section, ..)) in self.lines.iter().enumerate() {
            let of_section = |(of, ..): &&Line| of == section;
            if self.lines.iter().take(index).any(|line| of_section(&line)) {
                continue;
            }
            text.push_str(&format!("\n[{section}]"));
            for (_, key, value) in self.lines.iter().filter(of_section) {
                text.push_str(&format!("\n{key} = {value}"));
            }
        }
        text
    }

    fn print(&self, console: &mut Console, format: OutputFormat, requests: usize) -> Result<(), ToolError> {
        if format == OutputFormat::Json {
            let mut json = self.report.json();
            let line = |(section, key, value): &Line| (format!("{section}.{key}"), Value::from(&**value));
            json["suggested"] = self.lines.iter().map(line).collect::<Map<String, Value>>().into();
            json["requests"] = requests.into();
            return Ok(page::print_json(console, &json)?);
        }
        self.report.print(console, format)?;
        if format != OutputFormat::Csv {
            if !self.lines.is_empty() {
                let heading = console.styled(STRONG, "Suggested configuration");
                console.print(&format!("\n{heading}{}", self.toml()))?;
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
        let late = match args.late_for {
            Some(period) => data::late(console, &mut asking, period).await?,
            None => Found::note("not watched; use --late-for 10m"),
        };
        findings.add("late data", [late]);
    }
    findings.add("clock", [exchange::clock(&asking)]);
    findings.add("http", exchange::http(&mut asking).await);
    findings.print(console, args.output.format, asking.sent)?;
    if !args.write || findings.lines.is_empty() {
        return findings.report.result();
    }
    let file = &args.service.config_file;
    patch::file(file, &findings.lines, environment)?;
    let lines = units::counted(findings.lines.len(), "line", "lines");
    console
        .say(&format!("Wrote {lines} into {}. A running exporter takes them at a reload.", file.display()));
    if findings.left.is_empty() { Ok(()) } else { findings.report.result() }
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
    asking.choose(apps).await?;
    let requests = units::count(asking.total);
    let text = format!("{}, with {requests} requests in the hour examined", asking.app.1);
    findings.add("app", [Found::ok(text)]);
    let (heeded, found) = ranges::names(asking).await?;
    findings.add("query names", found);
    if heeded {
        findings.add("rounding", [ranges::rounding(asking).await?]);
        findings.add("range ends", [ranges::ends(asking).await?]);
        findings.add("longest range", [ranges::longest(asking).await?]);
        findings.add("container filter", [data::filter(asking).await?]);
        findings.add("resolution", data::resolution(asking).await?);
    }
    Ok(heeded)
}

/// The apps to choose from, with their projects.
fn apps(config: &Config, args: &CheckServiceArgs) -> Result<Vec<(String, String)>, ToolError> {
    let configured = config
        .projects
        .iter()
        .flat_map(|project| project.apps.iter().map(|app| (project.id.to_string(), app.id.to_string())));
    let apps: Vec<(String, String)> = match (&args.app, &args.project) {
        (Some(app), Some(project)) => vec![(project.clone(), app.clone())],
        (Some(app), None) => configured.filter(|(_, known)| known == app).collect(),
        (None, Some(project)) => configured.filter(|(known, _)| known == project).take(5).collect(),
        (None, None) => configured.take(5).collect(),
    };
    if apps.is_empty() {
        let message = "no app to ask about is configured; use --project and --app";
        return Err(ToolError::Usage(message.to_owned()));
    }
    Ok(apps)
}
