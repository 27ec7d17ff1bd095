//! Call 8, section 4.8: the files of a build's ZIP archive.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::number::lenient_text;
use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 8,
    id: "zip_contents",
    method: Method::Get,
    path: "/v2/projects/{project_id}/apps/{app_id}/builds/{build_id}/zip-contents",
    purpose: "files of a build's ZIP archive",
    query: &[],
    body: None,
    reply: ReplyKind::Json(|generator| generator.subschema_for::<ZipContentsReply>()),
};

/// The call with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct ZipContents<'a> {
    /// The project's id.
    pub project_id: &'a str,
    /// The app's id.
    pub app_id: &'a str,
    /// The build's id.
    pub build_id: &'a str,
}

impl Call for ZipContents<'_> {
    type Reply = ZipContentsReply;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        let ids = [("project_id", self.project_id), ("app_id", self.app_id), ("build_id", self.build_id)];
        Request::new(&SPEC, &ids)
    }

    fn reply(body: &[u8]) -> Result<ZipContentsReply, DecodeError> {
        Ok(serde_json::from_slice(body)?)
    }
}

/// The reply (section 2, build zip contents).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ZipContentsReply {
    /// The build's id.
    #[serde(deserialize_with = "lenient_text")]
    pub id: String,
    /// The files, in a structure that the interface does not show.
    pub zip_files: Map<String, Value>,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_is_named_in_the_path_and_its_files_are_kept() {
        let call = ZipContents { project_id: "p-1", app_id: "p-1-a", build_id: "b 1" };
        assert_eq!(call.request().unwrap().target(), "/v2/projects/p-1/apps/p-1-a/builds/b%201/zip-contents");
        assert!(ZipContents { build_id: "", ..call }.request().is_err());
        let body = r#"{"id":"b-1","zipFiles":{"src":{"main.py":{"size":10}}}}"#;
        let reply = ZipContents::reply(body.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&reply).unwrap(), body);
    }
}
