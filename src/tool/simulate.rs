//! `pdstool simulate`: the simulator of the service as a server.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;

use crate::clock::Clock;
use crate::interface::CALLS;
use crate::simulator::{self, Fault, Kind, Quirks, Settings, World, faults};

use super::console::Console;
use super::error::ToolError;
use super::init;
use super::init::draft::{Draft, DraftProject};

/// Address and size of the simulated service.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  pdstool simulate
  pdstool simulate --listen 127.0.0.1:0 --projects 100 --apps 10000
  pdstool simulate --write-config simulated.toml
  pdstool simulate --faults faults.json   # [{\"kind\": {\"latency\": {\"millis\": 500}}, \"call\": \"app\"}]

Beside the service: GET /simulator/truth?project=&app=&start=&end=, GET /simulator/requests,
GET, PUT and DELETE /simulator/faults, GET /simulator/projects")]
pub struct Simulate {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10091")]
    pub listen: SocketAddr,
    /// Seed of projects, apps and traffic; the same seed gives the same ones.
    #[arg(long, default_value_t = Settings::default().seed)]
    pub seed: u64,
    /// How many projects there are.
    #[arg(long, default_value_t = Settings::default().projects, value_name = "COUNT")]
    pub projects: usize,
    /// How many apps there are in all, spread evenly over the projects.
    #[arg(long, default_value_t = Settings::default().apps, value_name = "COUNT")]
    pub apps: usize,
    /// How long the tokens are valid, such as 5m [default: for ever].
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub token_lifetime: Option<Duration>,
    /// Write a configuration for the simulator to this file; one written so before is replaced.
    #[arg(long, value_name = "FILE")]
    pub write_config: Option<PathBuf>,
    /// How the service differs from an ideal one.
    #[command(flatten)]
    pub habits: Habits,
    /// A file of faults as JSON: a list as PUT /simulator/faults takes it.
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
}

/// How the simulated service differs from an ideal one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Habits of the service")]
pub struct Habits {
    /// The share of requests and runs (0 to 1) that the metrics calls learn of late.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub late_share: f64,
    /// The longest delay of what is late, in seconds.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub late_within: u32,
    /// Ranges include their last instant.
    #[arg(long)]
    pub inclusive_ends: bool,
    /// Ranges are rounded outwards to multiples of this many seconds; 0 for as they are asked for.
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub round_to: u32,
    /// The range that is asked for is ignored, as with other query names; the last hour is answered.
    #[arg(long)]
    pub ignore_range: bool,
    /// Ranges longer than this are refused, such as 7d [default: none is].
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub longest_range: Option<Duration>,
    /// Replies do not say which range they are about.
    #[arg(long)]
    pub unnamed_ranges: bool,
    /// Another name of a query parameter, such as start=from; repeatable. Its default name is ignored then.
    #[arg(long, value_name = "NAME=OTHER", value_parser = renamed)]
    pub query_name: Vec<(String, String)>,
    /// How far the service's clock is ahead, in seconds; behind if negative.
    #[arg(long, default_value_t = 0, value_name = "SECONDS", allow_negative_numbers = true)]
    pub clock_skew: i64,
    /// Replies have no Date header.
    #[arg(long)]
    pub undated: bool,
    /// Replies are compressed (gzip) if the client accepts that.
    #[arg(long)]
    pub compress: bool,
}

/// `NAME=OTHER` with the name of a query parameter.
fn renamed(text: &str) -> Result<(String, String), String> {
    let known = || CALLS.iter().flat_map(|call| call.query).map(|param| param.name);
    match text.split_once('=') {
        Some((name, other)) if known().any(|known| known == name) && !other.is_empty() => {
            Ok((name.to_owned(), other.to_owned()))
        }
        _ => {
            let mut names: Vec<&str> = known().collect();
            names.sort_unstable();
            names.dedup();
            Err(format!("write NAME=OTHER; the names are {}", names.join(", ")))
        }
    }
}

