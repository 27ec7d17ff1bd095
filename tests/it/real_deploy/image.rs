//! The image: built from the Dockerfile's last stage and static binaries, run as a container and as a pod.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use pds_simulator::World;
use serde_json::Value;
use tempfile::TempDir;

use crate::deploy::commands::commands;
use crate::deploy::kubernetes::kustomize;
use crate::deploy::{deploy, host, output, string, succeed, yaml};
use crate::process::{get, until, value};
use crate::tools::{tool, without_this_package};

use super::fast::configuration;
use crate::rig;
use crate::server::free_port;

/// User and group of the image.
const NOBODY: u32 = 65532;

/// The most bytes that all of the image may have: both programs, and nothing else of any size.
const LARGEST: u64 = 27_000_000;

/// Told to the build, as whoever publishes the image does. `benches/count` tells the same.
const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";

/// Images and containers in folders of their own, gone at the end.
struct Podman {
    folder: TempDir,
}

impl Podman {
    /// The storage of the image, which is built once for all tests of this process.
    fn new() -> Self {
        let podman = Self { folder: tempfile::tempdir().unwrap() };
        // Podman's own defaults are more than a machine may be willing to grant.
        let limits = "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n";
        fs::write(podman.folder.path().join("containers.conf"), limits).unwrap();
        podman.build();
        podman
    }

    /// Both tools with the storage of our own.
    fn storage(&self, program: &str) -> Command {
        let mut command = Command::new(tool(program));
        let folder = |name: &str| self.folder.path().join(name);
        command.env("CONTAINERS_CONF", folder("containers.conf"));
        command.arg("--root").arg(folder("root")).arg("--runroot").arg(folder("run"));
        command.args(["--storage-driver", "vfs"]);
        command
    }

    fn podman(&self, arguments: &[&str]) -> Command {
        let mut command = self.storage("podman");
        command.args(["--cgroup-manager", "cgroupfs", "--events-backend", "file", "--runtime", "runc"]);
        command.args(arguments);
        command
    }

    /// Builds the last stage; a folder takes the place of the stage that compiles.
    fn build(&self) {
        let built = self.folder.path().join("built/out");
        let state = built.join("state");
        fs::create_dir_all(&state).unwrap();
        for program in ["pds-exporter", "pdstool"] {
            fs::copy(static_binaries().join(program), built.join(program)).unwrap();
        }
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        let mut build = self.storage("buildah");
        build.args(["build", "--isolation", "chroot", "--format", "docker", "--tag", "pds-exporter:test"]);
        build.arg(format!("--build-arg=REVISION={REVISION}"));
        build.arg(format!("--build-context=build={}", self.folder.path().join("built").display()));
        succeed(build.arg("--file").arg(deploy("Dockerfile")).arg(&built));
    }

    /// A file of the host that the image's user can read.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        path
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = self.podman(&["pod", "rm", "--all", "--force", "--time=0"]).output();
        let _ = self.podman(&["rm", "--all", "--force", "--time=0"]).output();
    }
}

/// The folder of both programs as they are published. It is one of its own: other flags would compile everything anew
/// each time.
fn static_binaries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let count = fs::read_to_string("benches/count").unwrap();
        assert!(
            count.contains(REVISION),
            "of another revision, it compiles the programs anew, and so does the next test"
        );
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/static");
        // It takes minutes of all cores, and the tests beside it wait for programs that reply in time.
        let mut build = Command::new("nice");
        without_this_package(&mut build)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/dist"))
            .arg(host());
        build.env("CARGO_TARGET_DIR", &target).env("CARGO_NET_OFFLINE", "true");
        succeed(build.env("PDS_EXPORTER_REVISION", REVISION));
        target.join(host()).join("dist")
    })
}

/// A simulated service, and its address with a name in place of its number.
async fn service() -> (World, String) {
    // No app of these is broken.
    let (world, url) = rig::world(2, 2).await;
    let url = url.replace("127.0.0.1", "localhost");
    (world, url)
}

