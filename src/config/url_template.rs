//! A URL with `{project}` and `{app}` in it.

use std::convert::Infallible;

use config::Value;
use url::Url;

use super::key::Kind;
use super::raw::Place;
use super::reader::Reader;
use super::value;
use crate::interface::template::{Template, percent_encode};

/// A URL with `{project}` and `{app}` where their ids go.
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

    fn read(&self, raw: &Value, place: &Place<'_>) -> Option<UrlTemplate> {
        let text = place.check(value::text(raw))?;
        if let Some(name) = Template(text).names().find(|name| !["project", "app"].contains(name)) {
            return place.refuse(format!("has {{{name}}}; only {{project}} and {{app}} are filled in"));
        }
        // An id never decides which host is asked.
        let fixed = text.split('{').next().unwrap_or_default();
        let host = fixed.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        let url = Url::parse(fixed).ok().filter(|url| host && ["http", "https"].contains(&url.scheme()));
        match url {
            None => place.refuse(
                "not a URL with a path; use such as \"https://example.com/projects/{project}/apps/{app}\"",
            ),
            Some(url) if !url.username().is_empty() || url.password().is_some() => {
                place.refuse("must not contain credentials")
            }
            Some(_) => Some(UrlTemplate(text.to_owned())),
        }
    }
}
