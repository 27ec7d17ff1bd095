//! A first configuration: the few required keys, each with its help.

use std::fmt::Write as _;

use serde::Serialize;

use pds_config::key::{self, quoted};

/// Content of the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// The first line, without its `#`.
    pub title: String,
    /// The service's address.
    pub base_url: String,
    /// The token's file, if all projects share one.
    pub token_file: Option<String>,
    /// The projects.
    pub projects: Vec<DraftProject>,
    /// Further sections, as TOML.
    pub sections: String,
}

/// A project of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DraftProject {
    /// Its id.
    pub id: String,
    /// Its name and role, or nothing.
    #[serde(skip)]
    pub note: String,
    /// Its own token, only for a simulator, whose token is no secret.
    pub token: Option<String>,
    /// The ids of its apps.
    pub apps: Vec<String>,
}

impl Draft {
    /// The text of the file.
    pub fn text(&self) -> String {
        let mut out = format!(
            "# {}\n# docs/keys.md describes every key; pds-exporter --config.check checks this file.\n\n[api]\n",
            self.title
        );
        line(&mut out, "api.base_url", "base_url", &quoted(&self.base_url));
        if let Some(file) = &self.token_file {
            line(&mut out, "api.token_file", "token_file", &quoted(file));
        }
        out.push_str("\n[state]\n");
        line(&mut out, "state.path", "# path", "\"/var/lib/pds-exporter/state\"");
        if !self.sections.is_empty() {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", self.sections);
        }
        for project in &self.projects {
            out.push_str("\n[[projects]]\n");
            if !project.note.is_empty() {
                let _ = writeln!(out, "# {}", project.note.replace(char::is_control, " "));
            }
            let _ = writeln!(out, "id = {}", quoted(&project.id));
            if let Some(token) = &project.token {
                let _ = writeln!(out, "token = {}", quoted(token));
            }
            match &*project.apps {
                [] => line(&mut out, "projects[].apps", "apps", "[]"),
                apps => {
                    let apps: String = apps.iter().map(|app| format!("    {},\n", quoted(app))).collect();
                    line(&mut out, "projects[].apps", "apps", &format!("[\n{apps}]"));
                }
            }
        }
        out
    }
}

/// A key with its help before it.
fn line(out: &mut String, path: &str, name: &str, value: &str) {
    if let Some(key) = key::all().iter().find(|key| key.path == path) {
        let _ = writeln!(out, "# {}", key.help);
    }
    let _ = writeln!(out, "{name} = {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_a_configuration_whatever_names_hold() {
        let project = DraftProject {
            id: "p-1".to_owned(),
            note: "Search \"quoted\"\n# and more (admin)".to_owned(),
            token: Some("a.b".to_owned()),
            apps: vec!["p-1-ranker".to_owned(), "p-1-embed".to_owned()],
        };
        let draft = Draft {
            title: "Made here".to_owned(),
            base_url: "https://api.example.com/".to_owned(),
            token_file: Some("/run/token".to_owned()),
            projects: vec![project],
            sections: "\n[api.query_names]\nstart = \"from\"".to_owned(),
        };
        let loaded = pds_config::load_text(std::path::Path::new("x.toml"), &draft.text()).unwrap();
        assert_eq!(loaded.config.projects[0].apps.len(), 2);
        assert_eq!(loaded.config.api.query_names.start, "from");
        assert!(draft.text().contains("# The service's address"), "{}", draft.text());
    }
}
