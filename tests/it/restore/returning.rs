//! An app that moves to another shard and back. Each shard has a state file.

use std::fs::File;

use crate::process::until;

use super::rig::{Exporter, Rig, sharded};
use super::{give_up, key};

/// A process as shard `index` of two, with the state file of `disk`.
async fn shard(rig: &Rig, disk: u32, index: u32) -> Exporter {
    let state = rig.folder.path().join(format!("state-{disk}.log"));
    until("the state file is free", async || File::open(&state).map_or(true, |file| file.try_lock().is_ok()))
        .await;
    let config = rig.config(1, &format!("path = {state:?}"));
    rig.started_with(sharded(config, index, 2), &format!("shard-{disk}")).await
}

/// Two shards that exchange their indices, and exchange them back. Each polls once more after its last scrape.
async fn exchanged(rig: &Rig, mut shards: Vec<Exporter>) -> Vec<Exporter> {
    for index in [1, 0] {
        rig.pass(60).await;
        for shard in &shards {
            shard.poll().await;
        }
        shards.clear();
        shards.extend([shard(rig, 0, index).await, shard(rig, 1, 1 - index).await]);
        rig.run_all(&shards, 9, 60).await;
    }
    shards
}

async fn started(rig: &Rig) -> Vec<Exporter> {
    let shards = vec![shard(rig, 0, 0).await, shard(rig, 1, 1).await];
    rig.run_all(&shards, 6, 60).await;
    shards
}

#[tokio::test]
async fn requests_after_the_last_scrape_count_once() {
    let rig = Rig::start(1).await;
    let shards = exchanged(&rig, started(&rig).await).await;
    assert_eq!(shards.iter().map(Exporter::shown).sum::<usize>(), 1);
    rig.assert_exact();
}

#[tokio::test]
async fn pending_time_counts_once() {
    let rig = Rig::start(1).await;
    let shards = started(&rig).await;
    let ledger = |shard: &Exporter| shard.handle.context.ledgers.ledger(&key(&rig, 0));
    let owner = shards.iter().find(|shard| ledger(shard).is_some()).unwrap();
    give_up(&rig, owner, 900).await;
    rig.run_all(&shards, 2, 60).await;
    let shards = exchanged(&rig, shards).await;
    rig.run_all(&shards, 10, 900).await;
    let unaccounted = rig.prometheus.increase("pds_app_unaccounted_seconds_total", &rig.apps()[0]);
    assert_eq!(unaccounted, 900.0, "by the shard that the app moved to");
    for ledger in shards.iter().filter_map(ledger) {
        assert_eq!(ledger.pending(), 0, "{ledger:?}");
    }
}
