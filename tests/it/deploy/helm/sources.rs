//! Sources of the configuration and the tokens: one ConfigMap, several, what exists already, a volume.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;

use pds_config::Shard;
use serde_json::{Value, json};

use super::{example, template};
use crate::deploy::kubernetes::{kustomize_in, object, validate};
use crate::deploy::{command, list, output, string, succeed, yaml};

/// The volume of this name.
fn volume(workload: &Value, name: &str) -> Value {
    let volumes = list(&workload["spec"]["template"]["spec"]["volumes"]);
    volumes.iter().find(|volume| volume["name"] == name).unwrap().clone()
}

/// Lays the files of a workload's configuration into `folder`, as the kubelet does, from the ConfigMaps among `objects`.
pub(super) fn mount(objects: &[Value], workload: &Value, folder: &Path) {
    let config = volume(workload, "config");
    let sources = match config.get("configMap") {
        Some(source) => vec![source.clone()],
        None => {
            list(&config["projected"]["sources"]).iter().map(|source| source["configMap"].clone()).collect()
        }
    };
    for source in sources {
        let object = objects
            .iter()
            .find(|object| object["kind"] == "ConfigMap" && object["metadata"]["name"] == source["name"]);
        for (file, text) in object.into_iter().flat_map(|object| object["data"].as_object().unwrap()) {
            fs::write(folder.join(file), text.as_str().unwrap()).unwrap();
        }
    }
}

#[test]
fn the_files_of_a_configuration_lie_in_one_folder_and_load_together() {
    let objects = example("files");
    let deployment = object(&objects, "Deployment");
    let folder = tempfile::tempdir().unwrap();
    mount(&objects, &deployment, folder.path());
    // Tokens are nobody's here.
    for file in fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&file).unwrap();
        let lines =
            text.lines().map(|line| line.split_once("token_file").map_or(line, |_| "token = \"none\""));
        fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    }
    let loaded = pds_config::load(&folder.path().join("pds-exporter.toml"), []).unwrap();
    let projects: Vec<&str> = loaded.config.projects.iter().map(|project| &*project.id).collect();
    assert_eq!(projects, ["p-maps0001", "p-search01"]);

    // Those that exist already come after the chart's own.
    let sources = volume(&deployment, "config")["projected"]["sources"].clone();
    let name = |index: usize, kind: &str| string(&sources[index], &format!("/{kind}/name")).to_owned();
    let names = [
        name(0, "configMap"),
        name(1, "configMap"),
        name(2, "configMap"),
        name(3, "configMap"),
        name(4, "secret"),
    ];
    let own = ["pds-exporter-config", "pds-exporter-config-maps", "pds-exporter-config-search"];
    assert_eq!(names[..3], own);
    assert_eq!(names[3..], ["team-a", "team-b"]);
}

#[test]
fn a_configuration_may_exist_already() {
    let render = |values: &[&str]| {
        let objects = template(values);
        let own = objects.iter().filter(|object| object["kind"] == "ConfigMap").count();
        (own, volume(&object(&objects, "Deployment"), "config"))
    };
    let (own, config) = render(&["config=", "existingConfig.secrets={pds-config}"]);
    assert_eq!((own, &config["secret"]["secretName"]), (0, &json!("pds-config")));
    let (own, config) = render(&["existingConfig.volume.persistentVolumeClaim.claimName=pds-config"]);
    assert_eq!((own, &config["persistentVolumeClaim"]["claimName"]), (0, &json!("pds-config")));
    // Or become a Secret, file by file.
    let files = ["configInSecrets=true", "config=include = [\"*.toml\"]", "configFiles.a\\.toml=[poll]"];
    let (own, config) = render(&files);
    let names =
        ["pds-exporter-config", "pds-exporter-config-a"].map(|name| json!({ "secret": { "name": name } }));
    assert_eq!((own, &config["projected"]["sources"]), (0, &json!(names)));
    let secrets = template(&files);
    let secret = secrets.iter().find(|object| object["metadata"]["name"] == "pds-exporter-config-a").unwrap();
    assert_eq!((&secret["kind"], &secret["stringData"]["a.toml"]), (&json!("Secret"), &json!("[poll]")));
    // The sidecar's volumes are the same under other names.
    let patch = template(&["mode=sidecar", "config=", "existingConfig.configMaps={team-a}"]);
    let patch = patch.iter().find_map(|object| object["data"]["patch.yaml"].as_str()).unwrap();
    assert!(patch.contains("name: \"team-a\""), "{patch}");
}

#[test]
fn every_token_of_a_secret_is_a_file() {
    // One Secret is mounted whole, so the tokens of other projects lie beside the default one.
    let token = |values: &[&str]| volume(&object(&template(values), "Deployment"), "token");
    assert_eq!(token(&[])["secret"], json!({ "secretName": "pds-exporter-token", "defaultMode": 0o440 }));
    // Another key is the default token too, and hides none of the others.
    let sources = token(&["token.key=maps"])["projected"]["sources"].clone();
    assert_eq!(sources[0], json!({ "secret": { "name": "pds-exporter-token" } }));
    assert_eq!(sources[1]["secret"]["items"], json!([{ "key": "maps", "path": "token" }]));
    let teams = volume(&object(&example("files"), "Deployment"), "token");
    let sources = json!([
        { "secret": { "name": "team-b-tokens" } },
        { "secret": { "name": "pds-exporter-token" } },
        { "secret": { "name": "pds-exporter-token", "items": [{ "key": "maps", "path": "token" }] } },
    ]);
    assert_eq!(teams["projected"]["sources"], sources, "the last one of a key applies: the default token");
    assert_eq!(teams["projected"]["defaultMode"], 0o440);
}

