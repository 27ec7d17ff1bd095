//! `[state]`: the state file, and the Prometheus that counters are restored from.

use std::path::PathBuf;
use std::time::Duration;

use config::{Value, ValueKind};
use http::{HeaderName, HeaderValue};
use url::Url;

use super::key::{Key, Kind, as_written};
use super::raw::{Position, Table};
use super::reader::{EmptyIsNone, File, Reader, SECONDS, Text, Url as HttpUrl};
use super::section::{Row, Section as _, default, or_empty, section};
use super::selector::Selector;
use super::value;
use pds_core::secret::Secret;
use pds_ledger::config::{Login, Prometheus};

section! {
    /// `[state]`: how counters survive a restart.
    pub struct State {
        /// The state file; `None` keeps the counters in memory.
        path: Option<PathBuf> = default(EmptyIsNone(File), "\"\"",
            "The file that keeps the counters across restarts; empty keeps them in memory only."),
        /// Where counters are restored from; `None` if they are not.
        prometheus: Option<Prometheus> = PrometheusKeys,
    }
}

/// The keys of [`Prometheus`].
#[derive(Debug)]
struct Keys {
    prometheus_url: Option<Url>,
    prometheus_token_file: Option<PathBuf>,
    prometheus_username: Option<String>,
    prometheus_password_file: Option<PathBuf>,
    prometheus_ca_file: Option<PathBuf>,
    prometheus_headers: Vec<(HeaderName, Secret)>,
    prometheus_selector: String,
    lookback: Duration,
}

section! {
    for Keys {
        prometheus_url: Option<Url> = default(
            EmptyIsNone(HttpUrl { credentials_in: Some("prometheus_username and prometheus_password_file") }), "\"\"",
            "The Prometheus (or Thanos, Mimir, VictoriaMetrics) from which the counters are read back at the start. May have a path; empty reads nothing back."),
        prometheus_token_file: Option<PathBuf> = default(EmptyIsNone(File), "\"\"",
            "A file that holds a bearer token for it. It is read again whenever it changes. Excludes prometheus_username."),
        prometheus_username: Option<String> = default(EmptyIsNone(Text), "\"\"",
            "User name for basic authentication there."),
        prometheus_password_file: Option<PathBuf> = default(EmptyIsNone(File), "\"\"",
            "A file that holds the password for basic authentication. It is read again whenever it changes."),
        prometheus_ca_file: Option<PathBuf> = default(EmptyIsNone(File), "\"\"",
            "Additional trust anchors (PEM), for a Prometheus with a private certificate authority; empty means none."),
        prometheus_headers: Vec<(HeaderName, Secret)> = or_empty(Headers, "{ X-Scope-OrgID = \"team\" }",
            "Headers sent with every query. Their values are never shown."),
        prometheus_selector: String = default(Selector, "\"\"",
            "Label matchers added to every query, for example 'job=\"pds-exporter\"', if other exporters' series are in the same Prometheus."),
        lookback: Duration = default(SECONDS, "\"24h\"",
            "How far back the counters are looked for. More than accounting.max_catch_up is of little use: the time between is unaccounted."),
    }
    check(table) {
        let set = |name: &'static str, set: bool| set.then_some(name);
        let names = [
            set("prometheus_token_file", matches!(prometheus_token_file, Some(Some(_)))),
            set("prometheus_username", matches!(prometheus_username, Some(Some(_)))),
            set("prometheus_password_file", matches!(prometheus_password_file, Some(Some(_)))),
            set("prometheus_ca_file", matches!(prometheus_ca_file, Some(Some(_)))),
            set("prometheus_headers", prometheus_headers.as_ref().is_some_and(|headers| !headers.is_empty())),
            set("prometheus_selector", prometheus_selector.as_ref().is_some_and(|text| !text.is_empty())),
        ];
        check_together(table, matches!(prometheus_url, Some(None)), &names);
    }
}

