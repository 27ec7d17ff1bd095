//! Faults as a client meets them.

use std::time::Duration;

use pds_interface::list_domains;
use pds_simulator::{Fault, Kind, RetryAfter};
use reqwest::{Method, Response};
use serde_json::Value;

use super::{Service, json, refused};

/// The reply of one call while `kind` is in force.
async fn with(service: &Service, kind: Kind, path: &str) -> Response {
    service.world.faults().set([kind.into()]);
    service.send(Method::GET, &format!("/apps/{}{path}", service.app)).await
}

const METRICS: &str = "/metrics/response-time";

async fn text(response: Response) -> String {
    response.text().await.unwrap()
}

#[tokio::test]
async fn errors_carry_the_text_of_the_fault() {
    let service = Service::start().await;
    for status in [401, 402, 403, 404, 429, 500, 503] {
        let response = with(&service, Kind::Status { status, retry_after: None }, "").await;
        assert!(!response.headers().contains_key("retry-after"));
        assert_eq!(refused(response).await.0, status);
    }
    for (after, header) in [(RetryAfter::Seconds(7), "7"), (RetryAfter::Text("soon".into()), "soon")] {
        let kind = Kind::Status { status: 429, retry_after: Some(after) };
        assert_eq!(with(&service, kind, "").await.headers()["retry-after"], header);
    }
    let kind = Kind::Status { status: 503, retry_after: Some(RetryAfter::DateIn(60)) };
    let response = with(&service, kind, "").await;
    assert!(response.headers()["retry-after"].to_str().unwrap().starts_with("Thu, 01 Jan 2026 12:01:"));
    let html = with(&service, Kind::Html { status: 502 }, "").await;
    assert_eq!(
        (html.status().as_u16(), html.headers()["content-type"].to_str().unwrap()),
        (502, "text/html")
    );
    let raw = with(&service, Kind::RawError { status: 500, text: "boom".into() }, "").await;
    assert_eq!(text(raw).await, "boom");
}

#[tokio::test]
async fn a_fault_in_place_of_a_call_leaves_everything_as_it_was() {
    let service = Service::start().await;
    service.world.faults().set([Fault::status(500)]);
    let app = format!("/apps/{}", service.app);
    assert_eq!(service.send(Method::DELETE, &app).await.status(), 500);
    service.world.faults().clear();
    assert_eq!(service.send(Method::GET, &app).await.status(), 200);
}

#[tokio::test]
async fn connections_are_reset_and_bodies_cut() {
    let service = Service::start().await;
    service.world.faults().set([Kind::Reset.into()]);
    let path = format!("/v2/projects/{}/domains", service.project);
    let error = service.request(Method::GET, &path).send().await.unwrap_err();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    assert!(cause.to_string().contains("reset by peer"), "{error:?}");

    let response = with(&service, Kind::CutBody, "").await;
    assert_eq!(response.status(), 200);
    assert!(response.bytes().await.unwrap_err().is_decode());
}

#[tokio::test]
async fn bodies_are_slow_endless_huge_or_empty() {
    let service = Service::start().await;
    let mut endless = with(&service, Kind::EndlessBody, "").await;
    let mut read = 0;
    while read < 1 << 20 {
        read += endless.chunk().await.unwrap().unwrap().len();
    }
    drop(endless);
    let huge = with(&service, Kind::HugeBody { bytes: 3 << 20 }, "").await;
    let huge = huge.bytes().await.unwrap();
    assert!(huge.len() > 3 << 20);
    assert_eq!(serde_json::from_slice::<Value>(&huge).unwrap()["id"], *service.app);
    let slow = with(&service, Kind::SlowBody { millis: 1 }, METRICS).await;
    assert_eq!(json(slow).await["status"], "success");
    let empty = with(&service, Kind::EmptyBody, "").await;
    assert_eq!(empty.bytes().await.unwrap().len(), 0);
    let bomb = with(&service, Kind::GzipBomb { bytes: 10 << 20 }, "").await;
    assert_eq!(bomb.headers()["content-encoding"], "gzip");
    assert!(bomb.bytes().await.unwrap().len() < 1 << 20);
}

