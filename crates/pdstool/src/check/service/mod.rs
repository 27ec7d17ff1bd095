//! `pdstool check service`: determines by requests to the service what the interface leaves open.
//!
//! - [`probe`]: the requests, counted.
//! - [`ranges`]: query names, rounding, ends, the longest range.
//! - [`data`]: container filter, resolution, late data.

pub mod data;
pub mod probe;
pub mod ranges;

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};

use crate::console::{Console, STRONG};
use crate::error::Result;
use crate::options::{OutputArg, OutputFormat};
use crate::output;
use crate::report::{Finding, Line, Report, grouped};
use crate::service::{self, Environment, ServiceArgs};
use pds_core::units;

use probe::Prober;

/// `pdstool check service`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Sends at most 70 GET requests, mostly for an hour that ended two hours ago; with --late-for, 25 more. \
Prints findings, and the configuration lines that fix them.

Exit code: 0 if the configuration fits the service, 1 if it should be changed.

Examples:
  pdstool check service
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

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    service: ServiceArgs,
}

/// The most apps among which to look for the busiest.
pub const MAX_EXAMINED: usize = 5;

/// The remedy of a finding that a suggested line corrects.
pub const ADD_LINE: &str = "Add the line below to the configuration.";

/// Prints the findings, and the lines that they suggest; if they are not `complete`, without a summary, as an error
/// follows.
fn print(
    console: &mut Console,
    report: &Report,
    format: OutputFormat,
    requests: usize,
    complete: bool,
) -> Result<()> {
    let lines = report.lines();
    if format == OutputFormat::Json {
        let mut json = report.json();
        let line = |(section, key, value): &Line| (format!("{section}.{key}"), Value::from(&**value));
        json["suggested"] = lines.iter().map(line).collect::<Map<String, Value>>().into();
        json["requests"] = requests.into();
        json["complete"] = complete.into();
        return Ok(output::print_json(console, &json)?);
    }
    match complete || !format.is_for_people() {
        true => report.print(console, format)?,
        false => report.print_findings(console, "")?,
    }
    if format != OutputFormat::Csv {
        if !lines.is_empty() {
            let heading = console.styled(STRONG, "Suggested configuration");
            console.print(&format!("\n{heading}{}", toml(&lines)))?;
        }
        console.print(&format!("\n{} sent", units::plural(requests, "GET request", "GET requests")))?;
    }
    Ok(console.out.flush()?)
}

/// The lines as TOML, each section once.
pub fn toml(lines: &[Line]) -> String {
    let lines = lines.iter().map(|(section, key, value)| (section, format!("\n{key} = {value}")));
    grouped(lines).iter().map(|(section, lines)| format!("\n[{section}]{}", lines.concat())).collect()
}

/// Queries the service and prints the findings.
///
/// # Errors
/// If there is no app to query or no reply, or the configuration does not suit the service.
pub async fn run(console: &mut Console, environment: &Environment, args: &CheckServiceArgs) -> Result<()> {
    let config = args.service.load(environment)?;
    let mut apps = service::meant_apps(&config, args.project.as_deref(), args.app.as_slice())?;
    apps.truncate(MAX_EXAMINED);
    let mut prober = Prober::new(config)?;
    let mut report = Report::default();
    let ended = examine_all(console, &mut prober, &mut report, &apps, args).await;
    // An error follows the findings before it.
    if ended.is_ok() || !report.is_empty() {
        print(console, &report, args.output.format, prober.sent, ended.is_ok())?;
    }
    ended?;
    report.result()
}

/// Makes all checks that `args` select.
async fn examine_all(
    console: &mut Console,
    prober: &mut Prober,
    report: &mut Report,
    apps: &[(String, String)],
    args: &CheckServiceArgs,
) -> Result<()> {
    if examine(prober, report, apps).await? {
        let late = match args.late_for {
            Some(period) => data::late(console, prober, period).await?,
            None => Finding::note("not watched; use --late-for 10m"),
        };
        report.add("late data", [late]);
    }
    report.add("clock", [service::clock(&prober.skews)]);
    Ok(())
}

/// Determines ranges, filters and resolution with requests about the busiest of `apps`. Returns whether the service
/// honours any query names of a range; otherwise nothing else can be determined.
///
/// # Errors
/// If the service does not answer.
pub async fn examine(prober: &mut Prober, report: &mut Report, apps: &[(String, String)]) -> Result<bool> {
    prober.choose(apps).await?;
    let requests = units::rounded(prober.total);
    let text = format!("{}, with {requests} requests in the hour examined", prober.app.1);
    report.add("app", [Finding::ok(text)]);
    let (heeded, found) = ranges::names(prober).await?;
    report.add("query names", found);
    if heeded {
        report.add("rounding", [ranges::rounding(prober).await?]);
        report.add("range ends", [ranges::ends(prober).await?]);
        report.add("longest range", [ranges::longest(prober).await?]);
        report.add("container filter", [data::filter(prober).await?]);
        report.add("resolution", data::resolution(prober).await?);
    }
    Ok(heeded)
}
