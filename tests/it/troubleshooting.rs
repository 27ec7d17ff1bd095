//! The README's table of what goes wrong: each of its rows names tests that show it, and there are such.

/// The rows of the section's table, as cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let (_, section) = text.split_once("\n## When something goes wrong\n").expect("the section is there");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// The source that a test's path leads to: `client::load::a_test` is in `tests/it/client/load.rs`.
fn source(path: &[&str]) -> Option<String> {
    let folder = path.join("/");
    let files = [format!("tests/it/{folder}.rs"), format!("tests/it/{folder}/mod.rs")];
    files.iter().find_map(|file| std::fs::read_to_string(file).ok())
}

#[test]
fn every_row_of_what_goes_wrong_names_tests_that_exist() {
    let text = std::fs::read_to_string("README.md").unwrap();
    let rows = rows(&text);
    assert!(rows.len() >= 15, "{rows:#?}");
    for row in &rows {
        let [fault, seen, todo, shown] = &**row else { panic!("four cells: {row:?}") };
        assert!(![fault, seen, todo].iter().any(|cell| cell.is_empty()), "{row:?}");
        let tests: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{fault}: names no test");
        for test in tests {
            let path: Vec<&str> = test.split("::").collect();
            let (name, modules) = path.split_last().unwrap();
            let source = source(modules).unwrap_or_else(|| panic!("{test}: no such module"));
            assert!(source.contains(&format!("fn {name}(")), "{fault}: there is no test {test}");
        }
    }
}
