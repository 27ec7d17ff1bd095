//! The incidents of the last six hours of the service, each token and each app, read from their events.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Duration;

use crate::store::{Event, Events, What};
use pds_diagnosis::{Cause, Incident, IncidentKind, cause};

use pds_core::clock::to_second;

/// How far back incidents reach.
pub const REACH: SignedDuration = SignedDuration::from_hours(6);
/// Failures that resume within this time are one incident.
const GAP: Duration = Duration::from_secs(300);
/// Interval of checks for incidents and reasons; shorter after the start, when most mistakes appear.
pub(super) const LOOK: Duration = Duration::from_secs(30);

/// The service among the names of tokens.
pub(super) const SERVICE: &str = "";

/// The current incidents of the service and of each token, by name.
pub(super) type GoingOn = BTreeMap<Box<str>, What>;

/// The events of the service and of each token.
#[derive(Debug, Default)]
pub(super) struct Observed(Mutex<BTreeMap<Box<str>, Events>>);

impl Observed {
    /// Records the current incidents at `now`, and forgets other accounts.
    pub(super) fn record(&self, going_on: GoingOn, now: Timestamp) {
        let mut kept = self.0.lock();
        kept.retain(|name, _| going_on.contains_key(name));
        for (name, what) in going_on {
            kept.entry(name).or_default().add(Event::new(what, now, Duration::ZERO));
        }
    }

    /// Records an event of the exporter, which concerns the service as a whole.
    pub(super) fn note(&self, what: What, now: Timestamp) {
        let event = Event::new(what, now, Duration::ZERO);
        self.0.lock().entry(SERVICE.into()).or_default().add(event);
    }

    /// The incidents of the service or of a token within reach of `now`, oldest first; also those `going_on` that are not
    /// recorded yet.
    pub(super) fn incidents(&self, name: &str, going_on: &GoingOn, now: Timestamp) -> Vec<Incident> {
        let mut events = self.0.lock().get(name).cloned().unwrap_or_default();
        if let Some(what) = going_on.get(name) {
            events.add(Event::new(what.clone(), now, Duration::ZERO));
        }
        joined(incidents(&events), GAP, now)
    }

    fn known(&self, name: &str) -> Vec<Incident> {
        self.0.lock().get(name).map(incidents).unwrap_or_default()
    }

    /// The incidents of an app polled at `interval`: `all` of its targets and builds, except those that the service or
    /// its whole `token` has, too.
    pub(super) fn of_app(
        &self,
        mut all: Vec<Incident>,
        token: &str,
        interval: Duration,
        now: Timestamp,
    ) -> Vec<Incident> {
        if all.iter().any(lasts) {
            let tolerance = LOOK + interval;
            let others = [SERVICE, token].map(|name| self.known(name)).concat().into_iter();
            // Without details, outages of several causes are one, which covers an app's outage of any cause.
            let others = joined(others.map(|it| Incident { detail: None, ..it }).collect(), tolerance, now);
            all.retain(|incident| !others.iter().any(|other| covers(other, incident, tolerance)));
        }
        joined(all, GAP, now)
    }
}

/// The incidents among these events.
pub(super) fn incidents(events: &Events) -> Vec<Incident> {
    let mut failed_until = None;
    let incident = |(event, goes_on): (&Event, bool)| {
        let ([start, end], mut detail) = (event.times(), None);
        let (kind, start) = match &event.what {
            What::Ok | What::Changed(_) => return None,
            What::Behind => (IncidentKind::CatchUp, start),
            What::Failed(failure) => {
                detail = Some(says(failure.class));
                let since = to_second(failure.since);
                // Failures that go on with another class are another incident.
                let failed_before = failed_until.replace(end) >= Some(since);
                (IncidentKind::Outage, if failed_before { start } else { since })
            }
            What::Restart => (IncidentKind::Restart, start),
            What::Reload => (IncidentKind::Reload, start),
            What::ReloadRefused => (IncidentKind::ReloadRefused, start),
        };
        Some(Incident { kind, start, end: (!goes_on).then_some(end), detail })
    };
    events.iter().filter_map(incident).collect()
}

/// The cause of failures of this class; the class itself if only other polls show the cause.
fn says(class: &str) -> String {
    match Cause::of_class(class) {
        cause if *cause == cause::NOT_FOUND => format!("the service answers {class}"),
        cause => cause.says_of(&[]),
    }
}

fn lasts(incident: &Incident) -> bool {
    matches!(incident.kind, IncidentKind::Outage | IncidentKind::CatchUp)
}

/// Whether `other` is of the same kind, and lasts as long as `incident` or nearly so at both ends.
fn covers(other: &Incident, incident: &Incident, tolerance: Duration) -> bool {
    let ends_after = other.end.is_none_or(|end| incident.end.is_some_and(|own| own <= end + tolerance));
    other.kind == incident.kind && lasts(other) && other.start <= incident.start + tolerance && ends_after
}

