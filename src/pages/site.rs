//! Paths to pages, and their caching.

use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderValue};
use jiff::Timestamp;
use maud::html;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::status::{Source, Status};
use pds_config::Shard;
use pds_core::template::Template;
use pds_diagnosis::Exporter;
use pds_exposition::Group;
use pds_web::{PageRequest, Response, Route};

use super::cache::{PageCache, Rendered};
use super::json;
use super::layout::{self, Frame, Page};
use super::links::{Asset, FOLDER, Links, parameter};
use super::query::Query;
use super::{configuration, detail, families, overview};

/// The caching of assets, whose names change with their content. Pages are revalidated each time, and get 304 if
/// unchanged.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The parameters of a request.
#[derive(Clone, Copy, Debug)]
struct Parameters<'a> {
    /// The project and app of an app's page, else empty.
    project: &'a str,
    app: &'a str,
    /// The query string, without `?`.
    query: &'a str,
}

/// Renders a page.
type Make = fn(&StatusPages, Frame<'_>, Parameters<'_>) -> Rendered;

/// The path of the model as JSON.
const STATUS: &str = "/api/v1/status";

/// With more apps, the model as JSON is sent while it is written, and has no entity tag: a hundred thousand apps take
/// 130 MB.
const MAX_WHOLE: usize = 1_000;

/// The pages by their paths; the server puts the route prefix before them.
const PAGES: &[(&str, Make)] = &[
    ("/", StatusPages::overview),
    ("/apps/{project}/{app}", StatusPages::app),
    ("/config", StatusPages::configuration),
    ("/metrics-catalogue", StatusPages::catalogue),
    (STATUS, StatusPages::status),
    ("/api/v1/status/schema", |_, _, _| Rendered::Json(Status::SCHEMA.to_owned())),
];

/// Pages rendered at once: with thousands of apps, the model and the text of a page take megabytes.
const MAX_RENDERED_AT_ONCE: usize = 2;

/// Ages on pages advance in steps of this many seconds, so that an otherwise unchanged page is not sent again within
/// a step.
const AGE_STEP: i64 = 5;

/// The paths of the status pages, and their optional parts.
#[derive(Clone, Copy, Debug)]
pub struct PagesConfig<'a> {
    /// The path under which browsers reach the pages: the path of `--web.external-url`, else `--web.route-prefix`.
    pub prefix: &'a str,
    /// The path of the metrics below it.
    pub metrics: &'a str,
    /// Whether the pages of apps show raw replies.
    pub replies: bool,
}

impl Default for PagesConfig<'_> {
    fn default() -> Self {
        Self { prefix: "", metrics: "/metrics", replies: false }
    }
}

/// The status pages.
#[derive(Clone, Debug)]
pub struct StatusPages {
    source: Source,
    groups: Vec<Group>,
    links: Links,
    /// Whether raw replies are shown.
    replies: bool,
    turns: Arc<Semaphore>,
    cache: Arc<Mutex<PageCache>>,
}

impl StatusPages {
    /// The pages of `source`, with `groups` as the catalogue of metrics.
    pub fn new(source: Source, groups: Vec<Group>, config: PagesConfig<'_>) -> Self {
        let turns = Arc::new(Semaphore::new(MAX_RENDERED_AT_ONCE));
        let links = Links::new(config.prefix, config.metrics);
        Self { source, groups, links, replies: config.replies, turns, cache: Arc::default() }
    }

    /// The paths of all pages.
    pub fn paths() -> impl Iterator<Item = String> {
        PAGES.iter().map(|(path, _)| (*path).to_owned()).chain([assets()])
    }

    /// The routes of all pages.
    pub fn routes(&self) -> Vec<Route> {
        let page = |(path, make): &(&'static str, Make)| {
            let (site, make) = (self.clone(), *make);
            let path = *path;
            Route::page(path, move |request| site.clone().answer(path, make, request))
        };
        let assets = Route::page(assets(), async |request| asset(request.segment("file")));
        PAGES.iter().map(page).chain([assets]).collect()
    }

