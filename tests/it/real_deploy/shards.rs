//! Several daemons with one configuration: each polls its share, together they poll everything, and the dashboard of a
//! Prometheus that scrapes them shows which is where.

use std::collections::{BTreeMap, BTreeSet};

use pds_interface::get_app;
use pds_simulator::Fault;
use serde_json::json;

use crate::deploy::dashboards::{dashboards, expressions, filled};
use crate::process::{Exporter, series, until};
use crate::rig::{self, FaultExt as _};
use crate::server::{PROMETHEUS_2, Server};

use super::fast::{CONFIG, configuration};

/// The targets on the page.
async fn targets(exporter: &Exporter) -> BTreeSet<String> {
    exporter.wait_for("/-/ready").await;
    let page = exporter.get("/metrics").await;
    let up = series(&page).filter(|(name, up)| name.starts_with("pds_up{") && *up == 1.0);
    up.map(|(name, _)| name.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_poll_everything_and_nothing_twice_and_the_dashboard_shows_which_polls_what() {
    let (world, service) = rig::world(4, 8).await;
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(&world, &service, CONFIG).write(folder.path());
    let start = |flags: &[&str]| {
        let config = format!("--config.file={config}");
        Exporter::start(&[&[config.as_str()], flags].concat())
    };

    let whole = targets(&start(&[])).await;
    let (mut together, mut shards, mut scraped) = (BTreeSet::new(), Vec::new(), Vec::new());
    // The values of the dashboard by panel, column, shard and app.
    let mut expected = BTreeMap::new();
    let mut failing = None;
    for index in ["0", "1", "2"] {
        let shard = start(&["--shard.count=3", "--shard.index", index]);
        let share = targets(&shard).await;
        let told = format!("shard_index={index} shard_count=3");
        assert!(shard.log().lines().any(|line| line.contains("message=started ") && line.contains(&told)));
        assert!(!share.is_empty() && share.len() < whole.len(), "shard {index} polls {}", share.len());
        let of_shard = share.iter().filter_map(|target| target.split("app=\"").nth(1)?.split('"').next());
        let of_shard: BTreeSet<&str> = of_shard.filter(|app| !app.is_empty()).collect();
        let failing: &String = failing.get_or_insert_with(|| of_shard.first().unwrap().to_string());
        let fails = of_shard.contains(&**failing);
        let values =
            [1, usize::from(fails), usize::from(fails), share.len(), of_shard.len()].into_iter().enumerate();
        // The last one is killed below.
        for (column, value) in values.filter(|(column, _)| index != "2" || *column == 0) {
            let value = if index == "2" { 0 } else { value };
            expected.insert(("Exporters and shards", column, format!("pds-{index}"), String::new()), value);
        }
        for app in of_shard.iter().filter(|_| index != "2") {
            let key = ("Which exporter has which app", 0, format!("pds-{index}"), (*app).to_owned());
            expected.insert(key, usize::from(*app != failing));
        }
        for target in &share {
            assert!(together.insert(target.clone()), "{target} is polled twice");
        }
        let labels = json!({ "namespace": "a", "instance": format!("pds-{index}") });
        scraped.push(json!({ "targets": [shard.url.trim_start_matches("http://")], "labels": labels }));
        shards.push(shard);
    }
    assert_eq!(together, whole);

    let job = json!({ "job_name": "pds", "honor_labels": true, "static_configs": scraped });
    let scraping = json!({ "global": { "scrape_interval": "500ms" }, "scrape_configs": [job] }).to_string();
    let prometheus =
        Server::prometheus(PROMETHEUS_2, &[("prometheus.yml", &scraping)], "--log.level=warn").await;
    until("all are scraped", async || prometheus.query("pds_exporter_build_info").await.len() == 3).await;
    world.faults().set([Fault::status(500).on(get_app::RESOURCE).of_app(&failing.unwrap())]);
    shards.pop().unwrap().kill();
    let (_, board) = dashboards().into_iter().find(|(path, _)| path.ends_with("exporter.json")).unwrap();
    let mut shown = BTreeMap::new();
    until("the dashboard shows the shards as they are", async || {
        shown.clear();
        for panel in ["Exporters and shards", "Which exporter has which app"] {
            let columns = expressions(&board).into_iter().filter(|(title, _)| *title == panel).enumerate();
            // The last is how late polls are.
            for (column, (_, expression)) in columns.take(5) {
                for row in prometheus.query(&filled(expression, "", "", "")).await {
                    let label = |name: &str| row["metric"][name].as_str().unwrap_or_default().to_owned();
                    assert_eq!([label("namespace"), label("job")], ["a", "pds"], "{row}");
                    let value = row["value"][1].as_str().unwrap().parse().unwrap();
                    shown.insert((panel, column, label("instance"), label("app")), value);
                }
            }
        }
        shown == expected
    })
    .await;
}