#[tokio::test]
async fn json_goes_wrong_in_every_way() {
    let service = Service::start().await;
    let malformed = text(with(&service, Kind::MalformedJson, "").await).await;
    assert!(serde_json::from_str::<Value>(&malformed).is_err());
    let types = json(with(&service, Kind::WrongTypes, METRICS).await).await;
    assert!(types["data"]["total_requests"].is_array() && types["data"]["percentiles"].is_string());
    let nulls = json(with(&service, Kind::Nulls, "").await).await;
    assert!(nulls.as_object().unwrap().values().all(Value::is_null));
    let value = Kind::Value { field: "total_requests".into(), json: "1e400".into() };
    assert!(text(with(&service, value, METRICS).await).await.contains(r#""total_requests":1e400"#));
    let deep = text(with(&service, Kind::DeepNesting { depth: 200 }, "").await).await;
    assert!(deep.contains(&"[".repeat(200)));
    let twice = text(with(&service, Kind::DuplicateKeys, METRICS).await).await;
    assert_eq!(twice.matches("\"status\"").count(), 2);
    let status = Kind::EnvelopeStatus { status: "error".into() };
    assert_eq!(json(with(&service, status, METRICS).await).await["status"], "error");
    let many = with(&service, Kind::ManyDatapoints { count: 5001 }, "/metrics/run-execution-time").await;
    assert_eq!(json(many).await["data"]["time_series"].as_array().unwrap().len(), 5001);
}

#[tokio::test]
async fn replies_are_late_redirected_or_dated_wrongly() {
    let service = Service::start().await;
    service.world.faults().set([Kind::Latency { millis: 3_600_000 }.into()]);
    let path = format!("/v2/projects/{}/domains", service.project);
    let request = service.request(Method::GET, &path).timeout(Duration::from_millis(50));
    assert!(request.send().await.unwrap_err().is_timeout());
    let skewed = with(&service, Kind::ClockSkew { seconds: -3600 }, "").await;
    assert!(skewed.headers()["date"].to_str().unwrap().starts_with("Thu, 01 Jan 2026 11:00:"));
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    service.world.faults().set([Kind::Redirect { location: "http://127.0.0.1:1/".into() }.into()]);
    let response = client.get(format!("{}{path}", service.url)).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["location"]),
        (307, &"http://127.0.0.1:1/".parse().unwrap())
    );
}

#[tokio::test]
async fn faults_are_set_and_cleared_over_http() {
    let service = Service::start().await;
    let put = async |body: &str| {
        let request = service.client.put(format!("{}/simulator/faults", service.url)).body(body.to_owned());
        request.send().await.unwrap()
    };
    let fault = r#"[{"kind":{"status":{"status":503}},"call":"domains","count":1}]"#;
    assert_eq!(put(fault).await.status(), 204);
    assert_eq!(service.world.faults().list(), [Fault::status(503).on(list_domains::RESOURCE).times(1)]);
    assert_eq!(service.send(Method::GET, "/volumes/alerts").await.status(), 200);
    assert_eq!(service.send(Method::GET, "/domains").await.status(), 503);
    assert_eq!(service.send(Method::GET, "/domains").await.status(), 200);
    assert_eq!(service.world.faults().struck(), [1]);
    for bad in ["", "{", r#"{"kind":"nothing"}"#, r#"{"kind":"reset","call":"nothing"}"#] {
        assert_eq!(refused(put(bad).await).await.0, 400, "{bad}");
    }
    let faults = format!("{}/simulator/faults", service.url);
    assert_eq!(service.client.delete(&faults).send().await.unwrap().status(), 204);
    assert!(service.world.faults().list().is_empty());
    let unknown = service.client.get(format!("{}/simulator/nothing", service.url)).send().await.unwrap();
    assert_eq!(refused(unknown).await.0, 404);
    assert_eq!(refused(service.client.post(&faults).send().await.unwrap()).await.0, 405);
}
