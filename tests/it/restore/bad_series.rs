//! Series that lack something, contradict each other or come from elsewhere: counters go on exactly, or stay hidden.

use std::fmt::Write as _;

use pds_interface::response_time;

use super::prometheus::Labels;
use super::rig::{RESTORED, Rig};
use super::{assert_true, counters};

/// What comes of a change to what Prometheus keeps: the reason why counters stay hidden, or nothing where they go on.
async fn after(change: impl Fn(&Rig)) -> (Rig, i64, super::Exporter, Option<String>) {
    let rig = Rig::start(1).await;
    let first = rig.clock.unix_seconds() / 60 * 60;
    rig.predecessor().await;
    change(&rig);
    let exporter = rig.started("new").await;
    let missing = exporter.status().await.0.exporter.restoring.as_ref().unwrap().missing;
    let obstacle = if missing > 0 { Some(exporter.obstacle().await) } else { None };
    (rig, first, exporter, obstacle)
}

fn is(labels: &Labels, name: &str) -> bool {
    labels["__name__"] == name
}

/// The last sample of these metrics is changed.
fn last(name: &'static str, change: impl Fn(&Labels, f64) -> f64) -> impl Fn(&Rig) {
    move |rig| {
        rig.prometheus.change(|labels, samples| {
            if let Some(sample) = samples.last_mut().filter(|_| is(labels, name)) {
                sample.1 = change(labels, sample.1);
            }
        });
    }
}

const BUCKET: &str = "pds_app_request_duration_seconds_bucket";
const TOTAL: &str = "pds_app_requests_total";
const CURSOR: &str = "pds_app_accounted_until_timestamp_seconds";
const ACCOUNTED: &str = "pds_app_requests_accounted_seconds_total";
const RUNS_ACCOUNTED: &str = "pds_app_runs_accounted_seconds_total";
const UNACCOUNTED: &str = "pds_app_unaccounted_seconds_total";

#[tokio::test]
async fn inconsistent_series_are_refused_with_their_target() {
    let target = "what {instance=\"old\",job=\"pds\"} says is refused: ";
    let refused = async |change: &dyn Fn(&Rig)| {
        let (_, _, exporter, obstacle) = after(change).await;
        assert_eq!((counters(&exporter.page()).len(), exporter.metric(RESTORED)), (0, Some(0.0)));
        let obstacle = obstacle.unwrap();
        obstacle.split_once(target).unwrap_or_else(|| panic!("{obstacle}")).1.to_owned()
    };
    let future = refused(&last(CURSOR, |_, cursor| cursor + 3600.0)).await;
    assert!(future.starts_with("it was counted until ") && future.contains("in the future"), "{future}");
    assert!(refused(&last(TOTAL, |_, total| total + 1.0)).await.contains("not of one scrape"));
    assert!(refused(&last(TOTAL, |_, total| total + 0.5)).await.contains("not a whole number"));
    let halved = |labels: &Labels, count: f64| if labels["le"] == "+Inf" { count } else { 1.0 / count };
    assert!(refused(&last(BUCKET, halved)).await.contains("bucket"));
    let without_infinity = |rig: &Rig| {
        let is_infinite = |labels: &Labels| labels.get("le").is_some_and(|le| le == "+Inf");
        rig.prometheus.relabel(|labels| (!is_infinite(&labels)).then_some(labels));
    };
    assert_eq!(refused(&without_infinity).await, "its +Inf bucket is missing");
}

