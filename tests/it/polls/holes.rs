//! Time that the service always refuses: it is given up in whole steps, and nothing else is.

use std::time::Duration;

use pds_interface::response_time;
use pds_ledger::Ledger;
use pds_simulator::{Fault, Kind, Quirks, Settings};

use crate::rig::FaultExt as _;

use super::Rig;

/// 2026-03-01T12:00:00Z, the step before the first poll.
const NOON: i64 = 1_772_366_400;
const HOUR: i64 = 3600;

async fn rig(quirks: Quirks, accounting: &str) -> Rig {
    let settings = Settings { apps: 1, quirks, ..Settings::default() };
    let tables = format!("[accounting]\naudit = false\n{accounting}");
    let rig = Rig::start(settings, &tables).await;
    rig.pass(0).await;
    rig
}

/// Asserts that the ledger is up to date and holds what there was from its first second on, but for the time from
/// `start` to `end` of each hole.
fn assert_counted_but_for(rig: &Rig, first: i64, holes: &[(i64, i64)]) {
    let ledger = rig.ledger();
    let lost: u64 = holes.iter().map(|(start, end)| rig.truth(*start, *end)).sum();
    let seconds: i64 = holes.iter().map(|(start, end)| end - start).sum();
    assert_eq!(ledger.unaccounted + ledger.pending(), u64::try_from(seconds).unwrap(), "{ledger:?}");
    assert_eq!(ledger.until, rig.plan_in_force().watermark.settled_step(), "{ledger:?}");
    assert_eq!(ledger.total, rig.truth(first, ledger.until) - lost);
}

#[tokio::test(start_paused = true)]
async fn one_step_around_a_refused_second_is_given_up() {
    let refused_seconds = [NOON + 30 * 60 + 17, 0, 0, 0, 0, 0, 0, 0];
    let rig = rig(Quirks { refused_seconds, ..Quirks::default() }, "").await;
    let first = rig.ledger().until;
    rig.minutes(36).await;
    let stands = rig.ledger();
    assert_eq!((stands.until, stands.unaccounted), (NOON + 30 * 60, 0), "five intervals have not passed");
    rig.minutes(8).await;
    let hole = (NOON + 30 * 60, NOON + 31 * 60);
    assert_counted_but_for(&rig, first, &[hole]);
    let target =
        rig.plan_in_force().targets.iter().find(|target| target.key.resource == response_time::RESOURCE);
    let found = target.unwrap().progress.lock().hole.clone().unwrap();
    assert_eq!((found.start.as_second(), found.end.as_second()), hole);
    assert!(found.reason.contains("400") && found.reason.contains("no data for this range"), "{found:?}");

    let given_up = &serde_json::to_value(rig.resource(0)).unwrap()["given_up"];
    assert_eq!(given_up["start"], "2026-03-01T12:30:00Z");
    assert_eq!(given_up["end"], "2026-03-01T12:31:00Z");
    assert_eq!(given_up["reason"], *found.reason);
    let page = rig.web(&rig.of_app());
    let told = "response time of 2026-03-01 12:30:00 UTC to 2026-03-01 12:31:00 UTC was not counted, because the service refused";
    assert!(page.contains(told), "{page}");
    assert!(!rig.web("/").contains("was not counted"));
}

