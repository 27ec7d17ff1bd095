//! An app.

use crate::interface::Number;
use crate::interface::delete_app::DeleteApp;
use crate::interface::get_app::{App, GetApp};
use crate::interface::spec::{Call as _, DecodeError};
use crate::tool::call::View;
use crate::tool::page::Block;
use crate::tool::units;

use super::{cell, further};

/// One app: what it is, what it runs on, how it scales.
///
/// # Errors
/// Where the reply is no app.
pub fn view(body: &[u8]) -> Result<View, DecodeError> {
    let app = GetApp::reply(body)?;
    let heading = |text: &str| Block::Heading(text.to_owned());
    let mut blocks = vec![
        heading(if app.name.is_empty() { "App" } else { &app.name }),
        identity(&app),
        heading("Compute"),
        compute(&app),
        heading("Scaling"),
        scaling(&app),
        heading("Builds"),
        Block::Facts(vec![
            ("last build", app.last_build_status.clone()),
            ("latest", app.latest_build_id.clone()),
            ("latest created", app.latest_created_build_id.clone()),
            ("latest ready", app.latest_ready_build_id.clone()),
        ]),
    ];
    blocks.extend(further(&app.extra));
    Ok(blocks.into())
}

/// The confirmation of a deletion.
///
/// # Errors
/// Where the reply is no text.
pub fn deleted(body: &[u8]) -> Result<View, DecodeError> {
    let message = DeleteApp::reply(body)?;
    Ok(vec![Block::Text(if message.is_empty() { "The app was deleted.".to_owned() } else { message })].into())
}

fn identity(app: &App) -> Block {
    Block::Facts(vec![
        ("id", app.id.clone()),
        ("project", app.project_id.clone()),
        ("status", app.status.clone()),
        ("error", app.error_message.clone()),
        ("created", app.created_at.clone()),
        ("updated", app.updated_at.clone()),
        ("runtime", app.runtime.clone()),
        ("base image", app.base_image.clone()),
        ("python", app.python_version.clone()),
        ("service version", app.service_version.clone()),
        ("entrypoint", cell(&app.entrypoint)),
        ("port", with(app.port, "")),
        ("auth disabled", cell(&app.disable_auth)),
        ("endpoint", app.internal_endpoint.clone()),
        ("healthcheck", app.healthcheck_endpoint.clone()),
        ("readycheck", app.readycheck_endpoint.clone()),
    ])
}

fn compute(app: &App) -> Block {
    let cost = app.cost_per_second_cents.value().map(|cents| {
        let dollars = cents / 100.0;
        format!(
            "${}/s ({}) while a replica runs",
            units::significant(dollars),
            units::dollars_per_hour(dollars * 3600.0)
        )
    });
    Block::Facts(vec![
        ("tier", app.compute_tier.clone()),
        ("hardware", app.hardware.clone()),
        ("provider", app.hardware_provider.clone()),
        ("region", app.region.clone()),
        ("cpu", with(app.cpu, " cores")),
        ("memory", with(app.memory, " GB")),
        ("gpus", with(app.gpu_count, "")),
        ("cost", cost.unwrap_or_default()),
    ])
}

fn scaling(app: &App) -> Block {
    let replicas = match (app.min_replica_count.value(), app.max_replica_count.value()) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (min, max) => min.or(max).map(|count| count.to_string()).unwrap_or_default(),
    };
    Block::Facts(vec![
        ("replicas", replicas),
        ("concurrency", with(app.replica_concurrency, " requests a replica")),
        ("metric", app.scaling_metric.clone()),
        ("target", with(app.scaling_target, "")),
        ("buffer", with(app.scaling_buffer, " replicas")),
        ("cooldown", lasting(app.cooldown_period_seconds)),
        ("evaluated every", lasting(app.evaluation_interval_seconds)),
        ("response grace", lasting(app.response_grace_period_seconds)),
        ("roll-out", lasting(app.roll_out_duration_seconds)),
        ("initialization", lasting(app.deployment_initialization_timeout)),
        ("load balancing", app.load_balancing_algorithm.clone()),
    ])
}

fn with(number: Number, unit: &str) -> String {
    number.value().map(|value| format!("{value}{unit}")).unwrap_or_default()
}

fn lasting(number: Number) -> String {
    number
        .value()
        .map(|value| if value == 0.0 { "0 s".to_owned() } else { units::seconds(value) })
        .unwrap_or_default()
}
