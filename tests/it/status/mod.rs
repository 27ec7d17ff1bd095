//! The contract with other people's scripts: the schema of `/api/v1/status`.

use std::path::Path;

use pds_exporter::status::Status;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;

use crate::golden::assert_golden;
use crate::process::{Exporter, get};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_status_of_many_apps_has_no_tag_and_the_same_apps() {
    for (apps, is_whole) in [(1_000, true), (1_001, false)] {
        let ids: Vec<String> = (0..apps).map(|app| format!("\"a-{app}\"")).collect();
        let config = format!(
            "[api]\nbase_url = \"http://127.0.0.1:9\"\ntoken = \"t\"\n[[projects]]\nid = \"p-1\"\napps = [{}]\n",
            ids.join(", ")
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, config).unwrap();
        let exporter = Exporter::start(&["--config.file", file.path().to_str().unwrap()]);
        for (query, selected) in [("", apps), ("?app=a-7", 1), ("?name=nowhere&sort=p95", 0)] {
            let reply = get(&format!("{}/api/v1/status{query}", exporter.url)).await.unwrap();
            assert_eq!(reply.headers()["content-type"], "application/json; charset=utf-8");
            assert_eq!(reply.headers().contains_key("etag"), is_whole, "{apps}");
            let status: serde_json::Value = serde_json::from_str(&reply.text().await.unwrap()).unwrap();
            assert_eq!(status["apps"].as_array().unwrap().len(), selected, "{query}");
            assert_eq!(status["summary"]["apps"]["all"], apps);
        }
    }
}
