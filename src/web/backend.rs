//! What the web asks of the daemon behind it, and the routes that follow from it.

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

/// What [`Backend`]'s methods give; write `Box::pin(async move { ... })`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A metrics page.
#[derive(Debug)]
pub struct Page {
    /// What the body is encoded in: what was asked for, or [`Encoding::Identity`]; then it is encoded on the
    /// way out.
    pub encoding: Encoding,
    /// The page.
    pub body: ResponseBody,
}

/// The daemon behind the web.
pub trait Backend: Send + Sync + 'static {
    /// The metrics page in a format, of everything or of what `filter` wants. Dropped unfinished where the
    /// client leaves or its scrape timeout ends.
    fn metrics<'a>(&'a self, format: Format, encoding: Encoding, filter: &'a Filter) -> BoxFuture<'a, Page>;

    /// Whether every target was asked once.
    ///
    /// # Errors
    /// A sentence saying what is still waited for.
    fn ready(&self) -> Result<(), String>;

    /// Loads the configuration again.
    ///
    /// # Errors
    /// The problems found, as text; then the old configuration stays in force.
    fn reload(&self) -> BoxFuture<'_, Result<(), String>>;

    /// Begins to shut down; returns at once.
    fn quit(&self);
}

/// Prometheus says how long it will wait.
const SCRAPE_TIMEOUT: HeaderName = HeaderName::from_static("x-prometheus-scrape-timeout-seconds");

/// How long a page may take where the client does not say: Prometheus' own longest sensible timeout is its
/// default interval of a minute.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// The routes every exporter has.
pub(super) fn routes(daemon: &Arc<dyn Backend>, telemetry_path: &str) -> Vec<Route> {
    let with = |act: fn(Arc<dyn Backend>, PageRequest) -> super::route::HandlerFuture| {
        let daemon = Arc::clone(daemon);
        move |ask| act(Arc::clone(&daemon), ask)
    };
    let probe = |path: &str, handler| Route { probe: true, ..Route::page(path, with(handler)) };
    let act = |path: &str, handler| Route {
        methods: Methods::Act,
        lifecycle: true,
        ..Route::page(path, with(handler))
    };
    vec![
        Route {
            counted: true,
            ..Route::page(telemetry_path, with(|daemon, ask| Box::pin(metrics(daemon, ask))))
        },
        probe("/-/healthy", |_, _| {
            Box::pin(async { Response::text(StatusCode::OK, "pds-exporter is healthy.\n") })
        }),
        probe("/-/ready", |daemon, _| Box::pin(async move { ready(&*daemon) })),
        act("/-/reload", |daemon, _| Box::pin(reload(daemon))),
        act("/-/quit", |daemon, _| {
            Box::pin(async move {
                daemon.quit();
                Response::text(StatusCode::OK, "Shutting down.\n")
            })
        }),
    ]
}

async fn metrics(daemon: Arc<dyn Backend>, ask: PageRequest) -> Response {
    let negotiated = negotiate::format(ask.header(header::ACCEPT).as_deref());
    let encoding = negotiate::encoding(ask.header(header::ACCEPT_ENCODING).as_deref());
    let filter = filter::parse(ask.raw_query());
    let patience = ask.header(SCRAPE_TIMEOUT).and_then(|seconds| seconds.parse().ok());
    let patience = patience
        .and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok())
        .map_or(PAGE_TIMEOUT, |asked| asked.min(PAGE_TIMEOUT));
    let page = daemon.metrics(negotiated.format, encoding, &filter);
    match tokio::time::timeout(patience, page).await {
        Ok(page) => {
            Response::new(StatusCode::OK, negotiated.content_type(), page.body).encoded(page.encoding)
        }
        Err(_elapsed) => Response::text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("The page was not made within {} s.\n", patience.as_secs_f64()),
        ),
    }
}

fn ready(daemon: &dyn Backend) -> Response {
    match daemon.ready() {
        Ok(()) => Response::text(StatusCode::OK, "pds-exporter is ready.\n"),
        Err(waiting) => Response::text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("pds-exporter is not ready yet: {waiting}\n"),
        )
        .header(header::RETRY_AFTER, HeaderValue::from_static("1")),
    }
}

async fn reload(daemon: Arc<dyn Backend>) -> Response {
    match daemon.reload().await {
        Ok(()) => Response::text(StatusCode::OK, "The configuration was reloaded.\n"),
        Err(problems) => Response::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("The configuration was not reloaded, the old one stays in force: {problems}\n"),
        ),
    }
}
