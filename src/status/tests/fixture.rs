//! A status without a service: real plan, store and metrics, filled from replies as the service sends
//! them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Duration;

use crate::poll::{Context, Plan};
use crate::store::{PollFailure, PollRecord, Variant};
use pds_client::{Client, Observer as _, TokenFacts, TokenSource};
use pds_config::{self, Config, Project};
use pds_core::clock::Clock;
use pds_core::secret::Secret;
use pds_interface::{Cadence, TimeRange, Window, response_time, run_execution_time};
use pds_ledger::{Key, Ledger, LedgerStore, Watermark};
use pds_telemetry::Telemetry;

use super::super::Source;

/// When the fixture's clock starts.
pub(crate) const NOW: &str = "2026-03-01T03:00:00Z";

/// A name that is harmful unless escaped.
pub(crate) const HOSTILE: &str = "p-<script>alert(1)</script>\"'&/é 🦀";

/// A source and its input.
pub(crate) struct Fixture {
    pub(crate) source: Source,
    pub(crate) plan: Arc<Plan>,
    pub(crate) context: Context,
}

/// A fixture of `apps` apps in projects of twenty, not polled yet.
pub(crate) async fn fixture(apps: usize) -> Fixture {
    let ids: Vec<String> = (0..apps).map(|n| format!("p-{:08}-app-{n}", n / 20)).collect();
    with_apps(&ids.iter().map(|id| (&id[..10], id.as_str())).collect::<Vec<_>>()).await
}

/// A fixture of the apps given as (project, app).
pub(crate) async fn with_apps(apps: &[(&str, &str)]) -> Fixture {
    with_config(apps, |config| config).await
}

/// The same, in which `token` gives each project its token.
pub(crate) async fn with_tokens(
    apps: &[(&str, &str)],
    token: impl Fn(&str) -> Option<TokenSource>,
) -> Fixture {
    let change = |mut config: Config| {
        config.projects.iter_mut().for_each(|project| project.token = token(&project.id));
        config
    };
    with_config(apps, change).await
}

/// As many projects, each with a token and an app: `p-00` and `p-00-a`.
pub(crate) async fn with_many_tokens(count: usize) -> Fixture {
    let ids: Vec<(String, String)> =
        (0..count).map(|n| (format!("p-{n:02}"), format!("p-{n:02}-a"))).collect();
    let apps: Vec<(&str, &str)> = ids.iter().map(|(project, app)| (&**project, &**app)).collect();
    with_tokens(&apps, |project| Some(TokenSource::Inline(Secret::new(project)))).await
}

/// The same with a configuration changed by `change`.
pub(crate) async fn with_config(apps: &[(&str, &str)], change: impl FnOnce(Config) -> Config) -> Fixture {
    let clock = Clock::starting_at(NOW.parse().unwrap());
    let telemetry = Telemetry::new(false).unwrap();
    let (ledgers, _) =
        LedgerStore::open(None, Arc::new(telemetry.clone()), pds_ledger::COMMIT_INTERVAL).await.unwrap();
    let context = Context::new(ledgers, telemetry, clock);
    let config = change(config(apps));
    let config = Arc::new(config);
    let client = Client::new(
        &config.api,
        &config.accounts(),
        Arc::new(context.telemetry.clone()),
        context.clock.clone(),
    )
    .unwrap();
    let watermark = Watermark::new(&config.counted_ranges(), context.clock.clone());
    let plan = Arc::new(Plan::new(config, client, watermark, &context, None));
    context.telemetry.config_loaded(Some(context.clock.now()));
    let source = Source::new(context.clone(), Arc::clone(&plan), Vec::new());
    Fixture { source, plan, context }
}

fn config(apps: &[(&str, &str)]) -> Config {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut toml =
        "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"t\"\n[poll]\nwindows = [\"5m\"]\n"
            .to_owned();
    toml.push_str("[[projects]]\nid = \"p-none\"\n");
    file.write_all(toml.as_bytes()).unwrap();
    let mut config = pds_config::load(file.path(), []).unwrap().config;
    let mut projects: BTreeMap<&str, Project> = BTreeMap::new();
    for (project, app) in apps {
        let app = pds_config::App {
            id: (*app).into(),
            interval: None,
            containers: Vec::new(),
            labels: vec![("tier".to_owned(), "gold".to_owned())],
            objective: None,
        };
        let empty = || Project {
            id: (*project).into(),
            polled: true,
            objective: None,
            token: None,
            labels: Vec::new(),
            apps: Vec::new(),
        };
        projects.entry(project).or_insert_with(empty).apps.push(app);
    }
    config.projects = projects.into_values().collect();
    config
}

impl Fixture {
    /// Changes the facts about the token of an account.
    pub(crate) fn token(&self, account: &str, change: impl FnOnce(&mut TokenFacts)) {
        let telemetry = &self.context.telemetry;
        let mut facts = telemetry.snapshot().tokens.get(account).copied().unwrap_or_default();
        change(&mut facts);
        telemetry.token(account, Some(facts));
    }

    /// Answers for every target, slowed down by the factor `slowness`.
    pub(crate) fn answer(&self, slowness: f64) {
        self.answer_with(slowness, |body| body);
    }

