//! `pdstool reconcile`: compares a day at the service with the counts in Prometheus.

use std::collections::HashMap;

use clap::Args;
use futures_util::stream::{StreamExt as _, iter};
use jiff::Timestamp;

use pds_core::units::{self, whole_seconds};
use pds_interface::range::rfc3339;
use pds_interface::{Counted, TimeRange};
use pds_ledger::{Key, MAX_MERGED};

use super::console::Console;
use super::error::{Result, ToolError};
use super::options::{OutputArg, day};
use super::output::{self, Align, Block, Table, columns};
use super::service::{Environment, Service, ServiceArgs};
use super::state::read;

/// `pdstool reconcile`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  pdstool reconcile
  pdstool reconcile --day 2026-03-01 --tolerance 0.5 -o json

Prometheus is that of state.prometheus_url; PDS_EXPORTER__STATE__PROMETHEUS_URL sets it for one run.
Exit code 1 if a counter differs by more than the tolerance or cannot be compared.")]
pub struct ReconcileArgs {
    /// Day in UTC [default: the last one that is counted to its end].
    #[arg(long, value_name = "DATE", value_parser = day)]
    day: Option<Timestamp>,

    /// Tolerated difference in percent; two requests are always tolerated. Prometheus extrapolates.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    tolerance: f64,

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    service: ServiceArgs,
}

const DAY: i64 = 86_400;

/// Requests within the day before a time, as in the shipped rule `pds_app:requests:increase1d`.
const INCREASE: &str = "\
sum by (cluster, namespace, job, project, app) (rate(pds_app_requests_total[1d])) \
/ (sum by (cluster, namespace, job, project, app) (rate(pds_app_requests_accounted_seconds_total[1d])) > 0) \
* ( \
0 * (sum by (cluster, namespace, job, project, app) (increase(pds_app_requests_accounted_seconds_total[1d])) >= 82080) + 86400 \
or sum by (cluster, namespace, job, project, app) (increase(pds_app_requests_accounted_seconds_total[1d])) \
)";

/// A counter on that day.
struct Row {
    key: Key,
    /// The service's total, or the reason why there is none.
    service: Result<u64>,
    prometheus: Option<f64>,
}

impl Row {
    fn difference(&self) -> Option<f64> {
        Some(self.prometheus?.round() - *self.service.as_ref().ok()? as f64)
    }

    fn agrees(&self, percent: f64) -> bool {
        let Ok(total) = self.service else { return false };
        let tolerated = (total as f64 * percent / 100.0).max(2.0);
        self.difference().is_some_and(|difference| difference.abs() <= tolerated)
    }

    fn cells(&self) -> Vec<String> {
        let Self { key, service, prometheus } = self;
        let total = service.as_ref().ok();
        let percent = self.difference().zip(total.filter(|total| **total > 0));
        let note = match (service, prometheus) {
            (Err(error), _) => error.reason(),
            (_, None) => "not in Prometheus".to_owned(),
            _ => String::new(),
        };
        vec![
            key.owner.app.to_string(),
            key.owner.project.to_string(),
            key.resource.as_str().to_owned(),
            total.map(u64::to_string).unwrap_or_default(),
            prometheus.map(|value| value.round().to_string()).unwrap_or_default(),
            self.difference().map(|difference| difference.to_string()).unwrap_or_default(),
            percent.map(|(by, total)| format!("{:.2}", by * 100.0 / *total as f64)).unwrap_or_default(),
            note,
        ]
    }
}

