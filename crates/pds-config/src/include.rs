//! Files that `include` names. They hold only `[[projects]]`.

use std::collections::BTreeSet;
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use config::{Value, ValueKind};
use glob::{MatchOptions, Pattern};
use pds_core::plain_file;
use siphasher::sip::SipHasher13;
use walkdir::WalkDir;

use super::error::{LoadError, Problem};
use super::file;
use super::key::as_written;
use super::raw::{Found, Included, key_in};

/// Like a shell: `*` matches neither a hidden file (such as `..data` of a Kubernetes volume) nor a `/`.
const SHELL: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Files that a pattern may match, and how long listing them may take.
const MAX_INCLUDED: usize = 10_000;
const MAX_LISTING: Duration = Duration::from_secs(10);

/// The files that the patterns of `include` in the file at `path` match, sorted, without duplicates and without that
/// file. A pattern without a wildcard is the name of a file that must exist; another that matches no file is a warning.
fn files(include: Option<&Value>, path: &Path, found: &mut Found) -> BTreeSet<PathBuf> {
    let (mut files, folder) = (BTreeSet::new(), path.parent().unwrap_or(Path::new("")));
    // The row refuses anything but a list of strings.
    let Some(ValueKind::Array(patterns)) = include.map(|value| &value.kind) else { return files };
    for (index, pattern) in patterns.iter().enumerate() {
        let ValueKind::String(pattern) = &pattern.kind else { continue };
        if !pattern.contains(['*', '?', '[']) {
            files.insert(folder.join(pattern));
            continue;
        }
        match matching(pattern, folder) {
            Ok(mut matched) => {
                matched.retain(|matched| matched != path);
                if matched.is_empty() {
                    found.warnings.push(format!("include[{index}] matches no file: {pattern}"));
                }
                files.extend(matched);
            }
            Err(message) => found.problems.push(Problem { key: format!("include[{index}]"), message }),
        }
    }
    files
}

/// The files below `folder` that `pattern` matches, also links to missing ones. Below `**` no link is followed.
///
/// # Errors
/// Why they cannot be listed: the pattern is invalid, a folder is unreadable, or there are too many.
fn matching(pattern: &str, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let is_wild = |part: &&str| part.contains(['*', '?', '[']);
    let parts: Vec<&str> = pattern.split('/').collect();
    let fixed = parts.iter().position(is_wild).unwrap_or(parts.len());
    let (fixed, wild) = parts.split_at(fixed);
    let root = if pattern.starts_with('/') { Path::new("/") } else { folder };
    let root = root.join(fixed.iter().filter(|part| !part.is_empty()).collect::<PathBuf>());
    let wild_pattern =
        Pattern::new(&wild.join("/")).map_err(|error| format!("not a valid pattern: {error}"))?;
    let is_recursive = wild.contains(&"**");
    let depth = if is_recursive { usize::MAX } else { wild.len() };
    let (mut found, until) = (Vec::new(), Instant::now() + MAX_LISTING);
    // The folder of a file without one is the current folder.
    let listed = if root.as_os_str().is_empty() { Path::new(".") } else { &root };
    for entry in WalkDir::new(listed).min_depth(1).max_depth(depth).follow_links(!is_recursive) {
        if found.len() > MAX_INCLUDED || Instant::now() > until {
            return Err(format!(
                "more than {MAX_INCLUDED} files, or listing them takes longer than {}: {pattern}",
                humantime::format_duration(MAX_LISTING)
            ));
        }
        let path = match &entry {
            Ok(entry) => entry.path(),
            // A link to a folder around it leads to no other file.
            Err(error) if error.loop_ancestor().is_some() => continue,
            // No such folder, or a link that leads nowhere, which may match.
            Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {
                match error.path().filter(|path| *path != listed) {
                    Some(path) => path,
                    None => continue,
                }
            }
            Err(error) => return Err(format!("cannot list the files of {pattern}: {error}")),
        };
        let path = path.strip_prefix(listed).unwrap_or(path);
        if wild_pattern.matches_path_with(path, SHELL) {
            found.push(root.join(path));
        }
    }
    Ok(found)
}

/// Reads the files that the file at `path` includes. A problem with a file names the file.
pub(super) fn read(include: Option<&Value>, path: &Path, found: &mut Found) -> Vec<Included> {
    let mut included = Vec::new();
    for path in files(include, path, found) {
        let mut table = match file::read(&path) {
            Ok(table) => table,
            Err(error) => {
                found.problems.push(Problem { key: path.display().to_string(), message: unreadable(error) });
                continue;
            }
        };
        for (name, _) in table.iter().filter(|(name, _)| *name != "projects") {
            let message = "an included file may hold only [[projects]]".to_owned();
            found.problems.push(Problem { key: key_in(&path, &as_written(name)), message });
        }
        let Some(projects) = table.remove("projects") else { continue };
        included.push(Included { path, projects });
    }
    included
}

/// Why an included file cannot be read. The caller adds its name.
fn unreadable(error: LoadError) -> String {
    match error {
        LoadError::Missing { path } if path.is_symlink() => "a link to a missing file".to_owned(),
        LoadError::Missing { .. } => "no such file".to_owned(),
        LoadError::Unreadable { source, .. } => format!("cannot read the file: {source}"),
        LoadError::Syntax { line, column, message, .. } => {
            format!("line {line}, column {column}: not valid TOML: {message}")
        }
        other => other.to_string(),
    }
}

