//! Reasons that another reason explains.

use tokio::time::{Duration, advance};

use super::{answered, reasons};

#[tokio::test(start_paused = true)]
async fn ignored_ranges_explain_only_what_is_behind_for_their_token() {
    let fixture = answered().await;
    assert!(fixture.plan.client.account("p-1").range_ignored("another range"));
    advance(Duration::from_secs(300)).await;
    fixture.answer(1.0);
    fixture.count_until(0).await;
    fixture.count_until_of(180, |key| &*key.owner.project == "p-1").await;
    let codes =
        |all: &[pds_diagnosis::Reason]| all.iter().map(|reason| reason.code.to_string()).collect::<Vec<_>>();
    assert_eq!(codes(&reasons(&fixture).await), ["range_ignored"]);
    fixture.count_until_of(180, |key| &*key.owner.project == "p-2").await;
    let all = reasons(&fixture).await;
    assert_eq!(codes(&all), ["range_ignored", "counters_behind"]);
    assert_eq!(all[1].count, 4, "all that its link shows");
}
