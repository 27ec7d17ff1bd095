//! The interface as an OpenAPI 3.1 document, derived from [`CALLS`].

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, ReplaceBoolSchemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::CALLS;
use super::call::Call;
use super::param::{Param, ParamKind};
use super::reply::Format;

// `x-source` of each field, parameter and status.

/// The interface states it.
const INTERFACE: &str = "interface";
/// Observed of a public service.
const OBSERVED: &str = "observed";
/// Assumed: a service may have another.
const ASSUMED: &str = "assumed";

/// Error statuses that were observed, each with its cause. The interface says only that there are errors (section 7),
/// so any other is `default`.
const ERRORS: [(&str, &str); 3] = [
    ("401", "the token is missing, unknown or expired"),
    ("403", "the service account does not belong to the project"),
    ("404", "a resource in the path does not exist"),
];

/// Fields without which a reply is of no use: what identifies a resource, and the list or object that is requested.
/// Every other field may be missing: the interface promises none.
const REQUIRED: [&str; 6] = ["id", "data", "domains", "branches", "thresholds", "tree"];

/// The document.
pub fn document() -> Value {
    // Generators of clients do not know `true`, which takes any value.
    let mut any_value = ReplaceBoolSchemas::default();
    any_value.skip_additional_properties = true;
    // Field names and types as the service writes them.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut settings = settings.with_transform(any_value).with_transform(RecursiveTransform(plain));
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();

    let mut paths: Map<String, Value> = Map::new();
    for call in CALLS {
        let path = paths.entry(call.path.0).or_insert_with(|| json!({}));
        path[call.method.as_str().to_lowercase()] = operation(call, &mut generator);
    }
    let mut schemas = generator.take_definitions(true);
    let properties = schemas.values_mut().filter_map(|schema| schema.get_mut("properties")?.as_object_mut());
    for property in properties.flat_map(Map::values_mut) {
        property["x-source"] = INTERFACE.into();
    }
    for call in CALLS.iter().filter(|call| !call.body.is_empty()) {
        schemas.insert(body_name(call), body(call));
    }
    schemas.insert(
        "Error".to_owned(),
        json!({
            "type": "object",
            "description": "Body of an error.",
            "properties": {
                "message": { "type": "string", "description": "Why the call failed.", "x-source": INTERFACE }
            }
        }),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Project Deployment Service",
            "version": "2",
            "description": "All calls of the service. x-source states for each field, parameter and status whether the service's interface documents it (interface), it was observed, or it is assumed. The interface names no query parameter, no status and no field of a custom domain.",
        },
        "servers": [{
            "url": "{base_url}",
            "description": "Address of the service.",
            "variables": { "base_url": { "default": "https://pds.invalid" } }
        }],
        "security": [{ "serviceAccount": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "serviceAccount": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" }
            },
            "schemas": schemas,
        }
    })
}

/// Removes from a schema the parts that are not the interface's: the defaults of our readers, fields that our writers
/// always write, and line breaks in descriptions.
fn plain(schema: &mut Schema) {
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    let Some(Value::Array(mut required)) = schema.remove("required") else { return };
    required.retain(|name| name.as_str().is_some_and(|name| REQUIRED.contains(&name)));
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
}

