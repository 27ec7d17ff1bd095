//! Call 6, section 4.6: the file tree of a repository.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::number::Number;
use super::spec::{Call, DecodeError, Method, Param, ParamKind, ReplyKind, Request, RuleError, Spec};

const REF: Param = Param {
    name: "ref",
    kind: ParamKind::Text { max_chars: None },
    purpose: "branch name or commit SHA for which the tree is returned",
};
const PATH: Param = Param {
    name: "path",
    kind: ParamKind::Text { max_chars: None },
    purpose: "directory within the repository; its root when omitted",
};

/// The call's description. The interface fixes neither parameter's name.
pub static SPEC: Spec = Spec {
    number: 6,
    id: "file_tree",
    method: Method::Get,
    path: "/v4/projects/{project_id}/integrations/codehost/repos/{owner}/{repo}/tree",
    purpose: "repository file tree",
    query: &[REF, PATH],
    body: None,
    reply: ReplyKind::Json(|generator| generator.subschema_for::<FileTreeReply>()),
};

/// The call with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct FileTree<'a> {
    /// The project's id.
    pub project_id: &'a str,
    /// The repository's owner.
    pub owner: &'a str,
    /// The repository's name.
    pub repo: &'a str,
    /// A branch or commit; the service chooses where there is none.
    pub reference: Option<&'a str>,
    /// A directory; the root where there is none.
    pub directory: Option<&'a str>,
}

impl Call for FileTree<'_> {
    type Reply = FileTreeReply;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        let ids = [("project_id", self.project_id), ("owner", self.owner), ("repo", self.repo)];
        let mut request = Request::new(&SPEC, &ids)?;
        for (param, value) in [(REF, self.reference), (PATH, self.directory)] {
            if let Some(value) = value {
                request = request.with(param.name, value);
            }
        }
        Ok(request)
    }

    fn reply(body: &[u8]) -> Result<FileTreeReply, DecodeError> {
        Ok(serde_json::from_slice(body)?)
    }
}

/// The reply (section 2, repository file tree).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FileTreeReply {
    /// The entries, whose fields the interface does not show.
    pub tree: Vec<Value>,
    /// How many entries there are.
    pub total_count: Number,
    /// Whether the tree was cut short.
    pub truncated: Option<bool>,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_and_directory_go_in_the_query() {
        let call =
            FileTree { project_id: "p-1", owner: "acme", repo: "a/b", reference: None, directory: None };
        let path = "/v4/projects/p-1/integrations/codehost/repos/acme/a%2Fb/tree";
        assert_eq!(call.request().unwrap().target(), path);
        let call = FileTree { reference: Some("feat/x"), directory: Some("src"), ..call };
        assert_eq!(call.request().unwrap().target(), format!("{path}?ref=feat%2Fx&path=src"));
    }

    #[test]
    fn entries_are_kept_as_they_come() {
        let body = r#"{"tree":[{"children":[],"path":"src"},"README.md"],"totalCount":2,"truncated":false}"#;
        let reply = FileTree::reply(body.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&reply).unwrap(), body);
    }
}
