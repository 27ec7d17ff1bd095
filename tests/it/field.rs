//! Cases from the field: each event, and the expected result on the page.

use std::time::Duration;

use pds_exporter::poll::{Context, Plan};
use pds_exporter::store::Filter;
use pds_interface::{get_app, list_projects, response_time, run_execution_time};
use pds_simulator::{Fault, Kind, Settings, World};
use pds_telemetry::Telemetry;

use crate::poller::{Polling, rig_of};
use crate::process::{Exporter, get, until};
use crate::rig::{self, Configuration, FaultExt as _};

/// A service with one app that does this, polled for so many seconds: series that are on the page, and that are not.
struct Case {
    world: &'static str,
    tables: &'static str,
    faults: Vec<Fault>,
    seconds: u64,
    holds: &'static [&'static str],
    lacks: &'static [&'static str],
}

fn case(world: &'static str, faults: Vec<Fault>) -> Case {
    Case { world, tables: "", faults, seconds: 200, holds: &[], lacks: &[] }
}

fn body(text: &str) -> Fault {
    Fault::from(Kind::RawError { status: 200, text: text.to_owned() }).on(get_app::RESOURCE)
}

/// The service does not know the app.
fn unknown_app() -> Vec<Fault> {
    [get_app::RESOURCE, response_time::RESOURCE, run_execution_time::RESOURCE]
        .map(|resource| Fault::status(404).on(resource))
        .into()
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            holds: &[
                "pds_app_response_time_seconds{A,window=\"5m\",percentile=\"p50\"}",
                "pds_app_response_time_seconds{A,window=\"5m\",percentile=\"p99\"}",
                "pds_app_window_requests{A,window=\"5m\"}",
                "pds_app_request_duration_seconds_bucket{A,le=\"+Inf\"}",
                "pds_api_unexpected_values_total{field=\"percentiles\",resource=\"response_time\"}",
            ],
            lacks: &["pds_app_response_time_seconds{A,window=\"5m\",percentile=\"p95\"}"],
            ..case(
                "sends a percentile that is NaN",
                vec![Fault::value("p95", "NaN").on(response_time::RESOURCE)],
            )
        },
        Case {
            holds: &["pds_app_cpu_cores{A} 2", "pds_app_memory_bytes{A} 4000000000"],
            lacks: &["pds_up{A,resource=\"app\"} 0"],
            ..case(
                "begins a reply with a byte-order mark",
                vec![body(
                    "\u{feff}{\"name\":\"caf\u{e9}\",\"status\":\"ready\",\"cpu\":\"2\",\"memory\":\"4\"}",
                )],
            )
        },
        Case {
            holds: &["pds_up{A,resource=\"app\"} 0", "pds_app_window_requests{A,window=\"5m\"}"],
            lacks: &["pds_app_cpu_cores{A}"],
            ..case(
                "answers 200 with a login page",
                vec![body("<!doctype html><title>Sign in</title><form><input name=user></form>\n")],
            )
        },
        Case {
            holds: &["pds_up{A,resource=\"app\"} 0", "pds_app_window_requests{A,window=\"5m\"}"],
            lacks: &["pds_app_info{A", "pds_app_cpu_cores{A}"],
            ..case(
                "sends the settings of another app",
                vec![Fault::value("id", "\"p-other-app\"").on(get_app::RESOURCE)],
            )
        },
        Case {
            holds: &["pds_app_cpu_cores{A}", "pds_app_updated_timestamp_seconds{A}"],
            lacks: &["pds_app_created_timestamp_seconds{A}"],
            ..case(
                "says that an app was made in the year 1",
                vec![Fault::value("createdAt", "\"0001-01-01T00:00:00Z\"").on(get_app::RESOURCE)],
            )
        },
        Case {
            tables: "[poll]\nwindows = [\"1m\"]\ninterval = \"90s\"\n",
            holds: &["pds_app_run_execution_time_seconds{A,percentile=\"p50\"}"],
            ..case("has datapoints as wide as the window", Vec::new())
        },
        Case {
            seconds: 100,
            lacks: &["pds_app_requests_total{A}", "pds_app_accounting_behind_seconds{A", "pds_app_gone"],
            holds: &["pds_up{A,resource=\"app\"} 0"],
            ..case("does not know the app", unknown_app())
        },
        Case {
            seconds: 700,
            lacks: &["pds_app_requests_total{A}", "pds_app_accounting_behind_seconds{A"],
            holds: &["pds_app_gone_timestamp_seconds{A,reason=\"not_found\"} 1772366400"],
            ..case("does not know the app for longer than stale_after", unknown_app())
        },
        Case {
            seconds: 700,
            lacks: &["pds_app_gone"],
            holds: &["pds_up{A,resource=\"app\"} 0"],
            ..case("does not know any of its own paths", vec![Fault::status(404)])
        },
    ]
}

