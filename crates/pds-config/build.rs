//! The version of both programs, with the revision of the sources.

use std::path::Path;
use std::process::Command;

fn main() {
    let revision = revision();
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version =
        revision.as_ref().map_or(version.clone(), |revision| format!("{version} (revision {revision})"));
    // Empty if the revision is not known.
    println!("cargo::rustc-env=PDS_EXPORTER_BUILT_FROM={}", revision.unwrap_or_default());
    println!("cargo::rustc-env=PDS_EXPORTER_VERSION={version}");
}

/// The commit, where it is known: from `PDS_EXPORTER_REVISION`, as noted in a published crate, or as git says.
/// `-modified` follows where the sources differ from it.
fn revision() -> Option<String> {
    println!("cargo::rerun-if-env-changed=PDS_EXPORTER_REVISION");
    if let Ok(told) = std::env::var("PDS_EXPORTER_REVISION") {
        return is_commit(&told).then_some(told);
    }
    // Not for tests: each commit would compile everything anew.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        return None;
    }
    let noted = std::fs::read_to_string(".cargo_vcs_info.json").ok();
    noted.map_or_else(of_git, |noted| {
        let commit = noted.split('"').find(|text| is_commit(text))?;
        Some(commit.to_owned() + if noted.contains("\"dirty\": true") { "-modified" } else { "" })
    })
}

/// The commit that is checked out, if these sources are a work tree of their own.
fn of_git() -> Option<String> {
    const SOURCES: &[&str] = &["src", "crates", "Cargo.toml", "Cargo.lock"];
    // The root of the workspace; cargo runs this in the folder of the crate.
    std::env::set_current_dir("../..").ok().filter(|()| Path::new(".git").exists())?;
    let commit = git(&["rev-parse", "--verify", "HEAD"]).filter(|commit| is_commit(commit))?;
    // Rewritten by every commit, checkout and reset.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in SOURCES.iter().chain([&log.as_str()]).filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={}", Path::new("../..").join(path).display());
    }
    let status = [&["status", "--porcelain", "--"], SOURCES].concat();
    Some(commit + if git(&status)?.is_empty() { "" } else { "-modified" })
}

/// Output of git, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim().to_owned())
}

/// Whether this is a hash as git writes it.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
