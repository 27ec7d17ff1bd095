//! What is wrong with many in one way is told once.

use super::super::{Service, TOKEN};
use super::{PROJECT, Patient, answering};
use crate::client::server::{Seen, status};
use pds_diagnosis::cause;

#[test]
fn the_same_refusal_is_reported_once_with_its_subjects() {
    let patient = Patient::new();
    let service = Service::start(|_| status(401, r#"{"message":"unknown token"}"#));
    let found =
        patient.examined(&format!("base_url = \"{}\"\ntoken = \"{TOKEN}\"\n{PROJECT}", service.url()));
    let (_, text, remedy) = found.only();
    assert!(text.contains("answered 401") && remedy.contains("Create a new token"), "{text}: {remedy}");
    let with_token = |seen: &&Seen| seen.header("authorization").is_some();
    assert_eq!(service.server.seen().iter().filter(with_token).count(), 1);
}

#[test]
fn what_is_wrong_with_many_apps_is_one_finding_that_names_the_first_few() {
    let patient = Patient::new();
    let service = Service::start(|seen| match seen.target.rsplit_once("/p-1-lost-") {
        Some((_, number)) if number.len() == 2 => {
            status(404, format!(r#"{{"message":"no app p-1-lost-{number}"}}"#).leak())
        }
        _ => answering(seen),
    });
    let configured = |app: &str| {
        let apps: Vec<String> =
            (10..50).map(|number| app.replace("ID", &format!("p-1-lost-{number}"))).collect();
        let url = service.url();
        format!(
            "base_url = \"{url}\"\ntoken = \"{TOKEN}\"\n[[projects]]\nid = \"p-1\"\napps = [{}]\n",
            apps.join(", ")
        )
    };
    let found = patient.examined(&configured("'ID'"));
    let (check, text, remedy) = found.only();
    let first = "the service does not know the id: app of p-1-lost-10, app of p-1-lost-11, app of p-1-lost-12, app of \
                 p-1-lost-13, app of p-1-lost-14 and 35 more: answered 404: no app p-1-lost-10";
    assert_eq!((check, text, remedy), ("calls", first, cause::NOT_FOUND.remedy));

    let found = patient.examined(&configured("{ id = 'ID', interval = 'never' }"));
    let (check, text, _) = found.only();
    assert_eq!(check, "configuration");
    assert!(text.starts_with("projects[0].apps[0].interval, projects[0].apps[1"), "{text}");
    assert!(text.contains(".interval and 35 more: "), "{text}");
}
