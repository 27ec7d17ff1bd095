//! The house's own rules, read from its sources: who may import whom, how long a file is, who reads files.

mod circles;
mod layers;
mod names;
mod near;

use std::fmt::Write as _;

use crate::deploy::{command, output};

pub(crate) use layers::LAYERS;

/// The modules that may read files and the environment; the others get their data as arguments.
const READERS: &[(&str, &str)] = &[
    ("crates/pds-config/src/file", "the configuration file"),
    ("crates/pds-config/src/include", "the files it includes"),
    ("crates/pds-config/src/running", "the flags of the exporter that runs beside a health check"),
    ("crates/pds-http/", "trust anchors"),
    ("crates/pds-client/", "token files and trust anchors, which are read again when they change"),
    ("crates/pds-ledger/", "the state file; credentials and trust anchors of a Prometheus"),
    ("crates/pds-telemetry/src/process", "what the system says of this process"),
    ("crates/pds-core/src/plain_file", "reads for those below"),
    ("crates/pds-core/src/memory", "the memory limits of the cgroups"),
    ("crates/pds-web/src/", "the web configuration file and its certificates, read again when they change"),
    ("src/app", "builds everything"),
    ("crates/pdstool/src", "a program of its own"),
    ("src/bin/", "hands over arguments and environment"),
];

/// Reads of files and of the environment.
const READS: &[&str] = &["std::env", "env::var", "std::fs", "tokio::fs", "fs::read", "File::open"];

/// The modules that may read files by other means than `plain_file`, which is bounded and never waits: none of their
/// files comes from elsewhere.
const OWN_FILES: &[(&str, &str)] = &[
    ("crates/pds-core/src/plain_file", "is the reader"),
    ("crates/pds-ledger/", "the state file"),
    ("crates/pdstool/src/state/", "the state file"),
    ("crates/pdstool/src/backfill/", "what a backfill has written"),
    ("crates/pds-telemetry/src/process", "/proc"),
    ("crates/pds-config/src/running", "/proc"),
];

/// Reads of files without a bound.
const UNBOUNDED_READS: &[&str] =
    &["fs::read(", "fs::read_to_string(", "File::open(", "File::options()", "OpenOptions::new().read"];

/// The most lines of a file without its tests.
const MAX_FILE_LINES: usize = 350;

/// One source file.
#[derive(Clone)]
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The text before its tests.
    fn before_tests(&self) -> &str {
        let tests = ["", "pub(super) ", "pub(crate) "]
            .map(|visible| format!("\n#[cfg(test)]\n{visible}mod tests {{"));
        let end = tests.iter().find_map(|tests| self.text.find(tests));
        end.map_or(self.text.as_str(), |end| &self.text[..end])
    }

    /// The crate below `crates/` that this file belongs to, as layers name it: `interface` of `pds-interface`.
    fn member(&self) -> Option<&str> {
        let folder = self.path.strip_prefix("crates/")?.split('/').next()?;
        folder.strip_prefix("pds-").or(folder.strip_prefix("pds"))
    }

    /// The modules from the root down to this file: `["poll", "schedule"]`; empty for `lib.rs`. A crate below
    /// `crates/` counts as a module: `["interface", "call"]`.
    fn modules(&self) -> Vec<&str> {
        let path = self.path.split_once("src/").map_or(self.path.as_str(), |(_, inside)| inside);
        let inside =
            path.trim_end_matches(".rs").split('/').filter(|module| !matches!(*module, "mod" | "lib"));
        self.member().into_iter().chain(inside).collect()
    }
}

/// All sources of the programs.
fn house() -> Vec<Source> {
    let of_crates = sources("crates").into_iter().filter(|source| source.path.contains("/src/"));
    sources("src").into_iter().chain(of_crates).collect()
}

/// The text of every source and test.
pub(crate) fn texts(folders: &[&str]) -> String {
    folders.iter().flat_map(|folder| sources(folder)).map(|source| source.text).collect()
}

/// All Rust sources below `folder`, by path.
fn sources(folder: &str) -> Vec<Source> {
    files(folder, &["rs"])
}

/// All files below `folder` with one of these extensions, by path.
fn files(folder: &str, extensions: &[&str]) -> Vec<Source> {
    let found = output(command("find", [folder, "-type", "f"]));
    let is_wanted = |path: &&str| extensions.iter().any(|one| path.ends_with(&format!(".{one}")));
    let mut paths: Vec<&str> = found.lines().filter(is_wanted).collect();
    paths.sort_unstable();
    assert!(!paths.is_empty());
    let read = |path: &str| Source { path: path.to_owned(), text: std::fs::read_to_string(path).unwrap() };
    paths.into_iter().map(read).collect()
}

