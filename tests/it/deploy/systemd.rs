//! The systemd units, judged by systemd itself.

use std::fs;

use clap::Parser as _;
use pds_config::flags::Flags;

use super::{command, deploy, output, text};

#[test]
fn systemd_finds_no_fault_with_the_units() {
    let folder = tempfile::tempdir().unwrap();
    let service = text("systemd/pds-exporter.service")
        .replace("/usr/bin/pds-exporter", env!("CARGO_BIN_EXE_pds-exporter"));
    let (socket, unit) =
        (folder.path().join("pds-exporter.socket"), folder.path().join("pds-exporter.service"));
    fs::write(&unit, service).unwrap();
    fs::copy(deploy("systemd/pds-exporter.socket"), &socket).unwrap();
    let settings = folder.path().join("pds-exporter.service.d");
    fs::create_dir(&settings).unwrap();
    fs::copy(deploy("systemd/tokens.conf"), settings.join("tokens.conf")).unwrap();
    let verify =
        command("systemd-analyze", ["verify".into(), "--man=no".into(), unit, socket]).output().unwrap();
    let said = [verify.stdout, verify.stderr].concat();
    // It succeeds even where it does not know a key, so anything said is a fault.
    assert!(verify.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn the_service_is_exposed_to_little() {
    let mut analyze = command("systemd-analyze", ["security", "--offline=true", "--threshold=20"]);
    analyze.arg(deploy("systemd/pds-exporter.service"));
    assert!(output(analyze).contains("Overall exposure level"));
}

#[test]
fn the_service_starts_the_exporter_with_flags_it_has() {
    let unit = text("systemd/pds-exporter.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let flags = Flags::try_parse_from(start.split(' ')).unwrap();
    assert!(flags.web_systemd_socket && flags.state_path.is_some());
}

#[test]
fn the_unit_names_each_step_to_run_without_its_socket() {
    let unit = text("systemd/pds-exporter.service");
    let settings = unit.lines().filter(|line| !line.starts_with('#') && line.contains("socket"));
    let keys: Vec<&str> = settings.filter_map(|line| line.split('=').next()).collect();
    assert_eq!(keys, ["Requires", "After", "ExecStart", "Also"]);
    for step in [
        "`systemctl disable --now pds-exporter.socket`",
        "these two lines",
        "`--web.systemd-socket`",
        "`Also=`",
    ] {
        assert!(unit.contains(step), "{step}");
    }
}

#[test]
fn several_tokens_come_from_a_folder_beside_the_default_one() {
    let settings = text("systemd/tokens.conf");
    let credentials: Vec<&str> =
        settings.lines().filter_map(|line| line.strip_prefix("LoadCredential=")).collect();
    // An empty one would remove the default token, which the configuration still names.
    assert_eq!(credentials, ["tokens:/etc/pds-exporter/tokens"]);
    let page = text("README.md");
    assert!(page.contains("/run/credentials/pds-exporter.service/tokens_search"));
}