/// A purpose as a sentence: `get one app` gives `Get one app.`
fn sentence(purpose: &str) -> String {
    let mut chars = purpose.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

fn operation(call: &Call, generator: &mut SchemaGenerator) -> Value {
    let ids = call.path.names().map(|name| {
        json!({
            "name": name, "in": "path", "required": true, "description": sentence(&id_purpose(name)),
            "schema": { "type": "string", "minLength": 1 }
        })
    });
    let parameters: Vec<Value> = ids.chain(call.query.iter().map(|param| parameter(call, param))).collect();
    let mut operation = json!({
        "operationId": call.id,
        "summary": sentence(call.purpose).trim_end_matches('.'),
        "parameters": parameters,
        "responses": responses(call, generator),
    });
    if !call.body.is_empty() {
        let schema = json!({ "$ref": format!("#/components/schemas/{}", body_name(call)) });
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

/// The meaning of an identifier in a path: `project_id` gives "identifier of the project".
fn id_purpose(name: &str) -> String {
    match name.strip_suffix("_id") {
        Some(of) => format!("identifier of the {of}"),
        None => format!("{} of the repository", if name == "repo" { "name" } else { name }),
    }
}

/// The name of the schema of a call's body: `ChangePlanBody`.
fn body_name(call: &Call) -> String {
    let words = call.id.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
    words.collect::<String>() + "Body"
}

fn body(call: &Call) -> Value {
    let properties: Map<String, Value> = call
        .body
        .iter()
        .map(|field| {
            let mut schema = schema(field.kind);
            schema["description"] = sentence(field.purpose).into();
            schema["x-source"] = INTERFACE.into();
            (field.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = call.body.iter().map(|field| field.name).collect();
    json!({
        "type": "object", "description": format!("What is needed to {}.", call.purpose), "properties": properties, "required": required
    })
}

fn parameter(call: &Call, param: &Param) -> Value {
    // Parameters of ranges are known from a sibling call.
    let source = if call.polled.is_some() { OBSERVED } else { ASSUMED };
    json!({
        "name": param.name, "in": "query", "description": sentence(param.purpose),
        "schema": schema(param.kind), "x-source": source
    })
}

fn schema(kind: ParamKind) -> Value {
    let mut schema = json!({ "type": "string" });
    let mut set = |key: &str, value: Value| {
        if !value.is_null() {
            schema[key] = value;
        }
    };
    match kind {
        ParamKind::Text { max_chars, .. } => set("maxLength", max_chars.into()),
        ParamKind::RangeStart | ParamKind::RangeEnd => set("format", "date-time".into()),
        ParamKind::FutureDate => set("format", "date".into()),
        ParamKind::Word { words, .. } => set("enum", words.into()),
    }
    if let ParamKind::Text { default, .. } | ParamKind::Word { default, .. } = kind {
        set("default", default.into());
    }
    schema
}

/// The interface shows no statuses: any 2xx is a success, any other an error.
fn responses(call: &Call, generator: &mut SchemaGenerator) -> Value {
    let error = |when: &str, source: &str| {
        json!({
            "description": sentence(when), "x-source": source,
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } }
        })
    };
    let mut responses = json!({
        "2XX": { "description": "The call succeeded.", "x-source": OBSERVED },
        "default": error("the call failed", INTERFACE),
    });
    let content = match call.format {
        Format::Json => Some(("application/json", (call.schema)(generator).to_value())),
        Format::Text => Some(("text/plain", json!({ "type": "string" }))),
        Format::Empty => None,
    };
    if let Some((media_type, schema)) = content {
        responses["2XX"]["content"] = json!({ media_type: { "schema": schema } });
        // A status of its own, as it has no body that a client could read.
        responses["204"] =
            json!({ "description": "The call succeeded, without a body.", "x-source": ASSUMED });
    }
    for (status, when) in ERRORS {
        // A service account's own list needs no identifier.
        if status == "401" || call.path.names().next().is_some() {
            responses[status] = error(when, OBSERVED);
        }
    }
    responses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_an_operation_of_its_own() {
        let document = document();
        for call in CALLS {
            let operation = &document["paths"][call.path.0][call.method.as_str().to_lowercase()];
            assert_eq!(operation["operationId"], call.id);
            let parameters = operation["parameters"].as_array().unwrap();
            assert_eq!(parameters.len(), call.path.names().count() + call.query.len());
        }
        let operations =
            document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len());
        assert_eq!(operations.sum::<usize>(), CALLS.len());
    }

    #[test]
    fn every_field_is_described_without_rust_and_takes_any_value_as_an_object() {
        let document = document();
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            for (field, property) in schema["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{name}.{field} is not described");
                assert!(property.get("default").is_none(), "{name}.{field} has a default");
                assert!(property["x-source"].is_string(), "{name}.{field} has no source");
            }
        }
        let text = document.to_string();
        for rust in ["[`", "None`", "snake case", "\"items\":true"] {
            assert!(!text.contains(rust), "{rust}");
        }
        let app = &document["components"]["schemas"]["App"]["properties"];
        assert_eq!(app["runtime"]["examples"], json!(["cortex", "custom"]));
        assert!(document["servers"][0]["url"].is_string());
    }

    #[test]
    fn any_success_and_any_error_is_documented_with_its_source_and_nothing_is_promised_beyond() {
        let document = document();
        for call in CALLS {
            let operation = &document["paths"][call.path.0][call.method.as_str().to_lowercase()];
            let responses = operation["responses"].as_object().unwrap();
            for (status, response) in responses {
                assert!(response["x-source"].is_string(), "{} {status}", call.id);
            }
            assert!(responses.contains_key("2XX") && responses.contains_key("default"), "{}", call.id);
        }
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["App"]["required"], json!(["id"]));
        assert_eq!(schemas["ResponseTimeReply"]["required"], json!(["data"]));
        assert_eq!(schemas["Error"]["required"], Value::Null);
        assert_eq!(document["info"]["license"], Value::Null);
    }

    #[test]
    fn the_document_has_the_limits_and_bodies_of_the_interface() {
        let document = document();
        let key = &document["paths"]["/v2/projects/{project_id}/api-keys"]["post"];
        assert_eq!(
            key["parameters"][1]["schema"],
            json!({ "type": "string", "maxLength": 50, "default": "API Key" })
        );
        assert_eq!(key["parameters"][3]["schema"]["format"], "date");
        let plan = &document["components"]["schemas"]["ChangePlanBody"];
        assert_eq!(plan["required"], json!(["planCode"]));
        let text = document.to_string();
        for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
