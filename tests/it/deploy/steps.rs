//! `deploy/README.md` followed from its top to its bottom: every command as it stands there. What would change the machine
//! or needs a cluster is done by stand-ins: they install below a folder, and render what would be applied.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
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
             enable) [[ $2 == --now ]]; shift 2; exec /usr/bin/systemctl --quiet --root="$root" enable "$@" ;;
             restart) units=$root/etc/systemd/system; cat "$units/$2.service" "$units/$2.service.d/"*.conf >"$root/unit" ;;
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
             *) exit 1 ;;
           esac
           echo --- >>"$rendered""#,
    ),
    (
        "helm",
        r#"shift; [[ $1 != --install ]] || shift
           "$helm" template "$@" >>"$rendered"; echo --- >>"$rendered""#,
    ),
    ("editor", r#"for file; do [[ -w $file ]]; done"#),
    // real_deploy::agent starts it.
    ("prometheus", r#"[[ $1 == --agent && -f ${2#--config.file=} ]]"#),
    // deploy::dashboards builds them.
    ("npm", r#"[[ $1 == install ]] || grep -q "\"$2\":" package.json"#),
];

/// A folder with what the reader of the page has: a clone, a configuration, tokens, a certificate.
fn clone() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(deploy("")).arg(folder.path().join("deploy"));
    succeed(copy);
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
    let mut cut = Command::new("sh");
    cut.args(["-e", "-c", &blocks(&fs::read_to_string("docs/scale.md").unwrap(), "sh").concat()]);
    cut.current_dir(&folder);
    succeed(cut);
    folder
}

#[test]
fn the_page_is_followed_from_its_top_to_its_bottom() {
    let (folder, machine) = (clone(), tempfile::tempdir().unwrap());
    let (bin, root) = (machine.path().join("stand-ins"), machine.path().join("root"));
    for folder in [&bin, &root.join("usr/bin"), &root.join("etc/systemd/system")] {
        fs::create_dir_all(folder).unwrap();
    }
    for (name, script) in STAND_INS {
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/bash\nset -euo pipefail\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tool_folder = Path::new(&pdstool()).parent().unwrap().to_owned();
    let rendered = machine.path().join("rendered.yaml");
    let page = text("README.md");
    for block in blocks(&page, "sh") {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &block]).current_dir(folder.path());
        let path = [bin.display().to_string(), tool_folder.display().to_string(), "/usr/bin:/bin".into()];
        shell.env("PATH", path.join(":")).env("EDITOR", "editor");
        shell.env("root", &root).env("rendered", &rendered).env("project", env!("CARGO_MANIFEST_DIR"));
        shell.env("exporter", env!("CARGO_BIN_EXE_pds-exporter")).env("pdstool", pdstool());
        shell.env("kubectl", tool("kubectl")).env("helm", tool("helm"));
        succeed(shell);
    }
    // The machine has both programs, and units that find the tokens.
    for file in ["usr/bin/pdstool", "etc/pds-exporter/token", "etc/pds-exporter/tokens/search"] {
        assert!(root.join(file).is_file(), "{file}");
    }
    let wanted = root.join("etc/systemd/system/sockets.target.wants/pds-exporter.socket");
    assert!(wanted.is_symlink(), "the socket is enabled");
    let unit = fs::read_to_string(root.join("unit")).unwrap();
    assert!(unit.contains("LoadCredential=tokens:/etc/pds-exporter/tokens"), "{unit}");
    // And the cluster objects that its API accepts.
    let rendered = fs::read_to_string(rendered).unwrap();
    for kind in ["Namespace", "Secret", "ConfigMap", "Deployment", "StatefulSet", "PodMonitor"] {
        assert!(rendered.contains(&format!("kind: {kind}\n")), "no {kind}");
    }
    validate(&rendered);
}
