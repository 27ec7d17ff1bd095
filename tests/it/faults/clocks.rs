//! The service's clock and ours are apart: what is counted then, what stands on the page, and what its first sentence
//! says.

use pds_interface::get_app;

use super::rig::Rig;

const HOUR: i64 = 3600;
/// 2026-03-01T12:00:00Z, the last whole step that has settled at the rig's first poll by its clock.
const NOON: i64 = 1_772_366_400;
/// The rig polls seven seconds after a minute: by then the last whole step that has settled ended so long ago.
const SETTLING: i64 = 67;

/// Nothing fails, and the metric tells how far the clocks are apart.
fn assert_well(rig: &Rig, apart: i64) {
    let page = rig.page();
    assert!(page.all_up(), "{}", page.text);
    let error = page.value("pds_api_clock_skew_seconds") - apart as f64;
    assert!(error.abs() < 2.0, "{error}");
}

/// The reason for clocks that are an hour apart.
fn apart(side: &str) -> String {
    format!(
        "The clocks of the service and of this machine differ: the service's is 1 h {side} this machine's"
    )
}

/// The counters of all apps stand still, and have done so for so long: page, sentence and reasons say it.
fn assert_still(rig: &Rig, side: &str, since: i64) {
    assert_well(rig, if side == "behind" { -HOUR } else { HOUR });
    assert_eq!(rig.counted_from(NOON), since, "the counters stand still");
    assert_eq!(rig.sentence(), "The numbers of all 4 apps cannot be trusted.");
    let still = "Counters stand still, because a clock was set back or poll.settle was raised: 4 apps (p-0ti0wmkn-ranker, p-0ti0wmkn-embed, p-6alstmjz-chat, ...)";
    assert_eq!(rig.reasons(), [still.to_owned(), apart(side)]);
}

/// A rig that was polled three times, and whose numbers can be trusted.
async fn polled() -> Rig {
    let rig = Rig::start(get_app::RESOURCE).await;
    for _ in 0..3 {
        rig.poll().await;
    }
    assert_eq!(rig.sentence(), TRUSTED);
    rig
}

const TRUSTED: &str = "All numbers can be trusted: 4 apps, every resource fresh.";

#[tokio::test]
async fn by_a_clock_that_is_apart_from_the_start_everything_is_counted() {
    for (ahead, side, first, settling) in
        [(-HOUR, "behind", NOON - HOUR, HOUR + SETTLING), (HOUR, "ahead of", NOON, SETTLING)]
    {
        let rig = Rig::start(get_app::RESOURCE).await;
        rig.set_clock_apart(ahead);
        for poll in 0..6 {
            rig.poll().await;
            assert_eq!(rig.counted_from(first), settling, "{side}: poll {poll}");
            assert_well(&rig, ahead);
            assert_eq!(rig.reasons(), [apart(side)]);
        }
        assert!(rig.page().sum("pds_app_requests_total") > 0.0, "{side}");
    }
}

#[tokio::test]
async fn a_service_set_back_stops_the_counters_until_its_clock_has_caught_up() {
    let rig = polled().await;
    let before = rig.page().sum("pds_app_requests_total");

    rig.set_clock_apart_before_metrics(-HOUR);
    rig.poll().await;
    let unsettled =
        "response time: the clocks of the service and of this machine disagree about the requested time"
            .to_owned();
    assert!(rig.problems().contains(&unsettled), "the reply that brings the news: {:?}", rig.problems());
    let down =
        rig.page().text.lines().filter(|line| line.starts_with("pds_up{") && line.ends_with(" 0")).count();
    assert_eq!(down, 1, "by then all others know");

    rig.set_clock_apart(-HOUR);
    let behind = rig.counted_from(NOON);
    for poll in 1..6 {
        rig.poll().await;
        assert_still(&rig, "behind", behind + poll * 60);
        let until = "response time, run execution time: counters stand still, because a clock was set back or poll.settle was raised, until 2026-03-01 12:02:30 UTC";
        assert_eq!(rig.problems(), [until.to_owned()].into());
    }
    assert_eq!(rig.page().sum("pds_app_requests_total"), before);

    rig.mend().await;
    rig.poll().await;
    rig.poll().await;
    assert_well(&rig, 0);
    assert_eq!(rig.counted_from(NOON), SETTLING, "nothing is lost, and nothing is counted twice");
    assert_eq!(rig.sentence(), TRUSTED);
    assert!(rig.page().sum("pds_app_requests_total") > before);
}

