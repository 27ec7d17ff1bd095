//! An exporter of one counter: `cargo run -p pds-web --example registry -- web.yml`.

use std::sync::Arc;

use http::StatusCode;
use pds_web::{Backend, BoxFuture, Config, Encoding, Negotiated, PageRequest, Response};
use prometheus::{IntCounter, Registry, TextEncoder};

struct Metrics {
    registry: Registry,
    scrapes: IntCounter,
}

impl Backend for Metrics {
    fn metrics(&self, _: Negotiated, _: Encoding, _: PageRequest) -> BoxFuture<'_, Response> {
        self.scrapes.inc();
        let page = TextEncoder::new().encode_to_string(&self.registry.gather());
        Box::pin(async {
            match page {
                Ok(page) => Response::metrics(Negotiated::TEXT, Encoding::Identity, page),
                Err(error) => Response::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            }
        })
    }
}

/// Serves as `config` says until `stop` completes.
pub(crate) async fn serve(
    config: Config,
    stop: impl Future<Output = ()>,
) -> Result<(), Box<dyn std::error::Error>> {
    let (registry, scrapes) = (Registry::new(), IntCounter::new("example_scrapes_total", "Scrapes")?);
    registry.register(Box::new(scrapes.clone()))?;
    config.bind(())?.serve(Arc::new(Metrics { registry, scrapes }), Vec::new(), stop).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen_addresses = vec![":9000".to_owned()];
    let config_file = std::env::args_os().nth(1).map(Into::into);
    let config = Config { name: "example".to_owned(), listen_addresses, config_file, ..Config::default() };
    serve(config, async { drop(tokio::signal::ctrl_c().await) }).await
}
