//! The address of every page, behind any prefix; and styles, scripts and icons, under names that change with their
//! content, so that browsers may cache them forever.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use ::url::form_urlencoded::parse;
use pds_core::template::percent_encode;

/// The pages' addresses as browsers see them.
#[derive(Clone, Debug)]
pub(super) struct Links {
    prefix: String,
    /// The path of the metrics page (`--web.telemetry-path`).
    telemetry_path: String,
}

impl Links {
    /// Links behind `prefix`, the path of the external URL: `""`, `/` or `/metrics/pds/`.
    pub(super) fn new(prefix: &str, telemetry_path: &str) -> Self {
        let bare = prefix.trim_matches('/');
        let prefix = if bare.is_empty() { String::new() } else { format!("/{bare}") };
        Self { prefix, telemetry_path: telemetry_path.to_owned() }
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

/// A file that pages refer to.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    name: &'static str,
    /// Its content type.
    pub content_type: &'static str,
    /// Its content.
    pub content: &'static str,
}

const fn asset(name: &'static str, content_type: &'static str, content: &'static str) -> Asset {
    Asset { name, content_type, content }
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

pub(super) const STYLE: Asset =
    asset("style.css", "text/css; charset=utf-8", include_str!("assets/style.css"));
pub(super) const SCRIPT: Asset = asset("script.js", JAVASCRIPT, include_str!("assets/script.js"));
/// Runs before the first paint, so that a page never flashes in the other theme.
pub(super) const THEME: Asset = asset("theme.js", JAVASCRIPT, include_str!("assets/theme.js"));
pub(super) const ICON: Asset = asset("icon.svg", SVG, include_str!("assets/icon.svg"));
/// The icon of a page that is not up to date.
pub(super) const TROUBLE: Asset = asset("trouble.svg", SVG, include_str!("assets/trouble.svg"));

/// The path of assets, below the prefix.
pub(super) const FOLDER: &str = "/static/";

impl Asset {
    /// Its name, with a hash of its content: `style-0123456789abcdef.css`.
    fn file(&self) -> String {
        let (stem, extension) = self.name.split_once('.').unwrap_or((self.name, ""));
        format!("{stem}-{}.{extension}", hash(self.content.as_bytes()))
    }

    /// Its address.
    pub(super) fn link(&self, links: &Links) -> String {
        links.to(&format!("{FOLDER}{}", self.file()))
    }

    /// The asset whose name is `file`.
    pub fn named(file: &str) -> Option<Self> {
        [STYLE, SCRIPT, THEME, ICON, TROUBLE].into_iter().find(|asset| asset.file() == file)
    }
}

/// A hash of content for names and ETags; it need not withstand attackers.
pub(super) fn hash(content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
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
            assert_eq!(Links::new(prefix, "").to("/config"), link);
        }
    }

    #[test]
    fn any_name_survives_its_link() {
        for (project, app) in [("p-1", "p-1-a"), ("a/b", "../c?d#e"), ("é\"<>", "%2F 🦀")] {
            let link = Links::new("", "").app(project, app);
            let values = Template("/apps/{project}/{app}").values(&link).unwrap();
            assert_eq!(values, [("project", project.to_owned()), ("app", app.to_owned())], "{link}");
        }
    }
}