#[tokio::test(start_paused = true)]
async fn a_zero_that_is_not_counted_yet_is_no_part_of_a_hole() {
    let hole = NOON + 15 * 60;
    let refused_seconds = [hole + 17, 0, 0, 0, 0, 0, 0, 0];
    let rare = "[poll]\ninterval = \"5m\"\nstale_after = \"20m\"\n";
    let rig = rig(Quirks { refused_seconds, ..Quirks::default() }, rare).await;
    let requests = |json: &str| rig.world.faults().set([Fault::value("total_requests", json)]);
    requests("5000");
    for _ in 0..3 {
        rig.pass(300).await;
    }
    assert_eq!(rig.ledger().until, hole - 60, "the app was busy until then");
    requests("0");
    for _ in 0..9 {
        rig.pass(300).await;
    }
    let ledger = rig.ledger();
    assert_eq!(ledger.until, rig.plan_in_force().watermark.settled_step());
    assert_eq!(ledger.unaccounted + ledger.pending(), 60, "{ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hole_is_recorded_once_its_end_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let [there, away] = ["there", "away"].map(|name| folder.path().join(name));
    std::fs::create_dir(&there).unwrap();
    let refused_seconds = [NOON + 10 * 60 + 17, 0, 0, 0, 0, 0, 0, 0];
    let quirks = Quirks { refused_seconds, ..Quirks::default() };
    let settings = Settings { apps: 1, quirks, ..Settings::default() };
    let rig = Rig::of(settings, "[accounting]\naudit = false\n", "", Some(there.join("state"))).await;
    let has_hole =
        |rig: &Rig| rig.plan_in_force().targets.iter().any(|target| target.progress.lock().hole.is_some());
    rig.minutes(12).await;
    std::fs::rename(&there, &away).unwrap();
    rig.minutes(30).await;
    assert!(!has_hole(&rig) && rig.ledger().until == NOON + 10 * 60, "nothing is written");
    std::fs::rename(&away, &there).unwrap();
    rig.minutes(12).await;
    assert!(has_hole(&rig) && rig.ledger().until > NOON + 50 * 60);
}

#[tokio::test(start_paused = true)]
async fn each_step_of_a_cluster_is_given_up_and_none_between() {
    let minutes = [10, 11, 13, 14, 18, 27, 43, 58];
    let refused_seconds = minutes.map(|minute| NOON + minute * 60 + 5);
    let rig = rig(Quirks { refused_seconds, ..Quirks::default() }, "recheck_after = []").await;
    let first = rig.ledger().until;
    rig.minutes(5).await;
    // An outage: all of them are within one range then.
    tokio::time::advance(Duration::from_secs(3 * 3600)).await;
    rig.minutes(80).await;
    let holes = minutes.map(|minute| (NOON + minute * 60, NOON + (minute + 1) * 60));
    assert_counted_but_for(&rig, first, &holes);
}

#[tokio::test(start_paused = true)]
async fn time_older_than_the_service_keeps_is_given_up_to_the_oldest_step_it_answers() {
    let keeps_for = 2 * 86_400;
    let rig = rig(Quirks { keeps_for, ..Quirks::default() }, "max_catch_up = \"30d\"").await;
    let first = rig.ledger().until;
    rig.minutes(5).await;
    let stopped = rig.ledger().until;
    tokio::time::advance(Duration::from_secs(9 * 86_400)).await;
    rig.minutes(20).await;
    let ledger = rig.ledger();
    let end = stopped + i64::try_from(ledger.unaccounted).unwrap();
    let oldest = stopped + 9 * 86_400 - i64::from(keeps_for);
    assert!((oldest..oldest + 15 * 60).contains(&end), "{} s after what was kept", end - oldest);
    assert_counted_but_for(&rig, first, &[(stopped, end)]);
}

#[tokio::test(start_paused = true)]
async fn refused_for_its_length_alone_a_range_is_counted_in_parts() {
    let rig = rig(Quirks { longest_range: 400, ..Quirks::default() }, "").await;
    let first = rig.ledger().until;
    rig.minutes(3).await;
    tokio::time::advance(Duration::from_secs(40 * 60)).await;
    rig.minutes(60).await;
    assert_counted_but_for(&rig, first, &[]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_down_or_refuses_the_account_never_makes_a_hole() {
    let status = |status| Fault::status(status).kind;
    let wait = Kind::Status { status: 429, retry_after: Some("40".to_owned()) };
    for kind in [
        status(401),
        status(403),
        status(429),
        wait,
        status(503),
        status(500),
        Kind::Reset,
        // Longer than any poll waits.
        Kind::Latency { millis: 30_000 },
        Kind::MalformedJson,
    ] {
        for of_long_ranges in [false, true] {
            let rig = rig(Quirks::default(), "").await;
            let first = rig.ledger().until;
            rig.minutes(3).await;
            let fault = Fault::from(kind.clone()).on(response_time::RESOURCE);
            let is_outage = matches!(&kind, Kind::MalformedJson | Kind::Status { status: 500, .. });
            if of_long_ranges && is_outage {
                continue;
            }
            // A range longer than a window is caught up with.
            tokio::time::advance(Duration::from_secs(20 * 60)).await;
            rig.world.faults().set([if of_long_ranges { fault.of_ranges_longer_than(300) } else { fault }]);
            rig.minutes(25).await;
            assert_eq!(rig.ledger().unaccounted, 0, "{kind:?}");
            rig.world.faults().clear();
            tokio::time::advance(Duration::from_secs(HOUR as u64)).await;
            rig.minutes(10).await;
            assert_counted_but_for(&rig, first, &[]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_at_random_never_makes_a_hole() {
    for probability in [0.2, 0.5, 0.8] {
        let rig = rig(Quirks::default(), "").await;
        let first = rig.ledger().until;
        let fault = Fault::status(500).on(response_time::RESOURCE);
        rig.world.faults().set([fault.with_probability(probability)]);
        rig.minutes(12 * 60).await;
        assert_eq!(rig.ledger().unaccounted, 0, "{probability}");
        rig.world.faults().clear();
        rig.minutes(10).await;
        assert_counted_but_for(&rig, first, &[]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hole_is_found_before_a_check_has_passed() {
    let first = NOON - 2 * HOUR;
    let refused_seconds = [first + 30 * 60 + 17, 0, 0, 0, 0, 0, 0, 0];
    let quirks = Quirks { refused_seconds, ..Quirks::default() };
    let rig = Rig::start(Settings { apps: 1, quirks, ..Settings::default() }, "").await;
    rig.context().ledgers.commit(&rig.key(0), Ledger::open(first)).await.unwrap();
    rig.minutes(15).await;
    assert_counted_but_for(&rig, first, &[(first + 30 * 60, first + 31 * 60)]);
}
