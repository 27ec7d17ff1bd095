//! Call 7, section 4.7: list projects.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::Family;

use super::endpoint::{Ask, Cadence, Polled, Resource, Row, Scope};
use super::lenient;
use super::number::lenient_text;
use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 7,
    id: "list_projects",
    method: Method::Get,
    path: "/v2/projects",
    purpose: "list projects",
    query: &[],
    body: None,
    reply: ReplyKind::Json(|generator| generator.subschema_for::<Vec<Project>>()),
};

/// The call; it has no arguments.
#[derive(Clone, Copy, Debug)]
pub struct ListProjects;

impl Call for ListProjects {
    type Reply = Vec<Project>;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        Request::new(&SPEC, &[])
    }

    fn reply(body: &[u8]) -> Result<Vec<Project>, DecodeError> {
        Ok(lenient::from_slice(body)?)
    }
}

/// A project as the list has it (section 2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Project {
    /// Its identifier.
    #[serde(deserialize_with = "lenient_text")]
    pub id: String,
    /// Its name.
    #[serde(deserialize_with = "lenient_text")]
    pub name: String,
    /// The caller's role in it.
    #[serde(deserialize_with = "lenient_text")]
    pub role: String,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// The call as a polled endpoint: one reply tells of all projects of a service account.
pub static ENDPOINT: Polled<Vec<Project>> = Polled {
    resource: Resource::Projects,
    spec: &SPEC,
    scope: Scope::Account,
    cadence: Cadence::Settings,
    request: |_: &Ask<'_>| ListProjects.request(),
    decode: <ListProjects as Call>::reply,
    rows: ROWS,
    tally: None,
};

static ROWS: &[Row<Vec<Project>>] = &[Row {
    family: Family::info(
        "pds_project_info",
        &["name", "role"],
        "The project's name and the service account's role in it, with the labels configured for it",
    ),
    read: |projects, reader| {
        if let Some(project) = projects.iter().find(|project| *project.id == *reader.subject.project.id) {
            reader.info(&[("name", &project.name), ("role", &project.role)]);
        }
    },
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::recorded::{exposed, unreadable};

    #[test]
    fn the_subjects_project_is_found_by_its_id() {
        let body = r#"[
            {"id": "p-other", "name": "Other", "role": "owner"},
            {"id": "p-1", "name": "He said \"go\" \\ and\nwent <script>🦀", "role": "developer", "plan": {"code": "hobby"}},
            {"id": "p-1", "name": "the same again", "role": ""}
        ]"#;
        assert_eq!(
            exposed(&ENDPOINT, body).0,
            "pds_project_info{project=\"p-1\",name=\"He said \\\"go\\\" \\\\ and\\nwent <script>🦀\",role=\"developer\",team=\"search\"} 1\n"
        );
    }

    #[test]
    fn a_project_that_the_account_does_not_see_has_no_series() {
        for body in ["[]", r#"[{"id": null, "name": 7}]"#, r#"[{"name": "p-1"}]"#] {
            assert_eq!(exposed(&ENDPOINT, body), (String::new(), vec![]), "{body}");
        }
    }

    #[test]
    fn a_reply_that_is_no_list_is_unreadable() {
        for body in ["", "{}", "null", r#"["p-1"]"#, "[{}"] {
            unreadable(&ENDPOINT, body);
        }
    }
}
