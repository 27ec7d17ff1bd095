//! `docs/how-to.md`: each recipe is run as it stands there, against a simulated service and real tools.

mod rotation;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use pds_config::Config;
use pds_interface::TimeRange;
use pds_simulator::Settings;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use super::evaluated::assert_passes;
use super::steps::Machine;
use super::{command, list, string, succeed, text, yaml};
use crate::client::transport::authority;
use crate::docs::blocks;
use crate::process::{Exporter, until};
use crate::real_backfill::Blocking;
use crate::server::{PROMETHEUS_2, Server};
use crate::tool::simulated::Simulated;

/// The heading of a recipe, and what shows that it works.
type Recipe = (&'static str, fn(&Stage, &str));

const RECIPES: &[Recipe] = &[
    ("Poll three projects with three tokens", |stage, recipe| {
        let service = Simulated::with(Settings { projects: 3, ..Settings::default() });
        let [mut config] = <[String; 1]>::try_from(blocks(recipe, "toml")).unwrap();
        let names = [("search", &["ranker", "embed"][..]), ("ads", &["bidder"]), ("speech", &["whisper"])];
        for ((name, examples), (project, apps)) in names.into_iter().zip(service.world.projects()) {
            let token = stage.machine.folder.path().join(name);
            fs::write(&token, service.world.token(&project).unwrap().expose()).unwrap();
            config = config.replace(&format!("/run/secrets/pds/{name}"), token.to_str().unwrap());
            for (example, app) in examples.iter().zip(apps) {
                config = config.replace(&format!("\"p-{name}-{example}\""), &format!("\"{app}\""));
            }
            config = config.replace(&format!("\"p-{name}\""), &format!("\"{project}\""));
        }
        let file = stage.machine.folder.path().join("three.toml");
        fs::write(&file, format!("api.base_url = \"{}\"\n{config}", service.url)).unwrap();
        let exporter = Exporter::start(&["--config.file", file.to_str().unwrap()]);
        let up = stage.up(&exporter);
        assert_eq!(service.world.projects().iter().filter(|(id, _)| up.contains(&**id)).count(), 3, "{up}");
    }),
    ("Get an alert if the p95 exceeds `500ms` for ten minutes", |_, recipe| {
        let slow = r#"pds_app_response_time_seconds{project="p", app="a", window="5m", percentile="p95"}"#;
        assert_fires(recipe, &[(slow, "0.51x90")], "11m", true);
        assert_fires(recipe, &[(slow, "0.51x90")], "9m", false);
        assert_fires(recipe, &[(slow, "0.49x90")], "11m", false);
        let of_container = slow.replace('}', ", container_id=\"c\"}");
        assert_fires(recipe, &[(&of_container, "0.51x90")], "11m", false);
    }),
    ("See the cost", |_, _| {
        let page = fs::read_to_string("docs/query.md").unwrap();
        let query = blocks(&page, "promql").into_iter().find(|query| query.contains("dollars")).unwrap();
        for (query, dollars) in [(query.replace("_min_", "_max_"), 864.0), (query, 86.4)] {
            let samples = json!([{ "labels": "{region=\"eu\"}", "value": dollars }]);
            let case = json!({ "eval_time": "5m", "expr": query, "exp_samples": samples });
            let app = |family: &str, more: &str| format!("{family}{{project=\"p\", app=\"a\"{more}}}");
            let series = [
                (app("pds_app_min_replicas", ""), "1x90"),
                (app("pds_app_max_replicas", ""), "10x90"),
                (app("pds_app_replica_cost_dollars_per_second", ""), "0.001x90"),
                (app("pds_app_info", ", region=\"eu\""), "1x90"),
            ];
            assert_passes(&["groups: []".to_owned()], "1m", &series, json!({ "promql_expr_test": [case] }));
        }
    }),
    ("Use a proxy and a private CA", |stage, recipe| {
        let folder = stage.machine.folder.path();
        let (ca, tls) = authority(folder, "api.example.com");
        let (proxy, tunnels) = stage.proxy_to_tls(tls);
        let [mut config] = <[String; 1]>::try_from(blocks(recipe, "toml")).unwrap();
        for (example, here) in [
            ("/run/secrets/pds/token", "token"),
            ("http://proxy.example.com:3128", &*proxy),
            ("/etc/ssl/private-ca.pem", ca.to_str().unwrap()),
        ] {
            assert!(config.contains(example), "{config}");
            config = config.replace(example, here);
        }
        let file = folder.join("proxied.toml");
        fs::write(&file, config + &projects(&stage.project, &stage.app)).unwrap();
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
        daemon.arg("--config.file").arg(&file).arg("--web.listen-address=127.0.0.1:0");
        // Nothing listens there: the variable is ignored.
        daemon.env("HTTPS_PROXY", "http://127.0.0.1:1");
        let exporter = Exporter::of(daemon);
        stage.up(&exporter);
        assert!(exporter.log().contains("HTTPS_PROXY"), "{}", exporter.log());
        let tunnels = tunnels.lock().unwrap();
        assert!(tunnels.iter().all(|head| head.starts_with("CONNECT api.example.com:443 ")), "{tunnels:?}");
        assert!(!tunnels.is_empty() && !tunnels.concat().contains(&stage.token()), "{tunnels:?}");
    }),
    ("Rotate the token", rotation::each_way),
    ("Run two replicas", |stage, recipe| {
        stage.run(recipe);
        let rendered = stage.machine.rendered();
        for name in ["pds-a", "pds-b"] {
            assert!(rendered.contains(&format!("value: job=\"{name}\"")), "{name}: {rendered}");
        }
    }),
    ("Find out why a counter is missing", |stage, recipe| {
        let said = stage.run(recipe);
        assert!(said.contains("ranker") && said.contains("response time"), "{said}");
    }),
    ("Poll 20,000 apps", |stage, recipe| {
        let apps: Vec<String> = (0..20_000).map(|app| format!("\"p-1-{app}\"")).collect();
        let many = format!("\n[[projects]]\nid = \"p-1\"\napps = [{}]\n", apps.join(","));
        let config = load("", recipe, &many);
        let (demand, limit) = (config.requests_per_minute(), config.api.max_requests_per_second.unwrap());
        assert_eq!(demand.overload(&config.api), None);
        assert!(demand.total / 60.0 * pds_config::HEADROOM <= f64::from(limit.get()), "{}", demand.total);
        let [example] = &blocks(recipe, "toml")[..] else { panic!("one block: {recipe}") };
        let file = stage.machine.folder.path().join("many.toml");
        let all = format!("{}{many}", example.replace("/run/secrets/pds/token", "token"));
        fs::write(file, all).unwrap();
        let said = succeed(stage.machine.shell("pds-exporter --config.check --config.file=many.toml"));
        assert!(said.contains("20,000 apps"), "{said}");
    }),
    ("Import the last seven days", |stage, recipe| {
        stage.run(recipe);
        let history = fs::read_to_string(stage.machine.folder.path().join("history.om")).unwrap();
        let samples = history.lines().filter(|line| line.starts_with("pds_app_requests_total{"));
        let times: Vec<i64> = samples.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        let (start, end) = (times[0], times[times.len() - 1]);
        assert!((0..=300).contains(&(7 * 86_400 - (end - start))), "{start} to {end}");
        let (project, app) = (&stage.project, &stage.app);
        let truth = stage.service.world.truth(project, app, TimeRange { start, end }).unwrap();
        assert!(truth.requests > 0 && truth.runs > 0, "an app without traffic shows nothing");
        let labels =
            format!("project=\"{project}\",app=\"{app}\",job=\"pds-exporter\",instance=\"pds-exporter\"");
        Blocking::over(&stage.data()).assert_counted(&labels, &truth, end);
    }),
    ("Send the metrics of one team to one Prometheus", |stage, recipe| {
        let [config] = &blocks(recipe, "yaml")[..] else { panic!("one block: {recipe}") };
        let file = stage.machine.folder.path().join("prometheus.yml");
        fs::write(&file, config).unwrap();
        succeed(command("promtool", [Path::new("check"), Path::new("config"), &file]));
        let here = config.replace("localhost:10090", stage.exporter.url.trim_start_matches("http://"));
        let of_others = here.replace("job_name: search", "job_name: others");
        let jobs: Vec<Value> = [here.replace("p-search", &stage.project), of_others]
            .iter()
            .flat_map(|config| list(&yaml(config)[0]["scrape_configs"]).to_vec())
            .collect();
        let global = json!({ "scrape_interval": "1s", "evaluation_interval": "1s" });
        let config = json!({ "global": global, "rule_files": ["objectives.yml"], "scrape_configs": jobs });
        let (config, rules) = (config.to_string(), text("prometheus/rules/objectives.yml"));
        let files = [("prometheus.yml", &*config), ("objectives.yml", &*rules)];
        stage.runtime.block_on(async {
            stage.exporter.wait_for("/-/ready").await;
            let part = stage.exporter.get(&format!("/metrics?project={}", stage.project)).await;
            assert!(part.contains("\npds_up{") && !part.contains("pds_exporter_"), "{part}");
            let server = Server::prometheus(PROMETHEUS_2, &files, "--log.level=error").await;
            let jobs_of = async |query: &str| -> BTreeSet<String> {
                let series = server.query(query).await;
                series.iter().map(|series| string(series, "/metric/job").to_owned()).collect()
            };
            let objective = "pds:slo_least_requests:count";
            until("objectives are recorded", async || jobs_of(objective).await.len() == 2).await;
            let joined = format!("pds_up * on (cluster, namespace, job) group_left () {objective}");
            until("the team's series have objectives", async || jobs_of(&joined).await.contains("search"))
                .await;
            assert!(!jobs_of("pds_up").await.contains("others"), "series of another team");
        });
    }),
    ("Upgrade or roll back", |stage, recipe| {
        assert!(stage.run(recipe).contains("the configuration is valid"));
    }),
    ("Uninstall", |stage, recipe| {
        stage.run_block("ln -s private/pds-exporter $root/var/lib/pds-exporter");
        stage.run(recipe);
        let paths = ["etc/pds-exporter", "etc/systemd/system/pds-exporter.service", "var/lib/pds-exporter"];
        assert_eq!(paths.into_iter().find(|path| stage.machine.root(path).symlink_metadata().is_ok()), None);
    }),
    ("See what the token may do", |stage, recipe| {
        let said = stage.run(recipe);
        assert!(said.contains(&*stage.project) && said.contains("get one app"), "{said}");
    }),
    ("Check that the data is right", |stage, recipe| {
        // The history that was imported above.
        let server = stage.runtime.block_on(Server::over(&stage.data()));
        stage.configure(&format!("[state]\nprometheus_url = \"http://{}\"\n", server.address));
        let said = stage.run(recipe);
        assert!(said.contains(&*stage.project), "{said}");
        stage.runtime.block_on(async { drop(server) });
    }),
    ("Get an alert on idle GPUs", |_, recipe| {
        let series_of = |family: &str| format!("{family}{{project=\"p\", app=\"a\"}}");
        let (gpus, least) = (series_of("pds_app_gpus"), series_of("pds_app_min_replicas"));
        let requests = series_of("pds_app:requests:increase1h");
        for (replicas, increase, fires) in
            [("1x90", "0x90", true), ("0x90", "0x90", false), ("1x90", "5x90", false)]
        {
            let series = [(&*gpus, "1x90"), (&*least, replicas), (&*requests, increase)];
            assert_fires(recipe, &series, "61m", fires);
        }
    }),
];

/// The configuration of a recipe, between what it leaves out.
fn load(before: &str, recipe: &str, after: &str) -> Config {
    let [example] = &blocks(recipe, "toml")[..] else { panic!("one block: {recipe}") };
    let text = format!("{before}{example}{after}");
    pds_config::load_text(Path::new("pds-exporter.toml"), &text).unwrap().config
}

/// The surroundings of the page's reader: a service, an exporter of one of its apps, and a machine with a configuration.
struct Stage {
    runtime: Runtime,
    machine: Machine,
    service: Simulated,
    exporter: Exporter,
    project: Arc<str>,
    app: Arc<str>,
}

impl Stage {
    fn new() -> Self {
        let service = Simulated::with(Settings { projects: 1, ..Settings::default() });
        let (project, apps) = service.world.projects()[0].clone();
        let app = apps.iter().find(|app| app.ends_with("-ranker")).unwrap().clone();
        let machine = Machine::new();
        for folder in ["etc/pds-exporter", "var/lib/private/pds-exporter"] {
            fs::create_dir_all(machine.root(folder)).unwrap();
        }
        succeed(machine.shell("cp deploy/systemd/pds-exporter.{service,socket} $root/etc/systemd/system"));
        let token = service.world.token(&project).unwrap().expose().to_owned();
        fs::write(machine.folder.path().join("token"), &token).unwrap();
        let config = machine.folder.path().join("pds-exporter.toml");
        write_config(&config, &service.url, &project, &app, "");
        let exporter = Exporter::start(&["--config.file", config.to_str().unwrap()]);
        Self { runtime: Runtime::new().unwrap(), machine, service, exporter, project, app }
    }

    /// The token in use.
    fn token(&self) -> String {
        fs::read_to_string(self.machine.folder.path().join("token")).unwrap()
    }

    /// Serves the service over TLS, behind a proxy. Returns the proxy's URL, and the requests for tunnels that it gets.
    fn proxy_to_tls(&self, tls: TlsAcceptor) -> (String, Arc<Mutex<Vec<String>>>) {
        let proxy = self.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let to = self.runtime.block_on(crate::rig::terminate_tls(&self.service.url, tls));
        let url = format!("http://{}", proxy.local_addr().unwrap());
        let tunnels = Arc::new(Mutex::new(Vec::new()));
        let seen = tunnels.clone();
        self.runtime.spawn(async move {
            while let Ok((client, _)) = proxy.accept().await {
                tokio::spawn(tunnel(BufReader::new(client), to, seen.clone()));
            }
        });
        (url, tunnels)
    }

    /// The lines of `pds_up` once `exporter` is ready; fails unless all are 1.
    fn up(&self, exporter: &Exporter) -> String {
        let page = self.runtime.block_on(async {
            exporter.wait_for("/-/ready").await;
            exporter.get("/metrics").await
        });
        let up: Vec<&str> = page.lines().filter(|line| line.starts_with("pds_up{")).collect();
        assert!(!up.is_empty() && up.iter().all(|line| line.ends_with(" 1")), "{up:#?}");
        up.join("\n")
    }

    /// Writes the configuration with further tables.
    fn configure(&self, tables: &str) {
        let config = self.machine.folder.path().join("pds-exporter.toml");
        write_config(&config, &self.service.url, &self.project, &self.app, tables);
    }

    /// The folder of Prometheus.
    fn data(&self) -> std::path::PathBuf {
        self.machine.folder.path().join("data")
    }

    /// Runs the commands of a recipe; what they print. Fails if one fails.
    fn run(&self, recipe: &str) -> String {
        blocks(recipe, "sh").iter().map(|block| self.run_block(block)).collect()
    }

    /// Runs one block of commands; what they print.
    fn run_block(&self, block: &str) -> String {
        let mut shell = self.machine.shell(block);
        shell.env("PDSTOOL_EXPORTER", &self.exporter.url);
        let said = succeed(shell.env("PDS_EXPORTER__API__MAX_REQUESTS_PER_SECOND", "0"));
        assert!(!said.contains(&self.token()), "the token is shown: {said}");
        said
    }
}

/// Fails unless the recipe's alert about the app `a` of the project `p` fires at `time`, or does not.
fn assert_fires(recipe: &str, series: &[(&str, &str)], time: &str, fires: bool) {
    let rules = blocks(recipe, "yaml");
    assert_eq!(rules.len(), 1, "one block: {recipe}");
    let alert = rules[0].split("alert: ").nth(1).unwrap().lines().next().unwrap();
    let alerts = if fires { json!([{ "exp_labels": { "project": "p", "app": "a" } }]) } else { json!([]) };
    let case = json!({ "eval_time": time, "alertname": alert, "exp_alerts": alerts });
    assert_passes(&rules, "1m", series, json!({ "alert_rule_test": [case] }));
}

/// Reads the head of a client's request into `seen`, and connects the client with `to`.
async fn tunnel(mut client: BufReader<TcpStream>, to: SocketAddr, seen: Arc<Mutex<Vec<String>>>) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if client.read_line(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    seen.lock().unwrap().push(head);
    let mut service = TcpStream::connect(to).await.unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let _ = copy_bidirectional(&mut client, &mut service).await;
}

fn projects(project: &str, app: &str) -> String {
    format!("[[projects]]\nid = \"{project}\"\napps = [\"{app}\"]\n")
}

fn write_config(path: &Path, url: &str, project: &str, app: &str, tables: &str) {
    let projects = projects(project, app);
    let text = format!("[api]\nbase_url = \"{url}\"\ntoken_file = \"token\"\n{tables}{projects}");
    fs::write(path, text).unwrap();
}

#[test]
fn every_recipe_works_as_it_stands_on_the_page() {
    let page = fs::read_to_string("docs/how-to.md").unwrap();
    let recipes: Vec<(&str, &str)> =
        page.split("\n## ").skip(1).map(|part| part.split_once('\n').unwrap()).collect();
    let headings: Vec<&str> = recipes.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(headings, RECIPES.iter().map(|(heading, _)| *heading).collect::<Vec<_>>());
    let stage = Stage::new();
    for ((heading, recipe), (_, works)) in recipes.iter().zip(RECIPES) {
        eprintln!("{heading}");
        works(&stage, recipe);
    }
}
