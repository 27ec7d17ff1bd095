//! The properties of each app: settings, containers and their traffic. All are computed from the seed on demand, so that
//! ten thousand apps take no memory except for their ids.

use jiff::Timestamp;

use pds_interface::Number;
use pds_interface::get_app::App;
use pds_interface::number::NumberText;
use pds_interface::wire::{Field, Flag, Text};

use super::chance::{hash, pick, seconds, word};
use super::latency::Latency;
use super::traffic::{Rhythm, Stream};

/// A model for apps. The apps of a world follow the blueprints in turn.
#[derive(Debug)]
pub(super) struct Blueprint {
    /// The part of the app's id after the project's.
    pub(super) slug: &'static str,
    name: &'static str,
    status: &'static str,
    build: &'static str,
    runtime: &'static str,
    hardware: &'static str,
    gpus: f64,
    containers: &'static [Load],
}

/// The traffic of one container: requests and runs per hour, night and unrest of its rhythm, and the median in
/// milliseconds and steepness of its latency.
type Load = (u64, u64, (u64, f64), (u32, i32));

/// An app: its slug and name, its status and that of its build, its runtime, its hardware with the number
/// of GPUs, and its containers.
const fn app(
    (slug, name): (&'static str, &'static str),
    (status, build): (&'static str, &'static str),
    runtime: &'static str,
    (hardware, gpus): (&'static str, f64),
    containers: &'static [Load],
) -> Blueprint {
    Blueprint { slug, name, status, build, runtime, hardware, gpus, containers }
}

/// Busy, quiet, daily, bursty and idle traffic; healthy, building and broken apps; a name full of special characters.
pub(super) static BLUEPRINTS: [Blueprint; 8] = [
    app(
        ("ranker", "Search ranker"),
        ("ready", "success"),
        "cortex",
        ("AMPERE_A10", 1.0),
        &[(180_000, 9000, (40, 0.1), (80, 3)), (22_000, 1100, (70, 0.3), (420, 2))],
    ),
    app(
        ("embed", "Embeddings"),
        ("active", "ready"),
        "custom",
        ("CPU", 0.0),
        &[(3600, 3600, (0, 0.05), (12, 4))],
    ),
    app(
        ("chat", "Chat"),
        ("success", "success"),
        "cortex",
        ("HOPPER_H100", 4.0),
        &[(24_000, 24_000, (90, 0.2), (1300, 2)), (9000, 9000, (90, 0.2), (900, 2))],
    ),
    app(
        ("batch", "Nightly batch"),
        ("cold", "ready"),
        "custom",
        ("ADA_L40", 2.0),
        &[(900, 2400, (0, 0.8), (200_000, 2))],
    ),
    app(
        ("gateway", "Gateway"),
        ("deploying", "building"),
        "custom",
        ("CPU", 0.0),
        &[(700_000, 0, (50, 0.4), (6, 3)), (300_000, 0, (50, 0.4), (8, 3)), (4000, 0, (0, 0.6), (2400, 2))],
    ),
    app(("canary", "Canary"), ("pending", ""), "cortex", ("CPU", 0.0), &[(0, 0, (0, 0.0), (100, 2))]),
    app(
        ("trainer", "Trainer"),
        ("Build_Error", "init_timeout"),
        "cortex",
        ("AMPERE_A100_80GB", 8.0),
        &[(20, 45, (0, 0.5), (30_000, 2))],
    ),
    app(
        ("quotes", "He said \"go\" \\ and\nwent <script>alert('x')</script> & 🦀"),
        ("Ready", "SUCCESS"),
        "cortex \"v2\"",
        ("TURING_T4", 1.0),
        &[(600, 300, (30, 0.3), (150, 3))],
    ),
];

impl Blueprint {
    fn entrypoint(&self) -> Vec<String> {
        match self.runtime {
            "custom" => vec!["uvicorn".to_owned(), "main:app".to_owned()],
            _ => Vec::new(),
        }
    }

    /// The ids of the latest build and of the latest that is ready.
    fn builds(&self, seed: u64, app: usize) -> [String; 2] {
        let [latest, before, older] = builds(seed, app);
        let ready = match self.build.to_ascii_lowercase().as_str() {
            "success" | "ready" => latest.clone(),
            "" => older,
            // A build that is not done, or failed, leaves the one before it as the newest that is ready.
            _ => before,
        };
        [latest, ready]
    }
}

/// The blueprint of app number `app`.
pub(super) fn of(app: usize) -> &'static Blueprint {
    &BLUEPRINTS[app % BLUEPRINTS.len()]
}

/// The id of app number `app` in the project `project`: the blueprint's name, with a number from its second use on.
pub(super) fn id(project: &str, app: usize) -> String {
    let slug = of(app).slug;
    match app / BLUEPRINTS.len() {
        0 => format!("{project}-{slug}"),
        round => format!("{project}-{slug}-{}", round + 1),
    }
}

/// A container of an app.
#[derive(Clone, Debug)]
pub(super) struct Container {
    /// Its id, as used in the container filter of the metrics calls.
    pub(super) id: String,
    /// Its requests.
    pub(super) requests: Stream,
    /// Its runs.
    pub(super) runs: Stream,
    /// The latency of its requests.
    pub(super) latency: Latency,
}