async fn rig_for(tables: &str) -> (World, Context, Plan) {
    rig_of(Settings { projects: 1, apps: 1, ..Settings::default() }, tables).await
}

/// The page with `A` for the labels of the app.
fn page(world: &World, context: &Context) -> String {
    let (project, apps) = world.projects().remove(0);
    rig::whole_page(context).replace(&format!("project=\"{project}\",app=\"{}\"", apps[0]), "A")
}

#[tokio::test(start_paused = true)]
async fn each_case_of_the_field_leaves_a_true_page() {
    let mut wrong = Vec::new();
    for Case { world: does, tables, faults, seconds, holds, lacks } in cases() {
        let (world, context, plan) = rig_for(tables).await;
        world.faults().set(faults);
        let _polling = Polling::start(context.clone(), plan);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        // However polls and datapoints fall into the time.
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(7)).await;
            let page = page(&world, &context);
            let has = |wanted: &&&str| page.lines().any(|line| line.starts_with(**wanted));
            let missing = holds.iter().filter(|wanted| !has(wanted)).map(|wanted| format!("no {wanted}"));
            let extra = lacks.iter().filter(has).map(|unwanted| (*unwanted).to_owned());
            wrong.extend(missing.chain(extra).map(|wrong| format!("{does}: {wrong}")));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// Polls every target once.
async fn poll_all(context: &Context, plan: &Plan) {
    rig::poll(context, plan, |_| true).await;
}

#[tokio::test(start_paused = true)]
async fn an_app_that_is_gone_has_its_time_for_a_day() {
    const GONE: &str = "pds_app_gone_timestamp_seconds";
    let (world, context, plan) = rig_for("").await;
    let gone = || page(&world, &context).lines().find(|line| line.starts_with(GONE)).map(str::to_owned);
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    for _ in 0..4 {
        poll_all(&context, &plan).await;
        pass(60).await;
    }
    assert!(page(&world, &context).contains("\npds_app_requests_total{A}"));
    let since = context.clock.unix_seconds();
    world.faults().set(unknown_app());
    poll_all(&context, &plan).await;
    pass(300).await;
    poll_all(&context, &plan).await;
    assert_eq!(gone(), None, "not for longer than poll.stale_after yet");
    pass(60).await;
    poll_all(&context, &plan).await;
    assert_eq!(gone(), Some(format!("{GONE}{{A,reason=\"not_found\"}} {since}")));
    let left: Vec<String> =
        page(&world, &context).lines().filter(|line| line.contains("{A")).map(str::to_owned).collect();
    let is_kept = |line: &String| ["pds_up{", "pds_last_", GONE].iter().any(|kept| line.starts_with(kept));
    assert!(left.iter().all(is_kept), "{left:?}");
    world.faults().set([Fault::status(400)]);
    poll_all(&context, &plan).await;
    assert!(!page(&world, &context).contains("_requests_total{A"), "another failure brings nothing back");
    assert!(gone().is_some());
    world.faults().clear();
    poll_all(&context, &plan).await;
    assert_eq!(gone(), None, "it is back");
    assert!(page(&world, &context).contains("\npds_app_requests_total{A}"), "and is counted on");

    let without =
        |apps| Configuration::new(&world, plan.config.api.base_url.as_ref()).first_apps(apps).load();
    let removed = rig::plan(without(0), &context, Some(&plan));
    let since = context.clock.unix_seconds();
    assert_eq!(gone(), Some(format!("{GONE}{{A,reason=\"removed\"}} {since}")));
    pass(86_399).await;
    assert!(gone().is_some());
    pass(1).await;
    assert_eq!(gone(), None, "a day is over");
    let back = rig::plan(without(1), &context, Some(&removed));
    let again = rig::plan(without(0), &context, Some(&back));
    assert!(gone().is_some());
    drop(rig::plan(without(1), &context, Some(&again)));
    assert_eq!(gone(), None, "it is configured again");
}

#[tokio::test(start_paused = true)]
async fn an_app_that_a_restart_removes_is_gone_since_it_was_counted_last() {
    let (world, before, plan) = rig_for("").await;
    for _ in 0..4 {
        poll_all(&before, &plan).await;
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    let until = page(&world, &before);
    let until =
        until.lines().find(|line| line.starts_with("pds_app_accounted_until_timestamp_seconds{A")).unwrap();
    let empty = Configuration::new(&world, plan.config.api.base_url.as_ref()).first_apps(0);
    // Read from the state file.
    let context = rig::context(before.ledgers.clone(), Telemetry::new(false).unwrap(), &before.clock);
    drop(rig::plan(empty.load(), &context, None));
    let (_, until) = until.split_once(' ').unwrap();
    let gone = format!("pds_app_gone_timestamp_seconds{{A,reason=\"removed\"}} {until}");
    assert!(page(&world, &context).contains(&gone), "{gone} is not in {}", page(&world, &context));
    tokio::time::advance(Duration::from_secs(86_400)).await;
    assert!(!page(&world, &context).contains("pds_app_gone"), "a day is over");
}

#[tokio::test(start_paused = true)]
async fn a_404_of_an_app_proves_nothing_until_the_list_of_projects_is_answered_again() {
    let (world, context, plan) = rig_for("").await;
    let fails_with = |status: Option<u16>| world.faults().set(status.map(Fault::status));
    for (status, is_gone) in [(Some(404), false), (Some(500), false), (None, true)] {
        fails_with(status);
        rig::poll(&context, &plan, |target| target.key.resource == list_projects::RESOURCE).await;
        fails_with(Some(404));
        for _ in 0..2 {
            rig::poll(&context, &plan, |target| target.key.resource != list_projects::RESOURCE).await;
            tokio::time::advance(Duration::from_secs(600)).await;
        }
        assert_eq!(page(&world, &context).contains("pds_app_gone"), is_gone, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_selection_is_down_once_the_last_poll_of_each_of_its_targets_failed() {
    let (world, context, plan) = rig_for("").await;
    let down = |query: &str| context.store.is_down(&Filter::parse(Some(query)));
    let (project, apps) = world.projects().remove(0);
    let (of_app, of_project) = (format!("app={}&fail=1", apps[0]), format!("project={project}&fail=1"));
    assert!(!down(&of_app), "nothing was polled yet");
    assert!(down("app=no-such-app&fail=1"), "there is nothing to poll");
    world.faults().set([Fault::status(500).of_app(&apps[0])]);
    poll_all(&context, &plan).await;
    assert!(down(&of_app) && !down(&of_project) && !down("fail=1"));
    world.faults().set([Fault::status(500)]);
    poll_all(&context, &plan).await;
    assert!(down(&of_project) && down("fail=1"));
    world.faults().clear();
    poll_all(&context, &plan).await;
    assert!(!down(&of_app) && !down("fail=1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_selection_that_is_down_is_503_with_fail_1() {
    let (world, _folder, config) = crate::logging::service(1).await;
    world.faults().set([Fault::status(500)]);
    let exporter = Exporter::ready(&["--config.file", &config]).await;
    let status =
        async |query: &str| get(&format!("{}/metrics{query}", exporter.url)).await.unwrap().status().as_u16();
    for (query, answer) in [("?fail=1", 503), ("", 200), ("?fail=0", 200), ("?app=nowhere&fail=1", 503)] {
        assert_eq!(status(query).await, answer, "{query}");
    }
    world.faults().clear();
    until("the service answers again", async || status("?fail=1").await == 200).await;
}

/// The OpenTelemetry Collector's Prometheus receiver drops a histogram without `_count`, and one whose buckets fall or
/// exceed it (`toDistributionPoint`).
#[tokio::test(start_paused = true)]
async fn a_collector_takes_each_histogram_of_the_text() {
    let (_world, context, plan) = rig_for("").await;
    let _polling = Polling::start(context.clone(), plan);
    tokio::time::sleep(Duration::from_secs(200)).await;
    let page = rig::whole_page(&context);
    let (mut taken, mut greatest) = (0, 0.0);
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    for (name, value) in lines.filter_map(|line| line.rsplit_once(' ')) {
        let value: f64 = value.parse().unwrap();
        let Some((family, labels)) = name.split_once("_bucket{") else { continue };
        assert!(greatest <= value, "{name} falls");
        greatest = value;
        if let Some(own) = labels.strip_suffix("le=\"+Inf\"}") {
            let count = format!("{family}_count{{{}}}", own.trim_end_matches(',')).replace("{}", "");
            assert!(page.contains(&format!("\n{count} {value}\n")), "{name} has no count");
            (taken, greatest) = (taken + 1, 0.0);
        }
    }
    assert!(taken > 5, "{taken} histograms");
    let open_metrics = rig::page(&context, pds_exposition::Format::OpenMetrics);
    assert!(!open_metrics.contains("_count{"), "OpenMetrics refuses a count without a sum");
}
