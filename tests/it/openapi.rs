//! `pdstool openapi`: its text, what linters and generators of clients make of it, and whether the simulator follows it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pds_interface::CALLS;
use pds_simulator::Settings;
use serde_json::Value;

use crate::client::server::status;
use crate::deploy::{command, output, succeed};
use crate::golden::assert_golden;
use crate::tool::Service;
use crate::tool::simulated::Simulated;
use crate::tools::tool;

/// The document, and the folder it lies in.
fn document() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, output(Command::new(crate::process::pdstool()).arg("openapi"))).unwrap();
    (folder, file)
}

#[test]
fn the_document_states_every_call_and_field_as_the_interface_does() {
    let (_folder, file) = document();
    assert_golden(Path::new("tests/it/openapi/document.json"), &std::fs::read_to_string(file).unwrap());
}

#[test]
fn the_document_passes_the_recommended_rules_of_redocly() {
    let (folder, file) = document();
    let mut redocly = Command::new(tool("redocly"));
    // The document does not know the licence of the service.
    redocly
        .args(["lint", "--extends=recommended", "--skip-rule=info-license", "--format=json"])
        .arg(file)
        .current_dir(&folder);
    redocly.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    let found = redocly.output().unwrap();
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let totals = ["errors", "warnings", "ignored"].map(|kind| found["totals"][kind].as_u64());
    assert_eq!(totals, [Some(0); 3], "{found:#}");
}

/// A folder with the client that openapi-python-client makes of the document.
fn generated() -> tempfile::TempDir {
    let (folder, file) = document();
    let config = folder.path().join("config.yml");
    std::fs::write(&config, "post_hooks: []\n").unwrap();
    let generate = ["generate", "--fail-on-warning", "--output-path", "client", "--path"];
    let mut generate = command("openapi-python-client", generate);
    succeed(generate.arg(file).arg("--config").arg(config).current_dir(&folder));
    folder
}

/// A program of `tests/it/openapi` that uses the generated client.
fn client(folder: &tempfile::TempDir, program: &str) -> Command {
    let mut client = Command::new(tool("python3"));
    client.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/openapi").join(program));
    client.env("PYTHONPATH", folder.path().join("client"));
    client
}

#[test]
fn a_client_made_by_openapi_python_client_makes_every_call_of_the_simulator() {
    let folder = generated();
    let service = Simulated::start();
    let (project, apps) = service.world.projects()[0].clone();
    let token = service.world.token(&project).unwrap();
    succeed(client(&folder, "client.py").args([&*service.url, token.expose(), &project, &apps[0]]));
    let requests = service.world.requests();
    for call in CALLS {
        let is_made = requests.by_call.contains_key(call.id);
        assert!(is_made, "tests/it/openapi/client.py does not call {}", call.id);
    }
}

#[test]
fn a_generated_client_takes_any_success_any_error_and_an_app_without_optional_fields() {
    let folder = generated();
    // The id in the path says how the call is answered.
    let service = Service::start(|request| {
        let wanted = request.target.split('/').nth(3).unwrap();
        let (kind, body) = match (&*request.method, wanted) {
            (_, "204") => ("application/json", ""),
            (_, "422") => ("application/json", r#"{"message": "the name is taken"}"#),
            ("POST", _) => ("application/json", r#"{"id": "k-1", "apiKey": "secret", "expiresAt": "never"}"#),
            _ => ("application/json", r#"{"id": "p-1-a", "runtime": "other"}"#),
        };
        status(wanted.parse().unwrap(), body).with("content-type", kind)
    });
    succeed(client(&folder, "statuses.py").arg(service.url()));
}

/// The configuration of schemathesis beyond the document: existing objects, so that calls succeed, and the two rules
/// that no schema can express - a date in the future, an end not before the start - for which valid values may be
/// refused. Every other check is on for every operation.
fn configuration(service: &Simulated, project: &str, token: &str, apps: &[Arc<str>]) -> String {
    let get = |path: &str| -> Value {
        let url = format!("{}/v2/projects/{project}{path}", service.url);
        serde_json::from_str(&output(command("curl", ["-sf", "--oauth2-bearer", token, &url]))).unwrap()
    };
    let (app, victim) = (&apps[0], &apps[apps.len() - 1]);
    let (domains, settings) = (get("/domains"), get(&format!("/apps/{app}")));
    let domain = domains["domains"][0]["id"].as_str().unwrap();
    let build = settings["latestBuildId"].as_str().unwrap();
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
    )
}

#[test]
fn schemathesis_finds_the_simulator_to_be_the_interface() {
    let service = Simulated::with(Settings { projects: 1, ..Settings::default() });
    let (project, apps) = service.world.projects().remove(0);
    let token = service.world.token(&project).unwrap().expose().to_owned();
    let (folder, _) = document();
    let configuration = configuration(&service, &project, &token, &apps);
    std::fs::write(folder.path().join("schemathesis.toml"), configuration).unwrap();
    let run = ["--config-file", "schemathesis.toml", "run", "openapi.json", "--checks", "all"];
    let mut run = command("schemathesis", run);
    run.args(["--seed", "1", "--generation-database", "none", "--max-examples", "40", "--no-color"]);
    run.args(["--url", &service.url, "--header", &format!("Authorization: Bearer {token}")]);
    succeed(run.current_dir(&folder));
}
