//! Values of replies as the interface states them, for the OpenAPI document. The readers take more than that.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A whole number.
pub(super) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}

/// A number transmitted as a string.
pub(super) fn number_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "decimal" })
}

/// An RFC 3339 timestamp.
pub(super) fn timestamp(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// The runtimes of an app. Others were observed, so it is no enumeration.
pub(super) fn runtime(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "examples": ["cortex", "custom"] })
}

/// The compute tiers of an app.
pub(super) fn compute_tier(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["interruptible", "protected"] })
}

/// Response time percentiles.
pub(super) fn percentiles(_: &mut SchemaGenerator) -> Schema {
    const NAMES: [(&str, &str); 4] = [("p50", "50th"), ("p90", "90th"), ("p95", "95th"), ("p99", "99th")];
    let property = |(name, nth): (&str, &str)| {
        let description = format!("{nth} percentile in milliseconds; null if there were no requests.");
        (name.to_owned(), json!({ "type": ["number", "null"], "description": description }))
    };
    let properties: serde_json::Map<String, Value> = NAMES.map(property).into_iter().collect();
    json_schema!({ "type": "object", "properties": properties, "required": NAMES.map(|(name, _)| name) })
}
