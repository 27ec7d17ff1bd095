//! Which page a path names, and how it is cached.

use http::StatusCode;
use http::header::{self, HeaderValue};
use jiff::Timestamp;
use maud::{Markup, html};

use crate::catalogue::markdown::Group;
use crate::status::{Source, Status};
use crate::web::{PageRequest, Response, Route};

use super::assets::{Asset, hash};
use super::layout::{Frame, NavItem, Page, page};
use super::links::{Links, app_of, encode};
use super::query::Query;
use super::{configuration, detail, families, overview};

/// Pages are asked for again each time, and answered with 304 where nothing changed; assets change their names
/// instead of their content.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The paths; the server puts the route prefix before them.
const PATHS: &[&str] = &[
    "/",
    "/apps/{project}/{app}",
    "/config",
    "/metrics-catalogue",
    "/api/v1/status",
    "/api/v1/status/schema",
    "/static/{file}",
];

/// Ages on pages are told in steps of so many seconds, so that a page of which nothing else changed is not sent anew
/// within them.
const AGE_STEP: i64 = 5;

/// What a path shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// A page.
    Page(String),
    /// A page that says that there is none.
    NoPage(String),
    /// A JSON document.
    Json(String),
    /// Style, script or icon: (content type, content).
    Asset(&'static str, &'static str),
    /// Nothing.
    Nothing,
}

/// The status pages.
#[derive(Clone, Debug)]
pub struct StatusPages {
    source: Source,
    groups: Vec<Group>,
    links: Links,
}

impl StatusPages {
    /// The pages of `source`, with `groups` as the catalogue of metrics. `prefix` is the path under which browsers
    /// reach them: that of `--web.external-url`, else of `--web.route-prefix`.
    #[must_use]
    pub fn new(source: Source, groups: Vec<Group>, prefix: &str) -> Self {
        Self { source, groups, links: Links::new(prefix) }
    }

    /// The same, with links to the metrics at `path` (`--web.telemetry-path`).
    #[must_use]
    pub fn with_telemetry_path(self, path: &str) -> Self {
        Self { links: self.links.with_telemetry_path(path), ..self }
    }

    /// The routes of all pages.
    #[must_use]
    pub fn routes(&self) -> Vec<Route> {
        let route = |path: &&'static str| {
            let (site, path) = (self.clone(), *path);
            Route::page(path, move |ask| site.clone().answer(path, ask))
        };
        PATHS.iter().map(route).collect()
    }

    /// Answers off the I/O threads: a page of a large configuration takes some milliseconds.
    async fn answer(self, route: &'static str, ask: PageRequest) -> Response {
        let made = tokio::task::spawn_blocking(move || {
            // Whatever prefix the request came with is no concern of the pages.
            let named =
                |segment: &str| match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                    Some(name) => encode(ask.segment(name)),
                    None => segment.to_owned(),
                };
            let path = route.split('/').map(named).collect::<Vec<_>>().join("/");
            self.respond(&path, ask.raw_query().unwrap_or(""))
        });
        match made.await {
            Ok(reply) => reply.into(),
            Err(_) => Response::text(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be made.\n"),
        }
    }

    /// What `path` (without the route prefix, still encoded) shows for `query` (without `?`).
    #[must_use]
    pub fn respond(&self, path: &str, query: &str) -> Rendered {
        if let Some(asset) = Asset::at(path) {
            return Rendered::Asset(asset.content_type, asset.content);
        }
        let status = self.source.status();
        let frame = Frame { links: &self.links, status: &status, now: told(self.source.now()) };
        let made = |made: &Page<'_>| page(frame, made).into_string();
        match path {
            "/" => {
                let query = Query::read(query);
                let main = overview::overview(frame, &query);
                let json = Some(query.to_text());
                Rendered::Page(made(&Page {
                    tab: Some(NavItem::Overview),
                    title: "Overview",
                    json,
                    metrics: String::new(),
                    main,
                }))
            }
            "/config" => {
                let main = configuration::configuration(frame, &self.source.explained());
                Rendered::Page(made(&Page::beside(Some(NavItem::Configuration), "Configuration", main)))
            }
            "/metrics-catalogue" => {
                let names: Vec<&str> =
                    self.groups.iter().flat_map(|group| &group.families).map(|family| family.name).collect();
                let main = families::families(&self.groups, &self.source.examples(&names));
                Rendered::Page(made(&Page::beside(Some(NavItem::Families), "Catalogue", main)))
            }
            "/api/v1/status" => json(serde_json::to_string(&self.selected(&status, &Query::read(query)))),
            "/api/v1/status/schema" => json(serde_json::to_string_pretty(&Status::schema())),
            _ => match app_of(path) {
                Some((project, app)) => match self.source.detail(&project, &app) {
                    Some(found) => {
                        let only = Query { project, app, page: 1, ..Query::default() }.to_text();
                        let main = detail::detail(frame, &found);
                        let title = found.app.name.as_deref().unwrap_or(&found.app.id);
                        Rendered::Page(made(&Page {
                            tab: None,
                            title,
                            json: Some(only.clone()),
                            metrics: only,
                            main,
                        }))
                    }
                    None => {
                        let main = no_such_app(&self.links, &project, &app);
                        Rendered::NoPage(made(&Page::beside(None, "No such app", main)))
                    }
                },
                None => Rendered::Nothing,
            },
        }
    }

    /// The model with only the apps asked for, in that order, and links as browsers follow them; pages are for people.
    fn selected(&self, status: &Status, query: &Query) -> Status {
        let apps = query.select(&status.apps, &status.projects).into_iter().cloned().collect();
        let mut selected = Status { apps, ..status.clone() };
        for reason in &mut selected.summary.reasons {
            reason.link = self.links.to(&reason.link);
        }
        selected
    }
}

impl From<Rendered> for Response {
    fn from(reply: Rendered) -> Self {
        match reply {
            Rendered::Page(page) => {
                let tag = hash(page.as_bytes());
                Self::html(StatusCode::OK, page).etag(&tag)
            }
            Rendered::NoPage(page) => Self::html(StatusCode::NOT_FOUND, page),
            Rendered::Json(document) => {
                let tag = hash(document.as_bytes());
                Self::json(StatusCode::OK, document).etag(&tag)
            }
            Rendered::Asset(content_type, content) => {
                Self::new(StatusCode::OK, content_type, content.to_owned())
                    .header(header::CACHE_CONTROL, FOR_EVER)
            }
            Rendered::Nothing => Self::text(StatusCode::NOT_FOUND, "There is nothing at this path.\n"),
        }
    }
}

/// Plain data always becomes JSON; were it not so, nothing could be shown of it.
fn json(document: serde_json::Result<String>) -> Rendered {
    document.map_or(Rendered::Nothing, Rendered::Json)
}

/// `now` in the steps in which ages are told.
fn told(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(AGE_STEP)).unwrap_or(now)
}

fn no_such_app(links: &Links, project: &str, app: &str) -> Markup {
    html! {
        h1 { "No such app" }
        p { "The configuration in force has no app " code { (app) } " in project " code { (project) } "." }
        p { a href=(links.to("/")) { "All apps" } }
    }
}