#[tokio::test]
async fn if_the_latest_target_is_refused_the_one_before_is_used() {
    let (rig, first, exporter, obstacle) = after(|rig| {
        // The page of another instance a little later, which is nonsense.
        let names = [CURSOR, TOTAL, "pds_app_runs_total", BUCKET, ACCOUNTED, RUNS_ACCOUNTED, UNACCOUNTED];
        let mut page = String::new();
        for (mut labels, samples) in names.iter().flat_map(|name| rig.prometheus.of(name)) {
            let (name, last) = (labels.remove("__name__").unwrap(), samples.last().unwrap().1);
            let value = if name == TOTAL || name == "pds_app_runs_total" { 1.5 } else { last + 1.0 };
            let labels: Vec<String> = ["project", "app", "resource", "le"]
                .iter()
                .filter_map(|name| Some(format!("{name}=\"{}\"", labels.get(*name)?)))
                .collect();
            writeln!(page, "{name}{{{}}} {value}", labels.join(",")).unwrap();
        }
        rig.prometheus.scrape(&page, &[("instance", "other")]);
    })
    .await;
    assert_eq!(obstacle, None);
    rig.run(&exporter, 2).await;
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn series_of_an_older_version_and_of_a_newer_one_are_taken_as_far_as_they_go() {
    let (rig, first, exporter, obstacle) = after(|rig| {
        let later = ["late", "overcounted", "rechecked"];
        let is_later = |labels: &Labels| later.iter().any(|word| labels["__name__"].contains(word));
        rig.prometheus.relabel(|labels| (!is_later(&labels)).then_some(labels));
    })
    .await;
    assert_eq!(obstacle, None);
    rig.run(&exporter, 2).await;
    assert_true(&rig, &exporter, first);

    // A threshold that the service does not name, and a family that nobody knows.
    let (rig, first, exporter, obstacle) = after(|rig| {
        let total = rig.prometheus.of(TOTAL)[0].1.last().unwrap().1;
        let labels = format!("project=\"{}\",app=\"{}\"", rig.project(), rig.apps()[0]);
        let page =
            format!("{BUCKET}{{{labels},le=\"90000.0\"}} {total}\npds_app_future_total{{{labels}}} 7\n");
        rig.prometheus.scrape(&page, &[("job", "pds"), ("instance", "old")]);
    })
    .await;
    assert_eq!(obstacle, None);
    rig.run(&exporter, 2).await;
    assert_true(&rig, &exporter, first);
    assert!(exporter.page().contains("le=\"90000.0\"}"), "a bucket that was shown goes on");
}

#[tokio::test]
async fn of_a_scrape_that_lacks_what_was_there_before_nothing_is_taken() {
    let is_bucket = |labels: &Labels| is(labels, BUCKET) && labels["le"] != "+Inf";
    let is_accounted = |labels: &Labels| is(labels, ACCOUNTED);
    for lacks in [&is_accounted, &is_bucket] as [&dyn Fn(&Labels) -> bool; 2] {
        // The scrape before is whole.
        let (rig, first, exporter, obstacle) = after(|rig| {
            rig.prometheus.change(|labels, samples| {
                if lacks(labels) {
                    samples.pop();
                }
            });
        })
        .await;
        assert_eq!(obstacle, None);
        rig.run(&exporter, 2).await;
        assert_true(&rig, &exporter, first);
    }
    // One that was never there is not waited for.
    let (rig, first, exporter, obstacle) = after(|rig| {
        rig.prometheus.relabel(|labels| (!is(&labels, ACCOUNTED)).then_some(labels));
    })
    .await;
    assert_eq!(obstacle, None);
    rig.run(&exporter, 2).await;
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn the_first_scrape_of_a_target_is_waited_for_while_it_lacks_what_the_count_had() {
    for lacking in [ACCOUNTED, UNACCOUNTED, BUCKET] {
        let rig = Rig::start(1).await;
        let first = rig.clock.unix_seconds() / 60 * 60;
        rig.predecessor().await;
        let between = rig.started("between").await;
        rig.run(&between, 1).await;
        drop(between);
        // Of the buckets a single one is late.
        let is_late = |labels: &Labels| {
            labels["instance"] == "between"
                && is(labels, lacking)
                && labels.get("le").is_none_or(|le| le.parse() == Ok(0.1))
        };
        let mut late = Vec::new();
        rig.prometheus.change(|labels, samples| {
            if is_late(labels) {
                late.push((labels.clone(), std::mem::take(samples)));
            }
        });
        assert!(!late.is_empty(), "{lacking}");
        let exporter = rig.started("new").await;
        let obstacle = exporter.obstacle().await;
        assert!(
            obstacle.contains("{instance=\"between\",job=\"pds\"}") && obstacle.contains("in part"),
            "{obstacle}"
        );
        assert_eq!(exporter.shown(), 0);
        rig.prometheus.change(|labels, samples| {
            if let Some((_, arrived)) = late.iter().find(|(of, _)| of == labels) {
                samples.clone_from(arrived);
            }
        });
        assert!(exporter.handle.restorer.restore().await);
        rig.run(&exporter, 2).await;
        assert_true(&rig, &exporter, first);
    }
}

#[tokio::test]
async fn a_total_that_relabelling_has_dropped_is_that_of_its_infinite_bucket() {
    let (rig, first, exporter, obstacle) = after(|rig| {
        rig.prometheus.relabel(|labels| (!is(&labels, TOTAL)).then_some(labels));
    })
    .await;
    assert_eq!(obstacle, None);
    rig.run(&exporter, 2).await;
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn labels_of_type_and_unit_are_no_part_of_a_target() {
    let (rig, first, exporter, obstacle) = after(|rig| {
        rig.prometheus.relabel(|mut labels| {
            let name = labels["__name__"].clone();
            let of = |end: &str| name.trim_end_matches("_bucket").ends_with(end);
            let kind = if of("_total") {
                "counter"
            } else if is(&labels, BUCKET) {
                "histogram"
            } else {
                "gauge"
            };
            labels.insert("__type__".to_owned(), kind.to_owned());
            if of("_seconds") || of("_seconds_total") {
                labels.insert("__unit__".to_owned(), "seconds".to_owned());
            }
            Some(labels)
        });
    })
    .await;
    assert_eq!(obstacle, None);
    rig.run(&exporter, 2).await;
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn two_jobs_that_scrape_one_exporter_are_one_ledger() {
    let (rig, first, exporter, obstacle) = after(|rig| {
        let twice = rig.prometheus.of(TOTAL).len();
        assert_eq!(twice, 1);
        let copied = |mut labels: Labels| {
            labels.insert("job".to_owned(), "again".to_owned());
            labels
        };
        for name in [TOTAL, BUCKET, CURSOR, "pds_app_runs_total"] {
            for (labels, samples) in rig.prometheus.of(name) {
                let labels = copied(labels);
                let inside: Vec<String> = labels
                    .iter()
                    .filter(|(name, _)| *name != "__name__")
                    .map(|(name, value)| format!("{name}={value:?}"))
                    .collect();
                let page = format!("{name}{{{}}} {}\n", inside.join(","), samples.last().unwrap().1);
                rig.prometheus.scrape(&page, &[]);
            }
        }
    })
    .await;
    assert_eq!(obstacle, None);
    rig.run(&exporter, 2).await;
    assert_true(&rig, &exporter, first);
    let key = super::key(&rig, 0);
    assert_eq!(key.resource, response_time::RESOURCE);
}

#[tokio::test]
async fn counters_that_had_left_the_page_are_found_further_back() {
    let rig = Rig::start(1).await;
    let first = rig.clock.unix_seconds() / 60 * 60;
    rig.predecessor().await;
    // The cursor stays on the page for another 20 minutes, the counters do not.
    let bookkeeping: Vec<_> =
        ["pds_app_accounted_until_timestamp_seconds", "pds_app_unaccounted_seconds_total"]
            .iter()
            .flat_map(|name| rig.prometheus.of(name))
            .collect();
    for _ in 0..20 {
        rig.pass(60);
        let now = rig.clock.unix_seconds();
        rig.prometheus.change(|labels, samples| {
            if let Some((_, known)) = bookkeeping.iter().find(|(known, _)| known == labels) {
                samples.push((now, known.last().unwrap().1));
            }
        });
    }
    let exporter = rig.started("new").await;
    assert_eq!(exporter.metric(RESTORED), Some(1.0));
    rig.run(&exporter, 2).await;
    assert_eq!(exporter.shown(), 1);
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn a_scrape_of_which_only_a_part_has_arrived_loses_nothing() {
    // Of the last scrape the cursor is there and the total is not, as engines show that take samples one by one.
    let (rig, first, exporter, obstacle) = after(|rig| {
        rig.pass(60);
        let labels = |name: &str, labels: &Labels| -> String {
            let inside = labels.iter().filter(|(name, _)| *name != "__name__");
            let inside: Vec<String> = inside.map(|(name, value)| format!("{name}={value:?}")).collect();
            format!("{name}{{{}}}", inside.join(","))
        };
        for (series, samples) in rig.prometheus.of(CURSOR) {
            let page = format!("{} {}\n", labels(CURSOR, &series), samples.last().unwrap().1 + 60.0);
            rig.prometheus.scrape(&page, &[]);
        }
    })
    .await;
    assert_eq!(obstacle, None);
    rig.run(&exporter, 2).await;
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn counters_that_left_the_page_unscraped_are_taken_as_they_were_scraped_however_long_ago() {
    // Hours after the last scrape of the counters, a later cursor is scraped without them; and hours pass again.
    let (rig, first, exporter, obstacle) = after(|rig| {
        rig.pass(9_000);
        rig.prometheus.change(|labels, samples| {
            let (at, until) = *samples.last().unwrap();
            if is(labels, CURSOR) {
                samples.push((at + 9_000, until + 9_000.0));
            }
        });
        rig.pass(20_000);
    })
    .await;
    assert_eq!(obstacle, None);
    for _ in 0..12 {
        rig.run(&exporter, 1).await;
    }
    assert_eq!(exporter.shown(), 1);
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn a_cursor_without_any_counter_is_nothing_that_could_go_back() {
    let (rig, _, exporter, obstacle) = after(|rig| {
        let counter =
            |labels: &Labels| is(labels, TOTAL) || is(labels, BUCKET) || is(labels, "pds_app_runs_total");
        rig.prometheus.relabel(|labels| (!counter(&labels)).then_some(labels));
    })
    .await;
    assert!(obstacle.unwrap().contains("no page of this process was scraped yet"));
    rig.run(&exporter, 3).await;
    assert_eq!(exporter.shown(), 1);
}
