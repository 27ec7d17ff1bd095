//! The contract with other people's scripts: the schema of `/api/v1/status`.

use std::path::Path;

use pds_exporter::status::Status;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;

use crate::golden::assert_golden;

#[test]
fn the_schema_of_the_status_is_the_documented_one() {
    // `pdstool` reads what is missing as its default; the exporter sends everything.
    let no_default = RecursiveTransform(|schema: &mut Schema| drop(schema.remove("default")));
    let settings = SchemaSettings::default().for_serialize().with_transform(no_default);
    let schema = settings.into_generator().into_root_schema_for::<Status>();
    assert_golden(
        Path::new("src/status/schema.json"),
        &(serde_json::to_string_pretty(&schema).unwrap() + "\n"),
    );
}
