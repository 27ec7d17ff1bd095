//! The configuration as users meet it: good files and their meaning, bad files and their exact errors.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pds_exporter::config::{self, LoadError, Loaded, Login, Objective, Origin, TokenSource, example};
use pds_exporter::interface::{QueryNames, Resolution};
use pds_exporter::secret::Secret;
use proptest::prelude::*;

use crate::golden::assert_golden;

/// Loads a file with the environment that its lines `# env: NAME=value` give.
fn load(path: &Path) -> Result<Loaded, LoadError> {
    let text = std::fs::read_to_string(path).unwrap();
    let environment = text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("# env: ")?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    config::load(path, environment)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(Path::new("tests/it/config").join(folder)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn every_bad_file_gets_its_exact_errors_and_no_secret() {
    for path in files("bad") {
        let error = load(&path).expect_err(&format!("{} was accepted", path.display()));
        let text = format!("{error}\n");
        assert!(!text.contains("hunter"), "{} shows a secret: {text}", path.display());
        assert_golden(&path.with_extension("err"), &text);
    }
}

#[test]
fn every_good_file_loads() {
    for path in files("good") {
        load(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn values_mean_what_the_file_and_the_environment_say() {
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
    assert_eq!(config.state.path, Some(folder.join("state.redb")));
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
    let objective = |millis, share_millionths| {
        Some(Objective { threshold: Duration::from_millis(millis), share_millionths })
    };
    assert_eq!((ranker.objective, embed.objective), (objective(500, 990_000), objective(60_000, 900_000)));
    assert_eq!((ranker.interval, embed.interval), (None, Some(Duration::from_secs(15))));
    assert_eq!(embed.containers.len(), 1);
}

#[test]
fn included_files_add_projects_in_the_order_of_their_names() {
    let loaded = load(Path::new("tests/it/config/good/include.toml")).unwrap();
    let [ads, search] = &*loaded.config.projects else { panic!("{:?}", loaded.config.projects) };
    assert_eq!((&*ads.id, &*search.id), ("p-ads", "p-search"));
    let token = Path::new("tests/it/config/good/include/search-token");
    assert_eq!(search.token, Some(TokenSource::File(token.to_owned())), "relative to the included file");
    let id = loaded.explained.iter().find(|row| row.value == "\"p-search\"").unwrap();
    assert_eq!(id.key, "tests/it/config/good/include/search.toml: projects[0].id");
}

#[test]
fn the_checksum_changes_with_any_file_that_is_read_and_with_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let main =
        "include = [\"projects.d/*.toml\"]\n[api]\nbase_url = \"https://api.example.com\"\ntoken = \"t\"\n";
    std::fs::write(path("main.toml"), main).unwrap();
    std::fs::create_dir(path("projects.d")).unwrap();
    let mut seen = Vec::new();
    let mut changes = |what: &str| {
        let now = config::checksum(&path("main.toml"), []);
        assert_eq!(now, config::checksum(&path("main.toml"), []), "{what}: not stable");
        assert!(!seen.contains(&now), "{what}: not seen");
        seen.push(now);
    };
    changes("the first look");
    std::fs::write(path("projects.d/a.toml"), "[[projects]]\nid = \"p-1\"\n").unwrap();
    changes("a new file");
    std::fs::write(path("projects.d/a.toml"), "[[projects]]\nid = \"p-2\"\n").unwrap();
    changes("a changed file");
    std::fs::rename(path("projects.d/a.toml"), path("projects.d/b.toml")).unwrap();
    changes("a renamed file");
    std::fs::write(path("projects.d/b.toml"), "[[projects").unwrap();
    changes("a bad file");
    std::fs::write(path("main.toml"), format!("{main}[")).unwrap();
    changes("a bad main file");
    std::fs::remove_file(path("main.toml")).unwrap();
    changes("no main file");
    let before = config::checksum(&path("main.toml"), []);
    std::fs::write(path("projects.d/notes.txt"), "").unwrap();
    assert_eq!(config::checksum(&path("main.toml"), []), before);
}

#[test]
fn a_variable_is_read_as_its_key_wants_it() {
    let api = load(Path::new("tests/it/config/good/environment_only.toml")).unwrap().config.api;
    assert_eq!(api.base_url.as_str(), "http://127.0.0.1:8080/");
    assert_eq!(api.token, Some(TokenSource::Inline(Secret::new("0012345"))));
    assert_eq!(api.max_response_bytes, 1 << 20);
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
    let load =
        |headers: &str| config::load(Path::new("tests/it/config/good/minimal.toml"), environment(headers));
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
    assert!(
        refused.contains("state.prometheus_headers: must be a table") && !refused.contains("hunter"),
        "{refused}"
    );
}

#[test]
fn a_valid_configuration_that_is_hardly_meant_is_warned_of() {
    let load = |text: &str| {
        let text = format!(
            "[api]\nbase_url = \"https://a\"\ntoken = \"t\"\n[[projects]]\nid = \"p\"\n[state]\n{text}"
        );
        config::load_text(Path::new("x.toml"), &text).unwrap().config.warnings()
    };
    let url = |url: &str| format!("prometheus_url = \"{url}\"\n");
    let login = "prometheus_token_file = \"t\"\n";
    assert_eq!(load(&url("http://prometheus:9090")), Vec::<String>::new());
    assert_eq!(load(&(url("http://127.0.0.1:9090") + login)), Vec::<String>::new());
    assert_eq!(load(&(url("https://prometheus:9090") + login)), Vec::<String>::new());
    assert_eq!(
        load(&(url("http://prometheus:9090") + login)),
        [
            "state.prometheus_url http://prometheus:9090/ is plain http: everyone on the way can read the credentials; use https"
        ]
    );
    assert_eq!(
        load(&(url("http://prometheus:9090") + "[accounting]\nmax_catch_up = \"6h\"")),
        [
            "state.lookback is 1day, but accounting.max_catch_up is 6h: counters older than that are read back, \
          and the time between is unaccounted; set both to the same"
        ]
    );
    assert_eq!(
        load(&(url("http://prometheus:9090") + "[accounting]\nenabled = false")),
        ["state.prometheus_url has no effect while accounting.enabled = false"]
    );
    assert_eq!(load("[accounting]\nmax_catch_up = \"6h\""), Vec::<String>::new());
}

#[test]
fn no_proxy_of_the_environment_is_heeded_in_either_spelling() {
    let no_proxy = |name: &str, value: &str| {
        let environment = [("PATH".to_owned(), "/bin".to_owned()), (name.to_owned(), value.to_owned())];
        config::load(Path::new("tests/it/config/good/minimal.toml"), environment).unwrap().config.api.no_proxy
    };
    for name in ["NO_PROXY", "no_proxy"] {
        assert_eq!(no_proxy(name, "10.0.0.0/8,.example.com").as_deref(), Some("10.0.0.0/8,.example.com"));
    }
    assert_eq!(no_proxy("NO_PROXY_AT_ALL", "*"), None);
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let config = load(Path::new("tests/it/config/good/minimal.toml")).unwrap().config;
    assert_eq!(config.api.timeout, Duration::from_secs(10));
    assert_eq!(config.api.connect_timeout, Duration::from_secs(3));
    assert_eq!(config.api.max_concurrent_requests.get(), 32);
    assert_eq!(config.api.max_requests_per_second, NonZeroU32::new(50));
    assert_eq!(config.api.max_response_bytes, 2 << 20);
    assert_eq!(config.api.max_retries, 2);
    assert_eq!((config.api.ca_file, config.api.proxy_url), (None, None));
    assert_eq!(config.api.query_names, QueryNames::default());
    assert_eq!(config.poll.interval, Duration::from_secs(60));
    assert_eq!(config.poll.settings_interval, Duration::from_secs(300));
    assert_eq!(config.poll.windows, [Duration::from_secs(300)]);
    assert_eq!(config.poll.settle, Duration::from_secs(30));
    assert_eq!(config.poll.resolution, Resolution::Standard);
    assert_eq!(config.poll.stale_after, Duration::from_secs(300));
    assert!(config.accounting.enabled);
    assert_eq!(config.accounting.step, Duration::from_secs(60));
    assert_eq!(config.accounting.max_catch_up, Duration::from_secs(86_400));
    assert_eq!((config.state.path, config.state.prometheus), (None, None));
}

#[test]
fn the_example_file_is_up_to_date_and_sets_nothing_but_defaults() {
    let path = Path::new("config.example.toml");
    assert_golden(path, &example::text());
    let example = load(path).unwrap().config;
    let minimal = load(Path::new("tests/it/config/good/minimal.toml")).unwrap().config;
    assert_eq!(
        config::Config { projects: Vec::new(), ..example.clone() },
        config::Config {
            api: config::Api { token: example.api.token, ..minimal.api },
            projects: Vec::new(),
            ..minimal
        }
    );
}

#[test]
fn the_view_of_what_is_in_force_shows_each_origin_and_no_secret() {
    let loaded = load(Path::new("tests/it/config/good/design.toml")).unwrap();
    let shown = |key: &str| {
        let row = loaded.explained.iter().find(|row| row.key == key);
        row.map(|row| (row.value.as_str(), row.origin))
    };
    assert_eq!(shown("api.timeout"), Some(("\"10s\"", Origin::Default)));
    assert_eq!(shown("api.max_requests_per_second"), Some(("0", Origin::File)));
    assert_eq!(shown("poll.windows"), Some(("[\"5m\", \"1h\"]", Origin::Environment)));
    assert_eq!(shown("api.proxy_url"), Some(("\"http://proxy:3128/\"", Origin::File)));
    assert_eq!(shown("projects[0].token"), Some(("[redacted]", Origin::File)));
    assert_eq!(shown("projects[0].apps[0]"), Some(("\"p-abc12345-ranker\"", Origin::File)));
    assert_eq!(shown("projects[0].apps[1].labels"), Some(("{ tier = \"gold\" }", Origin::File)));
    assert_eq!(
        shown("state.prometheus_headers"),
        Some(("{ \"x.dotted\" = \"[redacted]\", X-Scope-OrgID = \"[redacted]\" }", Origin::File))
    );
    assert_eq!(shown("api.token"), None);
    let explained = format!("{:?}", loaded.explained);
    assert!(!explained.contains("hunter"), "{explained}");
}

#[test]
fn a_missing_or_unreadable_file_is_named() {
    let missing = config::load(Path::new("nowhere.toml"), []).unwrap_err();
    assert!(matches!(missing, LoadError::Missing { .. }));
    assert!(
        missing.to_string().contains("nowhere.toml") && missing.to_string().contains("config.example.toml")
    );
    let folder = config::load(Path::new("tests"), []).unwrap_err();
    assert!(matches!(folder, LoadError::Unreadable { .. }));
    assert_eq!(folder.to_string(), "cannot read the configuration file tests");
}

#[test]
fn a_file_nested_without_end_is_refused_rather_than_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.toml");
    let times = 100_000;
    for text in [
        format!("projects = {}", "[".repeat(times)),
        format!("projects = {}{}", "[".repeat(times), "]".repeat(times)),
        format!("api = {}", "{a=".repeat(times)),
        format!("api{} = 1", ".a".repeat(times)),
        format!("[api{}]", ".a".repeat(times)),
        format!("[[projects{}]]", ".a".repeat(times)),
    ] {
        std::fs::write(&path, &text).unwrap();
        assert!(config::load(&path, []).is_err(), "{}", &text[..30]);
    }
}

/// `text` as a TOML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// TOML values of every kind, nested a little.
fn toml_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        Just("1.5e300".to_owned()),
        Just("nan".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        "\\PC{0,12}".prop_map(|text| quoted(&text)),
        prop_oneof!["[0-9]{1,25}(ns|s|m|h|d|y| )?", "https?://[a-z@:/?#\\[\\]]{0,12}", "\\.{0,3}"]
            .prop_map(|text| quoted(&text)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::btree_map("[a-z_]{1,6}|id|labels|apps|token", inner, 0..4).prop_map(|table| {
                let members: Vec<_> = table.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                format!("{{ {} }}", members.join(", "))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_file_and_no_environment_makes_loading_panic(
        lines in prop::collection::btree_map(prop::sample::select(known_paths()), toml_value(), 0..8),
        stray in "[ -~\n\"\\[\\]=.é]{0,40}",
        variable in prop::sample::select(known_variables()),
        value in "[ -~]{0,20}",
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pds-exporter.toml");
        let mut text: String = lines.iter().map(|(path, value)| format!("{path} = {value}\n")).collect();
        for stray in ["", stray.as_str()] {
            text.push_str(stray);
            std::fs::write(&path, &text).unwrap();
            if let Err(error) = config::load(&path, [(variable.clone(), value.clone())]) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}

fn known_paths() -> Vec<&'static str> {
    let mut paths: Vec<_> = config::keys::all().iter().map(|key| &*key.path).collect();
    paths.retain(|path| !path.contains("[]"));
    paths.extend(["projects", "\"a[9]\"", "api.unknown", "poll"]);
    paths
}

fn known_variables() -> Vec<String> {
    let known = config::keys::all().iter().filter_map(config::keys::Key::environment_name);
    known.chain(["PDS_EXPORTER__".to_owned(), "PDS_EXPORTER__A[9]".to_owned()]).collect()
}
