//! `pdstool` as a process, against a service with prescribed replies.

mod ask;
mod backfill;
mod backfill_ranges;
mod backfill_resumed;
mod calls;
mod checks;
mod colours;
mod completion;
mod doctor;
mod environment;
mod formats;
mod init;
mod manual;
mod reconcile;
mod replies;
mod service;
pub(crate) mod simulated;
mod state;
mod status;
mod terminal;
mod watch;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tokio::runtime::Runtime;

use crate::client::server::{Reply, Seen, Server};
use crate::deploy::list;

/// The token that the tool is given; it must never be seen but in the header it belongs in.
const TOKEN: &str = "hunter2-the-token";

/// A service on a free port of the loopback, in threads of its own.
pub(crate) struct Service {
    server: Server,
    _runtime: Runtime,
}

impl Service {
    pub(crate) fn start(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::on("127.0.0.1:0", handler)
    }

    fn on(address: &str, handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(Server::on(address, None, handler));
        Self { server, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// The requests so far, as `METHOD /path?query`.
    fn requests(&self) -> Vec<String> {
        self.server.seen().iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect()
    }
}

/// `pdstool` with these arguments and nothing of this process's environment.
fn pdstool(args: &[&str]) -> Command {
    let mut command = Command::new(crate::process::pdstool());
    command.env_clear().env("TZ", "UTC").stdin(Stdio::null()).args(args);
    command
}

/// `pdstool call` of project `p-1` at `url`.
fn call(url: &str, args: &[&str]) -> Command {
    let mut command = pdstool(&["call"]);
    command.args(args).args(["--base-url", url]);
    command.env("PDSTOOL_PROJECT", "p-1").env("PDS_EXPORTER__API__TOKEN", TOKEN);
    command
}

/// The result of a command as a text to compare: exit code, output and errors.
fn ended(output: &Output) -> String {
    let mut text =
        format!("exit code {}\n", output.status.code().map_or("none".to_owned(), |code| code.to_string()));
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            let bytes = String::from_utf8_lossy(bytes);
            write!(text, "{name}:\n{bytes}").unwrap();
            if !bytes.ends_with('\n') {
                text.push_str("(no line end)\n");
            }
        }
    }
    assert!(!text.contains("hunter2"), "the token is shown: {text}");
    text
}

/// Exit code and findings of a command with `-o json`.
struct Found {
    code: Option<i32>,
    json: Value,
}

impl Found {
    fn of(output: &Output) -> Self {
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", ended(output)));
        Self { code: output.status.code(), json }
    }

    /// Fails unless a finding of this check has this part.
    fn says(&self, check: &str, part: &str) {
        self.finds(check, "", part);
    }

    /// The same in this state.
    fn finds(&self, check: &str, state: &str, part: &str) {
        let found = list(&self.json["findings"]).iter().any(|finding| {
            let has = |field: &str, part: &str| finding[field].as_str().unwrap().contains(part);
            finding["check"] == check && has("state", state) && has("text", part)
        });
        assert!(found, "no {check} finding ({state}) says {part}: {:#}", self.json);
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn golden(name: &str) -> PathBuf {
    Path::new("tests/it/tool/golden").join(name)
}