/// The containers of app number `app`.
pub(super) fn containers(seed: u64, app: usize) -> Vec<Container> {
    let of_app = hash(&[seed, 1, app as u64]);
    let container = |(index, load): (usize, &Load)| {
        let &(requests, runs, (night, unrest), (median_millis, steepness)) = load;
        let stream = |kind: u64, per_hour: u64| Stream {
            seed: hash(&[of_app, index as u64, kind]),
            // Apps of one blueprint differ in load.
            per_hour: per_hour * (80 + of_app % 41) / 100,
            rhythm: Rhythm { night, unrest },
        };
        Container {
            id: format!("c-{}", index + 1),
            requests: stream(0, requests),
            runs: stream(1, runs),
            latency: Latency { median_millis, steepness },
        }
    };
    of(app).containers.iter().enumerate().map(container).collect()
}

/// The ids of an app's builds, the newest first.
pub(super) fn builds(seed: u64, app: usize) -> [String; 3] {
    [0, 1, 2].map(|age| format!("b-{}", word(hash(&[seed, 2, app as u64, age]), 12)))
}

const SCALING_METRICS: &[&str] =
    &["concurrency_utilization", "requests_per_second", "cpu_utilization", "memory_utilization"];

/// The settings of app number `app` (section 2).
pub(super) fn settings(seed: u64, app: usize, id: &str, project: &str) -> App {
    let blueprint = of(app);
    let chance = |what: u64| hash(&[seed, 3, app as u64, what]);
    let one_of = |options: &[&'static str], what| Text::from(pick(options, chance(what)));
    // Its numeric settings are not set yet, and are sent as `""`.
    let is_unset = blueprint.status == "pending";
    let error = match blueprint.build {
        "init_timeout" => "replica did not become ready within 600 s: CUDA out of memory",
        _ => "",
    };
    let number = |options: &[f64], what| match is_unset {
        true => NumberText(Number::Missing),
        false => NumberText(Number::Value(pick(options, chance(what)))),
    };
    let created = created(chance(0));
    let updated = created + seconds(chance(1), 5_000_000);
    let [latest, ready] = blueprint.builds(seed, app);
    App {
        id: id.into(),
        name: blueprint.name.into(),
        project_id: project.into(),
        status: blueprint.status.into(),
        error_message: Field::Value(error.into()),
        created_at: created.to_string().into(),
        updated_at: updated.to_string().into(),
        runtime: blueprint.runtime.into(),
        entrypoint: blueprint.entrypoint(),
        base_image: one_of(&["debian:bookworm-slim", "nvidia/cuda:12.4.1-runtime", "python:3.12-slim"], 2),
        python_version: one_of(&["3.10", "3.11", "3.12"], 3),
        service_version: one_of(&["1.41.0", "2.0.3", "2.1.0"], 4),
        port: number(&[8000.0, 8080.0, 8192.0], 5).0,
        disable_auth: Flag::Value(chance(6) % 4 == 0),
        internal_endpoint: format!("http://{id}.internal.example.com").into(),
        healthcheck_endpoint: "/health".into(),
        readycheck_endpoint: "/ready".into(),
        compute_tier: one_of(&["interruptible", "protected"], 7),
        hardware: blueprint.hardware.into(),
        hardware_provider: one_of(&["aws", "coreweave", "gcp"], 8),
        region: one_of(&["us-east-1", "eu-west-2", "ap-south-1"], 9),
        cpu: number(&[0.5, 2.0, 3.5, 8.0], 10),
        memory: number(&[1.5, 8.0, 32.0, 128.0], 11),
        gpu_count: number(&[blueprint.gpus], 12),
        cost_per_second_cents: number(&[0.0035, 0.0306, 0.0611, 0.1], 13),
        min_replica_count: number(&[0.0, 1.0, 2.0], 14),
        max_replica_count: number(&[3.0, 5.0, 20.0], 15),
        replica_concurrency: number(&[1.0, 10.0, 100.0], 16),
        scaling_metric: one_of(SCALING_METRICS, 17),
        scaling_target: number(&[50.0, 80.0, 100.0], 18),
        scaling_buffer: number(&[0.0, 1.0], 19),
        cooldown_period_seconds: number(&[30.0, 60.0, 1800.0], 20),
        evaluation_interval_seconds: number(&[30.0], 21),
        response_grace_period_seconds: number(&[900.0, 3600.0], 22),
        roll_out_duration_seconds: number(&[0.0, 120.0], 23),
        deployment_initialization_timeout: number(&[600.0], 24),
        load_balancing_algorithm: one_of(
            &["round-robin", "first-available", "min-connections", "random-choice-2", ""],
            25,
        ),
        last_build_status: blueprint.build.into(),
        latest_build_id: latest.clone().into(),
        latest_created_build_id: latest.into(),
        latest_ready_build_id: ready.into(),
    }
}

/// A creation time in 2025.
pub(super) fn created(chance: u64) -> Timestamp {
    let new_year = Timestamp::from_second(1_735_689_600).unwrap_or(Timestamp::UNIX_EPOCH);
    new_year + seconds(chance, 20_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_settings_are_sent_as_text_and_unset_ones_as_empty_text() {
        let written = |app| serde_json::to_value(settings(1, app, "p-1-x", "p-1")).unwrap();
        assert!(written(0)["cpu"].as_str().unwrap().parse::<f64>().is_ok());
        assert!(written(0)["port"].is_u64());
        assert_eq!(written(5)["cpu"], "");
        assert_eq!(written(5)["minReplicaCount"], "");
        assert_ne!(written(6)["errorMessage"], "");
    }

    #[test]
    fn apps_of_one_blueprint_differ() {
        assert_eq!(id("p-1", 1), "p-1-embed");
        assert_eq!(id("p-1", 9), "p-1-embed-2");
        assert_ne!(containers(1, 0)[0].requests.seed, containers(1, 8)[0].requests.seed);
        assert_ne!(builds(1, 0), builds(1, 8));
    }
}
