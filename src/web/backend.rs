//! What the web server needs from the daemon behind it, and the routes of every exporter.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};

use super::body::ResponseBody;
use super::filter;
use super::negotiate::{self, Encoding};
use super::response::Response;
use super::route::{Methods, PageRequest, Route};
use crate::catalogue::Format;
use crate::store::Filter;

/// The future of a method of [`Backend`]: `Box::pin(async move { ... })`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A metrics page.
#[derive(Debug)]
pub struct Page {
    /// The coding of the body: the one asked for, or [`Encoding::Identity`], which is compressed on the way out.
    pub encoding: Encoding,
    /// The page.
    pub body: ResponseBody,
}

/// The daemon behind the web server.
pub trait Backend: Send + Sync + 'static {
    /// The metrics page in a format, whole or the part that `filter` names. The future is dropped if the client
    /// leaves or its scrape timeout ends.
    fn metrics<'a>(&'a self, format: Format, encoding: Encoding, filter: &'a Filter) -> BoxFuture<'a, Page>;

    /// Whether every target has been polled once.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    fn ready(&self) -> Result<(), String>;

    /// Reloads the configuration.
    ///
    /// # Errors
    /// All problems, as text; the old configuration stays active.
    fn reload(&self) -> BoxFuture<'_, Result<(), String>>;

    /// Begins to shut down; returns at once.
    fn quit(&self);
}

/// How long Prometheus waits for the answer.
const SCRAPE_TIMEOUT: HeaderName = HeaderName::from_static("x-prometheus-scrape-timeout-seconds");

/// How long a page may take if the client does not say: Prometheus' default interval.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// The routes every exporter has.
pub(super) fn routes(backend: &Arc<dyn Backend>, telemetry_path: &str) -> Vec<Route> {
    let with = |act: fn(Arc<dyn Backend>, PageRequest) -> super::route::HandlerFuture| {
        let backend = Arc::clone(backend);
        move |request| act(Arc::clone(&backend), request)
    };
    let probe = |path: &str, handler| Route { probe: true, ..Route::page(path, with(handler)) };
    let act = |path: &str, handler| Route {
        methods: Methods::Act,
        lifecycle: true,
        ..Route::page(path, with(handler))
    };
    vec![
        Route::page(telemetry_path, with(|backend, request| Box::pin(metrics(backend, request)))),
        probe("/-/healthy", |_, _| {
            Box::pin(async { Response::text(StatusCode::OK, "pds-exporter is healthy.\n") })
        }),
        probe("/-/ready", |backend, _| Box::pin(async move { ready(&*backend) })),
        act("/-/reload", |backend, _| Box::pin(reload(backend))),
        act("/-/quit", |backend, _| {
            Box::pin(async move {
                backend.quit();
                Response::text(StatusCode::OK, "Shutting down.\n")
            })
        }),
    ]
}

async fn metrics(backend: Arc<dyn Backend>, request: PageRequest) -> Response {
    let negotiated = negotiate::format(request.header(header::ACCEPT).as_deref());
    let encoding = negotiate::encoding(request.header(header::ACCEPT_ENCODING).as_deref());
    let filter = filter::parse(request.raw_query());
    let timeout = request.header(SCRAPE_TIMEOUT).and_then(|seconds| seconds.parse().ok());
    let timeout = timeout
        .and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok())
        .map_or(PAGE_TIMEOUT, |asked| asked.min(PAGE_TIMEOUT));
    let page = backend.metrics(negotiated.format, encoding, &filter);
    match tokio::time::timeout(timeout, page).await {
        Ok(page) => {
            Response::new(StatusCode::OK, negotiated.content_type(), page.body).encoded(page.encoding)
        }
        Err(_elapsed) => Response::text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("The page was not made within {} s.\n", timeout.as_secs_f64()),
        ),
    }
}

fn ready(backend: &dyn Backend) -> Response {
    match backend.ready() {
        Ok(()) => Response::text(StatusCode::OK, "pds-exporter is ready.\n"),
        Err(waiting) => Response::text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("pds-exporter is not ready yet: {waiting}\n"),
        )
        .header(header::RETRY_AFTER, HeaderValue::from_static("1")),
    }
}

async fn reload(backend: Arc<dyn Backend>) -> Response {
    match backend.reload().await {
        Ok(()) => Response::text(StatusCode::OK, "The configuration was reloaded.\n"),
        Err(problems) => Response::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("The configuration was not reloaded, the old one stays in force: {problems}\n"),
        ),
    }
}
