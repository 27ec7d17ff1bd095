//! Several daemons with one configuration: each polls its share, together they poll everything.

use std::collections::BTreeSet;

use pds_core::clock::Clock;
use pds_simulator::{Settings, World};

use crate::process::{Exporter, series};
use crate::rig;

use super::fast::configuration;

/// The targets on the page.
async fn targets(exporter: &Exporter) -> BTreeSet<String> {
    exporter.wait_for("/-/ready").await;
    let page = exporter.get("/metrics").await;
    let up = series(&page).filter(|(name, up)| name.starts_with("pds_up{") && *up == 1.0);
    up.map(|(name, _)| name.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_poll_everything_and_nothing_twice() {
    let world = World::new(Settings { projects: 4, apps: 8, ..Settings::default() }, Clock::system());
    let service = rig::serve(&world).await;
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(&world, &service, "").write(folder.path());
    let start = |flags: &[&str]| {
        let config = format!("--config.file={config}");
        Exporter::start(&[&[config.as_str()], flags].concat())
    };

    let whole = targets(&start(&[])).await;
    let mut together = BTreeSet::new();
    for index in ["0", "1", "2"] {
        let shard = start(&["--shard.count=3", "--shard.index", index]);
        let share = targets(&shard).await;
        let told = format!("shard_index={index} shard_count=3");
        assert!(shard.log().lines().any(|line| line.contains("message=started ") && line.contains(&told)));
        assert!(!share.is_empty() && share.len() < whole.len(), "shard {index} polls {}", share.len());
        for target in share {
            assert!(together.insert(target.clone()), "{target} is polled twice");
        }
    }
    assert_eq!(together, whole);
}
