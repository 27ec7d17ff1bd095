//! The state file, and a running daemon's own verdict.

use std::error::Error;
use std::path::Path;

use crate::exporter::Exporter;
use pds_core::error_chain::with_sources;
use pds_core::memory::{Holder, MemoryBudget};
use pds_diagnosis::cause;
use pds_ledger::restore::{Prometheus, Source};
use pds_ledger::state::{self, Examined};

use crate::report::Finding;

/// Whether the state file can be used.
pub async fn state_file(path: Option<&Path>) -> Finding {
    let Some(path) = path else {
        return Finding::note("none (state.path is empty): counters start at zero on every start");
    };
    let name = path.display();
    match state::examine(path).await {
        Ok(Examined::InUse) => Finding::ok(format!("{name} is in use by a running daemon")),
        Ok(Examined::Ledgers(count)) => Finding::ok(format!("{name} is sound and holds {count} ledgers")),
        Ok(Examined::Missing) => match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) if !folder.is_dir() => {
                let text = format!("the folder {} does not exist", folder.display());
                Finding::problem(text, "Create it, writable for the daemon's user.")
            }
            _ => Finding::note(format!("{name} does not exist yet; the daemon creates it")),
        },
        Err(error) => {
            let remedy =
                "Make it readable for the daemon's user, restore it, or move it away to count from zero.";
            Finding::problem(with_sources(&error), remedy)
        }
    }
}

/// Whether the Prometheus that cursors are read from answers.
pub async fn restore_source(config: &Prometheus) -> Finding {
    let memory = MemoryBudget::default().share(Holder::Restoring);
    let answer = async { Ok::<_, Box<dyn Error>>(Source::new(config, memory)?.targets(None).await?) };
    match answer.await {
        Ok(_) => Finding::ok(format!("{} answers queries", config.url)),
        Err(error) => {
            let text = format!("{}: {}", cause::NOT_RESTORED.says, with_sources(&*error));
            Finding::problem(text, cause::NOT_RESTORED.remedy)
        }
    }
}

/// The verdict of a running daemon. A missing one is a problem only if its address was given (`expected`).
pub async fn running(exporter: &Exporter, expected: bool) -> Vec<Finding> {
    let name = &exporter.name;
    let status = match exporter.status().await {
        Ok((status, _)) => status,
        Err(error) if error.is_connect() && !expected => {
            return vec![Finding::note(format!("no daemon at {name}; use --exporter for another address"))];
        }
        Err(error) => {
            let text = format!("no status from {name}: {}", with_sources(&error));
            let remedy = "Start the daemon, or give its address with --exporter.";
            return vec![Finding::problem(text, remedy)];
        }
    };
    let summary = &status.summary;
    if summary.reasons.is_empty() {
        let verdict = summary.verdict.as_str();
        let text = format!("{name}: {} of {} apps ok, verdict {verdict}", summary.ok, summary.apps.all);
        return vec![Finding::ok(text)];
    }
    summary.reasons.iter().map(Finding::from).collect()
}