/// The most that the API server keeps of annotations; `kubectl apply` puts the whole object into one.
const ANNOTATIONS: usize = 256 * 1024;

/// The configuration of a thousand projects with a hundred apps each.
fn a_hundred_thousand_apps() -> String {
    // The line is that of the example configuration.
    let mut text =
        "include = []\n\n[api]\nbase_url = \"https://api.example.com\"\ntoken = \"none\"\n\n".to_owned();
    for project in 0..1_000 {
        let id = format!("p-{:08x}", 0x9e37_79b9_u32.wrapping_mul(project));
        let apps = (0..100).map(|app| format!("\"{id}-recommender-v2-{app:02}\""));
        let apps = apps.collect::<Vec<_>>().join(", ");
        let _ = write!(
            text,
            "[[projects]]\nid = \"{id}\"\nlabels = {{ team = \"search\" }}\napps = [{apps}]\n\n"
        );
    }
    text
}

/// An overlay of ten shards whose ConfigMaps have these files and names.
fn kustomization(files: &[PathBuf], names: &[String]) -> Value {
    let generated = files.iter().skip(1).zip(names.iter().skip(1)).map(|(file, name)| {
        let file = file.file_name().unwrap().to_str().unwrap();
        json!({ "name": name, "files": [format!("parts/{file}")], "options": { "disableNameSuffixHash": true } })
    });
    let first =
        json!({ "name": "pds-exporter-config", "behavior": "replace", "files": ["parts/pds-exporter.toml"] });
    let generators: Vec<Value> = [first].into_iter().chain(generated).collect();
    let sources = ["pds-exporter-config"].into_iter().chain(names.iter().skip(1).map(String::as_str));
    let sources: Vec<Value> = sources.map(|name| json!({ "configMap": { "name": name } })).collect();
    let patch = json!([
        { "op": "test", "path": "/spec/template/spec/volumes/0/name", "value": "config" },
        { "op": "replace", "path": "/spec/template/spec/volumes/0", "value":
            { "name": "config", "projected": { "sources": sources } } },
    ]);
    json!({
        "resources": ["kubernetes/overlays/sharded"],
        "namespace": "pds-exporter",
        "replicas": [{ "name": "pds-exporter", "count": 10 }],
        "configMapGenerator": generators,
        "patches": [{ "target": { "kind": "StatefulSet" }, "patch": patch.to_string() }],
    })
}

#[test]
fn a_hundred_thousand_apps_fit_into_config_maps_and_over_ten_shards() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = a_hundred_thousand_apps();
    assert!(text.len() > 3_000_000, "no ConfigMap holds {} bytes", text.len());
    fs::write(at("pds-exporter.toml"), &text).unwrap();
    let lines = crate::docs::blocks(&fs::read_to_string("docs/scale.md").unwrap(), "sh").concat();
    succeed(Command::new("sh").args(["-e", "-c", &lines]).current_dir(&folder));

    let mut files: Vec<_> = fs::read_dir(at("parts")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let names: Vec<String> =
        files.iter().map(|file| format!("pds-{}", file.file_stem().unwrap().display())).collect();
    let mut maps = Vec::new();
    for (file, name) in files.iter().zip(&names) {
        let from = format!("--from-file={}", file.display());
        let create = ["create", "configmap", name, "--dry-run=client", "--output=json", &from];
        let map: Value = serde_json::from_str(&output(command("kubectl", create))).unwrap();
        assert!(map.to_string().len() < ANNOTATIONS, "{name}: {} bytes", map.to_string().len());
        maps.push(map);
    }
    validate(&maps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n"));

    // The chart takes them by name.
    let existing = format!("existingConfig.configMaps={{{}}}", names.join(","));
    let mut chart = template(&["mode=sharded", "shards=10", "apps=100000", "config=", &existing]);
    let set = object(&chart, "StatefulSet");
    chart.extend(maps);

    // Kustomize makes them of the same files.
    let built = kustomize_in(folder.path(), &kustomization(&files, &names).to_string());
    validate(&built);
    let kustomized = yaml(&built);

    for (objects, set) in [(&chart, set), (&kustomized, object(&kustomized, "StatefulSet"))] {
        let mounted = tempfile::tempdir().unwrap();
        mount(objects, &set, mounted.path());
        let whole = pds_config::load(&mounted.path().join("pds-exporter.toml"), []).unwrap().config;
        let replicas =
            NonZeroU32::new(u32::try_from(set["spec"]["replicas"].as_u64().unwrap()).unwrap()).unwrap();
        let mut apps = BTreeSet::new();
        for index in 0..replicas.get() {
            let shard = whole.clone().shard(Shard { index, count: replicas });
            apps.extend(shard.projects.into_iter().flat_map(|project| project.apps).map(|app| app.id));
        }
        assert_eq!((replicas.get(), apps.len()), (10, 100_000));
    }
}
