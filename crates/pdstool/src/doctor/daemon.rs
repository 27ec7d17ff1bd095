//! The state file, and a running daemon's own verdict.

use std::path::Path;

use crate::exporter::Exporter;
use pds_core::error_chain::with_sources;
use pds_core::memory::{Holder, MemoryBudget};
use pds_exporter::cause;
use pds_exporter::status::Verdict;
use pds_ledger::restore::{Prometheus, Source};
use pds_ledger::state::{self, Examined};

use crate::report::Report;

/// Whether the state file can be used.
pub async fn state_file(report: &mut Report, path: Option<&Path>) {
    const CHECK: &str = "state file";
    let Some(path) = path else {
        report.note(CHECK, "none (state.path is empty): counters start at zero on every start");
        return;
    };
    let name = path.display();
    match state::examine(path).await {
        Ok(Examined::InUse) => report.ok(CHECK, format!("{name} is in use by a running daemon")),
        Ok(Examined::Ledgers(count)) => {
            report.ok(CHECK, format!("{name} is sound and holds {count} ledgers"))
        }
        Ok(Examined::Missing) => match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) if !folder.is_dir() => {
                let text = format!("the folder {} does not exist", folder.display());
                report.problem(CHECK, text, "Create it, writable for the daemon's user.");
            }
            _ => report.note(CHECK, format!("{name} does not exist yet; the daemon creates it")),
        },
        Err(error) => {
            let remedy =
                "Make it readable for the daemon's user, restore it, or move it away to count from zero.";
            report.problem(CHECK, with_sources(&error), remedy);
        }
    }
}

/// Whether the Prometheus that counters are read back from answers.
pub async fn restore_source(report: &mut Report, config: Option<&Prometheus>) {
    const CHECK: &str = "restore source";
    let Some(config) = config else { return };
    let answer = match Source::new(config, MemoryBudget::default().share(Holder::Restoring)) {
        Ok(source) => source.now().await.map_err(|error| with_sources(&error)),
        Err(error) => Err(with_sources(&error)),
    };
    match answer {
        Ok(_) => report.ok(CHECK, format!("{} answers queries", config.url)),
        Err(why) => {
            let text = format!("{}: {why}", cause::NOT_RESTORED.says);
            report.problem(CHECK, text, cause::NOT_RESTORED.remedy);
        }
    }
}

/// The verdict of a running daemon. A missing one is a problem only if its address was given (`expected`).
pub async fn running(report: &mut Report, exporter: &Exporter, expected: bool) {
    const CHECK: &str = "daemon";
    let name = &exporter.name;
    let status = match exporter.status().await {
        Ok((status, _)) => status,
        Err(error) if error.is_connect() && !expected => {
            report.note(CHECK, format!("no daemon at {name}; use --exporter for another address"));
            return;
        }
        Err(error) => {
            let text = format!("no status from {name}: {}", with_sources(&error));
            report.problem(CHECK, text, "Start the daemon, or give its address with --exporter.");
            return;
        }
    };
    let summary = &status.summary;
    for reason in &summary.reasons {
        match reason.verdict {
            Verdict::Problem => report.problem(CHECK, &*reason.text, &*reason.remedy),
            Verdict::Warning => report.warning(CHECK, &*reason.text, &*reason.remedy),
            _ => report.note(CHECK, &*reason.text),
        }
    }
    if summary.reasons.is_empty() {
        let verdict = summary.verdict.as_str();
        let text = format!("{name}: {} of {} apps ok, verdict {verdict}", summary.ok, summary.apps.all);
        report.ok(CHECK, text);
    }
}
