//! An instant query over HTTP: bounded in time and size, with credentials and headers that appear in no text.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;
use url::form_urlencoded::Serializer;

use pds_core::memory::Share;
use pds_core::plain_file;
use pds_core::printable::excerpt;
use pds_core::redact::Redactor;
use pds_core::secret::Secret;
use pds_http::{BuildError, read_body};

use super::reply::{self, Bad, Series};

/// Timeout of a query, reply included. Prometheus itself gives up after two minutes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a connection. Prometheus usually is nearby.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of one reply. A query with a larger reply is divided.
const MAX_REPLY: usize = 8 << 20;
/// The most bytes read of an error page.
const MAX_ERROR: usize = 64 << 10;
/// No token or password is larger.
const MAX_LOGIN: u64 = 64 << 10;
/// A shorter value of a header, such as the number of a tenant, is redacted in replies only: the texts of libraries
/// contain it by chance.
const MIN_VALUE: usize = 8;

/// Parameters beside the query. Thanos must not deduplicate, which hides the samples of one replica. Thanos, Mimir
/// and VictoriaMetrics must fail rather than answer in part; VictoriaMetrics must include the newest samples. Others
/// ignore parameters they do not know.
const PARAMETERS: &[(&str, &str)] =
    &[("dedup", "false"), ("partial_response", "false"), ("deny_partial_response", "1"), ("nocache", "1")];

/// A server with the Prometheus HTTP API that scrapes this exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prometheus {
    /// http or https. `/api/v1` is appended to its path.
    pub url: Url,
    /// The credentials, if any.
    pub login: Option<Login>,
    /// Additional trust anchors (PEM).
    pub ca_file: Option<PathBuf>,
    /// Sent with every query.
    pub headers: Vec<(http::HeaderName, Secret)>,
    /// Label matchers for every query, without braces; may be empty.
    pub selector: String,
    /// How far back to look for cursors.
    pub lookback: Duration,
}

/// Credentials for a [`Prometheus`]. Files are read again whenever they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// The file holds a bearer token.
    Token(PathBuf),
    /// Basic authentication.
    Basic {
        /// The user.
        username: String,
        /// The file holds the password.
        password_file: PathBuf,
    },
}

/// Why Prometheus returned no usable reply; most texts begin with the queried URL. No counter is opened or shown then,
/// and Prometheus is queried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file with credentials, which this key names, cannot be read.
    #[error("state.{0}: cannot read {path}", path = .1.display())]
    Login(&'static str, PathBuf, #[source] std::io::Error),
    /// A header cannot be sent.
    #[error("{0} contains characters that are not allowed in HTTP headers")]
    Unsendable(String),
    /// The connection failed or was interrupted.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(String, String),
    /// No complete reply within the time limit.
    #[error("{0} did not answer within {limit}", limit = humantime::format_duration(TIMEOUT))]
    Timeout(String),
    /// A reply with a status other than 200, and its message.
    #[error("{0} returned {1}: {2}")]
    Status(String, u16, String),
    /// The reply is larger than allowed.
    #[error("{0} returned more than {limit} MiB", limit = MAX_REPLY >> 20)]
    TooLarge(String),
    /// The reply does not follow the Prometheus HTTP API, for this reason.
    #[error("the reply of {0} is not from the Prometheus HTTP API: {1}")]
    NotPrometheus(String, String),
    /// The query failed, for the reason that the reply states.
    #[error("{0} failed: {1}")]
    Failed(String, String),
    /// The reply may be incomplete, for the reason that it states.
    #[error("the reply of {0} may be incomplete: {1}")]
    Incomplete(String, String),
    /// The ledgers could not be written to the state file.
    #[error("the cursors from Prometheus cannot be written to the state file")]
    NotKept(#[from] crate::NotCommitted),
}

impl Error {
    /// Whether smaller queries may succeed. Engines refuse queries beyond their limits with 422.
    pub(super) fn is_of_size(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::Status(_, 422, _))
    }
}

/// The HTTP connection to a Prometheus.
#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    pub(super) config: Prometheus,
    /// URL of the query, as shown and as sent.
    url: String,
    /// Memory for replies until they are decoded.
    memory: Share,
}

impl Http {
    pub(super) fn new(config: &Prometheus, memory: Share) -> Result<Self, BuildError> {
        let reached = pds_http::Config {
            ca_key: "state.prometheus_ca_file",
            ca_file: config.ca_file.as_deref(),
            proxy_url: None,
            connect_timeout: CONNECT_TIMEOUT,
        };
        let client = reached.client()?.build()?;
        let url = format!("{}/api/v1/query", config.url.as_str().trim_end_matches('/'));
        Ok(Self { client, config: config.clone(), url, memory })
    }

