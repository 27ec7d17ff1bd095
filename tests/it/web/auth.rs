//! Passwords, headers and the rate limit of the web configuration file.

use pds_web::Config;

use super::{Running, curl, write_settled};

/// bcrypt of "secret" at the lowest cost.
pub(super) fn user(name: &str) -> String {
    format!("basic_auth_users:\n  {name}: {}\n", bcrypt::hash("secret", 4).unwrap())
}

fn config(folder: &tempfile::TempDir, text: &str) -> Config {
    let path = folder.path().join("web.yml");
    write_settled(&path, text);
    Config { config_file: Some(path), ..Config::default() }
}

#[tokio::test]
async fn every_path_requires_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::start(Config { enable_lifecycle: true, ..config(&folder, &user("alice")) });
    for path in ["/metrics", "/", "/-/healthy", "/-/ready", "/-/reload", "/nothing"] {
        let url = server.url(path);
        let refused = curl(&[&url]).await;
        let challenge = "Basic realm=\"exporter\", charset=\"UTF-8\"";
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(challenge)), "{path}");
        assert_eq!(curl(&["-u", "alice:wrong", &url]).await.status, 401, "{path}");
        assert_ne!(curl(&["-u", "alice:secret", &url]).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn the_flag_exempts_probes_from_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::start(Config { probes_without_auth: true, ..config(&folder, &user("alice")) });
    for (path, status) in [("/-/healthy", 200), ("/-/ready", 200), ("/metrics", 401), ("/-/reload", 401)] {
        assert_eq!(curl(&[&server.url(path)]).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn users_change_without_a_restart_and_a_bad_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&folder, &user("alice"));
    let path = config.config_file.clone().unwrap();
    let server = Running::start(config);
    let status = async |user: &str| curl(&["-u", user, &server.url("/metrics")]).await.status;
    assert_eq!((status("alice:secret").await, status("bob:secret").await), (200, 401));
    write_settled(&path, &user("bob"));
    assert_eq!((status("alice:secret").await, status("bob:secret").await), (401, 200));
    for bad in ["basic_auth_users: { bob: plain }", "nonsense: 1", "\t", ""] {
        write_settled(&path, bad);
        assert_eq!((status("bob:secret").await, status("x:y").await), (200, 401), "{bad:?}");
        assert!(server.own_page().contains("pds_exporter_web_config_last_reload_successful 0\n"), "{bad:?}");
    }
    write_settled(&path, &user("carol"));
    assert_eq!((status("bob:secret").await, status("carol:secret").await), (401, 200));
    assert!(server.own_page().contains("pds_exporter_web_config_last_reload_successful 1\n"));
}

#[tokio::test]
async fn configured_headers_replace_ours_on_every_answer() {
    let folder = tempfile::tempdir().unwrap();
    let text = "http_server_config:\n  headers:\n    Strict-Transport-Security: max-age=600\n    X-Frame-Options: sameorigin\n";
    let server = Running::start(config(&folder, text));
    for path in ["/", "/metrics", "/nothing"] {
        let reply = curl(&[&server.url(path)]).await;
        assert_eq!(reply.header("strict-transport-security"), Some("max-age=600"), "{path}");
        assert_eq!(reply.header("x-frame-options"), Some("sameorigin"), "{path}");
    }
}

#[tokio::test]
async fn a_full_bucket_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::start(config(&folder, "rate_limit: { interval: 1h, burst: 2 }"));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(curl(&[&server.url("/metrics")]).await.status);
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn strangers_do_not_use_up_the_rate_limit_of_users() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{}rate_limit: {{ interval: 1h, burst: 2 }}\n", user("alice"));
    let server = Running::start(Config { probes_without_auth: true, ..config(&folder, &text) });
    let url = server.url("/metrics");
    let mut strangers = Vec::new();
    for _ in 0..4 {
        strangers.push(curl(&["-u", "alice:wrong", &url]).await.status);
    }
    assert_eq!(strangers, [401, 401, 429, 429]);
    let mut users = Vec::new();
    for _ in 0..3 {
        users.push(curl(&["-u", "alice:secret", &url]).await.status);
    }
    assert_eq!(users, [200, 200, 429]);
    for _ in 0..5 {
        assert_eq!(curl(&[&server.url("/-/healthy")]).await.status, 200, "pods live on probes");
    }
}
