//! Two projects polled by hand beside the service that one of them has trouble with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use pds_core::clock::Clock;
use pds_exporter::pages::{PagesConfig, Rendered, StatusPages};
use pds_exporter::poll::plan::Target;
use pds_exporter::poll::{Context, Plan};
use pds_exporter::status::Source;
use pds_interface::{Resource, Scope, TimeRange, response_time, run_execution_time};
use pds_ledger::Key;
use pds_simulator::{Fault, Kind, Settings, World};

use crate::process::series;
use crate::rig::{self, Configuration, FaultExt as _};

/// More than a request may take, and more than any pause that the faults ask for.
const LONG: Duration = Duration::from_secs(2 * 3600);

pub(super) struct Rig {
    world: World,
    service_clock: Clock,
    clock: Clock,
    context: Context,
    plan: Arc<Plan>,
    resource: Resource,
}

/// A page, and how often the service had been asked for the target by then.
pub(super) struct Page {
    pub(super) text: String,
    asked: usize,
}

impl Page {
    fn of<'a>(&'a self, family: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        series(&self.text).filter(move |(name, _)| name.split('{').next() == Some(family))
    }

    /// Whether the last poll of every target succeeded.
    pub(super) fn all_up(&self) -> bool {
        self.of("pds_up").count() > 0 && self.of("pds_up").all(|(_, up)| up == 1.0)
    }

    pub(super) fn sum(&self, family: &str) -> f64 {
        self.of(family).map(|(_, value)| value).sum()
    }

    pub(super) fn value(&self, series: &str) -> f64 {
        crate::process::value(&self.text, series).unwrap_or_default()
    }
}

impl Rig {
    /// Two projects with two apps each and a token of their own; `resource` of the first app, or of the first project,
    /// is to have trouble.
    pub(super) async fn start(resource: Resource) -> Self {
        Self::within(resource, 30).await
    }

    /// The same with this timeout in seconds.
    pub(super) async fn within(resource: Resource, timeout: u64) -> Self {
        let start = "2026-03-01T12:00:07Z".parse().unwrap();
        let (service_clock, clock) = (Clock::standing_at(start), Clock::standing_at(start));
        let settings = Settings { seed: 7, projects: 2, apps: 4, ..Settings::default() };
        let world = World::new(settings, service_clock.clone());
        let service = rig::serve(&world).await;
        let api = "max_retries = 1\nmax_requests_per_second = 0\nmax_response_bytes = \"1MiB\"\n";
        let api = format!("{api}timeout = \"{timeout}s\"\n");
        let config = Configuration::new(&world, &service).api(&api).load();
        let (context, _) = rig::open(None, &clock).await;
        let plan = Arc::new(rig::plan(config, &context, None));
        Self { world, service_clock, clock, context, plan, resource }
    }

    /// A minute passes, and everything is polled once.
    pub(super) async fn poll(&self) {
        self.poll_targets(|_| true).await;
    }

    /// A minute passes, and what is counted is polled once.
    pub(super) async fn poll_metrics(&self) {
        self.poll_targets(|target| target.counter.is_some()).await;
    }

    async fn poll_targets(&self, wanted: impl Fn(&Target) -> bool) {
        pass(Duration::from_secs(60)).await;
        self.clock.jump(SignedDuration::from_secs(60));
        self.service_clock.jump(SignedDuration::from_secs(60));
        rig::poll(&self.context, &self.plan, wanted).await;
    }

    /// The service's clock is apart from ours by so many seconds from now on.
    pub(super) fn set_clock_apart(&self, seconds: i64) {
        self.world.faults().set([Fault::from(Kind::ClockSkew { seconds })]);
    }

    /// Our clock is set by so many seconds.
    pub(super) fn set_ours(&self, seconds: i64) {
        self.clock.jump(SignedDuration::from_secs(seconds));
    }

    /// As [`Rig::set_clock_apart`], after the settings were asked for and before the metrics are.
    pub(super) fn set_clock_apart_before_metrics(&self, seconds: i64) {
        let skew = || Fault::from(Kind::ClockSkew { seconds });
        self.world
            .faults()
            .set([skew().on(response_time::RESOURCE), skew().on(run_execution_time::RESOURCE)]);
    }

    /// The service answers everything with this status from now on.
    pub(super) fn strike_all(&self, status: u16) {
        self.world.faults().set([Fault::status(status)]);
    }

