//! `[state]`: the state file, and the Prometheus that says where counters continue.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use config::{Value, ValueKind};
use http::{HeaderName, HeaderValue};
use url::Url;

use super::key::{Kind, as_written};
use super::raw::Table;
use super::reader::{Reader, as_table, as_text, empty_is_none, file, seconds, text};
use super::section::{Section as _, default, or_empty, section};
use super::selector::selector;
use super::url::http_url;
use pds_core::secret::Secret;
use pds_ledger::restore::{Login, Prometheus};

section! {
    /// `[state]`: how counters survive a restart.
    pub struct State {
        /// The state file; `None` keeps the counters in memory.
        path: Option<PathBuf> = default(empty_is_none(file()), "\"\"",
            "File that keeps the counters across restarts; empty means memory only."),
        /// Source of cursors without a state file; `None` if counters do not continue.
        prometheus: Option<Prometheus> = prometheus,
    }
}

section! {
    /// The keys of [`Prometheus`].
    struct Keys {
        prometheus_url: Option<Url> = default(
            empty_is_none(http_url(Some("prometheus_username and prometheus_password_file"))), "\"\"",
            "Prometheus, Thanos, Mimir or VictoriaMetrics from which counters continue after a restart without a state file."),
        prometheus_token_file: Option<PathBuf> = default(empty_is_none(file()), "\"\"",
            "File with a bearer token for that Prometheus, reread when it changes. Not together with prometheus_username."),
        prometheus_username: Option<String> = default(empty_is_none(text()), "\"\"",
            "User name for basic authentication."),
        prometheus_password_file: Option<PathBuf> = default(empty_is_none(file()), "\"\"",
            "File with the password for basic authentication, reread when it changes."),
        prometheus_ca_file: Option<PathBuf> = default(empty_is_none(file()), "\"\"",
            "Additional CA certificates (PEM) for that Prometheus."),
        prometheus_headers: Vec<(HeaderName, Secret)> = or_empty(headers(), "{ X-Scope-OrgID = \"team\" }",
            "Headers of every query. Values of 8 bytes or more are never shown."),
        prometheus_selector: String = default(selector(), "\"\"",
            "Label matchers added to every query, such as 'job=\"pds-exporter\"', if that Prometheus scrapes other exporters of the same apps."),
        lookback: Duration = default(seconds(), "\"24h\"",
            "How far back the exporter searches for cursors. Time beyond accounting.max_catch_up is unaccounted."),
    }
    check(table) {
        let refuse = |name: &'static str, message: &str| {
            table.position(name).refuse::<()>(message);
        };
        let is_set = |name: &'static str| match table.get(name).map(|raw| &raw.kind) {
            Some(ValueKind::String(text)) => !text.is_empty(),
            Some(ValueKind::Table(members)) => !members.is_empty(),
            other => other.is_some(),
        };
        let [url, token_file, username, password_file] =
            ["prometheus_url", "prometheus_token_file", "prometheus_username", "prometheus_password_file"];
        for name in
            [token_file, username, password_file, "prometheus_ca_file", "prometheus_headers", "prometheus_selector"]
        {
            if is_set(name) && !is_set(url) {
                refuse(name, "has no effect without state.prometheus_url; set it, or remove this key");
            }
        }
        match (is_set(token_file), is_set(username), is_set(password_file)) {
            (true, true, _) | (true, _, true) => refuse(
                token_file,
                "conflicts with basic authentication; set either this, or prometheus_username and prometheus_password_file",
            ),
            (_, true, false) => refuse(username, "needs state.prometheus_password_file; set both, or neither"),
            (_, false, true) => refuse(password_file, "needs state.prometheus_username; set both, or neither"),
            _ => {}
        }
    }
}

/// The row of the keys of a [`Prometheus`], read into one.
fn prometheus(table: &Table<'_>, _: &'static str) -> Option<Option<Prometheus>> {
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

/// Headers that the exporter or its HTTP client sets itself.
const OWN_HEADERS: &str = "accept accept-encoding connection content-encoding content-length content-type host \
     keep-alive proxy-connection te trailer transfer-encoding upgrade";

/// A table of header names and values, sorted by name.
fn headers() -> Reader<Vec<(HeaderName, Secret)>> {
    Reader::at(Kind::Headers, |raw, position| {
        let members = position
            .check(as_table(raw, "{ X-Scope-OrgID = \"team\" }, in the environment X-Scope-OrgID=team"))?;
        let members: BTreeMap<&String, &Value> = members.iter().collect();
        let mut headers: Vec<(HeaderName, Secret)> = Vec::with_capacity(members.len());
        for (written, raw) in members {
            // An invalid name may be a whole header, with its value.
            let parsed = written.parse().map_err(|_| "a name is not a valid header name".to_owned());
            let Some(name) = position.check(parsed) else { continue };
            let position = position.member(&as_written(written));
            let name = position.check(configurable(name));
            let value = position.check(header_value(raw));
            let Some((name, value)) = name.zip(value) else { continue };
            if headers.iter().any(|(known, _)| *known == name) {
                position.refuse::<()>("duplicate; header names are case-insensitive");
            }
            headers.push((name, value));
        }
        Some(headers)
    })
}

/// Returns `header` if it may be configured.
fn configurable(header: HeaderName) -> Result<HeaderName, String> {
    if header == http::header::AUTHORIZATION {
        return Err(
            "use prometheus_token_file, or prometheus_username and prometheus_password_file".to_owned()
        );
    }
    if OWN_HEADERS.split_whitespace().any(|own| own == header) {
        return Err("the exporter sets this header itself; remove it".to_owned());
    }
    Ok(header)
}

/// A header's value. Messages never show it.
fn header_value(raw: &Value) -> Result<Secret, String> {
    let text = as_text(raw)?;
    HeaderValue::from_str(text).map_err(|_| {
        "contains line breaks or other characters that are not allowed in a header".to_owned()
    })?;
    Ok(Secret::new(text))
}
