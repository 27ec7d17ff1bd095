//! Files and variables that nobody would write: refused, never followed into a panic.

use proptest::prelude::*;

#[test]
fn a_file_nested_without_end_is_refused_rather_than_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.toml");
    let times = 100_000;
    for text in [
        format!("projects = {}", "[".repeat(times)),
        format!("projects = {}{}", "[".repeat(times), "]".repeat(times)),
        format!("api = {}", "{a=".repeat(times)),
        format!("api{} = 1", ".a".repeat(times)),
        format!("[api{}]", ".a".repeat(times)),
        format!("[[projects{}]]", ".a".repeat(times)),
    ] {
        std::fs::write(&path, &text).unwrap();
        assert!(pds_config::load(&path, []).is_err(), "{}", &text[..30]);
    }
}

/// `text` as a TOML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// TOML values of every kind, nested a little.
fn toml_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        Just("1.5e300".to_owned()),
        Just("nan".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        "\\PC{0,12}".prop_map(|text| quoted(&text)),
        prop_oneof!["[0-9]{1,25}(ns|s|m|h|d|y| )?", "https?://[a-z@:/?#\\[\\]]{0,12}", "\\.{0,3}"]
            .prop_map(|text| quoted(&text)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::btree_map("[a-z_]{1,6}|id|labels|apps|token", inner, 0..4).prop_map(|table| {
                let members: Vec<_> = table.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                format!("{{ {} }}", members.join(", "))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_file_and_no_environment_makes_loading_panic(
        lines in prop::collection::btree_map(prop::sample::select(known_paths()), toml_value(), 0..8),
        stray in "[ -~\n\"\\[\\]=.é]{0,40}",
        variable in prop::sample::select(known_variables()),
        value in "[ -~]{0,20}",
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pds-exporter.toml");
        let mut text: String = lines.iter().map(|(path, value)| format!("{path} = {value}\n")).collect();
        for stray in ["", stray.as_str()] {
            text.push_str(stray);
            std::fs::write(&path, &text).unwrap();
            if let Err(error) = pds_config::load(&path, [(variable.clone(), value.clone())]) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}

fn known_paths() -> Vec<&'static str> {
    let mut paths: Vec<_> = pds_config::key::all().iter().map(|key| &*key.path).collect();
    paths.retain(|path| !path.contains("[]"));
    paths.extend(["projects", "\"a[9]\"", "api.unknown", "poll"]);
    paths
}

fn known_variables() -> Vec<String> {
    let known = pds_config::key::all().iter().filter_map(pds_config::key::Key::environment_name);
    known.chain(["PDS_EXPORTER__".to_owned(), "PDS_EXPORTER__A[9]".to_owned()]).collect()
}
