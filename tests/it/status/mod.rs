//! The contract with other people's scripts: the schema of `/api/v1/status`.

use std::path::Path;

use pds_exporter::status::Status;

use crate::golden::assert_golden;

#[test]
fn the_schema_of_the_status_is_the_documented_one() {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Status)).unwrap() + "\n";
    assert_golden(Path::new("src/status/schema.json"), &schema);
}
