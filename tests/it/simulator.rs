//! The simulator over real HTTP: all calls, what they change, their rules; exact truth; faults.

mod calls;
mod exactness;
mod faults;
mod rules;

use std::sync::Arc;

use jiff::Timestamp;
use pds_core::clock::Clock;
use pds_core::secret::Secret;
use pds_simulator::{Settings, World, serve};
use reqwest::{Client, Method, Response};
use serde_json::Value;
use tokio::net::TcpListener;

/// 2026-01-01T12:00:00Z, the present of these tests.
pub(crate) const NOON: i64 = 1_767_268_800;

/// A simulator on a port of its own, and a client with a token of its first project.
pub(crate) struct Service {
    pub(crate) world: World,
    pub(crate) clock: Clock,
    pub(crate) url: String,
    pub(crate) client: Client,
    pub(crate) project: Arc<str>,
    pub(crate) app: Arc<str>,
    pub(crate) token: Secret,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::of(Settings::default()).await
    }

    pub(crate) async fn of(settings: Settings) -> Self {
        let clock = Clock::standing_at(Timestamp::from_second(NOON).unwrap());
        let world = World::new(settings, clock.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(world.clone(), listener));
        let (project, apps) = world.projects().remove(0);
        let token = world.token(&project).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { client: Client::new(), project, app: apps[0].clone(), token, world, clock, url }
    }

    /// Sends a request with the token; `path` is below the project, as in `/apps/x`.
    pub(crate) async fn send(&self, method: Method, path: &str) -> Response {
        self.request(method, &format!("/v2/projects/{}{path}", self.project)).send().await.unwrap()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(self.token.expose())
    }

    /// The JSON of a successful GET below the project.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let response = self.send(Method::GET, path).await;
        assert_eq!(response.status(), 200, "{path}");
        json(response).await
    }

    /// The JSON of a successful GET below the first app.
    pub(crate) async fn get_of_app(&self, path: &str) -> Value {
        self.get(&format!("/apps/{}{path}", self.app)).await
    }
}

/// The body as JSON.
pub(crate) async fn json(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// The status, and the message of an error as section 7 has it.
pub(crate) async fn refused(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body = json(response).await;
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    (status, body["message"].as_str().unwrap().to_owned())
}
