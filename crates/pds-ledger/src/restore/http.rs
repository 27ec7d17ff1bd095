//! One instant query over HTTP: bounded in time and size, with credentials and headers that appear in no text.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use jiff::Timestamp;
use url::form_urlencoded::Serializer;

use crate::config::{Login, Prometheus};
use pds_core::error_chain::shortened;
use pds_core::memory::Share;
use pds_core::plain_file;
use pds_core::secret::Secret;
use pds_http::{BuildError, read_body};

use super::error::Error;
use super::reply::{self, Bad, Sample};

/// Timeout of a query, reply included. Prometheus itself gives up after two minutes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a connection. Prometheus usually is nearby.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of one reply. A query with a larger reply is divided.
const MAX_REPLY: usize = 8 << 20;
/// The most bytes that are read of an error page.
const MAX_ERROR: usize = 64 << 10;
/// No token or password is larger.
const MAX_LOGIN: u64 = 64 << 10;

/// Parameters beside query and time. Thanos is asked not to deduplicate, which would mix scrapes. Thanos, Mimir and
/// VictoriaMetrics are asked to fail rather than answer in part, and VictoriaMetrics for the newest samples. Others
/// ignore parameters they do not know.
const PARAMETERS: &[(&str, &str)] =
    &[("dedup", "false"), ("partial_response", "false"), ("deny_partial_response", "1"), ("nocache", "1")];

/// The HTTP connection to a Prometheus.
#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    /// URL of the query, as shown and as sent.
    url: String,
    login: Option<Login>,
    headers: Vec<(http::HeaderName, Secret)>,
    /// For replies until they are decoded.
    memory: Share,
}

impl Http {
    pub(super) fn new(config: &Prometheus, memory: Share) -> Result<Self, BuildError> {
        let reached = pds_http::Config {
            ca_key: "state.prometheus_ca_file",
            ca_file: config.ca_file.as_deref(),
            proxy_url: None,
            no_proxy: None,
            connect_timeout: CONNECT_TIMEOUT,
        };
        let client = reached.client()?.build()?;
        let url = format!("{}/api/v1/query", config.url.as_str().trim_end_matches('/'));
        let (login, headers) = (config.login.clone(), config.headers.clone());
        Ok(Self { client, url, login, headers, memory })
    }

    /// Passes on the series of `query` at `time`, or at the present time of that Prometheus, and returns their number.
    /// What was passed on before an error is to be dropped.
    pub(super) async fn query(
        &self,
        query: &str,
        time: Option<Timestamp>,
        mut each: impl FnMut(Sample) + Send,
    ) -> Result<usize, Error> {
        let (headers, secrets) = self.headers()?;
        let request = self.client.post(&self.url).headers(headers).body(form(query, time));
        match tokio::time::timeout(TIMEOUT, self.exchange(request, &secrets, &mut each)).await {
            Ok(answered) => answered,
            Err(_) => Err(Error::Timeout { url: self.url.clone(), limit: TIMEOUT }),
        }
    }

    /// Sends the request and reads the reply.
    async fn exchange(
        &self,
        request: reqwest::RequestBuilder,
        secrets: &[Secret],
        each: &mut (dyn FnMut(Sample) + Send),
    ) -> Result<usize, Error> {
        let url = &*self.url;
        let shown = |text: &str| secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text));
        let unreachable =
            |error: reqwest::Error| Error::Unreachable { url: url.to_owned(), source: error.without_url() };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status != http::StatusCode::OK {
            // The status is known whether or not its body arrives.
            let (body, _) = read_body(response, MAX_ERROR).await.unwrap_or_default();
            let message = match reply::read(&body, &mut |_| ()) {
                Err(Bad::Failed(said)) => said,
                _ => shortened(&String::from_utf8_lossy(&body)),
            };
            return Err(Error::Status {
                url: url.to_owned(),
                status: status.as_u16(),
                message: shown(&message),
            });
        }
        // While this one is evaluated, others are read.
        let _room = self.memory.acquire(MAX_REPLY as u64).await;
        let (body, complete) = read_body(response, MAX_REPLY).await.map_err(unreachable)?;
        if !complete {
            return Err(Error::TooLarge { url: url.to_owned(), limit: MAX_REPLY });
        }
        let url = url.to_owned();
        reply::read(&body, each).map_err(|bad| match bad {
            Bad::TooMany => Error::TooMany { url, limit: reply::MAX_SAMPLES },
            Bad::NotPrometheus(problem) => Error::NotPrometheus { url, problem: shown(&problem) },
            Bad::Failed(said) => Error::Failed { url, message: shown(&said) },
            Bad::Incomplete(said) => Error::Incomplete { url, warning: shown(&said) },
        })
    }

    /// An unusable answer, for this reason.
    pub(super) fn no_answer(&self, problem: &str) -> Error {
        Error::NotPrometheus { url: self.url.clone(), problem: problem.to_owned() }
    }

    /// The headers of a query, and the secrets in them.
    fn headers(&self) -> Result<(HeaderMap, Vec<Secret>), Error> {
        let mut headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("application/json")),
            (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        ]);
        let mut secrets = Vec::new();
        for (name, value) in &self.headers {
            headers.append(name, sensitive(value.expose(), || format!("the value of header {name}"))?);
            secrets.push(value.clone());
        }
        let login = match &self.login {
            None => return Ok((headers, secrets)),
            Some(Login::Token(path)) => {
                let token = read("prometheus_token_file", path)?;
                let header = format!("Bearer {}", token.expose());
                secrets.push(token);
                header
            }
            Some(Login::Basic { username, password_file }) => {
                let password = read("prometheus_password_file", password_file)?;
                let encoded = STANDARD.encode(format!("{username}:{}", password.expose()));
                secrets.extend([password, Secret::new(&encoded)]);
                format!("Basic {encoded}")
            }
        };
        headers.insert(AUTHORIZATION, sensitive(&login, || "the token".to_owned())?);
        Ok((headers, secrets))
    }
}

/// The query as a form.
fn form(query: &str, time: Option<Timestamp>) -> String {
    let mut form = Serializer::new(String::new());
    form.append_pair("query", query).extend_pairs(PARAMETERS);
    if let Some(time) = time {
        let millis = time.as_millisecond();
        form.append_pair("time", &format!("{}.{:03}", millis.div_euclid(1000), millis.rem_euclid(1000)));
    }
    form.finish()
}

fn sensitive(value: &str, what: impl FnOnce() -> String) -> Result<HeaderValue, Error> {
    let mut header = HeaderValue::from_str(value).map_err(|_| Error::Unsendable(what()))?;
    header.set_sensitive(true);
    Ok(header)
}

/// Reads the file on the current thread: it is small, local, and rarely read.
fn read(key: &'static str, path: &Path) -> Result<Secret, Error> {
    let failed = |source| Error::Login { key, path: path.to_owned(), source };
    let file = plain_file::read(path, MAX_LOGIN).map_err(failed)?;
    let text = String::from_utf8(file.bytes).map_err(|_| failed(std::io::Error::other("not UTF-8")))?;
    match text.trim() {
        "" => Err(failed(std::io::Error::other("it is empty"))),
        text => Ok(Secret::new(text)),
    }
}
