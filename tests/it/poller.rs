//! The loop that polls: a bug in one poll is contained, and the polls are spread over their interval.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use pds_core::clock::Clock;
use pds_diagnosis::{About, ServiceState};
use pds_exporter::poll::plan::Target;
use pds_exporter::poll::{Context, Plan, Poller};
use pds_exporter::status::Source;
use pds_interface::polled::{MetricSource, Polled, Row, Terms};
use pds_interface::reader::Unexpected;
use pds_interface::{Cadence, DecodeError, Scope, get_app, list_domains, response_time};
use pds_ledger::{LedgerStore, Unobserved, restore::Restorer};
use pds_simulator::{Fault, Kind, Settings, World};
use pds_telemetry::Telemetry;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::rig::{self, Configuration, FaultExt as _};

mod reloads;

const UNCOUNTED: &str = "[accounting]\nenabled = false\n";

/// An app's settings, read by code with a bug.
struct Buggy;

impl MetricSource for Buggy {
    const ROWS: &'static [Row<Self>] = &[];

    fn read(_: &[u8], _: &Terms, _: &mut Unexpected) -> Result<Self, DecodeError> {
        panic!("a bug")
    }
}

static BUGGY: Polled = Polled::of::<Buggy>("app", Scope::App, Cadence::Settings, "");

/// A service with four apps, and the plan that polls them without counting.
async fn rig() -> (World, Context, Plan) {
    rig_of(Settings { projects: 1, apps: 4, ..Settings::default() }, UNCOUNTED).await
}

/// A service with these settings, and the plan that polls it with these tables of the configuration.
pub(crate) async fn rig_of(settings: Settings, tables: &str) -> (World, Context, Plan) {
    rig_over(LedgerStore::open(None, Arc::new(Unobserved), Duration::ZERO).await.unwrap().0, settings, tables)
        .await
}

/// The same with these ledgers.
async fn rig_over(ledgers: LedgerStore, settings: Settings, tables: &str) -> (World, Context, Plan) {
    let clock = Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap());
    let world = World::new(settings, clock.clone());
    let config = Configuration::new(&world, &rig::serve(&world).await).tables(tables).load();
    let context = rig::context(ledgers, Telemetry::new(false).unwrap(), &clock);
    let plan = rig::plan(config, &context, None);
    (world, context, plan)
}

/// A poller that runs until this is dropped.
pub(crate) struct Polling {
    task: JoinHandle<()>,
    plans: mpsc::Sender<Arc<Plan>>,
}

impl Polling {
    pub(crate) fn start(context: Context, plan: impl Into<Arc<Plan>>) -> Self {
        let (plans, coming) = mpsc::channel(1);
        let restorer = Restorer::new(context.ledgers.clone(), Arc::new(context.telemetry.clone()));
        let poller = Poller::new(context, plan.into(), restorer);
        Self { task: tokio::spawn(poller.run(coming, std::future::pending())), plans }
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_panics_is_counted_and_tried_again_and_keeps_no_other_from_being_polled() {
    let (world, context, mut plan) = rig().await;
    let broken = plan.targets.iter().position(|target| target.key.resource == get_app::RESOURCE).unwrap();
    let sound = Arc::into_inner(plan.targets.remove(broken)).unwrap();
    plan.targets.push(Arc::new(Target { endpoint: &BUGGY, ..sound }));
    let telemetry = context.telemetry.clone();
    pds_exporter::app::logging::report_panics(telemetry.clone());
    let store = context.clone();
    let polling = Polling::start(context, plan);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let page = rig::page(&store, pds_exposition::Format::Text);
    let up = crate::process::series(&page).filter(|(name, _)| name.starts_with("pds_up{"));
    let (apps, others): (Vec<_>, Vec<_>) = up.partition(|(name, _)| name.contains("resource=\"app\""));
    let well = |of: &[(&str, f64)]| of.iter().filter(|(_, up)| *up == 1.0).count();
    assert_eq!((well(&apps), apps.len()), (3, 4));
    assert_eq!(well(&others), others.len());
    let panics = crate::process::value(&rig::own_page(&telemetry), "pds_exporter_panics_total").unwrap();
    // Settings are polled every five minutes, and more often at first if they fail.
    assert!((13.0..=17.0).contains(&panics), "{panics} panics in an hour");
    let asked = world.requests().by_call["get_app"];
    assert!((46..=56).contains(&asked), "the four apps were asked {asked} times");
    assert!(!polling.task.is_finished());
}

#[tokio::test(start_paused = true)]
async fn the_requests_of_an_app_are_of_one_moment_and_apps_are_spread_over_the_interval() {
    let (world, context, plan) = rig().await;
    let _polling = Polling::start(context, plan);
    // The first round asks everything at once.
    tokio::time::sleep(Duration::from_secs(300)).await;
    let before = world.requests().entries.len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let journal = world.requests();
    let mut asked: HashMap<_, Vec<i64>> = HashMap::new();
    for entry in journal.entries.iter().skip(before).filter(|entry| entry.range.is_some()) {
        asked.entry(entry.app.clone()).or_default().push(entry.at.as_millisecond());
    }
    assert_eq!(asked.len(), 4);
    let mut times = Vec::new();
    for (app, mut calls) in asked {
        calls.sort_unstable();
        assert_eq!(calls.len(), 2, "two calls a minute about {app:?}");
        assert!(calls[1] - calls[0] < 500, "what is asked about {app:?} is not of one moment: {calls:?}");
        times.push(calls[0]);
    }
    times.sort_unstable();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] > 500), "apps are asked at once: {times:?}");
    assert!(times[3] - times[0] > 15_000, "apps crowd together: {times:?}");
}

