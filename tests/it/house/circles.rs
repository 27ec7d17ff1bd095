//! Files do not import each other in circles.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, house, without_comments};

/// The files that each file imports, by the paths of their modules. A `mod.rs` and the files below it are one place:
/// they cannot do without each other.
fn imports(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let page = |source: &Source| source.path.ends_with("/mod.rs") || source.path.ends_with("/lib.rs");
    let files: BTreeMap<String, bool> =
        sources.iter().map(|source| (source.modules().join("::"), page(source))).collect();
    let below = |page: &str, file: &str| files[page] && file.starts_with(&format!("{page}::"));
    let mut imports = BTreeMap::new();
    for source in sources {
        let own = source.modules().join("::");
        let code = without_comments(source.before_tests());
        let named = paths(&code).into_iter().filter_map(|path| {
            let absolute = absolute(&source.modules(), &path, usize::from(source.member().is_some()))?;
            (1..=absolute.len())
                .rev()
                .map(|end| absolute[..end].join("::"))
                .find(|path| files.contains_key(path))
        });
        let named = named.filter(|file| *file != own && !below(&own, file) && !below(file, &own));
        imports.insert(own.clone(), named.collect());
    }
    imports
}

/// The paths in `code` that begin at the crate or above the file, those of a group one by one.
fn paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            if !code[..at].ends_with(|before: char| before.is_alphanumeric() || "_:".contains(before)) {
                expand("", &code[at..], &mut paths);
            }
        }
    }
    paths
}

/// Appends the paths that `text` begins with, each after `prefix`. Returns the length of what was read.
fn expand(prefix: &str, text: &str, paths: &mut Vec<String>) -> usize {
    let end = text.find(|c: char| !c.is_alphanumeric() && !"_:".contains(c)).unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    if !text[end..].starts_with('{') {
        paths.push(path);
        return end;
    }
    let mut at = end + 1;
    while at < text.len() && !text[at..].starts_with('}') {
        match text[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            true => at += expand(&path, &text[at..], paths),
            false => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    at + 1
}

/// The modules that `path` names from the root down, as the file `own` writes it; its crate is the first `root` of them.
fn absolute<'a>(own: &[&'a str], path: &'a str, root: usize) -> Option<Vec<&'a str>> {
    let mut segments = path.split("::").filter(|segment| !segment.is_empty()).peekable();
    let mut from = own.to_vec();
    if segments.next_if_eq(&"crate").is_some() {
        from.truncate(root);
    }
    while segments.next_if_eq(&"super").is_some() {
        from.pop()?;
    }
    Some(from.into_iter().chain(segments).collect())
}

/// The files that each file imports, itself or through others.
fn reachable(imports: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&String> = imports[from].iter().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file.clone()) {
            next.extend(&imports[file]);
        }
    }
    reached
}

/// The circles among `sources`.
fn circles(sources: &[Source]) -> BTreeSet<Vec<String>> {
    let imports = imports(sources);
    let reached: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|file| (file, reachable(&imports, file))).collect();
    let circle = |file: &String| -> Vec<String> {
        reached[file].iter().filter(|other| reached[other].contains(file)).cloned().collect()
    };
    imports.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let sources: Vec<Source> = house()
        .into_iter()
        .filter(|source| {
            !source.path.ends_with("tests.rs")
                && !source.path.contains("/bin/")
                && !source.path.ends_with("main.rs")
        })
        .collect();
    let circles = circles(&sources);
    assert!(circles.is_empty(), "files import each other in a circle: {circles:#?}");
}

#[test]
fn a_circle_is_found_in_every_form() {
    let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    for import in ["use super::a::Row;", "use crate::{x, poll::a::Row};", "fn f() { super::a::f() }"] {
        let sources = [source("src/poll/a.rs", "use super::b::{C, D};"), source("src/poll/b.rs", import)];
        assert_eq!(circles(&sources).into_iter().next().unwrap(), ["poll::a", "poll::b"], "{import}");
    }
    let page = [source("src/poll/mod.rs", "use a::Row;"), source("src/poll/a.rs", "use super::Plan;")];
    assert!(circles(&page).is_empty());
}
