//! `pdstool simulate`: the simulator of the service as a server.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use pds_core::clock::Clock;
use pds_core::plain_file;
use pds_interface::CALLS;
use pds_simulator::{Fault, Kind, Quirks, Settings, World, faults};

use super::console::Console;
use super::error::ToolError;
use super::init;
use super::init::draft::{Draft, DraftProject};
use super::output::{OutputArg, OutputFormat};
use super::page;

/// `pdstool simulate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  pdstool simulate
  pdstool simulate --listen 127.0.0.1:0 --projects 100 --apps 10000
  pdstool simulate --write-config simulated.toml
  pdstool simulate --faults faults.json   # [{\"kind\": {\"latency\": {\"millis\": 500}}, \"call\": \"app\"}]

Besides the service: GET /simulator/truth?project=&app=&start=&end=, GET /simulator/requests,
GET, PUT and DELETE /simulator/faults, GET /simulator/projects")]
pub struct Simulate {
    /// Address to listen on; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10091")]
    pub listen: SocketAddr,
    /// Seed of projects, apps and traffic.
    #[arg(long, default_value_t = Settings::default().seed)]
    pub seed: u64,
    /// Number of projects.
    #[arg(long, default_value_t = Settings::default().projects, value_name = "COUNT")]
    pub projects: usize,
    /// Number of apps, spread evenly over the projects.
    #[arg(long, default_value_t = Settings::default().apps, value_name = "COUNT")]
    pub apps: usize,
    /// Lifetime of the tokens, such as 5m [default: unlimited].
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub token_lifetime: Option<Duration>,
    /// Write a configuration for the simulator to this file; replaces one written by this command.
    #[arg(long, value_name = "FILE")]
    pub write_config: Option<PathBuf>,
    /// File with a list of faults as JSON, as PUT /simulator/faults takes it.
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// The output format.
    #[command(flatten)]
    pub output: OutputArg,
    /// How the service differs from an ideal one.
    #[command(flatten)]
    pub habits: Habits,
    /// Certificate and key.
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// How the simulated service differs from an ideal one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Deviations from an ideal service")]
pub struct Habits {
    /// Share of requests and runs (0 to 1) that the metrics calls report late.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub late_share: f64,
    /// Longest delay of late data in seconds.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub late_within: u32,
    /// Include the last instant of a range.
    #[arg(long)]
    pub inclusive_ends: bool,
    /// Round ranges outwards to multiples of this many seconds; 0 for no rounding.
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub round_to: u32,
    /// Ignore the requested range, as with wrong query names; reply for the last hour.
    #[arg(long)]
    pub ignore_range: bool,
    /// Refuse longer ranges, such as 7d [default: no limit].
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub longest_range: Option<Duration>,
    /// Do not state the range in replies.
    #[arg(long)]
    pub unnamed_ranges: bool,
    /// Rename a query parameter, such as start=from; its default name is then ignored. Repeatable.
    #[arg(long, value_name = "NAME=OTHER", value_parser = renamed)]
    pub query_name: Vec<(String, String)>,
    /// Seconds by which the service's clock is ahead; negative for behind.
    #[arg(long, default_value_t = 0, value_name = "SECONDS", allow_negative_numbers = true)]
    pub clock_skew: i64,
    /// Send no Date header.
    #[arg(long)]
    pub undated: bool,
    /// Compress replies (gzip) for clients that accept it.
    #[arg(long)]
    pub compress: bool,
}

/// TLS of the simulated service.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Serve over TLS with this certificate chain (PEM). Clients can use HTTP/2.
    #[arg(long, value_name = "FILE", requires = "tls_key_file", conflicts_with = "write_config")]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_key_file: Option<PathBuf>,
    /// Do not offer HTTP/2 over TLS.
    #[arg(long, requires = "tls_cert_file")]
    pub no_http2: bool,
}

