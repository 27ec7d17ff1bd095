//! What happened in the last six hours, to the service, to each token and to each app.
//!
//! `Incidents` keeps only exceptions: nothing for an app that is well, or that shares the trouble of its service
//! account. Builds are read from the changes of the settings.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use pds_diagnosis::cause::Cause;
use pds_diagnosis::incident::{Incident, IncidentKind};

/// How far back incidents are kept.
pub const REACH: SignedDuration = SignedDuration::from_hours(6);
/// What ends and begins again within this many seconds is one incident.
const GAP: i64 = 300;
/// Incidents kept of one object.
const MAX_INCIDENTS: usize = 32;
/// Objects of which incidents are kept.
pub(super) const MAX_OBJECTS: usize = 2_000;

/// The object of incidents: the service (two empty texts), a token (its name first), or an app (project and id).
type Object = (Box<str>, Box<str>);

/// The incidents of all objects.
#[derive(Debug, Default)]
pub(super) struct Incidents(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    of: BTreeMap<Object, Vec<Span>>,
    /// When was last looked, Unix time.
    observed: i64,
}

/// An incident as it is kept; Unix times.
#[derive(Clone, Copy, Debug)]
struct Span {
    kind: IncidentKind,
    start: i64,
    end: i64,
    cause: Option<&'static Cause>,
}

/// What goes on with an object, since when if that is known, and why.
pub(super) type GoingOn = (IncidentKind, Option<Timestamp>, Option<&'static Cause>);

impl Incidents {
    /// Records what goes on with each object at `now`.
    pub(super) fn observe<'a>(
        &self,
        now: Timestamp,
        all: impl Iterator<Item = ((&'a str, &'a str), GoingOn)>,
    ) {
        let mut kept = self.0.lock();
        kept.observed = now.as_second();
        all.for_each(|(object, going_on)| kept.add(object, going_on, now));
        let oldest = now.as_second() - REACH.as_secs();
        kept.of.retain(|_, spans| {
            spans.retain(|span| span.end >= oldest);
            !spans.is_empty()
        });
    }

    /// Records a moment of the exporter, which concerns the service as a whole.
    pub(super) fn note(&self, kind: IncidentKind, now: Timestamp) {
        self.0.lock().add(("", ""), (kind, None, None), now);
    }

    /// The incidents of `object` within reach of `now`, oldest first.
    pub(super) fn of(&self, object: (&str, &str), now: Timestamp) -> Vec<Incident> {
        let kept = self.0.lock();
        let (oldest, observed) = (now.as_second() - REACH.as_secs(), kept.observed);
        let time = |second| Timestamp::from_second(second).unwrap_or(now);
        let spans = kept.of.get(&(object.0.into(), object.1.into())).into_iter().flatten();
        let incident = |span: &Span| Incident {
            kind: span.kind,
            start: time(span.start),
            end: (!span.lasts() || span.end < observed).then(|| time(span.end)),
            detail: span.cause.map(|cause| cause.says_of(&[])),
        };
        spans.filter(|span| span.end >= oldest).map(incident).collect()
    }
}

impl Kept {
    fn add(&mut self, object: (&str, &str), (kind, since, cause): GoingOn, now: Timestamp) {
        let object = (object.0.into(), object.1.into());
        if self.of.len() >= MAX_OBJECTS && !self.of.contains_key(&object) {
            return;
        }
        let now = now.as_second();
        let start = since.map_or(now, |since| since.as_second().min(now));
        let spans = self.of.entry(object).or_default();
        match spans.iter_mut().rev().find(|span| span.kind == kind) {
            Some(span) if span.lasts() && span.end + GAP >= start => (span.end, span.cause) = (now, cause),
            _ => {
                if spans.len() == MAX_INCIDENTS {
                    spans.remove(0);
                }
                spans.push(Span { kind, start, end: now, cause });
            }
        }
    }
}

impl Span {
    /// Whether it lasts for a while.
    fn lasts(&self) -> bool {
        matches!(self.kind, IncidentKind::Outage | IncidentKind::CatchUp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pds_diagnosis::cause;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
    }

    fn outage(since: i64) -> GoingOn {
        (IncidentKind::Outage, Some(at(since)), Some(&cause::TOKEN_REFUSED))
    }

    fn seen(incidents: &Incidents, now: i64) -> Vec<(IncidentKind, i64, Option<i64>)> {
        let minute = |time: Timestamp| (time.as_second() - at(0).as_second()) / 60;
        let all = incidents.of(("p", "a"), at(now));
        all.iter().map(|it| (it.kind, minute(it.start), it.end.map(minute))).collect()
    }

    #[test]
    fn an_incident_lasts_until_it_is_no_longer_seen_and_soon_again_is_the_same_one() {
        let incidents = Incidents::default();
        for (now, going_on) in [(2, true), (3, true), (4, false), (7, true), (8, false), (30, true)] {
            let seen = going_on.then(|| (("p", "a"), outage(if now < 5 { 1 } else { now })));
            incidents.observe(at(now), seen.into_iter());
        }
        let expected = [(IncidentKind::Outage, 1, Some(7)), (IncidentKind::Outage, 30, None)];
        assert_eq!(seen(&incidents, 30), expected);
        assert_eq!(incidents.of(("p", "b"), at(30)), [], "an app that is well takes nothing");
        assert_eq!(seen(&incidents, 6 * 60 + 8), expected[1..]);
        incidents.observe(at(12 * 60), std::iter::empty());
        assert!(incidents.0.lock().of.is_empty(), "what is old is forgotten");
    }

    #[test]
    fn moments_stay_apart_and_what_is_kept_has_bounds() {
        let incidents = Incidents::default();
        incidents.note(IncidentKind::Reload, at(1));
        incidents.note(IncidentKind::Reload, at(2));
        let ends: Vec<_> = incidents.of(("", ""), at(3)).into_iter().map(|it| it.end).collect();
        assert_eq!(ends, [Some(at(1)), Some(at(2))]);
        for minute in 0..100 {
            incidents.observe(at(minute * 6), [(("p", "a"), outage(minute * 6))].into_iter());
            incidents.0.lock().of.values().for_each(|spans| assert!(spans.len() <= MAX_INCIDENTS));
        }
        let names: Vec<String> = (0..MAX_OBJECTS + 9).map(|n| n.to_string()).collect();
        incidents.observe(at(600), names.iter().map(|name| (("p", name.as_str()), outage(600))));
        assert_eq!(incidents.0.lock().of.len(), MAX_OBJECTS);
        assert!(size_of::<Span>() <= 32);
    }
}
