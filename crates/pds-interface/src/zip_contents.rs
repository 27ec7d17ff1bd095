//! Section 4.8: the files of a build's ZIP archive.

use serde_json::{Map, Value};

use super::prelude::*;

/// The reply.
pub type Reply = ZipContentsReply;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "zip_contents",
    Method::GET,
    "/v2/projects/{project_id}/apps/{app_id}/builds/{build_id}/zip-contents",
    "files of a build's ZIP archive",
    Command::safe(&["build", "zip-contents"], "p-abc12345-ranker b-1"),
)
.needing("zipFiles");

impl ReplyBody for ZipContentsReply {}

/// The files of a build's ZIP archive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ZipContentsReply {
    /// Build identifier.
    pub id: Text,
    /// Files contained in the build's uploaded ZIP archive.
    pub zip_files: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_kept_whatever_their_structure() {
        let body = r#"{"id":"b-1","zipFiles":{"src":{"main.py":{"size":10}}}}"#;
        let reply = ZipContentsReply::decode(body.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&reply).unwrap(), body);
    }
}
