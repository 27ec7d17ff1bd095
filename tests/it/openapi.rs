//! The simulator is the interface: schemathesis attacks `pdstool simulate` with the generated document.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::tools::tool;

/// `pdstool simulate` as a process, and what it said of itself.
struct Simulator {
    process: Child,
    url: String,
    project: String,
    token: String,
    apps: Vec<String>,
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Simulator {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_pdstool"))
            .args(["simulate", "--listen", "127.0.0.1:0", "--projects", "1"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut said = |name: &str| {
            let found =
                lines.find_map(|line| line.unwrap().strip_prefix(name).map(|rest| rest.trim().to_owned()));
            found.unwrap()
        };
        let (url, project, token) = (said("base_url"), said("project"), said("token"));
        let apps = (0..8).map(|_| said("app")).collect();
        Self { process, url, project, token, apps }
    }

    fn get(&self, path: &str) -> serde_json::Value {
        let output = Command::new(tool("curl"))
            .args(["-sf", "-H", &format!("Authorization: Bearer {}", self.token)])
            .arg(format!("{}/v2/projects/{}{path}", self.url, self.project))
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// What schemathesis is told beyond the document: things that are there, so that calls succeed, and the two rules
/// that no schema can say - a date in the future, an end not before the start - for which valid values may be
/// refused. Every other check is on for every operation.
fn configuration(simulator: &Simulator) -> String {
    let domains = simulator.get("/domains");
    let domain = domains["domains"][0]["id"].as_str().unwrap();
    let app = simulator.get(&format!("/apps/{}", simulator.apps[0]));
    let build = app["latestBuildId"].as_str().unwrap();
    format!(
        r#"
[parameters]
"path.project_id" = "{project}"
"path.app_id" = "{app}"
"path.build_id" = "{build}"
"path.domain_id" = "{domain}"
"path.owner" = "acme"
"path.repo" = "ranker"

# Deleted once, it stays deleted; the other calls go on with another app.
[[operations]]
include-operation-id = "delete_app"
parameters = {{ "path.app_id" = "{victim}" }}

[[operations]]
include-operation-id = ["create_api_key", "response_time", "run_execution_time"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404"]
"#,
        project = simulator.project,
        app = simulator.apps[0],
        victim = simulator.apps[7],
    )
}

#[test]
fn schemathesis_finds_the_simulator_to_be_the_interface() {
    let schemathesis = tool("schemathesis");
    let simulator = Simulator::start();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let document = Command::new(env!("CARGO_BIN_EXE_pdstool")).arg("openapi").output().unwrap();
    assert!(document.status.success());
    std::fs::write(file("openapi.json"), document.stdout).unwrap();
    std::fs::write(file("schemathesis.toml"), configuration(&simulator)).unwrap();
    let output = Command::new(schemathesis)
        .args(["--config-file", "schemathesis.toml", "run", "openapi.json", "--checks", "all"])
        .args(["--seed", "1", "--generation-database", "none", "--max-examples", "40", "--no-color"])
        .args(["--url", &simulator.url, "--header", &format!("Authorization: Bearer {}", simulator.token)])
        .current_dir(Path::new(folder.path()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
