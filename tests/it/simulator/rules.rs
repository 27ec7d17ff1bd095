//! Permissions, and the statuses of refused requests.

use jiff::{SignedDuration, Timestamp};
use pds_interface::CALLS;
use reqwest::Method;

use super::{NOON, Service, refused};
use crate::tool::simulated::claims;

#[tokio::test]
async fn only_a_good_token_for_the_same_project_gets_in() {
    let service = Service::start().await;
    let other = service.world.projects()[1].0.clone();
    let get = async |path: &str, token: Option<&str>| {
        let request = service.client.get(format!("{}{path}", service.url));
        let request = match token {
            Some(token) => request.header("authorization", token),
            None => request,
        };
        refused(request.send().await.unwrap()).await.0
    };
    let own = format!("/v2/projects/{}/domains", service.project);
    let bearer = format!("Bearer {}", service.token.expose());
    assert_eq!(get(&own, None).await, 401);
    assert_eq!(get(&own, Some(service.token.expose())).await, 401);
    assert_eq!(get(&own, Some("Bearer eyJhbGciOiJub25lIn0.e30.")).await, 401);
    assert_eq!(get(&format!("/v2/projects/{other}/domains"), Some(&bearer)).await, 403);
    assert_eq!(get("/v2/projects/p-nothing0/domains", Some(&bearer)).await, 404);
    assert_eq!(get("/v2/nothing", Some(&bearer)).await, 404);
}

#[tokio::test]
async fn a_token_expires_by_the_simulators_clock_and_states_its_expiry() {
    let mut service = Service::start().await;
    let at = Timestamp::from_second(NOON + 60).unwrap();
    service.token = service.world.token_until(&service.project, Some(at)).unwrap();
    assert_eq!(claims(service.token.expose())["exp"], NOON + 60);
    assert_eq!(service.send(Method::GET, "/domains").await.status(), 200);
    service.clock.jump(SignedDuration::from_secs(60));
    let (status, message) = refused(service.send(Method::GET, "/domains").await).await;
    assert_eq!((status, message.as_str()), (401, "the token has expired"));
}

#[tokio::test]
async fn a_revoked_token_is_no_longer_good() {
    let service = Service::start().await;
    assert_eq!(service.send(Method::GET, "/domains").await.status(), 200);
    service.world.revoke(&service.token);
    assert_eq!(refused(service.send(Method::GET, "/domains").await).await.0, 401);
}

#[tokio::test]
async fn the_limits_of_the_interface_are_kept() {
    let service = Service::start().await;
    let (name, description) = ("x".repeat(51), "x".repeat(256));
    for query in [
        format!("name={name}"),
        format!("description={description}"),
        "expiresAt=2026-01-01".to_owned(),
        "expiresAt=2025-12-31".to_owned(),
        "expiresAt=tomorrow".to_owned(),
        "expiresAt=20270101".to_owned(),
        "name=a&name=b".to_owned(),
    ] {
        let response = service.send(Method::POST, &format!("/api-keys?{query}")).await;
        assert_eq!(refused(response).await.0, 400, "{query}");
    }
    for body in ["", "{}", "[]", r#"{"planCode":"free"}"#, r#"{"planCode":null}"#, "{"] {
        let path = format!("/v2/projects/{}/subscription", service.project);
        let request = service.request(Method::PATCH, &path).header("content-type", "application/json");
        assert_eq!(refused(request.body(body).send().await.unwrap()).await.0, 400, "{body}");
    }
    for call in ["response-time", "run-execution-time"] {
        for query in [
            "start=2026-01-01T00:00:01Z&end=2026-01-01T00:00:00Z",
            "start=1767225600",
            "start=2026-01-01T00:00Z",
            "start=2026-01-01%2000:00:00Z",
            "end=",
            "resolution=best",
            "resolution=",
        ] {
            let path = format!("/apps/{}/metrics/{call}?{query}", service.app);
            assert_eq!(refused(service.send(Method::GET, &path).await).await.0, 400, "{query}");
        }
        let path = format!("/apps/{}/metrics/{call}?resolution=standard", service.app);
        assert_eq!(service.send(Method::GET, &path).await.status(), 200);
    }
}

#[tokio::test]
async fn a_body_is_taken_as_json_only() {
    let service = Service::start().await;
    let path = format!("/v2/projects/{}/subscription", service.project);
    for (content_type, status) in [
        (None, 415),
        (Some("text/plain"), 415),
        (Some("application/jsonp"), 415),
        (Some("Application/JSON; charset=utf-8"), 200),
    ] {
        let mut request = service.request(Method::PATCH, &path).body(r#"{"planCode":"hobby"}"#);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{content_type:?}");
    }
}

#[tokio::test]
async fn every_other_method_is_refused_with_those_that_are_allowed() {
    let service = Service::start().await;
    for call in CALLS {
        let path = call.path.0.replace("{project_id}", &service.project).replace(['{', '}'], "");
        let response = service.request(Method::PUT, &path).send().await.unwrap();
        let allowed = response.headers()["allow"].to_str().unwrap().to_owned();
        assert!(allowed.contains(call.method.as_str()), "{allowed} at {path}");
        assert_eq!(refused(response).await.0, 405);
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let service = Service::start().await;
    let path = format!("/v2/projects/{}/subscription", service.project);
    let body = vec![b' '; 2 * 1024 * 1024];
    let response = service.request(Method::PATCH, &path).body(body).send().await.unwrap();
    assert_eq!(refused(response).await.0, 413);
}
