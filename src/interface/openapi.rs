//! The interface as an OpenAPI 3.1 document, derived from [`CALLS`].

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::CALLS;
use super::call::{Call, Method};
use super::param::{Param, ParamKind};
use super::reply::Format;

/// The error statuses, each with its cause. The interface says only that there are errors (section 7);
/// these are what services of its kind have been seen to send.
const ERRORS: [(&str, &str); 7] = [
    ("400", "a parameter or the body breaks a rule"),
    ("401", "the token is missing, unknown or expired"),
    ("403", "the service account does not belong to the project"),
    ("404", "a resource in the path does not exist"),
    ("409", "the state of a resource does not allow the change"),
    ("415", "the body is not JSON"),
    ("429", "too many requests"),
];

/// The document.
#[must_use]
pub fn document() -> Value {
    // Replies as they are written: every field that is always sent is required.
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();

    let mut paths: Map<String, Value> = Map::new();
    for call in CALLS {
        let operation = operation(call, &mut generator);
        let path = paths.entry(call.path.0).or_insert_with(|| json!({}));
        path[call.method.as_str().to_lowercase()] = operation;
    }
    let mut schemas = generator.take_definitions(true);
    for schema in schemas.values_mut() {
        plain(schema);
    }
    for call in CALLS.iter().filter(|call| !call.body.is_empty()) {
        schemas.insert(body_name(call), body(call));
    }
    schemas.insert(
        "Error".to_owned(),
        json!({
            "type": "object",
            "description": "Body of an error.",
            "properties": { "message": { "type": "string", "description": "Why the call failed." } },
            "required": ["message"]
        }),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Project Deployment Service",
            "version": "2",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "All calls of the service. The names of query parameters, the statuses of errors and the fields of a custom domain are not documented; this document has those in use.",
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
            "responses": {
                "Error": {
                    "description": "The call failed.",
                    "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } }
                }
            },
            "schemas": schemas,
        }
    })
}

/// Takes out of a schema what is not the interface's: the defaults of our readers, line breaks in descriptions, and
/// `true` for any value.
fn plain(schema: &mut Value) {
    one_line(schema);
    if let Some(items) = schema.get_mut("items") {
        anything(items);
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for property in properties.values_mut() {
        anything(property);
        one_line(property);
        if let Some(items) = property.get_mut("items") {
            anything(items);
        }
        if let Some(property) = property.as_object_mut() {
            property.remove("default");
        }
    }
}

/// Writes the description of a schema in one line.
fn one_line(schema: &mut Value) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// A purpose as a sentence: `get one app` gives `Get one app.`
fn sentence(purpose: &str) -> String {
    let mut chars = purpose.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// A schema that takes any value, as an object rather than `true`, which generators of clients do not know.
fn anything(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
}

fn operation(call: &Call, generator: &mut SchemaGenerator) -> Value {
    let ids = call.path.names().map(|name| {
        json!({
            "name": name, "in": "path", "required": true, "description": sentence(&id_purpose(name)),
            "schema": { "type": "string", "minLength": 1 }
        })
    });
    let parameters: Vec<Value> = ids.chain(call.query.iter().map(parameter)).collect();
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
            (field.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = call.body.iter().map(|field| field.name).collect();
    json!({
        "type": "object", "description": format!("What is needed to {}.", call.purpose), "properties": properties, "required": required
    })
}

fn parameter(param: &Param) -> Value {
    json!({
        "name": param.name, "in": "query", "description": sentence(param.purpose), "schema": schema(param.kind)
    })
}

fn schema(kind: ParamKind) -> Value {
    match kind {
        ParamKind::Text { max_chars, default } => {
            let mut schema = json!({ "type": "string" });
            if let Some(max) = max_chars {
                schema["maxLength"] = max.into();
            }
            if let Some(default) = default {
                schema["default"] = default.into();
            }
            schema
        }
        ParamKind::RangeStart | ParamKind::RangeEnd => json!({ "type": "string", "format": "date-time" }),
        ParamKind::FutureDate => json!({ "type": "string", "format": "date" }),
        ParamKind::Word { words, default: None } => json!({ "type": "string", "enum": words }),
        ParamKind::Word { words, default: Some(default) } => {
            json!({ "type": "string", "enum": words, "default": default })
        }
    }
}

fn responses(call: &Call, generator: &mut SchemaGenerator) -> Value {
    let content = |kind: &str, schema: Value| json!({ kind: { "schema": schema } });
    let (status, content) = match call.reply.format {
        Format::Json => ("200", Some(content("application/json", (call.reply.schema)(generator).to_value()))),
        Format::Text => ("200", Some(content("text/plain", json!({ "type": "string" })))),
        Format::Empty => ("204", None),
    };
    let mut responses = Map::new();
    let mut success = json!({ "description": "The call succeeded." });
    if let Some(content) = content {
        success["content"] = content;
    }
    responses.insert(status.to_owned(), success);
    for (status, when) in ERRORS {
        // Only a service account's own list needs no identifier and no parameter, so nothing of it can be missing
        // or broken; a state that does not allow what is asked is met only by what changes something.
        let possible = match status {
            "400" => !call.query.is_empty() || !call.body.is_empty(),
            "403" | "404" => call.path.names().next().is_some(),
            "415" => !call.body.is_empty(),
            "409" => call.method != Method::Get,
            _ => true,
        };
        if possible {
            let mut error = json!({ "$ref": "#/components/responses/Error" });
            error["description"] = sentence(when).into();
            responses.insert(status.to_owned(), error);
        }
    }
    responses.into()
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
            }
        }
        let text = document.to_string();
        for rust in ["[`", "None`", "snake case", "\"items\":true"] {
            assert!(!text.contains(rust), "{rust}");
        }
        let app = &document["components"]["schemas"]["App"]["properties"];
        assert_eq!(app["runtime"]["enum"], json!(["cortex", "custom"]));
        assert!(document["servers"][0]["url"].is_string());
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
