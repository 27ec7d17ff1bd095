//! The address of every page, behind any prefix.

use ::url::form_urlencoded::parse;
use pds_core::template::percent_encode;

/// The pages' addresses as browsers see them.
#[derive(Clone, Debug)]
pub(super) struct Links {
    prefix: String,
    /// Where the metrics are (`--web.telemetry-path`).
    pub(super) telemetry_path: String,
}

impl Links {
    /// Links behind `prefix`, the path of the external URL: `""`, `/` or `/metrics/pds/`.
    pub(super) fn new(prefix: &str) -> Self {
        let bare = prefix.trim_matches('/');
        let prefix = if bare.is_empty() { String::new() } else { format!("/{bare}") };
        Self { prefix, telemetry_path: "/metrics".to_owned() }
    }

    /// The metrics page, filtered by `query`: empty, or beginning with `?`.
    pub(super) fn metrics(&self, query: &str) -> String {
        format!("{}{}{query}", self.prefix, self.telemetry_path)
    }

    /// The address of `path`, which begins with a slash.
    pub(super) fn to(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// The overview with `query`, empty or beginning with `?`.
    pub(super) fn overview(&self, query: &str) -> String {
        format!("{}/{query}", self.prefix)
    }

    /// The page of an app.
    pub(super) fn app(&self, project: &str, app: &str) -> String {
        format!("{}/apps/{}/{}", self.prefix, encode(project), encode(app))
    }

    /// A family's place in the catalogue.
    pub(super) fn family(&self, name: &str) -> String {
        format!("{}/metrics-catalogue#{name}", self.prefix)
    }
}

/// The first value of `name` in a query string.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    parse(query.as_bytes()).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// `text` as a segment of a path, or as a value of a query.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    percent_encode(text, &mut encoded);
    encoded
}

/// Addresses in other programs.
pub(super) mod url {
    use url::Url;

    use super::encode;

    /// The dashboard of one app: `deploy/grafana/dashboards/app.json`.
    const APP_DASHBOARD: &str = "pds-app";

    /// `query` at the Prometheus `base`: drawn, or as a table.
    pub(crate) fn prometheus(base: &Url, query: &str, table: bool) -> String {
        format!("{}/graph?g0.expr={}&g0.tab={}", bare(base), encode(query), u8::from(table))
    }

    /// The dashboard of an app in the Grafana at `base`.
    pub(crate) fn dashboard(base: &Url, project: &str, app: &str) -> String {
        let (project, app) = (encode(project), encode(app));
        format!("{}/d/{APP_DASHBOARD}?var-project={project}&var-app={app}", bare(base))
    }

    fn bare(base: &Url) -> &str {
        base.as_str().trim_end_matches('/')
    }
}

#[cfg(test)]
mod tests {
    use pds_core::template::Template;

    use super::*;

    #[test]
    fn links_stay_behind_their_prefix() {
        for (prefix, link) in
            [("", "/config"), ("/", "/config"), ("/a/b/", "/a/b/config"), ("x", "/x/config")]
        {
            assert_eq!(Links::new(prefix).to("/config"), link);
        }
    }

    #[test]
    fn any_name_survives_its_link() {
        for (project, app) in [("p-1", "p-1-a"), ("a/b", "../c?d#e"), ("é\"<>", "%2F 🦀")] {
            let link = Links::new("").app(project, app);
            let values = Template("/apps/{project}/{app}").values(&link).unwrap();
            assert_eq!(values, [("project", project.to_owned()), ("app", app.to_owned())], "{link}");
        }
    }
}
