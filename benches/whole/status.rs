//! What the status page of many apps costs, in this process.

use std::time::Instant;

use pds_exporter::web::pages::Rendered;

use crate::fixture::rivals;
use crate::fixture::site::site;
use crate::table::{Figure, Table, Target};

/// The overview, its model read anew each time, and what a browser loads of it.
pub(crate) fn overview(_daemon: &str, table: &mut Table) {
    for (apps, name, most) in [(2_000, "2,000", 50.0), (10_000, "10,000", 250.0)] {
        let (forget, site) = site(apps);
        let mut page = String::new();
        let rounds = (0..21).map(|_| {
            forget();
            let began = Instant::now();
            let reply = site.respond("/", "");
            let took = began.elapsed().as_secs_f64() * 1e3;
            assert!(matches!(reply, Rendered::Page(_)));
            if let Rendered::Page(text) = reply {
                page = text;
            }
            took
        });
        let rounds = Figure::of(rounds.collect());
        table.row(
            &format!("status page of {name} apps, ms"),
            rounds,
            1,
            Target::AtMost(most),
            "model and first page, made anew",
        );
        #[expect(clippy::cast_precision_loss, reason = "a page is far below 2^53 bytes")]
        let weight = rivals::gzip(page.as_bytes()).len() as f64 / 1e3;
        table.row(
            &format!("status page of {name} apps, kB"),
            Figure::of(vec![weight]),
            1,
            Target::AtMost(20.0),
            "first page, gzip",
        );
    }
}
