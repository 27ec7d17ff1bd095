//! `pdstool split-config`: cuts a configuration into files that fit into ConfigMaps.
//!
//! Each `[[projects]]` table is taken out with the comments above it; everything else stays as it is.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use pds_config::{LoadError, load_text};
use pds_core::plain_file;
use pds_core::units::counted;
use toml_edit::{DocumentMut, Item, TomlError};

use crate::console::Console;
use crate::error::{Result, ToolError};
use crate::output::write_private;

/// What `kubectl apply` writes into an annotation of at most 256 KiB, where quotes and line ends take two bytes.
const DEFAULT_MAX_BYTES: usize = 200_000;

/// The file beside which the parts lie.
const MAIN: &str = "pds-exporter.toml";

/// What the main file includes.
const INCLUDE: &str = "projects-*.toml";

/// `pdstool split-config`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  pdstool split-config pds-exporter.toml parts
  for file in parts/*.toml; do
    kubectl create configmap pds-\"$(basename \"$file\" .toml)\" --from-file=\"$file\" --dry-run=client -o yaml | kubectl apply -f -
  done")]
pub struct SplitConfigArgs {
    /// Configuration file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Folder for pds-exporter.toml and projects-000.toml, projects-001.toml, ...; it must not hold anything yet.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Largest size of a file; kubectl apply takes 200000, a ConfigMap 1 MiB.
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_BYTES)]
    max_bytes: usize,
}

/// Writes the parts.
///
/// # Errors
/// If the file cannot be read or cut, or the folder cannot be written or holds something.
pub fn run(console: &mut Console, args: &SplitConfigArgs) -> Result<()> {
    let text = plain_file::read_text(&args.file, plain_file::MAX_BYTES);
    let text = text.map_err(ToolError::file("cannot read", &args.file))?;
    // Says where a syntax error stands. Whether the values are right depends on where the file will be.
    if let Err(error @ LoadError::Syntax { .. }) = load_text(&args.file, &text) {
        return Err(error.into());
    }
    let files = cut(&text, args.max_bytes)
        .map_err(|message| ToolError::failed(format!("{}: {message}", args.file.display())))?;
    fs::create_dir_all(&args.folder).map_err(ToolError::file("cannot make the folder", &args.folder))?;
    let mut held = fs::read_dir(&args.folder).map_err(ToolError::file("cannot read", &args.folder))?;
    if held.next().is_some() {
        return Err(ToolError::Usage(format!("{} is not empty", args.folder.display())));
    }
    for (name, text) in &files {
        write_private(&args.folder.join(name), text, false)?;
    }
    let largest = files.iter().map(|(_, text)| text.len()).max().unwrap_or_default();
    let count = counted(files.len(), "file", "files");
    Ok(console.print(&format!("{count} in {}, the largest of {largest} bytes", args.folder.display()))?)
}

/// The names and texts of the files that the configuration `text` is cut into, none above `max` bytes.
fn cut(text: &str, max: usize) -> Result<Vec<(String, String)>, String> {
    let mut rest: DocumentMut = text.parse().map_err(|error: TomlError| error.to_string())?;
    if rest.contains_key("include") {
        return Err("include: it is in several files already; cut each of them".to_owned());
    }
    let Some(Item::ArrayOfTables(projects)) = rest.remove("projects") else {
        return Err("it cannot be cut: write each project as a [[projects]] table".to_owned());
    };
    let main = format!("include = [\"{INCLUDE}\"]\n\n{rest}");
    let mut parts: Vec<String> = Vec::new();
    for project in projects {
        let mut part = DocumentMut::new();
        part.insert("projects", Item::ArrayOfTables([project].into_iter().collect()));
        let project = part.to_string().trim_start().to_owned();
        match parts.last_mut() {
            Some(part) if part.len() + project.len() <= max => part.push_str(&project),
            _ => parts.push(project),
        }
    }
    if let Some(part) = parts.iter().chain([&main]).find(|part| part.len() > max) {
        let name = part.lines().find(|line| line.trim_start().starts_with("id")).unwrap_or(MAIN);
        return Err(format!(
            "{name}: {} bytes cannot be cut further; a file takes {max} (--max-bytes). Give the exporter a volume instead",
            part.len()
        ));
    }
    let named = parts
        .into_iter()
        .enumerate()
        .map(|(index, part)| (INCLUDE.replace('*', &format!("{index:03}")), part));
    Ok([(MAIN.to_owned(), main)].into_iter().chain(named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Ours.\n[api]\nbase_url = \"https://api.example.com\"\n\n# Search.\n[[projects]]\nid = \"p-1\"\n\
        apps = [\n  \"p-1-a\", # the first\n]\n[projects.labels]\nteam = \"search\"\n\n[[projects.apps]]\nid = \"p-1-b\"\n\n\
        [poll]\ninterval = \"30s\"\n\n[[ \"projects\" ]]\nid = \"p-2\"\n[[projects]]\nid = \"p-3\"\n# The end.\n";

    fn names(files: &[(String, String)]) -> Vec<&str> {
        files.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_configuration_is_cut_between_projects_and_keeps_its_comments() {
        // Not valid as a whole: apps are a list or tables. That is not for here.
        let text = TEXT.replace("[[projects.apps]]\nid = \"p-1-b\"\n\n", "");
        let files = cut(&text, 120).unwrap();
        assert_eq!(names(&files), ["pds-exporter.toml", "projects-000.toml", "projects-001.toml"]);
        assert_eq!(
            files[0].1,
            "include = [\"projects-*.toml\"]\n\n# Ours.\n[api]\nbase_url = \"https://api.example.com\"\n\n\
             [poll]\ninterval = \"30s\"\n# The end.\n"
        );
        assert!(files[1].1.starts_with("# Search.\n[[projects]]\n") && files[1].1.contains("# the first"));
        assert_eq!(files[2].1, "[[projects]]\nid = \"p-2\"\n[[projects]]\nid = \"p-3\"\n");
        assert_eq!(cut(&text, 1_000).unwrap().len(), 2, "as few files as possible");
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        for (text, max, why) in [
            ("[api]\ntimeout = \"1s\"\n", 1_000, "[[projects]]"),
            ("projects = [{ id = \"p-1\" }]\n", 1_000, "[[projects]]"),
            ("include = [\"a.toml\"]\n[[projects]]\nid = \"p-1\"\n", 1_000, "include"),
            (
                "[[projects]]\nid = \"p-1\"\nlabels = { a = '''\n[[projects]]\n''' }\n",
                45,
                "id = \"p-1\": 62 bytes",
            ),
            ("[[projects]]\nid = \"p-1\"\napps = [\"a\", \"b\", \"c\"]\n", 40, "id = \"p-1\": 47 bytes"),
            ("[[projects]]\nid = \"p-1\"\n", 30, "pds-exporter.toml: 31 bytes"),
        ] {
            let refused = cut(text, max).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
