//! A service of the tests' own, honest but for what it is told, and an exporter that polls it by hand.

use std::sync::Arc;
use std::time::Duration;

use pds_core::clock::Clock;
use pds_exporter::poll::{Context, Plan};
use pds_exposition::Format;
use pds_interface::TimeRange;
use pds_interface::range::instant;
use pds_ledger::{Key, Ledger};
use pds_simulator::{Settings, World};

use crate::client::server::{Server, status};
use crate::rig::{self, Configuration};

/// 10:00, when counting begins.
pub(super) const START: i64 = 1_772_359_200;
/// From here on there is no traffic.
pub(super) const END: i64 = START + 6 * 3600;
/// By then every hour was counted again, and late data added.
pub(super) const DONE: i64 = END + 4 * 3600;

/// A second of an hour after the start.
pub(super) const fn at(hour: i64, minute: i64) -> i64 {
    START + (hour - 10) * 3600 + minute * 60
}

/// The service's knowledge of a second at `now`.
#[derive(Clone, Copy)]
pub(super) struct Service {
    /// Whether it knows of the requests of that second; the last argument says whether they take more than a second.
    pub(super) knows: fn(now: i64, second: i64, slow: bool) -> bool,
    /// Status of its replies about a range of an app.
    pub(super) status: fn(now: i64, range: TimeRange, app: &str) -> u16,
    /// The label of the threshold of one second.
    pub(super) label: fn(now: i64) -> &'static str,
    /// Decimals of its shares in percent.
    pub(super) decimals: i32,
    /// The range that it counts for the requested one.
    pub(super) counts: fn(now: i64, range: TimeRange) -> TimeRange,
    /// The range that it states for the requested one, if any.
    pub(super) states: fn(range: TimeRange) -> Option<TimeRange>,
    /// The range that its distribution is of.
    pub(super) distributes: fn(now: i64, range: TimeRange) -> TimeRange,
    /// Whether its reply about the range has a distribution.
    pub(super) distributed: fn(now: i64, range: TimeRange) -> bool,
    /// The total in its reply about the range that has so many requests.
    pub(super) total: fn(now: i64, range: TimeRange, count: u64) -> u64,
}

/// A service without fault.
pub(super) const IDEAL: Service = Service {
    knows: |_, _, _| true,
    status: |_, _, _| 200,
    label: |_| "1s",
    decimals: 12,
    counts: |_, range| range,
    states: Some,
    distributes: |_, range| range,
    distributed: |_, _| true,
    total: |_, _, count| count,
};

/// Requests in a second: 10,800 an hour; those of every fiftieth second take more than a second.
fn requests(second: i64) -> u64 {
    if second < END { 2 + second.unsigned_abs() % 3 } else { 0 }
}

pub(super) fn is_slow(second: i64) -> bool {
    second % 50 == 7
}

/// How many there are in `range`, and how many of them take up to a second, as far as they are `known`.
pub(super) fn counted(range: TimeRange, known: impl Fn(i64) -> bool) -> (u64, u64) {
    (range.start..range.end).filter(|second| known(*second)).fold((0, 0), |(all, fast), second| {
        let count = requests(second);
        (all + count, fast + if is_slow(second) { 0 } else { count })
    })
}

pub(super) fn truth(until: i64) -> (u64, u64) {
    counted(TimeRange { start: START, end: until }, |_| true)
}

