//! Set-ups that are broken in one way each: page, JSON, `pdstool status`, `pdstool doctor` and log name the same cause
//! and remedy.

mod exporter;
mod network;
mod replies;
mod token;

use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use pds_core::clock::Clock;
use pds_diagnosis::{About, Cause, Scope, cause};
use pds_interface::Resource;
use pds_simulator::{Fault, Kind, Quirks, Settings, World};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use crate::process::{Exporter, edit, pdstool, until};
use crate::restore::prometheus::Prometheus;
use crate::rig::{self, Configuration, EVERY_SECOND, FaultExt as _, html};

/// The fault, and the cause that every surface names.
struct SetUp {
    name: &'static str,
    cause: &'static Cause,
    /// Further lines in `[api]`.
    api: &'static str,
    /// Further tables.
    tables: &'static str,
    quirks: Quirks,
    fault: Option<Kind>,
    /// Only for requests of this resource.
    resource: Option<Resource>,
    /// How far the service's clock is behind, in hundreds of seconds.
    behind: i64,
    /// When the tokens expire, in hundreds of seconds.
    expiry: Option<i64>,
    /// Whether a Prometheus without cursors scrapes the exporter.
    scraped: bool,
    /// The replacement of this text of the configuration.
    edit: fn(String) -> String,
    /// The faults of the folder and the process of an exporter that has begun to poll.
    after: Option<fn(&Path, &Exporter)>,
    /// Further words on page, JSON, `pdstool status` and doctor: what the service says, or the id that was meant.
    words: &'static str,
    /// The doctor's first remedy, if it knows more than the exporter: the step that fails, the line of a file.
    step: Option<&'static str>,
}

impl SetUp {
    fn of(name: &'static str, cause: &'static Cause) -> Self {
        Self {
            name,
            cause,
            api: "",
            tables: "",
            quirks: Quirks::default(),
            fault: None,
            resource: None,
            behind: 0,
            expiry: None,
            scraped: false,
            edit: |text| text,
            after: None,
            words: "",
            step: None,
        }
    }

    fn failing(name: &'static str, cause: &'static Cause, kind: Kind) -> Self {
        Self { fault: Some(kind), ..Self::of(name, cause) }
    }

    fn edited(name: &'static str, cause: &'static Cause, edit: fn(String) -> String) -> Self {
        Self { edit, ..Self::of(name, cause) }
    }

    /// Only for requests of this resource.
    fn on(self, resource: Resource) -> Self {
        Self { resource: Some(resource), ..self }
    }

    /// With these words on each surface.
    fn saying(self, words: &'static str) -> Self {
        Self { words, ..self }
    }
}

/// The configuration with another address of the service.
fn addressed(text: &str, to: impl Fn(&str) -> String) -> String {
    let line = text.lines().find(|line| line.starts_with("base_url = ")).unwrap();
    text.replace(line, &format!("base_url = \"{}\"", to(line.split('"').nth(1).unwrap())))
}

/// A broken set-up with its exporter.
struct Patient {
    folder: TempDir,
    exporter: Exporter,
    config: String,
}

impl Patient {
    async fn start(set_up: &SetUp) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { projects: 1, apps: 1, quirks: set_up.quirks, ..Settings::default() };
        let in_hundreds = |hundreds: i64| Timestamp::now() + SignedDuration::from_secs(100 * hundreds);
        let world = World::new(settings, Clock::starting_at(in_hundreds(-set_up.behind)));
        if let Some(kind) = set_up.fault.clone() {
            let fault = Fault::from(kind);
            world.faults().set([set_up.resource.map_or(fault.clone(), |resource| fault.on(resource))]);
        }
        let prometheus = Prometheus::start(Clock::system()).await;
        let restoring = format!("[state]\nprometheus_url = \"http://{}\"\n", prometheus.address);
        let restoring = if set_up.scraped { &*restoring } else { "" };
        let mut configuration = Configuration::new(&world, &rig::serve(&world).await)
            .api(&format!("max_requests_per_second = 0\nmax_retries = 0\n{}", set_up.api))
            .tables(&format!("{EVERY_SECOND}{}{restoring}", set_up.tables));
        if let Some(expiry) = set_up.expiry {
            configuration = configuration.expiring(in_hundreds(expiry));
        }
        let config = configuration.write(folder.path());
        drop(configuration);
        edit(&config, set_up.edit);
        let web = folder.path().join("web-config.yml");
        std::fs::write(&web, "").unwrap();
        std::fs::create_dir(folder.path().join("state")).unwrap();
        let args = ["--config.file", &config, "--web.config.file", web.to_str().unwrap()];
        let exporter = Exporter::start(&args);
        prometheus.scrape(&exporter.get("/metrics").await, &[]);
        if let Some(after) = set_up.after {
            exporter.wait_for("/-/ready").await;
            after(folder.path(), &exporter);
        }
        Self { folder, exporter, config }
    }

    /// Output and errors of `pdstool` with these arguments.
    async fn run(&self, args: &[&str]) -> [String; 2] {
        let mut command = Command::new(pdstool());
        command.env_clear().args(args).current_dir(&self.folder);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    }

    /// The output of `pdstool` with these arguments about the exporter.
    async fn tool(&self, args: &[&str]) -> String {
        let [output, _] = self.run(&[args, &["--exporter", &self.exporter.url]].concat()).await;
        output
    }
}

/// The cause in the words of the table, around the name of the token.
fn assert_names(cause: &Cause, what: &str, said: &str) {
    let said = said.to_lowercase();
    for part in cause.says.split("{token}") {
        assert!(said.contains(&part.to_lowercase()), "{what} does not say `{part}`:\n{said}");
    }
}

