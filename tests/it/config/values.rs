//! The meaning of the values of a configuration: in the file, in the environment, and by default.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pds_config::{Objective, TokenSource};
use pds_core::secret::Secret;
use pds_interface::Resolution;
use pds_ledger::restore::Login;

use super::load;
use crate::process::assert_has;

#[test]
fn values_come_from_the_file_and_the_environment() {
    let config = load(Path::new("tests/it/config/good/design.toml")).unwrap().config;
    let folder = Path::new("tests/it/config/good");
    assert_eq!(config.api.base_url.as_str(), "https://api.example.com/some/path");
    assert_eq!(config.api.token, Some(TokenSource::File(folder.join("secrets/token"))));
    assert_eq!(config.api.max_requests_per_second, None);
    assert_eq!(config.api.max_response_bytes, 1 << 20);
    assert_eq!(config.api.max_retries, 0);
    assert_eq!(config.api.ca_file.as_deref(), Some(Path::new("/etc/ca.pem")));
    assert_eq!(config.poll.windows, [Duration::from_secs(300), Duration::from_secs(3600)]);
    assert_eq!(config.poll.resolution, Resolution::High);
    assert!(!config.accounting.enabled);
    assert_eq!(config.state.path, Some(folder.join("state.log")));
    let prometheus = config.state.prometheus.unwrap();
    assert_eq!(prometheus.url.as_str(), "https://mimir.example.com/prometheus");
    assert_eq!(prometheus.login, Some(Login::Token(folder.join("secrets/prometheus"))));
    assert_eq!(prometheus.ca_file.as_deref(), Some(Path::new("/etc/mimir.pem")));
    let headers = prometheus.headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
    assert_eq!(headers.collect::<Vec<_>>(), [("x-scope-orgid", "hunter-team"), ("x.dotted", "hunter2")]);
    assert_eq!(prometheus.selector, "job=\"pds-exporter\", cluster=~\"eu-.*\"");
    assert_eq!(prometheus.lookback, Duration::from_secs(12 * 3600));
    assert_eq!(config.web.prometheus_url, None);
    assert_eq!(config.web.grafana_url.unwrap().as_str(), "https://grafana.example.com/of/us/");
    let page = config.web.service_url.unwrap().url("p-1", "a/../\"b");
    assert_eq!(page, "https://console.example.com/p-1/apps/a%2F..%2F%22b?tab=logs");

    let [search, odd] = &*config.projects else { panic!("{:?}", config.projects) };
    assert_eq!(search.token, Some(TokenSource::Inline(Secret::new("hunter2"))));
    assert_eq!(&*odd.id, "p-<script>\"\\🦀");
    let [ranker, embed] = &*search.apps else { panic!("{:?}", search.apps) };
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(ranker.labels, [label("team", "search"), label("tier", "silver")]);
    assert_eq!(embed.labels, [label("team", "search"), label("tier", "gold")]);
    let objective = |millis, share| Some(Objective { threshold: Duration::from_millis(millis), share });
    assert_eq!((ranker.objective, embed.objective), (objective(500, 0.99), objective(60_000, 0.9999999)));
    assert_eq!((ranker.interval, embed.interval), (None, Some(Duration::from_secs(15))));
    assert_eq!(embed.containers.len(), 1);
}

#[test]
fn a_variable_is_read_as_its_key_wants_it() {
    let api = load(Path::new("tests/it/config/good/environment_only.toml")).unwrap().config.api;
    assert_eq!(api.base_url.as_str(), "http://127.0.0.1:8080/");
    assert_eq!(api.token, Some(TokenSource::Inline(Secret::new("0012345"))));
    assert_eq!(api.max_response_bytes, 1 << 20);
}

