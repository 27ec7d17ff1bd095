//! Section 4.7: list projects.

use serde::de::{Error as _, Unexpected};

use super::prelude::*;
use super::reader;
use super::reply::from_slice;
use super::wire::Object;

/// The reply.
pub type Reply = Vec<Project>;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "list_projects",
    Method::GET,
    "/v2/projects",
    "list projects",
    Command::safe(&["projects", "list"], ""),
)
.polled_as(Polled::of::<Reply>("projects", Scope::Account, Cadence::Settings, EXAMPLE));

const EXAMPLE: &str = r#"[{"id":"p-abc12345","name":"Search","role":"admin"}]"#;

/// The call as a resource.
pub const RESOURCE: Resource = Resource::of(Place::list_projects);

impl ReplyBody for Vec<Project> {
    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Projects(#[serde(deserialize_with = "optional_list")] Option<Vec<Object<Project>>>);
        let null = || serde_json::Error::invalid_type(Unexpected::Unit, &"an array");
        let projects = from_slice::<Projects>(body)?.0.ok_or_else(null)?;
        Ok(projects.into_iter().map(|Object(project)| project).collect())
    }
}

impl MetricSource for Vec<Project> {
    const ROWS: &'static [Row<Self>] = ROWS;

    fn read(body: &[u8], _: &Terms, _: &mut reader::Unexpected) -> Result<Self, DecodeError> {
        Self::decode(body)
    }
}

/// A project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Project {
    /// Project identifier.
    pub id: Text,
    /// Project name.
    pub name: Text,
    /// Caller's role in the project.
    pub role: Text,
}

rows! { Vec<Project>, "from the list of projects, polled every poll.settings_interval":
    INFO: info(
        "pds_project_info",
        ["name", "role"],
        "Name, role of the service account, and configured labels"
    ) => |projects, reader| {
        if let Some(project) = projects.iter().find(|project| *project.id == *reader.subject.project) {
            reader.info(&[("name", &project.name), ("role", &project.role)]);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{exposed, unreadable};

    #[test]
    fn the_subjects_project_is_found_by_its_id() {
        let body = r#"[
            {"id": "p-other", "name": "Other", "role": "owner"},
            {"id": "p-1", "name": "He said \"go\" \\ and\nwent <script>🦀", "role": "developer", "plan": {"code": "hobby"}},
            {"id": "p-1", "name": "the same again", "role": ""}
        ]"#;
        assert_eq!(
            exposed(&CALL, body).0,
            "pds_project_info{project=\"p-1\",name=\"He said \\\"go\\\" \\\\ and\\nwent <script>🦀\",role=\"developer\",team=\"search\"} 1\n"
        );
    }

    #[test]
    fn a_project_that_the_account_does_not_see_has_no_series() {
        for body in ["[]", r#"[{"id": null, "name": 7}]"#, r#"[{"name": "p-1"}]"#] {
            assert_eq!(exposed(&CALL, body), (String::new(), vec![]), "{body}");
        }
    }

    #[test]
    fn a_reply_that_is_no_list_is_unreadable() {
        for body in ["", "{}", "null", r#"["p-1"]"#, "[{}"] {
            unreadable(&CALL, body);
        }
    }
}
