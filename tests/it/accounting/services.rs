//! Services that a ledger has to survive, each honest but for what is said: a server of its own for each row.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pds_client::Turn;
use pds_core::clock::Clock;
use pds_exporter::poll::{Context, Plan, execute};
use pds_exposition::Format;
use pds_interface::TimeRange;
use pds_interface::range::instant;
use pds_ledger::{Key, Ledger};
use pds_simulator::{Settings, World};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::rig::{self, Configuration};

/// 10:00, when counting begins.
const START: i64 = 1_772_359_200;
/// From here on there is no traffic.
const END: i64 = START + 6 * 3600;
/// By then every hour was counted again, and late data added.
const DONE: i64 = END + 4 * 3600;

/// A second of an hour after the start.
const fn at(hour: i64, minute: i64) -> i64 {
    START + (hour - 10) * 3600 + minute * 60
}

/// The service's knowledge of a second at `now`.
#[derive(Clone, Copy)]
struct Service {
    /// Whether it knows of the requests of that second; the last argument says whether they take more than a second.
    knows: fn(now: i64, second: i64, slow: bool) -> bool,
    /// Status of its replies about a range.
    status: fn(now: i64, range: TimeRange) -> u16,
    /// The label of the threshold of one second.
    label: fn(now: i64) -> &'static str,
    /// Decimals of its shares in percent.
    decimals: i32,
}

/// A service without fault.
const IDEAL: Service = Service { knows: |_, _, _| true, status: |_, _| 200, label: |_| "1s", decimals: 12 };

/// Requests in a second: 10,800 an hour; those of every fiftieth second take more than a second.
fn requests(second: i64) -> u64 {
    if second < END { 2 + second.unsigned_abs() % 3 } else { 0 }
}

fn is_slow(second: i64) -> bool {
    second % 50 == 7
}

/// How many there are in `range`, and how many of them take up to a second, as far as they are `known`.
fn counted(range: TimeRange, known: impl Fn(i64) -> bool) -> (u64, u64) {
    (range.start..range.end).filter(|second| known(*second)).fold((0, 0), |(all, fast), second| {
        let count = requests(second);
        (all + count, fast + if is_slow(second) { 0 } else { count })
    })
}

fn truth(until: i64) -> (u64, u64) {
    counted(TimeRange { start: START, end: until }, |_| true)
}

impl Service {
    fn reply(self, now: i64, range: TimeRange) -> String {
        let (total, fast) =
            counted(range, |second| second < now && (self.knows)(now, second, is_slow(second)));
        let scale = 10f64.powi(self.decimals);
        let percent = |count: u64| (count as f64 / total.max(1) as f64 * 100.0 * scale).round() / scale;
        format!(
            r#"{{"status":"success","data":{{"distribution":{{"500ms":{},"{}":{},"1hr":{}}},"total_requests":{total},"percentiles":{{}},"start_date":"{}","end_date":"{}"}}}}"#,
            percent(fast / 2),
            (self.label)(now),
            percent(fast),
            percent(total),
            instant(range.start),
            instant(range.end),
        )
    }

