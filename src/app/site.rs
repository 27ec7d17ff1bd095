//! The status pages as routes of the web server.

use std::sync::Arc;

use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};

use crate::web::pages::Site;
use crate::web::{Ask, Response, Route};

/// What the pages answer to; `{name}` stands for any one segment.
const PATHS: &[&str] = &[
    "/",
    "/apps/{project}/{app}",
    "/config",
    "/metrics-catalogue",
    "/api/v1/status",
    "/api/v1/status/schema",
    "/static/{file}",
];

/// The routes of `site`. `prefix` is what the server takes off the paths it is asked for.
#[must_use]
pub fn routes(site: Site, prefix: &str) -> Vec<Route> {
    let (site, prefix): (Arc<Site>, Arc<str>) = (Arc::new(site), prefix.trim_end_matches('/').into());
    let route = |path: &&str| {
        let (site, prefix) = (Arc::clone(&site), Arc::clone(&prefix));
        Route::page(*path, move |ask| respond(Arc::clone(&site), Arc::clone(&prefix), ask))
    };
    PATHS.iter().map(route).collect()
}

async fn respond(site: Arc<Site>, prefix: Arc<str>, ask: Ask) -> Response {
    // Reading thousands of cells and drawing plots takes milliseconds, which belong to the polls and scrapes.
    let made = tokio::task::spawn_blocking(move || {
        let path = ask.path().strip_prefix(&*prefix).unwrap_or(ask.path());
        let known = ask.header(header::IF_NONE_MATCH);
        site.respond(path, ask.raw_query().unwrap_or_default(), known.as_deref())
    });
    let Ok(reply) = made.await else {
        return Response::text(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be made.\n");
    };
    let Some(reply) = reply else { return Response::text(StatusCode::NOT_FOUND, "There is no such page.\n") };
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::new(status, reply.content_type, reply.body);
    if let Ok(tag) = HeaderValue::try_from(&reply.etag) {
        response = response.header(header::ETAG, tag);
    }
    for (name, value) in reply.headers {
        response = response.header(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}
