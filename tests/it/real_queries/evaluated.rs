//! The recording rules as engines evaluate them: each rule reads what was scraped, or what the rule before it recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::truth::About;
use super::{Counted, MINUTE, Matrix, Recording, engine};
use crate::deploy::{files, list, yaml};
use crate::server::Server;

/// Read over a range by other rules, so recorded; all others are read at the moment of the evaluation.
const RECORDED: &str = "pds:slo_requests:total";
/// Between two evaluations, in seconds.
const INTERVALS: [i64; 3] = [15, 30, 60];

/// By name, the interval of the group where it has one, and the expression.
fn recording() -> BTreeMap<String, (Option<i64>, String)> {
    let mut recording = BTreeMap::new();
    for file in files("prometheus/rules", "yml") {
        let document = yaml(&std::fs::read_to_string(file).unwrap()).remove(0);
        for group in list(&document["groups"]) {
            let interval = group["interval"].as_str().map(humantime::parse_duration);
            let interval = interval.map(|interval| interval.unwrap().as_secs().cast_signed());
            for rule in list(&group["rules"]).iter().filter(|rule| rule["record"].is_string()) {
                let text = |key: &str| rule[key].as_str().unwrap().to_owned();
                recording.insert(text("record"), (interval, text("expr")));
            }
        }
    }
    recording
}

/// The expression with what other rules record written out.
fn written_out(expression: &str, recording: &BTreeMap<String, (Option<i64>, String)>) -> String {
    let read = |name: &&String| *name != RECORDED && expression.contains(name.as_str());
    let Some(name) = recording.keys().find(read) else { return expression.to_owned() };
    written_out(&expression.replace(name, &format!("({})", recording[name].1.trim())), recording)
}

/// The rates and ratios that the rules record, compared with the truth: requests, runs, and ratios at each interval.
pub(super) async fn judged<'a>(
    name: &str,
    server: &Server,
    life: &'a Recording,
    resampled: &'a [Vec<Counted>],
) -> Vec<Matrix<'a>> {
    let recording = recording();
    let (first, end) = (first(life), life.life.now());
    let mut matrices: Vec<Matrix<'_>> =
        life.counted.iter().map(|counted| Matrix::of(life, counted)).collect();
    let mut samples = String::new();
    for interval in INTERVALS {
        for (record, (_, expression)) in &recording {
            if let about @ (About::Rate { .. } | About::Increase) = About::of(record) {
                for row in server.range_of_all(expression, (first, end, interval)).await {
                    matrices[usize::from(about == About::Rate { runs: true })].judge(record, &row);
                }
            }
        }
        let requests = written_out(&recording[RECORDED].1, &recording);
        for row in server.range_of_all(&requests, (first, end, interval)).await {
            let label = |name: &str| row["metric"][name].as_str().unwrap().to_owned();
            let (instance, project, app, le) =
                (label("instance"), label("project"), label("app"), label("le"));
            for point in list(&row["values"]) {
                let (at, value) = (&point[0], point[1].as_str().unwrap());
                writeln!(samples, "{RECORDED}{{evaluated=\"{interval}\",instance=\"{instance}\",project=\"{project}\",app=\"{app}\",le=\"{le}\"}} {value} {at}").unwrap();
            }
        }
    }
    samples += "# EOF\n";
    let folder = tempfile::tempdir().unwrap();
    let server = engine(name, &samples, folder.path(), INTERVALS[2]).await;
    for (interval, resampled) in INTERVALS.into_iter().zip(resampled.iter()) {
        let mut matrix = Matrix::of(life, resampled);
        for (record, (of_group, expression)) in &recording {
            if About::of(record) == About::Slow {
                // Whether enough was counted is for alerts.
                let ratio = expression.split("\n  and on").next().unwrap();
                let query = ratio
                    .replace("on (cluster, namespace, job) group_left () (pds:slo_least_requests:count", "(0")
                    .replace("{le", &format!("{{evaluated=\"{interval}\",le"));
                for row in server.range_of_all(&query, (first, end, of_group.unwrap_or(interval))).await {
                    matrix.judge(record, &row);
                }
            }
        }
        matrices.push(matrix);
    }
    matrices
}

/// The requests as the rules read them at each interval.
pub(super) fn resampled(life: &Recording) -> [Vec<Counted>; 3] {
    let first = first(life);
    INTERVALS.map(|interval| {
        life.counted[0].iter().map(|counted| counted.evaluated(first, interval, life.scrape)).collect()
    })
}

/// The first evaluation: off the grid of the scrapes.
fn first(life: &Recording) -> i64 {
    life.life.begun + 10 * MINUTE + 7
}
