//! `pdstool simulate`: the simulator of the service as a server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;

use pds_core::clock::Clock;
use pds_core::plain_file;
use pds_simulator::{Fault, Settings, World, faults};

use super::console::Console;
use super::error::{Result, ToolError};
use super::init::draft::{Draft, DraftProject};
use super::options::{OutputArg, OutputFormat, write_private};
use super::output::{self, Table};

/// `pdstool simulate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  pdstool simulate
  pdstool simulate --listen 127.0.0.1:0 --projects 100 --apps 10000
  pdstool simulate --write-config simulated.toml
  pdstool simulate --faults faults.json   # [{\"kind\": {\"latency\": {\"millis\": 500}}, \"call\": \"app\"}]

Besides the service: GET /simulator/truth?project=&app=&start=&end=, GET /simulator/requests,
PUT /simulator/faults (replaces all faults)")]
pub struct Simulate {
    /// Address to listen on; port 0 picks a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10091")]
    pub listen: SocketAddr,
    /// The simulated service.
    #[command(flatten)]
    pub settings: Settings,
    /// Lifetime of the tokens, such as 5m [default: unlimited].
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, help_heading = None)]
    pub token_lifetime: Option<Duration>,
    /// Write a configuration for the simulator to this file; replaces a file that this command wrote.
    #[arg(long, value_name = "FILE", help_heading = None)]
    pub write_config: Option<PathBuf>,
    /// File with a JSON list of faults, as PUT /simulator/faults accepts it.
    #[arg(long, value_name = "FILE", help_heading = None)]
    pub faults: Option<PathBuf>,
    /// The output format.
    #[command(flatten, next_help_heading = None)]
    pub output: OutputArg,
}

/// Listens, prints address and tokens, and serves until Ctrl-C.
///
/// # Errors
/// If the faults are invalid, the address cannot be bound, or the output cannot be written.
pub async fn run(console: &mut Console, args: &Simulate) -> Result<()> {
    let clock = Clock::system();
    let expiry = args.token_lifetime.map(|lifetime| clock.now().saturating_add(lifetime));
    let expiry =
        expiry.transpose().map_err(|error| ToolError::Usage(format!("--token-lifetime: {error}")))?;
    let world = World::new(args.settings.clone(), clock);
    world.faults().set(read_faults(args)?);
    let unbound = |error| ToolError::failed(format!("--listen {}: cannot listen: {error}", args.listen));
    let listener = TcpListener::bind(args.listen).await.map_err(unbound)?;
    let address = listener.local_addr().map_err(unbound)?;
    let base_url = format!("http://{address}");
    let mut projects = Vec::new();
    for (project, apps) in world.projects() {
        // A simulated token is no secret: it only opens this simulator.
        let token = world.token_until(&project, expiry).map(|token| token.expose().to_owned());
        projects.push(DraftProject {
            id: project.to_string(),
            token,
            apps: apps.iter().map(ToString::to_string).collect(),
            ..DraftProject::default()
        });
    }
    print(console, args.output.format, &base_url, &projects)?;
    if let Some(path) = &args.write_config {
        write_config(path, base_url, projects)?;
        console.say(&format!("wrote {}", path.display()));
    }
    tokio::select! {
        () = pds_simulator::serve(world, listener) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

/// Prints the address, and each project with token and apps.
fn print(
    console: &mut Console,
    format: OutputFormat,
    base_url: &str,
    projects: &[DraftProject],
) -> Result<()> {
    let token = |project: &DraftProject| project.token.clone().unwrap_or_default();
    match format {
        OutputFormat::Table | OutputFormat::Wide => {
            console.print(&format!("base_url  {base_url}"))?;
            for project in projects {
                console.print(&format!("\nproject   {}\ntoken     {}", project.id, token(project)))?;
                for app in &project.apps {
                    console.print(&format!("app       {app}"))?;
                }
            }
        }
        OutputFormat::Json => {
            output::print_json(console, &json!({ "base_url": base_url, "projects": projects }))?;
        }
        OutputFormat::Csv => {
            let row = |project: &DraftProject, app: &String| {
                vec![base_url.to_owned(), project.id.clone(), token(project), app.clone()]
            };
            let rows =
                projects.iter().flat_map(|project| project.apps.iter().map(move |app| row(project, app)));
            let table = Table::of_texts(["BASE_URL", "PROJECT", "TOKEN", "APP"], rows, "");
            output::print_csv(console, &table)?;
        }
    }
    Ok(console.out.flush()?)
}

/// The first line of a configuration that this command wrote.
const TITLE: &str = "The configuration of pds-exporter for a simulated service.";

fn write_config(path: &Path, base_url: String, projects: Vec<DraftProject>) -> Result<()> {
    let ours = match plain_file::read_text(path, plain_file::MAX_BYTES) {
        Ok(text) => text.starts_with(&format!("# {TITLE}")),
        Err(_) => !path.exists(),
    };
    if !ours {
        let message = format!("{} already exists and was not written by pdstool simulate", path.display());
        return Err(ToolError::Usage(message));
    }
    let draft = Draft { title: TITLE.to_owned(), base_url, token_file: None, projects, ..Draft::default() };
    write_private(path, &draft.text(), true)
}

fn read_faults(args: &Simulate) -> Result<Vec<Fault>> {
    let Some(path) = &args.faults else { return Ok(Vec::new()) };
    let read = plain_file::read(path, plain_file::MAX_BYTES);
    let json = read.map_err(ToolError::file("cannot read", path))?;
    faults::parse(&json.bytes)
        .map_err(|problem| ToolError::Usage(format!("{} is not a list of faults: {problem}", path.display())))
}
