//! A property of exporters that are started, killed and scraped at random beside one Prometheus: no counter that a query
//! sees ever decreases, and each holds what there was.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use pds_interface::{Resource, response_time, run_execution_time};
use pds_simulator::{Fault, Kind};
use proptest::prelude::*;

use super::prometheus::{Labels, Prometheus};
use super::rig::{Exporter, Rig, sharded};

const APPS: usize = 3;

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes, everything is polled once, and what is missing is asked for.
    Poll(i64),
    /// The same, but the machine was suspended: the monotonic clock stood still.
    Suspend(i64),
    /// Prometheus scrapes every exporter that runs.
    Scrape,
    /// This one of the exporters that run is killed.
    Kill(usize),
    /// All are killed, and so many shards started, with the names of those before or with new ones.
    Shards(u32, bool),
    /// One more exporter of everything is started.
    Overlap,
    /// Prometheus fails, or answers again.
    Answers(bool),
    /// The service fails, or answers again.
    Serves(bool),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => (1i64..130).prop_map(Event::Poll),
        2 => (130i64..9_000).prop_map(Event::Poll),
        1 => (130i64..9_000).prop_map(Event::Suspend),
        8 => Just(Event::Scrape),
        2 => (0usize..4).prop_map(Event::Kill),
        2 => ((1u32..4), any::<bool>()).prop_map(|(count, named)| Event::Shards(count, named)),
        1 => Just(Event::Overlap),
        1 => any::<bool>().prop_map(Event::Answers),
        1 => any::<bool>().prop_map(Event::Serves),
    ];
    prop::collection::vec(event, 1..50)
}

/// One that runs, and what its ledgers must begin at.
struct Play {
    rig: Rig,
    running: Vec<Exporter>,
    /// Where counting began, by app and resource: known once Prometheus has it.
    first: HashMap<(String, Resource), i64>,
    /// What was seen of each series.
    seen: HashMap<Labels, f64>,
    started: usize,
}

impl Play {
    async fn start_shards(&mut self, count: u32, named: bool) {
        self.running.clear();
        for index in 0..count {
            self.started += 1;
            // A name that comes again, as a stateful set has them, or one of its own.
            let name = if named { format!("pod-{index}") } else { format!("pod-{}", self.started + 100) };
            let config = sharded(self.rig.config(APPS, ""), index, count);
            self.running.push(self.rig.exporter(config, &name).await);
        }
    }

    /// Time passes, by the wall clocks and by the monotonic clock.
    async fn pass(&self, seconds: i64) {
        self.rig.pass(seconds);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds.unsigned_abs())).await;
        tokio::time::resume();
    }

    async fn poll(&self) {
        for exporter in &self.running {
            exporter.poll().await;
            exporter.handle.restorer.restore().await;
        }
    }

    fn scrape(&mut self) {
        for exporter in &self.running {
            self.rig.scrape(exporter);
        }
        self.check();
    }

    /// What Prometheus holds now.
    fn check(&mut self) {
        let now = self.rig.clock.unix_seconds();
        let of = |name: &str| self.rig.prometheus.of(name);
        let mut cursors: BTreeMap<(Labels, Resource), i64> = BTreeMap::new();
        for (mut labels, samples) in of("pds_app_accounted_until_timestamp_seconds") {
            labels.remove("__name__");
            let resource = Resource::find(&labels.remove("resource").unwrap()).unwrap();
            let (at, until) = *samples.last().unwrap();
            if at == now {
                cursors.insert((labels, resource), until as i64);
            }
        }
        let counted = [
            ("pds_app_requests_total", response_time::RESOURCE),
            ("pds_app_runs_total", run_execution_time::RESOURCE),
        ];
        for (name, resource) in counted {
            for (mut labels, samples) in of(name) {
                labels.remove("__name__");
                let (at, total) = *samples.last().unwrap();
                if at != now {
                    continue;
                }
                let until = cursors[&(labels.clone(), resource)];
                let app = labels["app"].clone();
                let first = *self
                    .first
                    .entry((app.clone(), resource))
                    .or_insert_with(|| opened(&self.rig, &self.running, &labels, resource, until, total));
                let truth = self.rig.truth(&app, resource, first, until);
                assert_eq!(total, truth as f64, "{name}{labels:?} from {first} to {until}");
            }
        }
        self.nothing_goes_back(now);
    }

    fn nothing_goes_back(&mut self, now: i64) {
        let names = [
            "pds_app_requests_total",
            "pds_app_runs_total",
            "pds_app_request_duration_seconds_bucket",
            "pds_app_unaccounted_seconds_total",
            "pds_app_accounted_until_timestamp_seconds",
        ];
        for (labels, samples) in names.iter().flat_map(|name| self.rig.prometheus.of(name)) {
            let (at, value) = *samples.last().unwrap();
            if at != now {
                continue;
            }
            let before = self.seen.insert(labels.clone(), value).unwrap_or_default();
            assert!(value >= before, "{labels:?} went back from {before} to {value}");
        }
    }

    async fn happen(&mut self, event: &Event) {
        match event {
            Event::Poll(seconds) => {
                self.pass(*seconds).await;
                self.poll().await;
            }
            Event::Suspend(seconds) => {
                self.rig.pass(*seconds);
                self.poll().await;
            }
            Event::Scrape => {
                // No two scrapes of one moment.
                self.pass(1).await;
                self.scrape();
            }
            Event::Kill(index) if self.running.is_empty() || *index >= self.running.len() => {}
            Event::Kill(index) => drop(self.running.remove(*index)),
            Event::Shards(count, named) => self.start_shards(*count, *named).await,
            // Two that begin at once where nothing is known yet count from a start of their own, each of them rightly.
            Event::Overlap if self.running.len() > 3 || self.first.len() < 2 * APPS => {}
            Event::Overlap => {
                self.started += 1;
                let (config, name) = (self.rig.config(APPS, ""), format!("pod-{}", self.started + 100));
                self.running.push(self.rig.exporter(config, &name).await);
            }
            Event::Answers(true) => self.rig.prometheus.mend(),
            Event::Answers(false) => self.rig.prometheus.answer(|_| Some((503, String::new()))),
            Event::Serves(true) => self.rig.world.faults().clear(),
            Event::Serves(false) => {
                let kind = Kind::Status { status: 500, retry_after: None };
                self.rig.world.faults().set([Fault::from(kind)]);
            }
        }
    }
}

