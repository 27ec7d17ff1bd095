//! The calls of the interface, one row each.

use jiff::tz::TimeZone;

use crate::config::QueryNames;
use crate::interface::create_api_key::CreateApiKey;
use crate::interface::file_tree::FileTree;
use crate::interface::response_time::MetricsQuery;
use crate::interface::spec::{Call as _, RuleError};
use crate::interface::{
    Request, branches, change_plan, create_api_key, delete_app, delete_domain, file_tree, get_app,
    list_domains, list_projects, payment_url, response_time, run_execution_time, unassign_domain,
    validate_domain, volume_alerts, zip_contents,
};

use super::{Given, Row, show};

/// All calls, in the order of the help.
pub static ROWS: &[Row] = &[
    Row {
        words: &["projects", "list"],
        spec: &list_projects::SPEC,
        body: &[],
        example: "",
        consequence: None,
        request: |_, _| list_projects::ListProjects.request(),
        show: show::project::list,
        secret: false,
    },
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
        words: &["app", "delete"],
        spec: &delete_app::SPEC,
        body: &[],
        example: "p-abc12345-ranker --yes",
        consequence: Some(|given| format!("deletes the app {} for good", given.text("app_id"))),
        request: |given, _| {
            delete_app::DeleteApp { project_id: given.project(), app_id: given.text("app_id") }.request()
        },
        show: show::app::deleted,
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
    Row {
        words: &["build", "zip-contents"],
        spec: &zip_contents::SPEC,
        body: &[],
        example: "p-abc12345-ranker b-1",
        consequence: None,
        request: |given, _| {
            zip_contents::ZipContents {
                project_id: given.project(),
                app_id: given.text("app_id"),
                build_id: given.text("build_id"),
            }
            .request()
        },
        show: show::build::zip_contents,
        secret: false,
    },
    Row {
        words: &["api-key", "create"],
        spec: &create_api_key::SPEC,
        body: &[],
        example: "--name ci --expires-at 2030-01-31 --secret-file ci.key",
        consequence: Some(|given| format!("creates an API key of project {}", given.project())),
        request: |given, _| create_key(given),
        show: show::api_key::created,
        secret: true,
    },
    Row {
        words: &["plan", "change"],
        spec: &change_plan::SPEC,
        body: &[("plan", "hobby, standard or enterprise")],
        example: "standard",
        consequence: Some(|given| {
            format!(
                "changes the plan of project {} to {}, which may cost money",
                given.project(),
                given.text("plan")
            )
        }),
        request: |given, _| {
            change_plan::ChangePlan { project_id: given.project(), plan: given.text("plan") }.request()
        },
        show: show::plan::changed,
        secret: false,
    },
    Row {
        words: &["payment-url"],
        spec: &payment_url::SPEC,
        body: &[],
        example: "",
        consequence: None,
        request: |given, _| payment_url::PaymentUrl { project_id: given.project() }.request(),
        show: show::plan::payment_url,
        secret: false,
    },
    Row {
        words: &["domains", "list"],
        spec: &list_domains::SPEC,
        body: &[],
        example: "",
        consequence: None,
        request: |given, _| list_domains::ListDomains { project_id: given.project() }.request(),
        show: show::domain::list,
        secret: false,
    },
    Row {
        words: &["domains", "validate"],
        spec: &validate_domain::SPEC,
        body: &[],
        example: "d-1",
        consequence: None,
        request: |given, _| {
            validate_domain::ValidateDomain {
                project_id: given.project(),
                domain_id: given.text("domain_id"),
            }
            .request()
        },
        show: show::domain::validated,
        secret: false,
    },
    Row {
        words: &["domains", "unassign"],
        spec: &unassign_domain::SPEC,
        body: &[],
        example: "d-1 --yes",
        consequence: Some(|given| {
            format!(
                "takes the domain {} off its app, which is then not reached by it",
                given.text("domain_id")
            )
        }),
        request: |given, _| {
            unassign_domain::UnassignDomain {
                project_id: given.project(),
                domain_id: given.text("domain_id"),
            }
            .request()
        },
        show: show::domain::unassigned,
        secret: false,
    },
    Row {
        words: &["domains", "delete"],
        spec: &delete_domain::SPEC,
        body: &[],
        example: "d-1 --yes",
        consequence: Some(|given| format!("deletes the domain {} for good", given.text("domain_id"))),
        request: |given, _| {
            delete_domain::DeleteDomain { project_id: given.project(), domain_id: given.text("domain_id") }
                .request()
        },
        show: show::domain::deleted,
        secret: false,
    },
    Row {
        words: &["volume-alerts"],
        spec: &volume_alerts::SPEC,
        body: &[],
        example: "",
        consequence: None,
        request: |given, _| volume_alerts::VolumeAlerts { project_id: given.project() }.request(),
        show: show::project::volume_alerts,
        secret: false,
    },
    Row {
        words: &["repo", "branches"],
        spec: &branches::SPEC,
        body: &[],
        example: "acme ranker",
        consequence: None,
        request: |given, _| {
            branches::Branches {
                project_id: given.project(),
                owner: given.text("owner"),
                repo: given.text("repo"),
            }
            .request()
        },
        show: show::repo::branches,
        secret: false,
    },
    Row {
        words: &["repo", "tree"],
        spec: &file_tree::SPEC,
        body: &[],
        example: "acme ranker --ref main --path src",
        consequence: None,
        request: |given, _| tree(given),
        show: show::repo::tree,
        secret: false,
    },
];

fn create_key(given: &Given) -> Result<Request, RuleError> {
    CreateApiKey {
        project_id: given.project(),
        name: given.option("name"),
        description: given.option("description"),
        // Known to be a date since the command line was read.
        expires: given.option("expiresAt").and_then(|date| date.parse().ok()),
        today: given.now.to_zoned(TimeZone::UTC).date(),
    }
    .request()
}

fn tree(given: &Given) -> Result<Request, RuleError> {
    FileTree {
        project_id: given.project(),
        owner: given.text("owner"),
        repo: given.text("repo"),
        reference: given.option("ref"),
        directory: given.option("path"),
    }
    .request()
}

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
