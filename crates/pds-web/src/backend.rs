//! Interface of the web server to the exporter behind it, and the routes of every exporter.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};

use super::Config;
use super::negotiate::{self, Encoding, Negotiated};
use super::response::Response;
use super::route::{BoxFuture, Kind, PageRequest, Route};

/// The exporter behind the web server.
pub trait Backend: Send + Sync + 'static {
    /// The metrics page ([`Response::metrics`]), or the part of it that the query of `request` selects. The format is
    /// `asked`, or the text format, which every client reads. The coding is `encoding`. The future is dropped if the
    /// client disconnects or its scrape timeout ends. Work that continues after that keeps `request`, which counts
    /// towards `--web.max-requests` until it is dropped.
    fn metrics(&self, asked: Negotiated, encoding: Encoding, request: PageRequest)
    -> BoxFuture<'_, Response>;

    /// Whether the page is complete.
    ///
    /// # Errors
    /// A sentence that names the missing part.
    fn ready(&self) -> Result<(), String> {
        Ok(())
    }

    /// Reloads the configuration.
    ///
    /// # Errors
    /// All problems, as text; the old configuration stays active.
    fn reload(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Err("there is no configuration to load".to_owned()) })
    }

    /// Begins to shut down; returns at once.
    fn quit(&self) {}
}

/// Names the scrape timeout of Prometheus.
const SCRAPE_TIMEOUT: HeaderName = HeaderName::from_static("x-prometheus-scrape-timeout-seconds");

/// How long a page may take if the client sends no timeout: Prometheus' default scrape interval.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// The routes every exporter has.
pub(super) fn routes(backend: &Arc<dyn Backend>, config: &Config) -> Vec<Route> {
    let name: Arc<str> = config.name.as_str().into();
    let probe = |path, answer: fn(&str, &dyn Backend) -> Response| {
        let (backend, name) = (Arc::clone(backend), Arc::clone(&name));
        Route::new(Kind::Probe, path, move |_| std::future::ready(answer(&name, &*backend)))
    };
    let lifecycle = |path, act: fn(Arc<dyn Backend>) -> BoxFuture<'static, Response>| {
        let backend = Arc::clone(backend);
        Route::new(Kind::Lifecycle, path, move |_| act(Arc::clone(&backend)))
    };
    let scraped = Arc::clone(backend);
    vec![
        Route::page(&*config.telemetry_path, move |request| metrics(Arc::clone(&scraped), request)),
        probe("/-/healthy", |name, _| Response::text(StatusCode::OK, format!("{name} is healthy.\n"))),
        probe("/-/ready", ready),
        lifecycle("/-/reload", |backend| Box::pin(reload(backend))),
        lifecycle("/-/quit", |backend| {
            backend.quit();
            Box::pin(async { Response::text(StatusCode::OK, "Shutting down.\n") })
        }),
    ]
}

async fn metrics(backend: Arc<dyn Backend>, request: PageRequest) -> Response {
    let asked = negotiate::format(request.header(header::ACCEPT).as_deref());
    let encoding = negotiate::encoding(request.header(header::ACCEPT_ENCODING).as_deref());
    let timeout = request.header(SCRAPE_TIMEOUT).and_then(|seconds| seconds.parse().ok());
    let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let timeout = timeout.map_or(PAGE_TIMEOUT, |timeout| timeout.min(PAGE_TIMEOUT));
    let page = backend.metrics(asked, encoding, request);
    tokio::time::timeout(timeout, page).await.unwrap_or_else(|_elapsed| {
        let sentence = format!("The page was not rendered within {} s.\n", timeout.as_secs_f64());
        Response::text(StatusCode::SERVICE_UNAVAILABLE, sentence)
    })
}

fn ready(name: &str, backend: &dyn Backend) -> Response {
    match backend.ready() {
        Ok(()) => Response::text(StatusCode::OK, format!("{name} is ready.\n")),
        Err(waiting) => {
            Response::text(StatusCode::SERVICE_UNAVAILABLE, format!("{name} is not ready yet: {waiting}\n"))
                .header(header::RETRY_AFTER, HeaderValue::from_static("1"))
        }
    }
}

async fn reload(backend: Arc<dyn Backend>) -> Response {
    match backend.reload().await {
        Ok(()) => Response::text(StatusCode::OK, "The configuration was reloaded.\n"),
        Err(problems) => Response::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("The configuration was not reloaded; the previous one stays in force: {problems}\n"),
        ),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use crate::Observer;

    /// Counts all events. Cloning shares the counts.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Counted(Arc<Mutex<Counts>>);

    #[derive(Debug, Default)]
    struct Counts {
        active: i32,
        idle: i32,
        config_good: Option<bool>,
    }

    impl Counted {
        /// The numbers of active and idle connections.
        pub(crate) fn connections(&self) -> (i32, i32) {
            let counts = self.0.lock();
            (counts.active, counts.idle)
        }

        pub(crate) fn config_good(&self) -> Option<bool> {
            self.0.lock().config_good
        }
    }

    impl Observer for Counted {
        fn connections(&self, active: i32, idle: i32) {
            let mut counts = self.0.lock();
            counts.active += active;
            counts.idle += idle;
        }

        fn web_config_read(&self, good: bool) {
            self.0.lock().config_good = Some(good);
        }
    }
}
