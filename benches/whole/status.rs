//! What the status page of many apps costs, in this process.

use std::time::Instant;

use pds_exporter::web::pages::Rendered;

use crate::fixture::site::site;
use crate::table::{Figure, Table, Target};

/// The overview, its model read anew each time.
pub(crate) fn overview(_daemon: &str, table: &mut Table) {
    let (forget, site) = site(2_000);
    let rounds = (0..21).map(|_| {
        forget();
        let began = Instant::now();
        let reply = site.respond("/", "");
        let took = began.elapsed().as_secs_f64() * 1e3;
        assert!(matches!(reply, Rendered::Page(_)));
        took
    });
    let rounds = Figure::of(rounds.collect());
    table.row(
        "status page of 2,000 apps, ms",
        rounds,
        1,
        Target::AtMost(50.0),
        "model and first page, made anew",
    );
}
