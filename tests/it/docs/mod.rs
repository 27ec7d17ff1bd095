//! The documentation is true: flags, keys, series, files, commands and types that it names exist, links lead somewhere,
//! and its [`tables`] are generated. `UPDATE_GOLDEN=1` rewrites these.

mod figures;
mod tables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use pds_config::flags::Flags;
use pds_config::key::{self, Key};
use pds_web::webconfig;
use pdstool::Cli;

use crate::deploy::unknown_series;
use crate::golden::between;
use crate::house::LAYERS;

pub(crate) use figures::taken_by;

/// All pages, by path.
fn pages() -> Vec<(String, String)> {
    let names = "README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md deploy/README.md benches/README.md \
                 deploy/helm/pds-exporter/README.md";
    let mut paths: Vec<PathBuf> = names.split(' ').map(PathBuf::from).collect();
    paths.extend(std::fs::read_dir("docs").unwrap().map(|entry| entry.unwrap().path()));
    paths.sort();
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
    paths.into_iter().map(read).collect()
}

/// The code blocks of a language, without the indentation of the list they stand in.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(indent) = line.strip_suffix(&fence).filter(|indent| indent.trim().is_empty()) else {
            continue;
        };
        let inside = lines.by_ref().take_while(|line| line.trim() != "```");
        blocks.push(inside.map(|line| line.strip_prefix(indent).unwrap_or(line).to_owned() + "\n").collect());
    }
    blocks
}

/// The texts in backticks, outside of code blocks.
fn quoted(page: &str) -> Vec<&str> {
    let outside = page.split("```").step_by(2);
    outside.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
}

/// The PromQL examples of all pages, each with its page.
pub(crate) fn queries() -> Vec<(String, String)> {
    let of_page = |(path, page): (String, String)| {
        blocks(&page, "promql").into_iter().map(move |query| (path.clone(), query))
    };
    pages().into_iter().flat_map(of_page).collect()
}

#[test]
fn examples_of_configurations_are_valid() {
    let mut checked = 0;
    for (path, page) in pages() {
        for example in blocks(&page, "yaml") {
            if example.contains("tls_server_config") || example.contains("basic_auth_users") {
                webconfig::parse(&example).unwrap_or_else(|error| panic!("{path}: {error:?}\n{example}"));
                checked += 1;
            }
        }
        for example in blocks(&page, "toml") {
            // A part of a file is completed.
            let example = match example.contains("base_url") {
                true => example,
                false => format!("api.base_url = \"https://api.example.com\"\napi.token = \"t\"\n{example}"),
            };
            let example = match example.contains("[[projects]]") {
                true => example,
                false => format!("{example}\n[[projects]]\nid = \"p-1\"\n"),
            };
            pds_config::load_text(Path::new("pds-exporter.toml"), &example)
                .unwrap_or_else(|error| panic!("{path}: {error}\n{example}"));
            checked += 1;
        }
    }
    assert!(checked >= 2, "{checked}");
}

#[test]
fn every_flag_that_is_named_exists() {
    let mut known = BTreeSet::from(["help".to_owned(), "version".to_owned()]);
    collect(&Flags::command(), &mut known);
    collect(&Cli::command(), &mut known);
    for (path, page) in pages() {
        if !(path == "README.md" || path.starts_with("docs/")) {
            continue;
        }
        for line in page.replace("\\\n", " ").lines() {
            // Other programs have flags of their own.
            let others = "cargo cosign curl docker gh helm kubectl promtool sha256sum systemctl";
            if others.split(' ').any(|other| line.contains(&format!("{other} "))) {
                continue;
            }
            for rest in line.split("--").skip(1) {
                let is_name = |c: &char| c.is_ascii_lowercase() || matches!(c, '-' | '.');
                let name: String = rest.chars().take_while(is_name).collect();
                let name = name.trim_end_matches(['-', '.']);
                assert!(name.is_empty() || known.contains(name), "{path}: there is no flag --{name}");
            }
        }
    }
}

fn collect(command: &clap::Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(|flag| flag.get_long()).map(str::to_owned));
    command.get_subcommands().for_each(|command| collect(command, known));
}

