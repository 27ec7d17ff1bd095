//! Paths to pages, and their caching.

use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderValue};
use jiff::Timestamp;
use maud::{Markup, html};
use tokio::sync::Semaphore;

use crate::config::Shard;
use crate::status::model::Exporter;
use crate::status::{Source, Status};
use pds_core::printable::steers_terminal;
use pds_exposition::markdown::Group;
use pds_web::{PageRequest, Response, Route};

use super::assets::{Asset, FOLDER};
use super::detail::Extras;
use super::layout::{Frame, NavItem, Page, page};
use super::links::{Links, app_of, encode};
use super::query::Query;
use super::rendered::Rendered;
use super::sharing::{Made, Sharing};
use super::{configuration, detail, families, overview};

/// For assets, which change their names instead of their content. Pages are revalidated each time and answered with
/// 304 if unchanged.
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

/// Pages rendered at once: with thousands of apps, the model and the text of a page take megabytes.
const MAX_RENDERED_AT_ONCE: usize = 2;

/// Ages on pages advance in steps of this many seconds, so that an otherwise unchanged page is not sent again within
/// a step.
const AGE_STEP: i64 = 5;

/// The status pages.
#[derive(Clone, Debug)]
pub struct StatusPages {
    source: Source,
    groups: Vec<Group>,
    links: Links,
    /// Whether raw replies are shown.
    replies: bool,
    turns: Arc<Semaphore>,
    sharing: Arc<Sharing>,
}

impl StatusPages {
    /// The pages of `source`, with `groups` as the catalogue of metrics. `prefix` is the path under which browsers
    /// reach them: that of `--web.external-url`, else of `--web.route-prefix`.
    #[must_use]
    pub fn new(source: Source, groups: Vec<Group>, prefix: &str) -> Self {
        let turns = Arc::new(Semaphore::new(MAX_RENDERED_AT_ONCE));
        let links = Links::new(prefix);
        Self { source, groups, links, replies: false, turns, sharing: Arc::default() }
    }

    /// The same, with raw replies on the pages of apps or without (`--web.show-replies`).
    #[must_use]
    pub fn with_replies(self, replies: bool) -> Self {
        Self { replies, ..self }
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
        let nothing = self.clone();
        let fallback = Route::fallback(move |ask| nothing.clone().answer("", ask));
        PATHS.iter().map(route).chain([fallback]).collect()
    }

    /// Answers off the I/O threads, as a page of a large configuration takes milliseconds and megabytes.
    async fn answer(self, route: &'static str, ask: PageRequest) -> Response {
        // Nobody closes the semaphore.
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok();
        let made = tokio::task::spawn_blocking(move || {
            // Pages do not depend on the prefix of the request.
            let named =
                |segment: &str| match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                    Some(name) => encode(ask.segment(name)),
                    None => segment.to_owned(),
                };
            let path = route.split('/').map(named).collect::<Vec<_>>().join("/");
            let response = self.response(&path, ask.raw_query().unwrap_or(""));
            drop(turn);
            response
        });
        match made.await {
            Ok(response) => response,
            Err(_) => Response::text(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be made.\n"),
        }
    }

    /// The page at `path` (without the route prefix, still encoded) for `query` (without `?`).
    #[must_use]
    pub fn respond(&self, path: &str, query: &str) -> Rendered {
        self.rendered(&self.source.status(), path, query)
    }

    fn rendered(&self, status: &Status, path: &str, query: &str) -> Rendered {
        if let Some(asset) = Asset::at(path) {
            return Rendered::Asset(asset.content_type, asset.content);
        }
        let frame = Frame { links: &self.links, status, now: told(self.source.now()) };
        let made = |made: &Page<'_>| page(frame, made).into_string();
        match path {
            "/" => {
                let query = Query::read(query);
                let main = overview::overview(frame, &query);
                let json = Some(query.to_text());
                Rendered::Page(made(&Page {
                    tab: Some(NavItem::Overview),
                    title: &overview::title(&status.summary),
                    json,
                    metrics: String::new(),
                    main,
                }))
            }
            "/config" => {
                let main = configuration::configuration(
                    frame,
                    &self.source.explained(),
                    self.source.last_refused().as_ref(),
                    configuration::only_changed(query),
                );
                Rendered::Page(made(&Page::beside(Some(NavItem::Configuration), "Configuration", main)))
            }
            "/metrics-catalogue" => {
                let names: Vec<&str> =
                    self.groups.iter().flat_map(|group| &group.families).map(|family| family.name).collect();
                let (examples, web) = (self.source.examples(&names), self.source.web());
                let main = families::families(frame, &self.groups, &examples, &families::search(query), &web);
                Rendered::Page(made(&Page::beside(Some(NavItem::Families), "Catalogue", main)))
            }
            "/api/v1/status" => json(serde_json::to_string(&self.selected(status, &Query::read(query)))),
            "/api/v1/status/schema" => json(Ok(Status::SCHEMA.to_owned())),
            _ => match app_of(path) {
                Some((project, app)) => self.app(frame, project, app, query),
                None => {
                    Rendered::NoPage(made(&Page::beside(None, "No such page", no_such_page(&self.links))))
                }
            },
        }
    }

