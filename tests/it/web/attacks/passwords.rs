//! Guessed passwords.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ATTACKER, in_time, start};
use crate::web::{run, write_settled};

/// The daemon with users whose password is "secret", at these costs.
fn start_with_users(costs: &[u32]) -> (tempfile::TempDir, crate::process::Exporter) {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "basic_auth_users:\n".to_owned();
    for (number, cost) in costs.iter().enumerate() {
        // Only the digests of small costs are real: others would take longer to make than to attack.
        let hash = match cost {
            ..=12 => bcrypt::hash("secret", *cost).unwrap(),
            _ => format!("$2b${cost}$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"),
        };
        text.push_str(&format!("  user{number}: {hash}\n"));
    }
    let path = folder.path().join("web.yml");
    write_settled(&path, &text);
    let (_config, exporter) = start(1, &["--web.config.file", path.to_str().unwrap()]);
    (folder, exporter)
}

/// The status that `user` gets, from the attacker's address or from the scraper's.
async fn status(url: &str, user: &str, attacker: bool) -> u16 {
    let interface = if attacker { ATTACKER.to_string() } else { "127.0.0.1".to_owned() };
    let args = ["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--interface", &interface, "-u", user, url];
    String::from_utf8(run("curl", &args).await.stdout).unwrap().parse().unwrap()
}

#[tokio::test]
async fn wrong_passwords_do_not_hold_up_a_right_one() {
    // So expensive that all guesses together take long beside starting a client.
    let (_folder, exporter) = start_with_users(&[12]);
    let url = format!("{}/-/healthy", exporter.url);
    let answered = Arc::new(AtomicUsize::new(0));
    let mut guesses = tokio::task::JoinSet::new();
    for guess in 0..40 {
        let (url, answered) = (url.clone(), Arc::clone(&answered));
        guesses.spawn(async move {
            let status = status(&url, &format!("user0:{guess}"), true).await;
            answered.fetch_add(1, Ordering::Relaxed);
            status
        });
    }
    crate::process::until("guesses are being checked", async || answered.load(Ordering::Relaxed) > 0).await;
    let before = answered.load(Ordering::Relaxed);
    assert_eq!(in_time(status(&url, "user0:secret", false)).await, 200);
    let meanwhile = answered.load(Ordering::Relaxed) - before;
    assert!(
        meanwhile < 25,
        "{before} guesses were answered before the right password, and {meanwhile} meanwhile"
    );
}

#[tokio::test]
async fn a_user_dearer_than_all_bounds_does_not_make_strangers_as_dear() {
    let (_folder, exporter) = start_with_users(&[4, 4, 22]);
    let url = format!("{}/metrics", exporter.url);
    assert_eq!(in_time(status(&url, "stranger:x", true)).await, 401);
}
