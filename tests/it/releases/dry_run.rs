//! A release from an empty folder: the commands of the jobs that make and publish it, as the workflow has them, with a
//! registry of this machine in place of the real one. Signing needs the identity of the workflow and the release its
//! repository, so `cosign` and `gh` only write down what they are asked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::package::strip_into;
use super::{parsed, project};
use crate::deploy::{command, host, list, output, succeed, text};
use crate::server::Server;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commands of a job's steps, in order.
fn steps(job: &str) -> Vec<String> {
    let workflow = parsed().into_iter().find(|workflow| workflow["name"] == "release").unwrap();
    let steps = list(&workflow["jobs"][job]["steps"]).iter();
    steps.filter_map(|step| step["run"].as_str()).map(str::to_owned).collect()
}

/// The environment of the steps of a job.
struct Runner {
    folder: tempfile::TempDir,
    registry: Server,
}

impl Runner {
    /// A runner with a registry, a copy of what is versioned, and programs that only write down what they are asked.
    async fn new() -> Self {
        let runner = Self { folder: tempfile::tempdir().unwrap(), registry: Server::registry().await };
        let path = |name: &str| runner.folder.path().join(name);
        for folder in ["clone", "programs", "home/.config/containers", "home/.docker", "built", "publish"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{0}/root\"\nrunroot = \"{0}/run\"\n",
            runner.folder.path().display()
        );
        fs::write(path("storage.conf"), storage).unwrap();
        let insecure = format!("[[registry]]\nlocation = \"{}\"\ninsecure = true\n", runner.registry.address);
        fs::write(path("home/.config/containers/registries.conf"), insecure).unwrap();
        for program in ["cosign", "gh"] {
            // The tag of that moment stands behind it.
            let script = "#!/bin/sh\necho \"$(basename \"$0\") $*\" >>\"$LOG\"\nskopeo list-tags \"docker://$IMAGE\" >>\"$LOG\" || true\n";
            fs::write(path("programs").join(program), script).unwrap();
            fs::set_permissions(path("programs").join(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        clone(&path("clone"));
        runner
    }

    /// Makes archives, packages and lists of both platforms, with the programs of the tests.
    fn build(&self) {
        let path = |name: &str| self.folder.path().join(name);
        strip_into(&path("built"));
        let made = path("clone/release/out");
        for machine in ["x86_64", "aarch64"] {
            let target = format!("{machine}-unknown-linux-gnu");
            for (script, first) in [("archive", path("built").display().to_string()), ("sbom", String::new())]
            {
                let arguments = [first, target.clone(), made.display().to_string()];
                let arguments = arguments.iter().filter(|argument| !argument.is_empty());
                let step =
                    arguments.fold(format!(".ci/{script}"), |step, argument| format!("{step} '{argument}'"));
                self.run(&step, &path("clone"));
            }
        }
        for step in steps("packages").iter().filter(|step| !step.starts_with("tests/packages/install")) {
            // Compressing as little as possible takes a tenth of the time.
            self.run(
                &step.replace("\"$archive\" release/out", "\"$archive\" release/out --fast"),
                &path("clone"),
            );
        }
        let names: Vec<_> = fs::read_dir(&made).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 9, "two archives, packages and both lists of each, and the sums: {names:?}");
    }

    /// Runs one step in `folder`, as the workflow's shell does.
    fn run(&self, step: &str, folder: &Path) {
        let path = |name: &str| self.folder.path().join(name);
        let (tools, system) = (project().join("target/tools/venv/bin"), std::env::var("PATH").unwrap());
        let search = format!("{}:{system}:{}", path("programs").display(), tools.display());
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", step]).current_dir(folder);
        bash.env("PATH", search).env("HOME", path("home")).env("GITHUB_OUTPUT", path("output"));
        // cargo's own folder is not that of the programs here.
        for (variable, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let known = std::env::var_os(variable);
            let home = std::path::PathBuf::from(std::env::var_os("HOME").unwrap()).join(folder);
            bash.env(variable, known.unwrap_or(home.into()));
        }
        bash.env("CONTAINERS_STORAGE_CONF", path("storage.conf"));
        bash.env("LOG", path("log")).env("GITHUB_SHA", "0123456789abcdef").env("GITHUB_ACTOR", "nobody");
        bash.env("VERSION", format!("v{VERSION}")).env("REGISTRY", &self.registry.address);
        succeed(bash.env("TOKEN", "token").env("IMAGE", self.image()).env("CHART", self.chart()));
    }

    fn image(&self) -> String {
        format!("{}/example/pds-exporter", self.registry.address)
    }

    fn chart(&self) -> String {
        format!("{}/example/charts/pds-exporter", self.registry.address)
    }

    /// The manifest that a name has in the registry, if it has one.
    fn manifest(&self, name: &str) -> Option<String> {
        let mut inspect = command("skopeo", ["inspect", "--raw", "--tls-verify=false"]);
        let inspected = inspect.arg(format!("docker://{name}")).output().unwrap();
        inspected.status.success().then(|| String::from_utf8(inspected.stdout).unwrap())
    }
}

/// A copy of what is versioned here, and nothing else.
fn clone(folder: &Path) {
    let mut copy = Command::new("bash");
    copy.args(["-c", "git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --no-dereference -t \"$0\""]);
    succeed(copy.arg(folder).current_dir(project()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_made_in_an_empty_folder_and_tagged_only_once_it_is_signed() {
    let runner = Runner::new().await;
    let path = |name: &str| runner.folder.path().join(name);
    runner.build();

    // The job that publishes gets this and nothing else.
    fs::rename(path("clone/release"), path("release")).unwrap();
    fs::remove_dir_all(path("clone")).unwrap();
    for step in steps("publish") {
        runner.run(&step, &path("release"));
    }
    let log = fs::read_to_string(path("log")).unwrap();
    let asked: Vec<&str> =
        log.lines().filter(|line| line.starts_with("cosign ") || line.starts_with("gh ")).collect();
    assert_eq!(asked.len(), 6, "{asked:?}");
    assert!(asked[5].starts_with(&format!("gh release create v{VERSION} --verify-tag")), "{asked:?}");
    let (signed, released) = log.split_once("gh release").unwrap();
    let tag = format!("\"{VERSION}\"");
    assert!(!signed.contains(&tag) && released.contains(&tag), "the tag comes after the signatures: {log}");

    what_was_signed_is_in_the_registry(&runner, &asked);
    helm_takes_the_chart(&runner);
}

/// The registry has what was signed, under the tag.
fn what_was_signed_is_in_the_registry(runner: &Runner, asked: &[&str]) {
    let path = |name: &str| runner.folder.path().join(name);
    let digest = |name: &str| fs::read_to_string(path("release").join(name)).unwrap().trim().to_owned();
    for (name, signed) in [(runner.image(), "image/digest"), (runner.chart(), "chart/digest")] {
        assert!(
            asked.iter().any(|line| *line == format!("cosign sign --yes {name}@{}", digest(signed))),
            "{asked:?}"
        );
        let tagged = runner.manifest(&format!("{name}:{VERSION}"));
        assert!(
            tagged.is_some() && tagged == runner.manifest(&format!("{name}@{}", digest(signed))),
            "{name}"
        );
    }
    for machine in ["x86_64", "aarch64"] {
        let image = format!("{}@{}", runner.image(), digest(&format!("image/digest-{machine}")));
        let attested =
            asked.iter().any(|line| line.contains(&format!("-{machine}-")) && line.ends_with(&image));
        assert!(attested, "{asked:?}");
        assert!(runner.manifest(&image).is_some(), "{image}");
    }
    both_programs_are_in_the_image(
        runner,
        &digest(&format!("image/digest-{}", host().split('-').next().unwrap())),
    );
}

/// Helm takes the chart from the registry, and it is that of the folder.
fn helm_takes_the_chart(runner: &Runner) {
    let path = |name: &str| runner.folder.path().join(name);
    let mut pull = command("helm", ["pull", "--plain-http", "--version", VERSION]);
    succeed(pull.arg(format!("oci://{}", runner.chart())).current_dir(runner.folder.path()));
    let render = |chart: &Path| {
        let all = "podMonitor.enabled=true,prometheusRule.enabled=true,dashboards.enabled=true";
        let template = ["template", "pds-exporter", "--kube-version=1.32.0", "--set", all];
        output(command("helm", template).arg(chart))
    };
    let pulled = render(&path(&format!("pds-exporter-{VERSION}.tgz")));
    assert!(pulled.contains("PdsExporterDown") && pulled.contains("overview.json"));
    assert_eq!(pulled, render(&project().join("deploy/helm/pds-exporter")));
}

/// The image of a platform holds the daemon, the tool and a folder for the state, and says of which version it is.
fn both_programs_are_in_the_image(runner: &Runner, digest: &str) {
    let (folder, name) =
        (runner.folder.path().join("copied"), format!("docker://{}@{digest}", runner.image()));
    let mut copy = command("skopeo", ["copy", "--quiet", "--src-tls-verify=false", &name]);
    succeed(copy.arg(format!("dir:{}", folder.display())));
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let manifest: Value = serde_json::from_slice(&read("manifest.json")).unwrap();
    let blob = |digest: &Value| digest.as_str().unwrap().trim_start_matches("sha256:").to_owned();
    let config: Value = serde_json::from_slice(&read(&blob(&manifest["config"]["digest"]))).unwrap();
    let labels = &config["config"]["Labels"];
    assert_eq!(labels["org.opencontainers.image.version"], VERSION);
    assert_eq!(labels["org.opencontainers.image.revision"], "0123456789abcdef");
    let mut files = String::new();
    for layer in list(&manifest["layers"]) {
        let layer = folder.join(blob(&layer["digest"]));
        files += &output(command("tar", ["--list", "--gzip", "--file"]).arg(layer));
    }
    let programs: Vec<&str> = files.lines().filter(|file| file.starts_with("pds")).collect();
    assert_eq!(programs, ["pds-exporter", "pdstool"], "{files}");
    assert!(text("Dockerfile").contains("ENTRYPOINT [\"/pds-exporter\"]"));
}