    /// Passes on the series of `query` at the present time of that Prometheus. On an error, drop the series passed on
    /// before.
    pub(super) async fn query(&self, query: &str, mut each: impl FnMut(Series) + Send) -> Result<(), Error> {
        let form =
            Serializer::new(String::new()).append_pair("query", query).extend_pairs(PARAMETERS).finish();
        let answered = tokio::time::timeout(TIMEOUT, self.exchange(form, &mut each));
        answered.await.unwrap_or_else(|_| Err(Error::Timeout(self.url.clone())))
    }

    /// Sends the request and reads the reply.
    async fn exchange(&self, form: String, each: &mut (dyn FnMut(Series) + Send)) -> Result<(), Error> {
        let (headers, login) = self.headers()?;
        let url = self.url.clone();
        let values = self.config.headers.iter().map(|(_, value)| value);
        let redactor = Redactor::of(login.iter().chain(values.clone()));
        let of_libraries =
            Redactor::of(login.iter().chain(values.filter(|value| value.expose().len() >= MIN_VALUE)));
        let unreachable = |error: reqwest::Error| {
            Error::Unreachable(self.url.clone(), of_libraries.error(&error.without_url()))
        };
        let response = self.client.post(&self.url).headers(headers).body(form).send();
        let response = response.await.map_err(unreachable)?;
        let status = response.status();
        if status != http::StatusCode::OK {
            // The status is known even if the body does not arrive.
            let (body, _) = read_body(response, MAX_ERROR).await.unwrap_or_default();
            let body = redactor.reply(body);
            let message = match reply::read(&body, &mut |_| ()) {
                Err(Bad::Failed(said)) => said,
                _ => excerpt(&String::from_utf8_lossy(&body)),
            };
            return Err(Error::Status(url, status.as_u16(), redactor.text(message)));
        }
        // While this query is evaluated, other replies are read.
        let _room = self.memory.acquire(MAX_REPLY as u64).await;
        let (body, complete) = read_body(response, MAX_REPLY).await.map_err(unreachable)?;
        if !complete {
            return Err(Error::TooLarge(url));
        }
        reply::read(&body, each).map_err(|bad| {
            // Redacts secrets before the error shortens the text.
            let bad = reply::read(&redactor.reply(body), &mut |_| ()).err().unwrap_or(bad);
            match bad {
                Bad::NotPrometheus(problem) => {
                    Error::NotPrometheus(url, excerpt(&of_libraries.text(problem)))
                }
                Bad::Failed(said) => Error::Failed(url, redactor.text(said)),
                Bad::Incomplete(said) => Error::Incomplete(url, redactor.text(said)),
            }
        })
    }

    /// The headers of a query, and the secrets of the login among them.
    fn headers(&self) -> Result<(HeaderMap, Vec<Secret>), Error> {
        let mut headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("application/json")),
            (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        ]);
        let mut secrets = Vec::new();
        for (name, value) in &self.config.headers {
            headers.append(name, sensitive(value.expose(), || format!("the value of header {name}"))?);
        }
        let login = match &self.config.login {
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

fn sensitive(value: &str, what: impl FnOnce() -> String) -> Result<HeaderValue, Error> {
    let mut header = HeaderValue::from_str(value).map_err(|_| Error::Unsendable(what()))?;
    header.set_sensitive(true);
    Ok(header)
}

/// Reads the file on the current thread: it is small, local, and rarely read.
fn read(key: &'static str, path: &Path) -> Result<Secret, Error> {
    let failed = |source| Error::Login(key, path.to_owned(), source);
    match plain_file::read_text(path, MAX_LOGIN).map_err(failed)?.trim() {
        "" => Err(failed(std::io::Error::other("it is empty"))),
        text => Ok(Secret::new(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_divided_where_its_answer_was_too_large_for_one_of_the_two() {
        let url = || "http://localhost".to_owned();
        let status = |status| Error::Status(url(), status, String::new());
        assert!([Error::TooLarge(url()), status(422)].iter().all(Error::is_of_size));
        let others = [status(400), status(503), Error::Timeout(url()), Error::Failed(url(), String::new())];
        assert!(!others.iter().any(Error::is_of_size));
    }
}
