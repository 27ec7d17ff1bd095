//! Which page a path names, and how it is cached.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::catalogue::markdown::Group;
use crate::status::{Source, Status};

use super::assets::{Asset, hash};
use super::layout::{Frame, Place, page};
use super::links::{Links, app_of};
use super::query::Query;
use super::{configuration, detail, families, overview};

/// What every answer carries: nothing from elsewhere, nothing inline, no frames, no guessing of types.
pub const SECURITY_HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
];

/// Pages are asked for again each time, and answered with 304 where nothing changed.
const REVALIDATE: (&str, &str) = ("cache-control", "no-cache");
/// Assets change their names instead of their content.
const FOR_EVER: (&str, &str) = ("cache-control", "public, max-age=31536000, immutable");

/// Ages on pages are told in steps of so many seconds, so that a page of which nothing else changed is not sent anew
/// within them.
const AGE_STEP: i64 = 5;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 200, 304 or 404.
    pub status: u16,
    /// The value of Content-Type.
    pub content_type: &'static str,
    /// The value of ETag, quotes included.
    pub etag: String,
    /// Empty for 304.
    pub body: Vec<u8>,
    /// Further headers.
    pub headers: Vec<(&'static str, &'static str)>,
}

/// The status pages.
#[derive(Clone, Debug)]
pub struct Site {
    source: Source,
    groups: Vec<Group>,
    links: Links,
}

impl Site {
    /// The pages of `source`, with `groups` as the catalogue of metrics. `prefix` is the path under which browsers
    /// reach them: that of `--web.external-url`, else of `--web.route-prefix`.
    #[must_use]
    pub fn new(source: Source, groups: Vec<Group>, prefix: &str) -> Self {
        Self { source, groups, links: Links::new(prefix) }
    }

    /// Answers a GET of `path` (the route prefix taken off, still encoded) and `query` (without `?`); `None` where there
    /// is no such page. Takes some milliseconds at large size: not for an I/O thread.
    #[must_use]
    pub fn respond(&self, path: &str, query: &str, if_none_match: Option<&str>) -> Option<Reply> {
        let now = told(self.source.now());
        if let Some(asset) = Asset::at(path) {
            let content = asset.content.as_bytes().to_vec();
            return Some(reply(200, asset.content_type, content, if_none_match, FOR_EVER));
        }
        let html = |status, page: Markup| {
            Some(reply(status, HTML, page.into_string().into_bytes(), if_none_match, REVALIDATE))
        };
        let json =
            |body: serde_json::Result<Vec<u8>>| Some(reply(200, JSON, body.ok()?, if_none_match, REVALIDATE));
        match path {
            "/" => {
                let status = self.source.status();
                let main = overview::overview(self.frame(&status, now), &Query::read(query));
                html(200, page(self.frame(&status, now), Place::Overview, "Overview", &main))
            }
            "/config" => {
                let status = self.source.status();
                let main = configuration::configuration(self.frame(&status, now), &self.source.explained());
                html(200, page(self.frame(&status, now), Place::Configuration, "Configuration", &main))
            }
            "/metrics-catalogue" => {
                let status = self.source.status();
                let names: Vec<&str> =
                    self.groups.iter().flat_map(|group| &group.families).map(|family| family.name).collect();
                let main = families::families(&self.groups, &self.source.examples(&names));
                html(200, page(self.frame(&status, now), Place::Families, "Metrics", &main))
            }
            "/api/v1/status" => {
                json(serde_json::to_vec(&selected(&self.source.status(), &Query::read(query))))
            }
            "/api/v1/status/schema" => json(serde_json::to_vec_pretty(&Status::schema())),
            _ => {
                let (project, app) = app_of(path)?;
                let status = self.source.status();
                let frame = self.frame(&status, now);
                match self.source.detail(&project, &app) {
                    Some(found) => {
                        html(200, page(frame, Place::App, &found.app.id, &detail::detail(frame, &found)))
                    }
                    None => html(
                        404,
                        page(frame, Place::App, "No such app", &no_such_app(&self.links, &project, &app)),
                    ),
                }
            }
        }
    }

    fn frame<'a>(&'a self, status: &'a Status, now: Timestamp) -> Frame<'a> {
        Frame { links: &self.links, status, now }
    }
}

/// The model with only the apps asked for, in that order; pages are for people.
fn selected(status: &Status, query: &Query) -> Status {
    let apps = query.select(&status.apps).into_iter().cloned().collect();
    Status { apps, ..status.clone() }
}

/// `now` in the steps in which ages are told.
fn told(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(AGE_STEP)).unwrap_or(now)
}

fn reply(
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    if_none_match: Option<&str>,
    cache: (&'static str, &'static str),
) -> Reply {
    let etag = format!("\"{}\"", hash(&body));
    let mut headers = SECURITY_HEADERS.to_vec();
    headers.push(cache);
    let known = if_none_match.is_some_and(|known| matches(known, &etag));
    if known && status == 200 {
        return Reply { status: 304, content_type, etag, body: Vec::new(), headers };
    }
    Reply { status, content_type, etag, body, headers }
}

/// Whether one of the tags of an If-None-Match is `etag`. A proxy that compresses may have made it a weak one.
fn matches(if_none_match: &str, etag: &str) -> bool {
    if_none_match.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

fn no_such_app(links: &Links, project: &str, app: &str) -> Markup {
    html! {
        h1 { "No such app" }
        p { "The configuration in force has no app " code { (app) } " in project " code { (project) } "." }
        p { a href=(links.to("/")) { "All apps" } }
    }
}
