//! A hundred thousand apps: what a restart asks of Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pds_core::memory::{Holder, MemoryBudget};
use pds_interface::Resource;
use pds_ledger::restore::{Source, Targets};
use pds_ledger::{Key, Owner};

use super::prometheus::Asked;
use super::rig::Rig;

const APPS: usize = 100_000;

/// The cursors of the apps that a query names.
fn answer(asked: &Asked, at: i64) -> Option<(u16, String)> {
    let (_, apps) = asked.form["query"].split_once(",app=~\"")?;
    let (apps, _) = apps.split_once('"')?;
    let mut series = String::new();
    for app in apps.split('|') {
        for resource in ["response_time", "run_execution_time"] {
            let comma = if series.is_empty() { "" } else { "," };
            let target = r#""instance":"pds-exporter-0","job":"pds-exporter""#;
            let metric =
                format!(r#"{{"app":"{app}",{target},"project":"p-1a2b3c4d","resource":"{resource}"}}"#);
            write!(series, r#"{comma}{{"metric":{metric},"value":[{at}.123,"{}"]}}"#, at - 60).unwrap();
        }
    }
    Some((200, format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{series}]}}}}"#)))
}

#[tokio::test]
async fn a_hundred_thousand_apps_take_1000_queries_and_at_most_40_mb() {
    let rig = Rig::start(1).await;
    let at = rig.clock.unix_seconds();
    let bytes = Arc::new(AtomicUsize::new(0));
    let sent = Arc::clone(&bytes);
    rig.prometheus.answer(move |asked| {
        let is_pending = asked.form["query"].contains("pds_app_pending_seconds");
        let answer = answer(asked, at).filter(|_| !is_pending)?;
        sent.fetch_add(answer.1.len(), Ordering::Relaxed);
        Some(answer)
    });
    let prometheus = rig.config(1, "").state.prometheus.unwrap();
    let source = Source::new(&prometheus, MemoryBudget::default().share(Holder::Restoring)).unwrap();
    let counted = || Resource::all().filter(|resource| resource.polled().counted.is_some());
    let keys: Vec<Key> = (0..APPS)
        .map(|app| Owner::new("p-1a2b3c4d".into(), format!("p-1a2b3c4d-app-{app}").into()))
        .flat_map(|owner| counted().map(move |resource| Key { owner: owner.clone(), resource }))
        .collect();
    let (answers, result) = source.cursors(keys, at, &Targets::new()).await;
    result.unwrap();
    assert_eq!(answers.len(), 2 * APPS);
    assert!(answers.iter().all(|answer| answer.cursor.is_some_and(|cursor| cursor.until == at - 60)));
    assert_eq!(rig.prometheus.asked().len(), 2 * APPS / 200, "cursors and pending time, 200 apps each");
    let bytes = bytes.load(Ordering::Relaxed);
    assert!((20_000_000..40_000_000).contains(&bytes), "{bytes}");
}
