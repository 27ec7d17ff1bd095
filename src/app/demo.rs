//! The daemon against a simulated service: no configuration, token or network needed.

use std::path::Path;

use tokio::net::TcpListener;

use pds_config::key::quoted;
use pds_config::{LoadError, Loaded};
use pds_core::clock::Clock;
use pds_simulator::{Settings, World};

/// Default address of the demo. Only this machine can reach it.
pub const LISTEN_ADDRESS: &str = "127.0.0.1:10090";

/// Short intervals, so that values appear at once and counters visibly grow.
const RHYTHM: &str = r#"
[poll]
interval = "5s"
settings_interval = "15s"
windows = ["5m", "1h"]
settle = "2s"
stale_after = "1m"

[accounting]
step = "5s"
"#;

/// Objectives of the slow apps, by the end of their ids. The other apps have none.
const OBJECTIVES: &[(&str, &str)] = &[
    ("-chat", "{ threshold = \"10s\", share = 0.95 }"),
    ("-batch", "{ threshold = \"1h\", share = 0.95 }"),
    ("-trainer", "{ threshold = \"15m\", share = 0.95 }"),
];

/// Starts a simulated service on `listener`, in this process; it lives as long as the runtime. Returns the configuration
/// that polls it.
///
/// # Errors
/// If the generated configuration is refused, which is a bug in this file.
pub fn start(listener: TcpListener, clock: Clock) -> Result<Loaded, LoadError> {
    let world = World::new(Settings::default(), clock);
    let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    tokio::spawn(pds_simulator::serve(world.clone(), listener));
    let text = configuration(&world, &address);
    pds_config::load_text(Path::new("the demo's configuration"), &text)
}

/// The configuration that polls all projects and apps of `world` at `address`.
fn configuration(world: &World, address: &str) -> String {
    let mut text = format!("[api]\nbase_url = \"http://{address}\"\n{RHYTHM}");
    for (project, apps) in world.projects() {
        let token = world.token(&project).map(|token| token.expose().to_owned()).unwrap_or_default();
        let apps: Vec<String> = apps.iter().map(|app| app_entry(app)).collect();
        text.push_str(&format!(
            "\n[[projects]]\nid = {}\ntoken = \"{token}\"\nlabels = {{ team = \"demo\" }}\napps = [{}]\n",
            quoted(&project),
            apps.join(", ")
        ));
    }
    text
}

/// An app as its id, or as a table if it has an objective.
fn app_entry(id: &str) -> String {
    let objective = OBJECTIVES.iter().find(|(end, _)| id.ends_with(end));
    match objective {
        Some((_, objective)) => format!("{{ id = {}, objective = {objective} }}", quoted(id)),
        None => quoted(id),
    }
}
