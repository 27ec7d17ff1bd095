//! Log and page name the cause of a fault.

mod causes;

use pds_core::clock::Clock;
use pds_interface::response_time;
use pds_simulator::{Fault, Kind, Settings, World};
use tokio::net::TcpListener;
use tokio::time::Duration;

use crate::logging::service;
use crate::process::{Exporter, assert_has, edit, until, until_page, value};
use crate::rig::{self, Configuration, FaultExt as _, html};
use crate::server::free_port;

/// `kind` for the response times of the first app.
fn of_first_app(world: &World, kind: Kind) -> Fault {
    Fault::from(kind).on(response_time::RESOURCE).of_app(&world.projects()[0].1[0])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn log_and_page_quote_the_reply_at_the_error() {
    let (world, _folder, config) = service(2).await;
    let exporter = Exporter::ready(&["--config.file", &config]).await;
    let (project, apps) = world.projects().remove(0);
    let page = format!("/apps/{project}/{}", apps[0]);
    let raw = Kind::RawError { status: 503, text: "upstream fell over".to_owned() };
    let replied = |text: &str| Kind::RawError { status: 200, text: text.to_owned() };
    for (kind, class, told) in [
        (Fault::status(500).kind, "500", "returned 500: an injected fault"),
        (Kind::MalformedJson, "decode", "at line 1 column"),
        (raw, "503", "returned 503: upstream fell over"),
        (replied("{\"data\": {}}"), "decode", "the reply has no status"),
        (replied("{\"status\": 7}"), "error_reply", "returned an error: status '7'"),
        (html(502), "502", "returned 502: a web page (502)"),
    ] {
        let before = exporter.log().lines().count();
        world.faults().set([of_first_app(&world, kind)]);
        let line = format!("class={class} ");
        until(&format!("the log says {told}"), async || {
            exporter.log().lines().skip(before).any(|logged| logged.contains(&line) && logged.contains(told))
        })
        .await;
        // A page that readers share may be as old as a second.
        until(&format!("the page says {told}"), async || {
            exporter.get(&page).await.replace("&lt;", "<").replace("&gt;", ">").contains(told)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cause_that_another_one_follows_is_replaced_by_it_at_once() {
    let world = World::new(Settings { projects: 1, apps: 3, ..Settings::default() }, Clock::system());
    world.faults().set([Fault::status(401)]);
    // Settings are asked for again long before metrics are.
    let tables = "[poll]\ninterval = \"30s\"\nsettings_interval = \"2s\"\n";
    let folder = tempfile::tempdir().unwrap();
    let config = Configuration::new(&world, &rig::serve(&world).await).tables(tables).write(folder.path());
    let exporter = Exporter::start(&["--config.file", &config]);
    until("the token is refused", async || codes(&exporter).await == ["token_refused"]).await;
    world.faults().set([Fault::status(503)]);
    let mut last = Vec::new();
    until("the service returns errors", async || {
        last = codes(&exporter).await;
        last.iter().any(|code| code == "service_error")
    })
    .await;
    assert_eq!(last, ["service_error"]);
    for app in exporter.status().await["apps"].as_array().unwrap() {
        let problems = app["problems"].to_string();
        assert!(problems.contains("the service returns errors") && !problems.contains("token"), "{problems}");
    }
}

/// The codes of the reasons.
async fn codes(exporter: &Exporter) -> Vec<String> {
    let reasons = exporter.reasons().await;
    reasons.iter().map(|reason| reason["code"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_newest_cause_leads_and_no_cause_outlives_the_outage() {
    let settings = Settings { projects: 1, apps: 2, ..Settings::default() };
    let (world, folder) = (World::new(settings, Clock::system()), tempfile::tempdir().unwrap());
    let port = free_port();
    // Settings are polled long after metrics are.
    let tables = "[poll]\ninterval = \"2s\"\n";
    let configuration = Configuration::new(&world, &format!("http://127.0.0.1:{port}")).tables(tables);
    let api = "max_requests_per_second = 0\nmax_retries = 0\ntimeout = \"1s\"\n";
    let config = configuration.api(api).write(folder.path());
    let exporter = Exporter::start(&["--config.file", &config]);
    let leads = async |code: &'static str| {
        until(code, async || codes(&exporter).await.first().is_some_and(|first| first == code)).await;
    };
    leads("connection_refused").await;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    tokio::spawn(pds_simulator::serve(world.clone(), listener));
    // The last request before may have been refused after the first one that succeeded was sent.
    until_page(&exporter, "both apps are polled", |page| {
        let is_up =
            |line: &&str| line.starts_with("pds_up{") && line.ends_with("resource=\"response_time\"} 1");
        page.lines().filter(is_up).count() == 2
    })
    .await;
    // A page that readers share may be as old as a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_ne!(codes(&exporter).await.first().map(String::as_str), Some("connection_refused"));
    let recovers = async || until("all is well", async || codes(&exporter).await.is_empty()).await;
    recovers().await;
    for (kind, code) in [
        (Kind::Latency { millis: 60_000 }, "service_slow"),
        (Fault::status(503).kind, "service_error"),
        (html(200), "gateway_refuses"),
        (Kind::Reset, "reply_cut"),
    ] {
        world.faults().set([kind.into()]);
        leads(code).await;
    }
    world.faults().clear();
    recovers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_field_whose_values_are_nonsense_is_in_the_log_once() {
    let (world, _folder, config) = service(2).await;
    let exporter = Exporter::ready(&["--config.file", &config]).await;
    // A reply without its range is used only after an audit.
    until_page(&exporter, "requests are counted", |page| {
        let counted = page.lines().filter(|line| line.starts_with("pds_app_requests_total{"));
        counted.filter(|line| line.contains(&*world.projects()[0].1[0])).any(|line| !line.ends_with(" 0"))
    })
    .await;
    let text = r#"{"data":{"total_requests":1,"distribution":{"soonish":50}},"status":"success"}"#.to_owned();
    world.faults().set([of_first_app(&world, Kind::RawError { status: 200, text })]);
    let mut field = String::new();
    until_page(&exporter, "it is counted again and again", |page| {
        let Some(line) = page.lines().find(|line| line.starts_with("pds_api_unexpected_values_total{"))
        else {
            return false;
        };
        field = line.split("field=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() >= 4.0
    })
    .await;
    let violates = "a value violates the interface";
    until("it is logged", async || exporter.log().contains(violates)).await;
    let log = exporter.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(violates)).collect();
    let [line] = &*lines else { panic!("{log}") };
    assert_has(line, &[&format!("field={field} "), "resource=response_time", "label=soonish"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_outage_that_is_too_long_is_one_warning_and_then_a_counter() {
    let (world, _folder, config) = service(2).await;
    let accounting = "[accounting]\nmax_catch_up = \"2s\"\nrecheck_after = []\n";
    edit(&config, |text| text.replace("[accounting]\n", accounting));
    let exporter = Exporter::ready(&["--config.file", &config]).await;
    let before = exporter.log().lines().count();
    world.faults().set([of_first_app(&world, Fault::status(500).kind)]);
    let (project, apps) = world.projects().remove(0);
    let unaccounted = format!(
        "pds_app_unaccounted_seconds_total{{project=\"{project}\",app=\"{}\",resource=\"response_time\"}}",
        apps[0]
    );
    until_page(&exporter, "seconds are given up", |page| value(page, &unaccounted) >= Some(4.0)).await;
    // Others give up time, too, if this machine stands still.
    let parts = ["gave up time", "resource=response_time", &format!(" app={} ", apps[0])];
    let is_warning = |line: &&str| parts.iter().all(|part| line.contains(part));
    let warnings = || exporter.log().lines().skip(before).filter(is_warning).count();
    until("it is logged", async || warnings() > 0).await;
    assert_eq!(warnings(), 1, "{}", exporter.log());
}
