//! Section 4.12: list the branches of a repository.

use serde_json::Value;

use super::prelude::*;

/// The reply.
pub type Reply = BranchesReply;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "branches",
    Method::GET,
    "/v4/projects/{project_id}/integrations/codehost/repos/{owner}/{repo}/branches",
    "list branches",
    Command::safe(&["repo", "branches"], "acme ranker"),
)
.needing("branches");

impl ReplyBody for BranchesReply {}

/// The branches of a repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BranchesReply {
    /// The branches.
    pub branches: Vec<Branch>,
}

/// A branch of a repository.
// The interface does not state the types of `protected` and `default`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Branch {
    /// Name of the branch.
    pub name: Text,
    /// Whether the branch is protected.
    pub protected: Value,
    /// Whether the branch is the default of the repository.
    pub default: Value,
    /// SHA of the newest commit.
    pub sha: Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_read_whatever_the_type_of_its_flags() {
        for flag in ["true", "\"true\"", "null"] {
            let body = format!(
                r#"{{"branches":[{{"name":"main","protected":{flag},"default":true,"sha":"0a1b"}}]}}"#
            );
            let reply = BranchesReply::decode(body.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&reply).unwrap(), body);
        }
    }
}
