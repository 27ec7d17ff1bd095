//! Objects of the Prometheus Operator, held against models made of its API: their types know every key, their
//! schemas the forms of values.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{command, string, text, yaml};

/// What begins the version of the operator's objects.
pub(super) const GROUP: &str = "monitoring.coreos.com/";

/// What the operator's API has against the objects; `None` if it accepts all of them.
fn refusal(objects: &[Value]) -> Option<String> {
    let mut program = format!("import * as v1 from \"@kubernetes-models/prometheus-operator/{GROUP}v1\";\n");
    for object in objects {
        let kind = string(object, "/kind");
        // Only a literal that is given its type at once is refused for a key that the type has not.
        let _ = writeln!(program, "{{ const o: v1.I{kind} = {object}; new v1.{kind}(o).validate(); }}");
    }
    // Below the folder that holds npm's packages, so that they are found.
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools");
    let folder = tempfile::Builder::new().prefix("operator").tempdir_in(tools).unwrap();
    let source = folder.path().join("objects.mts");
    std::fs::write(&source, program).unwrap();
    let mut tsc =
        command("tsc", ["--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext"]);
    tsc.arg(&source);
    let node = command("node", [folder.path().join("objects.mjs")]);
    [tsc, node].into_iter().find_map(|mut step| {
        let output = step.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (!output.status.success()).then(|| String::from_utf8_lossy(&said).into_owned())
    })
}

/// Whether the operator's API accepts the objects.
pub(super) fn validate(objects: &[Value]) {
    if let Some(said) = refusal(objects) {
        panic!("the operator refuses one of {objects:?}:\n{said}");
    }
}

#[test]
fn what_the_operator_does_not_know_is_refused() {
    let monitor = || yaml(&text("kubernetes/overlays/operator/podmonitor.yaml")).remove(0);
    let rule = || yaml(&text("kubernetes/overlays/operator/prometheusrule.yaml")).remove(0);
    let broken = |mut object: Value, parent: &str, key: &str, value: Value| {
        object.pointer_mut(parent).unwrap()[key] = value;
        refusal(&[object]).unwrap_or_else(|| panic!("{parent}/{key} is accepted"))
    };
    for (said, named) in [
        (broken(monitor(), "/spec/podMetricsEndpoints/0", "intervall", json!("15s")), "\"intervall\""),
        (broken(monitor(), "/spec/podMetricsEndpoints/0", "interval", json!("15 s")), "interval must match"),
        (broken(monitor(), "/spec/selector", "matchLabel", json!({})), "\"matchLabel\""),
        (broken(monitor(), "", "apiVersion", json!("monitoring.coreos.com/v2")), "monitoring.coreos.com/v2"),
        (broken(rule(), "/spec/groups/0/rules/0", "severity", json!("info")), "\"severity\""),
        (broken(rule(), "/spec/groups/0", "interval", json!("1 minute")), "interval must match"),
    ] {
        assert!(said.contains(named), "{named}: {said}");
    }
    validate(&[monitor(), rule()]);
}