/// A checksum over names and contents of the file at `path` and of the files that `include` matches.
pub(super) fn checksum(path: &Path, include: Option<&Value>) -> u64 {
    let mut files = files(include, path, &mut Found::default());
    files.insert(path.to_owned());
    let mut hasher = SipHasher13::new();
    for path in files {
        path.hash(&mut hasher);
        // Only the error's kind: a file that stays unreadable has not changed.
        let bytes = plain_file::read(&path, file::MAX_FILE_BYTES).map(|file| file.bytes);
        bytes.map_err(|error| error.kind()).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::{checksum, load};
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell_and_links_below_two_asterisks_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a[b]");
        for path in
            ["p.d/one.toml", "p.d/two.toml", "p.d/.hidden.toml", "p.d/deep/er/three.toml", "other/four.toml"]
        {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(&root, root.join("p.d/deep/loop")).unwrap();
        std::os::unix::fs::symlink(root.join("other"), root.join("linked")).unwrap();
        std::os::unix::fs::symlink(root.join("other/four.toml"), root.join("p.d/link.toml")).unwrap();
        let names = |pattern: &str| {
            let mut names: Vec<_> = matching(pattern, &root).unwrap();
            names.sort();
            names
                .iter()
                .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("p.d/*.toml"), ["p.d/link.toml", "p.d/one.toml", "p.d/two.toml"]);
        assert_eq!(names("./p.d/t*.toml"), ["p.d/two.toml"]);
        assert_eq!(names("*/four.toml"), ["linked/four.toml", "other/four.toml"]);
        assert_eq!(names("p.d/**/*e*.toml"), ["p.d/deep/er/three.toml", "p.d/one.toml"]);
        assert_eq!(names("nowhere/*.toml"), [""; 0]);
        let absolute = root.join("p.d").display().to_string().replace("[b]", "?b?");
        assert_eq!(names(&format!("{absolute}/one.*")), ["p.d/one.toml"]);
        assert!(matching("p.d/[", &root).unwrap_err().contains("not a valid pattern"));
    }

    #[test]
    fn a_file_in_the_current_folder_includes_the_others_there_but_not_itself() {
        let found = matching("*.toml", Path::new("")).unwrap();
        assert_eq!(found, [Path::new("Cargo.toml")], "tests run in the folder of their crate");
        let include = Value::new(None, ValueKind::Array(vec!["*.toml".into()]));
        let files = |path: &str| files(Some(&include), Path::new(path), &mut Found::default());
        assert_eq!((files("exporter.toml").len(), files("Cargo.toml").len()), (1, 0));
    }

    #[test]
    fn a_link_to_a_missing_file_is_a_problem_and_a_loop_of_folders_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
        };
        let (file, project) = (folder.path().join("exporter.toml"), "[[projects]]\nid = \"p-1\"\n");
        std::fs::create_dir(folder.path().join("p.d")).unwrap();
        let patterns = r#"["p.d/*.toml", "p.d/*/*.toml", "missing/**"]"#;
        let api = "[api]\nbase_url = \"http://x\"\ntoken = \"t\"\n";
        std::fs::write(&file, format!("include = {patterns}\n{api}{project}")).unwrap();
        std::fs::write(folder.path().join("p.d/one.toml"), project.replace("p-1", "p-2")).unwrap();
        link(".", "p.d/loop");
        link("nowhere", "p.d/..data");
        link("nowhere", "p.d/notes");
        let config = load(&file, []).unwrap().config;
        assert_eq!(config.projects.len(), 2);
        let unmatched =
            ["include[1] matches no file: p.d/*/*.toml", "include[2] matches no file: missing/**"];
        assert_eq!(config.warnings(), unmatched);
        let before = checksum(&file, []);
        link("nowhere", "p.d/team.toml");
        assert_ne!(checksum(&file, []), before);
        let error = load(&file, []).unwrap_err().to_string();
        assert!(error.ends_with("/p.d/team.toml: a link to a missing file"), "{error}");
    }

    #[test]
    fn a_configuration_without_projects_names_the_patterns_that_match_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("exporter.toml");
        std::fs::write(&file, "include = [\"p.d/*.toml\"]\n[api]\nbase_url = \"http://x\"\n").unwrap();
        let error = load(&file, []).unwrap_err().to_string();
        let says = "write a [[projects]] entry with an id; include[0] matches no file: p.d/*.toml";
        assert!(error.ends_with(says), "{error}");
    }

    #[test]
    fn a_pattern_that_matches_without_end_is_refused() {
        let error = matching("/proc/**/*", Path::new("/")).unwrap_err();
        assert!(error.contains("/proc/**/*"), "{error}");
    }

    #[test]
    fn a_pipe_or_a_device_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.toml");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let file = folder.path().join("exporter.toml");
        let text =
            "include = [\"pipe.toml\", \"/dev/zero\"]\n[api]\nbase_url = \"http://x\"\ntoken = \"t\"\n";
        std::fs::write(&file, text).unwrap();
        let error = load(&file, []).unwrap_err().to_string();
        assert_eq!(error.matches("not a regular file").count(), 2, "{error}");
        assert_eq!(checksum(&file, []), checksum(&file, []));
        assert!(load(&pipe, []).is_err());
    }
}
