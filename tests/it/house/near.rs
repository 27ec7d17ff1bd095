//! The tests that `tests/run near` runs for a changed file.

use std::collections::BTreeSet;

use super::{command, output, sources};

#[test]
fn the_tests_of_each_source_exist() {
    let all: Vec<_> = ["crates", "src", "tests/it"].iter().flat_map(|folder| sources(folder)).collect();
    let has_tests = |place: &str| {
        let is_there = |path: &str| path.starts_with(&format!("{place}/")) || path == format!("{place}.rs");
        let is_test = |text: &str| text.contains("#[test]") || text.contains("#[tokio::test");
        all.iter().any(|source| is_there(&source.path) && is_test(&source.text))
    };
    // A folder's files have the same tests.
    let folders: BTreeSet<&str> =
        all.iter().filter_map(|source| Some(source.path.rsplit_once('/')?.0)).collect();
    let mut missing = Vec::new();
    for folder in folders.into_iter().filter(|folder| !matches!(*folder, "src" | "tests/it")) {
        let path = format!("{folder}/x.rs");
        let filter = output(command("bash", ["-c", "printf %s\\\\n \"$1\" | tests/near", "", &path]));
        let between = |start: &'static str, end: &'static str| {
            filter.split(start).skip(1).filter_map(move |rest| Some(rest.split_once(end)?.0))
        };
        let modules = between("test(/^", "::/").flat_map(|list| list.trim_matches(['(', ')']).split('|'));
        let modules = modules.map(|name| [format!("src/{name}"), format!("tests/it/{name}")]);
        let packages = between("package(", ")");
        let places = modules.map(Vec::from).chain(packages.map(|name| vec![format!("crates/{name}")]));
        let without = places.filter(|places| !places.iter().any(|place| has_tests(place)));
        missing.extend(without.map(|places| format!("{folder}: {places:?}")));
    }
    assert_eq!(missing, [""; 0], "tests/near names tests that do not exist");
}
