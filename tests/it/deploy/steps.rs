//! `deploy/README.md` followed from its top to its bottom: every command as it stands there. Stand-ins replace the
//! programs that change the machine or need a cluster: they install below a folder, and render what would be applied.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::docs::blocks;
use crate::process::pdstool;
use crate::tools::tool;

use super::kubernetes::validate;
use super::{deploy, succeed, text};

/// Programs, each with what stands in for it. `$root` is the machine, `$rendered` what the cluster was given.
const STAND_INS: &[(&str, &str)] = &[
    // .ci/dist compiles with the same words; the tests' own programs take the place of what it makes.
    (
        "cargo",
        r#"grep -qF "cargo $*" "$project/.ci/dist"
           mkdir -p target/dist
           cp "$exporter" "$pdstool" target/dist/"#,
    ),
    ("install", r#"for word; do words+=("${word/#\//$root/}"); done; exec /usr/bin/install "${words[@]}""#),
    (
        "systemctl",
        r#"case $1 in
             enable | disable) [[ $2 == --now ]]; exec /usr/bin/systemctl --quiet --root="$root" "$1" "${@:3}" ;;
             restart) shopt -s nullglob; cd "$root/etc/systemd/system"; cat "$2.service" "$2.service.d/"*.conf >"$root/unit" ;;
             daemon-reload) ;;
             *) exit 1 ;;
           esac"#,
    ),
    // real_deploy::image builds and runs the image; here what is mounted and built from has to be there.
    (
        "docker",
        r#"for word; do
             case $word in "$PWD"/*:*) [[ -f ${word%%:*} ]] ;; deploy/*) [[ -f $word ]] ;; esac
           done"#,
    ),
    (
        "kubectl",
        r#"case " $* " in
             *' apply -k '*) "$kubectl" kustomize "${@: -1}" >>"$rendered" ;;
             *' apply -f - '*) cat >>"$rendered" ;;
             *--dry-run=client*) exec "$kubectl" "$@" ;;
             *' create '*) "$kubectl" "$@" --dry-run=client -o yaml >>"$rendered" ;;
             *' delete -k '*) "$kubectl" kustomize "${@: -1}" >/dev/null ;;
             *) exit 1 ;;
           esac
           echo --- >>"$rendered""#,
    ),
    (
        "helm",
        r#"[[ $1 != uninstall ]] || exit 0
           shift; [[ $1 != --install ]] || shift
           "$helm" template "$@" >>"$rendered"; echo --- >>"$rendered""#,
    ),
    ("rm", r#"for word; do words+=("${word/#\//$root/}"); done; exec /usr/bin/rm "${words[@]}""#),
    ("editor", r#"for file; do [[ -w $file ]]; done"#),
    // real_deploy::agent starts it.
    ("prometheus", r#"[[ $1 == --agent && -f ${2#--config.file=} ]]"#),
    // deploy::dashboards builds them.
    ("npm", r#"[[ $1 == install ]] || grep -q "\"$2\":" package.json"#),
];

/// A folder with what the reader of the page has: a clone, a configuration, tokens, a certificate.
fn clone() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    succeed(Command::new("cp").arg("-r").arg(deploy("")).arg(folder.path().join("deploy")));
    let mut config =
        "[api]\nbase_url = \"https://api.example.com\"\ntoken_file = \"/run/token\"\n".to_owned();
    for project in 10_000..10_100 {
        let apps: Vec<String> = (0..100).map(|app| format!("\"p-abc{project}-{app}\"")).collect();
        config += &format!("\n[[projects]]\nid = \"p-abc{project}\"\napps = [{}]\n", apps.join(", "));
    }
    for file in ["TOKEN_FILE", "OTHER_TOKEN_FILE", "token", "web-config.yml", "tls.crt", "tls.key"] {
        fs::write(folder.path().join(file), "secret").unwrap();
    }
    fs::write(folder.path().join("pds-exporter.toml"), config).unwrap();
    // The page links to these lines.
    let cut = blocks(&fs::read_to_string("docs/scale.md").unwrap(), "sh").concat();
    succeed(Command::new("sh").args(["-e", "-c", &cut]).current_dir(&folder));
    folder
}

/// A machine, and a reader of the page beside it.
pub(crate) struct Machine {
    /// A clone of the sources, with a configuration.
    pub(crate) folder: tempfile::TempDir,
    beside: tempfile::TempDir,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self { folder: clone(), beside: tempfile::tempdir().unwrap() };
        let bin = machine.beside.path().join("stand-ins");
        for folder in [&bin, &machine.root("usr/bin"), &machine.root("etc/systemd/system")] {
            fs::create_dir_all(folder).unwrap();
        }
        for (name, script) in STAND_INS {
            let path = bin.join(name);
            fs::write(&path, format!("#!/bin/bash\nset -euo pipefail\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        machine
    }

    /// The path on the machine.
    pub(super) fn root(&self, path: &str) -> PathBuf {
        self.beside.path().join("root").join(path)
    }

    /// Everything that was given to the cluster.
    pub(crate) fn rendered(&self) -> String {
        fs::read_to_string(self.beside.path().join("rendered.yaml")).unwrap()
    }

    /// The shell that runs these lines.
    pub(crate) fn shell(&self, block: &str) -> Command {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", block]).current_dir(self.folder.path());
        let tools =
            [pdstool().into(), tool("promtool")].map(|path| Path::new(&path).parent().unwrap().to_owned());
        let [ours, theirs] = tools.map(|folder| folder.display().to_string());
        let bin = self.beside.path().join("stand-ins").display().to_string();
        shell.env("PATH", [&*bin, &*ours, &*theirs, "/usr/bin:/bin"].join(":")).env("EDITOR", "editor");
        shell.env("root", self.root("")).env("rendered", self.beside.path().join("rendered.yaml"));
        shell.env("project", env!("CARGO_MANIFEST_DIR"));
        shell.env("exporter", env!("CARGO_BIN_EXE_pds-exporter")).env("pdstool", pdstool());
        shell.env("kubectl", tool("kubectl")).env("helm", tool("helm"));
        shell
    }
}

#[test]
fn the_page_is_followed_from_its_top_to_its_bottom() {
    let machine = Machine::new();
    let page = text("README.md");
    for block in blocks(&page, "sh") {
        succeed(machine.shell(&block));
    }
    // The machine has both programs, and units that find the tokens.
    for file in ["usr/bin/pdstool", "etc/pds-exporter/token", "etc/pds-exporter/tokens/search"] {
        assert!(machine.root(file).is_file(), "{file}");
    }
    let wanted = machine.root("etc/systemd/system/sockets.target.wants/pds-exporter.socket");
    assert!(wanted.is_symlink(), "the socket is enabled");
    let unit = fs::read_to_string(machine.root("unit")).unwrap();
    let credentials: Vec<&str> =
        unit.lines().filter_map(|line| line.strip_prefix("LoadCredential=")).collect();
    assert_eq!(credentials, ["token:/etc/pds-exporter/token", "tokens:/etc/pds-exporter/tokens"]);
    // And the cluster objects that its API accepts.
    let rendered = machine.rendered();
    for kind in ["Namespace", "Secret", "ConfigMap", "Deployment", "StatefulSet", "PodMonitor"] {
        assert!(rendered.contains(&format!("kind: {kind}\n")), "no {kind}");
    }
    validate(&rendered);
}