async fn examine(set_up: &SetUp) {
    let patient = Patient::start(set_up).await;
    let (name, cause) = (set_up.name, set_up.cause);
    let mut reason = Value::Null;
    until(&format!("{name}: the verdict is {}", cause.code), async || {
        reason = patient.exporter.reasons().await.first().cloned().unwrap_or_default();
        // Some words are known only once the list of projects is.
        reason["code"] == cause.code && reason.to_string().contains(set_up.words)
    })
    .await;
    let text = |field: &str| reason[field].as_str().unwrap().to_owned();
    let (remedy, says) = (text("remedy"), text("text"));
    assert_names(cause, &format!("{name}: the JSON"), &says);
    let loaded = pds_config::load(Path::new(&patient.config), []);
    let place = loaded.map(|loaded| cause.place(&loaded.config.api)).unwrap_or_default();
    let has_words = |what: &str, said: &str| {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [set_up.words, &place] {
            assert!(said.contains(part), "{name}: {what} does not say `{part}`:\n{said}");
        }
    };
    has_words("the JSON", &reason.to_string());
    assert!(remedy.starts_with(cause.remedy.split('{').next().unwrap()), "{name}: {remedy}");
    assert!(!remedy.contains("the token file"), "{name}: {remedy}");

    let page = patient.exporter.get("/").await.replace("&quot;", "\"").replace("&#39;", "'");
    assert_names(cause, &format!("{name}: the page"), &page);
    assert!(page.contains(&remedy), "{name}: {page}");
    has_words("the page", &page);

    let said = patient.tool(&["status"]).await;
    let (_, reasons) = said.split_once("Reasons").unwrap_or_else(|| panic!("{name}: {said}"));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let reasons = words(reasons);
    has_words("pdstool status", &reasons);
    let (first, rest) = reasons.split_once(" -> ").unwrap_or_else(|| panic!("{name}: {said}"));
    assert_names(cause, &format!("{name}: pdstool status"), first);
    assert!(rest.starts_with(&words(&remedy)), "{name}: {said}");

    let told = || {
        let log = patient.exporter.log().replace("\\\"", "\"");
        log.lines().find(|line| line.contains(&remedy)).map(str::to_owned)
    };
    until(&format!("{name}: the log says {remedy}"), async || told().is_some()).await;
    let line = told().unwrap();
    let log = patient.exporter.log().replace("\\\"", "\"");
    let first = log.lines().find(|line| line.contains("remedy=")).unwrap();
    assert_eq!(first, line, "{name}: the first remedy in the log");
    assert_names(cause, &format!("{name}: the log"), &line);
    // The line of a failed poll has its URL or its proxy, and not the ids that are known.
    let host = place.trim_start_matches(" (").split(':').next().unwrap();
    assert!(line.contains(host), "{name}: the log does not say {host}: {line}");
    if *cause != cause::NOT_FOUND {
        let log = patient.exporter.log().replace("\\\"", "\"");
        assert!(log.contains(set_up.words), "{name}: the log does not say `{}`: {log}", set_up.words);
    }
    if cause.about == About::Apps || *cause == cause::NOT_FOUND {
        has_words("pdstool apps", &patient.tool(&["apps", "-o", "csv"]).await);
    }

    if cause.scope == Scope::Proxy {
        for format in ["table", "csv", "json"] {
            let args = ["call", "projects", "list", "--config.file", &patient.config, "-o", format];
            let [_, error] = patient.run(&args).await;
            let address = place.trim_matches([' ', '(', ')']);
            assert!(error.contains("the proxy ") && error.contains(address), "{name}: {error}");
        }
    }

    let said = patient.tool(&["doctor", "-o", "json", "--config.file", &patient.config]).await;
    let report: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{name}: {said}"));
    let wrong = report["findings"].as_array().unwrap().iter();
    let wrong: Vec<&Value> = wrong
        .filter(|finding| ["problem", "warning"].contains(&finding["state"].as_str().unwrap()))
        .collect();
    let said = |field: &str| wrong.first().and_then(|finding| finding[field].as_str()).unwrap_or_default();
    let first = said("remedy");
    assert!(
        first.starts_with(set_up.step.unwrap_or(&remedy)),
        "{name}: the doctor says first {first}: {wrong:#?}"
    );
    if set_up.step.is_none() {
        assert_names(cause, &format!("{name}: the doctor's first finding"), said("text"));
        has_words("the doctor's first finding", said("text"));
    }
    // The daemon's reason, which is not repeated if a check of the doctor has found the same.
    let found = wrong.iter().filter(|finding| finding["remedy"] == *remedy);
    let texts = found.map(|finding| finding["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n");
    assert_names(cause, &format!("{name}: the doctor"), &texts);
    has_words("the doctor", &texts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_json_status_doctor_and_log_name_the_same_cause_and_remedy() {
    // Runs as many at a time as two processors can serve.
    let (places, local, mut all) = (Rc::new(Semaphore::new(6)), LocalSet::new(), JoinSet::new());
    let set_ups = [
        network::of_the_service(),
        network::of_proxies(),
        token::of_a_token(),
        replies::of_replies(),
        exporter::of_the_exporter(),
    ];
    for set_up in set_ups.into_iter().flatten() {
        let places = places.clone();
        let examined = async move {
            let _place = places.acquire().await.unwrap();
            examine(&set_up).await;
        };
        all.spawn_local_on(examined, &local);
    }
    let mut failed = 0;
    let ended = async {
        while let Some(ended) = all.join_next().await {
            failed += usize::from(ended.is_err());
        }
    };
    local.run_until(ended).await;
    assert_eq!(failed, 0, "set-ups that failed, above");
}