/// Fails with all `complaints`, one a line.
fn assert_none(rule: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{rule}\n{}", complaints.join("\n"));
}

/// `text` with its comments blanked; lines and places stay.
fn without_comments(text: &str) -> String {
    let code = |line: &str| match line.trim_start().starts_with("//") {
        true => String::new(),
        false => line.split(" // ").next().unwrap_or("").to_owned(),
    };
    text.lines().map(code).collect::<Vec<_>>().join("\n")
}

#[test]
fn files_are_short() {
    let is_long = |source: &Source| source.before_tests().lines().count() > MAX_FILE_LINES;
    let sources = house().into_iter().chain(sources("tests"));
    let long: Vec<_> = sources.filter(is_long).map(|source| source.path).collect();
    assert_none("files of more than 350 lines: divide them by subject", &long);
}

/// Words that put a clause in front of a sentence.
const CLAUSES: &[&str] = &["Of ", "What ", "Where ", "Which ", "Who ", "Whoever ", "Whose "];

#[test]
fn comments_begin_with_their_subject() {
    let mut complaints = Vec::new();
    let others = [files("deploy/grafana/src", &["ts"]), files("deploy", &["yml", "yaml"])].concat();
    let tests = files("tests", &["rs", "mjs"]);
    for source in [house(), sources("benches"), tests, others].concat() {
        let mut is_inside = false;
        for line in source.text.lines() {
            let line = line.trim_start();
            let comment = ["//", "/**", "# "].iter().find_map(|mark| line.strip_prefix(mark));
            let comment = comment.map(|text| text.trim_start_matches(['/', '!', ' ']));
            let sentences = comment.unwrap_or_default().split(". ").skip(usize::from(is_inside));
            if sentences.into_iter().any(|text| CLAUSES.iter().any(|clause| text.starts_with(clause))) {
                complaints.push(format!("{}: {}", source.path, line.trim()));
            }
            is_inside = comment.is_some_and(|text| !text.is_empty());
        }
    }
    assert_none("begin with the subject", &complaints);
}

/// The beginnings of names that ask: such a function changes nothing.
const QUESTIONS: &[&str] = &["fn is_", "fn has_", "fn may_"];

#[test]
fn questions_change_nothing() {
    let mut complaints = Vec::new();
    for source in house() {
        for (at, _) in source.text.match_indices("fn ") {
            let rest = &source.text[at..];
            let signature = &rest[..rest.find(" {").unwrap_or(rest.len()).min(300)];
            if QUESTIONS.iter().any(|name| signature.starts_with(name)) && signature.contains("&mut ") {
                complaints.push(format!("{}: {signature}", source.path));
            }
        }
    }
    assert_none("a function with the name of a question takes nothing by &mut", &complaints);
}

#[test]
fn every_file_opens_with_its_page() {
    let bare = |source: &Source| (!source.text.starts_with("//! ")).then(|| source.path.clone());
    let sources = house().into_iter().chain(sources("tests"));
    let complaints: Vec<_> = sources.filter_map(|source| bare(&source)).collect();
    assert_none("files that do not begin by saying what they are about (//! ...)", &complaints);
}

/// Fails with each of `reads` outside of `allowed`.
fn assert_reads(rule: &str, reads: &[&str], allowed: &[(&str, &str)]) {
    let mut complaints = Vec::new();
    for source in house() {
        if allowed.iter().any(|(path, _)| source.path.starts_with(path)) {
            continue;
        }
        let code = without_comments(source.before_tests());
        for (number, line) in code.lines().enumerate() {
            if let Some(read) = reads.iter().find(|read| line.contains(*read)) {
                complaints.push(format!("{}:{}: {read}", source.path, number + 1));
            }
        }
    }
    let mut rule = rule.to_owned();
    for (path, what) in allowed {
        write!(rule, "\n  {path}: {what}").unwrap();
    }
    assert_none(&rule, &complaints);
}

#[test]
fn only_the_named_parts_read_files_and_the_environment() {
    assert_reads("files and environment are read only by", READS, READERS);
}

#[test]
fn files_of_others_are_read_by_the_bounded_reader() {
    assert_reads("files are read by plain_file, but for", UNBOUNDED_READS, OWN_FILES);
}
