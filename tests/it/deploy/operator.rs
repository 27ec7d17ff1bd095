//! Objects that Kubernetes itself does not know, held against models made of their APIs: the types know every key, the
//! schemas the forms of values.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{command, string, text, yaml};

/// The version of each kind of objects, its package, and its name there.
const MODELS: &[(&str, &str, &str)] = &[
    ("monitoring.coreos.com/v1", "prometheus-operator", "operator"),
    ("monitoring.coreos.com/v1alpha1", "prometheus-operator", "operator_alpha"),
    ("autoscaling.k8s.io/v1", "autoscaler", "autoscaler"),
    ("gateway.networking.k8s.io/v1", "gateway-api", "gateway"),
];

/// Whether the object is one of these.
pub(super) fn has_model(object: &Value) -> bool {
    MODELS.iter().any(|(version, ..)| *version == object["apiVersion"])
}

/// A folder below the one that holds npm's packages, so that they are found.
pub(super) fn beside_packages() -> TempDir {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools");
    tempfile::Builder::new().prefix("program").tempdir_in(packages).unwrap()
}

/// The compiler that makes `program.mjs` of this text, and the folder of both.
pub(super) fn typescript(program: &str) -> (TempDir, Command) {
    let folder = beside_packages();
    let source = folder.path().join("program.mts");
    std::fs::write(&source, program).unwrap();
    let mut tsc =
        command("tsc", ["--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext"]);
    tsc.arg(source);
    (folder, tsc)
}

/// The API's complaint about one of the objects; `None` if all are accepted.
fn refusal(objects: &[Value]) -> Option<String> {
    let mut program = String::new();
    for (version, package, name) in MODELS {
        let _ = writeln!(program, "import * as {name} from \"@kubernetes-models/{package}/{version}\";");
    }
    for object in objects {
        let (version, kind) = (string(object, "/apiVersion"), string(object, "/kind"));
        let model = MODELS.iter().find(|(known, ..)| *known == version);
        let Some((.., model)) = model else { return Some(format!("no model of {version}")) };
        // Only a literal that is given its type at once is refused for a key that the type has not.
        let _ =
            writeln!(program, "{{ const o: {model}.I{kind} = {object}; new {model}.{kind}(o).validate(); }}");
    }
    let (folder, tsc) = typescript(&program);
    let node = command("node", [folder.path().join("program.mjs")]);
    [tsc, node].into_iter().find_map(|mut step| {
        let output = step.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (!output.status.success()).then(|| String::from_utf8_lossy(&said).into_owned())
    })
}

/// Whether the APIs accept the objects.
pub(super) fn validate(objects: &[Value]) {
    if let Some(said) = refusal(objects) {
        panic!("refused is one of {objects:?}:\n{said}");
    }
}

#[test]
fn fields_unknown_to_the_operator_are_refused() {
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
