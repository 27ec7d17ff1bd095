//! Faults on demand. `crate::faults` holds the effect of each on a client.

use pds_simulator::Fault;
use reqwest::Method;

use crate::rig::{FaultExt as _, nested};

use super::{Service, refused};

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
async fn a_reply_is_nested_deeply() {
    let service = Service::start().await;
    service.world.faults().set([nested(200).into()]);
    let reply = service.send(Method::GET, &format!("/apps/{}", service.app)).await;
    assert!(reply.text().await.unwrap().contains(&"[".repeat(200)));
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
    assert_eq!(service.send(Method::GET, "/volumes/alerts").await.status(), 200);
    assert_eq!(service.send(Method::GET, "/domains").await.status(), 503);
    assert_eq!(service.send(Method::GET, "/domains").await.status(), 200);
    assert_eq!(service.world.faults().struck(), [1]);
    for bad in ["", "{", r#"{"kind":"nothing"}"#, r#"{"kind":"reset","call":"nothing"}"#] {
        assert_eq!(refused(put(bad).await).await.0, 400, "{bad}");
    }
    assert_eq!(put("[]").await.status(), 204);
    assert_eq!(service.world.faults().struck(), [0; 0]);
    for (path, code) in [("nothing", 404), ("faults", 405)] {
        let request = service.client.get(format!("{}/simulator/{path}", service.url));
        assert_eq!(refused(request.send().await.unwrap()).await.0, code, "{path}");
    }
}
