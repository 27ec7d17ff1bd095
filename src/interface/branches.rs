//! Call 12, section 4.12: list the branches of a repository.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::number::lenient_text;
use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 12,
    id: "branches",
    method: Method::Get,
    path: "/v4/projects/{project_id}/integrations/codehost/repos/{owner}/{repo}/branches",
    purpose: "list branches",
    query: &[],
    body: None,
    reply: ReplyKind::Json(|generator| generator.subschema_for::<BranchesReply>()),
};

/// The call with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Branches<'a> {
    /// The project's id.
    pub project_id: &'a str,
    /// The repository's owner.
    pub owner: &'a str,
    /// The repository's name.
    pub repo: &'a str,
}

impl Call for Branches<'_> {
    type Reply = BranchesReply;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        let ids = [("project_id", self.project_id), ("owner", self.owner), ("repo", self.repo)];
        Request::new(&SPEC, &ids)
    }

    fn reply(body: &[u8]) -> Result<BranchesReply, DecodeError> {
        Ok(serde_json::from_slice(body)?)
    }
}

/// The reply (section 4.12).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BranchesReply {
    /// One item a branch.
    pub branches: Vec<Branch>,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// A branch (section 2). Which type `protected` and `default` have the interface does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Branch {
    /// Its name.
    #[serde(deserialize_with = "lenient_text")]
    pub name: String,
    /// Whether it is protected.
    pub protected: Value,
    /// Whether it is the repository's default.
    pub default: Value,
    /// Its newest commit.
    #[serde(deserialize_with = "lenient_text")]
    pub sha: String,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codehost_stands_in_the_path_as_it_is() {
        let request = Branches { project_id: "p-1", owner: "acme", repo: "ranker" }.request().unwrap();
        assert_eq!(request.target(), "/v4/projects/p-1/integrations/codehost/repos/acme/ranker/branches");
    }

    #[test]
    fn a_branch_is_read_whatever_the_type_of_its_flags() {
        for flag in ["true", "\"true\"", "null"] {
            let body = format!(
                r#"{{"branches":[{{"name":"main","protected":{flag},"default":true,"sha":"0a1b"}}]}}"#
            );
            let reply = Branches::reply(body.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&reply).unwrap(), body);
        }
    }
}
