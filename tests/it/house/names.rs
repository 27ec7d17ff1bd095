//! The name of a metric family stands in one place.

use super::{assert_none, house, without_comments};

#[test]
fn the_name_of_a_family_is_only_in_its_declaration() {
    let groups = pds_telemetry::catalogue::catalogue();
    let names: Vec<String> = groups
        .iter()
        .flat_map(|group| &group.families)
        .filter(|family| family.name.starts_with("pds_"))
        .map(|family| format!("\"{}\"", family.name))
        .collect();
    let mut complaints = Vec::new();
    let mut declared = 0;
    for source in house() {
        if source.path.ends_with("tests.rs") || source.path.contains("/tests/") {
            continue;
        }
        // Prometheus is asked for series by name.
        if source.path.starts_with("crates/pds-ledger/src/restore/") {
            continue;
        }
        let code = without_comments(source.before_tests());
        let is_layer_of_families = ["interface", "telemetry", "store", "ledger"]
            .contains(&source.modules().first().copied().unwrap_or_default());
        for name in names.iter().filter(|name| code.contains(name.as_str())) {
            match is_layer_of_families && code.matches(name.as_str()).count() == 1 {
                true => declared += 1,
                false => complaints.push(format!("{}: {name}", source.path)),
            }
        }
    }
    assert_none("use the constant of the family", &complaints);
    assert_eq!(declared, names.len(), "each name stands once");
}