/// Compares the day of every configured app, and prints a row for each counter.
///
/// # Errors
/// If the configuration or Prometheus cannot be used, or a counter differs.
pub async fn run(console: &mut Console, environment: &Environment, args: &ReconcileArgs) -> Result<()> {
    let service = args.service.open(environment)?;
    let poll = &service.config.poll;
    // The average delay of a counter.
    let behind = whole_seconds(poll.settle)
        + (whole_seconds(service.config.accounting.step) + whole_seconds(poll.interval)) / 2;
    let now = Timestamp::now();
    let start = args.day.unwrap_or_else(|| last_day(now, behind)).as_second();
    if start + DAY + behind > now.as_second() {
        let from = rfc3339(start + DAY + behind);
        let message = format!("that day is not fully counted; it can be compared after {from}");
        return Err(ToolError::Usage(message));
    }
    let source = read::source(&service.config)?;
    let mut counted = HashMap::new();
    for (word, counts) in [("requests", Counted::Requests), ("runs", Counted::Runs)] {
        let at = format!("{{{}}}[1d] @ {}", source.selector(), start + DAY + behind);
        let query = INCREASE.replace("[1d]", &at).replace("pds_app_requests_", &format!("pds_app_{word}_"));
        let query = format!("max by (project, app) ({query})");
        let series = source.series(&query).await.map_err(|error| read::failed(&error))?;
        counted.extend(series.into_iter().filter_map(|(mut labels, value)| {
            Some(((labels.remove("project")?, labels.remove("app")?, counts as u8), value))
        }));
    }
    let ahead = usize::try_from(service.config.api.max_concurrent_requests.get()).unwrap_or(usize::MAX);
    let rows = iter(read::counters(&service.config)).map(|key| async {
        let counts = key.resource.polled().counted.unwrap_or(Counted::Requests);
        let app = (key.owner.project.to_string(), key.owner.app.to_string(), counts as u8);
        Row { service: total(&service, &key, start).await, prometheus: counted.get(&app).copied(), key }
    });
    let rows: Vec<Row> = rows.buffered(ahead).collect().await;
    let table = Table {
        columns: columns([
            ("APP", Align::Id),
            ("PROJECT", Align::Id),
            ("RESOURCE", Align::Left),
            ("SERVICE", Align::Right),
            ("PROMETHEUS", Align::Right),
            ("DIFFERENCE", Align::Right),
            ("PERCENT", Align::Right),
            ("NOTE", Align::Left),
        ]),
        rows: rows.iter().map(Row::cells).collect(),
        empty: "No app is configured.",
    };
    output::print_as(console, args.output.format, &[Block::Table(table)])?;
    match rows.iter().filter(|row| !row.agrees(args.tolerance)).count() {
        0 => Ok(()),
        differing => {
            let (all, most) = (units::plural(rows.len(), "counter", "counters"), args.tolerance);
            let text = format!("{differing} of {all} differ by more than {most} % or cannot be compared");
            Err(ToolError::failed(text))
        }
    }
}

/// The beginning of the last day that ended at least `behind` seconds ago.
fn last_day(now: Timestamp, behind: i64) -> Timestamp {
    let at = now.as_second() - behind;
    Timestamp::from_second(at - at.rem_euclid(DAY) - DAY).unwrap_or(now)
}

/// The service's total of the day that begins at `start`, in whole steps and in ranges that are no longer than counted
/// ones.
async fn total(service: &Service, key: &Key, start: i64) -> Result<u64> {
    let accounting = &service.config.accounting;
    let step = whole_seconds(accounting.step);
    let longest = whole_seconds(accounting.max_catch_up.min(MAX_MERGED)).max(step) / step * step;
    let (mut total, end, mut range) = (0, start + DAY, TimeRange { start, end: start });
    while range.end < end {
        range = TimeRange { start: range.end, end: end.min(range.end + longest) };
        let (read, _) = service.read(key.resource, &key.owner.project, &key.owner.app, range).await?;
        let tally = read(&[]).tally.unwrap_or_default();
        let answered = service.answered(Some(&tally), range)?;
        if answered.is_some_and(|answered| answered != range) {
            return Err(ToolError::failed("the reply is about another range"));
        }
        total += tally.total.ok_or_else(|| ToolError::failed("the reply has no total"))?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_compared_once_its_last_requests_are_counted() {
        for (now, day) in [("2026-03-02T00:01:29Z", "2026-02-28"), ("2026-03-02T00:01:30Z", "2026-03-01")] {
            assert_eq!(last_day(now.parse().unwrap(), 90).to_string(), format!("{day}T00:00:00Z"));
        }
    }

    #[test]
    fn the_expression_is_the_shipped_one() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus/rules/recording.yml");
        let rules = std::fs::read_to_string(folder).unwrap();
        let rules = rules.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            rules.contains(&format!("- record: pds_app:requests:increase1d expr: | {INCREASE}")),
            "{rules}"
        );
    }
}
