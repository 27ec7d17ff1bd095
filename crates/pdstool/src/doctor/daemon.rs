//! The state file, and a running daemon's own verdict.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use rustix::fs::{Access, access, statvfs};
use rustix::process::geteuid;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use pds_core::error_chain::with_sources;
use pds_core::memory::{Holder, MemoryBudget};
use pds_core::units;
use pds_diagnosis::{Summary, cause};
use pds_ledger::restore::{Prometheus, Source};
use pds_ledger::state::{self, Examined, MAX_COMMIT};
use pds_ledger::{SILENT, StateError};
use pds_web::webconfig;

use crate::report::Finding;

/// The least free space on the disk of the state file, in bytes.
const LEAST_SPACE: u64 = 16 << 20;

/// Whether the state file can be used. A lock is a problem unless a daemon that answers `may_hold` it.
pub async fn state_file(path: Option<&Path>, may_hold: bool) -> Finding {
    let Some(path) = path else {
        return Finding::note("none (state.path is empty): counters start at zero on every start");
    };
    let owned = path.to_owned();
    let examined = async {
        match spawn_blocking(move || folder_problem(&owned)).await {
            Ok(Some(problem)) => problem,
            _ => of_file(path, may_hold).await,
        }
    };
    timeout(MAX_COMMIT, examined).await.unwrap_or_else(|_| {
        let cause = &cause::STATE_NOT_WRITTEN;
        Finding::of(cause, format!("{}: {SILENT}", cause.says), cause.remedy_at(None))
    })
}

async fn of_file(path: &Path, may_hold: bool) -> Finding {
    let name = path.display();
    let tried = match geteuid().is_root() {
        true => "; root may read and write it: run the doctor as the daemon's user, too",
        false => "",
    };
    match state::examine(path).await {
        Ok(Examined::InUse) if may_hold => Finding::ok(format!("{name} is in use by a running daemon")),
        Ok(Examined::InUse) => {
            let text = format!(
                "{name} is in use by another process; no daemon with this configuration that uses it answers"
            );
            let remedy =
                "Stop the process that holds it or its .lock (fuser -v shows it), or set another state.path.";
            Finding::problem(text, remedy)
        }
        Ok(Examined::Ledgers(count)) => {
            let ledgers = units::plural(count, "ledger", "ledgers");
            Finding::ok(format!("{name} is sound and holds {ledgers}{tried}"))
        }
        Ok(Examined::Missing) => {
            Finding::note(format!("{name} does not exist yet; the daemon creates it{tried}"))
        }
        Err(error) => {
            let remedy = match &error {
                StateError::Io(_, source) if source.kind() == ErrorKind::StorageFull => {
                    "Free space and inodes on that disk."
                }
                StateError::Mounted(_) | StateError::NoLocks(..) => "Set another state.path.",
                StateError::Io(..) if !path.exists() => {
                    "Set state.path to a file in a folder where the daemon's user can create files."
                }
                _ => {
                    "Make it readable for the daemon's user, restore it, or move it away to count from zero."
                }
            };
            Finding::problem(with_sources(&error), remedy)
        }
    }
}

/// The problem, if any, that keeps this user from creating files in the folder of the state file.
fn folder_problem(path: &Path) -> Option<Finding> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = folder.display();
    if !folder.is_dir() {
        let text = format!("the folder {name} does not exist");
        return Some(Finding::problem(text, "Create it, writable for the daemon's user."));
    }
    if let Err(error) = access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        let remedy = "Make it writable for the daemon's user: new files and the lock belong there.";
        let error = std::io::Error::from(error);
        return Some(Finding::problem(format!("the folder {name} cannot be written: {error}"), remedy));
    }
    let disk = statvfs(folder).ok().filter(|disk| disk.f_blocks > 0)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let text = format!("no space is left for {name}: {}", units::bytes(free as f64));
    (free < LEAST_SPACE).then(|| Finding::problem(text, "Free space on that disk."))
}

/// Whether the daemon, which does not answer, could listen on this address.
pub fn listening(address: &str) -> Finding {
    match pds_web::try_listen(address) {
        Ok(()) => Finding::ok(format!("{address} is free")),
        Err(error) => {
            let remedy = match &error {
                pds_web::Error::Flag { source: Some(source), .. }
                    if source.kind() == ErrorKind::AddrInUse =>
                {
                    "Stop the program that uses it, or set another address with --web.listen-address; if that program \
                     is the daemon, set --exporter to its address."
                }
                _ => {
                    "Set --web.listen-address to an address of this machine on which the daemon's user may listen."
                }
            };
            Finding::problem(with_sources(&error), remedy)
        }
    }
}

/// Whether the daemon can use its web configuration.
pub fn web_config(path: &Path) -> Finding {
    match webconfig::check(path) {
        Ok(_) => Finding::ok(format!("{} is valid", path.display())),
        Err(error) => {
            let text = format!("{}: {}", path.display(), with_sources(&error));
            Finding::problem(text, cause::WEB_CONFIG_REFUSED.remedy)
        }
    }
}

/// Whether the Prometheus with the cursors replies.
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

/// The verdict of a daemon.
pub fn verdict(name: &str, summary: &Summary) -> Vec<Finding> {
    if !summary.reasons.is_empty() {
        return summary.reasons.iter().map(Finding::from).collect();
    }
    let verdict = summary.verdict.as_str();
    let (ok, all) = (units::count(summary.ok), units::plural(summary.apps.all, "app", "apps"));
    vec![Finding::ok(format!("{name}: {ok} of {all} ok, verdict {verdict}"))]
}