/// The incidents within reach of `now`, oldest first. Those of the same kind and detail are merged if at most `gap` lies
/// between them, unless another incident of their kind began in between.
fn joined(mut all: Vec<Incident>, gap: Duration, now: Timestamp) -> Vec<Incident> {
    all.retain(|incident| incident.end.is_none_or(|end| end >= now - REACH));
    all.sort_by_key(|incident| incident.start);
    let mut joined: Vec<Incident> = Vec::new();
    for incident in all {
        let latest = joined.iter().rfind(|known| known.kind == incident.kind).map(|known| known.start);
        let follows = |known: &&mut Incident| {
            let is_same = known.kind == incident.kind && known.detail == incident.detail;
            is_same && known.end.is_none_or(|end| incident.start <= end + gap && latest <= Some(end))
        };
        match joined.iter_mut().rfind(follows).filter(|_| lasts(&incident)) {
            Some(known) => known.end = known.end.zip(incident.end).map(|(one, other)| one.max(other)),
            None => joined.push(incident),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::Failure;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
    }

    fn outage(since: i64) -> What {
        failed(since, "401")
    }

    fn failed(since: i64, class: &'static str) -> What {
        What::Failed(Arc::new(Failure::new(at(since), class, "no".into())))
    }

    /// Kind, beginning and end in minutes.
    fn told(incidents: &[Incident]) -> Vec<(IncidentKind, i64, Option<i64>)> {
        let minute = |time: Timestamp| (time.as_second() - at(0).as_second()) / 60;
        incidents.iter().map(|it| (it.kind, minute(it.start), it.end.map(minute))).collect()
    }

    #[test]
    fn an_incident_ends_when_it_is_gone_and_resumes_if_it_returns_soon() {
        let observed = Observed::default();
        for (now, failing) in [(2, true), (3, true), (4, false), (7, true), (8, false), (30, true)] {
            let what = if failing { outage(if now < 5 { 1 } else { now }) } else { What::Ok };
            observed.record([("t".into(), what)].into(), at(now));
        }
        let expected = [(IncidentKind::Outage, 1, Some(7)), (IncidentKind::Outage, 30, None)];
        let seen = |now| told(&observed.incidents("t", &GoingOn::new(), at(now)));
        assert_eq!(seen(30), expected);
        assert_eq!(seen(6 * 60 + 8), expected[1..]);
        let of_app = |start, end: Option<i64>| {
            let own = Incident {
                kind: IncidentKind::Outage,
                start: at(start),
                end: end.map(at),
                ..Incident::default()
            };
            told(&observed.of_app(vec![own], "t", MINUTE, at(31)))
        };
        assert_eq!(of_app(32, None), [], "the token has it, too");
        assert_eq!(of_app(6, Some(8)), []);
        for (start, end) in [(20, None), (7, Some(9)), (3, Some(7)), (3, None)] {
            assert_eq!(of_app(start, end), [(IncidentKind::Outage, start, end)], "of the app alone");
        }
        observed.record(GoingOn::new(), at(40));
        assert_eq!(seen(40), [], "a token that is gone");
    }

    #[test]
    fn outages_of_different_causes_follow_one_another_and_their_texts_are_true() {
        let observed = Observed::default();
        let (error, unknown) = ("the service returns errors", "the service answers 404");
        let changes =
            [(1, "503", 1), (3, "404", 3), (4, "404", 3), (5, "503", 3), (7, "404", 7), (8, "404", 7)];
        for (now, class, since) in changes {
            observed.record([("t".into(), failed(since, class))].into(), at(now));
            if [1, 5].contains(&now) {
                observed.record([("t".into(), What::Ok)].into(), at(now + 1));
            }
        }
        let incidents = observed.incidents("t", &GoingOn::new(), at(8));
        let details: Vec<_> = incidents.iter().map(|it| it.detail.as_deref().unwrap()).collect();
        assert_eq!(details, [error, unknown, error, unknown]);
        let times: Vec<_> = told(&incidents).into_iter().map(|(_, start, end)| (start, end)).collect();
        assert_eq!(times, [(1, Some(1)), (3, Some(4)), (5, Some(5)), (7, None)]);
        let own = Incident { start: at(3), end: Some(at(5)), ..Incident::default() };
        assert_eq!(observed.of_app(vec![own], "t", MINUTE, at(8)), [], "for whatever reasons");
    }

    #[test]
    fn moments_stay_apart() {
        let observed = Observed::default();
        observed.note(What::Reload, at(1));
        observed.note(What::Reload, at(2));
        let ends: Vec<_> =
            observed.incidents(SERVICE, &GoingOn::new(), at(3)).into_iter().map(|it| it.end).collect();
        assert_eq!(ends, [Some(at(1)), Some(at(2))]);
    }
}
