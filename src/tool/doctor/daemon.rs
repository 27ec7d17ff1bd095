//! The state file, and a running daemon's own verdict.

use std::path::Path;

use crate::accounting::state::{self, Examined};
use crate::error_chain::with_sources;
use crate::tool::exporter::{Exporter, ExporterError};

use crate::tool::report::Report;

/// Whether the state file can be used.
pub async fn state_file(report: &mut Report, path: Option<&Path>) {
    const CHECK: &str = "state file";
    let Some(path) = path else {
        report.note(CHECK, "none (state.path is empty): counters begin at zero with each start");
        return;
    };
    let examined = state::examine(path).await;
    let name = path.display();
    match examined {
        Ok(Examined::InUse) => report.ok(CHECK, format!("{name} is in use by a running daemon")),
        Ok(Examined::Ledgers(count)) => {
            report.ok(CHECK, format!("{name} is sound and holds {count} ledgers"))
        }
        Ok(Examined::Missing) => match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) if !folder.is_dir() => {
                let text = format!("there is no folder {}", folder.display());
                report.problem(CHECK, text, "Create it, and let the daemon's user write there.");
            }
            _ => report.note(CHECK, format!("{name} is not there yet: the daemon creates it")),
        },
        Err(error) => {
            let remedy =
                "Restore the file, or move it away to count from zero; let the daemon's user read it.";
            report.problem(CHECK, with_sources(&error), remedy);
        }
    }
}

/// What a running daemon says of itself. Without one at the usual address nothing is wrong; `expected` is whether an
/// address was given.
pub async fn running(report: &mut Report, exporter: &Exporter, expected: bool) {
    const CHECK: &str = "daemon";
    let name = exporter.name();
    let status = match exporter.status().await {
        Ok(status) => status,
        Err(ExporterError::Http(error)) if error.is_connect() && !expected => {
            report.note(CHECK, format!("none answers at {name}; --exporter names another address"));
            return;
        }
        Err(error) => {
            let text = format!("no status from {name}: {}", with_sources(&error));
            report.problem(CHECK, text, "Start the daemon, or name its address with --exporter.");
            return;
        }
    };
    let summary = &status.summary;
    for reason in &summary.reasons {
        match &*reason.verdict {
            "problem" => report.problem(CHECK, &*reason.text, &*reason.action),
            "warning" => report.warning(CHECK, &*reason.text, &*reason.action),
            _ => report.note(CHECK, &*reason.text),
        }
    }
    if summary.reasons.is_empty() {
        let text = format!("{name}: {} of {} apps ok, verdict {}", summary.ok, summary.apps, summary.verdict);
        report.ok(CHECK, text);
    }
}
