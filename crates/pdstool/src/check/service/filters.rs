//! The container filter and the resolution.

use crate::error::ToolError;
use pds_core::units;
use pds_interface::param::QueryNames;
use pds_interface::{RangeEnd, Resolution};

use super::Findings;
use super::asking::{Asking, refused};

/// A container that no app has.
const NO_CONTAINER: &str = "pdstool-no-such-container";

/// Other names of the filter that services of this kind use.
const NAMES: [&str; 4] = ["container", "containerId", "container_id", "replica_id"];

/// Tests the container filter with a container that does not exist.
///
/// # Errors
/// If the service does not answer.
pub async fn container(asking: &mut Asking, findings: &mut Findings) -> Result<(), ToolError> {
    const CHECK: &str = "container filter";
    if asking.total == 0.0 {
        findings.report.note(CHECK, "the app had no requests: cannot be determined");
        return Ok(());
    }
    let configured = asking.names.clone();
    if filters(asking).await? {
        findings.report.ok(CHECK, format!("{} filters", configured.container));
        return Ok(());
    }
    let mut found = None;
    for name in NAMES.into_iter().filter(|name| *name != configured.container) {
        asking.names = QueryNames { container: name.to_owned(), ..configured.clone() };
        if filters(asking).await? {
            found = Some(name);
            break;
        }
    }
    asking.names = configured.clone();
    let text = format!("{} does not filter", configured.container);
    match found {
        Some(name) => {
            findings.report.problem(
                CHECK,
                format!("{text}; {name} does"),
                "Add the line below to the configuration.",
            );
            findings.suggest("api.query_names", "container", format!("\"{name}\""));
        }
        None => {
            let wanted = asking.service.config.projects.iter().flat_map(|project| &*project.apps);
            let text = format!("{text}, nor does another common name");
            if wanted.into_iter().any(|app| !app.containers.is_empty()) {
                findings.report.problem(
                    CHECK,
                    text,
                    "Ask the owner of the service for the name, or remove the containers from the configuration.",
                );
            } else {
                findings.report.note(CHECK, format!("{text}; no containers are configured"));
            }
        }
    }
    Ok(())
}

async fn filters(asking: &mut Asking) -> Result<bool, ToolError> {
    let answer = asking.counted(asking.hour, RangeEnd::Exclusive, Some(NO_CONTAINER)).await;
    // A service that refuses the container has applied the filter.
    Ok(refused(answer)?.map_or(true, |answer| answer.total.unwrap_or(0.0) == 0.0))
}

/// Measures the distance of datapoints at each resolution.
///
/// # Errors
/// If the service does not answer.
pub async fn resolution(asking: &mut Asking, findings: &mut Findings) -> Result<(), ToolError> {
    const CHECK: &str = "resolution";
    let mut widths = Vec::new();
    for (word, resolution) in Resolution::WORDS {
        let mut times = asking.datapoints(asking.hour, *resolution).await?;
        times.sort_by(f64::total_cmp);
        let steps = times.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?));
        if let Some(width) = steps.filter(|step| *step > 0.0).min_by(f64::total_cmp) {
            widths.push((*word, *resolution, width));
        }
    }
    if widths.len() < Resolution::WORDS.len() {
        findings.report.note(CHECK, "too few datapoints of run execution times: cannot be determined");
        return Ok(());
    }
    let shown = widths.iter().map(|(word, _, width)| format!("{} ({word})", units::seconds(*width)));
    let text =
        format!("datapoints of run execution times are {} apart", shown.collect::<Vec<_>>().join(", "));
    let differ = widths.windows(2).any(|pair| matches!(pair, [(.., one), (.., other)] if one != other));
    let name = &asking.names.resolution;
    if differ {
        findings.report.ok(CHECK, text);
    } else {
        findings.report.note(
            CHECK,
            format!("{text}: {name} has no effect, or another name (api.query_names.resolution)"),
        );
    }
    let poll = &asking.service.config.poll;
    let window = poll.windows.first().map_or(0.0, std::time::Duration::as_secs_f64);
    let width =
        widths.iter().find(|(_, resolution, _)| *resolution == poll.resolution).map(|(.., width)| *width);
    // The range need not begin with a datapoint.
    if let Some(width) = width.filter(|width| 2.0 * width > window) {
        let text = format!("a window of {} may hold no whole datapoint", units::seconds(window));
        findings.report.warning(
            CHECK,
            text,
            "Make the first of poll.windows longer, or poll.resolution higher.",
        );
        #[expect(clippy::cast_possible_truncation, reason = "a few thousand seconds")]
        findings.suggest(
            "poll",
            "windows",
            format!("[{}]", super::asking::written((2.0 * width).ceil() as i64)),
        );
    }
    Ok(())
}