#[test]
fn an_empty_variable_is_the_empty_list() {
    let environment = [
        ("PDS_EXPORTER__API__BASE_URL", "https://api.example.com"),
        ("PDS_EXPORTER__API__TOKEN", "t"),
        ("PDS_EXPORTER__ACCOUNTING__RECHECK_AFTER", ""),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = pds_config::load_without_file(environment).unwrap();
    assert!(config.accounting.recheck_after.is_empty());
}

#[test]
fn the_environment_sets_headers_as_pairs() {
    let environment = |headers: &str| {
        let name = |key: &str| format!("PDS_EXPORTER__STATE__{key}");
        [
            (name("PROMETHEUS_URL"), "http://127.0.0.1:9090".to_owned()),
            (name("PROMETHEUS_USERNAME"), "pds".to_owned()),
            (name("PROMETHEUS_PASSWORD_FILE"), "/secrets/password".to_owned()),
            (name("PROMETHEUS_HEADERS"), headers.to_owned()),
        ]
    };
    let load = |headers: &str| {
        pds_config::load(Path::new("tests/it/config/good/minimal.toml"), environment(headers))
    };
    let loaded = load("X-Scope-OrgID=hunter=2, b=c").unwrap();
    let prometheus = loaded.config.state.prometheus.unwrap();
    let headers = prometheus.headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
    assert_eq!(headers.collect::<Vec<_>>(), [("x-scope-orgid", "hunter=2"), ("b", "c")]);
    let password_file = PathBuf::from("/secrets/password");
    assert_eq!(prometheus.login, Some(Login::Basic { username: "pds".to_owned(), password_file }));
    let row = loaded.explained.iter().find(|row| row.key == "state.prometheus_headers").unwrap();
    assert_eq!(row.value, "{ X-Scope-OrgID = \"[redacted]\", b = \"[redacted]\" }");
    assert_eq!(row.variable.as_deref(), Some("PDS_EXPORTER__STATE__PROMETHEUS_HEADERS"));
    assert!(load("").unwrap().config.state.prometheus.unwrap().headers.is_empty());
    let refused = load("hunter2").unwrap_err().to_string();
    assert_has(&refused, &["state.prometheus_headers: must be a table"]);
    assert!(!refused.contains("hunter"), "{refused}");
}

#[test]
fn a_variable_replaces_the_whole_value_of_the_file() {
    let text = std::fs::read_to_string("tests/it/config/good/minimal.toml").unwrap()
        + "\n[state]\nprometheus_url = \"http://127.0.0.1:9090\"\n\
           prometheus_headers = { X-Scope-OrgID = \"file\", b = \"c\" }\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pds-exporter.toml");
    std::fs::write(&path, text).unwrap();
    let headers = |variable: &str| {
        let environment = [("PDS_EXPORTER__STATE__PROMETHEUS_HEADERS".to_owned(), variable.to_owned())];
        let prometheus = pds_config::load(&path, environment).unwrap().config.state.prometheus.unwrap();
        let headers = prometheus.headers.iter();
        headers.map(|(name, value)| format!("{name}={}", value.expose())).collect::<Vec<_>>()
    };
    assert_eq!(headers("x-scope-orgid=variable"), ["x-scope-orgid=variable"]);
    assert_eq!(headers(""), Vec::<String>::new());
}

#[test]
fn proxies_of_the_environment_are_named_and_not_used() {
    let warnings = |names: &[&str]| {
        let variables =
            names.iter().map(|name| ((*name).to_owned(), "http://u:secret@proxy:3128".to_owned()));
        let path = Path::new("tests/it/config/good/minimal.toml");
        let api_url = ("PDS_EXPORTER__API__PROXY_URL".to_owned(), "http://proxy:3128".to_owned());
        let configured = Some(api_url).filter(|_| names.contains(&"NO_PROXY"));
        pds_config::load(path, variables.chain(configured)).unwrap().config.warnings()
    };
    let said = "set but not used: HTTP_PROXY, https_proxy, all_proxy; only api.proxy_url, which is empty, sets a proxy";
    assert_eq!(warnings(&["HTTP_PROXY", "https_proxy", "all_proxy"]), [said]);
    let said = warnings(&["NO_PROXY"]);
    assert!(said.len() == 1 && said[0].contains("NO_PROXY; only api.proxy_url, which is set,"), "{said:?}");
    assert_eq!(warnings(&["NO_PROXY_AT_ALL"]), [""; 0]);
}