    fn source(&self) -> Source {
        Source::new(self.context.clone(), Arc::clone(&self.plan), Vec::new())
    }

    /// The first sentence of the status page.
    pub(super) fn sentence(&self) -> String {
        let site = StatusPages::new(self.source(), Vec::new(), PagesConfig::default());
        let Some(Rendered::Page(page)) = site.respond("/", "") else { panic!("a page") };
        let (_, rest) = page.split_once("role=\"status\">").unwrap();
        rest.split_once("</p>").unwrap().0.split('<').map(|tag| tag.rsplit('>').next().unwrap()).collect()
    }

    /// The reasons of the verdict.
    pub(super) fn reasons(&self) -> Vec<String> {
        self.source().status().summary.reasons.iter().map(|reason| reason.text.clone()).collect()
    }

    /// The problems of the apps, each once.
    pub(super) fn problems(&self) -> BTreeSet<String> {
        let status = self.source().status();
        let problems = status.apps.iter().flat_map(|app| app.problems.iter());
        problems.map(|problem| problem.text.clone()).collect()
    }

    /// The cursor of each open ledger.
    pub(super) fn cursors(&self) -> BTreeMap<Key, i64> {
        let ledger = |target: &Arc<Target>| Some(self.context.ledgers.ledger(&target.key)?.until);
        let targets = self.plan.targets.iter();
        targets.filter_map(|target| Some((target.key.clone(), ledger(target)?))).collect()
    }

    /// The time that each ledger has counted, where those `opened` began there and the others at `first`; it holds
    /// exactly what there was.
    pub(super) fn counted_since(
        &self,
        opened: &BTreeMap<Key, i64>,
        first: &BTreeMap<Key, i64>,
    ) -> BTreeMap<Key, (i64, i64)> {
        let counted = |(key, until): (Key, i64)| {
            let start = opened.get(&key).unwrap_or(&first[&key]);
            let range = TimeRange { start: *start, end: until };
            let truth = rig::truth(&self.world, &key, range);
            assert_eq!(self.context.ledgers.ledger(&key).unwrap().total, truth, "{key}");
            (key, (range.start, range.end))
        };
        self.cursors().into_iter().map(counted).collect()
    }

    /// How long ago by our clock all counters end, in seconds; they hold exactly what there was from `first` on.
    pub(super) fn counted_from(&self, first: i64) -> i64 {
        let counted = self.plan.targets.iter().filter(|target| target.counter.is_some());
        let ends: BTreeSet<i64> = counted
            .map(|target| {
                let ledger = self.context.ledgers.ledger(&target.key).unwrap();
                let range = TimeRange { start: first, end: ledger.until };
                let truth = rig::truth(&self.world, &target.key, range);
                assert_eq!((ledger.total, ledger.unaccounted), (truth, 0), "{}", target.key);
                ledger.until
            })
            .collect();
        assert_eq!(ends.len(), 1, "all ledgers end together");
        self.clock.unix_seconds() - ends.first().unwrap()
    }

    /// The text of the page now.
    pub(super) fn page(&self) -> Page {
        Page { text: rig::whole_page(&self.context), asked: self.asked() }
    }

    /// How often the service was asked for what has trouble.
    fn asked(&self) -> usize {
        let call = self.resource.call().id;
        let projects = self.world.projects();
        let (project, apps) = &projects[0];
        let journal = self.world.requests();
        let concerns = |is: &Option<Arc<str>>, wanted: &Arc<str>| is.as_ref().is_none_or(|is| is == wanted);
        journal
            .of(call)
            .filter(|asked| concerns(&asked.project, project) && concerns(&asked.app, &apps[0]))
            .count()
    }

    /// The label that names who has trouble; empty where nobody is named, because the call is about all projects.
    fn victim(&self) -> String {
        let projects = self.world.projects();
        let (project, apps) = &projects[0];
        match self.resource.polled().scope {
            Scope::Account => String::new(),
            Scope::Project => format!("project=\"{project}\""),
            Scope::App => format!("project=\"{project}\",app=\"{}\"", apps[0]),
        }
    }

    fn is_victim(&self, series: &str) -> bool {
        let resource = format!("resource=\"{}\"", self.resource.as_str());
        series.contains(&self.victim()) && series.contains(&resource)
    }

