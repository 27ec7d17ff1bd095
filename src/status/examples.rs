//! A live example of each metric family: a line of the page as it stands.

use std::collections::HashMap;
use std::convert::Infallible;

use tokio::time::Instant;

use crate::store::Filter;
use pds_exposition::Format;

use super::Source;

impl Source {
    /// A sample line for each of the families `names` that has a series, by family name: of the first app and
    /// project where they have one.
    #[must_use]
    pub fn examples(&self, names: &[&str]) -> HashMap<String, String> {
        let context = self.context();
        let mut found = HashMap::new();
        let read = |found: &mut HashMap<String, String>, filter: &Filter| {
            let snapshot = context.store.snapshot(Instant::now(), filter);
            let Ok(()) = snapshot.write(Format::Text, &mut |chunk: &[u8]| {
                add_examples(found, chunk);
                Ok::<(), Infallible>(())
            });
        };
        let status = self.status();
        let projects: Vec<String> =
            status.projects.first().map(|project| project.id.to_string()).into_iter().collect();
        let apps = status.apps.first().map(|app| app.id.to_string()).into_iter().collect();
        read(&mut found, &Filter { names: Vec::new(), projects: projects.clone(), apps });
        let missing = names.iter().filter(|name| !found.contains_key(**name));
        let missing =
            Filter { names: missing.map(|name| (*name).to_owned()).collect(), projects, apps: Vec::new() };
        // Without names the whole project would be rendered.
        if !missing.names.is_empty() {
            read(&mut found, &missing);
        }
        let mut telemetry = Vec::new();
        context.telemetry.write(&mut telemetry, Format::Text, |_| true);
        add_examples(&mut found, &telemetry);
        found
    }
}

/// Records the first line of each family in `page`.
fn add_examples(found: &mut HashMap<String, String>, page: &[u8]) {
    for line in String::from_utf8_lossy(page).lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let name = name.strip_suffix("_bucket").unwrap_or(name);
        if !found.contains_key(name) {
            found.insert(name.to_owned(), line.to_owned());
        }
    }
}
