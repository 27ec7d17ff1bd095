//! The layers, and that the daemon's imports follow them. Cargo holds those of the crates.

use super::{assert_none, sources, without_comments};

/// The layers from the ground up, as the map of the architecture shows them: crates without their `pds-`, then modules of
/// `src/`. Each imports from lower layers, and from those left of it in its own.
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

/// The complaints about a file of `module` with this text: each module above that it names.
fn imports_from_above(module: &str, path: &str, text: &str) -> Vec<String> {
    let modules: Vec<&str> = LAYERS.concat();
    let above = modules.iter().skip_while(|other| **other != module).skip(1);
    let code = without_comments(text);
    let named = |other: &&&str| code.contains(&format!("crate::{other}::"));
    above.filter(named).map(|other| format!("{path}: {module} is below {other}")).collect()
}

#[test]
fn modules_import_downwards_only() {
    let mut complaints = Vec::new();
    for source in sources("src") {
        let Some(&module) = source.modules().first() else { continue };
        assert!(LAYERS.concat().contains(&module), "{module} has no layer");
        complaints.extend(imports_from_above(module, &source.path, &source.text));
    }
    assert_none("imports against the layers", &complaints);
    assert_eq!(imports_from_above("poll", "x.rs", "use crate::pages::Page;").len(), 1);
}
