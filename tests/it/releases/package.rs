//! The Debian package: what it installs, and that its units and documents are whole.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{installed, project, script};
use crate::deploy::{command, host, output, succeed};
use crate::process::edit;

/// Puts both programs of this build into `folder`, without their symbols.
pub(super) fn strip_into(folder: &Path) {
    for program in [env!("CARGO_BIN_EXE_pds-exporter"), &crate::process::pdstool()] {
        let stripped = folder.join(Path::new(program).file_name().unwrap());
        succeed(command("strip", ["-o"]).arg(stripped).arg(program));
    }
}

#[test]
fn the_debian_package_installs_into_a_clean_root_and_its_units_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("built")).unwrap();
    strip_into(&path("built"));
    let at = |name: &str| path(name).to_str().unwrap().to_owned();
    let archive = output(script("archive", &[&at("built"), &host(), &at("out")]));
    let package = output(script("deb", &[archive.trim(), &at("out"), "--fast"]));
    let name = Path::new(package.trim()).file_name().unwrap().to_str().unwrap();
    let readme = fs::read_to_string(project().join("README.md")).unwrap();
    let documented = format!("apt install ./{}_*_amd64.deb", name.split('_').next().unwrap());
    assert!(readme.contains(&documented) && name.ends_with("64.deb"), "{name}");

    let root = path("root");
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let mut install = command("dpkg", ["--force-not-root", "--log=/dev/null"]);
    succeed(install.arg(format!("--root={}", root.display())).arg("--install").arg(package.trim()));

    let installed = |name: &str| root.join(name);
    documents_lead_somewhere(&installed("usr/share/doc/pds-exporter"));
    let documents = ["copyright", "examples/config.example.toml", "examples/tokens.conf"]
        .map(|name| format!("doc/pds-exporter/{name}"));
    let completions = ["pds-exporter", "pdstool"].map(|name| {
        [
            format!("bash-completion/completions/{name}"),
            format!("zsh/vendor-completions/_{name}"),
            format!("fish/vendor_completions.d/{name}.fish"),
        ]
    });
    for name in documents.iter().chain(completions.as_flattened()) {
        assert!(installed("usr/share").join(name).is_file(), "{name}");
    }
    let version = output(Command::new(installed("usr/bin/pds-exporter")).arg("--version"));
    assert!(version.contains(env!("CARGO_PKG_VERSION")));
    installed::man_pages_and_completions_are_those_of_the_programs(&root);

    // The units as they lie in the root, with what they want of systemd itself taken from this machine.
    for unit in ["pds-exporter.service", "pds-exporter.socket"] {
        let file = installed("usr/lib/systemd/system").join(unit);
        edit(&file, |text| text.replace("/usr/bin/pds", installed("usr/bin/pds").to_str().unwrap()));
    }
    let mut verify = command("systemd-analyze", ["verify", "--man=no"]);
    verify.arg(installed("usr/lib/systemd/system/pds-exporter.service"));
    verify.env("SYSTEMD_UNIT_PATH", format!("{}:", installed("usr/lib/systemd/system").display()));
    assert_eq!(succeed(verify), "", "systemd-analyze succeeds on unknown keys too, but names them");
}

/// Links of the documents are addresses or headings: the files beside them in the repository are not installed.
fn documents_lead_somewhere(folder: &Path) {
    for name in ["README.md", "CHANGELOG.md"] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let links: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(!links.is_empty(), "{name}");
        for link in links {
            assert!(link.starts_with('#') || link.starts_with("http"), "{name}: {link}");
            let ours = link.strip_prefix(env!("CARGO_PKG_REPOSITORY"));
            let Some(path) = ours.and_then(|path| path.strip_prefix("/blob/v")) else { continue };
            let (version, path) = path.split_once('/').unwrap();
            assert_eq!(version, env!("CARGO_PKG_VERSION"), "{link}");
            assert!(project().join(path.split('#').next().unwrap()).exists(), "{link}");
        }
    }
}