#[test]
fn every_key_variable_series_and_file_that_is_named_exists() {
    let sections: BTreeSet<&str> = key::all()
        .iter()
        .filter_map(|key| key.path.split('.').next())
        .map(|name| name.trim_end_matches("[]"))
        .collect();
    let variables: BTreeSet<String> = key::all().iter().filter_map(Key::environment_name).collect();
    let mut wrong = Vec::new();
    for (path, page) in pages() {
        // A changelog also names what there was, and a chart has values of its own.
        if path == "CHANGELOG.md" || path == "deploy/helm/pds-exporter/README.md" {
            continue;
        }
        wrong.extend(unknown_series(&page).into_iter().map(|name| format!("{path}: no series {name}")));
        for text in quoted(&page) {
            let name = text.split([' ', '=']).next().unwrap_or_default();
            let section = name.split_once('.').map(|(section, _)| section);
            let is_key = section.is_some_and(|section| sections.contains(section));
            let below = [format!("{name}."), format!("{name}[].")];
            let known = || {
                let mut paths = key::all().iter().map(|key| &*key.path);
                paths.any(|path| path == name || below.iter().any(|start| path.starts_with(start)))
            };
            if is_key && !known() {
                wrong.push(format!("{path}: no key {name}"));
            }
            if name.starts_with("PDS_EXPORTER__") && !variables.contains(name) {
                wrong.push(format!("{path}: no variable {name}"));
            }
            let folders = ["src/", "tests/", "deploy/", "benches/", "fuzz/", "docs/"];
            let is_path = folders.iter().any(|folder| text.starts_with(folder));
            if is_path && !name.contains(['*', '{']) && !Path::new(name).exists() {
                wrong.push(format!("{path}: no file {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn commands_in_the_pages_are_valid() {
    let mut tried = 0;
    for (path, page) in pages() {
        for line in blocks(&page, "sh").join("").replace("\\\n", " ").lines() {
            let words: Vec<&str> = line.split(" #").next().unwrap_or_default().split_whitespace().collect();
            let command = match words.first() {
                Some(&"pds-exporter") => Flags::command(),
                Some(&"pdstool") => Cli::command(),
                _ => continue,
            };
            tried += 1;
            if let Err(error) = command.try_get_matches_from(&words) {
                assert!(!error.use_stderr(), "{path}: {line}: {error}");
            }
        }
    }
    assert!(tried >= 2, "{tried}");
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

/// The anchors of a page's headings.
fn anchors(page: &str) -> Vec<String> {
    let outside: String = page.split("```").step_by(2).collect();
    let heading =
        |line: &str| Some(anchor(line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?));
    outside.lines().filter_map(heading).collect()
}

#[test]
fn relative_links_lead_somewhere() {
    let mut wrong = Vec::new();
    for (path, page) in pages() {
        let folder = Path::new(&path).parent().unwrap_or(Path::new(""));
        for rest in page.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            if target.contains("://") {
                continue;
            }
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { PathBuf::from(&path) } else { folder.join(file) };
            if !file.exists() {
                wrong.push(format!("{path}: {target}"));
            } else if !place.is_empty() {
                let there = std::fs::read_to_string(&file).unwrap();
                if !anchors(&there).iter().any(|anchor| anchor == place) {
                    wrong.push(format!("{path}: {target}: there is no such heading"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_readme_links_every_page() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let lonely: Vec<String> =
        pages().into_iter().map(|(path, _)| path).filter(|path| path.starts_with("docs/")).collect();
    let lonely: Vec<_> = lonely.iter().filter(|path| !readme.contains(&format!("]({path}"))).collect();
    assert!(lonely.is_empty(), "the README does not link {lonely:?}");
}

/// Words of the README and `docs/`. More is not read at night.
const MAX_WORDS: usize = 12_000;

#[test]
fn the_pages_are_short() {
    let ours = pages().into_iter().filter(|(path, _)| path == "README.md" || path.starts_with("docs/"));
    let words: usize = ours.map(|(_, page)| page.split_whitespace().count()).sum();
    assert!(words <= MAX_WORDS, "{words} words: say nothing twice, and nothing that a generated list says");
}

#[test]
fn the_map_of_the_architecture_is_that_of_the_layers() {
    let page = std::fs::read_to_string("docs/ARCHITECTURE.md").unwrap();
    let (_, table, _) = between(&page, "layers");
    let rows = table.lines().skip(2).filter_map(|row| row.split(" | ").next());
    let rows: Vec<Vec<&str>> = rows.map(|cell| cell.split('`').skip(1).step_by(2).collect()).collect();
    assert_eq!(rows, LAYERS);
}

#[test]
fn types_and_functions_named_for_contributors_exist() {
    let sources = crate::house::texts(&["src", "crates"]);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = sources.split(|c| !is_word(c)).collect();
    let mut wrong = Vec::new();
    for path in ["docs/ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let page = std::fs::read_to_string(path).unwrap();
        for name in quoted(&page) {
            let is_name = name.chars().all(|c| is_word(c) || c == ':');
            let is_ours = name.contains("::") || name.starts_with(char::is_uppercase);
            if is_name && is_ours && !name.split("::").all(|part| words.contains(part)) {
                wrong.push(format!("{path}: no {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
