//! The layers, and that imports follow them.

use super::{Source, assert_none, house, without_comments};

/// The layers from the ground up: modules of `src/`, and crates without their `pds-`. Each imports from lower layers,
/// and from those left of it in its own.
pub(crate) const LAYERS: &[&[&str]] = &[
    &["core"],
    &["exposition"],
    &["web"],
    &["interface", "http"],
    &["ledger"],
    &["client", "simulator"],
    &["config", "diagnosis"],
    &["telemetry"],
    &["store"],
    &["poll"],
    &["status"],
    &["pages"],
    &["app", "tool"],
    &["bin"],
];

/// Modules of one layer that do not see each other at all.
const STRANGERS: &[(&str, &str)] = &[("client", "simulator")];

/// The top-level modules that `text` names by `prefix` (`crate::`), each with its line.
fn named_after<'a>(text: &'a str, prefix: &str) -> Vec<(usize, &'a str)> {
    let mut named = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        if text[..at].ends_with(|before: char| before.is_alphanumeric() || "_:".contains(before)) {
            continue;
        }
        let line = text[..at].matches('\n').count() + 1;
        let rest = &text[at + prefix.len()..];
        named.extend(first_names(rest).into_iter().map(|name| (line, name)));
    }
    named
}

/// The first segment of a path, or of each path in a group: `a::b` gives a; `{a, b::{c, d}}` gives a and b.
fn first_names(path: &str) -> Vec<&str> {
    let name = |text: &'_ str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(group) = path.strip_prefix('{') else { return vec![&path[..name(path)]] };
    let mut names = Vec::new();
    let (mut depth, mut fresh) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            _ if fresh && !c.is_whitespace() => {
                names.push(&group[at..at + name(&group[at..])]);
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

/// Where a module stands: its layer, and its place in it.
fn place(module: &str) -> Option<(usize, usize)> {
    LAYERS.iter().enumerate().find_map(|(layer, modules)| {
        modules.iter().position(|other| *other == module).map(|place| (layer, place))
    })
}

/// Why `from` must not import `to`, if so.
fn forbidden(from: &str, to: &str) -> Option<String> {
    let (lower, higher) = (place(to)?, place(from)?);
    let strangers = STRANGERS.iter().any(|pair| *pair == (from, to) || *pair == (to, from));
    if strangers {
        Some(format!("{from} and {to} never see each other"))
    } else if lower > higher {
        Some(format!("{from} stands below {to}, and layers import downwards only"))
    } else {
        None
    }
}

/// The complaints about the imports of one source.
fn bad_imports(source: &Source) -> Vec<String> {
    let modules = source.modules();
    let Some(&from) = modules.first() else { return Vec::new() };
    let code = without_comments(&source.text);
    let mut named = named_after(&code, "pds_exporter::");
    for part in LAYERS.iter().flat_map(|layer| layer.iter()) {
        // The line of each import, and the crate itself instead of what is imported from it.
        let imports = named_after(&code, &format!("pds_{part}::"));
        named.extend(imports.into_iter().map(|(line, _)| (line, *part)));
    }
    if source.member().is_none() {
        named.extend(named_after(&code, "crate::"));
    }
    // These steps up lead out of the top-level module, from a file and from a module inside it.
    for steps in [modules.len(), modules.len() + 1] {
        named.extend(named_after(&code, &"super::".repeat(steps)));
    }
    let complaint =
        |(line, to): &(usize, &str)| Some(format!("{}:{line}: {}", source.path, forbidden(from, to)?));
    named.iter().filter(|(_, to)| *to != from).filter_map(complaint).collect()
}

#[test]
fn layers_import_downwards_only() {
    let sources = house();
    let unknown: Vec<_> = sources
        .iter()
        .filter_map(|source| source.modules().first().copied().filter(|module| place(module).is_none()))
        .collect();
    assert!(unknown.is_empty(), "modules without a layer: {unknown:?}");
    assert_none("imports against the layers", &sources.iter().flat_map(bad_imports).collect::<Vec<_>>());
}

#[test]
fn an_import_against_the_layers_is_found_in_every_form() {
    let complaints = |path: &str, text: &str| {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        bad_imports(&source)
    };
    for import in [
        "use crate::pages::Page;",
        "use crate::{\n    clock::Clock,\n    pages::{Page, Form},\n};",
        "fn f() { crate::pages::serve() }",
        "use super::super::pages::Page;",
        "mod tests { use super::super::super::pages::Page; }",
    ] {
        let found = complaints("src/poll/schedule.rs", &format!("//! Page.\n{import}"));
        assert_eq!(
            found,
            ["src/poll/schedule.rs:2: poll stands below pages, and layers import downwards only"],
            "{import}"
        );
    }
    assert_eq!(complaints("src/client/mod.rs", "use pds_simulator::Faults;").len(), 1);
    assert_eq!(complaints("crates/pds-simulator/src/server.rs", "use pds_client::Client;").len(), 1);
    for fine in [
        "use crate::client::Client;",
        "// crate::pages is above",
        "use super::pages;",
        "use my_crate::pages;",
        "use crate::poll::schedule;",
    ] {
        assert_eq!(complaints("src/poll/schedule.rs", fine), [""; 0], "{fine}");
    }
}
