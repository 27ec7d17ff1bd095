//! Every fault with every resource: the page, the requests to the service, and the effects on other targets.
//!
//! The outcomes are kept in a table for each resource, `RESOURCE.txt`, one line a fault: what `pds_up` says, the codes
//! of the resource's requests (those of other apps and projects included), the fields that were not what the interface
//! says, how many series vanished and came, how often the service saw the target asked for, and how many other
//! targets failed: those of the same token, where the service refuses it or asks it to wait.

mod clocks;
mod rig;

use std::fmt::Write as _;
use std::path::PathBuf;

use pds_interface::{
    Cadence, Resource, get_app, list_domains, list_projects, response_time, run_execution_time, volume_alerts,
};
use pds_simulator::Kind;

use crate::golden::assert_golden;
use crate::rig::{html, nested};

use rig::Rig;

fn status(status: u16, retry_after: Option<&str>) -> Kind {
    Kind::Status { status, retry_after: retry_after.map(str::to_owned) }
}

/// `json` in place of a number of `resource`, or of a name where it has no numbers.
fn value(resource: Resource, json: &str) -> Kind {
    let (field, json) = match resource {
        get_app::RESOURCE => ("cpu", json.to_owned()),
        // A share of the distribution, in percent.
        response_time::RESOURCE => ("1s", json.to_owned()),
        run_execution_time::RESOURCE => ("total_runs", json.to_owned()),
        volume_alerts::RESOURCE => ("thresholds", format!("[{json}]")),
        list_domains::RESOURCE => ("id", json.to_owned()),
        list_projects::RESOURCE => ("name", json.to_owned()),
        other => panic!("no value of {other:?} is replaced"),
    };
    field_as(field, json)
}

fn field_as(field: &str, json: String) -> Kind {
    Kind::Value { field: field.to_owned(), json }
}

/// An hour after the start of the rig's clocks.
const IN_AN_HOUR: &str = "Sun, 01 Mar 2026 13:02:07 GMT";

/// Fields that replies have already.
const TWICE: &str = r#""data":{},"status":"success","id":"a","thresholds":[],"domains":[],"#;

/// Each fault by its name.
fn faults(resource: Resource) -> Vec<(&'static str, Kind)> {
    let raw = Kind::RawError { status: 500, text: "upstream fell over".to_owned() };
    let mut faults = vec![
        ("slower than the timeout", Kind::Latency { millis: 60_000 }),
        ("401", status(401, None)),
        ("402", status(402, None)),
        ("403", status(403, None)),
        ("404", status(404, None)),
        ("429", status(429, None)),
        ("429, Retry-After: 3600", status(429, Some("3600"))),
        ("429, Retry-After a date", status(429, Some(IN_AN_HOUR))),
        ("429, Retry-After: nonsense", status(429, Some("soon"))),
        ("500", status(500, None)),
        ("503", status(503, None)),
        ("503, Retry-After: 3600", status(503, Some("3600"))),
        ("an error as plain text", raw),
        ("an error as HTML", html(502)),
        ("a success as HTML", html(200)),
        ("a redirect", Kind::Redirect { location: "http://127.0.0.1:1/".to_owned() }),
        ("a reset", Kind::Reset),
        ("a body cut off", Kind::CutBody),
        ("a body that drips", Kind::SlowBody { millis: 200 }),
        ("a body without end", Kind::EndlessBody),
        ("50 MB", Kind::HugeBody { bytes: 50_000_000 }),
        ("a gzip bomb", Kind::GzipBomb { bytes: 50_000_000 }),
        ("half of the JSON", Kind::MalformedJson),
        ("no body", Kind::RawError { status: 200, text: String::new() }),
        ("other types", Kind::WrongTypes),
        ("nulls", Kind::Nulls),
        ("1e400", value(resource, "1e400")),
        ("\"12abc\"", value(resource, "\"12abc\"")),
        ("-1", value(resource, "-1")),
        ("250", value(resource, "250")),
        ("NaN", value(resource, "NaN")),
        ("a list", value(resource, "[1]")),
        ("deep nesting", nested(100_000)),
        ("each field twice", Kind::Insert { text: TWICE.to_owned() }),
        ("a clock an hour ahead", Kind::ClockSkew { seconds: 3600 }),
        ("a clock an hour behind", Kind::ClockSkew { seconds: -3600 }),
    ];
    if resource.polled().cadence == Cadence::Metrics {
        faults.push(("status: error", field_as("status", "\"error\"".to_owned())));
    }
    if resource.polled().has_series {
        let point = |second| format!(r#"{{"timestamp":{second},"p50":0.5,"p90":0.9,"p99":1.5}}"#);
        let points: Vec<String> = (0..10_000).map(point).collect();
        faults.push(("10 000 datapoints", field_as("time_series", format!("[{}]", points.join(",")))));
    }
    faults
}

async fn assert_table(resource: Resource) {
    let mut table = String::new();
    for (name, kind) in faults(resource) {
        // A busy machine is slow with other faults, too.
        let timeout = if matches!(kind, Kind::Latency { .. } | Kind::SlowBody { .. }) { 2 } else { 30 };
        let rig = Rig::within(resource, timeout).await;
        rig.poll().await;
        let before = rig.page();
        assert!(before.all_up(), "{name}: not even the first poll succeeds\n{}", before.text);

        rig.strike(kind);
        rig.poll().await;
        let struck = rig.page();
        rig.assert_others_see_nothing(&before, &struck, name);
        writeln!(table, "{name:28} {}", rig.outcome(&before, &struck)).unwrap();

        rig.mend().await;
        rig.poll().await;
        let after = rig.page();
        assert!(after.all_up(), "{name}: does not recover\n{}", after.text);
        assert_eq!(rig.shown(&before), rig.shown(&after), "{name}: something is not back");
    }
    assert_golden(&PathBuf::from(format!("tests/it/faults/{}.txt", resource.as_str())), &table);
}

/// A test for each resource.
macro_rules! tables {
    ($($test:ident: $call:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                assert_table($call::RESOURCE).await;
            }
        )*

        #[test]
        fn each_resource_has_a_table() {
            let named = [$($call::RESOURCE),*];
            let missing: Vec<_> = Resource::all().filter(|resource| !named.contains(resource)).collect();
            assert!(missing.is_empty(), "add {missing:?} to `value` and `tables!` in tests/it/faults/mod.rs");
        }
    };
}

tables! {
    every_fault_of_app_is_contained: get_app,
    every_fault_of_response_time_is_contained: response_time,
    every_fault_of_run_execution_time_is_contained: run_execution_time,
    every_fault_of_volume_alerts_is_contained: volume_alerts,
    every_fault_of_domains_is_contained: list_domains,
    every_fault_of_projects_is_contained: list_projects,
}
