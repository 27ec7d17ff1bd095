//! The recipes of CONTRIBUTING.md work: their worked example, followed step by step on a copy of the sources, compiles, and
//! everything new is in the lists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::deploy::{command, succeed};
use crate::tools::without_this_package;

/// One step: `code` goes into `file`, after the line `after`; without such a line it is the whole file.
#[derive(Debug)]
struct Step<'a> {
    file: &'a str,
    after: Option<&'a str>,
    code: &'a str,
}

/// The steps in the order of `page`: each block of Rust with the file, and perhaps the line, named before it.
fn steps(page: &str) -> Vec<Step<'_>> {
    let mut blocks = page.split("```");
    let mut steps = Vec::new();
    while let (Some(text), Some(block)) = (blocks.next(), blocks.next()) {
        let Some(code) = block.strip_prefix("rust\n") else { continue };
        let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        let [.., file, after] = quoted[..] else { panic!("no file is named before {code}") };
        steps.push(match text.trim_end().ends_with("`:") && !after.contains("src/") {
            true => Step { file, after: Some(after), code },
            false => Step { file: after, after: None, code },
        });
    }
    steps
}

/// A copy of the sources with the recipes followed, beside the compiled dependencies so that cargo finds them.
fn followed(steps: &[Step<'_>]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let copy = root.join("target/recipes");
    let _ = std::fs::remove_dir_all(&copy);
    std::fs::create_dir_all(&copy).unwrap();
    succeed(command("cp", ["-r", "src", "crates"]).arg(&copy).current_dir(root));
    for entry in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name();
        if !["src", "crates", "target", ".git"].contains(&name.to_str().unwrap()) {
            std::os::unix::fs::symlink(entry.path(), copy.join(name)).unwrap();
        }
    }
    for Step { file, after, code } in steps {
        let path = copy.join(file);
        let Some(after) = after else {
            assert!(!path.exists(), "{file} is there already");
            std::fs::write(path, code).unwrap();
            continue;
        };
        let text = std::fs::read_to_string(&path).unwrap();
        let line = format!("{after}\n");
        assert_eq!(text.matches(&line).count(), 1, "{file} has one line {after:?}");
        std::fs::write(path, text.replace(&line, &format!("{line}{code}"))).unwrap();
    }
    copy
}

/// A test of the copy: the new rows are wherever the table is looped over.
const TEST: &str = r#"
#[cfg(test)]
mod recipes {
    use clap::Parser as _;
    use pds_interface::{CALLS, Resource, families, openapi};

    use pds_diagnosis::{App, Column};

    #[test]
    fn an_added_row_appears_everywhere() {
        let catalogue = pds_exposition::family::markdown(&pds_telemetry::catalogue::catalogue());
        for family in ["pds_app_max_request_seconds", "pds_project_region"] {
            assert!(families().any(|known| known.name == family));
            assert!(catalogue.contains(family));
        }
        assert!(CALLS.iter().any(|call| call.id == "list_regions"));
        let text = "[api]\nbase_url = \"http://localhost\"\ntoken = \"t\"\n[web]\nfooter = \"ours\"\n[[projects]]\nid = \"p\"\n";
        let config = pds_config::load_text(std::path::Path::new("a.toml"), text).unwrap().config;
        assert!(config.poll.resources.contains(&Resource::find("regions").unwrap()), "polled by default");
        assert_eq!(config.web.footer.as_deref(), Some("ours"));
        assert!(pds_config::key::all().iter().any(|key| key.path == "web.footer"));
        let app = App { error_message: Some("OOM".to_owned()), ..App::default() };
        let column = Column::of("message").unwrap();
        assert_eq!((column.name, &*(column.value)(&app).raw()), ("error_message", "OOM"), "in CSV");
        assert_eq!(serde_json::to_value(&app).unwrap()["error_message"], "OOM", "in JSON");
        assert!(pdstool::Cli::try_parse_from(["pdstool", "calls"]).is_ok());
        assert!(openapi::document()["paths"]["/v2/projects/{project_id}/regions"]["get"].is_object());
    }
}
"#;

#[test]
fn everything_is_added_as_contributing_says() {
    let page = std::fs::read_to_string("tests/it/recipes/worked.md").unwrap();
    let steps = steps(&page);
    assert_eq!(steps.len(), 15, "{steps:#?}");
    let of_a_call = page.split("\n## ").find(|part| part.starts_with("Add an endpoint")).unwrap();
    let lines = of_a_call.lines().filter(|line| line.ends_with("`:"));
    let files: BTreeSet<_> = lines.map(|line| line.split('`').find(|text| text.contains('/'))).collect();
    assert!(files.len() <= 3, "a polled call takes more edits: {files:?}");
    let copy = followed(&steps);
    let library = copy.join("src/lib.rs");
    let text = std::fs::read_to_string(&library).unwrap();
    std::fs::write(library, text + TEST).unwrap();
    // The folder in which the dependencies are compiled already, with the features of this package's tests. There is no
    // debug info, as cargo would otherwise mistake the copied crates for the originals, and use them in the next build.
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
    let mut test = Command::new(env!("CARGO"));
    without_this_package(&mut test)
        .args(["test", "--offline", "--locked", "--lib", "--features", "pds-exporter/jemalloc"])
        .args(["-p", "pds-exporter", "-p", "pds-interface", "-p", "pds-simulator"])
        .args(["--config", "profile.dev.debug=false", "--manifest-path"]);
    test.arg(copy.join("Cargo.toml")).arg("--target-dir").arg(target);
    let said = succeed(test.args(["--", "recipes::", "family::", "routes::", "query::"]));
    assert!(said.contains("test result: ok"), "{said}");
    assert!(!said.contains("Compiling ring "), "the next build compiles it once more: {said}");
}
