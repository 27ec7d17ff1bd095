//! A problem that many share is reported once.

use std::time::{Duration, Instant};

use super::super::simulated::Simulated;
use super::super::{Service, TOKEN, pdstool, stderr};
use super::{PROJECT, Patient, answering, polling, polling_apps};
use crate::client::server::{Reply, Seen, ok, status};
use crate::process::assert_has;
use pds_diagnosis::cause;
use pds_simulator::Settings;

#[test]
fn the_same_refusal_is_reported_once_with_its_subjects() {
    let patient = Patient::new();
    let service = Service::start(|_| status(401, r#"{"message":"unknown token"}"#));
    let found = patient.examined(&polling(&service, ""));
    let (_, text, remedy) = found.only();
    assert!(text.starts_with("the service refuses the default token: "), "as the daemon says it: {text}");
    assert!(text.contains("returned 401"), "{text}");
    assert_eq!(remedy, cause::TOKEN_REFUSED.remedy_for("default", None));
    let with_token = |seen: &&Seen| seen.header("authorization").is_some();
    assert_eq!(service.server.seen().iter().filter(with_token).count(), 1);

    std::fs::write(patient.path("bad.tok"), "bad").unwrap();
    let several = ["p-1", "p-2"].map(|id| format!("[[projects]]\nid = \"{id}\"\ntoken_file = \"bad.tok\"\n"));
    let found = patient.examined(&format!("base_url = \"{}\"\n{}", service.url(), several.concat()));
    let refused = found.wrong().into_iter().find(|(check, ..)| *check == "calls").unwrap();
    assert!(refused.1.starts_with("the service refuses the token of p-1: "), "{refused:?}");
    let file = patient.path("bad.tok");
    assert_eq!(refused.2, cause::TOKEN_REFUSED.remedy_at(file.to_str()));
}

#[test]
fn one_cause_of_all_calls_is_one_finding_whatever_their_words() {
    // A daemon that reports the same cause adds none.
    let reason = |cause: &cause::Cause| {
        ok(format!(
            r#"{{"summary":{{"verdict":"problem","apps":{{"all":1,"problem":1}},"ok":0,"reasons":[{{"code":"{}","verdict":"problem","text":"the same","remedy":""}}]}}}}"#,
            cause.code
        ))
    };
    let redirect = |seen: &Seen| status(301, "").with("location", format!("https://x{}", seen.target));
    let cut = |_: &Seen| ok("{\"id\":");
    let other = |seen: &Seen| ok(format!("{{\"at\":\"{}\"}}", seen.target));
    for (reply, cause, part) in [
        (redirect as fn(&Seen) -> Reply, &cause::NOT_THE_SERVICE, "returned 301"),
        (cut as fn(&Seen) -> Reply, &cause::REPLY_UNREADABLE, "cannot be used"),
        (other as fn(&Seen) -> Reply, &cause::REPLY_UNREADABLE, "cannot be used"),
    ] {
        let service = Service::start(reply);
        let patient = Patient { exporter: Service::start(move |_| reason(cause)), ..Patient::new() };
        let found = patient.examined(&polling(&service, ""));
        let (check, text, remedy) = found.only();
        assert_eq!((check, remedy), ("calls", cause.remedy));
        found.says("daemon", "reports the same");
        assert_has(text, &[": projects of p-1, ", " and 1 more: ", part]);
    }
    let found = Patient::new().examined(&format!(
        "base_url = \"https://x\"\nca_file = \"none.pem\"\ntoken = \"{TOKEN}\"\n{PROJECT}"
    ));
    let (check, text, _) = found.only();
    assert!(check == "configuration" && text.contains("none.pem"), "{text}");
    assert!(!found.json.to_string().contains("is valid"), "{:#}", found.json);
}

#[test]
fn an_overload_is_shown_though_the_rate_allows_few_calls() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let apps: String = (0..400).map(|app| format!("'p-1-{app}', ")).collect();
    let began = Instant::now();
    let found = patient.examined(&polling_apps(&service, "max_requests_per_second = 1\n", &apps));
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    found.says("limits", cause::OVERLOADED.says);
    found.says("calls", "10 of 205 calls are made");
}

#[test]
fn a_problem_of_many_apps_is_one_finding_that_names_the_first_few() {
    let patient = Patient::new();
    let service = Service::start(|seen| match seen.target.rsplit_once("/p-1-lost-") {
        Some((_, number)) if number.len() == 2 => {
            status(404, format!(r#"{{"message":"no app p-1-lost-{number}"}}"#))
        }
        _ => answering(seen).after(Duration::from_millis(100)),
    });
    let configured = |app: &str| {
        let apps: Vec<String> =
            (10..50).map(|number| app.replace("ID", &format!("p-1-lost-{number}"))).collect();
        polling_apps(&service, "", &apps.join(", "))
    };
    let found = patient.examined(&configured("'ID'"));
    let (check, text, remedy) = found.only();
    let first = "the service does not know the id: app of p-1-lost-10, app of p-1-lost-11, app of p-1-lost-12, app of \
                 p-1-lost-13, app of p-1-lost-14 and 35 more: returned 404: no app p-1-lost-10";
    assert_eq!((check, text, remedy), ("calls", first, cause::NOT_FOUND.remedy));
    assert!(service.server.most_under_way() > 1, "calls are made side by side");

    let found = patient.examined(&configured("{ id = 'ID', interval = 'never' }"));
    let (check, text, _) = found.only();
    assert_eq!(check, "configuration");
    assert!(text.starts_with("projects[0].apps[0].interval, projects[0].apps[1"), "{text}");
    assert!(text.contains(".interval and 35 more: "), "{text}");
}

#[test]
fn a_token_of_another_project_and_a_proxy_that_is_not_used_are_named() {
    let patient = Patient::new();
    let service = Simulated::with(Settings { projects: 2, ..Settings::default() });
    let [(wanted, _), (other, _)] = &service.world.projects()[..] else { panic!() };
    let token = |project: &str| service.world.token(project).unwrap();
    let text = |of: &str| {
        format!(
            "base_url = \"{}\"\ntoken = \"{}\"\n[[projects]]\nid = \"{wanted}\"\n",
            service.url,
            token(of).expose()
        )
    };
    let said =
        format!("the default token may only read another project: it is for {other}, and set for {wanted}");
    assert_eq!(patient.examined(&text(other)).wrong().iter().filter(|(_, text, _)| *text == said).count(), 1);
    let file = patient.path("pds-exporter.toml");
    let output = pdstool(&["doctor", "--config.file", file.to_str().unwrap()]).output().unwrap();
    assert!(!stderr(&output).contains("WARN"), "{}", stderr(&output));
    let found = patient.examined_with(&text(wanted), &[("HTTPS_PROXY", "http://127.0.0.1:1")]);
    let said = found.wrong().into_iter().map(|(_, text, _)| text).collect::<Vec<_>>();
    let unused = "set but not used: HTTPS_PROXY; only api.proxy_url, which is empty, sets a proxy";
    assert_eq!(said, [cause::NO_APPS.says, unused]);
}

#[test]
fn a_refusal_that_names_the_path_is_one_finding() {
    let patient = Patient::new();
    let service = Service::start(|seen| match seen.target.split('?').next() {
        Some(path) if !path.ends_with("/projects") => {
            status(403, format!(r#"{{"message":"no access to {path}"}}"#))
        }
        _ => answering(seen),
    });
    let found = patient.examined(&polling(&service, ""));
    let (_, text, remedy) = found.only();
    assert!(text.contains("domains of p-1") && text.contains("returned 403: no access to /"), "{text}");
    assert_eq!(remedy, cause::FORBIDDEN.remedy);
}

#[test]
fn a_value_that_violates_the_interface_is_found_as_the_daemon_finds_it() {
    let patient = Patient::new();
    let service = Service::start(|seen| match seen.target.contains("/response-time") {
        true => {
            ok(r#"{"status":"success","data":{"total_requests":1,"distribution":{"fast":"100","1s":100}}}"#)
        }
        false => answering(seen),
    });
    let found = patient.examined(&polling(&service, ""));
    let (check, text, remedy) = found.only();
    assert_eq!(
        (check, text),
        ("calls", "values violate the interface: response_time.distribution (\"fast\") of p-1-a")
    );
    assert_eq!(remedy, cause::UNEXPECTED_VALUES.remedy);
}

#[test]
fn a_reply_that_cannot_be_counted_is_found_with_the_daemons_cause() {
    for (data, says) in [
        (r#"{"total_requests":null,"distribution":{"1s":100}}"#, "the reply has no total"),
        (
            r#"{"total_requests":3,"distribution":{}}"#,
            "the reply counts 3 requests but has no valid distribution",
        ),
    ] {
        let patient = Patient::new();
        let reply = format!(r#"{{"status":"success","data":{data}}}"#);
        let service = Service::start(move |seen| match seen.target.contains("/response-time") {
            true => ok(reply.clone()),
            false => answering(seen),
        });
        let found = patient.examined(&polling(&service, ""));
        let (check, text, remedy) = found.only();
        let cause = &cause::RANGE_DIFFERS;
        assert!(text.starts_with(&format!("{}: response_time of p-1-a: {says}", cause.says)), "{text}");
        assert_eq!((check, remedy), ("calls", cause.remedy));
        let uncounted = polling(&service, "[accounting]\nenabled = false\n");
        assert_eq!(patient.examined(&uncounted).code, Some(0), "no counters are kept");
    }
}