/// Refuses keys that conflict with or require another one; `names` are the keys that are set.
fn check_together(table: &Table<'_>, without_url: bool, names: &[Option<&'static str>]) {
    let is_set = |name| names.contains(&Some(name));
    for name in names.iter().flatten().filter(|_| without_url) {
        table
            .position(name)
            .refuse::<()>("has no effect without state.prometheus_url; set it, or remove this key");
    }
    let (user, password) = (is_set("prometheus_username"), is_set("prometheus_password_file"));
    if is_set("prometheus_token_file") && (user || password) {
        table.position("prometheus_token_file").refuse::<()>(
            "conflicts with basic authentication; set either this, or prometheus_username and prometheus_password_file",
        );
    } else if user != password {
        let (given, missing) = if user {
            ("prometheus_username", "prometheus_password_file")
        } else {
            ("prometheus_password_file", "prometheus_username")
        };
        table.position(given).refuse::<()>(format!("needs state.{missing}; set both, or neither"));
    }
}

/// The keys of a [`Prometheus`], read into one.
#[derive(Debug)]
struct PrometheusKeys;

impl Row for PrometheusKeys {
    type Value = Option<Prometheus>;

    fn declare(&self, path: &str, _: &str, keys: &mut Vec<Key>) {
        Keys::declare(path, keys);
    }

    fn read(&self, table: &Table<'_>, _: &str) -> Option<Self::Value> {
        let keys = Keys::read(table)?;
        let basic = keys.prometheus_username.zip(keys.prometheus_password_file);
        let basic = basic.map(|(username, password_file)| Login::Basic { username, password_file });
        Some(keys.prometheus_url.map(|url| Prometheus {
            url,
            login: keys.prometheus_token_file.map(Login::Token).or(basic),
            ca_file: keys.prometheus_ca_file,
            headers: keys.prometheus_headers,
            selector: keys.prometheus_selector,
            lookback: keys.lookback,
        }))
    }
}

/// Headers that the exporter or its HTTP client sets itself.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A table of header names and values, sorted by name.
#[derive(Debug)]
struct Headers;

impl Reader for Headers {
    type Value = Vec<(HeaderName, Secret)>;

    fn kind(&self) -> Kind {
        Kind::Headers
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Self::Value> {
        let ValueKind::Table(raw) = &raw.kind else {
            return position.refuse("must be a table such as { X-Scope-OrgID = \"team\" }");
        };
        let mut names: Vec<&String> = raw.keys().collect();
        names.sort();
        let mut headers: Vec<(HeaderName, Secret)> = Vec::with_capacity(names.len());
        for written in names {
            let position = position.member(&as_written(written));
            let name = position.check(header_name(written));
            let value = raw.get(written).and_then(|raw| position.check(header_value(raw)));
            let Some((name, value)) = name.zip(value) else { continue };
            if headers.iter().any(|(known, _)| *known == name) {
                position.refuse::<()>("duplicate; header names are case-insensitive");
            }
            headers.push((name, value));
        }
        Some(headers)
    }
}

/// A header that may be configured.
fn header_name(name: &str) -> Result<HeaderName, String> {
    let header: HeaderName = name.parse().map_err(|_| "not a valid header name".to_owned())?;
    if header == http::header::AUTHORIZATION {
        return Err(
            "use prometheus_token_file, or prometheus_username and prometheus_password_file".to_owned()
        );
    }
    if OWN_HEADERS.contains(&header.as_str()) {
        return Err("the exporter sets this header itself; remove it".to_owned());
    }
    Ok(header)
}

/// A header's value. Messages never show it.
fn header_value(raw: &Value) -> Result<Secret, String> {
    let text = value::text(raw)?;
    HeaderValue::from_str(text).map_err(|_| {
        "contains line breaks or other characters that are not allowed in a header".to_owned()
    })?;
    Ok(Secret::new(text))
}
