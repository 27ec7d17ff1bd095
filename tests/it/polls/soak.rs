//! An hour in which the service does everything at once that it may do.

use pds_interface::TimeRange;
use pds_ledger::Key;
use pds_simulator::{Fault, Kind, Quirks, Settings};

use crate::rig::{self, FaultExt as _};

use super::Rig;

/// Data comes late, requests once they are finished, shares in whole percent; ranges are rounded to minutes without a word,
/// and what is older than three hours is gone.
fn quirks() -> Quirks {
    Quirks {
        late_share: 0.03,
        late_within: 300,
        slow_late: 600,
        whole_percent: true,
        round_to: 60,
        echoes_ranges: true,
        forgets_after: 3 * 3600,
        ..Quirks::default()
    }
}

/// The faults of the service by minute of the hour.
fn faults(minute: u32) -> Vec<Fault> {
    match minute {
        5..9 => vec![Fault::status(500)],
        12..16 => vec![Fault::value("total_requests", "0"), Fault::value("total_runs", "0")],
        18..22 => vec![Fault::from(Kind::Reset).with_probability(0.5)],
        25..35 => vec![Fault::status(500).of_ranges_longer_than(90)],
        38..41 => vec![Fault::from(Kind::Nulls), Fault::from(Kind::CutBody).with_probability(0.3)],
        44..46 => vec![Fault::value("distribution", "{}")],
        48..51 => vec![Fault::status(429)],
        _ => Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_everything_at_once_is_counted_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { apps: 2, quirks: quirks(), ..Settings::default() };
    let tables = "[accounting]\nmax_catch_up = \"2h\"\n";
    let mut rig = Rig::of(settings, tables, "", Some(folder.path().join("state.log"))).await;
    rig.pass(0).await;
    let ledgers = |rig: &Rig| {
        let counted = rig.plan_in_force().targets.iter().filter(|target| target.counter.is_some());
        let keys: Vec<Key> = counted.map(|target| target.key.clone()).collect();
        keys.into_iter().map(|key| (rig.context().ledgers.ledger(&key).unwrap(), key)).collect::<Vec<_>>()
    };
    let first: Vec<i64> = ledgers(&rig).iter().map(|(ledger, _)| ledger.until).collect();
    for minute in 0..60 {
        rig.world.faults().set(faults(minute));
        match minute {
            23 => rig.restart().await,
            53 => rig.reload(&format!("[poll]\nwindows = [\"10m\"]\n{tables}")),
            _ => {}
        }
        rig.pass(60).await;
    }
    rig.world.faults().clear();
    for _ in 0..5 * 6 {
        rig.pass(600).await;
    }
    // From here on nothing comes late, so that the newest hours are complete, too.
    rig.world.end_late_data();
    for _ in 0..6 * 6 {
        rig.pass(600).await;
    }
    let mut late = 0;
    for ((ledger, key), first) in ledgers(&rig).into_iter().zip(first) {
        let range = TimeRange { start: first, end: ledger.until };
        let truth = rig.world.truth(&key.owner.project, &key.owner.app, range).unwrap();
        assert_eq!(ledger.total, rig::truth(&rig.world, &key, range), "{key}: {ledger:?}");
        assert_eq!((ledger.accounted, ledger.unaccounted), (range.seconds(), 0), "{key}");
        for ((threshold, count), within) in ledger.buckets().zip(truth.within) {
            let most = 1.0 + ledger.total as f64 * 0.005;
            let error = (count as f64 - within as f64).abs();
            assert!(error <= most, "{key} within {threshold} s: {count} of {within}");
        }
        late += ledger.late;
    }
    assert!(late > 0);
}
