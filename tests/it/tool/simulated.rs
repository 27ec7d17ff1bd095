//! The simulated service that other tests ask, and the tokens that `pdstool simulate` prints.

use std::io::BufRead as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pds_core::clock::Clock;
use pds_simulator::{Settings, World, serve};
use serde_json::Value;

use super::pdstool;

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
