//! Faults on demand: what goes wrong, for which requests, how often.

use parking_lot::Mutex;
use serde::Deserialize;

use pds_interface::{CALLS, Call};

use super::chance::{hash, unit};
use super::journal::Entry;

/// The faults in force.
#[derive(Debug)]
pub struct Faults {
    seed: u64,
    armed: Mutex<Vec<Armed>>,
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    /// How many requests have matched so far, and how many of them failed.
    met: u64,
    struck: u64,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, armed: Mutex::default() }
    }

    /// Replaces all faults.
    pub fn set(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.armed.lock() = faults.into_iter().map(|fault| Armed { fault, met: 0, struck: 0 }).collect();
    }

    /// Adds a fault.
    pub fn add(&self, fault: Fault) {
        self.armed.lock().push(Armed { fault, met: 0, struck: 0 });
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.armed.lock().clear();
    }

    /// How often each fault was applied.
    pub fn struck(&self) -> Vec<u64> {
        self.armed.lock().iter().map(|armed| armed.struck).collect()
    }

    /// The faults to apply to one request.
    pub(super) fn draw(&self, call: &Call, asked: &Entry) -> Vec<Kind> {
        let mut drawn = Vec::new();
        for (index, armed) in self.armed.lock().iter_mut().enumerate() {
            let fault = &armed.fault;
            if !fault.concerns(call, asked) || fault.count.is_some_and(|count| armed.struck >= count) {
                continue;
            }
            armed.met += 1;
            let chance = unit(hash(&[self.seed, 11, index as u64, armed.met]));
            if fault.probability.is_none_or(|share| chance < share) {
                armed.struck += 1;
                drawn.push(fault.kind.clone());
            }
        }
        drawn
    }
}

/// A fault. It applies to all requests unless it is limited.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Kind of failure.
    pub kind: Kind,
    /// Only for this call: its id (`get_app`), or the resource it is polled as (`app`).
    pub call: Option<String>,
    /// Only for this project.
    pub project: Option<String>,
    /// Only for this app.
    pub app: Option<String>,
    /// Only for this container of a metrics call.
    pub container: Option<String>,
    /// Only for ranges of a metrics call that are longer than this many seconds.
    pub longer_than: Option<u32>,
    /// Only for this share of the requests, 0..=1, chosen reproducibly.
    pub probability: Option<f64>,
    /// Only this many times.
    pub count: Option<u64>,
}

/// Kind of failure. As JSON `"reset"` or `{"latency": {"millis": 100}}`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "each kind says what its fields are")]
pub enum Kind {
    /// The reply is delayed.
    Latency { millis: u64 },
    /// An error as in section 7 instead of the reply, with a Retry-After header if one is given; the call has no effect.
    Status { status: u16, retry_after: Option<String> },
    /// An error or reply whose body is this text, as proxies send it: HTML if it begins with `<`.
    RawError { status: u16, text: String },
    /// A redirection to this place.
    Redirect { location: String },
    /// The connection is reset (RST) instead of a reply.
    #[default]
    Reset,
    /// The connection ends in the middle of the body.
    CutBody,
    /// The body is sent byte by byte, with a pause before each.
    SlowBody { millis: u64 },
    /// The body never ends.
    EndlessBody,
    /// The body has this many additional bytes: blanks, which JSON allows.
    HugeBody { bytes: u64 },
    /// The body is compressed even if the client does not accept it, and has this many additional bytes when decompressed.
    GzipBomb { bytes: u64 },
    /// The body is cut off in the middle of the JSON.
    MalformedJson,
    /// Every value has another type: numbers and text become arrays, lists and objects become text.
    WrongTypes,
    /// Every value is null.
    Nulls,
    /// The field of this name has this value, wherever it occurs: JSON text that need not be valid (`"12abc"`, `1e400`,
    /// `NaN`).
    Value { field: String, json: String },
    /// This text follows the first `{`: additional fields (`"deep":[[]],`).
    Insert { text: String },
    /// The Date header is ahead, or behind if negative.
    ClockSkew { seconds: i64 },
}

impl From<Kind> for Fault {
    /// Applies to every request.
    fn from(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }
}

impl Fault {
    /// Checks the fault itself.
    ///
    /// # Errors
    /// If there is no such call, or the status or probability is out of range.
    pub fn check(&self) -> Result<(), String> {
        if let Some(name) = &self.call
            && !CALLS.iter().any(|call| is_named(call, name))
        {
            return Err(format!("no call is named '{name}'"));
        }
        if self.probability.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err("probability must be within 0..=1".to_owned());
        }
        if let Kind::Status { status, .. } | Kind::RawError { status, .. } = &self.kind
            && !(200..=599).contains(status)
        {
            return Err(format!("status {status} is out of range; must be from 200 to 599"));
        }
        Ok(())
    }

    /// Whether the fault applies to this request.
    fn concerns(&self, call: &Call, asked: &Entry) -> bool {
        let is = |wanted: &Option<String>, given: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| wanted == given.unwrap_or_default())
        };
        let is_longer = |most| asked.range.is_some_and(|range| range.seconds() > u64::from(most));
        self.call.as_deref().is_none_or(|name| is_named(call, name))
            && is(&self.project, asked.project.as_deref())
            && is(&self.app, asked.app.as_deref())
            && is(&self.container, asked.container.as_deref())
            && self.longer_than.is_none_or(is_longer)
    }
}

