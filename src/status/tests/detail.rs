//! One app in full.

use super::super::settings::Value;
use super::*;

#[tokio::test(start_paused = true)]
async fn the_detail_has_what_the_page_draws() {
    let fixture = answered().await;
    let (project, app) = ("p-00000000", "p-00000000-app-0");
    let detail = fixture.source.detail(project, app).unwrap();
    assert_eq!(detail.distribution.len(), 10);
    assert_eq!(detail.distribution[2], (0.05, 0.58));
    let runs = detail.runs.unwrap();
    assert_eq!((runs.len(), runs[0].values[0]), (5, Some(0.03)));
    assert_eq!(detail.window_runs, Some(1498.0));
    let settings = |title| &detail.settings.iter().find(|group| group.title == title).unwrap().settings;
    let memory = settings("Replicas and cost").iter().find(|setting| setting.name == "memory").unwrap();
    assert_eq!(memory.value, Value::Text("16 GB".to_owned()));
    assert_eq!(settings("Labels from the configuration")[0].name, "tier");
    assert!(detail.replies.iter().all(|(_, reply)| reply.is_some()));
    assert!(fixture.source.detail(project, "p-other").is_none());
}

#[tokio::test(start_paused = true)]
async fn run_times_are_those_that_the_interface_accepts() {
    let fixture = fixture::fixture(1).await;
    fixture.answer(1.0);
    let (replies, now) = (fixture.context.store.replies(), fixture.context.clock.now());
    let mut keys = fixture.plan.targets.iter().map(|target| &target.key);
    let key = keys.find(|key| key.resource == run_execution_time::RESOURCE).unwrap();
    let mut reply: serde_json::Value = serde_json::from_str(&replies.of(key).unwrap().text).unwrap();
    let series = &mut reply["data"]["time_series"];
    series[1]["timestamp"] = 1_000_000_000_000_000_000_u64.into();
    series[2]["timestamp"] = 1_000_000_000_000_000_128_u64.into();
    series[3]["p90"] = 0.0.into();
    series[4]["timestamp"] = 0.into();
    let text = reply.to_string();
    replies.keep(key, now, text.len(), || text.clone());
    let runs = || fixture.source.detail("p-00000000", "p-00000000-app-0").unwrap().runs;
    assert!(runs().is_none(), "the reply may be refused");
    replies.accept(key);
    let runs = runs().unwrap();
    assert_eq!((runs.len(), runs[1].values[1]), (2, None), "{runs:?}");
}