impl Service {
    fn reply(self, now: i64, range: TimeRange) -> String {
        let known =
            |range| counted(range, |second| second < now && (self.knows)(now, second, is_slow(second)));
        let total = (self.total)(now, range, known((self.counts)(now, range)).0);
        let (all, fast) = known((self.distributes)(now, (self.counts)(now, range)));
        let scale = 10f64.powi(self.decimals);
        let percent = |count: u64| (count as f64 / all.max(1) as f64 * 100.0 * scale).round() / scale;
        let distribution = if (self.distributed)(now, range) { "distribution" } else { "other" };
        let stated = (self.states)(range).map_or_else(String::new, |range| {
            format!(r#","start_date":"{}","end_date":"{}""#, instant(range.start), instant(range.end))
        });
        format!(
            r#"{{"status":"success","data":{{"{distribution}":{{"500ms":{},"{}":{},"1hr":{}}},"total_requests":{total},"percentiles":{{}}{stated}}}}}"#,
            percent(fast / 2),
            (self.label)(now),
            percent(fast),
            percent(all),
        )
    }

    async fn serve(self, clock: Clock) -> String {
        let server = Server::start(move |seen| {
            let (now, range) = (clock.unix_seconds(), seen.range());
            let date = httpdate::fmt_http_date(instant(now).into());
            let app = seen.target.split('/').nth(5).unwrap();
            status((self.status)(now, range, app), self.reply(now, range)).with("date", date)
        });
        format!("http://{}", server.await.address)
    }
}

/// An exporter of a few apps that polls such a service by hand. Needs paused time: the clocks follow it.
pub(super) struct Exporter {
    pub(super) context: Context,
    pub(super) plan: Plan,
    clock: Clock,
    pub(super) key: Key,
}

impl Exporter {
    pub(super) async fn start(service: Service, accounting: &str) -> Self {
        let clock = Clock::starting_at(instant(START + 65));
        let world = World::new(Settings { projects: 1, apps: 4, ..Settings::default() }, clock.clone());
        let url = service.serve(clock.clone()).await;
        let tables = format!(
            "[poll]\nresources = [\"response_time\"]\nwindows = [\"1m\"]\n[accounting]\n{accounting}\n"
        );
        let config = Configuration::new(&world, &url)
            .api("max_retries = 0\nmax_requests_per_second = 0\n")
            .tables(&tables)
            .load();
        let (context, _) = rig::open(None, &clock).await;
        let plan = rig::plan(config, &context, None);
        let key = plan.targets.iter().find(|target| target.counter.is_some()).unwrap().key.clone();
        Self { context, plan, clock, key }
    }

    /// One that has polled such a service until it is `second`.
    pub(super) async fn polled(service: Service, accounting: &str, second: i64) -> Self {
        let exporter = Self::start(service, accounting).await;
        exporter.poll_until(second, |_| ()).await;
        exporter
    }

    /// Polls once a minute until it is `second`; `look` after each round.
    pub(super) async fn poll_until(&self, second: i64, mut look: impl FnMut(&Self)) {
        while self.clock.unix_seconds() < second {
            rig::poll(&self.context, &self.plan, |_| true).await;
            look(self);
            tokio::time::advance(Duration::from_secs(60)).await;
        }
    }

    pub(super) fn ledger(&self) -> Arc<Ledger> {
        self.context.ledgers.ledger(&self.key).unwrap()
    }

    pub(super) fn page(&self) -> String {
        rig::page(&self.context, Format::Text)
    }

    /// The counters: all requests, and those that took up to a second.
    pub(super) fn counts(&self) -> (u64, u64) {
        let ledger = self.ledger();
        let fast = ledger.buckets().find(|(threshold, _)| *threshold == 1.0).map_or(0, |(_, count)| count);
        (ledger.total, fast)
    }
}

/// Lets an exporter poll `service` until every hour was counted again.
pub(super) async fn survived(service: Service, accounting: &str) -> Exporter {
    let exporter = Exporter::start(service, accounting).await;
    let mut before = (0, 0);
    exporter
        .poll_until(DONE, |exporter| {
            let counts = exporter.context.ledgers.ledger(&exporter.key).map_or(before, |_| exporter.counts());
            assert!(counts.0 >= before.0 && counts.1 >= before.1, "{counts:?} after {before:?}");
            before = counts;
        })
        .await;
    let ledger = exporter.ledger();
    let passed = u64::try_from(ledger.until - START).unwrap();
    assert_eq!(ledger.accounted + ledger.unaccounted, passed, "{ledger:?}");
    exporter
}
