//! URLs, also with `{project}` and `{app}` in them.

use url::Url;

use super::explain::has_credentials;
use super::key::Kind;
use super::reader::{Reader, as_text};
use pds_core::template::{Template, percent_encode};

/// An http or https URL. It may contain credentials unless `credentials_in` names the keys for them.
pub(super) fn http_url(credentials_in: Option<&'static str>) -> Reader<Url> {
    Reader::new(Kind::Url, move |raw| {
        let url = parse_url(as_text(raw)?)?;
        match credentials_in {
            Some(keys) if has_credentials(&url) => Err(format!("must not contain credentials; use {keys}")),
            _ => Ok(url),
        }
    })
}

/// Parses an http or https URL without query and fragment.
///
/// # Errors
/// If `text` is anything else. The message does not show it: it may hold credentials.
pub fn parse_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text)
        .map_err(|error| format!("not a valid URL ({error}); use for example \"https://api.example.com\""))?;
    if !is_http(&url) {
        return Err("must begin with http:// or https://".to_owned());
    }
    // A `/` in a password ends the host, so the rest of the password would be shown as a path.
    if url.path().contains('@') {
        return Err("must not have `@` in its path; write `/` in a user or password as %2F".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or fragment; remove everything from `?` or `#`".to_owned());
    }
    Ok(url)
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// A URL with placeholders for the ids of project and app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlTemplate(String);

impl UrlTemplate {
    /// The URL for an app.
    pub fn url(&self, project: &str, app: &str) -> String {
        Template(&self.0).fill(|name, out| percent_encode(if name == "project" { project } else { app }, out))
    }
}

/// A [`UrlTemplate`].
pub(super) fn app_url() -> Reader<UrlTemplate> {
    Reader::new(Kind::Url, |raw| {
        let text = as_text(raw)?;
        if let Some(name) = Template(text).names().find(|name| !["project", "app"].contains(name)) {
            return Err(format!("unknown placeholder {{{name}}}; use {{project}} and {{app}}"));
        }
        // An id must not decide which host is contacted.
        let fixed = text.split('{').next().unwrap_or_default();
        let has_path = fixed.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        match Url::parse(fixed) {
            Ok(url) if has_path && is_http(&url) && !has_credentials(&url) => Ok(UrlTemplate(text.to_owned())),
            Ok(url) if has_path && is_http(&url) => Err("must not contain credentials".to_owned()),
            _ => Err(
                "not a URL with a path; use for example \"https://example.com/projects/{project}/apps/{app}\""
                    .to_owned(),
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::parse_url;

    #[test]
    fn a_refused_url_is_not_shown() {
        for text in ["ftp://hunter2@x", "hunter2", "http://user:/hunter2@x:99", "http://user:12/hunter2@x"] {
            let refused = parse_url(text).unwrap_err();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