impl Habits {
    fn quirks(&self) -> Quirks {
        let seconds = |duration: Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
        Quirks {
            late_share: self.late_share,
            late_within: self.late_within,
            inclusive_ends: self.inclusive_ends,
            round_to: self.round_to,
            ignores_range: self.ignore_range,
            longest_range: self.longest_range.map_or(0, seconds),
            unnamed_ranges: self.unnamed_ranges,
            undated: self.undated,
            compresses: self.compress,
        }
    }
}

/// Listens, prints address and tokens, and serves until `shutdown` completes.
///
/// # Errors
/// If the faults are invalid, the address cannot be bound, or the output cannot be written.
pub async fn run(
    console: &mut Console,
    args: &Simulate,
    clock: Clock,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ToolError> {
    let settings = Settings {
        seed: args.seed,
        projects: args.projects,
        apps: args.apps,
        quirks: args.habits.quirks(),
        names: args.habits.query_name.clone(),
        ..Settings::default()
    };
    let expiry = args.token_lifetime.map(|lifetime| clock.now().saturating_add(lifetime));
    let expiry =
        expiry.transpose().map_err(|error| ToolError::Usage(format!("--token-lifetime: {error}")))?;
    let world = World::new(settings, clock);
    let mut faults = read_faults(args)?;
    if args.habits.clock_skew != 0 {
        faults.push(Kind::ClockSkew { seconds: args.habits.clock_skew }.into());
    }
    world.faults().set(faults);
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|source| ToolError::System { doing: "cannot listen", source })?;
    let address =
        listener.local_addr().map_err(|source| ToolError::System { doing: "cannot listen", source })?;
    console.print(&format!("base_url  http://{address}"))?;
    let mut projects = Vec::new();
    for (project, apps) in world.projects() {
        console.print(&format!("\nproject   {project}"))?;
        let token = match expiry {
            Some(expiry) => world.token_expiring(&project, expiry),
            None => world.token(&project),
        };
        // A simulated token is no secret: it only opens this simulator.
        let token = token.map(|token| token.expose().to_owned());
        if let Some(token) = &token {
            console.print(&format!("token     {token}"))?;
        }
        projects.push(DraftProject {
            id: project.to_string(),
            token,
            apps: apps.iter().map(ToString::to_string).collect(),
            ..DraftProject::default()
        });
        for app in apps {
            console.print(&format!("app       {app}"))?;
        }
    }
    console.out.flush()?;
    if let Some(path) = &args.write_config {
        write_config(path, format!("http://{address}"), projects)?;
        console.say(&format!("wrote {}", path.display()));
    }
    simulator::serve(world, listener, shutdown).await;
    Ok(())
}

/// The first line of a configuration that this command wrote.
const TITLE: &str = "The configuration of pds-exporter for a simulated service.";

fn write_config(path: &Path, base_url: String, projects: Vec<DraftProject>) -> Result<(), ToolError> {
    let ours = match std::fs::read_to_string(path) {
        Ok(text) => text.starts_with(&format!("# {TITLE}")),
        Err(_) => !path.exists(),
    };
    if !ours {
        let message = format!("{} is there already and not of a simulator: it is left alone", path.display());
        return Err(ToolError::Usage(message));
    }
    let draft = Draft { title: TITLE.to_owned(), base_url, token_file: None, projects };
    init::write(path, &draft.text(), true)
}

fn read_faults(args: &Simulate) -> Result<Vec<Fault>, ToolError> {
    let Some(path) = &args.faults else { return Ok(Vec::new()) };
    let json = std::fs::read(path).map_err(|source| ToolError::File {
        doing: "cannot read",
        path: path.clone(),
        source,
    })?;
    faults::parse(&json)
        .map_err(|problem| ToolError::Usage(format!("{} is no list of faults: {problem}", path.display())))
}
