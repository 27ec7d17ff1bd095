//! A URL with `{project}` and `{app}` in it.

use std::convert::Infallible;

use config::Value;
use url::Url;

use super::key::Kind;
use super::raw::Position;
use super::reader::Reader;
use super::value;
use pds_interface::template::{Template, percent_encode};

/// A URL with placeholders for the ids of project and app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlTemplate(String);

impl UrlTemplate {
    /// The URL for an app.
    #[must_use]
    pub fn url(&self, project: &str, app: &str) -> String {
        let write = |name: &str, out: &mut String| {
            percent_encode(if name == "project" { project } else { app }, out);
            Ok::<(), Infallible>(())
        };
        let Ok(url) = Template(&self.0).fill(write);
        url
    }
}

/// Reads a [`UrlTemplate`].
#[derive(Debug)]
pub(super) struct AppUrl;

impl Reader for AppUrl {
    type Value = UrlTemplate;

    fn kind(&self) -> Kind {
        Kind::Url
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<UrlTemplate> {
        let text = position.check(value::text(raw))?;
        if let Some(name) = Template(text).names().find(|name| !["project", "app"].contains(name)) {
            return position.refuse(format!("unknown placeholder {{{name}}}; use {{project}} and {{app}}"));
        }
        // An id must not decide which host is contacted.
        let fixed = text.split('{').next().unwrap_or_default();
        let host = fixed.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        let url = Url::parse(fixed).ok().filter(|url| host && ["http", "https"].contains(&url.scheme()));
        match url {
            None => position.refuse(
                "not a URL with a path; use for example \"https://example.com/projects/{project}/apps/{app}\"",
            ),
            Some(url) if !url.username().is_empty() || url.password().is_some() => {
                position.refuse("must not contain credentials")
            }
            Some(_) => Some(UrlTemplate(text.to_owned())),
        }
    }
}
