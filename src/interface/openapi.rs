//! The interface as an OpenAPI 3.1 document, derived from [`CALLS`].

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::CALLS;
use super::spec::{Method, Param, ParamKind, ReplyKind, Spec};

/// The statuses of errors, each with when it comes. The interface says only that there are errors (section 7);
/// these are what services of its kind have been seen to send.
const ERRORS: [(&str, &str); 6] = [
    ("400", "a parameter or the body breaks a rule"),
    ("401", "the token is missing, unknown or expired"),
    ("403", "the service account does not belong to the project"),
    ("404", "there is no such thing"),
    ("409", "the state of things does not allow it"),
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
    for spec in CALLS {
        let operation = operation(spec, &mut generator);
        let path = paths.entry(spec.path).or_insert_with(|| json!({}));
        path[spec.method.as_str().to_lowercase()] = operation;
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert(
        "Error".to_owned(),
        json!({
            "type": "object",
            "properties": { "message": { "type": "string" } },
            "required": ["message"]
        }),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Project Deployment Service",
            "version": "2",
            "description": "All calls of the service's interface. Names of query parameters, statuses of errors and names of a domain's fields are not fixed by it.",
        },
        "security": [{ "serviceAccount": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "serviceAccount": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" }
            },
            "responses": {
                "Error": {
                    "description": "an error",
                    "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } }
                }
            },
            "schemas": schemas,
        }
    })
}

fn operation(spec: &Spec, generator: &mut SchemaGenerator) -> Value {
    let ids = spec.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let ids = ids.map(|name| {
        json!({
            "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 }
        })
    });
    let parameters: Vec<Value> = ids.chain(spec.query.iter().map(parameter)).collect();
    let mut operation = json!({
        "operationId": spec.id,
        "summary": spec.purpose,
        "parameters": parameters,
        "responses": responses(spec, generator),
    });
    if let Some(body) = spec.body {
        let schema = body(generator);
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn parameter(param: &Param) -> Value {
    let schema = match param.kind {
        ParamKind::Text { max_chars: Some(max) } => json!({ "type": "string", "maxLength": max }),
        ParamKind::Text { max_chars: None } => json!({ "type": "string" }),
        ParamKind::DateTime => json!({ "type": "string", "format": "date-time" }),
        ParamKind::Date => json!({ "type": "string", "format": "date" }),
        ParamKind::Word(words) => json!({ "type": "string", "enum": words }),
    };
    json!({ "name": param.name, "in": "query", "description": param.purpose, "schema": schema })
}

fn responses(spec: &Spec, generator: &mut SchemaGenerator) -> Value {
    let content = |kind: &str, schema: Value| json!({ kind: { "schema": schema } });
    let (status, content) = match spec.reply {
        ReplyKind::Json(schema) => ("200", Some(content("application/json", schema(generator).to_value()))),
        ReplyKind::Text => ("200", Some(content("text/plain", json!({ "type": "string" })))),
        ReplyKind::Empty => ("204", None),
    };
    let mut responses = Map::new();
    let mut success = json!({ "description": "success" });
    if let Some(content) = content {
        success["content"] = content;
    }
    responses.insert(status.to_owned(), success);
    for (status, when) in ERRORS {
        // Only a service account's own list needs no identifier and no parameter, so nothing of it can be missing
        // or broken; a state that does not allow what is asked is met only by what changes something.
        let possible = match status {
            "400" => !spec.query.is_empty() || spec.body.is_some(),
            "403" | "404" => spec.path.contains('{'),
            "409" => spec.method != Method::Get,
            _ => true,
        };
        if possible {
            let mut error = json!({ "$ref": "#/components/responses/Error" });
            error["description"] = when.into();
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
        for spec in CALLS {
            let operation = &document["paths"][spec.path][spec.method.as_str().to_lowercase()];
            assert_eq!(operation["operationId"], spec.id);
            let parameters = operation["parameters"].as_array().unwrap();
            assert_eq!(parameters.len(), spec.path.matches('{').count() + spec.query.len());
        }
        let operations =
            document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len());
        assert_eq!(operations.sum::<usize>(), CALLS.len());
    }

    #[test]
    fn limits_and_bodies_stand_where_the_interface_has_them() {
        let document = document();
        let key = &document["paths"]["/v2/projects/{project_id}/api-keys"]["post"];
        assert_eq!(key["parameters"][1]["schema"], json!({ "type": "string", "maxLength": 50 }));
        assert_eq!(key["parameters"][3]["schema"]["format"], "date");
        let plan = &document["components"]["schemas"]["PlanChange"];
        assert_eq!(plan["required"], json!(["planCode"]));
        let text = document.to_string();
        for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
