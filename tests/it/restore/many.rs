//! Very many apps: ten thousand with 25 series each.

use std::fmt::Write as _;

use pds_core::memory::{Holder, MemoryBudget};
use pds_interface::{Resource, response_time};
use pds_ledger::{
    Key, Owner,
    restore::{Answer, Source},
};

use super::prometheus::Asked;
use super::rig::Rig;

const APPS: u64 = 10_000;
/// Buckets of an app: with the other series, 25.
const THRESHOLDS: [&str; 13] =
    ["0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "60.0", "+Inf"];

/// What is held at `at` of the apps that a question names.
fn answer(asked: &Asked, at: i64) -> Option<(u16, String)> {
    let query = &asked.form["query"];
    let (_, apps) = query.split_once(",app=~\"")?;
    let (apps, _) = apps.split_once('"')?;
    let mut series = String::new();
    for app in apps.split('|') {
        let total = app.strip_prefix("app-").unwrap().parse::<u64>().unwrap() + 1_000;
        let mut put = |name: &str, label: &str, value: &dyn std::fmt::Display| {
            let comma = if series.is_empty() { "" } else { "," };
            let metric = format!(r#"{{"__name__":"{name}",{label}"project":"p","app":"{app}","job":"pds"}}"#);
            let point = format!(r#"[{at},"{value}"]"#);
            write!(series, r#"{comma}{{"metric":{metric},"values":[{point}]}}"#).unwrap();
        };
        for resource in ["response_time", "run_execution_time"] {
            let label = format!(r#""resource":"{resource}","#);
            put("pds_app_accounted_until_timestamp_seconds", &label, &(at - 60));
            put("pds_app_unaccounted_seconds_total", &label, &0);
            put("pds_app_rechecked_until_timestamp_seconds", &label, &(at - 7_200));
        }
        for counted in ["requests", "runs"] {
            put(&format!("pds_app_{counted}_total"), "", &total);
            put(&format!("pds_app_late_{counted}_total"), "", &1);
            put(&format!("pds_app_overcounted_{counted}_total"), "", &0);
        }
        for le in THRESHOLDS {
            put("pds_app_request_duration_seconds_bucket", &format!(r#""le":"{le}","#), &total);
        }
    }
    let body = format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{series}]}}}}"#);
    assert!(body.len() < 8 << 20, "a reply of {} bytes", body.len());
    Some((200, body))
}

#[tokio::test]
async fn ten_thousand_apps_take_fifty_queries() {
    let rig = Rig::start(1).await;
    let at = rig.clock.unix_seconds();
    rig.prometheus.answer(move |asked| answer(asked, at));
    let prometheus = rig.config(1, "").state.prometheus.unwrap();
    let source = Source::new(&prometheus, MemoryBudget::default().share(Holder::Restoring)).unwrap();
    let counted = || Resource::all().filter(|resource| resource.polled().counted.is_some());
    let keys: Vec<Key> = (0..APPS)
        .map(|app| Owner::new("p".into(), format!("app-{app}").into()))
        .flat_map(|owner| counted().map(move |resource| Key { owner: owner.clone(), resource }))
        .collect();
    let time = source.now().await.unwrap();
    let mut told = 0;
    let answers = source.ledgers(&keys, time, at, |done, all| {
        assert!(done >= told && all == keys.len(), "{done} of {all} after {told}");
        told = done;
    });
    let (answers, result) = answers.await;
    result.unwrap();
    assert_eq!((answers.len(), told), (keys.len(), keys.len()));
    for (key, answer) in answers {
        let Answer::Ledger { ledger, .. } = answer else { panic!("{key}: {answer:?}") };
        let app: u64 = key.owner.app.strip_prefix("app-").unwrap().parse().unwrap();
        let buckets = if key.resource == response_time::RESOURCE { THRESHOLDS.len() - 1 } else { 0 };
        assert_eq!((ledger.total, ledger.until), (app + 1_000, at - 60), "{key}");
        assert_eq!(ledger.buckets().len(), buckets, "{key}");
    }
    // 50 batches of 200 apps, and the time.
    assert_eq!(rig.prometheus.asked().len(), 51);
}
