//! A hundred thousand apps over ten shards: who polls what, and what it costs the service and Prometheus. A table of
//! `docs/scale.md` is made of it; `UPDATE_GOLDEN=1` rewrites it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use pds_config::shard::Shard;
use pds_config::{App, Config, Project};
use pds_core::clock::Clock;
use pds_core::units::rounded;
use pds_exporter::app::daemon::Handle;
use pds_exposition::Format;
use pds_simulator::journal::{Entry, Journal};
use pds_simulator::{Settings, World};

use crate::golden::assert_current;
use crate::rig::{self, Configuration};

const SHARDS: u32 = 10;

/// Series of an app that has all of them, and what the rules record of it every 30 seconds at most; idle apps have fewer.
const SERIES: f64 = 100.0;
const RECORDED: f64 = 18.0;
/// Bytes of a series on the page with its share of heads, as they are and in gzip.
const PLAIN: f64 = 107.0;
const GZIP: f64 = 11.0;

/// The configuration's defaults with 100,000 apps in 1,000 projects of one service account.
fn large() -> Config {
    let text = "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"t\"\n[[projects]]\nid = \"p\"\napps = [\"a\"]";
    let mut config = pds_config::load_text(Path::new("pds-exporter.toml"), text).unwrap().config;
    let like = config.projects.remove(0);
    let app = |project: u32, app: u32| App {
        id: format!("p-{project:08x}-app-{app}").into(),
        ..like.apps[0].clone()
    };
    let project = |project: u32| Project {
        id: format!("p-{project:08x}").into(),
        apps: (0..100).map(|number| app(project, number)).collect(),
        ..like.clone()
    };
    // Ids without a pattern, as the service gives them.
    config.projects = (0..1_000u32).map(|number| project(number.wrapping_mul(2_654_435_761))).collect();
    config
}

fn shards(config: &Config, count: u32) -> Vec<Config> {
    let count = NonZeroU32::new(count).unwrap();
    (0..count.get()).map(|index| config.clone().shard(Shard { index, count })).collect()
}

/// The least `max_requests_per_second` that carries a load of so many requests a minute.
fn limit(a_minute: f64) -> u32 {
    (a_minute / 60.0).ceil() as u32
}

#[test]
fn shards_together_send_the_requests_of_one_exporter_and_their_lists_of_projects_within_their_limits() {
    let whole = large();
    let mut together = 0.0;
    for mut shard in shards(&whole, SHARDS) {
        let demand = shard.requests_per_minute();
        together += demand.total;
        shard.api.max_requests_per_second = NonZeroU32::new(limit(demand.total));
        assert_eq!(demand.overload(&shard.api), None);
        shard.api.max_requests_per_second = NonZeroU32::new(limit(demand.total) - 1);
        assert!(demand.overload(&shard.api).is_some());
    }
    let lists = f64::from(SHARDS - 1) * 60.0 / whole.poll.settings_interval.as_secs_f64();
    let alone = whole.requests_per_minute().total;
    assert!(
        (together - alone - lists).abs() < 1e-3,
        "{together} together, {alone} alone, {lists} lists more"
    );
}

#[test]
fn the_table_of_rates_is_current() {
    assert_current("docs/scale.md", "rates", &rates());
}

/// The requests of exporters of so many apps to the service, and their cost in Prometheus.
fn rates() -> String {
    // Memory of Prometheus as measured; what it takes on disk per sample as its documentation states it (1 to 2 bytes).
    let rows = std::fs::read_to_string("benches/prometheus.md").unwrap();
    let measured = rows.lines().find(|row| row.starts_with("| 60 s | | yes |")).unwrap();
    let gigabytes: f64 = measured.split('|').nth(5).unwrap().trim().parse().unwrap();
    let (series_bytes, sample_bytes) = (gigabytes * 1e9 / (10_000.0 * (SERIES + RECORDED)), 1.5);
    let mut table = format!(
        "The service and Prometheus, calculated for {SERIES} series per app, one scrape a minute, {} kB per series and \
         {sample_bytes} bytes per sample:\n\n\
         | apps | requests a second | with `windows = [\"1m\"]` | series | recorded by rules | samples a second \
         | page, MB | in gzip, MB | Prometheus: memory, GB | its disk a day, GB |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        (series_bytes / 100.0).round() / 10.0
    );
    for projects in [10, 100, 1_000, 10_000_u32] {
        let mut config = large();
        // Beyond a thousand projects, everything is as often as much.
        let times = f64::from((projects / 1_000).max(1));
        config.projects.truncate(projects as usize);
        let rate = times * config.requests_per_minute().total / 60.0;
        config.poll.windows = vec![config.accounting.step];
        let shared = times * config.requests_per_minute().total / 60.0;
        let apps = f64::from(projects) * 100.0;
        let (series, recorded) = (apps * SERIES, apps * RECORDED);
        let samples = (series + recorded) / 60.0;
        let counts = [apps, rate, shared, series, recorded, samples].map(thousands).join(" | ");
        let [page, gzip, memory, disk] = [
            series * PLAIN / 1e6,
            series * GZIP / 1e6,
            (series + recorded) * series_bytes / 1e9,
            samples * 86_400.0 * sample_bytes / 1e9,
        ];
        writeln!(table, "| {counts} | {page:.0} | {gzip:.1} | {memory:.2} | {disk:.2} |").unwrap();
    }
    table
}

