//! Plans that replace others while polls run.

use std::num::NonZeroU32;

use pds_config::Config;
use pds_interface::list_projects;
use pds_ledger::Hold;

use super::*;

#[tokio::test(start_paused = true)]
async fn without_targets_no_poll_is_late() {
    let (_world, context, plan) = rig().await;
    let plan = Arc::new(plan);
    let polling = Polling::start(context.clone(), Arc::clone(&plan));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lag = || rig::own_page(&context.telemetry).contains("\npds_exporter_poll_lag_seconds ");
    assert!(lag());
    let config = Config { projects: Vec::new(), ..(*plan.config).clone() };
    polling.plans.send(Arc::new(rig::plan(config, &context, Some(&plan)))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!lag());
}

#[tokio::test(start_paused = true)]
async fn a_project_that_a_reload_adds_to_a_token_is_polled_at_once() {
    for is_running in [false, true] {
        let settings = Settings { projects: 2, apps: 1, ..Settings::default() };
        let (world, context, plan) = rig_of(settings, UNCOUNTED).await;
        let mut both = (*plan.config).clone();
        both.projects[1].token = both.projects[0].token.clone();
        let mut one = both.clone();
        one.projects.truncate(1);
        let one = Arc::new(rig::plan(one, &context, None));
        if is_running {
            let slow = Fault::from(Kind::Latency { millis: 5_000 });
            world.faults().set([slow.on(list_projects::RESOURCE)]);
        }
        let polling = Polling::start(context.clone(), Arc::clone(&one));
        tokio::time::sleep(Duration::from_secs(if is_running { 2 } else { 40 })).await;
        let both = rig::plan(both, &context, Some(&one));
        let lists = both.targets.iter().filter(|target| target.key.resource == list_projects::RESOURCE);
        assert_eq!(lists.count(), 1, "one list for both");
        assert!(!context.store.is_complete());
        polling.plans.send(Arc::new(both)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert!(context.store.is_complete(), "{is_running}: it is asked for every five minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_a_reload_overtakes_is_repeated() {
    let settings = Settings { projects: 1, apps: 1, ..Settings::default() };
    let tables = format!("[poll]\nsettings_interval = \"1h\"\n{UNCOUNTED}");
    let (world, context, plan) = rig_of(settings, &tables).await;
    world.faults().set([Fault::from(Kind::Latency { millis: 5_000 }).on(get_app::RESOURCE).times(1)]);
    let plan = Arc::new(plan);
    let polling = Polling::start(context.clone(), Arc::clone(&plan));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let next = rig::plan((*plan.config).clone(), &context, Some(&plan));
    polling.plans.send(Arc::new(next)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(8)).await;
    let page = rig::page(&context, pds_exposition::Format::Text);
    assert!(page.contains("\npds_app_cpu_cores{"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn reloads_during_the_first_round_keep_no_target_waiting() {
    let settings = Settings { projects: 1, apps: 60, ..Settings::default() };
    let (_world, context, plan) = rig_of(settings, UNCOUNTED).await;
    let mut config = (*plan.config).clone();
    config.api.max_requests_per_second = NonZeroU32::new(1);
    let mut plan = Arc::new(rig::plan(config, &context, None));
    let polling = Polling::start(context.clone(), Arc::clone(&plan));
    // A round takes three minutes.
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        plan = Arc::new(rig::plan((*plan.config).clone(), &context, Some(&plan)));
        polling.plans.send(Arc::clone(&plan)).await.unwrap();
    }
    assert!(context.store.is_complete());
}

#[tokio::test(start_paused = true)]
async fn a_wrong_address_is_forgotten_with_the_list_of_projects() {
    let settings = Settings { projects: 1, apps: 1, ..Settings::default() };
    let (world, context, first) = rig_of(settings, UNCOUNTED).await;
    world.faults().set([Fault::status(404)]);
    rig::poll(&context, &first, |_| true).await;
    let mut config = (*first.config).clone();
    config.poll.resources.retain(|resource| *resource != list_projects::RESOURCE);
    let plan = rig::plan(config, &context, Some(&first));
    // A late reply to the former plan.
    rig::poll(&context, &first, |target| target.key.resource == list_projects::RESOURCE).await;
    for is_gone in [false, true] {
        rig::poll(&context, &plan, |_| true).await;
        let page = rig::page(&context, pds_exposition::Format::Text);
        assert_eq!(page.contains("\npds_app_gone_timestamp_seconds{"), is_gone, "{page}");
        tokio::time::advance(Duration::from_secs(600)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_was_replaced_drops_no_hold_of_the_next() {
    let settings = Settings { projects: 1, apps: 1, ..Settings::default() };
    let (_world, context, first) = rig_of(settings, "").await;
    // Two clocks agree.
    rig::poll(&context, &first, |_| true).await;
    let key = &first.targets.iter().find(|target| target.counter.is_some()).unwrap().key;
    let none = Config { projects: Vec::new(), ..(*first.config).clone() };
    let empty = rig::plan(none.clone(), &context, Some(&first));
    let whole = rig::plan((*first.config).clone(), &context, Some(&empty));
    context.ledgers.set_hold(key, Hold::Unknown);
    empty.tidy(&context.ledgers).await;
    assert_eq!(context.ledgers.hold(key), Some(Hold::Unknown), "the next plan has the app");
    rig::plan(none, &context, Some(&whole)).tidy(&context.ledgers).await;
    assert_eq!(context.ledgers.hold(key), None, "the plan in force drops it");
}
