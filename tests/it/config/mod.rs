//! The configuration as users meet it: good files and their meaning, bad files and their exact errors.

mod hostile;
mod values;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pds_config::key::Preset;
use pds_config::{LoadError, Loaded, Origin, TokenSource};
use pds_core::secret::Secret;

use crate::golden::assert_golden;
use crate::process::assert_has;

/// Loads a file with the environment that its lines `# env: NAME=value` give.
fn load(path: &Path) -> Result<Loaded, LoadError> {
    let text = std::fs::read_to_string(path).unwrap();
    let environment = text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("# env: ")?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    pds_config::load(path, environment)
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
        let now = pds_config::checksum(&path("main.toml"), []);
        assert_eq!(now, pds_config::checksum(&path("main.toml"), []), "{what}: not stable");
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
    let before = pds_config::checksum(&path("main.toml"), []);
    std::fs::write(path("projects.d/notes.txt"), "").unwrap();
    assert_eq!(pds_config::checksum(&path("main.toml"), []), before);
}

#[test]
fn a_valid_but_unlikely_configuration_gets_warnings() {
    let load = |text: &str| {
        let text = format!(
            "[api]\nbase_url = \"https://a\"\ntoken = \"t\"\n[[projects]]\nid = \"p\"\n[state]\n{text}"
        );
        pds_config::load_text(Path::new("x.toml"), &text).unwrap().config.warnings()
    };
    let url = |url: &str| format!("prometheus_url = \"{url}\"\n");
    let login = "prometheus_token_file = \"t\"\n";
    assert_eq!(load(&url("http://prometheus:9090")), Vec::<String>::new());
    assert_eq!(load(&(url("http://127.0.0.1:9090") + login)), Vec::<String>::new());
    assert_eq!(load(&(url("https://prometheus:9090") + login)), Vec::<String>::new());
    let plain = "state.prometheus_url http://prometheus:9090/ is plain http: anyone on the network path can read the credentials; use https";
    assert_eq!(load(&(url("http://prometheus:9090") + login)), [plain]);
    let apart = "state.lookback is 1day, but accounting.max_catch_up is 6h: cursors older than that are used, \
                 and the time between is unaccounted; set both to the same value";
    assert_eq!(load(&(url("http://prometheus:9090") + "[accounting]\nmax_catch_up = \"6h\"")), [apart]);
    let idle = "state.prometheus_url has no effect while accounting.enabled = false";
    assert_eq!(load(&(url("http://prometheus:9090") + "[accounting]\nenabled = false")), [idle]);
    assert_eq!(load("[accounting]\nmax_catch_up = \"6h\""), Vec::<String>::new());
}

/// The text of `config.example.toml`: every key with its default and a line of help.
fn example() -> String {
    const HEAD: &str = "\
# The configuration of pds-exporter. Every key is here, with its default or, commented out, with an example.
# The environment overrides keys outside [[projects]]: PDS_EXPORTER__API__BASE_URL, PDS_EXPORTER__POLL__WINDOWS=\"5m,1h\".
# Durations are strings such as \"90s\" or \"1h 30m\".

";
    let mut text = HEAD.to_owned();
    let mut section = "";
    for key in pds_config::key::all() {
        let (its_section, name) = key.split();
        if its_section != section {
            section = its_section;
            text.push_str(&match section.strip_suffix("[]") {
                None => format!("[{section}]\n"),
                Some("projects") => "[[projects]]\n".to_owned(),
                Some(_) => {
                    "# An app as a table: { id = \"...\", interval = \"15s\" }. Its keys:\n\n".to_owned()
                }
            });
        }
        let (is_set, value) = match key.preset {
            Preset::Default(value) => (true, value),
            Preset::Required(value) => (section != "projects[].apps[]", value),
            // The example is a valid configuration.
            Preset::Unset(value) => (["api.token_file", "projects[].apps"].contains(&&*key.path), value),
        };
        let comment = if is_set { "" } else { "# " };
        writeln!(text, "# {}\n{comment}{name} = {value}\n", key.help).unwrap();
    }
    text.trim_end().to_owned() + "\n"
}

#[test]
fn the_example_file_is_up_to_date_and_sets_nothing_but_defaults() {
    let path = Path::new("config.example.toml");
    assert_golden(path, &example());
    let example = load(path).unwrap().config;
    let minimal = load(Path::new("tests/it/config/good/minimal.toml")).unwrap().config;
    assert_eq!(
        pds_config::Config { projects: Vec::new(), ..example.clone() },
        pds_config::Config {
            api: pds_config::Api { token: example.api.token, ..minimal.api },
            projects: Vec::new(),
            ..minimal
        }
    );
}

#[test]
fn the_view_of_the_configuration_in_force_shows_each_origin_and_no_secret() {
    let loaded = load(Path::new("tests/it/config/good/design.toml")).unwrap();
    let explained = |key: &str| loaded.explained.iter().find(|row| row.key == key);
    let headers = "{ \"x.dotted\" = \"[redacted]\", X-Scope-OrgID = \"[redacted]\" }";
    for (key, value, origin) in [
        ("api.timeout", "\"10s\"", Origin::Default),
        ("api.max_requests_per_second", "0", Origin::File),
        ("poll.windows", "[\"5m\", \"1h\"]", Origin::Environment),
        ("api.proxy_url", "\"http://proxy:3128/\"", Origin::File),
        ("projects[0].token", "[redacted]", Origin::File),
        ("projects[0].apps[0]", "\"p-abc12345-ranker\"", Origin::File),
        ("projects[0].apps[1].labels", "{ tier = \"gold\" }", Origin::File),
        ("state.prometheus_headers", headers, Origin::File),
    ] {
        let row = explained(key).unwrap_or_else(|| panic!("no {key}"));
        assert_eq!((&*row.value, row.origin), (value, origin), "{key}");
    }
    assert!(explained("api.token").is_none());
    let explained = format!("{:?}", loaded.explained);
    assert!(!explained.contains("hunter"), "{explained}");
}

#[test]
fn a_token_ends_before_the_line_end_of_its_variable() {
    let load = |token: &str| {
        let variables = [("BASE_URL", "https://api.example.com"), ("TOKEN", token)];
        let variables = variables.map(|(name, text)| (format!("PDS_EXPORTER__API__{name}"), text.to_owned()));
        pds_config::load_without_file(variables).map(|config| config.api.token)
    };
    assert_eq!(load("abc\r\n").unwrap(), Some(TokenSource::Inline(Secret::new("abc"))));
    assert_has(&load(" \n").unwrap_err().to_string(), &["api.token: must not be empty"]);
    assert_has(&load("a\nb\n").unwrap_err().to_string(), &["api.token: has more than one line"]);
}

#[test]
fn a_missing_or_unreadable_file_is_named() {
    let missing = pds_config::load(Path::new("nowhere.toml"), []).unwrap_err();
    assert!(matches!(missing, LoadError::Missing { .. }));
    assert_has(&missing.to_string(), &["nowhere.toml", "config.example.toml"]);
    let folder = pds_config::load(Path::new("tests"), []).unwrap_err();
    assert!(matches!(folder, LoadError::Unreadable { .. }));
    assert_eq!(folder.to_string(), "cannot read the configuration file tests");
}
