//! The chart's values: each is documented, and one that means nothing is refused.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Map, Value, json};

use super::{HELMS, chart, examples, values};
use crate::deploy::kubernetes::validate;
use crate::deploy::{text, yaml};
use crate::golden::assert_current;

/// The table of `values.yaml`: each key with its default and the comment above it.
fn values_table() -> String {
    let mut table = "| value | default | meaning |\n| --- | --- | --- |\n".to_owned();
    let (mut path, mut comment, mut skip) = (Vec::new(), String::new(), usize::MAX);
    let text = text("helm/pds-exporter/values.yaml");
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let depth = line.chars().take_while(|c| *c == ' ').count() / 2;
        let line = line.trim();
        if line.is_empty() {
            comment.clear();
            continue;
        }
        if depth > skip {
            continue;
        }
        if let Some(text) = line.strip_prefix('#') {
            comment += text;
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("line {number}: {line}"));
        path.truncate(depth);
        path.push(key);
        let (value, comment) = (value.trim(), std::mem::take(&mut comment));
        skip = usize::MAX;
        if comment.is_empty() {
            assert!(value.is_empty(), "{} has no comment", path.join("."));
            continue;
        }
        let default = match value {
            "" | "|" => {
                skip = depth;
                "see `values.yaml`".to_owned()
            }
            value => format!("`{value}`"),
        };
        table += &format!("| `{}` | {default} |{comment} |\n", path.join("."));
    }
    table
}

#[test]
fn the_readme_lists_every_value() {
    assert_current("deploy/helm/pds-exporter/README.md", "values", &values_table());
}

/// The rendering by this Helm, or what it says against the values.
fn rendered(helm: &str, values: &Value, release: [&str; 2]) -> Result<Vec<Value>, String> {
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    fs::write(file.path(), values.to_string()).unwrap();
    let [name, namespace] = release;
    let output = chart(helm, name, namespace).arg("--values").arg(file.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    output.status.success().then(|| yaml(&String::from_utf8(output.stdout).unwrap())).ok_or(said)
}

/// The same by each Helm, which must agree.
fn accepted(values: &Value, release: [&str; 2]) -> Vec<Value> {
    let by = |helm| rendered(helm, values, release).unwrap_or_else(|said| panic!("{helm}: {values}: {said}"));
    let [one, other] = HELMS.map(by);
    assert_eq!(one, other, "{values}");
    one
}

/// Panics unless Kubernetes accepts the objects; each only once, as many renderings share them.
fn assert_valid(objects: impl IntoIterator<Item = Value>) {
    let texts: BTreeSet<String> = objects.into_iter().map(|object| object.to_string()).collect();
    validate(&texts.into_iter().collect::<Vec<_>>().join("\n---\n"));
}

#[test]
fn values_render_as_in_the_table_or_are_refused_with_a_sentence() {
    let mut all = Vec::new();
    let schema = text("helm/pds-exporter/values.schema.json");
    let bare = ["\"pattern\"", "\"contains\"", "\"not\"", "Length\"", "\"type\": \"string\""];
    let is_bare = bare.iter().any(|key| schema.contains(key));
    assert!(!is_bare, "Helm would refuse a value without a sentence");
    let large = "x".repeat(1_048_577);
    let mut cases = yaml(include_str!("cases.yaml")).remove(0).as_array().unwrap().clone();
    for values in [
        json!({ "config": large }),
        json!({ "config": "include = [\"a.toml\"]", "configFiles": { "a.toml": large } }),
    ] {
        cases.push(json!({ "values": values, "refused": "has 1048577 bytes, and a ConfigMap or Secret holds 1048576; cut" }));
    }
    for case in &cases {
        let (values, release) = (&case["values"], ["pds-exporter", "monitoring"]);
        if let Some(part) = case["refused"].as_str() {
            for helm in HELMS {
                let said = rendered(helm, values, release).expect_err(part);
                assert!(said.contains(part), "{helm}: {part}: {said}");
            }
            continue;
        }
        let objects = accepted(values, release);
        for (kind, places) in case.as_object().unwrap().iter().filter(|(kind, _)| *kind != "values") {
            let of_kind: Vec<&Value> = objects.iter().filter(|object| object["kind"] == **kind).collect();
            for (place, expected) in places.as_object().unwrap() {
                let mut found = of_kind.iter().map(|object| object.pointer(place).unwrap_or(&Value::Null));
                let is_there = found.any(|found| found == expected || (expected == "*" && !found.is_null()));
                assert!(is_there, "{values}: no {kind} has {expected} at {place}: {of_kind:#?}");
            }
        }
        all.extend(objects);
    }
    assert_valid(all);
}

/// Calls `change` with each value of the tree, and the schema for it.
fn walk(value: &mut Value, schema: &Value, root: &Value, change: &mut impl FnMut(&mut Value, &Value)) {
    let reference = schema["$ref"].as_str().map(|path| root.pointer(&path[1..]).unwrap());
    let schema = reference.unwrap_or(schema);
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let of_key = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
                walk(value, of_key, root, change);
            }
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| walk(element, &schema["items"], root, change));
        }
        value => change(value, schema),
    }
}

