//! Single polls, one after the other: their requests, the order of these, and their results.

mod audit;
mod containers;
mod counted_again;
mod evidence;
mod holes;
mod order;
mod shown;
mod soak;
mod starts;
mod thresholds;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pds_config::Config;
use pds_core::clock::Clock;
use pds_diagnosis::model;
use pds_exporter::pages::{PagesConfig, Rendered, StatusPages};
use pds_exporter::poll::{Context, Plan};
use pds_exporter::status::{Source, Status};
use pds_exposition::Format;
use pds_interface::{Cadence, TimeRange, response_time};
use pds_ledger::{Committer, Key, Ledger, Owner};
use pds_simulator::{Settings, World};

use crate::rig::{self, Configuration};

/// An exporter that is polled by hand, beside the service that it asks. Needs paused time: the clocks follow it.
struct Rig {
    world: World,
    service: String,
    /// Ours; the service's is another one.
    clock: Clock,
    /// Tables of the configuration before the project's.
    tables: String,
    /// The configuration of each app beside its id.
    of_apps: &'static str,
    state: Option<PathBuf>,
    /// Expiry of the token: another one makes another token.
    expiry: Option<jiff::Timestamp>,
    running: Option<(Context, Arc<Plan>, Committer)>,
}

impl Rig {
    async fn start(settings: Settings, tables: &str) -> Self {
        Self::of(settings, tables, "", None).await
    }

    async fn of(settings: Settings, tables: &str, of_apps: &'static str, state: Option<PathBuf>) -> Self {
        let start = "2026-03-01T12:00:07Z".parse().unwrap();
        let world = World::new(Settings { projects: 1, ..settings }, Clock::starting_at(start));
        let service = rig::serve(&world).await;
        let clock = Clock::starting_at(start);
        let tables = tables.to_owned();
        let mut rig = Self { world, service, clock, tables, of_apps, state, expiry: None, running: None };
        rig.restart().await;
        rig
    }

    /// A new process on the same state file, if there is one.
    async fn restart(&mut self) {
        if let Some((context, plan, committer)) = self.running.take() {
            drop((context, plan));
            committer.finished().await;
        }
        let (context, committer) = rig::open(self.state.as_deref(), &self.clock).await;
        let plan = Arc::new(rig::plan(self.config(), &context, None));
        self.running = Some((context, plan, committer));
    }

    /// Loads the configuration anew, with these tables.
    fn reload(&mut self, tables: &str) {
        self.tables = tables.to_owned();
        let (context, plan, committer) = self.running.take().unwrap();
        let plan = Arc::new(rig::plan(self.config(), &context, Some(&plan)));
        self.running = Some((context, plan, committer));
    }

    fn config(&self) -> Config {
        let of_service = Configuration::new(&self.world, &self.service);
        let of_token = match self.expiry {
            Some(expiry) => of_service.expiring(expiry),
            None => of_service,
        };
        of_token
            .api("max_retries = 0\nmax_requests_per_second = 0\n")
            .tables(&self.tables)
            .of_app(|id| format!("{{ id = \"{id}\"{} }}", self.of_apps))
            .load()
    }

    fn context(&self) -> &Context {
        &self.running.as_ref().unwrap().0
    }

    fn plan_in_force(&self) -> &Arc<Plan> {
        &self.running.as_ref().unwrap().1
    }

    /// Lets `seconds` pass and polls what is counted once; the ranges of the requests for response times, in their order.
    async fn pass(&self, seconds: u64) -> Vec<TimeRange> {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        let before = self.world.requests().total;
        self.poll(Cadence::Metrics).await;
        let journal = self.world.requests();
        let new = usize::try_from(journal.total - before).unwrap();
        let new = journal.entries.iter().skip(journal.entries.len() - new);
        let call = response_time::RESOURCE.call().id;
        new.filter(|entry| entry.call == call).filter_map(|entry| entry.range).collect()
    }

    /// As many polls, a minute before each.
    async fn minutes(&self, minutes: u32) {
        for _ in 0..minutes {
            self.pass(60).await;
        }
    }

    /// Polls everything of that cadence once.
    async fn poll(&self, cadence: Cadence) {
        rig::poll(self.context(), self.plan_in_force(), |target| target.endpoint.cadence == cadence).await;
    }

    /// The key of an app's ledger of requests.
    fn key(&self, app: usize) -> Key {
        let (project, apps) = self.world.projects().remove(0);
        Key { owner: Owner::new(project, Arc::clone(&apps[app])), resource: response_time::RESOURCE }
    }

    /// The ledger of an app's requests.
    fn ledger_of(&self, app: usize) -> Arc<Ledger> {
        self.context().ledgers.ledger(&self.key(app)).unwrap()
    }

    /// The first app's ledger of requests.
    fn ledger(&self) -> Arc<Ledger> {
        self.ledger_of(0)
    }

    /// How many requests the first app had.
    fn truth(&self, start: i64, end: i64) -> u64 {
        let (project, apps) = self.world.projects().remove(0);
        self.world.truth(&project, &apps[0], TimeRange { start, end }).unwrap().requests
    }

    /// The series on the metrics page.
    fn page(&self) -> String {
        rig::page(self.context(), Format::Text)
    }

    fn source(&self) -> Source {
        Source::new(self.context().clone(), Arc::clone(self.plan_in_force()), Vec::new())
    }

    fn status(&self) -> Arc<Status> {
        self.source().status()
    }

    /// The status of the response times of an app.
    fn resource(&self, app: usize) -> model::Resource {
        let status = self.status();
        status.apps[app].resources.iter().find(|of| of.resource == "response_time").unwrap().clone()
    }

    /// The description of the first app's ledger of requests, in words and figures.
    fn problem(&self) -> (Option<String>, Option<u64>) {
        let status = self.status();
        let mut problems = status.apps[0].problems.iter();
        let problem = problems.find(|problem| problem.text.starts_with("response time"));
        (problem.map(|problem| problem.text.clone()), self.resource(0).behind_seconds)
    }

    /// The path of the first app's page.
    fn of_app(&self) -> String {
        let (project, apps) = self.world.projects().remove(0);
        format!("/apps/{project}/{}", apps[0])
    }

    /// A status page.
    fn web(&self, path: &str) -> String {
        match StatusPages::new(self.source(), Vec::new(), PagesConfig::default()).respond(path, "") {
            Some(Rendered::Page(page)) => page,
            other => panic!("{path}: {other:?}"),
        }
    }
}

fn one_app() -> Settings {
    Settings { apps: 1, ..Settings::default() }
}

/// How long each range is.
fn lengths(ranges: &[TimeRange]) -> Vec<u64> {
    ranges.iter().map(|range| range.seconds()).collect()
}
