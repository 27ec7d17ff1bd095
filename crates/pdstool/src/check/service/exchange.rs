//! HTTP version, compression, and the service's clock.

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};

use pds_client::MAX_TOKEN_BYTES;
use pds_core::clock::differ;
use pds_core::error_chain::with_sources;
use pds_core::{plain_file, units};
use pds_exporter::config::{Api, TokenSource};
use pds_interface::{Arguments, get_app};

use super::Findings;
use super::asking::Asking;

/// The service's clock against ours, by the Date headers so far.
pub fn clock(asking: &Asking, findings: &mut Findings) {
    const CHECK: &str = "clock";
    let mut skews = asking.skews.clone();
    skews.sort_by(f64::total_cmp);
    let Some(skew) = skews.get(skews.len() / 2).copied() else {
        let text = "replies have no Date header: counting relies on this machine's clock alone";
        findings.report.note(CHECK, text);
        return;
    };
    let behind = if skew < 0.0 { "behind" } else { "ahead of" };
    let text =
        format!("the service's clock is {} {behind} this machine's", units::seconds(skew.abs().round()));
    // Dates have whole seconds.
    if skew.abs() <= 1.5 {
        findings.report.ok(CHECK, "replies have a Date header; the clocks agree within 1.5 s");
    } else if differ(skew) {
        findings.report.warning(CHECK, text, pds_exporter::cause::CLOCKS_DIFFER.remedy);
    } else {
        findings.report.ok(CHECK, text);
    }
}

/// Sends one request of its own, to see the HTTP version and whether replies can be compressed.
pub async fn check(asking: &mut Asking, findings: &mut Findings) {
    const CHECK: &str = "http";
    let Some((version, encoding)) = ask(asking).await else {
        findings.report.note(CHECK, "the app call failed: cannot be determined");
        return;
    };
    let text = match version {
        http::Version::HTTP_2 => "HTTP/2: all requests share one connection",
        _ if asking.service.config.api.base_url.scheme() == "https" => {
            "HTTP/1.1: one connection per request in flight"
        }
        _ => "HTTP/1.1: HTTP/2 needs https",
    };
    findings.report.ok(CHECK, text);
    let text = match encoding {
        Some(encoding) => {
            format!("replies are compressed ({encoding}) on request; the exporter does not request it")
        }
        None => "replies are not compressed".to_owned(),
    };
    findings.report.ok(CHECK, text);
}

async fn ask(asking: &mut Asking) -> Option<(http::Version, Option<String>)> {
    let config = &asking.service.config;
    let arguments = Arguments::about(&asking.project, &asking.app);
    let request = get_app::CALL.request(&arguments, &asking.names).ok()?;
    let own = config.projects.iter().find(|project| *project.id == *asking.project);
    let token = match own.and_then(|project| project.token.as_ref()).or(config.api.token.as_ref())? {
        TokenSource::Inline(secret) => secret.clone(),
        TokenSource::File(path) => {
            pds_core::secret::Secret::new(plain_file::read_text(path, MAX_TOKEN_BYTES).ok()?.trim())
        }
    };
    let mut url = config.api.base_url.clone();
    url.set_path(&format!("{}{}", url.path().trim_end_matches('/'), request.path));
    let client = client(&config.api)?;
    asking.sent += 1;
    let reply = client.get(url).bearer_auth(token.expose()).header(ACCEPT_ENCODING, "gzip").send().await;
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            tracing::debug!("{}", with_sources(&error));
            return None;
        }
    };
    let encoding = reply.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let encoding = encoding.filter(|encoding| *encoding != "identity").map(str::to_owned);
    Some((reply.version(), encoding))
}

/// A client for one request, by the same way as the exporter's.
fn client(api: &Api) -> Option<reqwest::Client> {
    api.reached().client().ok()?.timeout(api.timeout).build().ok()
}
