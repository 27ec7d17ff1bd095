//! A service that answers 429: walls and token buckets, and how soon the former pace is back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Asking;
use super::server::{Server, ok, status};

/// When each request arrived, and whether it was answered well.
type Arrivals = Arc<Mutex<Vec<(Instant, bool)>>>;

/// A service that allows `per_second` requests with a burst of `burst`, and none within `wall`, in seconds from now.
async fn limited(per_second: f64, burst: f64, wall: std::ops::Range<u64>) -> (Server, Arrivals) {
    let arrivals = Arrivals::default();
    let (seen, began) = (Arc::clone(&arrivals), Instant::now());
    let bucket = Mutex::new((burst, began));
    let server = Server::start(move |_| {
        let now = Instant::now();
        let mut bucket = bucket.lock().unwrap();
        let (tokens, at) = *bucket;
        let tokens = (tokens + (now - at).as_secs_f64() * per_second).min(burst);
        let allowed = tokens >= 1.0 && !wall.contains(&(now - began).as_secs());
        *bucket = (if allowed { tokens - 1.0 } else { tokens }, now);
        seen.lock().unwrap().push((now, allowed));
        if allowed { ok("{}") } else { status(429, "") }
    })
    .await;
    (server, arrivals)
}

/// Polls `targets` targets each `interval`, as a poller does, for `duration`.
async fn polled(server: &Server, targets: u32, interval: Duration, duration: Duration) {
    let asking = Arc::new(Asking::of(server));
    let end = Instant::now() + duration;
    let mut polls = JoinSet::new();
    for target in 0..targets {
        let asking = Arc::clone(&asking);
        polls.spawn(async move {
            let mut due = Instant::now() + interval * target / targets;
            while due < end {
                tokio::time::sleep_until(due).await;
                let _ = asking.ask("p", "a").await;
                due = (due + interval).max(Instant::now());
            }
        });
    }
    let _ = tokio::time::timeout_at(end, polls.join_all()).await;
}

/// How many requests arrived within `from..to` seconds after `began`, and how many of them were allowed.
fn within(arrivals: &Arrivals, began: Instant, from: u64, to: u64) -> (f64, f64) {
    let range = began + Duration::from_secs(from)..began + Duration::from_secs(to);
    let arrivals = arrivals.lock().unwrap();
    let in_range = arrivals.iter().filter(|(at, _)| range.contains(at));
    let allowed = in_range.clone().filter(|(_, allowed)| *allowed).count();
    (f64::from(u32::try_from(in_range.count()).unwrap()), f64::from(u32::try_from(allowed).unwrap()))
}

#[tokio::test(start_paused = true)]
async fn after_a_wall_of_429s_the_former_pace_is_back_within_a_minute() {
    for (targets, interval) in [(20, 20), (60, 10), (100, 2)] {
        let began = Instant::now();
        let (server, arrivals) = limited(1e6, 1e6, 30..90).await;
        polled(&server, targets, Duration::from_secs(interval), Duration::from_secs(210)).await;
        let demand = f64::from(targets) / interval as f64;
        let last = arrivals.lock().unwrap().iter().filter(|(_, allowed)| !allowed).map(|(at, _)| *at).max();
        let last = (last.unwrap() - began).as_secs();
        let (refused, _) = within(&arrivals, began, 50, 90);
        assert!(refused <= 40.0, "{refused} requests at a wall at {demand} a second");
        let (_, pace) = within(&arrivals, began, last + 40, last + 60);
        assert!(pace >= 0.9 * 20.0 * demand, "{pace} requests in 20 seconds at {demand} a second");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_bucket_is_used_up_without_a_second_storm() {
    for (per_second, burst) in [(0.5, 5.0), (2.0, 2.0), (5.0, 10.0), (10.0, 20.0)] {
        let began = Instant::now();
        let (server, arrivals) = limited(per_second, burst, 0..0).await;
        polled(&server, 200, Duration::from_secs(10), Duration::from_secs(360)).await;
        let (all, allowed) = within(&arrivals, began, 60, 360);
        let (share, used) = (1.0 - allowed / all, allowed / (300.0 * per_second));
        assert!(used > 0.8, "{used} of {per_second} a second are used");
        // A 429 in some 15 seconds, and those that were in flight at the time.
        assert!(all - allowed < 40.0, "{} 429s in 300 s at {per_second} a second ({share})", all - allowed);
        println!("{per_second}/s, burst {burst}: {used:.2} used, {} 429s of {all}", all - allowed);
    }
}
