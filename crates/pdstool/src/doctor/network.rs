//! The network path to the service: one request without a token, which fails for the same causes as the exporter's.

use std::error::Error;

use jiff::Timestamp;
use reqwest::tls::TlsInfo;
use reqwest::{Response, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use url::Url;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::report::Finding;
use pds_client::{Class, FetchError, Reason, ReplyStage::BeforeHead, broken, request_url};
use pds_config::Api;
use pds_core::error_chain::with_sources;
use pds_core::redact::Redactor;
use pds_core::secret::Secret;
use pds_core::units;
use pds_diagnosis::Cause;
use pds_http::host_and_port;
use pds_interface::{Arguments, list_projects};

/// A certificate that expires within this time causes a warning.
const CERTIFICATE_SOON: f64 = 14.0 * 86_400.0;

/// Sends a request to the service. Also returns whether requests can reach it.
pub async fn check(api: &Api) -> (Vec<Finding>, bool) {
    let began = Instant::now();
    let found = match request(api).await {
        Ok(Ok(response)) => {
            let (how, warning) = describe(&response);
            let ok = Finding::ok(format!("{} answers over {:?}{how}", api.base_url, response.version()));
            let ok = Finding { seconds: Some(began.elapsed().as_secs_f64()), ..ok };
            return ([ok].into_iter().chain(warning).collect(), true);
        }
        Ok(Err(error)) => {
            let mut found = failed(&error, api);
            if error.class() == Class::ProxyRefuses
                && let Ok(Some(status)) = timeout(api.timeout, tunnel_status(api)).await
            {
                found.text.push_str(&format!(": {status}"));
            }
            found
        }
        Err(error) => Finding::problem(with_sources(&*error), "Correct the key that it names."),
    };
    (vec![found], false)
}

/// The cause of a request without a reply, in the daemon's words.
pub fn failed(error: &FetchError, api: &Api) -> Finding {
    let cause = Cause::of_class(error.class().as_str());
    let text = format!("{}{}: {}", cause.says_of(&[]), cause.place(api), with_sources(error));
    Finding::of(cause, text, cause.remedy_at(None))
}

/// The status of the proxy's reply to CONNECT, which the library's error lacks.
async fn tunnel_status(api: &Api) -> Option<StatusCode> {
    let (proxy, service) = (api.reached().proxy()?, host_and_port(&api.base_url)?);
    let mut plain = api.base_url.clone();
    plain.set_scheme("http").ok()?;
    let login = api.reached().proxy_login(&plain);
    let login = login.and_then(|login| Some(format!("Proxy-Authorization: {}\r\n", login.to_str().ok()?)));
    let head = format!("CONNECT {service} HTTP/1.1\r\nHost: {service}\r\n{}\r\n", login.unwrap_or_default());
    let mut connection = TcpStream::connect(proxy).await.ok()?;
    connection.write_all(head.as_bytes()).await.ok()?;
    let mut reply = [0; "HTTP/1.1 502".len()];
    connection.read_exact(&mut reply).await.ok()?;
    StatusCode::from_bytes(reply.strip_prefix(b"HTTP/1.")?.get(2..)?).ok()
}

async fn request(api: &Api) -> Result<Result<Response, FetchError>, Box<dyn Error>> {
    let client = api.reached().client()?.timeout(api.timeout).tls_info(true).build()?;
    let request = list_projects::CALL.request(&Arguments::default(), &api.query_names)?;
    let url = request_url(&api.base_url, &request);
    let proxy = api.reached().proxy();
    let password = api.proxy_url.as_ref().and_then(Url::password).map(Secret::new);
    let redactor = Redactor::of(&password);
    let failed = |error: reqwest::Error| {
        let reason = match error.is_timeout() && !error.is_connect() {
            true => Reason::Timeout(api.timeout),
            false => broken(error.without_url(), BeforeHead, proxy.as_deref(), &api.base_url, &redactor),
        };
        FetchError { request: format!("GET {url}"), reason }
    };
    Ok(client.get(&url).send().await.map_err(failed))
}

/// The remaining validity of the certificate, and a warning if it is short.
fn describe(response: &Response) -> (String, Option<Finding>) {
    let certificate = response.extensions().get::<TlsInfo>().and_then(TlsInfo::peer_certificate);
    let certificate = certificate.and_then(|certificate| Certificate::from_der(certificate).ok());
    let expiry = certificate.and_then(|certificate| {
        let expiry = certificate.tbs_certificate().validity().not_after.to_unix_duration();
        Timestamp::UNIX_EPOCH.checked_add(expiry).ok()
    });
    let Some(expiry) = expiry else { return (String::new(), None) };
    let left = expiry.duration_since(Timestamp::now()).as_secs_f64();
    let warning = (left < CERTIFICATE_SOON).then(|| {
        let text = format!("the service's certificate expires in {}", units::seconds(left.max(0.0)));
        Finding::warning(text, "Renew it.")
    });
    (format!(", with a certificate until {}", units::time(expiry)), warning)
}