/// Where the ledger began that was seen first: its exporter knows how much it holds, and the service since when.
fn opened(
    rig: &Rig,
    running: &[Exporter],
    labels: &Labels,
    resource: Resource,
    until: i64,
    total: f64,
) -> i64 {
    assert!(running.iter().any(|exporter| exporter.instance == labels["instance"]));
    // The latest step that explains the total: time without a request is the same on both sides of it.
    (0..)
        .map(|steps| until - 60 * steps)
        .find(|first| rig.truth(&labels["app"], resource, *first, until) as f64 == total)
        .unwrap()
}

fn play(events: &[Event]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let rig = Rig::start(APPS).await;
        let (running, first, seen) = (Vec::new(), HashMap::new(), HashMap::new());
        let mut play = Play { rig, running, first, seen, started: 0 };
        play.start_shards(1, true).await;
        for event in events {
            play.happen(event).await;
        }
        // All is well again: every app is on a page, with everything there was.
        play.happen(&Event::Answers(true)).await;
        play.happen(&Event::Serves(true)).await;
        play.start_shards(2, false).await;
        for _ in 0..6 {
            play.happen(&Event::Poll(60)).await;
            play.happen(&Event::Scrape).await;
        }
        let shown: usize = play.running.iter().map(Exporter::shown).sum();
        let restoring: Vec<_> = play
            .running
            .iter()
            .map(|exporter| exporter.handle.context.telemetry.snapshot().restoring)
            .collect();
        assert_eq!(shown, APPS, "{restoring:?}");
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn nothing_goes_back_and_all_hold_what_there_was(events in events()) {
        play(&events);
    }
}

#[test]
fn former_counterexamples_hold() {
    use Event::{Poll, Scrape, Serves, Shards, Suspend};
    play(&[Poll(1), Scrape, Poll(1), Poll(1), Poll(7368), Scrape, Poll(353)]);
    let before = [Suspend(2259), Scrape, Poll(1), Poll(25), Scrape, Shards(1, false), Poll(22), Poll(30)];
    let outage = [Serves(false), Poll(34), Poll(122), Poll(15), Scrape];
    play(&[&before[..], &outage].concat());
    play(&[Poll(1), Serves(false), Poll(3367), Scrape, Poll(88), Poll(115), Scrape, Poll(3538)]);
}

/// A counter that is opened in an outage is shown until the monotonic clock says that it is behind.
#[test]
fn a_counter_scraped_an_hour_after_its_cursor_is_read_back() {
    use Event::{Scrape, Serves, Suspend};
    let outage = [Suspend(1), Serves(false), Suspend(3367), Scrape, Suspend(88), Suspend(115), Scrape];
    play(&[&outage[..], &[Suspend(3538)]].concat());
}

#[test]
fn the_model_answers_as_it_is_asked() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let rig = Rig::start(1).await;
        rig.prometheus.scrape("a{x=\"1\",y=\"q\\\"uote\"} 7\nb 1\n", &[("job", "pds")]);
        let of_a = rig.prometheus.of("a");
        assert_eq!(
            (of_a[0].0["y"].as_str(), of_a[0].0["job"].as_str(), of_a[0].1[0].1),
            ("q\"uote", "pds", 7.0)
        );
        let asked = async |query: &str| ask(&rig.prometheus, query).await;
        assert!(asked("last_over_time({__name__=~\"a|c\",x=\"1\",}[60s])").await.contains("\"7\""));
        assert!(!asked("last_over_time({__name__=~\"a|c\",x=\"2\"}[60s])").await.contains("\"7\""));
        rig.pass(60);
        assert!(!asked("last_over_time({__name__=~\"a|c\"}[60s])").await.contains("\"7\""));
    });
}

async fn ask(prometheus: &Prometheus, query: &str) -> Arc<str> {
    let url = format!("http://{}/api/v1/query", prometheus.address);
    let body = url::form_urlencoded::Serializer::new(String::new()).append_pair("query", query).finish();
    let reply = crate::process::http().post(url).body(body).send().await.unwrap();
    reply.text().await.unwrap().into()
}
