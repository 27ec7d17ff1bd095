//! A Prometheus as fast as it can be: what it holds of each app was made beforehand, 25 series scraped each 15 seconds.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};

use crate::fixture::{app, project};
use crate::http;

/// The thresholds of the buckets below `+Inf`.
const THRESHOLDS: [&str; 12] =
    ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "60.0"];
/// Samples of a series in five minutes.
const SAMPLES: i64 = 20;

struct Prometheus {
    /// When everything was scraped last.
    now: i64,
    /// By app: the series of the last five minutes.
    apps: Vec<String>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    asked: Vec<String>,
    bytes: usize,
    began: Option<Instant>,
}

/// Serves until the process is ended. `/asked`, `/requests` and `/bytes` tell what it was asked, and `/took` how many
/// seconds ago it was asked first.
pub(crate) async fn serve(apps: usize) {
    let now = jiff::Timestamp::now().as_second();
    let apps = (0..apps).map(|n| series(n, now)).collect();
    http::serve(Prometheus { now, apps, seen: Mutex::default() }, answer).await;
}

async fn answer(prometheus: Arc<Prometheus>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let seen = || prometheus.seen.lock().unwrap();
    let told = match request.uri().path() {
        "/asked" => Some(seen().asked.join("\n")),
        "/requests" => Some(seen().asked.len().to_string()),
        "/bytes" => Some(seen().bytes.to_string()),
        "/took" => Some(seen().began.unwrap().elapsed().as_secs_f64().to_string()),
        _ => None,
    };
    if let Some(told) = told {
        return Response::new(Full::from(told));
    }
    let form = request.into_body().collect().await.unwrap().to_bytes();
    let body = prometheus.reply(&form);
    let mut seen = seen();
    seen.began.get_or_insert_with(Instant::now);
    seen.bytes += body.len();
    seen.asked.push(String::from_utf8_lossy(&form).into_owned());
    Response::new(Full::from(body))
}

impl Prometheus {
    /// The answer to `time()` and to `{...}[Ns]`.
    fn reply(&self, form: &[u8]) -> Bytes {
        let mut pairs = url::form_urlencoded::parse(form);
        let (_, query) = pairs.find(|(name, _)| name == "query").unwrap();
        if query == "time()" {
            let now = self.now;
            let scalar = format!(r#"{{"resultType":"scalar","result":[{now},"{now}"]}}"#);
            return format!(r#"{{"status":"success","data":{scalar}}}"#).into();
        }
        assert!(query.starts_with('{'), "everything is in the first window: {query}");
        let (_, apps) = query.split_once(",app=~\"").unwrap();
        let (apps, _) = apps.split_once('"').unwrap();
        let mut body =
            BytesMut::from(&br#"{"status":"success","data":{"resultType":"matrix","result":["#[..]);
        for (index, app) in apps.split('|').enumerate() {
            let (_, n) = app.rsplit_once('-').unwrap();
            body.extend_from_slice(if index == 0 { b"" } else { b"," });
            body.extend_from_slice(self.apps[n.parse::<usize>().unwrap()].as_bytes());
        }
        body.extend_from_slice(b"]}}");
        body.freeze()
    }
}

/// The 25 series of app `n`.
fn series(n: usize, now: i64) -> String {
    let mut series = String::new();
    let common = format!(
        r#""project":"{}","app":"{}","job":"pds-exporter","instance":"10.0.0.7:10090","namespace":"monitoring""#,
        project(n),
        app(n)
    );
    let until = now / 60 * 60 - 60;
    let total = 1_000_000 + 13 * i64::try_from(n).unwrap();
    let mut put = |name: &str, label: &str, value: i64| {
        let comma = if series.is_empty() { "" } else { "," };
        let all = (0..SAMPLES).rev().map(|at| format!(r#"[{}.123,"{value}"]"#, now - 15 * at));
        let all = all.collect::<Vec<_>>().join(",");
        write!(series, r#"{comma}{{"metric":{{"__name__":"{name}",{label}{common}}},"values":[{all}]}}"#)
            .unwrap();
    };
    for resource in ["response_time", "run_execution_time"] {
        let label = format!(r#""resource":"{resource}","#);
        put("pds_app_accounted_until_timestamp_seconds", &label, until);
        put("pds_app_unaccounted_seconds_total", &label, 0);
        put("pds_app_rechecked_until_timestamp_seconds", &label, until / 3600 * 3600 - 3600);
    }
    for counted in ["requests", "runs"] {
        put(&format!("pds_app_{counted}_total"), "", total);
        put(&format!("pds_app_late_{counted}_total"), "", 17);
        put(&format!("pds_app_overcounted_{counted}_total"), "", 0);
    }
    let bucket = "pds_app_request_duration_seconds_bucket";
    for (index, le) in THRESHOLDS.iter().enumerate() {
        let below = total * (1 + i64::try_from(index).unwrap()) / 13;
        put(bucket, &format!(r#""le":"{le}","#), below);
    }
    put(bucket, r#""le":"+Inf","#, total);
    series
}