    /// The page of an app.
    fn app(&self, frame: Frame<'_>, project: String, app: String, query: &str) -> Rendered {
        let Some(found) = self.source.detail(&project, &app) else {
            let main = no_such_app(frame, &project, &app);
            return Rendered::NoPage(page(frame, &Page::beside(None, "No such app", main)).into_string());
        };
        let only = Query { project, app, page: 1, ..Query::default() }.to_text();
        let extras = Extras { web: self.source.web(), replies: self.replies, query: query.to_owned() };
        let main = detail::detail(frame, &found, &extras);
        let title = found.app.name.as_deref().unwrap_or(&found.app.id);
        let shown = Page { tab: None, title, json: Some(only.clone()), metrics: only, main };
        Rendered::Page(page(frame, &shown).into_string())
    }

    /// The model with only the selected apps, in that order, and with links as browsers follow them.
    fn selected(&self, status: &Status, query: &Query) -> Status {
        let mut selected = Status {
            exporter: status.exporter.clone(),
            service: status.service.clone(),
            summary: status.summary.clone(),
            projects: status.projects.clone(),
            apps: query.select(&status.apps, &status.projects).into_iter().cloned().collect(),
            failing: status.failing,
        };
        for reason in &mut selected.summary.reasons {
            reason.link = self.links.to(&reason.link);
        }
        selected
    }
}

impl StatusPages {
    /// The answer at `path`; readers of one reading of the model share one rendering.
    fn response(&self, path: &str, query: &str) -> Response {
        if path.starts_with(FOLDER) {
            return match Asset::at(path) {
                Some(Asset { content_type, content, .. }) => {
                    let content = Bytes::from_static(content.as_bytes());
                    Response::new(StatusCode::OK, content_type, content)
                        .header(header::CACHE_CONTROL, FOR_EVER)
                }
                None => Response::text(StatusCode::NOT_FOUND, "There is nothing at this path.\n"),
            };
        }
        let status = self.source.status();
        let made = self.sharing.made(&status, path, query, || self.rendered(&status, path, query));
        match made {
            Made::Page { status, text, tag } => Response::html(status, text).etag(&tag),
            Made::Json { text, tag } => Response::json(StatusCode::OK, text).etag(&tag),
            Made::Nothing => Response::text(StatusCode::NOT_FOUND, "There is nothing at this path.\n"),
        }
    }
}

/// Plain data always serializes. What would steer a terminal or turn the direction of text is escaped.
fn json(document: serde_json::Result<String>) -> Rendered {
    let Ok(mut document) = document else { return Rendered::Nothing };
    if document.contains(steers_terminal) {
        // Such characters stand in strings only.
        let escaped = |c: char| match steers_terminal(c) {
            true => format!("\\u{:04x}", u32::from(c)),
            false => c.to_string(),
        };
        document = document.chars().map(escaped).collect();
    }
    Rendered::Json(document)
}

/// `now`, rounded down to the step of ages.
fn told(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(AGE_STEP)).unwrap_or(now)
}

fn no_such_app(frame: Frame<'_>, project: &str, app: &str) -> Markup {
    let Exporter { shard, shards, .. } = frame.status.exporter;
    let owner = (0..shards).find(|index| {
        let shard = NonZeroU32::new(shards).and_then(|count| Shard::new(*index, count).ok());
        shard.is_some_and(|shard| shard.owns_app(project, app))
    });
    html! {
        h1 { "No such app" }
        p { "The active configuration has no app " code { (app) } " in project " code { (project) } "." }
        @if let Some(owner) = owner.filter(|owner| *owner != shard) {
            p { "This is shard " (shard) " of " (shards) ". If there is such an app, shard " (owner) " polls it." }
        }
        p { a href=(frame.links.to("/")) { "All apps" } }
    }
}

fn no_such_page(links: &Links) -> Markup {
    html! {
        h1 { "No such page" }
        p { "There is nothing at this path." }
        p { a href=(links.to("/")) { "All apps" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_steer_a_terminal_or_turn_text_are_escaped_in_json() {
        let text = "a\u{202e}b\u{9b}2J\u{7f} Größe";
        let Rendered::Json(json) = json(serde_json::to_string(text)) else { panic!("it serializes") };
        assert!(!json.contains(steers_terminal) && json.contains("Größe"), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