/// Waits until the exporter has learned something, and gives its page.
async fn scraped(address: &str) -> String {
    let mut page = String::new();
    until("the container was scraped and knows every target", async || {
        let Ok(ready) = get(&format!("http://{address}/-/ready")).await else { return false };
        page = get(&format!("http://{address}/metrics")).await.unwrap().text().await.unwrap();
        ready.status() == 200
    })
    .await;
    page
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_image_is_small_and_runs_with_nothing_but_itself() {
    let podman = Podman::new();
    let inspected = output(podman.podman(&["image", "inspect", "pds-exporter:test"]));
    let image: Value = serde_json::from_str(&inspected).unwrap();
    let image = &image[0];
    let size = image["Size"].as_u64().unwrap();
    assert!(size < LARGEST, "{size} bytes");
    assert_eq!(string(image, "/Config/User"), "65532:65532");
    for (label, wanted) in [
        ("title", env!("CARGO_PKG_NAME")),
        ("description", env!("CARGO_PKG_DESCRIPTION")),
        ("licenses", env!("CARGO_PKG_LICENSE")),
        ("version", env!("CARGO_PKG_VERSION")),
        ("revision", REVISION),
    ] {
        let label = format!("/Config/Labels/org.opencontainers.image.{label}");
        assert_eq!(string(image, &label), wanted, "{label}");
    }
    assert_eq!(image["Healthcheck"]["Test"], serde_json::json!(["CMD", "/pds-exporter", "--health"]));

    let (world, base_url) = service().await;
    let config = podman.file("pds-exporter.toml", &configuration(&world, &base_url, "").text());
    let address = format!("127.0.0.1:{}", free_port());
    let mut run = podman.podman(&["run", "--detach", "--name=exporter", "--network=host"]);
    run.args(["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]);
    run.arg(format!("--volume={}:/etc/pds-exporter/pds-exporter.toml:ro", config.display()));
    run.arg(format!("--volume={}:/etc/web-config.yml:ro", podman.file("web-config.yml", "{}").display()));
    run.args(["pds-exporter:test", "--config.file=/etc/pds-exporter/pds-exporter.toml"]);
    let listen = format!("--web.listen-address={address}");
    succeed(run.args(["--state.path=/var/lib/pds-exporter/state.log", &listen]));

    let page = scraped(&address).await;
    let version = env!("CARGO_PKG_VERSION");
    let built = format!("pds_exporter_build_info{{revision=\"{REVISION}\",version=\"{version}\"}} 1\n");
    assert!(page.contains(&built), "{page}");
    for (project, apps) in world.projects() {
        for app in apps {
            let up = format!("pds_up{{project=\"{project}\",app=\"{app}\",resource=\"app\"}}");
            assert_eq!(value(&page, &up), Some(1.0), "{up}\n{page}");
        }
    }
    let health = |address: &str| {
        let flag = format!("--web.listen-address={address}");
        podman.podman(&["exec", "exporter", "/pds-exporter", "--health", &flag])
    };
    succeed(health(&address));
    // As the image does.
    succeed(podman.podman(&["exec", "exporter", "/pds-exporter", "--health"]));
    // The runbooks' tool is beside it, and asks it.
    let url = format!("http://{address}");
    let apps = ["exec", "exporter", "/pdstool", "apps", "--exporter", &url, "-o", "csv"];
    let said = succeed(podman.podman(&apps));
    assert!(world.projects().iter().all(|(project, _)| said.contains(&**project)), "{said}");
    let app = world.projects()[0].1[0].to_string();
    for (_, command) in commands() {
        let words =
            format!("/{command}").replace("PROJECT-APP", &app).replace("WEB-CONFIG", "/etc/web-config.yml");
        succeed(podman.podman(&["exec", "exporter"]).args(words.split(' ')));
    }
    let nobody = health(&format!("127.0.0.1:{}", free_port())).output().unwrap();
    assert_eq!(nobody.status.code(), Some(1), "{}", String::from_utf8_lossy(&nobody.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pod_of_the_manifests_runs() {
    let podman = Podman::new();
    let (world, base_url) = service().await;
    let address = format!("127.0.0.1:{}", free_port());
    let objects = yaml(&kustomize("base"));
    let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap().clone();

    let mut config = of_kind("ConfigMap");
    let (project, apps) = world.projects().remove(0);
    config["data"]["pds-exporter.toml"] = format!(
        "[api]\nbase_url = \"{base_url}\"\ntoken_file = \"/run/secrets/pds/token\"\n\n[[projects]]\nid = {}\napps = [{}]\n",
        Value::from(&*project),
        Value::from(&*apps[0])
    )
    .into();
    let folder = podman.folder.path().join("token");
    fs::create_dir(&folder).unwrap();
    podman.file("token/token", world.token(&project).unwrap().expose());
    let mut deployment = of_kind("Deployment");
    fit(deployment.pointer_mut("/spec/template/spec").unwrap(), &address, &folder);

    let manifests = [config, deployment].map(|object| object.to_string()).join("\n---\n");
    let file = podman.file("pod.yaml", &manifests);
    succeed(podman.podman(&["kube", "play"]).arg(&file));
    let page = scraped(&address).await;
    let up = format!("pds_up{{project=\"{project}\",app=\"{}\",resource=\"app\"}}", apps[0]);
    assert_eq!(value(&page, &up), Some(1.0), "{page}");
}

/// Makes the pod one that podman can play on this machine's loopback; all else stays as it is.
fn fit(pod: &mut Value, address: &str, token: &Path) {
    pod["hostNetwork"] = true.into();
    // Podman 4.3 hands a Secret over as it is written, in base64; a folder of the host takes its place.
    for volume in pod["volumes"].as_array_mut().unwrap() {
        let volume = volume.as_object_mut().unwrap();
        if volume.remove("secret").is_some() {
            volume.insert("hostPath".to_owned(), serde_json::json!({ "path": token, "type": "Directory" }));
        }
    }
    let container = pod["containers"][0].as_object_mut().unwrap();
    container["image"] = "localhost/pds-exporter:test".into();
    for argument in container["args"].as_array_mut().unwrap() {
        if argument.as_str().is_some_and(|argument| argument.starts_with("--web.listen-address=")) {
            *argument = format!("--web.listen-address={address}").into();
        }
    }
    container.remove("ports");
    // It asks for http probes with the container's own curl, which an image of one file has not.
    container.remove("livenessProbe");
    container.remove("readinessProbe");
}
