//! How much is asked, how often again, and when not at all.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use pds_client::{Reason, Turn};
use pds_interface::call::Method;
use pds_interface::get_app;

use super::server::{Reply, Server, ok, status};
use super::{Asking, api, inline, project, request};

/// A server whose first reply is `first`, and 200 from then on; and who asks it, with `retries`.
async fn after(first: Reply, retries: u32) -> (Server, Asking) {
    let server = Server::start(move |seen| if seen.number == 0 { first.clone() } else { ok("{}") }).await;
    let mut api = api(&format!("http://{}", server.address));
    api.max_retries = retries;
    let other = inline("another-account");
    let asking = Asking::new(&api, &[project("p-1", None), project("p-2", other)]);
    (server, asking)
}

#[tokio::test(start_paused = true)]
async fn retry_after_pauses_the_service_account_that_got_it_and_no_other() {
    let (server, asking) = after(status(429, "").with("retry-after", "5"), 1).await;
    let began = Instant::now();
    let first = async {
        asking.ask("p-1", "a").await.unwrap();
        began.elapsed()
    };
    let others = async {
        while server.count() == 0 {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        asking.ask("p-2", "a").await.unwrap();
        let other_account = began.elapsed();
        asking.ask("p-1", "b").await.unwrap();
        (other_account, began.elapsed())
    };
    let (first, (other_account, same_account)) = tokio::join!(first, others);
    assert!(first >= Duration::from_secs(5), "{first:?}");
    assert!(same_account >= Duration::from_secs(5), "{same_account:?}");
    assert!(other_account < Duration::from_secs(1), "{other_account:?}");
    assert_eq!(asking.ended("429"), 1.0);
    assert_eq!(asking.ended("200"), 3.0);
    assert_eq!(asking.value("pds_api_retries_total{resource=\"app\"}"), Some(1.0));
    assert!(asking.value("pds_api_throttled_seconds_total{resource=\"app\"}").unwrap() >= 8.0);
}

#[tokio::test(start_paused = true)]
async fn a_pause_applies_to_requests_already_queued() {
    let told = status(429, "").with("retry-after", "5").after(Duration::from_millis(50));
    let server = Server::start(move |seen| if seen.number == 0 { told.clone() } else { ok("{}") }).await;
    let asking = Asking::with(&server, |api| api.max_concurrent_requests = NonZeroU32::MIN);
    let began = Instant::now();
    let (first, second) = tokio::join!(asking.ask("p", "a"), asking.ask("p", "b"));
    first.unwrap_err();
    second.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_date_to_wait_for_is_meant_by_the_services_own_clock() {
    let told = status(503, "")
        .with("date", "Fri, 01 Jan 2021 00:00:00 GMT")
        .with("retry-after", "Fri, 01 Jan 2021 00:00:07 GMT");
    let (_server, asking) = after(told, 1).await;
    let began = Instant::now();
    asking.ask("p-1", "a").await.unwrap();
    let took = began.elapsed();
    assert!((Duration::from_secs(7)..Duration::from_secs(9)).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_pause_is_not_waited_for_and_stops_the_account_for_five_minutes_at_most() {
    let (server, asking) = after(status(429, "slow down").with("retry-after", "99999999"), 3).await;
    let error = asking.ask("p-1", "a").await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(error.message(), "slow down");
    let pace = || asking.value("pds_api_pace_requests_per_second{token=\"default\"}");
    assert_eq!(pace(), Some(0.0));
    tokio::time::advance(Duration::from_secs(60)).await;
    let error = asking.ask("p-1", "a").await.unwrap_err();
    let told = format!(
        "GET http://{}/v2/projects/p-1/apps/a was not sent: the service requested a pause, which ends in 4m",
        server.address
    );
    assert_eq!(error.to_string(), told);
    assert_eq!((server.count(), asking.ended("429"), asking.ended("paused")), (1, 1.0, 1.0));
    tokio::time::advance(Duration::from_secs(240)).await;
    asking.ask("p-1", "a").await.unwrap();
    assert_eq!(pace(), None);
}

#[tokio::test]
async fn a_request_that_is_more_patient_than_the_present_configuration_blocks_no_other_task() {
    let server = Server::start(|_| status(429, "").with("retry-after", "8")).await;
    let former = Asking::with(&server, |api| api.timeout = Duration::from_secs(60));
    let mut impatient = api(&format!("http://{}", server.address));
    impatient.timeout = Duration::from_secs(1);
    let client = former.client.successor(&impatient, &[project("p", None)]).unwrap();
    client.take_over(Some(&former.client));
    former.ask("p", "a").await.unwrap_err();
    let began = Instant::now();
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
        answer = former.ask("p", "b") => panic!("it did not wait for the end of the pause: {answer:?}"),
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_pace_is_0_in_each_long_pause_until_a_request_ends() {
    let cut = ok("").with("content-length", "9").cut("");
    for then in [status(500, ""), status(401, ""), status(429, ""), cut] {
        let said = format!("{then:?}");
        let ends = std::sync::Arc::new(AtomicBool::new(false));
        let has_ended = ends.clone();
        let server = Server::start(move |_| match has_ended.load(Ordering::Relaxed) {
            true => then.clone(),
            // A later 429 is not a repeated one.
            false => status(429, "").with("retry-after", "90"),
        })
        .await;
        let asking = Asking::of(&server);
        let pace = || asking.value("pds_api_pace_requests_per_second{token=\"default\"}");
        for _ in 0..3 {
            asking.ask("p", "a").await.unwrap_err();
            assert_eq!(pace(), Some(0.0));
            tokio::time::advance(Duration::from_secs(91)).await;
        }
        ends.store(true, Ordering::Relaxed);
        asking.ask("p", "a").await.unwrap_err();
        assert_ne!(pace(), Some(0.0), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_failures_that_a_retry_may_fix_are_retried() {
    for (code, times) in
        [(429, 3), (502, 3), (503, 3), (504, 3), (500, 1), (400, 1), (404, 1), (403, 1), (301, 1)]
    {
        let server = Server::start(move |_| status(code, "")).await;
        let error = Asking::with(&server, |api| api.max_retries = 2).ask("p", "a").await.unwrap_err();
        assert_eq!((error.status(), server.count()), (Some(code), times));
    }
    let server = Server::start(|_| ok("").with("content-length", "9").cut("x")).await;
    let error = Asking::with(&server, |api| api.max_retries = 2).ask("p", "a").await.unwrap_err();
    assert_eq!((error.class().as_str(), server.count()), ("body", 3));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_could_not_be_made_is_tried_again() {
    let mut api = api("http://127.0.0.1:1");
    api.max_retries = 2;
    let asking = Asking::new(&api, &[]);
    let error = asking.ask("p", "a").await.unwrap_err();
    let told = "GET http://127.0.0.1:1/v2/projects/p/apps/a failed: the connection is refused";
    assert_eq!((error.to_string().as_str(), asking.ended("connect")), (told, 3.0));
}

#[tokio::test(start_paused = true)]
async fn an_outage_never_multiplies_the_load() {
    let server = Server::start(|_| status(503, "")).await;
    let asking = Asking::with(&server, |api| api.max_retries = 5);
    for _ in 0..200 {
        asking.ask("p", "a").await.unwrap_err();
    }
    // One in ten, and the reserve of ten.
    assert!((225..=230).contains(&server.count()), "{}", server.count());
    let retries = asking.value("pds_api_retries_total{resource=\"app\"}").unwrap();
    assert_eq!(retries + 200.0, asking.ended("503"));
}

#[tokio::test(start_paused = true)]
async fn an_outage_costs_many_accounts_a_tenth_more_each() {
    let server = Server::start(|_| status(503, "")).await;
    let mut api = api(&format!("http://{}", server.address));
    api.max_retries = 5;
    let ids: Vec<_> = (0..50).map(|number| format!("p-{number}")).collect();
    let projects: Vec<_> = ids.iter().map(|id| project(id, inline(&format!("token-of-{id}")))).collect();
    let asking = Asking::new(&api, &projects);
    for _ in 0..20 {
        for id in &ids {
            asking.ask(id, "a").await.unwrap_err();
        }
    }
    assert_eq!(server.count(), 50 * 20 + 50 * 2);
}

#[tokio::test(start_paused = true)]
async fn an_account_whose_requests_fail_leaves_the_retries_of_others() {
    let failed_once = AtomicBool::new(false);
    let server = Server::start(move |seen| {
        let fails = seen.target.contains("/p-2/") || !failed_once.swap(true, Ordering::Relaxed);
        if fails { status(503, "") } else { ok("{}") }
    })
    .await;
    let mut api = api(&format!("http://{}", server.address));
    api.max_retries = 5;
    let asking = Asking::new(&api, &[project("p-1", None), project("p-2", inline("another-account"))]);
    while server.count() < 100 {
        asking.ask("p-2", "a").await.unwrap_err();
    }
    asking.ask("p-1", "a").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_changes_something_is_never_retried_and_never_polled() {
    let server = Server::start(|_| status(503, "")).await;
    let asking = Asking::with(&server, |api| api.max_retries = 5);
    let account = asking.client.account("p");
    for method in [Method::POST, Method::PATCH, Method::DELETE] {
        let mut request = request("p", "a");
        request.method = method.clone();
        let before = server.count();
        asking.client.call(&account, &request).await.unwrap_err();
        assert_eq!(server.count() - before, 1);
        assert_eq!(server.seen().last().unwrap().method, method.as_str());
        let turn = Turn::new(&account);
        let read = asking.client.read(&turn, get_app::RESOURCE, &request, |_| Ok(()));
        assert!(matches!(read.await.unwrap_err().reason, Reason::NotGet));
        assert_eq!(server.count() - before, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_429s_slow_the_account_down_and_any_other_reply_ends_that() {
    for (then, grows, seconds) in [
        (ok("{}"), true, 60),
        (status(404, ""), true, 60),
        (status(500, ""), false, 70),
        (ok("").with("content-length", "9").cut(""), false, 70),
        // Sent once a minute.
        (status(401, ""), true, 150),
    ] {
        let limit = Duration::from_secs(seconds);
        let refuse = std::sync::Arc::new(AtomicBool::new(true));
        let refusing = refuse.clone();
        let server = Server::start(move |_| match refusing.load(Ordering::Relaxed) {
            true => status(429, ""),
            false => then.clone(),
        })
        .await;
        let asking = Asking::of(&server);
        let pace = "pds_api_pace_requests_per_second{token=\"default\"}";
        asking.ask("p", "a").await.unwrap_err();
        assert_eq!(asking.value(pace), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        asking.ask("p", "a").await.unwrap_err();
        let first = asking.value(pace).unwrap();
        asking.ask("p", "a").await.unwrap_err();
        let slowest = asking.value(pace).unwrap();
        assert!(slowest < first);
        refuse.store(false, Ordering::Relaxed);
        let began = Instant::now();
        while let Some(now) = asking.value(pace).filter(|_| began.elapsed() < limit) {
            assert!(grows || now <= slowest, "{now}");
            let _ = asking.ask("p", "a").await;
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let took = began.elapsed();
        assert!(took < limit, "{took:?}");
        assert!(!asking.client.account("p").is_throttled());
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_under_way_than_allowed() {
    let server = Server::start(|_| ok("{}").after(Duration::from_millis(50))).await;
    let asking = std::sync::Arc::new(Asking::with(&server, |api| {
        api.max_concurrent_requests = NonZeroU32::new(4).unwrap()
    }));
    let mut asks = tokio::task::JoinSet::new();
    for i in 0..20 {
        let asking = asking.clone();
        asks.spawn(async move { asking.ask("p", &format!("a{i}")).await.unwrap() });
    }
    asks.join_all().await;
    assert_eq!((server.count(), server.most_under_way()), (20, 4));
    // And the connections are those of the requests under way, used again.
    assert!(server.connections() <= 4, "{}", server.connections());
}

#[tokio::test(start_paused = true)]
async fn an_account_that_no_project_uses_takes_no_place() {
    let server = Server::start(|_| ok("{}").after(Duration::from_millis(50))).await;
    let mut api = api(&format!("http://{}", server.address));
    api.max_concurrent_requests = NonZeroU32::new(2).unwrap();
    let asking = Asking::new(&api, &[project("p-1", inline("another-account"))]);
    let asked = ["a", "b", "c"].map(|app| asking.ask("p-1", app));
    assert!(futures_util::future::join_all(asked).await.iter().all(Result::is_ok));
    assert_eq!(server.most_under_way(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_rate_holds_over_all_accounts_and_waiting_for_it_is_counted() {
    let server = Server::start(|_| ok("{}")).await;
    let mut api = api(&format!("http://{}", server.address));
    api.max_requests_per_second = NonZeroU32::new(10);
    let other = inline("another-account");
    let asking = Asking::new(&api, &[project("p-1", None), project("p-2", other)]);
    let began = Instant::now();
    for _ in 0..15 {
        let (one, two) = tokio::join!(asking.ask("p-1", "a"), asking.ask("p-2", "a"));
        one.and(two).unwrap();
    }
    let took = began.elapsed().as_millis();
    assert!((2900..3000).contains(&took), "{took}");
    assert!(asking.value("pds_api_throttled_seconds_total{resource=\"app\"}").unwrap() > 2.5);
}
