//! Service account tokens: following their files, and what a refusal means.

use std::fs;
use std::path::Path;
use std::time::Duration;

use pds_core::error_chain::with_sources;

use super::server::{Seen, Server, ok, status};
use super::{Asking, TOKEN, api, file, inline, project};

fn sent(seen: &Seen) -> String {
    seen.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_owned()
}

/// A client of `server` with the token in `path`.
fn with_file(server: &Server, path: &Path) -> Asking {
    Asking::with(server, |api| api.token = file(path))
}

/// Until the file is looked at again.
async fn a_second_later() {
    tokio::time::advance(Duration::from_secs(1)).await;
}

const READ: &str = "pds_token_last_read_successful{token=\"default\"}";

#[tokio::test(start_paused = true)]
async fn a_token_swapped_in_by_symlink_is_used_without_losing_a_poll() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // A secret as Kubernetes mounts it: token -> ..data/token, ..data -> a directory of its own.
    for (version, token) in [("v1", "one\n"), ("v2", "two\n")] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("token"), token).unwrap();
    }
    std::os::unix::fs::symlink("v1", at("..data")).unwrap();
    std::os::unix::fs::symlink("..data/token", at("token")).unwrap();
    let server = Server::start(|_| ok("{}")).await;
    let asking = with_file(&server, &at("token"));
    asking.ask("p", "a").await.unwrap();
    std::os::unix::fs::symlink("v2", at("..tmp")).unwrap();
    fs::rename(at("..tmp"), at("..data")).unwrap();
    asking.ask("p", "a").await.unwrap();
    a_second_later().await;
    asking.ask("p", "a").await.unwrap();
    assert_eq!(server.seen().iter().map(sent).collect::<Vec<_>>(), ["one", "one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_or_missing_file_keeps_the_last_good_token() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "one").unwrap();
    let server = Server::start(|_| ok("{}")).await;
    let asking = with_file(&server, &path);
    assert_eq!(asking.value(READ), Some(1.0));
    fs::write(&path, " \n").unwrap();
    a_second_later().await;
    asking.ask("p", "a").await.unwrap();
    assert_eq!(asking.value(READ), Some(0.0));
    fs::remove_file(&path).unwrap();
    a_second_later().await;
    asking.ask("p", "a").await.unwrap();
    fs::write(&path, "two").unwrap();
    a_second_later().await;
    asking.ask("p", "a").await.unwrap();
    assert_eq!(asking.value(READ), Some(1.0));
    assert_eq!(server.seen().iter().map(sent).collect::<Vec<_>>(), ["one", "one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_sent_until_the_file_appears() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    let server = Server::start(|_| ok("{}")).await;
    let asking = with_file(&server, &path);
    let error = asking.ask("p", "a").await.unwrap_err();
    let told = format!(
        "GET http://{}/v2/projects/p/apps/a was not sent: cannot read the token file {}: \
         No such file or directory (os error 2)",
        server.address,
        path.display()
    );
    assert_eq!(with_sources(&error), told);
    assert_eq!((asking.ended("credentials"), server.count()), (1.0, 0));
    fs::write(&path, "to\nken").unwrap();
    a_second_later().await;
    let told =
        format!("the token in {} has more than one line; write only the token, on one line", path.display());
    assert!(with_sources(&asking.ask("p", "a").await.unwrap_err()).ends_with(&told));
    fs::write(&path, "one\r\n").unwrap();
    a_second_later().await;
    asking.ask("p", "a").await.unwrap();
    assert_eq!(sent(&server.seen()[0]), "one");
}

#[tokio::test]
async fn a_directory_a_pipe_or_a_huge_file_is_no_token_file() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(|_| ok("{}")).await;
    let huge = dir.path().join("huge");
    fs::write(&huge, vec![b'x'; 100_000]).unwrap();
    let pipe = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (path, told) in [
        (dir.path(), "not a regular file"),
        (&pipe, "not a regular file"),
        (&huge, "larger than 65536 bytes"),
    ] {
        let error = with_file(&server, path).ask("p", "a").await.unwrap_err();
        assert!(with_sources(&error).ends_with(told), "{}", with_sources(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_not_sent_again_until_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "one").unwrap();
    let server = Server::start(|seen| match &*sent(seen) {
        "two" => ok("{}"),
        _ => status(401, r#"{"message":"token expired"}"#),
    })
    .await;
    let mut api = api(&format!("http://{}", server.address));
    api.token = file(&path);
    api.max_retries = 3;
    let other = inline("two");
    let asking = Asking::new(&api, &[project("p-1", None), project("p-2", other)]);
    let error = asking.ask("p-1", "a").await.unwrap_err();
    assert_eq!((error.is_unauthorized(), error.message()), (true, "token expired"));
    for app in ["a", "b"] {
        let error = asking.ask("p-1", app).await.unwrap_err();
        let told = "was not sent: the service refused this token with 401: token expired; \
                    retried once the token changes or 1m have passed";
        assert!(error.to_string().ends_with(told), "{error}");
        assert!(error.is_unauthorized());
    }
    assert_eq!((asking.ended("401"), asking.ended("unauthorized_paused"), server.count()), (1.0, 2.0, 1));
    let accepted = |token| asking.value(&format!("pds_token_accepted{{token=\"{token}\"}}"));
    assert_eq!((accepted("default"), accepted("p-2")), (Some(0.0), None));
    asking.ask("p-2", "a").await.unwrap();
    assert_eq!((accepted("default"), accepted("p-2")), (Some(0.0), Some(1.0)));
    fs::write(&path, "two").unwrap();
    a_second_later().await;
    asking.ask("p-1", "a").await.unwrap();
    assert_eq!((accepted("default"), accepted("p-2")), (Some(1.0), Some(1.0)));
}

#[tokio::test(start_paused = true)]
async fn after_a_minute_one_request_tries_a_refused_token_while_the_others_wait() {
    let server = Server::start(|seen| {
        let reply = if seen.number < 2 { status(401, "") } else { ok("{}") };
        reply.after(Duration::from_millis(50))
    })
    .await;
    let asking = Asking::of(&server);
    asking.ask("p", "a").await.unwrap_err();
    // The second time it holds, the third time it does not.
    for (holds, asked) in [(true, 2), (false, 5)] {
        tokio::time::advance(Duration::from_secs(60)).await;
        let (first, second, third) =
            tokio::join!(asking.ask("p", "a"), asking.ask("p", "b"), asking.ask("p", "c"));
        assert_eq!(server.count(), asked);
        assert!([first, second, third].iter().all(|answer| answer.is_err() == holds));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_only_with_an_answer_that_shows_it_and_another_cause_is_seen_at_once() {
    let accepted = "pds_token_accepted{token=\"default\"}";
    for (other, class, value) in [
        (status(500, ""), "500", 0.0),
        (status(404, "<html>"), "404", 0.0),
        (status(301, "").with("location", "/login"), "3xx", 0.0),
        (ok("{}").cut("{"), "body", 0.0),
        (status(403, ""), "403", 1.0),
    ] {
        let server =
            Server::start(move |seen| if seen.number == 0 { status(401, "") } else { other.clone() }).await;
        let asking = Asking::of(&server);
        asking.ask("p", "a").await.unwrap_err();
        tokio::time::advance(Duration::from_secs(60)).await;
        for app in ["a", "b", "c"] {
            assert_eq!(asking.ask("p", app).await.unwrap_err().class().as_str(), class);
        }
        assert_eq!(asking.value(accepted), Some(value), "{class}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reload_keeps_the_state_of_unchanged_tokens_and_forgets_removed_ones() {
    let server = Server::start(|seen| match sent(seen).as_str() {
        "refused" => status(401, ""),
        "slowed" => status(429, "").with("retry-after", "120"),
        _ => ok("{}"),
    })
    .await;
    let mut api = api(&format!("http://{}", server.address));
    api.timeout = Duration::from_secs(1);
    let before = [project("p-1", inline("refused")), project("p-2", inline("slowed"))];
    let mut asking = Asking::new(&api, &before);
    asking.ask("p-1", "a").await.unwrap_err();
    asking.ask("p-2", "a").await.unwrap_err();
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(asking.ask("p-2", "a").await.unwrap_err().class().as_str(), "paused");
    let page = asking.page();
    // A configuration that is built and not put into force leaves no trace.
    let other = asking.client.successor(&api, &[project("p-1", inline("another"))]).unwrap();
    assert_eq!(asking.page(), page);
    drop(other);
    // The token that was refused is that of another project now.
    let after = [project("p-3", inline("refused")), project("p-2", inline("slowed"))];
    let successor = asking.client.successor(&api, &after).unwrap();
    successor.take_over(Some(&asking.client));
    asking.client = successor;
    let accepted = |token| asking.value(&format!("pds_token_accepted{{token=\"{token}\"}}"));
    assert_eq!((accepted("p-1"), accepted("p-3")), (None, Some(0.0)));
    assert_eq!(asking.ask("p-3", "a").await.unwrap_err().class().as_str(), "unauthorized_paused");
    // The pause ends at a reload, and the repeated 429 slows the account down.
    assert_eq!(asking.ask("p-2", "a").await.unwrap_err().class().as_str(), "429");
    assert!(asking.value("pds_api_pace_requests_per_second{token=\"p-2\"}").is_some());
    let none = asking.client.successor(&api, &[]).unwrap();
    none.take_over(Some(&asking.client));
    assert!(!asking.page().contains("token=\"p-"), "{}", asking.page());
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_app_does_not_stop_the_others() {
    let server =
        Server::start(|seen| if seen.target.ends_with("/theirs") { status(403, "") } else { ok("{}") }).await;
    let asking = Asking::of(&server);
    for _ in 0..3 {
        assert!(asking.ask("p", "theirs").await.unwrap_err().is_unauthorized());
        asking.ask("p", "ours").await.unwrap();
    }
    assert_eq!((asking.ended("403"), asking.ended("200")), (1.0, 3.0));
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_app_is_polled_again_after_a_minute_and_then_after_the_settings_interval() {
    let server = Server::start(|seen| if seen.number < 2 { status(403, "") } else { ok("{}") }).await;
    let asking = Asking::of(&server);
    for (asked, wait) in [(1, 59), (2, 297)] {
        for _ in 0..3 {
            asking.ask("p", "theirs").await.unwrap_err();
            tokio::time::advance(Duration::from_secs(wait / 3)).await;
        }
        assert_eq!(server.count(), asked, "once in {wait} seconds");
        tokio::time::advance(Duration::from_secs(3)).await;
    }
    for _ in 0..3 {
        asking.ask("p", "theirs").await.unwrap();
    }
    assert_eq!((asking.ended("403"), asking.ended("forbidden_paused")), (2.0, 4.0));
}

#[tokio::test(start_paused = true)]
async fn a_token_exchanged_while_it_was_refused_loses_no_poll() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "one").unwrap();
    let exchanged = path.clone();
    let server = Server::start(move |seen| {
        if sent(seen) == "two" {
            return ok("{}");
        }
        fs::write(&exchanged, "two").unwrap();
        status(401, "")
    })
    .await;
    let asking = with_file(&server, &path);
    asking.ask("p", "a").await.unwrap();
    assert_eq!((asking.ended("401"), asking.ended("200")), (1.0, 1.0));
}

#[tokio::test]
async fn the_expiry_of_a_jwt_is_shown_if_it_has_one() {
    const EXPIRING: &str =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJzdmMiLCJleHAiOjE4MDAwMDAwMDB9.c2ln";
    // Its `exp` is 0.
    const ENDLESS: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJzdmMiLCJleHAiOjB9.c2ln";
    const LASTING: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJzdmMifQ.c2ln";
    let mut api = api("http://127.0.0.1:9");
    api.token = inline(EXPIRING);
    let projects = [
        project("p-1", inline(LASTING)),
        project("p-2", inline("opaque")),
        project("p-3", None),
        project("p-4", inline(ENDLESS)),
    ];
    let asking = Asking::new(&api, &projects);
    let token_series: Vec<_> =
        asking.page().lines().filter(|l| l.starts_with("pds_token")).map(str::to_owned).collect();
    assert_eq!(token_series, ["pds_token_expiry_timestamp_seconds{token=\"default\"} 1800000000"]);
    // Nothing reads a token that no project uses again.
    assert!(!Asking::new(&api, &projects[..2]).page().contains("pds_token_expiry"));
    // An account at rest removes nothing of the account that has its name since.
    let own = |name: &str, token| project(name, inline(token));
    let before = Asking::new(&api, &[own("p-1", LASTING), own("p-2", "opaque")]);
    let mut rests = api.clone();
    (rests.token, api.token) = (inline(LASTING), None);
    let next = before.client.successor(&rests, &[own("p-1", EXPIRING)]).unwrap();
    next.take_over(Some(&before.client));
    assert!(before.page().contains("pds_token_expiry_timestamp_seconds{token=\"p-1\"}"));
    next.successor(&rests, &[own("p-1", EXPIRING)]).unwrap().take_over(Some(&next));
    assert!(before.page().contains("pds_token_expiry_timestamp_seconds{token=\"p-1\"}"));
    // A connection that the client after a reload does not use is gone.
    api.token = inline(LASTING);
    asking.client.successor(&api, &[]).unwrap().take_over(Some(&asking.client));
    assert!(!asking.page().contains("pds_token_expiry"));
}

#[tokio::test]
async fn a_missing_token_is_reported_with_the_key_to_set() {
    let mut api = api("http://127.0.0.1:9");
    api.token = None;
    let error = Asking::new(&api, &[]).ask("p", "a").await.unwrap_err();
    let told = "GET http://127.0.0.1:9/v2/projects/p/apps/a was not sent: \
                no token is configured: set api.token_file, or token_file of the project";
    assert_eq!(with_sources(&error), told);
}

#[test]
fn projects_with_the_same_token_share_a_service_account() {
    let projects = [
        project("p-1", inline("theirs")),
        project("p-2", inline("theirs")),
        project("p-3", inline(TOKEN)),
        project("p-4", None),
    ];
    let asking = Asking::new(&api("http://127.0.0.1:9"), &projects);
    let client = &asking.client;
    let names: Vec<_> = client.accounts().map(|account| account.name().to_owned()).collect();
    assert_eq!(names, ["p-1", "default"]);
    assert_eq!(client.account("p-2"), client.account("p-1"));
    assert_eq!(client.account("p-3"), client.account("p-4"));
    assert_eq!(client.account("unheard-of").name(), "default");
}
