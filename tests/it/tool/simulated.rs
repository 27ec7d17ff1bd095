//! The simulated service that other tests ask, and the tokens that `pdstool simulate` prints.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pds_core::clock::Clock;
use pds_simulator::{Settings, World};
use serde_json::Value;

use super::pdstool;
use crate::rig;

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
        let world = World::new(settings, Clock::system());
        let url = runtime.block_on(rig::serve(&world));
        Self { world, url, _runtime: runtime }
    }
}

/// `pdstool simulate` as a process, which ends with this, and its first lines.
pub(super) struct Process {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    pub(super) printed: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// With one project. Waits until it has printed an app.
    pub(super) fn simulate(flags: &[&str]) -> Self {
        Self::until(|line| line.starts_with("app"), &[&["--projects", "1"], flags].concat())
    }

    /// Waits until it has printed a line for which `is_last` is true.
    pub(super) fn until(is_last: impl Fn(&str) -> bool, flags: &[&str]) -> Self {
        let mut command = pdstool(&["simulate", "--listen", "127.0.0.1:0"]);
        let mut child = command.args(flags).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdout, mut printed) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        while !printed.lines().last().is_some_and(&is_last) {
            assert!(stdout.read_line(&mut printed).unwrap() > 0, "{printed}");
        }
        Self { child, _stdout: stdout, printed }
    }

    pub(super) fn said(&self, name: &str) -> &str {
        self.printed.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim()
    }
}

/// The claims of a token.
pub(crate) fn claims(token: &str) -> Value {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice(&claims).unwrap()
}

#[test]
fn tokens_expire_after_the_lifetime_given() {
    let simulator = Process::simulate(&["--token-lifetime", "1h"]);
    let expiry = claims(simulator.said("token"))["exp"].as_i64().unwrap();
    let left = expiry - jiff::Timestamp::now().as_second();
    assert!((3500..=3600).contains(&left), "{left} seconds left");
}
