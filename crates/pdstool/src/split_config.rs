//! `pdstool split-config`: cuts a configuration into files that fit into ConfigMaps.
//!
//! The text is cut before its `[[projects]]` headers, with the comments above them. What comes out is compared with what
//! went in, so a line that only looks like a header cannot change anything.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use config::{FileFormat, Format as _, Map, Value};
use pds_core::plain_file;
use pds_core::units::counted;
use pds_exporter::config::{LoadError, load_text};

use crate::console::Console;
use crate::error::ToolError;

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
pub fn run(console: &mut Console, args: &SplitConfigArgs) -> Result<(), ToolError> {
    let failed = |doing, path: &Path| {
        let path = path.to_owned();
        move |source| ToolError::File { doing, path, source }
    };
    let text = plain_file::read_text(&args.file, plain_file::MAX_BYTES);
    let text = text.map_err(failed("cannot read", &args.file))?;
    // Says where a syntax error stands. Whether the values are right depends on where the file will be.
    if let Err(error @ LoadError::Syntax { .. }) = load_text(&args.file, &text) {
        return Err(error.into());
    }
    let files = cut(&text, args.max_bytes).map_err(|message| ToolError::Failed {
        message: format!("{}: {message}", args.file.display()),
        code: 1,
    })?;
    fs::create_dir_all(&args.folder).map_err(failed("cannot make the folder", &args.folder))?;
    let mut held = fs::read_dir(&args.folder).map_err(failed("cannot read", &args.folder))?;
    if held.next().is_some() {
        return Err(ToolError::Usage(format!("{} is not empty", args.folder.display())));
    }
    for (name, text) in &files {
        let path = args.folder.join(name);
        // It may hold tokens.
        let mut file = OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(failed("cannot write", &path))?;
    }
    let largest = files.iter().map(|(_, text)| text.len()).max().unwrap_or_default();
    let count = counted(files.len(), "file", "files");
    Ok(console.print(&format!("{count} in {}, the largest of {largest} bytes", args.folder.display()))?)
}

/// The names and texts of the files that the configuration `text` is cut into, none above `max` bytes.
fn cut(text: &str, max: usize) -> Result<Vec<(String, String)>, String> {
    let whole = parse(text)?;
    if whole.contains_key("include") {
        return Err("include: it is in several files already; cut each of them".to_owned());
    }
    let (rest, projects) = sections(text);
    let main = format!("include = [\"{INCLUDE}\"]\n\n{rest}");
    let mut parts: Vec<String> = Vec::new();
    for project in projects {
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
    if !is_the_same(whole, &main, &parts) {
        let message =
            "it cannot be cut: write each project as a [[projects]] table at the beginning of a line";
        return Err(message.to_owned());
    }
    let named = parts
        .into_iter()
        .enumerate()
        .map(|(index, part)| (INCLUDE.replace('*', &format!("{index:03}")), part));
    Ok([(MAIN.to_owned(), main)].into_iter().chain(named).collect())
}

/// What stands outside of the projects, and each project with the comment right above it.
fn sections(text: &str) -> (String, Vec<String>) {
    let (mut rest, mut projects) = (String::new(), Vec::<String>::new());
    // Comments, until it is clear what they are above; and whether the lines belong to the last project.
    let (mut comments, mut in_project) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('#') {
            comments.push_str(line);
            continue;
        }
        if let Some(header) = line.trim_start().strip_prefix('[') {
            let name = header.trim_start_matches(['[', ' ', '\t', '"', '\'']);
            let rest =
                name.strip_prefix("projects").map(|rest| rest.trim_start_matches([' ', '\t', '"', '\'']));
            in_project = rest.is_some_and(|rest| rest.starts_with([']', '.']));
            if header.starts_with('[') && rest.is_some_and(|rest| rest.starts_with(']')) {
                projects.push(String::new());
            }
        }
        let section = match projects.last_mut() {
            Some(project) if in_project => project,
            _ => &mut rest,
        };
        section.push_str(&std::mem::take(&mut comments));
        section.push_str(line);
    }
    rest.push_str(&comments);
    (rest, projects)
}

/// Whether the parts hold projects alone, the main file none, and both together what the whole does.
fn is_the_same(whole: Map<String, Value>, main: &str, parts: &[String]) -> bool {
    let holds_projects = |text: &String| parse(text).is_ok_and(|part| part.keys().eq(["projects"]));
    let holds_none = parse(main).is_ok_and(|main| !main.contains_key("projects"));
    let together = parse(&format!("{main}\n{}", parts.concat()));
    !parts.is_empty()
        && parts.iter().all(holds_projects)
        && holds_none
        && together.is_ok_and(|mut together| together.remove("include").is_some() && together == whole)
}

fn parse(text: &str) -> Result<Map<String, Value>, String> {
    FileFormat::Toml.parse(None, text).map_err(|error| error.to_string())
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
             [poll]\ninterval = \"30s\"\n\n# The end.\n"
        );
        assert!(files[1].1.starts_with("# Search.\n[[projects]]\n") && files[1].1.contains("# the first"));
        assert_eq!(files[2].1, "[[ \"projects\" ]]\nid = \"p-2\"\n[[projects]]\nid = \"p-3\"\n");
        assert_eq!(cut(&text, 1_000).unwrap().len(), 2, "as few files as possible");
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        for (text, max, why) in [
            ("[api]\ntimeout = \"1s\"\n", 1_000, "[[projects]]"),
            ("projects = [{ id = \"p-1\" }]\n", 1_000, "[[projects]]"),
            ("include = [\"a.toml\"]\n[[projects]]\nid = \"p-1\"\n", 1_000, "include"),
            ("[[projects]]\nid = \"p-1\"\nlabels = { a = '''\n[[projects]]\n''' }\n", 45, "[[projects]]"),
            ("[[projects]]\nid = \"p-1\"\napps = [\"a\", \"b\", \"c\"]\n", 40, "id = \"p-1\": 47 bytes"),
            ("[[projects]]\nid = \"p-1\"\n", 30, "pds-exporter.toml: 31 bytes"),
        ] {
            let refused = cut(text, max).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
