//! A state folder that answers late or never, as on a network file system that hangs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pds_core::clock::Clock;
use pds_exporter::app::daemon::{Daemon, Handle};
use pds_exporter::app::serve::Served;
use pds_exporter::status;
use pds_interface::response_time;
use pds_ledger::{Key, StateError};
use pds_telemetry::Telemetry;

use super::Rig;
use crate::process::{Exporter, assert_has, edit, mounted, pdstool, until, value};
use crate::rig;

/// Mounts a file system at `$0` whose server never answers: `open`, `stat` and `access` below it wait.
const SILENT: &str =
    "exec 9<>/dev/fuse && mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 silent \"$0\"";

#[tokio::test]
async fn a_state_folder_that_never_answers_stops_the_counters_alone() {
    let rig = Rig::start().await;
    let (config, disk) = (rig.configure(1), rig.folder.path().join("disk"));
    std::fs::create_dir(&disk).unwrap();
    let state = disk.join("state.log");
    let exporter = Exporter::of(mounted(SILENT, &disk, &rig.program(1, &state)));
    exporter.wait_for("/-/healthy").await;
    exporter.wait_for("/-/ready").await;
    let page = exporter.get("/metrics").await;
    assert!(page.contains("pds_app_window_requests{") && rig.counted(&page, 0).is_none(), "{page}");
    assert_eq!(value(&page, "pds_exporter_state_last_commit_successful"), Some(0.0));
    let reasons = exporter.reasons().await;
    let first = "The state file cannot be written: the state folder does not answer";
    assert_eq!(reasons[0]["text"], first, "{reasons:#?}");
    exporter.signal("HUP");
    until("a reload is applied", async || exporter.log().contains("the configuration was reloaded")).await;
    assert!(rig.counted(&exporter.get("/metrics").await, 0).is_none(), "the reload counts nothing either");

    let mut doctor = Command::new(pdstool());
    doctor.args(["doctor", "--config.file", &config, "--exporter", &exporter.url]);
    let output = mounted(SILENT, &disk, doctor.arg("--state.path").arg(&state)).output().unwrap();
    assert_has(&String::from_utf8_lossy(&output.stdout), &["state folder does not answer"]);
    exporter.signal("TERM");
    until("the exporter has stopped", async || exporter.log().contains("message=stopped")).await;
    assert!(!exporter.log().contains("the state folder answers"), "{}", exporter.log());
    assert!(exporter.terminate().success());
}

/// A runtime whose only thread for files can be kept waiting, as by a network file system that hangs.
fn with_one_thread_for_files(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().max_blocking_threads(1).build().unwrap().block_on(test);
}

/// A daemon that has polled every target while its state folder is silent, and the answer of the folder.
async fn beside_a_silent_folder(rig: &Rig) -> (Handle, impl Future<Output = Result<(), StateError>>) {
    let (answer, silent) = std::sync::mpsc::channel::<()>();
    let hanging = tokio::task::spawn_blocking(move || silent.recv());
    let source = rig.configure(1);
    edit(&source, |text| format!("{text}\n[state]\npath = {:?}\n", rig.state()));
    let loaded = pds_config::load(Path::new(&source), std::iter::empty()).unwrap();
    let telemetry = Telemetry::new(false).unwrap();
    let mut daemon = Daemon::build(loaded.config, Clock::system(), telemetry).await.unwrap();
    let (opening, handle) = (daemon.opening.take().unwrap(), daemon.handle.clone());
    let status = status::Source::new(handle.context.clone(), handle.plan().await, loaded.explained);
    let served = Served::new(handle.clone(), status, None, None);
    tokio::spawn(daemon.run(std::future::pending()));
    // It has no file to reload.
    served.reload().await.unwrap_err();
    until("every target was asked", async || handle.is_ready()).await;
    assert_eq!(rig.counted(&rig::whole_page(&handle.context), 0), None);
    let counting = async move {
        drop(answer);
        let _ = hanging.await.unwrap();
        served.count_after(Some(opening)).await
    };
    (handle, counting)
}

#[test]
fn a_late_state_file_that_cannot_be_used_is_an_error_as_at_the_start() {
    with_one_thread_for_files(async {
        let rig = Rig::start().await;
        std::fs::write(rig.state(), "not a state file").unwrap();
        let (handle, counting) = beside_a_silent_folder(&rig).await;
        let error = counting.await.unwrap_err().to_string();
        assert!(error.contains(&rig.state().display().to_string()), "{error}");
        assert_eq!(std::fs::read_to_string(rig.state()).unwrap(), "not a state file");
        assert_eq!(rig.counted(&rig::whole_page(&handle.context), 0), None);
    });
}

#[test]
fn a_state_folder_that_answers_late_loses_no_count() {
    with_one_thread_for_files(async {
        let rig = Rig::start().await;
        let (project, apps) = rig.world.projects().remove(0);
        let key = Key {
            owner: pds_ledger::Owner::new(project, apps[0].clone()),
            resource: response_time::RESOURCE,
        };
        let state = rig.state();
        let observer = std::sync::Arc::new(pds_ledger::Unobserved);
        let opened = pds_ledger::LedgerStore::open(Some(&state), observer, Duration::ZERO).await;
        let (ledgers, committer) = opened.unwrap();
        let before = Clock::system().now().as_second() - 60;
        let mut ledger = pds_ledger::Ledger::open(before);
        ledger.total = 1_000;
        ledgers.commit(&key, ledger).await.unwrap();
        let old = Key { resource: pds_interface::run_execution_time::RESOURCE, ..key };
        ledgers.commit(&old, pds_ledger::Ledger::open(before - 30 * 86_400)).await.unwrap();
        committer.finished().await;
        drop(ledgers);

        let (handle, counting) = beside_a_silent_folder(&rig).await;
        let early = handle.plan().await;
        counting.await.unwrap();
        early.tidy(&handle.context.ledgers).await;
        assert!(handle.context.ledgers.ledger(&old).is_some(), "an early plan drops no ledger");
        let mut now = (0.0, 0.0);
        until("counting goes on", async || {
            now = rig.counted(&rig::whole_page(&handle.context), 0).unwrap_or_default();
            now.0 > 1_000.0
        })
        .await;
        assert_eq!(now.0 - 1_000.0, rig.truth(0, before as f64, now.1));
        let page = rig::whole_page(&handle.context);
        assert_eq!(value(&page, "pds_exporter_state_last_commit_successful"), Some(1.0));
        let reloaded = value(&page, "pds_exporter_config_last_reload_successful");
        assert_eq!(reloaded, Some(0.0), "the refused reload stays in sight");
    });
}
