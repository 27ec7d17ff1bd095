//! Futures dropped at each of their awaits: no work continues, nothing is lost, and nothing stays locked.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;

use pds_client::{Client, Turn};
use pds_core::clock::Clock;
use pds_core::memory::MemoryBudget;
use pds_exporter::store::Filter;
use pds_exposition::Format;
use pds_interface::{Arguments, get_app};
use pds_ledger::{Key, Ledger, LedgerStore, Owner, StateError};

use pds_telemetry::Telemetry;
use pds_web::{Config, Encoding};

use crate::process::DEADLINE;
use crate::rig::{self, Configuration};
use crate::web::Stub;

/// Polls `future` until it is ready; `None` if it has to wait more than `times` times, and is dropped.
async fn unless_it_waits<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let (mut future, mut left) = (pin!(future), times);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Gives up the future that `start` makes when it waits for the first time, for the second time, and so on, until it no
/// longer waits. `check` follows each. Returns how often it waited at most.
pub(crate) async fn at_each_await<T>(start: impl AsyncFn() -> T, check: impl AsyncFn()) -> usize {
    for times in 0..1000 {
        let done = unless_it_waits(times, start()).await.is_some();
        tokio::time::timeout(DEADLINE, check()).await.expect("something stays locked");
        if done {
            return times;
        }
    }
    panic!("it never ends");
}

/// Waits until `done`: what was given up may end on a thread of its own.
async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn key(app: &str) -> Key {
    let resource = pds_interface::response_time::RESOURCE;
    Key { owner: Owner::new("p".into(), app.into()), resource }
}

#[tokio::test]
async fn a_dropped_commit_is_written_or_not_and_the_next_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.log");
    let open = async || {
        LedgerStore::open(Some(&path), Arc::new(Telemetry::new(false).unwrap()), Duration::ZERO).await
    };
    let free = async || {
        while pds_ledger::state::read(&path).await.is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(at_each_await(async || open().await.map(drop), free).await > 0);

    // One that was given up before it began may have the file for a moment.
    let (store, committer) = loop {
        match open().await {
            Err(StateError::InUse(_)) => tokio::time::sleep(Duration::from_millis(1)).await,
            opened => break opened.unwrap(),
        }
    };
    let second = AtomicI64::new(0);
    let next = || Ledger::open(second.fetch_add(1, Ordering::Relaxed));
    let check = async || {
        store.commit(&key("check"), next()).await.unwrap();
    };
    assert!(at_each_await(async || store.commit(&key("app"), next()).await, check).await > 0);
    let both = async || store.commit_all(vec![(key("app"), next()), (key("b"), next())]).await;
    assert!(at_each_await(both, check).await > 0);
    let aside = async || store.set_aside(|key| key.owner.app.as_ref() == "b").await;
    assert!(at_each_await(aside, check).await > 0);
    let prune = async || store.prune(&[key("app")].into(), i64::MAX).await;
    assert!(at_each_await(prune, check).await > 0);
    committer.finished().await;
    let on_disk = pds_ledger::state::read(&path).await.unwrap();
    for (key, ledger) in &on_disk {
        assert_eq!(store.ledger(key).as_deref(), Some(ledger), "{key}");
    }
    assert!(on_disk.iter().any(|(of, _)| *of == key("app")));
    assert!(store.ledger(&key("b")).is_none(), "pruned");
}

#[tokio::test]
async fn a_request_frees_its_slot_and_its_memory() {
    let (world, service) = rig::world(1, 1).await;
    let config = Configuration::new(&world, &service).api("max_concurrent_requests = 1\n").load();
    let (observer, memory) = (Arc::new(Telemetry::new(false).unwrap()), MemoryBudget::default());
    let client = Client::new(&config.api, &config.accounts(), observer, Clock::system()).unwrap();
    let client = client.with_reply_memory(&memory);
    let (project, apps) = world.projects().remove(0);
    let request =
        get_app::CALL.request(&Arguments::about(&project, &apps[0]), &config.api.query_names).unwrap();
    let account = client.account(&project);
    let read =
        async || client.read(&Turn::new(&account), get_app::RESOURCE, &request, |body| Ok(body.len())).await;
    let check = async || {
        read().await.unwrap();
        until(|| memory.used() == 0).await;
    };
    assert!(at_each_await(read, check).await > 0);
}

#[tokio::test]
async fn a_page_that_is_given_up_frees_its_slot() {
    let (world, service) = rig::world(1, 3).await;
    let handle = rig::daemon(Configuration::new(&world, &service).load(), &Clock::system()).await;
    let (held, mut waited) = (Arc::new(()), 0);
    let of_app = format!("app={}", world.projects()[0].1[0]);
    let filters = [Filter::default(), Filter::parse(Some(&of_app))];
    // A page may be ready at its first poll.
    for filter in filters.iter().cycle().take(1000) {
        let page = async || {
            let held = Arc::clone(&held);
            handle.pages.page(Format::Text, Encoding::Identity, filter, held).await.unwrap()
        };
        let check = async || {
            drop(page().await);
            until(|| Arc::strong_count(&held) == 1).await;
        };
        waited += at_each_await(page, check).await;
        if waited >= 2 {
            return;
        }
    }
    panic!("no page had to be waited for");
}

#[tokio::test]
async fn a_server_closes_its_port_and_its_connections() {
    let config = Config { listen_addresses: vec!["127.0.0.1:0".to_owned()], ..Config::default() };
    let server = config.clone().bind(Telemetry::new(false).unwrap()).unwrap();
    let address = server.tcp_address().unwrap();
    let stub = Arc::new(Stub::default());
    crate::process::let_clients_be_built();
    let client = reqwest::Client::new();
    let asked = async {
        let url = format!("http://{address}/metrics");
        client.get(url).send().await.unwrap().text().await.unwrap()
    };
    let serving = server.serve(Arc::clone(&stub) as Arc<_>, Vec::new(), std::future::pending());
    tokio::select! {
        page = asked => assert!(page.contains("pds_up")),
        () = serving => unreachable!("nothing ends it"),
    }
    until(|| Arc::strong_count(&stub) == 1).await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
