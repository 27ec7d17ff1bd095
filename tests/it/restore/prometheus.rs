//! A model of Prometheus over loopback: it keeps what it scrapes, and answers the questions that the exporter asks.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::HeaderMap;
use pds_core::clock::Clock;
use serde_json::json;

use crate::client::server::{Reply, Seen, Server, status};
use crate::process::series;

pub(crate) type Labels = BTreeMap<String, String>;

/// The requests that it received.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) form: HashMap<String, String>,
}

/// Its answer instead; `None` for the usual one.
type Trouble = dyn Fn(&Asked) -> Option<(u16, String)> + Send + Sync;

/// The model.
pub(crate) struct Prometheus {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    clock: Clock,
    /// By labels, the name included: samples by time.
    series: BTreeMap<Labels, Vec<(i64, f64)>>,
    asked: Vec<Asked>,
    trouble: Option<Box<Trouble>>,
}

impl Prometheus {
    pub(crate) async fn start(clock: Clock) -> Self {
        let state = State { clock, series: BTreeMap::new(), asked: Vec::new(), trouble: None };
        let state = Arc::new(Mutex::new(state));
        let served = Arc::clone(&state);
        let server = Server::start(move |seen| served.lock().unwrap().reply(seen)).await;
        Self { address: server.address, state }
    }

    /// Scrapes a page of the exporter that has these labels besides its own.
    pub(crate) fn scrape(&self, page: &str, target: &[(&str, &str)]) {
        let mut state = self.state.lock().unwrap();
        let now = state.clock.unix_seconds();
        for (name, value) in series(page) {
            let mut labels = labels(name);
            labels.extend(target.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
            state.series.entry(labels).or_default().push((now, value));
        }
    }

    /// Keeps this sample of now.
    pub(crate) fn put(&self, labels: Labels, value: f64) {
        let mut state = self.state.lock().unwrap();
        let now = state.clock.unix_seconds();
        state.series.entry(labels).or_default().push((now, value));
    }

    /// Writes other labels, or none, in the place of those that it keeps.
    pub(crate) fn relabel(&self, relabel: impl Fn(Labels) -> Option<Labels>) {
        let mut state = self.state.lock().unwrap();
        let series = std::mem::take(&mut state.series);
        let series = series.into_iter().filter_map(|(labels, samples)| Some((relabel(labels)?, samples)));
        state.series = series.collect();
    }

    /// Its samples of the metrics of this name.
    pub(crate) fn of(&self, name: &str) -> Vec<(Labels, Vec<(i64, f64)>)> {
        let state = self.state.lock().unwrap();
        let named = state.series.iter().filter(|(labels, _)| labels["__name__"] == name);
        named.map(|(labels, samples)| (labels.clone(), samples.clone())).collect()
    }

    /// The `increase` of a counter of an app over all time, from any targets: where a series decreases, it began at 0
    /// again.
    pub(crate) fn increase(&self, name: &str, app: &str) -> f64 {
        let of_app = self.of(name).into_iter().filter(|(labels, _)| labels["app"] == app);
        let increase = |(before, after): ((i64, f64), (i64, f64))| {
            if after.1 < before.1 { after.1 } else { after.1 - before.1 }
        };
        let of_series = |samples: Vec<(i64, f64)>| -> f64 {
            samples.windows(2).map(|pair| increase((pair[0], pair[1]))).sum()
        };
        of_app.map(|(_, samples)| of_series(samples)).sum()
    }

    /// Has it answer so from now on.
    pub(crate) fn answer(&self, trouble: impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static) {
        self.state.lock().unwrap().trouble = Some(Box::new(trouble));
    }

    /// It answers properly again.
    pub(crate) fn mend(&self) {
        self.state.lock().unwrap().trouble = None;
    }

    /// All it was asked.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }
}

impl State {
    fn reply(&mut self, seen: &Seen) -> Reply {
        let form: HashMap<_, _> = url::form_urlencoded::parse(&seen.body).into_owned().collect();
        if !form.contains_key("query") {
            // A process may still look for a service that had this port before.
            return status(404, "");
        }
        let asked = Asked { path: seen.target.clone(), headers: seen.headers.clone(), form };
        self.asked.push(asked.clone());
        let told = self.trouble.as_ref().and_then(|trouble| trouble(&asked));
        let (code, body) = told.unwrap_or_else(|| (200, self.result(&asked)));
        status(code, body)
    }

