//! Files that `include` names. They hold only `[[projects]]`.

use std::collections::BTreeSet;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use config::{Map, Value, ValueKind};
use glob::{MatchOptions, Pattern};
use pds_core::plain_file;
use siphasher::sip::SipHasher13;

use super::error::{LoadError, Problem};
use super::file;
use super::key::as_written;
use super::raw::{Included, key_in};

/// Like a shell: `*` matches neither a hidden file (such as `..data` of a Kubernetes volume) nor a `/`.
const SHELL: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The files that the patterns of `include` match, sorted and without duplicates. A pattern without a wildcard is the
/// name of a file that must exist.
fn files(values: &Map<String, Value>, folder: &Path, problems: &mut Vec<Problem>) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    // The row refuses anything but a list of strings.
    let Some(ValueKind::Array(patterns)) = values.get("include").map(|value| &value.kind) else {
        return files;
    };
    for (index, pattern) in patterns.iter().enumerate() {
        let ValueKind::String(pattern) = &pattern.kind else { continue };
        let mut refuse =
            |message: String| problems.push(Problem { key: format!("include[{index}]"), message });
        if !pattern.contains(['*', '?', '[']) {
            files.insert(folder.join(pattern));
            continue;
        }
        // The folder's own name is not a pattern.
        let folder = folder.to_str().map(Pattern::escape).unwrap_or_default();
        let pattern = Path::new(&folder).join(pattern).display().to_string();
        match glob::glob_with(&pattern, SHELL) {
            Err(error) => refuse(format!("not a valid pattern: {error}")),
            Ok(found) => {
                for file in found {
                    match file {
                        Ok(file) => drop(files.insert(file)),
                        Err(error) => {
                            refuse(format!("cannot list {}: {}", error.path().display(), error.error()))
                        }
                    }
                }
            }
        }
    }
    files
}

/// Reads the included files. A problem with a file names the file.
pub(super) fn read(values: &Map<String, Value>, folder: &Path, problems: &mut Vec<Problem>) -> Vec<Included> {
    let mut included = Vec::new();
    for path in files(values, folder, problems) {
        let mut table = match file::read(&path) {
            Ok(table) => table,
            Err(error) => {
                problems.push(Problem { key: path.display().to_string(), message: unreadable(error) });
                continue;
            }
        };
        for (name, _) in table.iter().filter(|(name, _)| *name != "projects") {
            let message = "an included file may hold only [[projects]]".to_owned();
            problems.push(Problem { key: key_in(&path, &as_written(name)), message });
        }
        let Some(projects) = table.remove("projects") else { continue };
        included.push(Included { path, projects });
    }
    included
}

/// Why an included file cannot be read. The caller adds its name.
fn unreadable(error: LoadError) -> String {
    match error {
        LoadError::Missing { .. } => "no such file".to_owned(),
        LoadError::Unreadable { source, .. } => format!("cannot read the file: {source}"),
        LoadError::Syntax { line, column, message, .. } => {
            format!("line {line}, column {column}: not valid TOML: {message}")
        }
        other => other.to_string(),
    }
}

/// A checksum over names and contents of the file at `path` and of the files that its `values` include.
pub(super) fn checksum(path: &Path, values: Option<&Map<String, Value>>, folder: &Path) -> u64 {
    let mut files = values.map(|values| files(values, folder, &mut Vec::new())).unwrap_or_default();
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
