//! The recipe "Rotate the token": in each way that it shows, a daemon continues with another token, and counts on.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use pds_core::secret::Secret;

use super::{Stage, projects};
use crate::deploy::yaml;
use crate::docs::blocks;
use crate::process::{Exporter, series, until_page};
use crate::real_kill::{counted_exactly, counters};
use crate::rig::EVERY_SECOND;

pub(super) fn each_way(stage: &Stage, recipe: &str) {
    let [file, secret, credential] = <[String; 3]>::try_from(blocks(recipe, "sh")).unwrap();
    let folder = stage.machine.folder.path();
    rotate(stage, &file, &folder.join("token"), false, || {});

    let mount = folder.join("mount");
    fs::create_dir(&mount).unwrap();
    update_mount(&mount, stage.token().as_bytes());
    rotate(stage, &secret, &mount.join("token"), false, || {
        let objects = yaml(&stage.machine.rendered());
        let secret = objects.iter().rfind(|object| object["kind"] == "Secret").unwrap();
        update_mount(&mount, &STANDARD.decode(secret["data"]["token"].as_str().unwrap()).unwrap());
    });

    let installed = stage.machine.root("etc/pds-exporter/token");
    let credentials = folder.join("credentials");
    fs::create_dir(&credentials).unwrap();
    fs::write(credentials.join("token"), stage.token()).unwrap();
    rotate(stage, &credential, &credentials.join("token"), true, || {
        let unit = fs::read_to_string(stage.machine.root("unit")).unwrap();
        assert!(unit.contains("\nLoadCredential=token:/etc/pds-exporter/token\n"), "{unit}");
        fs::copy(&installed, credentials.join("token")).unwrap();
    });
}

/// Puts `token` into `mount` as the kubelet updates a Secret: a new folder, and a symlink that is renamed to it.
fn update_mount(mount: &Path, token: &[u8]) {
    let version = tempfile::tempdir_in(mount).unwrap().keep();
    fs::write(version.join("token"), token).unwrap();
    symlink(&version, mount.join("..data_tmp")).unwrap();
    fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
    // Exists after the first time.
    let _ = symlink("..data/token", mount.join("token"));
}

/// Runs `block` with a new token beside a daemon with `token_file`, and `publish` after it, without a daemon if it
/// `restarts`. Fails unless the daemon counts on exactly although the service refuses the old token, and is never
/// without an accepted token.
fn rotate(stage: &Stage, block: &str, token_file: &Path, restarts: bool, publish: impl Fn()) {
    let (folder, world) = (stage.machine.folder.path(), &stage.service.world);
    let (project, app) = (&*stage.project, &*stage.app);
    let config = folder.join("rotated.toml");
    let api = format!("[api]\nbase_url = \"{}\"\ntoken_file = {token_file:?}\n", stage.service.url);
    fs::write(&config, api + EVERY_SECOND + &projects(project, app)).unwrap();
    let state = token_file.with_extension("state");
    let start = || {
        Exporter::start(&["--config.file", config.to_str().unwrap(), "--state.path", state.to_str().unwrap()])
    };
    // The counters of the first page that has counted up to `second`.
    let counted_to = |exporter: &Exporter, second: i64| {
        let counted = async {
            let mut page = String::new();
            until_page(exporter, "the counters continue", |now| {
                page = now.to_owned();
                let fails = |(name, value): &(&str, f64)| match name.contains("unauthorized_paused") {
                    true => *value > 0.0,
                    false => {
                        *value == 0.0
                            && (name.starts_with("pds_token_accepted") || name.starts_with("pds_up"))
                    }
                };
                let failing = series(&page).find(fails);
                assert_eq!(failing, None, "{block}\n{}", exporter.log());
                let cursors =
                    counters(&page).into_iter().filter(|(name, _)| name.contains("accounted_until"));
                page.contains("pds_app_runs_total{")
                    && cursors.filter(|(_, until)| *until > second as f64).count() == 2
            })
            .await;
            counters(&page)
        };
        stage.runtime.block_on(counted)
    };

    let mut exporter = start();
    let first = counted_to(&exporter, 0);
    let old = Secret::new(&stage.token());
    let expiry = Timestamp::now() + SignedDuration::from_hours(24);
    let new = world.token_until(project, Some(expiry)).unwrap();
    assert_ne!(old.expose(), new.expose());
    fs::write(folder.join("NEW_TOKEN"), new.expose()).unwrap();
    stage.run_block(block);
    if restarts {
        exporter.terminate();
        publish();
        exporter = start();
    } else {
        publish();
    }
    // The other recipes continue with it, too.
    fs::write(folder.join("token"), new.expose()).unwrap();
    world.revoke(&old);
    let last = counted_to(&exporter, Timestamp::now().as_second() + 3);
    assert!(counted_exactly(world, (project, app), &first, &last) > 0.0, "{block}");
}
