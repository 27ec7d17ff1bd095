//! The one writer of configurations for simulated services.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use pds_config::Config;
use pds_simulator::World;

/// A configuration that polls the apps of a simulated service.
pub(crate) struct Configuration<'a> {
    world: &'a World,
    service: String,
    api: String,
    tables: String,
    of_projects: String,
    of_app: Box<dyn Fn(&str) -> String + 'a>,
    apps: usize,
    more_apps: Vec<String>,
    expiry: Option<Timestamp>,
    token_folder: Option<PathBuf>,
}

impl<'a> Configuration<'a> {
    /// All apps of `world`, which answers at the base URL `service`, without a limit of requests.
    pub(crate) fn new(world: &'a World, service: &str) -> Self {
        Self {
            world,
            service: service.to_owned(),
            api: "max_requests_per_second = 0\n".to_owned(),
            tables: String::new(),
            of_projects: String::new(),
            of_app: Box::new(quoted),
            apps: usize::MAX,
            more_apps: Vec::new(),
            expiry: None,
            token_folder: None,
        }
    }

    /// These lines in `[api]`, instead of no limit of requests.
    pub(crate) fn api(self, lines: &str) -> Self {
        Self { api: lines.to_owned(), ..self }
    }

    /// These tables beside `[api]` and the projects.
    pub(crate) fn tables(self, tables: &str) -> Self {
        Self { tables: format!("{tables}\n"), ..self }
    }

    /// These lines in each project.
    pub(crate) fn of_projects(self, lines: &str) -> Self {
        Self { of_projects: lines.to_owned(), ..self }
    }

    /// Each app as `write` writes it: an id in quotes, or a table.
    pub(crate) fn of_app(self, write: impl Fn(&str) -> String + 'a) -> Self {
        Self { of_app: Box::new(write), ..self }
    }

    /// Only the first `apps` apps of each project.
    pub(crate) fn first_apps(self, apps: usize) -> Self {
        Self { apps, ..self }
    }

    /// The first project also has this app.
    pub(crate) fn and_app(mut self, id: &str) -> Self {
        self.more_apps.push(quoted(id));
        self
    }

    /// Tokens that expire then.
    pub(crate) fn expiring(self, at: Timestamp) -> Self {
        Self { expiry: Some(at), ..self }
    }

    /// Tokens in files of `folder`.
    pub(crate) fn tokens_in(self, folder: &Path) -> Self {
        Self { token_folder: Some(folder.to_owned()), ..self }
    }

    /// The file's text.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("[api]\nbase_url = \"{}\"\n{}{}", self.service, self.api, self.tables);
        for (index, (project, apps)) in self.world.projects().iter().enumerate() {
            let token = self.world.token_until(project, self.expiry);
            let token = token.unwrap();
            let token = match &self.token_folder {
                Some(folder) => {
                    let path = folder.join(format!("token-{index}"));
                    std::fs::write(&path, token.expose()).unwrap();
                    format!("token_file = {}", quoted(path.to_str().unwrap()))
                }
                None => format!("token = {}", quoted(token.expose())),
            };
            let more = self.more_apps.iter().filter(|_| index == 0).cloned();
            let apps = apps.iter().take(self.apps).map(|app| (self.of_app)(app)).chain(more);
            let (id, apps) = (quoted(project), apps.collect::<Vec<_>>().join(","));
            writeln!(text, "[[projects]]\nid = {id}\n{token}\n{}apps = [{apps}]", self.of_projects).unwrap();
        }
        text
    }

    /// The program's result.
    pub(crate) fn load(&self) -> Config {
        pds_config::load_text(Path::new("test.toml"), &self.text()).unwrap().config
    }

    /// Writes it to a file in `folder`. Returns the file's path.
    pub(crate) fn write(&self, folder: &Path) -> String {
        let path = folder.join("pds-exporter.toml");
        std::fs::write(&path, self.text()).unwrap();
        path.display().to_string()
    }
}

/// As a string of TOML, whose escapes JSON shares.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
