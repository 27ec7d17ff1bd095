//! Plans that replace others.

use super::*;
use crate::poll::Plan;

#[tokio::test(start_paused = true)]
async fn a_window_that_a_reload_adds_is_not_too_old_but_waits_for_its_first_poll() {
    let mut fixture = answered().await;
    let mut config = (*fixture.plan.config).clone();
    config.poll.windows.insert(0, Duration::from_secs(900));
    let (client, watermark) = (fixture.plan.client.clone(), fixture.plan.watermark.clone());
    let plan = Plan::new(Arc::new(config), client, watermark, &fixture.context, Some(&fixture.plan));
    fixture.plan = Arc::new(plan);
    fixture.source.set_plan(Arc::clone(&fixture.plan), Vec::new());
    assert_eq!(codes(&fixture).await, ["waiting"]);
    let status = fixture.source.status();
    assert_eq!((status.service.state, status.summary.verdict), (ServiceState::Up, Verdict::Waiting));
    // Counters do not depend on windows.
    fixture.count_until(7200).await;
    assert_eq!(codes(&fixture).await, ["counters_behind", "waiting"]);
    fixture.fail("timeout", "no reply", |key| is_metrics(key.resource));
    assert_eq!(codes(&fixture).await[0], "service_slow");
    fixture.answer(1.0);
    fixture.count_until(0).await;
    assert_eq!(codes(&fixture).await, [""; 0]);
}