/// A figure with commas, rounded to four digits at most: what is above is noise.
fn thousands(figure: f64) -> String {
    let digits = figure.max(1.0).log10().floor() as i32 - 3;
    let grain = 10f64.powi(digits.max(0));
    rounded((figure / grain).round() * grain)
}

/// Ten exporters that share the apps of one simulated service, each with its part of the service's rate.
struct Simulation {
    world: World,
    shards: Vec<Handle>,
    /// The service's limit a second, of which each shard has a tenth.
    allowed: u32,
}

impl Simulation {
    async fn start(poll: &str) -> Self {
        // No hour ends meanwhile: a range ends there, whatever is due.
        let clock = Clock::starting_at("2026-03-01T12:05:00Z".parse().unwrap());
        let settings = Settings { projects: 10, apps: 500, journal: 100_000, ..Settings::default() };
        let world = World::new(settings, clock.clone());
        let whole = Configuration::new(&world, &rig::serve(&world).await).tables(poll).load();
        let mut simulation = Self { world, shards: Vec::new(), allowed: 0 };
        let shards = shards(&whole, SHARDS);
        let each = shards.iter().map(|shard| limit(shard.requests_per_minute().total)).max().unwrap();
        simulation.allowed = each * SHARDS;
        for mut shard in shards {
            shard.api.max_requests_per_second = NonZeroU32::new(each);
            simulation.shards.push(rig::daemon(shard, &clock).await);
        }
        simulation
    }

    /// Whether every shard has asked every target once.
    fn is_ready(&self) -> bool {
        self.shards.iter().all(Handle::is_ready)
    }

    /// How many of the requests a service refuses that allows `allowed` a second and never more than that at once.
    fn refused(&self, journal: &Journal) -> usize {
        let rate = f64::from(self.allowed);
        let (mut left, mut last) = (rate, journal.entries[0].at.as_millisecond());
        let mut refused = 0;
        for entry in &journal.entries {
            let now = entry.at.as_millisecond();
            left = (left + (now - last) as f64 / 1000.0 * rate).min(rate);
            last = now;
            if left < 1.0 {
                refused += 1;
            } else {
                left -= 1.0;
            }
        }
        refused
    }
}

#[tokio::test(start_paused = true)]
async fn simulated_shards_keep_to_the_rate_of_the_service_and_request_every_minute_of_every_app_once() {
    const MINUTES: i64 = 3;
    let tables = "[poll]\nwindows = [\"1m\"]\n[accounting]\naudit = false";
    let simulation = Simulation::start(tables).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(simulation.is_ready(), "the first round is over");
    let before = simulation.world.requests().entries.len();
    tokio::time::sleep(Duration::from_secs(60 * MINUTES.unsigned_abs())).await;

    let journal = simulation.world.requests();
    assert_eq!(journal.by_status.keys().collect::<Vec<_>>(), [&200]);
    assert_eq!(simulation.refused(&journal), 0, "of {}", journal.total);

    let mut ranges: HashMap<(&str, &str), Vec<(i64, i64)>> = HashMap::new();
    for entry in journal.entries.iter().skip(before) {
        if let Entry { call, app: Some(app), range: Some(range), .. } = entry {
            ranges.entry((call, app)).or_default().push((range.start, range.end));
        }
    }
    assert_eq!(ranges.len(), 2 * 500, "two calls for each app");
    let mut merged = 0;
    for (target, asked) in &mut ranges {
        let minutes = asked.windows(2).all(|pair| pair[0].1 == pair[1].0 && pair[1].1 - pair[1].0 == 60);
        if minutes && (MINUTES - 1..=MINUTES + 1).contains(&(asked.len() as i64)) {
            continue;
        }
        // Polls begin up to a tenth of a second late. Those that are due so shortly before a minute settles may see two
        // settle at once, and ask for both together.
        merged += 1;
        asked.sort_unstable();
        assert!(
            asked.windows(2).all(|pair| pair[1].0 <= pair[0].1),
            "{target:?} left out a minute: {asked:?}"
        );
    }
    assert!(merged <= ranges.len() / 100, "{merged} of {} targets do not ask minute by minute", ranges.len());
}

#[tokio::test(start_paused = true)]
async fn an_app_has_as_many_bytes_of_the_page_as_in_the_table() {
    let simulation = Simulation::start("").await;
    tokio::time::sleep(Duration::from_secs(180)).await;
    let (mut series, mut plain, mut gzip) = (0, 0, 0);
    for shard in &simulation.shards {
        let page = rig::page(&shard.context, Format::Text);
        series += page.lines().filter(|line| !line.starts_with('#')).count();
        plain += page.len();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
        std::io::Write::write_all(&mut packed, page.as_bytes()).unwrap();
        gzip += packed.finish().unwrap().len();
    }
    let [apps, series, plain, gzip] = [500, series, plain, gzip].map(|count| count as f64);
    let found =
        format!("{} series an app, {} and {} bytes each", series / apps, plain / series, gzip / series);
    assert!((0.8..=1.0).contains(&(series / apps / SERIES)), "{found}");
    assert!((plain / series / PLAIN - 1.0).abs() < 0.05, "{found}");
    assert!((gzip / series / GZIP - 1.0).abs() < 0.1, "{found}");
}
