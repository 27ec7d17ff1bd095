//! The incidents of the last six hours of the service, each token and each app, read from their events.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Duration;

use crate::store::{Event, Events, What};
use pds_diagnosis::{Cause, Incident, IncidentKind};

use pds_core::clock::to_second;

/// How far back incidents reach.
pub const REACH: SignedDuration = SignedDuration::from_hours(6);
/// Failures that resume within this time are one incident.
const GAP: SignedDuration = SignedDuration::from_mins(5);

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

    /// The incidents of the service or of a token within reach of `now`, oldest first.
    pub(super) fn incidents(&self, name: &str, now: Timestamp) -> Vec<Incident> {
        joined(self.0.lock().get(name).map(incidents).unwrap_or_default(), now)
    }

    /// The incidents of an app: those of its targets and its `builds`, but not those of its whole `token`.
    pub(super) fn of_app(&self, mut all: Vec<Incident>, token: &str, now: Timestamp) -> Vec<Incident> {
        if all.iter().any(lasts) {
            let others = [SERVICE, token].map(|name| self.incidents(name, now)).concat();
            all.retain(|incident| !others.iter().any(|other| covers(other, incident)));
        }
        joined(all, now)
    }
}

/// The incidents among these events.
pub(super) fn incidents(events: &Events) -> Vec<Incident> {
    let incident = |(event, goes_on): (&Event, bool)| {
        let ([start, end], mut detail) = (event.times(), None);
        let (kind, start) = match &event.what {
            What::Ok | What::Changed(_) => return None,
            What::Behind => (IncidentKind::CatchUp, start),
            What::Failed(failure) => {
                detail = Some(Cause::of_class(failure.class).says_of(&[]));
                (IncidentKind::Outage, to_second(failure.since))
            }
            What::Restart => (IncidentKind::Restart, start),
            What::Reload => (IncidentKind::Reload, start),
            What::ReloadRefused => (IncidentKind::ReloadRefused, start),
        };
        Some(Incident { kind, start, end: (!goes_on).then_some(end), detail })
    };
    events.iter().filter_map(incident).collect()
}

fn lasts(incident: &Incident) -> bool {
    matches!(incident.kind, IncidentKind::Outage | IncidentKind::CatchUp)
}

/// Whether `other` is of the same kind, began before `incident`, and ends at about the same time or later.
fn covers(other: &Incident, incident: &Incident) -> bool {
    let ends_after = other.end.is_none_or(|end| incident.end.is_some_and(|own| own <= end + GAP));
    lasts(other) && other.kind == incident.kind && other.start <= incident.start + GAP && ends_after
}

/// The incidents within reach of `now`, oldest first; consecutive incidents of a kind are merged.
fn joined(mut all: Vec<Incident>, now: Timestamp) -> Vec<Incident> {
    all.retain(|incident| incident.end.is_none_or(|end| end >= now - REACH));
    all.sort_by_key(|incident| incident.start);
    let mut joined: Vec<Incident> = Vec::new();
    for incident in all {
        let follows = |known: &&mut Incident| {
            known.kind == incident.kind && known.end.is_none_or(|end| incident.start <= end + GAP)
        };
        match joined.iter_mut().rfind(follows).filter(|_| lasts(&incident)) {
            Some(known) => {
                known.end = known.end.zip(incident.end).map(|(one, other)| one.max(other));
                known.detail = incident.detail;
            }
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

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
    }

    fn outage(since: i64) -> What {
        What::Failed(Arc::new(Failure::new(at(since), "401", "no".into())))
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
        let seen = |now| told(&observed.incidents("t", at(now)));
        assert_eq!(seen(30), expected);
        assert_eq!(seen(6 * 60 + 8), expected[1..]);
        let of_app = |start, end: Option<i64>| {
            let own = Incident {
                kind: IncidentKind::Outage,
                start: at(start),
                end: end.map(at),
                ..Incident::default()
            };
            told(&observed.of_app(vec![own], "t", at(31)))
        };
        assert_eq!(of_app(32, None), [], "the token has it, too");
        assert_eq!(of_app(6, Some(9)), []);
        for (start, end) in [(20, None), (7, Some(20)), (3, None)] {
            assert_eq!(of_app(start, end), [(IncidentKind::Outage, start, end)], "of the app alone");
        }
        observed.record(GoingOn::new(), at(40));
        assert_eq!(seen(40), [], "a token that is gone");
    }

    #[test]
    fn moments_stay_apart() {
        let observed = Observed::default();
        observed.note(What::Reload, at(1));
        observed.note(What::Reload, at(2));
        let ends: Vec<_> = observed.incidents(SERVICE, at(3)).into_iter().map(|it| it.end).collect();
        assert_eq!(ends, [Some(at(1)), Some(at(2))]);
    }
}
