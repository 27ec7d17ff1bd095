//! The service, as fast as it can be: replies made beforehand, from a process of its own. Only the total and the bounds of
//! the range are written into each reply, because the exporter checks them: it counts nothing until the totals of parts of a
//! range add up.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use jiff::Timestamp;
use pds_interface::{Resource, Scope};

use crate::fixture::{
    APPS_A_PROJECT, app, app_reply, bounds, project, projects_reply, response_time_reply, runs_reply,
};
use crate::http;

struct Replies {
    /// By path, with the requests per second of a metrics reply, which lacks its end from the total on.
    ready: HashMap<String, (Bytes, Option<i64>)>,
    delay: Duration,
    served: AtomicU64,
}

/// Serves until the process is ended. `GET /served` tells how many requests were answered.
pub(crate) async fn serve(apps: usize, delay: Duration) {
    http::serve(Replies { ready: ready(apps), delay, served: AtomicU64::new(0) }, answer).await;
}

async fn answer(replies: Arc<Replies>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    if request.uri().path() == "/served" {
        return Response::new(Full::from(replies.served.load(Ordering::Relaxed).to_string()));
    }
    if !replies.delay.is_zero() {
        tokio::time::sleep(replies.delay).await;
    }
    replies.served.fetch_add(1, Ordering::Relaxed);
    let Some((begin, per_second)) = replies.ready.get(request.uri().path()) else {
        return Response::builder().status(404).body(Full::default()).unwrap();
    };
    let body = if let Some(per_second) = per_second {
        let query = request.uri().query().unwrap_or("").replace("%3A", ":");
        let value = |name| query.split('&').find_map(|pair| pair.strip_prefix(name)).unwrap_or("");
        let [start, end] = ["start=", "end="].map(value);
        let second = |bound: &str| bound.parse().map_or(0, Timestamp::as_second);
        let mut body = BytesMut::with_capacity(begin.len() + 140);
        body.extend_from_slice(begin);
        body.extend_from_slice(format!(":{},", per_second * (second(end) - second(start))).as_bytes());
        body.extend_from_slice(bounds(start, end).as_bytes());
        body.freeze()
    } else {
        begin.clone()
    };
    Response::builder().header("content-type", "application/json").body(Full::from(body)).unwrap()
}

fn ready(apps: usize) -> HashMap<String, (Bytes, Option<i64>)> {
    let mut ready = HashMap::from([("/v2/projects".to_owned(), (projects_reply(apps).into(), None))]);
    for first in (0..apps).step_by(APPS_A_PROJECT) {
        for polled in Resource::all().filter(|resource| resource.polled().scope == Scope::Project) {
            let path = polled.call().path.fill(|_, path| path.push_str(&project(first)));
            ready.insert(path, (polled.polled().example.into(), None));
        }
    }
    for n in 0..apps {
        let path = format!("/v2/projects/{}/apps/{}", project(n), app(n));
        let metrics =
            [("response-time", response_time_reply(n), 10), ("run-execution-time", runs_reply(n), 3)];
        for (call, reply, most) in metrics {
            let (begin, _) = reply.rsplit_once(':').unwrap();
            let per_second = 1 + n as i64 % most;
            ready.insert(format!("{path}/metrics/{call}"), (begin.to_owned().into(), Some(per_second)));
        }
        ready.insert(path, (app_reply(n).into(), None));
    }
    ready
}