    /// The answer to `last_over_time({...}[Ns] offset 5s)`, to `max_over_time({...}[Ns])`, and to `{...}[Ns]`, each also
    /// with ` > 0`.
    fn result(&self, asked: &Asked) -> String {
        let query = &asked.form["query"];
        let positive = query.strip_suffix(" > 0");
        let query = positive.unwrap_or(query).trim_end_matches(')');
        let (function, rest) = query.split_once('{').unwrap();
        let (query, offset) = rest.split_once("s] offset ").unwrap_or((rest.trim_end_matches("s]"), "0s"));
        let (matchers, window) = query.rsplit_once("}[").unwrap();
        let (matchers, window) = (parse_matchers(matchers), window.parse::<i64>().unwrap());
        let now = self.clock.unix_seconds();
        let at = now - offset.trim_end_matches('s').parse::<i64>().unwrap();
        let found = self.matching(&matchers).filter_map(|(labels, samples)| {
            let mut labels = labels.clone();
            let within = samples.iter().filter(|(time, _)| *time <= at && *time > at - window);
            let values: Vec<_> = within.collect();
            let value = match function {
                "last_over_time(" => values.last()?.1,
                "max_over_time(" => {
                    labels.remove("__name__");
                    values.iter().map(|(_, value)| *value).reduce(f64::max)?
                }
                _ => {
                    let values: Vec<_> =
                        values.iter().map(|(time, value)| json!([time, value.to_string()])).collect();
                    return (!values.is_empty()).then(|| json!({"metric": labels, "values": values}));
                }
            };
            let is_in = positive.is_none() || value > 0.0;
            is_in.then(|| json!({"metric": labels, "value": [now, value.to_string()]}))
        });
        let found: Vec<_> = found.collect();
        let kind = if function.is_empty() { "matrix" } else { "vector" };
        json!({"status": "success", "data": {"resultType": kind, "result": found}}).to_string()
    }

    fn matching<'a>(
        &'a self,
        matchers: &'a [(String, Vec<String>)],
    ) -> impl Iterator<Item = (&'a Labels, &'a Vec<(i64, f64)>)> {
        self.series.iter().filter(|(labels, _)| {
            matchers.iter().all(|(name, values)| {
                let value = labels.get(name).map_or("", String::as_str);
                values.iter().any(|wanted| wanted == value)
            })
        })
    }
}

/// The labels of a series as a page writes it, its name included.
fn labels(series: &str) -> Labels {
    let (name, rest) = series.split_once('{').unwrap_or((series, "}"));
    let mut labels = Labels::from([("__name__".to_owned(), name.to_owned())]);
    labels.extend(pairs(rest.trim_end_matches('}')).into_iter().map(|(name, _, value)| (name, value)));
    labels
}

/// Matchers, and the values that each matches: all expressions that the exporter writes are lists of literals.
fn parse_matchers(text: &str) -> Vec<(String, Vec<String>)> {
    let matchers = pairs(text).into_iter().map(|(name, is_expression, value)| {
        if !is_expression {
            return (name, vec![value]);
        }
        let mut values = vec![String::new()];
        let mut characters = value.chars();
        while let Some(character) = characters.next() {
            match character {
                '|' => values.push(String::new()),
                '\\' => values.last_mut().unwrap().extend(characters.next()),
                plain => {
                    assert!(!".+*?()[]{}^$".contains(plain), "an expression that is no literal: {value}");
                    values.last_mut().unwrap().push(plain);
                }
            }
        }
        (name, values)
    });
    matchers.collect()
}

/// `name="value",name=~"value"` as name, whether the value is an expression, and the value.
fn pairs(text: &str) -> Vec<(String, bool, String)> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let is_expression = after.starts_with('~');
        let mut characters = after.trim_start_matches('~').char_indices().skip(1);
        let mut value = String::new();
        let mut end = after.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    end = at + 1 + usize::from(is_expression);
                    break;
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, escaped)) => value.push(escaped),
                    None => {}
                },
                plain => value.push(plain),
            }
        }
        pairs.push((name.trim_start_matches(',').to_owned(), is_expression, value));
        rest = &after[end..];
    }
    pairs
}
