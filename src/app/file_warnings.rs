//! Files of the configuration that cannot be used. Warnings only: they may appear later, and may be readable only where the
//! daemon runs.

use pds_config::{Config, TokenSource};
use pds_core::error_chain::with_sources;

/// The tokens that cannot be sent and the certificates that cannot be trusted, by key.
pub(super) fn of(config: &Config) -> impl Iterator<Item = String> {
    tokens(config).chain(certificates(config))
}

fn tokens(config: &Config) -> impl Iterator<Item = String> {
    let projects = config.projects.iter().enumerate();
    let projects = projects.map(|(index, project)| (format!("projects[{index}]"), &project.token));
    let sections = std::iter::once(("api".to_owned(), &config.api.token)).chain(projects);
    sections.filter_map(|(section, source)| {
        let source = source.as_ref()?;
        let key = match source {
            TokenSource::File(_) => "token_file",
            TokenSource::Inline(_) => "token",
        };
        let error = pds_client::check_token(source).err()?;
        Some(format!("{section}.{key}: {}", with_sources(&error)))
    })
}

fn certificates(config: &Config) -> impl Iterator<Item = String> {
    let prometheus = config.state.prometheus.as_ref();
    let files = [
        ("api.ca_file", config.api.ca_file.as_deref()),
        ("state.prometheus_ca_file", prometheus.and_then(|prometheus| prometheus.ca_file.as_deref())),
    ];
    let problem = |(key, file)| Some(with_sources(&pds_http::tls_config(key, file).err()?));
    files.into_iter().filter(|(_, file)| file.is_some()).filter_map(problem)
}