    pub(super) fn strike(&self, kind: Kind) {
        let projects = self.world.projects();
        let (project, apps) = &projects[0];
        let fault = Fault::from(kind).on(self.resource);
        self.world.faults().set([match self.resource.polled().scope {
            Scope::Account => fault,
            Scope::Project => fault.of_project(project),
            Scope::App => fault.of_project(project).of_app(&apps[0]),
        }]);
    }

    /// The fault is over, and so is all that was to be waited for because of it.
    pub(super) async fn mend(&self) {
        self.world.faults().clear();
        pass(LONG).await;
    }

    /// The series with service facts, without their values, and without what comes and goes with the hours.
    pub(super) fn shown(&self, page: &Page) -> BTreeSet<String> {
        let others = ["pds_api_", "pds_exporter_", "pds_app_ledger_"];
        let facts = |name: &str| !others.iter().any(|other| name.starts_with(other));
        series(&page.text).map(|(name, _)| name.to_owned()).filter(|name| facts(name)).collect()
    }

    /// The other project, whose account is another one, goes on as ever; and so does every other call.
    pub(super) fn assert_others_see_nothing(&self, before: &Page, struck: &Page, fault: &str) {
        let other = format!("project=\"{}\"", self.world.projects()[1].0);
        let others = |page: &Page| -> BTreeSet<String> {
            let of_other = |name: &String| name.contains(&other) && !self.is_victim(name);
            self.shown(page).into_iter().filter(of_other).collect()
        };
        if self.resource.polled().scope != Scope::Account {
            assert_eq!(others(before), others(struck), "{fault}: the other project's series");
        }
        // Each account requests its own list of projects, and so meets the fault.
        let ups = struck.of("pds_up").filter(|(name, _)| name.contains(&other));
        for (name, up) in ups.filter(|_| self.resource.polled().scope != Scope::Account) {
            assert!(up == 1.0, "{fault}: {name}");
        }
        let codes = ["200", "paused", "unauthorized_paused"];
        // Codes that alerts read stand at 0 from the start.
        let counted = struck.of("pds_api_requests_total").filter(|(_, count)| *count > 0.0);
        for (name, _) in counted.filter(|(name, _)| !self.is_code_of_victim(name)) {
            assert!(codes.iter().any(|code| name.contains(&format!("code=\"{code}\""))), "{fault}: {name}");
        }
        for (name, _) in struck.of("pds_api_unexpected_values_total") {
            assert!(self.is_code_of_victim(name), "{fault}: {name}");
        }
    }

    fn is_code_of_victim(&self, series: &str) -> bool {
        series.contains(&format!("resource=\"{}\"", self.resource.as_str()))
    }

    /// The outcome as a line of the table.
    pub(super) fn outcome(&self, before: &Page, struck: &Page) -> String {
        let up: Vec<f64> =
            struck.of("pds_up").filter(|(name, _)| self.is_victim(name)).map(|(_, up)| up).collect();
        let up = if up.iter().all(|up| *up == 1.0) { "up" } else { "DOWN" };
        let counted = |family: &str, label: &str| -> Vec<String> {
            let of_victim = struck.of(family).filter(|(name, _)| self.is_code_of_victim(name));
            let grown = of_victim.map(|(name, value)| (name, value - before.value(name)));
            grown
                .filter(|(_, grown)| *grown > 0.0)
                .map(|(name, grown)| format!("{} x{grown}", label_value(name, label)))
                .collect()
        };
        let codes = counted("pds_api_requests_total", "code").join(" ");
        let unexpected = counted("pds_api_unexpected_values_total", "field");
        let unexpected =
            if unexpected.is_empty() { "-".to_owned() } else { format!("bad: {}", unexpected.join(" ")) };
        let asked = struck.asked - before.asked;
        let (was, is) = (self.shown(before), self.shown(struck));
        let (gone, new) = (was.difference(&is).count(), is.difference(&was).count());
        let others = struck.of("pds_up").filter(|(name, up)| *up == 0.0 && !self.is_victim(name)).count();
        format!(
            "{up:4} | {codes} | {unexpected} | -{gone} +{new} series | {asked} asked | {others} others down"
        )
    }
}

/// So much time passes by the machine's monotonic clock.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn label_value<'a>(series: &'a str, label: &str) -> &'a str {
    let (_, rest) = series.split_once(&format!("{label}=\"")).unwrap();
    rest.split('"').next().unwrap()
}
