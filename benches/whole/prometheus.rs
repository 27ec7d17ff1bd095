//! A Prometheus as fast as it can be: the cursors of many apps, and a sample of a given process.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};

use crate::fixture::project;
use crate::http;

/// The labels of the target that it has scraped.
const TARGET: &str = r#""job":"pds-exporter","instance":"10.0.0.7:10090","namespace":"monitoring""#;

struct Prometheus {
    /// When everything was scraped last.
    now: i64,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: usize,
    bytes: usize,
    /// When the process that it has scraped loaded its configuration.
    loaded: Option<String>,
}

/// Serves until the process is ended. `/requests` and `/bytes` tell what it was asked; `/scraped/TIME` tells it of a process
/// that loaded its configuration then.
pub(crate) async fn serve() {
    let now = jiff::Timestamp::now().as_second();
    http::serve(Prometheus { now, seen: Mutex::default() }, answer).await;
}

async fn answer(prometheus: Arc<Prometheus>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let seen = || prometheus.seen.lock().unwrap();
    let path = request.uri().path().to_owned();
    if let Some(loaded) = path.strip_prefix("/scraped/") {
        *seen() = Seen { loaded: Some(loaded.to_owned()), ..Seen::default() };
        return Response::default();
    }
    match &*path {
        "/requests" => return Response::new(Full::from(seen().requests.to_string())),
        "/bytes" => return Response::new(Full::from(seen().bytes.to_string())),
        _ => {}
    }
    let form = request.into_body().collect().await.unwrap().to_bytes();
    let body = prometheus.reply(&form);
    let mut seen = seen();
    seen.bytes += body.len();
    seen.requests += 1;
    Response::new(Full::from(body))
}

impl Prometheus {
    /// The answer to the query for processes and to that for cursors; nothing is pending.
    fn reply(&self, form: &[u8]) -> String {
        let mut pairs = url::form_urlencoded::parse(form);
        let (_, query) = pairs.find(|(name, _)| name == "query").unwrap();
        let (now, mut series) = (self.now, String::new());
        if query.contains("pds_app_pending_seconds") {
            return vector("");
        }
        if let Some((_, apps)) = query.split_once(",app=~\"") {
            let (apps, _) = apps.split_once('"').unwrap();
            for app in apps.split('|') {
                let (_, n) = app.rsplit_once('-').unwrap();
                let project = project(n.parse().unwrap());
                for resource in ["response_time", "run_execution_time"] {
                    let comma = if series.is_empty() { "" } else { "," };
                    let metric =
                        format!(r#""app":"{app}","project":"{project}","resource":"{resource}",{TARGET}"#);
                    let until = now / 60 * 60 - 60;
                    write!(series, r#"{comma}{{"metric":{{{metric}}},"value":[{now}.123,"{until}"]}}"#)
                        .unwrap();
                }
            }
        } else if let Some(loaded) = &self.seen.lock().unwrap().loaded {
            write!(series, r#"{{"metric":{{{TARGET}}},"value":[{now}.123,"{loaded}"]}}"#).unwrap();
        }
        vector(&series)
    }
}

/// A reply with these series.
fn vector(series: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{series}]}}}}"#)
}
