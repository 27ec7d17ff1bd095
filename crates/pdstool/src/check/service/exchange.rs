//! The service's HTTP version, and compression.

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};

use pds_client::{MAX_TOKEN_BYTES, request_url};
use pds_config::TokenSource;
use pds_core::plain_file;
use pds_core::secret::Secret;
use pds_interface::{Arguments, get_app};

use super::asking::Asking;
use crate::report::Finding;

/// Sends a separate request, to determine the HTTP version and whether replies can be compressed.
pub async fn http(asking: &mut Asking) -> Vec<Finding> {
    let Some((version, encoding)) = ask(asking).await else {
        return vec![Finding::note("the app call failed: cannot be determined")];
    };
    let version = match version {
        http::Version::HTTP_2 => "HTTP/2: all requests share one connection",
        _ if asking.service.config.api.base_url.scheme() == "https" => {
            "HTTP/1.1: one connection per request in flight"
        }
        _ => "HTTP/1.1: HTTP/2 needs https",
    };
    let compression = match encoding {
        Some(encoding) => {
            format!("replies are compressed ({encoding}) on request; the exporter does not request it")
        }
        None => "replies are not compressed".to_owned(),
    };
    vec![Finding::ok(version), Finding::ok(compression)]
}

async fn ask(asking: &mut Asking) -> Option<(http::Version, Option<String>)> {
    let config = &asking.service.config;
    let (project, app) = &asking.app;
    let request = get_app::CALL.request(&Arguments::about(project, app), &asking.names).ok()?;
    let own = config.projects.iter().find(|known| *known.id == **project);
    let token = match own.and_then(|project| project.token.as_ref()).or(config.api.token.as_ref())? {
        TokenSource::Inline(secret) => secret.clone(),
        TokenSource::File(path) => Secret::new(plain_file::read_text(path, MAX_TOKEN_BYTES).ok()?.trim()),
    };
    // By the same path as the exporter's requests.
    let client = config.api.reached().client().ok()?.timeout(config.api.timeout).build().ok()?;
    asking.sent += 1;
    let request = client
        .get(request_url(&config.api.base_url, &request))
        .bearer_auth(token.expose())
        .header(ACCEPT_ENCODING, "gzip");
    let reply = request.send().await.ok()?;
    let encoding = reply.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let encoding = encoding.filter(|encoding| *encoding != "identity").map(str::to_owned);
    Some((reply.version(), encoding))
}
