//! The answers of the calls, and their lasting changes. `openapi` holds every reply against the document of the interface.

use reqwest::Method;
use serde_json::json;

use super::{Service, json, refused};

#[tokio::test]
async fn a_service_account_sees_its_own_project() {
    let service = Service::start().await;
    let response = service.request(Method::GET, "/v2/projects").send().await.unwrap();
    let projects = json(response).await;
    assert_eq!(projects, json!([{ "id": *service.project, "name": "Search", "role": "owner" }]));
}

#[tokio::test]
async fn an_api_key_is_created_with_its_defaults_and_each_has_its_own_secret() {
    let service = Service::start().await;
    let one = json(service.send(Method::POST, "/api-keys").await).await;
    let made = json!([one["name"], one["expiresAt"], one["projectId"]]);
    assert_eq!(made, json!(["API Key", "never", *service.project]));
    let other = service.send(Method::POST, "/api-keys?name=ci&description=d&expiresAt=2026-01-02").await;
    let other = json(other).await;
    assert_eq!((&other["name"], &other["expiresAt"]), (&json!("ci"), &json!("2026-01-02T00:00:00Z")));
    assert_ne!(one["apiKey"], other["apiKey"]);
    assert_ne!(one["id"], other["id"]);
    let (foreign, _) = service.world.projects().remove(1);
    let token = service.world.token(&foreign).unwrap();
    let url = format!("{}/v2/projects/{foreign}/api-keys", service.url);
    let elsewhere = service.client.post(url).bearer_auth(token.expose()).send().await.unwrap();
    assert_ne!(one["id"], json(elsewhere).await["id"], "ids are unique across projects");
}

#[tokio::test]
async fn a_domain_is_unassigned_before_it_is_deleted() {
    let service = Service::start().await;
    let domains = service.get("/domains").await;
    let items = domains["domains"].as_array().unwrap();
    let assigned = items.iter().find(|item| !item["appId"].is_null()).unwrap();
    let domain = format!("/domains/{}", assigned["id"].as_str().unwrap());

    let (status, message) = refused(service.send(Method::DELETE, &domain).await).await;
    assert_eq!(status, 409);
    assert!(message.contains("unassign"), "{message}");

    let unassigned = service.send(Method::DELETE, &format!("{domain}/assign")).await;
    assert!(unassigned.status().is_success());
    assert_eq!(unassigned.bytes().await.unwrap().len(), 0);
    assert_eq!(refused(service.send(Method::DELETE, &format!("{domain}/assign")).await).await.0, 409);

    let deleted = service.send(Method::DELETE, &domain).await;
    assert!(deleted.status().is_success());
    assert_eq!(deleted.bytes().await.unwrap().len(), 0);
    assert_eq!(service.get("/domains").await["domains"].as_array().unwrap().len(), items.len() - 1);
    assert_eq!(refused(service.send(Method::DELETE, &domain).await).await.0, 404);
}

#[tokio::test]
async fn validation_succeeds_if_dns_is_right() {
    let mut service = Service::start().await;
    // The second project has a domain whose DNS is wrong, too.
    let (project, apps) = service.world.projects().remove(1);
    service.token = service.world.token(&project).unwrap();
    (service.project, service.app) = (project, apps[0].clone());
    let status_of = async |id: &str| {
        let domains = service.get("/domains").await;
        let mut items = domains["domains"].as_array().unwrap().clone();
        items.retain(|item| item["id"] == id);
        items[0]["validationStatus"].as_str().unwrap().to_owned()
    };
    for item in service.get("/domains").await["domains"].as_array().unwrap() {
        let id = item["id"].as_str().unwrap();
        let result = json(service.send(Method::POST, &format!("/domains/{id}/validate")).await).await;
        let right = item["validationStatus"] != "failed";
        assert_eq!(result["success"], right, "{item}");
        assert!(result["message"].is_string());
        assert_eq!(status_of(id).await, if right { "validated" } else { "failed" });
        // By now the record of the failed one is fixed.
        let again = json(service.send(Method::POST, &format!("/domains/{id}/validate")).await).await;
        assert_eq!((&again["success"], &*status_of(id).await), (&json!(true), "validated"));
    }
}

#[tokio::test]
async fn a_deleted_app_is_gone_and_its_domains_are_free() {
    let service = Service::start().await;
    let app = format!("/apps/{}", service.app);
    let deleted = service.send(Method::DELETE, &app).await;
    assert!(deleted.headers()["content-type"].to_str().unwrap().starts_with("text/plain"));
    assert!(deleted.text().await.unwrap().contains("deleted"));
    for (method, path) in [(Method::GET, ""), (Method::GET, "/metrics/response-time"), (Method::DELETE, "")] {
        let response = service.send(method, &format!("{app}{path}")).await;
        assert_eq!(refused(response).await.0, 404, "{path}");
    }
    assert!(!service.world.projects()[0].1.contains(&service.app));
    let domains = service.get("/domains").await;
    assert!(domains["domains"].as_array().unwrap().iter().all(|item| item["appId"] != *service.app));
}

#[tokio::test]
async fn repositories_have_branches_and_trees() {
    let service = Service::start().await;
    let repo = service.app.strip_prefix(&format!("{}-", service.project)).unwrap();
    let path = format!("/v4/projects/{}/integrations/codehost/repos/acme/{repo}", service.project);
    let get = async |rest: &str| service.request(Method::GET, &format!("{path}{rest}")).send().await.unwrap();
    let branches = json(get("/branches").await).await;
    let main = &branches["branches"][0];
    assert_eq!(json!([main["name"], main["default"], main["protected"]]), json!(["main", true, true]));

    let sha = main["sha"].as_str().unwrap();
    let whole = json(get(&format!("/tree?ref={sha}")).await).await;
    assert_eq!((&whole["totalCount"], &whole["truncated"]), (&json!(10), &json!(false)));
    let model = json(get("/tree?path=src/model").await).await;
    assert_eq!(model["totalCount"], 2);
    assert_eq!(model["tree"][0]["path"], "src/model/load.py");
    for unknown in ["/tree?ref=nothing", "/tree?path=sr"] {
        assert_eq!(refused(get(unknown).await).await.0, 404, "{unknown}");
    }
}