    /// Renders off the I/O threads, as a page of a large configuration takes milliseconds and megabytes. Readers of one
    /// reading of the model share one rendering.
    async fn answer(self, path: &str, make: Make, request: PageRequest) -> Response {
        // Nobody closes the semaphore.
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok();
        let is_status = path == STATUS;
        let response = tokio::task::spawn_blocking(move || {
            let query = request.raw_query().unwrap_or("");
            let parameters =
                Parameters { project: request.segment("project"), app: request.segment("app"), query };
            let status = self.source.status();
            if is_status && status.apps.len() > MAX_WHOLE {
                let selected = self.selected(&status, &Query::read(query));
                drop((status, turn));
                return Response::json(StatusCode::OK, json::pieces(selected, request));
            }
            let render = || make(&self, self.frame(&status), parameters);
            let page = PageCache::get_or_render(&self.cache, &status, request.path(), query, render);
            drop(turn);
            page.response()
        });
        response.await.unwrap_or_else(|_| {
            Response::text(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be rendered.\n")
        })
    }

    /// The page at `path` (without the route prefix, still encoded) for `query` (without `?`), if there is one.
    pub fn respond(&self, path: &str, query: &str) -> Option<Rendered> {
        let mut pages = PAGES.iter();
        let (make, values) = pages.find_map(|(form, make)| Some((*make, Template(form).values(path)?)))?;
        let value = |name| values.iter().find(|(of, _)| *of == name).map_or("", |(_, value)| value);
        let parameters = Parameters { project: value("project"), app: value("app"), query };
        Some(make(self, self.frame(&self.source.status()), parameters))
    }

    fn frame<'a>(&'a self, status: &'a Status) -> Frame<'a> {
        Frame { links: &self.links, status, now: rounded(self.source.now()) }
    }
}

/// The pages.
impl StatusPages {
    fn overview(&self, frame: Frame<'_>, parameters: Parameters<'_>) -> Rendered {
        let query = Query::read(parameters.query);
        let main = overview::overview(frame, &query);
        let title = overview::title(&frame.status.summary);
        shown(frame, &Page { tab: "/", title: &title, json: Some(&query.to_text()), metrics: "", main })
    }

    fn app(&self, frame: Frame<'_>, Parameters { project, app, query }: Parameters<'_>) -> Rendered {
        let Some(found) = self.source.detail(project, app) else {
            return no_such_app(frame, project, app);
        };
        let only = Query { project: project.to_owned(), app: app.to_owned(), page: 1, ..Query::default() };
        let only = only.to_text();
        let main = detail::detail(frame, &found, &self.source.web(), query, self.replies);
        shown(frame, &Page { tab: "", title: found.app.title(), json: Some(&only), metrics: &only, main })
    }

    fn configuration(&self, frame: Frame<'_>, parameters: Parameters<'_>) -> Rendered {
        let (explained, refused) = self.source.configuration();
        let only_changed = parameter(parameters.query, "changed").is_some_and(|changed| changed == "1");
        let main = configuration::configuration(frame, &explained, refused.as_ref(), only_changed);
        shown(frame, &Page { tab: "/config", title: "Configuration", json: None, metrics: "", main })
    }

    fn catalogue(&self, frame: Frame<'_>, parameters: Parameters<'_>) -> Rendered {
        let names: Vec<&str> =
            self.groups.iter().flat_map(|group| &group.families).map(|family| family.name).collect();
        let (examples, web) = (self.source.examples(&names), self.source.web());
        let main =
            families::families(frame, &self.groups, &examples, &families::search(parameters.query), &web);
        shown(frame, &Page { tab: "/metrics-catalogue", title: "Catalogue", json: None, metrics: "", main })
    }

    fn status(&self, frame: Frame<'_>, parameters: Parameters<'_>) -> Rendered {
        Rendered::Json(json::text(&self.selected(frame.status, &Query::read(parameters.query))))
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

fn shown(frame: Frame<'_>, page: &Page<'_>) -> Rendered {
    Rendered::Page(layout::page(frame, page).into_string())
}

/// The path of the assets.
fn assets() -> String {
    format!("{FOLDER}{{file}}")
}

fn asset(file: &str) -> Response {
    let Some(asset) = Asset::named(file) else {
        return Response::text(StatusCode::NOT_FOUND, "There is nothing at this path.\n");
    };
    let content = Bytes::from_static(asset.content.as_bytes());
    Response::new(StatusCode::OK, asset.content_type, content).header(header::CACHE_CONTROL, FOR_EVER)
}

/// `now`, rounded down to the step of ages.
fn rounded(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(AGE_STEP)).unwrap_or(now)
}

/// The page for an app that is not configured, with the reason.
fn no_such_app(frame: Frame<'_>, project: &str, app: &str) -> Rendered {
    let Exporter { shard, shards, .. } = frame.status.exporter;
    let owns = |index, count| Shard { index, count }.owns_app(project, app);
    let owner = NonZeroU32::new(shards).and_then(|count| (0..shards).find(|index| owns(*index, count)));
    let main = html! {
        h1 { "No such app" }
        p { "The active configuration has no app " code { (app) } " in project " code { (project) } "." }
        @if let Some(owner) = owner.filter(|owner| *owner != shard) {
            p { "This is shard " (shard) " of " (shards) ". If there is such an app, shard " (owner) " polls it." }
        }
        p { a href=(frame.links.to("/")) { "All apps" } }
    };
    let page = Page { tab: "", title: "No such app", json: None, metrics: "", main };
    Rendered::NoPage(layout::page(frame, &page).into_string())
}
