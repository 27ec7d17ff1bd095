//! Section 4.6: the file tree of a repository.

use serde_json::Value;

use super::prelude::*;

const REF: Param = Param {
    name: "ref",
    configured: Some(|names| &names.tree_ref),
    kind: ParamKind::Text { max_chars: None, default: None },
    purpose: "branch name or commit SHA for which the tree is returned",
};
const PATH: Param = Param {
    name: "path",
    configured: Some(|names| &names.tree_path),
    kind: ParamKind::Text { max_chars: None, default: None },
    purpose: "directory path within the repository; the repository root when omitted",
};

/// The reply.
pub type Reply = FileTreeReply;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "file_tree",
    Method::GET,
    "/v4/projects/{project_id}/integrations/codehost/repos/{owner}/{repo}/tree",
    "repository file tree",
    Command::safe(&["repo", "tree"], "acme ranker --ref main --path src"),
)
.with_query(&[REF, PATH])
.needing("tree");

impl ReplyBody for FileTreeReply {}

/// The file tree of a repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FileTreeReply {
    /// Hierarchical file tree of the repository at the requested ref.
    pub tree: Vec<Value>,
    /// Count of entries.
    #[schemars(extend("type" = "integer"))]
    pub total_count: Number,
    /// Whether the tree was cut short.
    pub truncated: Flag,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_kept_as_they_come() {
        let body = r#"{"tree":[{"children":[],"path":"src"},"README.md"],"totalCount":2,"truncated":false}"#;
        let reply = FileTreeReply::decode(body.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&reply).unwrap(), body);
        let quoted = body.replace("false", "\"false\"");
        assert_eq!(FileTreeReply::decode(quoted.as_bytes()).unwrap().tree, reply.tree);
    }
}
