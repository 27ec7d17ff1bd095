//! The cost of scrapes while nothing changes.

use std::time::Duration;

use crate::daemon::{Exporter, Setting};
use crate::process::{Core, Process, role};
use crate::scrape;
use crate::table::{self, Figure, Target};

const QUIET: &str = "[poll]\ninterval = \"1h\"\nsettings_interval = \"1h\"\nstale_after = \"10h\"\n";

/// Pages when nothing has changed, against a server that answers with the same bytes.
pub(crate) fn throughput(daemon: &str) {
    for (apps, size) in [(10, "1k"), (1_000, "100k"), (10_000, "1M")] {
        let exporter = Exporter::start(daemon, Setting::new(apps, QUIET)).ready();
        for gzip in [false, true] {
            // A large page is kept if nothing changes while it is sent.
            exporter.scraper(gzip).get(|_| ());
            std::thread::sleep(Duration::from_millis(50));
            let body = exporter.scraper(gzip).body();
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &body).unwrap();
            let mut constant = role("constant", Core::First);
            constant.arg(file.path());
            let constant = Process::start(constant);
            let rounds = (0..9).map(|_| {
                let ours = scrape::throughput(&exporter.metrics(), gzip, Duration::from_secs(1));
                ours / scrape::throughput(&format!("{}/", constant.url), gzip, Duration::from_secs(1))
            });
            let rounds = Figure::of(rounds.collect());
            let coding = if gzip { "gzip" } else { "plain" };
            let what = format!("unchanged page of {size} series, {coding} / constant body");
            // A plain page is rendered for each request.
            let target = if gzip { Target::AtLeast(0.9) } else { Target::None };
            table::row(&what, rounds, 2, target, &format!("throughput, {} kB", body.len() / 1000));
        }
    }
}