    /// The same with replies changed by `change`.
    pub(crate) fn answer_with(&self, slowness: f64, change: impl Fn(String) -> String) {
        self.plan.watermark.observe(Some(self.context.clock.now()));
        self.answer_undated(slowness, change);
    }

    /// Answers for the targets for which `answers` is true.
    pub(crate) fn answer_only(&self, answers: impl Fn(&Key) -> bool) {
        self.plan.watermark.observe(Some(self.context.clock.now()));
        self.answer_some(answers, 1.0, |body| body);
    }

    /// Answers for every target, from a service that sends no Date.
    pub(crate) fn answer_undated(&self, slowness: f64, change: impl Fn(String) -> String) {
        self.answer_some(|_| true, slowness, change);
    }

    /// Answers for some targets, with replies changed by `change`.
    pub(crate) fn answer_some(
        &self,
        answers: impl Fn(&Key) -> bool,
        slowness: f64,
        change: impl Fn(String) -> String,
    ) {
        let now = self.context.clock.now();
        for target in self.plan.targets.iter().filter(|target| answers(&target.key)) {
            let body = change(reply(&target.key, slowness, now));
            for subject in &target.subjects {
                let end = now.as_second();
                let range = TimeRange { start: end - 300, end };
                let window = (target.endpoint.cadence == Cadence::Metrics).then_some(Window {
                    label: "5m",
                    container: None,
                    first: true,
                    range,
                });
                let subjects = [self.plan.subject(subject, window).unwrap()];
                let reading = target.endpoint.read(body.as_bytes(), &subjects).unwrap();
                assert_eq!(reading.unexpected, [""; 0], "{body}");
                let variant = if window.is_some() { self.plan.shown() } else { Variant::default() };
                subject.cell.set_message(reading.message);
                for sink in reading.sinks {
                    subject.cell.replace(&variant, sink);
                }
                let took = Duration::from_millis(120);
                let polled = PollRecord { at: now, took, behind: false, failure: None };
                subject.cell.record(polled, &self.plan.shown());
                self.context.store.replies().keep(&target.key, now, body.len(), || body.clone());
                self.context.store.replies().accept(&target.key);
                self.context.telemetry.request_done(target.key.resource, "200", Duration::from_millis(120));
            }
        }
    }

    /// Ends the counters of every target `ago` seconds before the settled time.
    pub(crate) async fn count_until(&self, ago: i64) {
        self.count_until_of(ago, |_| true).await;
    }

    /// The same for the targets for which `counts` is true.
    pub(crate) async fn count_until_of(&self, ago: i64, counts: impl Fn(&Key) -> bool) {
        let until = self.plan.watermark.settled() - ago;
        let counted = self.plan.targets.iter().filter(|target| target.counter.is_some());
        for target in counted.filter(|target| counts(&target.key)) {
            self.context.ledgers.commit(&target.key, Ledger::open(until)).await.unwrap();
        }
    }

    /// Fails every target for which `fails` is true.
    pub(crate) fn fail(&self, class: &'static str, message: &str, fails: impl Fn(&pds_ledger::Key) -> bool) {
        let now = self.context.clock.now();
        let targets = self.plan.targets.iter().flat_map(|target| &target.subjects);
        for subject in targets.filter(|subject| fails(&subject.cell.key)) {
            let failure = Some(PollFailure { class, message: message.into(), is_own: true });
            let polled = PollRecord { at: now, took: Duration::from_secs(10), behind: false, failure };
            subject.cell.record(polled, &self.plan.shown());
            self.context.telemetry.request_done(subject.cell.key.resource, class, Duration::from_secs(10));
        }
    }
}

/// The reply about a target: the example of its call, about the last five minutes.
fn reply(key: &Key, slowness: f64, now: Timestamp) -> String {
    let ago = |minutes: i64| now.saturating_sub(SignedDuration::from_mins(minutes)).unwrap();
    let named = |example: &str, id: &str, name: &str| example.replace(id, &json!(name).to_string());
    let example = named(key.resource.polled().example, "\"p-abc12345-ranker\"", &key.owner.app);
    let example = named(&example, "\"p-abc12345\"", &key.owner.project);
    let mut reply: Value = serde_json::from_str(&example).unwrap();
    if key.resource.polled().cadence == Cadence::Metrics {
        reply["data"]["start_date"] = json!(ago(5));
        reply["data"]["end_date"] = json!(now);
    }
    match key.resource {
        response_time::RESOURCE => {
            for percentile in reply["data"]["percentiles"].as_object_mut().unwrap().values_mut() {
                *percentile = json!(percentile.as_f64().unwrap() * slowness);
            }
        }
        run_execution_time::RESOURCE => {
            let point = |minute: i64| {
                let wave = 1.0 + f64::from(i32::try_from(minute).unwrap()) / 10.0;
                let time = ago(5 - minute).as_second();
                json!({"timestamp": time, "p50": 0.03 * wave, "p90": 0.1 * wave, "p99": 0.6 * wave})
            };
            reply["data"]["time_series"] = (0..5).map(point).collect();
        }
        _ => {}
    }
    reply.to_string()
}
