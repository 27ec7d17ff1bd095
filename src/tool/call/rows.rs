//! The calls of the interface, one row each.

use crate::config::QueryNames;
use crate::interface::response_time::MetricsQuery;
use crate::interface::spec::Call as _;
use crate::interface::{get_app, response_time, run_execution_time};

use super::{Given, Row, show};

/// All calls, in the order of the help.
pub static ROWS: &[Row] = &[
    Row {
        words: &["app", "get"],
        spec: &get_app::SPEC,
        body: &[],
        example: "p-abc12345-ranker",
        consequence: None,
        request: |given, _| {
            get_app::GetApp { project_id: given.project(), app_id: given.text("app_id") }.request()
        },
        show: show::app::view,
        secret: false,
    },
    Row {
        words: &["metrics", "response-time"],
        spec: &response_time::SPEC,
        body: &[],
        example: "p-abc12345-ranker --start 24h",
        consequence: None,
        request: |given, names| response_time::ResponseTimes(metrics(given, names)).request(),
        show: show::metrics::response_time,
        secret: false,
    },
    Row {
        words: &["metrics", "run-execution-time"],
        spec: &run_execution_time::SPEC,
        body: &[],
        example: "p-abc12345-ranker --start 2026-01-31 --end 2026-02-01 --resolution high",
        consequence: None,
        request: |given, names| run_execution_time::RunExecutionTimes(metrics(given, names)).request(),
        show: show::metrics::run_execution_time,
        secret: false,
    },
];

fn metrics<'a>(given: &'a Given, names: &'a QueryNames) -> MetricsQuery<'a> {
    MetricsQuery {
        project_id: given.project(),
        app_id: given.text("app_id"),
        range: given.range(),
        container: given.option("container_id"),
        resolution: given.resolution(),
        names,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::CALLS;

    #[test]
    fn every_call_of_the_interface_is_a_subcommand_once() {
        let mut rows: Vec<u8> = ROWS.iter().map(|row| row.spec.number).collect();
        let mut calls: Vec<u8> = CALLS.iter().map(|spec| spec.number).collect();
        rows.sort_unstable();
        calls.sort_unstable();
        assert_eq!(rows, calls);
    }

    #[test]
    fn what_only_reads_asks_nothing() {
        use crate::interface::spec::Method;
        assert!(
            ROWS.iter().filter(|row| row.spec.method == Method::Get).all(|row| row.consequence.is_none())
        );
        let deletes = ROWS.iter().filter(|row| row.spec.method == Method::Delete);
        assert!(deletes.into_iter().all(|row| row.consequence.is_some()));
    }
}
