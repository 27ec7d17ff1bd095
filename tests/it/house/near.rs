//! The tests that `tests/run near` runs for a changed file.

use std::collections::BTreeSet;

use super::{command, output, sources};

#[test]
fn each_source_has_tests_that_exist() {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let near = |paths: &str| output(command("bash", ["-c", "printf %s\\\\n \"$@\" | tests/near", "", paths]));
    let usual = near("LICENSE");
    let all: Vec<String> = ["crates", "src", "tests/it"]
        .iter()
        .flat_map(|folder| sources(folder))
        .map(|source| source.path)
        .collect();
    let modules: BTreeSet<&str> = all.iter().flat_map(|path| path.split('/')).collect();
    let names = |name: &str| modules.contains(name) || modules.contains(&*format!("{name}.rs"));
    // A folder's files have the same tests.
    let folders: BTreeSet<&str> = all.iter().filter_map(|path| Some(path.rsplit_once('/')?.0)).collect();
    for folder in folders.into_iter().filter(|folder| !matches!(*folder, "src" | "tests/it")) {
        let filter = near(&format!("{folder}/x.rs"));
        assert_ne!(filter, usual, "tests/near has no tests of {folder}");
        let words =
            filter.split(|c| !is_word(c)).filter(|word| !matches!(*word, "" | "test" | "package" | "pds-"));
        let unknown: Vec<&str> =
            words.filter(|word| !names(word) && !names(&format!("pds-{word}"))).collect();
        assert_eq!(unknown, [""; 0], "tests/near, for {folder}");
    }
}
