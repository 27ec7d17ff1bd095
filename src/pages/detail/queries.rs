//! Links from an app to Prometheus and other programs that know it.

use maud::{Markup, html};

use pds_config::Web;
use pds_diagnosis::App;

use super::super::layout;
use super::super::links::{encode, url};

/// PromQL queries about an app; `$app` stands for its labels.
pub(super) const QUERIES: &[(&str, &str)] = &[
    (
        "95th percentile of response times in each window",
        "pds_app_response_time_seconds{$app,percentile=\"p95\"}",
    ),
    (
        "95th percentile of the requests counted over 5 minutes",
        "histogram_quantile(0.95, sum by (le) (rate(pds_app_request_duration_seconds_bucket{$app}[5m])))",
    ),
    (
        "Share of requests within 500 ms, counted over 5 minutes",
        "rate(pds_app_request_duration_seconds_bucket{$app,le=\"0.5\"}[5m]) / ignoring(le) (rate(pds_app_requests_total{$app}[5m]) > 0)",
    ),
    (
        "Requests per second of the time that was counted",
        "rate(pds_app_requests_total{$app}[5m]) / (rate(pds_app_requests_accounted_seconds_total{$app}[5m]) > 0)",
    ),
    ("Requests of the last day", "increase(pds_app_requests_total{$app}[1d])"),
    ("99th percentile of run execution times", "pds_app_run_execution_time_seconds{$app,percentile=\"p99\"}"),
    (
        "Runs per second of the time that was counted",
        "rate(pds_app_runs_total{$app}[5m]) / (rate(pds_app_runs_accounted_seconds_total{$app}[5m]) > 0)",
    ),
    (
        "Dollars per hour with all replicas running",
        "3600 * pds_app_max_replicas{$app} * pds_app_replica_cost_dollars_per_second{$app}",
    ),
    (
        "Seconds since the last successful poll of each resource",
        "time() - pds_last_success_timestamp_seconds{$app}",
    ),
    ("Seconds by which counters are behind", "time() - pds_app_accounted_until_timestamp_seconds{$app}"),
    ("Alerts of the app that are pending or firing", ALERTS),
];

const ALERTS: &str = "ALERTS{$app}";

/// `query` about `app`.
fn about(app: &App, query: &str) -> String {
    query.replace("$app", &app.selector())
}

/// Links to the app in the other programs that the configuration names.
pub(super) fn open_in(web: &Web, app: &App) -> Markup {
    let prometheus = web.prometheus_url.as_ref().map(|at| url::prometheus(at, &about(app, ALERTS), true));
    let grafana = web.grafana_url.as_ref().map(|at| url::dashboard(at, &app.project, &app.id));
    let service = web.service_url.as_ref().map(|at| at.url(&app.project, &app.id));
    let named = [("Alerts in Prometheus", prometheus), ("Grafana", grafana), ("The service", service)];
    let named: Vec<(&str, String)> = named.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
    html! {
        @if !named.is_empty() {
            p .open-in { "Open in: " @for (index, (name, at)) in named.iter().enumerate() {
                @if index > 0 { " · " } a href=(at) rel="noreferrer" { (name) }
            } }
        }
    }
}

/// The queries about the app, each with a copy button and, if Prometheus is configured, a link.
pub(super) fn queries(web: &Web, app: &App, metrics: &str) -> Markup {
    let only = format!("{metrics}?project={}&app={}", encode(&app.project), encode(&app.id));
    let caption = html! { caption .hidden { "Queries about the app" } };
    let rows = html! {
        tbody role="rowgroup" { @for (what, query) in QUERIES {
            tr role="row" {
                th scope="row" role="rowheader" { (what) }
                td role="cell" { (layout::query(web, &about(app, query), what)) }
            }
        } }
    };
    html! {
        section {
            h2 #queries { "Queries" }
            p .sub { "In PromQL. " a href=(only) { "All series of the app" } " are on the metrics page." }
            (layout::table("queries cards", "Queries", caption, &["What", "Query"], rows))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::fixture;

    #[test]
    fn every_query_reads_families_that_exist() {
        let catalogue = std::fs::read_to_string("docs/metrics.md").unwrap();
        for (what, query) in QUERIES {
            let names = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            for name in names.filter(|name| name.starts_with("pds_")) {
                let family = name.strip_suffix("_bucket").unwrap_or(name);
                assert!(catalogue.contains(&format!("`{family}")), "{what}: {name}");
            }
            assert!(query.contains("$app"), "{what}");
        }
    }

    /// The section with these keys.
    fn web(keys: &str) -> Web {
        let text = format!(
            "[api]\nbase_url = \"http://localhost\"\ntoken = \"t\"\n[web]\n{keys}\n[[projects]]\nid = \"p\"\n"
        );
        pds_config::load_text(std::path::Path::new("a.toml"), &text).unwrap().config.web
    }

    #[tokio::test(start_paused = true)]
    async fn links_lead_to_the_app_in_each_program_that_the_configuration_names() {
        let status = fixture::with_apps(&[("p 1", "a\"b")]).await.source.status();
        let app = &status.apps[0];
        let nothing = web("");
        assert_eq!(open_in(&nothing, app).into_string(), "");
        assert!(!queries(&nothing, app, "/metrics").into_string().contains("Open in Prometheus"));
        let web = web(
            "prometheus_url = \"http://prometheus:9090/in/\"\ngrafana_url = \"https://grafana.example.com\"",
        );
        let links = open_in(&web, app).into_string();
        let alerts = "http://prometheus:9090/in/graph?g0.expr=ALERTS%7Bproject%3D%22p%201%22%2Capp%3D%22a%5C%22b%22%7D&amp;g0.tab=1";
        let dashboard = "https://grafana.example.com/d/pds-app?var-project=p%201&amp;var-app=a%22b";
        assert!(links.contains(alerts) && links.contains(dashboard), "{links}");
        let queries = queries(&web, app, "/metrics").into_string();
        assert_eq!(queries.matches("http://prometheus:9090/in/graph?g0.expr=").count(), QUERIES.len());
        assert!(queries.contains("/metrics?project=p%201&amp;app=a%22b"), "{queries}");
    }
}
