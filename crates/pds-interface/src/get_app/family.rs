//! The families of an app's settings, and how each is read from the reply.

use crate::polled::{Row, rows};
use crate::range::parse_time;
use crate::reader::Reader;
use crate::wire::{Field, Flag, Text};
use pds_exposition::Family;

use super::App;

/// Bytes in a GB as the service counts memory, as a power of ten: the interface says GB, not GiB.
const GB: i32 = 9;

rows! { App, "from the app's settings, polled every poll.settings_interval":
    INFO: info(
        "pds_app_info",
        [
            "name", "runtime", "region", "hardware", "hardware_provider", "compute_tier", "base_image",
            "python_version", "service_version", "scaling_metric", "load_balancing_algorithm"
        ],
        "Settings of the app, and configured labels"
    ) => |app, reader| {
        reader.info(&[
            ("name", &app.name),
            ("runtime", &app.runtime),
            ("region", &app.region),
            ("hardware", &app.hardware),
            ("hardware_provider", &app.hardware_provider),
            ("compute_tier", &app.compute_tier),
            ("base_image", &app.base_image),
            ("python_version", &app.python_version),
            ("service_version", &app.service_version),
            ("scaling_metric", &app.scaling_metric),
            ("load_balancing_algorithm", &app.load_balancing_algorithm),
        ]);
    };
    STATUS: gauge(
        "pds_app_status", ["status"], "1 for the app's current status, in lower case"
    ) => |app, reader| put_status(reader, &app.status);
    LAST_BUILD_STATUS: gauge(
        "pds_app_last_build_status", ["status"],
        "1 for the status of the app's latest build, in lower case"
    ) => |app, reader| put_status(reader, &app.last_build_status);
    BUILD_INFO: info(
        "pds_app_build_info", ["latest_build_id", "latest_created_build_id", "latest_ready_build_id"],
        "The app's latest, latest created and latest ready build"
    ) => |app, reader| {
        let ids: [(&str, &str); 3] = [
            ("latest_build_id", &app.latest_build_id),
            ("latest_created_build_id", &app.latest_created_build_id),
            ("latest_ready_build_id", &app.latest_ready_build_id),
        ];
        if ids.iter().any(|(_, id)| !id.is_empty()) {
            reader.put_with(&ids, 1.0);
        }
    };
    ERROR: gauge("pds_app_error", [], "1 if the app's settings contain an error message, 0 otherwise")
        => |app, reader| match &app.error_message {
            Field::Unexpected => reader.unexpected.fields.push("errorMessage"),
            message => reader.put(f64::from(!message.as_str().is_empty())),
        };
    CREATED: gauge("pds_app_created_timestamp_seconds", [], "Unix time of the app's creation")
        => |app, reader| put_timestamp(reader, "createdAt", &app.created_at);
    UPDATED: gauge("pds_app_updated_timestamp_seconds", [], "Unix time of the app's last update")
        => |app, reader| put_timestamp(reader, "updatedAt", &app.updated_at);
    CPU_CORES: gauge("pds_app_cpu_cores", [], "CPU cores allocated")
        => |app, reader| reader.number("cpu", app.cpu);
    MEMORY: gauge("pds_app_memory_bytes", [], "Memory allocated (1 GB is 10^9 bytes)")
        => |app, reader| reader.scaled("memory", app.memory, GB);
    GPUS: gauge("pds_app_gpus", [], "GPUs allocated")
        => |app, reader| reader.number("gpuCount", app.gpu_count);
    PORT: gauge("pds_app_port", [], "Port that the app listens on") => |app, reader| {
        if let Some(port) = reader.unexpected.check("port", app.port, 0.0, f64::from(u16::MAX)) {
            reader.put(port);
        }
    };
    AUTH_DISABLED: gauge(
        "pds_app_auth_disabled", [], "1 if authentication on the app's endpoint is disabled"
    ) => |app, reader| match app.disable_auth {
        Flag::Value(disabled) => reader.put(f64::from(disabled)),
        Flag::Missing => {}
        Flag::Unexpected => reader.unexpected.fields.push("disableAuth"),
    };
    REPLICA_COST: gauge(
        "pds_app_replica_cost_dollars_per_second", [],
        "Estimated cost of a running replica in US dollars per second"
    ) => |app, reader| reader.scaled("costPerSecondCents", app.cost_per_second_cents, -2);
    MIN_REPLICAS: gauge("pds_app_min_replicas", [], "Minimum number of replicas")
        => |app, reader| reader.number("minReplicaCount", app.min_replica_count);
    MAX_REPLICAS: gauge("pds_app_max_replicas", [], "Maximum number of replicas")
        => |app, reader| reader.number("maxReplicaCount", app.max_replica_count);
    REPLICA_CONCURRENCY: gauge("pds_app_replica_concurrency", [], "Maximum concurrent requests of a replica")
        => |app, reader| reader.number("replicaConcurrency", app.replica_concurrency);
    SCALING_TARGET: gauge(
        "pds_app_scaling_target", [],
        "Target of autoscaling for the scaling metric in pds_app_info"
    ) => |app, reader| reader.number("scalingTarget", app.scaling_target);
    SCALING_BUFFER: gauge("pds_app_scaling_buffer_replicas", [], "Replicas kept beyond current demand")
        => |app, reader| reader.number("scalingBuffer", app.scaling_buffer);
    COOLDOWN: gauge("pds_app_cooldown_seconds", [], "Idle time before a replica stops")
        => |app, reader| reader.number("cooldownPeriodSeconds", app.cooldown_period_seconds);
    EVALUATION_INTERVAL: gauge(
        "pds_app_evaluation_interval_seconds", [], "Time between evaluations of autoscaling"
    ) => |app, reader| reader.number("evaluationIntervalSeconds", app.evaluation_interval_seconds);
    RESPONSE_GRACE_PERIOD: gauge(
        "pds_app_response_grace_period_seconds", [], "Grace period for requests in flight of a stopping replica"
    ) => |app, reader| reader.number("responseGracePeriodSeconds", app.response_grace_period_seconds);
    ROLL_OUT_DURATION: gauge(
        "pds_app_roll_out_duration_seconds", [], "Duration of the roll-out of a new version"
    ) => |app, reader| reader.number("rollOutDurationSeconds", app.roll_out_duration_seconds);
    INITIALIZATION_TIMEOUT: gauge(
        "pds_app_deployment_initialization_timeout_seconds", [], "Time limit for a deployment to initialize"
    ) => |app, reader| {
        reader.number("deploymentInitializationTimeout", app.deployment_initialization_timeout);
    };
}

fn put_status(reader: &mut Reader<'_>, status: &Text) {
    if let Some(status) = status.stated() {
        reader.put_with(&[("status", &status.to_lowercase())], 1.0);
    }
}

fn put_timestamp(reader: &mut Reader<'_>, field: &'static str, text: &Text) {
    let Some(text) = text.stated() else { return };
    match parse_time(text) {
        Some(time) if time > jiff::Timestamp::UNIX_EPOCH => reader.put(time.as_duration().as_secs_f64()),
        // Services write the zero of Unix time, or of Go, if there is no time.
        Some(time) if time == jiff::Timestamp::UNIX_EPOCH || text.starts_with("0001-01-01T") => {}
        _ => reader.unexpected.fields.push(field),
    }
}