/// Whether `name` is the call's id, or the resource it is polled as.
fn is_named(call: &Call, name: &str) -> bool {
    call.id == name || call.polled.is_some_and(|polled| polled.resource == name)
}

/// Reads faults as JSON: a list of them, or one.
///
/// # Errors
/// If they cannot be parsed, or one of them is not valid.
pub fn parse(json: &[u8]) -> Result<Vec<Fault>, String> {
    let faults: Result<Vec<Fault>, _> = match json.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(json).map(|fault| vec![fault]),
        _ => serde_json::from_slice(json),
    };
    let faults = faults.map_err(|error| format!("faults cannot be read: {error}"))?;
    faults.iter().try_for_each(Fault::check)?;
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pds_interface::{TimeRange, get_app, list_projects, response_time};

    /// Whether a fault is drawn for a request of this project and app.
    fn strikes(faults: &Faults, call: &Call, project: &str, app: &str) -> bool {
        let asked = Entry { project: Some(project.into()), app: Some(app.into()), ..Entry::default() };
        !faults.draw(call, &asked).is_empty()
    }

    #[test]
    fn a_fault_applies_only_to_the_requests_it_is_limited_to() {
        let faults = Faults::new(1);
        let call = Some("app".to_owned());
        let (project, app) = (Some("p-1".to_owned()), Some("p-1-a".to_owned()));
        faults.set([Fault { call, project, app, count: Some(1), ..Kind::Reset.into() }]);
        let struck = |call, project, app| strikes(&faults, call, project, app);
        assert!(!struck(&response_time::CALL, "p-1", "p-1-a"));
        assert!(!struck(&get_app::CALL, "p-2", "p-1-a"));
        assert!(!struck(&get_app::CALL, "p-1", "p-1-b"));
        assert!(struck(&get_app::CALL, "p-1", "p-1-a"));
        assert!(!struck(&get_app::CALL, "p-1", "p-1-a"));
        faults.set([Fault { call: Some("list_projects".into()), ..Kind::Reset.into() }]);
        assert!(struck(&list_projects::CALL, "", ""));
        faults.clear();
        assert!(!struck(&list_projects::CALL, "", ""));
    }

    #[test]
    fn a_fault_may_be_limited_to_a_container_or_to_long_ranges() {
        let faults = Faults::new(1);
        let struck = |seconds: i64, container: Option<&str>| {
            let range = Some(TimeRange { start: 60, end: 60 + seconds });
            let asked = Entry { range, container: container.map(str::to_owned), ..Entry::default() };
            !faults.draw(&response_time::CALL, &asked).is_empty()
        };
        faults.set([Fault { container: Some("c-1".to_owned()), ..Kind::Reset.into() }]);
        assert!(struck(60, Some("c-1")) && !struck(60, Some("c-2")) && !struck(60, None));
        faults.set([Fault { longer_than: Some(300), ..Kind::Reset.into() }]);
        assert!(struck(301, None) && !struck(300, None));
        assert!(!strikes(&faults, &get_app::CALL, "p-1", "p-1-a"));
    }

    #[test]
    fn a_probability_is_a_share_of_the_requests_and_the_same_each_time() {
        let struck = || {
            let faults = Faults::new(1);
            faults.add(Fault { probability: Some(0.3), ..Kind::Reset.into() });
            (0..1000).map(|_| strikes(&faults, &get_app::CALL, "", "")).collect::<Vec<_>>()
        };
        let share = struck().iter().filter(|struck| **struck).count();
        assert!((250..350).contains(&share), "{share}");
        assert_eq!(struck(), struck());
    }

    #[test]
    fn faults_are_read_from_json() {
        for (json, fault) in [
            (r#"{"kind":"reset"}"#, Kind::Reset.into()),
            (
                r#"{"kind":{"latency":{"millis":5}},"call":"app","probability":0.5}"#,
                Fault {
                    call: Some("app".into()),
                    probability: Some(0.5),
                    ..Kind::Latency { millis: 5 }.into()
                },
            ),
            (
                r#"{"kind":{"status":{"status":429,"retry_after":"3"}},"count":2}"#,
                Fault {
                    count: Some(2),
                    ..Kind::Status { status: 429, retry_after: Some("3".into()) }.into()
                },
            ),
        ] {
            assert_eq!(parse(json.as_bytes()).unwrap(), [fault]);
        }
        assert!(serde_json::from_str::<Fault>(r#"{"kind":"reset","apps":"x"}"#).is_err());
        assert!(Fault::from(Kind::Status { status: 99, retry_after: None }).check().is_err());
        assert!(Fault { call: Some("nothing".into()), ..Kind::Reset.into() }.check().is_err());
        assert!(Fault { probability: Some(2.0), ..Kind::Reset.into() }.check().is_err());
    }
}
