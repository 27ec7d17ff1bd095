//! The client against real servers on loopback, good ones and bad ones.

mod hostile;
mod load;
mod secrecy;
pub(crate) mod server;
mod storm;
mod tokens;
pub(crate) mod transport;

use std::path::Path;
use std::sync::Arc;

use pds_client::{Client, FetchError, Fetched, Turn};
use pds_config::{Api, TokenSource};
use pds_core::clock::Clock;
use pds_core::secret::Secret;
use pds_interface::{Arguments, DecodeError, Request, get_app};
use pds_telemetry::Telemetry;

use crate::process::value;
use crate::rig::own_page;

use server::Server;

const TOKEN: &str = "s3rvice-acc0unt-t0ken";

/// `[api]` for a service at `base_url`: impatient, without retries, and with the token [`TOKEN`].
fn api(base_url: &str) -> Api {
    let default = pds_config::load_without_file([
        ("PDS_EXPORTER__API__BASE_URL".to_owned(), "http://localhost".to_owned()),
        ("PDS_EXPORTER__API__TOKEN".to_owned(), TOKEN.to_owned()),
    ]);
    Api {
        base_url: base_url.parse().unwrap(),
        max_requests_per_second: None,
        max_response_bytes: 1024 * 1024,
        max_retries: 0,
        ..default.unwrap().api
    }
}

fn project(id: &str, token: Option<TokenSource>) -> (Arc<str>, Option<TokenSource>) {
    (Arc::from(id), token)
}

fn inline(token: &str) -> Option<TokenSource> {
    Some(TokenSource::Inline(Secret::new(token)))
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
    /// A client of the service that is `server`.
    fn of(server: &Server) -> Self {
        Self::with(server, |_| ())
    }

    /// The same with a changed `[api]`.
    fn with(server: &Server, change: impl FnOnce(&mut Api)) -> Self {
        let mut api = api(&format!("http://{}", server.address));
        change(&mut api);
        Self::new(&api, &[("p".into(), None)])
    }

    fn new(api: &Api, projects: &[(Arc<str>, Option<TokenSource>)]) -> Self {
        let telemetry = Telemetry::new(false).unwrap();
        let client = Client::new(api, projects, Arc::new(telemetry.clone()), Clock::system()).unwrap();
        Self { client, telemetry }
    }

    /// Asks for app `app` of project `project`, with the project's service account.
    async fn ask(&self, project: &str, app: &str) -> Result<String, FetchError> {
        let (_, fetched) = self.read(project, app, |_| Ok(())).await?;
        Ok(String::from_utf8(fetched.body.to_vec()).unwrap())
    }

    /// Reads the reply about an app with `read`.
    async fn read<T: Send + 'static>(
        &self,
        project: &str,
        app: &str,
        read: impl FnOnce(&[u8]) -> Result<T, DecodeError> + Send + 'static,
    ) -> Result<(T, Fetched), FetchError> {
        let account = self.client.account(project);
        self.client.read(&Turn::new(&account), get_app::RESOURCE, &request(project, app), read).await
    }

    /// The exporter's own page.
    fn page(&self) -> String {
        own_page(&self.telemetry)
    }

    /// The value of one series of the page, `None` if there is none.
    fn value(&self, series: &str) -> Option<f64> {
        value(&self.page(), series)
    }

    /// How many requests about apps ended as `code`.
    fn ended(&self, code: &str) -> f64 {
        let series = format!("pds_api_requests_total{{code=\"{code}\",resource=\"app\"}}");
        self.value(&series).unwrap_or_default()
    }
}

fn request(project: &str, app: &str) -> Request {
    get_app::CALL.request(&Arguments::about(project, app), &api("http://localhost").query_names).unwrap()
}