#[tokio::test(start_paused = true)]
async fn an_app_that_is_gone_is_polled_less_often_until_it_is_back() {
    let (world, context, plan) = rig().await;
    let _polling = Polling::start(context, plan);
    let app = world.projects()[0].1[0].clone();
    // Response times are asked for every minute, settings and what is gone every five.
    let asked_in_half_an_hour = async || {
        let asked = || {
            let journal = world.requests();
            journal.of("response_time").filter(|entry| entry.app.as_ref() == Some(&app)).count()
        };
        let before = asked();
        tokio::time::sleep(Duration::from_secs(1800)).await;
        asked() - before
    };
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(asked_in_half_an_hour().await, 30);
    world.faults().set([Fault::status(404).on(response_time::RESOURCE).of_app(&app)]);
    // Up to two minutes until the second 404, and one and a half of the slow intervals until the next poll.
    tokio::time::sleep(Duration::from_secs(120 + 450)).await;
    assert_eq!(asked_in_half_an_hour().await, 6);
    world.faults().clear();
    // Up to a slow interval until it is found again, and one and a half of the usual ones until the next poll.
    tokio::time::sleep(Duration::from_secs(300 + 90)).await;
    assert_eq!(asked_in_half_an_hour().await, 30, "it came back by itself");
}

#[tokio::test(start_paused = true)]
async fn a_failed_poll_is_repeated_soon_and_an_outage_less_and_less_often() {
    let tables = format!("[poll]\ninterval = \"1h\"\nsettings_interval = \"1h\"\n{UNCOUNTED}");
    let lasting = Fault::status(500).on(list_domains::RESOURCE);
    for fault in [500, 403, 401].map(|status| Fault::status(status).times(1)).into_iter().chain([lasting]) {
        let settings = Settings { projects: 1, apps: 1, ..Settings::default() };
        let (world, context, plan) = rig_of(settings, &tables).await;
        world.faults().set([fault.clone()]);
        let _polling = Polling::start(context.clone(), plan);
        let down = async |seconds| {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let page = rig::page(&context, pds_exposition::Format::Text);
            page.lines().filter(|line| line.starts_with("pds_up{") && line.ends_with(" 0")).count()
        };
        assert!(down(10).await > 0, "{fault:?}");
        assert_eq!(down(140).await, usize::from(fault.count.is_none()), "{fault:?}");
        if fault.count.is_none() {
            tokio::time::sleep(Duration::from_secs(7200)).await;
            let asked = world.requests().by_call["list_domains"];
            assert!((7..=13).contains(&asked), "{asked} times: after 1, 2, 4, ... minutes, then every hour");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn polls_that_wait_for_the_disk_keep_no_other_from_asking() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("state.log");
    let ten_minutes = Duration::from_secs(600);
    let (ledgers, _committer) =
        LedgerStore::open(Some(&file), Arc::new(Unobserved), ten_minutes).await.unwrap();
    let settings = Settings { projects: 1, apps: 4, ..Settings::default() };
    let (world, context, mut plan) = rig_over(ledgers.clone(), settings, "").await;
    let mut config = (*plan.config).clone();
    config.api.max_concurrent_requests = 1.try_into().unwrap();
    plan.client = plan.client.successor(&config.api, &config.accounts()).unwrap();
    plan.client.take_over(None);
    plan.config = Arc::new(config);
    let counted: Vec<_> = plan
        .targets
        .iter()
        .filter(|target| target.counter.is_some())
        .map(|target| target.key.clone())
        .collect();
    let _polling = Polling::start(context, plan);
    // Entries that the first commit did not take wait for the second, ten minutes later.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let journal = world.requests();
    for call in ["get_app", "response_time", "run_execution_time"] {
        let apps: HashSet<_> = journal.of(call).map(|entry| entry.app.clone()).collect();
        assert_eq!(apps.len(), 4, "{call}");
    }
    let committed = || counted.iter().filter(|key| ledgers.ledger(key).is_some()).count();
    assert!(committed() < counted.len(), "some wait");
    tokio::time::sleep(ten_minutes).await;
    assert_eq!(committed(), counted.len());
}

#[tokio::test(start_paused = true)]
async fn polls_due_within_a_moment_of_one_another_begin_together() {
    let settings = Settings { projects: 1, apps: 100, ..Settings::default() };
    let (world, context, plan) = rig_of(settings, &format!("[poll]\ninterval = \"10s\"\n{UNCOUNTED}")).await;
    let _polling = Polling::start(context, plan);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = world.requests().entries.len();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let journal = world.requests();
    let times: Vec<i64> =
        journal.entries.iter().skip(before).map(|entry| entry.at.as_millisecond()).collect();
    assert!((195..=205).contains(&times.len()), "two calls for each of a hundred apps, not {}", times.len());
    // Each group takes what is due within a tenth of a second, and the next app is due another tenth later on average.
    let groups = HashSet::<i64>::from_iter(times).len();
    assert!((40..=60).contains(&groups), "{groups} groups in ten seconds");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_the_service_slows_down_delays_no_other() {
    let settings = Settings { projects: 2, apps: 60, ..Settings::default() };
    let (world, context, plan) = rig_of(settings, UNCOUNTED).await;
    let [slowed, other] = &world.projects()[..] else { panic!("two projects") };
    let refuse = Fault::status(429);
    world.faults().set([Fault { project: Some(slowed.0.to_string()), ..refuse }]);
    let _polling = Polling::start(context, plan);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let before = world.requests().entries.len();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let journal = world.requests();
    let mut asked: HashMap<_, usize> = other.1.iter().map(|app| (Some(app.clone()), 0)).collect();
    for entry in journal.entries.iter().skip(before).filter(|entry| entry.range.is_some()) {
        asked.entry(entry.app.clone()).and_modify(|times| *times += 1);
    }
    assert!(asked.values().all(|times| *times == 10), "two calls a minute for five minutes: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn late_polls_of_a_throttled_token_are_reported_as_that() {
    let settings = Settings { projects: 1, apps: 200, ..Settings::default() };
    let (world, context, plan) =
        rig_of(settings, "[poll]\ninterval = \"10s\"\nstale_after = \"15s\"\n").await;
    let plan = Arc::new(plan);
    let status = Source::new(context.clone(), Arc::clone(&plan), Vec::new());
    let _polling = Polling::start(context.clone(), plan);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(context.telemetry.snapshot().poll_lag_seconds.unwrap() < 1.0);
    world.faults().set([Fault::status(429)]);
    tokio::time::sleep(Duration::from_secs(120)).await;
    world.faults().clear();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let lag = context.telemetry.snapshot().poll_lag_seconds.unwrap();
    let status = status.status();
    let of_numbers = status.summary.reasons.iter().filter(|reason| reason.about == About::Numbers);
    let reasons: Vec<&str> = of_numbers.map(|reason| &*reason.code).collect();
    assert_eq!((lag > 10.0, &*reasons), (true, &["throttled"][..]), "{lag}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_the_service_requests_once_is_reported_of_all_that_wait() {
    let (world, context, plan) = rig().await;
    let plan = Arc::new(plan);
    let source = Source::new(context.clone(), Arc::clone(&plan), Vec::new());
    let _polling = Polling::start(context, plan);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let pause = Kind::Status { status: 429, retry_after: Some("270".to_owned()) };
    world.faults().set([Fault::from(pause).times(1)]);
    tokio::time::sleep(Duration::from_secs(150)).await;
    let status = source.status();
    let reasons: Vec<&str> = status.summary.reasons.iter().map(|reason| &*reason.code).collect();
    assert_eq!((status.service.state, &*reasons), (ServiceState::Down, &["throttled"][..]));
}

#[tokio::test(start_paused = true)]
async fn a_request_to_wait_for_long_stops_the_account_for_five_minutes_and_its_own_target_for_the_rest() {
    let (world, context, plan) = rig().await;
    let app = world.projects()[0].1[0].clone();
    let pause = Kind::Status { status: 429, retry_after: Some("86400".to_owned()) };
    world.faults().set([Fault::from(pause).on(response_time::RESOURCE).of_app(&app).times(1)]);
    let _polling = Polling::start(context, plan);
    let mut asked_before = (0, 0);
    let mut asked_in = async |seconds: u64| {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let journal = world.requests();
        let asked = || journal.of("response_time");
        let (own, all) = (asked().filter(|entry| entry.app.as_ref() == Some(&app)).count(), asked().count());
        let (own_before, all_before) = std::mem::replace(&mut asked_before, (own, all));
        (own - own_before, all - own - (all_before - own_before))
    };
    asked_in(10).await;
    assert_eq!(asked_in(280).await, (0, 0));
    assert_eq!(asked_in(50).await.0, 0);
    assert_eq!(asked_in(3000).await, (0, 150), "three other apps, once a minute");
    assert!(asked_in(600).await.0 >= 3, "an hour later it is asked again");
}

#[tokio::test(start_paused = true)]
async fn a_404_after_another_failure_makes_no_poll_rare() {
    let (world, context, plan) = rig().await;
    let _polling = Polling::start(context, plan);
    tokio::time::sleep(Duration::from_secs(300)).await;
    for status in [502, 404] {
        world.faults().set([Fault::status(status).on(response_time::RESOURCE)]);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    world.faults().clear();
    let asked = || world.requests().of("response_time").count();
    let before = asked();
    tokio::time::sleep(Duration::from_secs(240)).await;
    assert_eq!(asked() - before, 16, "four apps, each minute");
}