#[test]
fn every_text_and_number_is_written_as_it_is_given_by_release_namespace_and_values() {
    /// A text without another meaning.
    const PLAIN: &str = "wordx";
    let schema: Value = serde_json::from_str(&text("helm/pds-exporter/values.schema.json")).unwrap();
    let defaults = yaml(&text("helm/pds-exporter/values.yaml")).remove(0);
    let mut given = vec![defaults];
    given.extend(examples().iter().map(|name| yaml(&fs::read_to_string(values(name)).unwrap()).remove(0)));
    for mut values in given {
        let mut numbers = 0;
        walk(&mut values, &schema, &schema, &mut |value, schema| {
            let is_set = schema["is"] == "set" || schema["is"] == "text";
            let is_free = is_set
                || ["form", "enum", "maximum", "exclusiveMaximum"]
                    .iter()
                    .all(|key| schema.get(key).is_none());
            if is_free && value.is_string() && value != "" && value.as_str().unwrap().len() < 64 {
                *value = PLAIN.into();
            } else if is_free && value.is_number() {
                *value = 5_000_000.into();
                numbers += 1;
            }
        });
        values["shards"] = 3.into();
        if let Some(disabled) = values.pointer_mut("/prometheusRule/disabled") {
            *disabled = json!([]);
        }
        let plain = Value::from(accepted(&values, [PLAIN, PLAIN])).to_string();
        assert!(!plain.contains("e+0"), "{plain}");
        for word in ["123", "on", "null", "1e5"] {
            let said = |text: &str| serde_json::from_str::<Value>(&text.replace(PLAIN, word)).unwrap();
            let values = said(&values.to_string());
            let objects = Value::from(accepted(&values, [word, word]));
            // A Service's name begins with a letter.
            let expected = if word.starts_with(|c: char| c.is_ascii_digit()) {
                plain.replace("wordx-pds-exporter", "pds-exporter-wordx").replace("wordx-pds", "pds-wordx")
            } else {
                plain.clone()
            };
            // Helm sorts objects by name.
            let sorted = |objects: &Value| -> BTreeSet<String> {
                objects.as_array().unwrap().iter().map(Value::to_string).collect()
            };
            assert_eq!(sorted(&objects), sorted(&said(&expected)), "{word}");
        }
    }
}

/// Sections that do nothing until they are enabled.
const ENABLED: [&str; 4] = ["podMonitor", "prometheusRule", "dashboards", "verticalPodAutoscaler"];

#[test]
fn a_section_that_is_null_is_its_default() {
    let release = ["pds-exporter", "monitoring"];
    let (mut defaults, mut all) = (yaml(&text("helm/pds-exporter/values.yaml")).remove(0), Vec::new());
    defaults["config"] = "[api]".into();
    for enabled in ENABLED {
        defaults[enabled]["enabled"] = true.into();
    }
    let expected = accepted(&defaults, release);
    for (section, value) in defaults.as_object().unwrap() {
        // Features enabled here stay so, and the platform fills in security contexts.
        let is_enabled = value.get("enabled") == Some(&true.into());
        let is_context = section.to_lowercase().contains("securitycontext");
        let keys = value.as_object().into_iter().flat_map(|fields| fields.keys());
        let keys: Vec<&String> = keys.filter(|key| !(is_enabled && *key == "enabled")).collect();
        let nulls: Map<String, Value> = keys.into_iter().map(|key| (key.clone(), Value::Null)).collect();
        let whole = if is_enabled { json!({ "enabled": true }) } else { Value::Null };
        let nulls = value.is_object().then(|| nulls.into());
        for given in std::iter::once(whole).chain(nulls) {
            let mut values = json!({ "config": "[api]" });
            for enabled in ENABLED {
                values[enabled]["enabled"] = true.into();
            }
            match given.as_object() {
                // The keys that are not given keep what is set above.
                Some(fields) => fields.iter().for_each(|(key, value)| values[section][key] = value.clone()),
                None => values[section] = given,
            }
            let objects =
                rendered("helm", &values, release).unwrap_or_else(|said| panic!("{values}: {said}"));
            assert!(is_context || section == "config" || objects == expected, "{values}");
            all.extend(objects);
        }
    }
    assert_valid(all);
}
