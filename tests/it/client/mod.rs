//! The client against real servers on loopback, good ones and bad ones.

mod hostile;
mod load;
mod secrecy;
pub(crate) mod server;
mod storm;
mod tokens;
pub(crate) mod transport;

use std::error::Error;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pds_client::{Client, FetchError, Turn};
use pds_config::{Api, TokenSource};
use pds_core::clock::Clock;
use pds_core::secret::Secret;
use pds_exposition::Format;
use pds_interface::{Arguments, QueryNames, Request, get_app};
use pds_telemetry::Telemetry;

const TOKEN: &str = "s3rvice-acc0unt-t0ken";

/// `[api]` for a service at `base_url`: impatient, without retries, and with the token [`TOKEN`].
fn api(base_url: &str) -> Api {
    Api {
        base_url: base_url.parse().unwrap(),
        token: Some(TokenSource::Inline(Secret::new(TOKEN))),
        timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(3),
        max_concurrent_requests: NonZeroU32::new(32).unwrap(),
        max_requests_per_second: None,
        max_response_bytes: 1024 * 1024,
        max_retries: 0,
        ca_file: None,
        proxy_url: None,
        proxy_variables: Vec::new(),
        domain_status_field: None,
        query_names: QueryNames::default(),
    }
}

fn project(id: &str, token: Option<TokenSource>) -> (Arc<str>, Option<TokenSource>) {
    (Arc::from(id), token)
}

fn file(path: &Path) -> Option<TokenSource> {
    Some(TokenSource::File(path.to_owned()))
}

/// A client with what it counts in.
struct Asking {
    client: Client,
    telemetry: Telemetry,
}

impl Asking {
    fn new(api: &Api, projects: &[(Arc<str>, Option<TokenSource>)]) -> Self {
        let telemetry = Telemetry::new(false).unwrap();
        let client = Client::new(api, projects, Arc::new(telemetry.clone()), Clock::system()).unwrap();
        Self { client, telemetry }
    }

    /// Asks for app `app` of project `project`, with the project's service account.
    async fn ask(&self, project: &str, app: &str) -> Result<String, FetchError> {
        let account = self.client.account(project);
        let request = request(project, app);
        let (_, fetched) =
            self.client.read(&Turn::new(&account), get_app::RESOURCE, &request, |_| Ok(())).await?;
        Ok(String::from_utf8(fetched.body.to_vec()).unwrap())
    }

    /// The exporter's own page.
    fn page(&self) -> String {
        let mut page = Vec::new();
        self.telemetry.write(&mut page, Format::Text, |_| true);
        String::from_utf8(page).unwrap()
    }

    /// The value of one series of the page, `None` if there is none.
    fn value(&self, series: &str) -> Option<f64> {
        let page = self.page();
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        line.parse().ok()
    }

    /// How many requests about apps ended as `code`.
    fn ended(&self, code: &str) -> f64 {
        let series = format!("pds_api_requests_total{{code=\"{code}\",resource=\"app\"}}");
        self.value(&series).unwrap_or_default()
    }
}

fn request(project: &str, app: &str) -> Request {
    get_app::CALL.request(&Arguments::about(project, app), &QueryNames::default()).unwrap()
}

/// An error's text and those of its causes, as a log line has them.
fn chain(error: &FetchError) -> String {
    let causes = std::iter::successors(Some(error as &dyn Error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