/// `NAME=OTHER` with the name of a query parameter.
fn renamed(text: &str) -> Result<(String, String), String> {
    let known: BTreeSet<&str> = CALLS.iter().flat_map(|call| call.query).map(|param| param.name).collect();
    match text.split_once('=') {
        Some((name, other)) if known.contains(name) && !other.is_empty() => {
            Ok((name.to_owned(), other.to_owned()))
        }
        _ => {
            let known: Vec<&str> = known.into_iter().collect();
            Err(format!("must be NAME=OTHER, with one of the names {}", known.join(", ")))
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
            ..Quirks::default()
        }
    }
}

impl TlsArgs {
    /// What accepts TLS connections, if certificate and key are given.
    fn acceptor(&self) -> Result<Option<TlsAcceptor>, ToolError> {
        let (Some(cert_file), Some(key_file)) = (&self.tls_cert_file, &self.tls_key_file) else {
            return Ok(None);
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(cert_file)
            .and_then(Iterator::collect)
            .map_err(|error| unusable(cert_file, &error))?;
        let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| unusable(key_file, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(cert_file, &error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| unusable(cert_file, &error))?;
        let protocols: &[&[u8]] = if self.no_http2 { &[b"http/1.1"] } else { &[b"h2", b"http/1.1"] };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Some(TlsAcceptor::from(Arc::new(config))))
    }
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> ToolError {
    ToolError::Usage(format!("cannot use {} for TLS: {error}", file.display()))
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
    let tls = args.tls.acceptor()?;
    let world = World::new(settings, clock);
    let mut faults = read_faults(args)?;
    if args.habits.clock_skew != 0 {
        faults.push(Kind::ClockSkew { seconds: args.habits.clock_skew }.into());
    }
    world.faults().set(faults);
    let unbound = |source| ToolError::System { doing: "cannot listen", source };
    let listener = TcpListener::bind(args.listen).await.map_err(unbound)?;
    let address = listener.local_addr().map_err(unbound)?;
    let base_url = format!("{}://{address}", if tls.is_some() { "https" } else { "http" });
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
    pds_simulator::serve_over(world, listener, tls, shutdown).await;
    Ok(())
}

/// Prints the address, and each project with its token and apps.
fn print(
    console: &mut Console,
    format: OutputFormat,
    base_url: &str,
    projects: &[DraftProject],
) -> Result<(), ToolError> {
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
            let projects = projects
                .iter()
                .map(|project| json!({ "id": project.id, "token": token(project), "apps": project.apps }));
            let projects: Vec<_> = projects.collect();
            page::print_json(console, &json!({ "base_url": base_url, "projects": projects }))?;
        }
        OutputFormat::Csv => {
            let row = |project: &DraftProject, app: &String| {
                vec![base_url.to_owned(), project.id.clone(), token(project), app.clone()]
            };
            let rows =
                projects.iter().flat_map(|project| project.apps.iter().map(move |app| row(project, app)));
            page::print_csv_rows(
                console,
                &["base_url", "project", "token", "app"],
                &rows.collect::<Vec<_>>(),
            )?;
        }
    }
    Ok(console.out.flush()?)
}

/// The first line of a configuration that this command wrote.
const TITLE: &str = "The configuration of pds-exporter for a simulated service.";

fn write_config(path: &Path, base_url: String, projects: Vec<DraftProject>) -> Result<(), ToolError> {
    let ours = match plain_file::read_text(path, plain_file::MAX_BYTES) {
        Ok(text) => text.starts_with(&format!("# {TITLE}")),
        Err(_) => !path.exists(),
    };
    if !ours {
        let message = format!("{} already exists and was not written by pdstool simulate", path.display());
        return Err(ToolError::Usage(message));
    }
    let draft = Draft { title: TITLE.to_owned(), base_url, token_file: None, projects };
    init::write(path, &draft.text(), true)
}

fn read_faults(args: &Simulate) -> Result<Vec<Fault>, ToolError> {
    let Some(path) = &args.faults else { return Ok(Vec::new()) };
    let read = plain_file::read(path, plain_file::MAX_BYTES);
    let json = read.map_err(|source| ToolError::File { doing: "cannot read", path: path.clone(), source })?;
    faults::parse(&json.bytes)
        .map_err(|problem| ToolError::Usage(format!("{} is not a list of faults: {problem}", path.display())))
}