    async fn serve(self, clock: Clock) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let clock = clock.clone();
                tokio::spawn(async move {
                    let (read, mut write) = stream.split();
                    let mut lines = BufReader::new(read).lines();
                    while let Ok(Some(first)) = lines.next_line().await {
                        while lines.next_line().await.unwrap().is_some_and(|line| !line.is_empty()) {}
                        let now = clock.unix_seconds();
                        let bound = |name: &str| {
                            let (_, value) = first.split_once(&format!("{name}=")).unwrap();
                            let value = value.split(['&', ' ']).next().unwrap().replace("%3A", ":");
                            value.parse::<Timestamp>().unwrap().as_second()
                        };
                        let range = TimeRange { start: bound("start"), end: bound("end") };
                        let (status, body) = ((self.status)(now, range), self.reply(now, range));
                        let date = httpdate::fmt_http_date(instant(now).into());
                        let length = body.len();
                        let reply = format!(
                            "HTTP/1.1 {status} X\r\nDate: {date}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
                        );
                        write.write_all(reply.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        url
    }
}

/// An exporter of a few apps that polls such a service by hand. Needs paused time: the clocks follow it.
struct Exporter {
    context: Context,
    plan: Plan,
    clock: Clock,
    key: Key,
}

impl Exporter {
    async fn start(service: Service, accounting: &str) -> Self {
        let clock = Clock::starting_at(instant(START + 65));
        let world = World::new(Settings { projects: 1, apps: 4, ..Settings::default() }, clock.clone());
        let url = service.serve(clock.clone()).await;
        let tables = format!(
            "[poll]\nresources = [\"response_time\"]\nwindows = [\"1m\"]\n[accounting]\naudit = false\n{accounting}"
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

    /// Polls once a minute until it is `second`; `look` after each round.
    async fn poll_until(&self, second: i64, mut look: impl FnMut(&Self)) {
        while self.clock.unix_seconds() < second {
            for target in &self.plan.targets {
                execute::poll(&self.context, &self.plan, target, Turn::new(&target.account)).await;
            }
            look(self);
            tokio::time::advance(Duration::from_secs(60)).await;
        }
    }

    fn ledger(&self) -> Arc<Ledger> {
        self.context.ledgers.ledger(&self.key).unwrap()
    }

    fn page(&self) -> String {
        rig::page(&self.context, Format::Text)
    }

    /// The counters: all requests, and those that took up to a second.
    fn counts(&self) -> (u64, u64) {
        let ledger = self.ledger();
        let fast = ledger.buckets().find(|(threshold, _)| *threshold == 1.0).map_or(0, |(_, count)| count);
        (ledger.total, fast)
    }
}

/// Lets an exporter poll `service` until every hour was counted again.
async fn survived(service: Service, accounting: &str) -> Exporter {
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

/// Whether it is one of the twentieth part of requests that a service knows of only a quarter of an hour later.
fn is_late(second: i64) -> bool {
    second % 20 == 3
}

#[tokio::test(start_paused = true)]
async fn requests_that_arrive_once_they_are_finished_are_counted_in_their_buckets() {
    let service = Service { knows: |now, second, slow| !slow || now >= second + 1200, ..IDEAL };
    let exporter = survived(service, "").await;
    assert_eq!(exporter.counts(), truth(END));
    assert_eq!((exporter.ledger().overcounted, exporter.ledger().disputed), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn half_an_hour_of_zeros_instead_of_errors_loses_nothing() {
    let service = Service { knows: |now, _, _| !(at(13, 20)..at(13, 50)).contains(&now), ..IDEAL };
    let exporter = survived(service, "").await;
    assert_eq!(exporter.counts(), truth(END));
    assert_eq!((exporter.ledger().overcounted, exporter.ledger().debt()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn zeros_of_all_busy_apps_are_requested_again_for_ten_minutes() {
    let service = Service { knows: |now, _, _| !(at(13, 20)..at(13, 28)).contains(&now), ..IDEAL };
    let exporter = Exporter::start(service, "").await;
    exporter.poll_until(at(13, 20), |_| ()).await;
    let before = exporter.ledger().until;
    exporter
        .poll_until(at(13, 28), |exporter| {
            assert_eq!(exporter.ledger().until, before, "nothing is counted");
            assert!(exporter.page().contains("pds_app_requests_total{"), "{}", exporter.page());
        })
        .await;
    exporter.poll_until(at(13, 30), |_| ()).await;
    let ledger = exporter.ledger();
    assert!(ledger.until >= at(13, 27) && ledger.total == truth(ledger.until).0, "{ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn a_recreated_app_keeps_its_counts_and_gets_its_late_data() {
    let service = Service {
        knows: |now, second, _| {
            (now < at(12, 10) || second >= at(12, 10)) && (!is_late(second) || now >= second + 900)
        },
        ..IDEAL
    };
    let exporter = survived(service, "").await;
    let ledger = exporter.ledger();
    let late = |start, end| counted(TimeRange { start, end }, is_late).0;
    let lost = truth(END).0 - ledger.total;
    // The last two minutes were not counted yet.
    let gone = late(START, at(13, 0)) + counted(TimeRange { start: at(12, 8), end: at(12, 10) }, |_| true).0;
    assert!(lost <= gone, "{lost} of {gone}");
    assert!(ledger.late >= late(at(13, 0), END), "{ledger:?}");
    assert!(ledger.disputed > 0 && (ledger.overcounted, ledger.debt()) == (0, 0), "{ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn a_history_shorter_than_the_rechecks_is_disputed_and_late_data_is_added() {
    let service = Service {
        knows: |now, second, _| now < second + 3 * 3600 && (!is_late(second) || now >= second + 900),
        ..IDEAL
    };
    let exporter = survived(service, "recheck_after = [\"30m\", \"3h\"]").await;
    let ledger = exporter.ledger();
    assert_eq!(exporter.counts(), truth(END), "{ledger:?}");
    assert!(ledger.disputed >= 5 && ledger.disputes().is_some(), "{ledger:?}");
    assert!(exporter.page().contains("pds_app_disputed_hours_total{"));
}

#[tokio::test(start_paused = true)]
async fn a_renamed_threshold_leaves_the_page_within_three_polls() {
    let service = Service { label: |now| if now < at(12, 0) { "1s" } else { "1200ms" }, ..IDEAL };
    let exporter = Exporter::start(service, "").await;
    exporter.poll_until(at(12, 0), |_| ()).await;
    assert!(exporter.page().contains("le=\"1.0\""));
    exporter.poll_until(at(12, 4), |_| ()).await;
    let page = exporter.page();
    assert!(!page.contains("_bucket{") || !page.contains("le=\"1.0\""), "{page}");
    assert!(page.contains("le=\"1.2\""));
}

#[tokio::test(start_paused = true)]
async fn a_stretch_that_is_refused_for_an_hour_is_counted_later() {
    let service = Service {
        status: |now, range| {
            let touches = range.start < at(12, 31) && range.end > at(12, 30);
            if touches && now < at(13, 40) { 500 } else { 200 }
        },
        ..IDEAL
    };
    let exporter = Exporter::start(service, "").await;
    exporter.poll_until(at(12, 58), |_| ()).await;
    let stands = exporter.ledger();
    assert_eq!((stands.until, stands.pending()), (at(12, 30), 0), "a server error may be over in a while");
    exporter.poll_until(at(13, 10), |_| ()).await;
    let pending = exporter.ledger();
    assert_eq!((pending.pending(), pending.unaccounted), (60, 0), "{pending:?}");
    exporter.poll_until(DONE, |_| ()).await;
    let ledger = exporter.ledger();
    assert_eq!(exporter.counts(), truth(END), "{ledger:?}");
    assert_eq!((ledger.pending(), ledger.unaccounted), (0, 0));
    assert_eq!(ledger.accounted, u64::try_from(ledger.until - START).unwrap());
}

#[tokio::test(start_paused = true)]
async fn shares_in_whole_percent_are_counted_within_their_resolution() {
    let exporter = survived(Service { decimals: 0, ..IDEAL }, "").await;
    let ((total, fast), (all, of_truth)) = (exporter.counts(), truth(END));
    assert_eq!(total, all);
    let percent = (fast as f64 - of_truth as f64).abs() / all as f64 * 100.0;
    assert!(percent <= 0.5, "{percent} %");
}
