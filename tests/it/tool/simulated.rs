//! Every call against the simulated service, with what it changes.

use std::io::BufRead as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pds_core::clock::Clock;
use pds_simulator::{Settings, World, serve};
use serde_json::Value;

use super::{ended, pdstool, stdout};

/// The simulated service on a free port, in threads of its own.
pub(crate) struct Simulated {
    pub(crate) world: World,
    pub(crate) url: String,
    _runtime: tokio::runtime::Runtime,
}

impl Simulated {
    pub(crate) fn start() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world = World::new(settings, Clock::system());
        runtime.spawn(serve(world.clone(), listener, None, std::future::pending()));
        Self { world, url, _runtime: runtime }
    }

    /// Makes a call of the first project that is to end with `code`; its reply.
    fn call(&self, arguments: &str, code: i32) -> String {
        let (project, _) = &self.world.projects()[0];
        let mut command = pdstool(&["call", "--project", project, "--base-url", &self.url, "--yes"]);
        command.args(arguments.split(' ').filter(|word| !word.is_empty()));
        command.env("PDS_EXPORTER__API__TOKEN", self.world.token(project).unwrap().expose());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {}", ended(&output));
        stdout(&output)
    }

    fn json(&self, arguments: &str) -> Value {
        let reply = self.call(arguments, 0);
        serde_json::from_str(&reply).unwrap_or_else(|error| panic!("{arguments}: {error}: {reply}"))
    }
}

#[test]
fn all_calls_have_their_effect() {
    let service = Simulated::start();
    let (project, apps) = service.world.projects()[0].clone();
    let app = &apps[0];
    assert_eq!(service.json("projects list")[0]["id"], *project);
    let build = service.json(&format!("app get {app}"))["latestBuildId"].as_str().unwrap().to_owned();
    service.json(&format!("build zip-contents {app} {build}"));
    let times = service.json(&format!("metrics response-time {app} --start 2h --end 1h --resolution medium"));
    assert_eq!(times["status"], "success");
    assert_eq!(service.json(&format!("metrics run-execution-time {app} --start 2h"))["status"], "success");
    service.json("volume-alerts");
    let repo = app.strip_prefix(&*project).and_then(|name| name.strip_prefix('-')).unwrap();
    assert!(!service.json(&format!("repo branches acme {repo}"))["branches"].as_array().unwrap().is_empty());
    service.json(&format!("repo tree acme {repo} --path src"));
    assert!(service.call("payment-url", 0).starts_with("http"));
    assert_eq!(service.json("api-key create --name ci --expires-at 2999-01-31")["name"], "ci");
    service.json("plan change enterprise");

    let domains = service.json("domains list");
    let assigned = domains["domains"].as_array().unwrap().iter().find(|domain| domain["appId"].is_string());
    let domain = assigned.unwrap()["id"].as_str().unwrap();
    service.call(&format!("domains validate {domain}"), 0);
    service.call(&format!("domains unassign {domain}"), 0);
    service.call(&format!("domains delete {domain}"), 0);
    let left = service.json("domains list");
    assert!(left["domains"].as_array().unwrap().iter().all(|known| known["id"] != domain), "{left}");
    service.call(&format!("app delete {app}"), 0);
    service.call(&format!("app get {app}"), 3);
}

#[test]
fn tokens_expire_after_the_lifetime_given() {
    let mut simulator = pdstool(&["simulate", "--listen", "127.0.0.1:0", "--token-lifetime", "1h"]);
    let mut simulator = simulator.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufReader::new(simulator.stdout.take().unwrap()).lines();
    let token =
        lines.map(Result::unwrap).find_map(|line| Some(line.strip_prefix("token")?.trim().to_owned()));
    simulator.kill().unwrap();
    simulator.wait().unwrap();
    let token = token.unwrap();
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let expiry = serde_json::from_slice::<Value>(&claims).unwrap()["exp"].as_i64().unwrap();
    let left = expiry - jiff::Timestamp::now().as_second();
    assert!((3500..=3600).contains(&left), "{left} seconds left");
}