#[tokio::test]
async fn ours_set_back_stops_the_counters_too() {
    let rig = polled().await;
    rig.set_ours(-HOUR);
    rig.poll().await;
    let ended = rig.counted_from(NOON);
    for poll in 1..4 {
        rig.poll().await;
        assert_still(&rig, "ahead of", ended + poll * 60);
    }
    rig.set_ours(HOUR);
    rig.poll().await;
    assert_eq!(rig.counted_from(NOON), SETTLING, "nothing is lost, and nothing is counted twice");
    assert_eq!(rig.sentence(), TRUSTED);
}

#[tokio::test]
async fn if_the_service_clock_is_ahead_ours_decides() {
    let rig = Rig::start(get_app::RESOURCE).await;
    rig.poll().await;
    rig.set_clock_apart(HOUR);
    for poll in 0..6 {
        rig.poll().await;
        assert_eq!(rig.counted_from(NOON), SETTLING, "poll {poll}");
        assert_well(&rig, HOUR);
        assert_eq!(rig.reasons(), [apart("ahead of")]);
    }
}

#[tokio::test]
async fn counting_begins_with_the_first_reply_and_not_before() {
    let rig = Rig::start(get_app::RESOURCE).await;
    rig.strike_all(500);
    rig.poll_metrics().await;
    assert_eq!(
        rig.page().sum("pds_app_accounted_until_timestamp_seconds"),
        0.0,
        "nobody vouches for our clock"
    );
    rig.mend().await;
    rig.set_clock_apart(-HOUR);
    // The first reply disagrees with our clock; the second one decides, and whoever was asked before it begins later.
    rig.poll_metrics().await;
    let opened = rig.cursors();
    rig.poll_metrics().await;
    // All begin at the steps that the service's clock names, and none before it.
    let first = rig.cursors();
    let begun = NOON - HOUR + 60..=NOON - HOUR + 120;
    assert!(first.len() == 8 && first.values().all(|until| begun.contains(until)), "{first:?}");
    // The buckets are there at zero before the first of them moves.
    let page = rig.page();
    assert!(page.text.contains("pds_app_request_duration_seconds_bucket"), "{}", page.text);
    rig.poll().await;
    let counted = rig.counted_since(&opened, &first);
    let moved = counted.values().filter(|(from, until)| until > from).count();
    assert!(moved >= 6, "{counted:?}");
    assert!(rig.page().sum("pds_app_requests_total") > 0.0);
}

#[tokio::test]
async fn a_date_of_1970_fails_the_first_polls_and_moves_no_counter() {
    let rig = polled().await;
    rig.set_clock_apart(-NOON);
    for poll in 1..4 {
        rig.poll().await;
        let problem = "response time, run execution time: the clocks of the service and of this machine disagree about the requested time";
        // Once it has advanced for a minute, it is trusted.
        assert_eq!(rig.problems().contains(problem), poll == 1, "{:?}", rig.problems());
        assert!(!rig.problems().iter().any(|problem| problem.contains("app:")), "settings have no time");
        assert_eq!(rig.counted_from(NOON), SETTLING + poll * 60, "nothing is asked for in 1969");
    }
    rig.mend().await;
    rig.poll().await;
    rig.poll().await;
    assert_eq!(rig.counted_from(NOON), SETTLING);
}
