//! Checks the assumptions of counting: two parts of a range add up to the whole, and the whole equals the count that
//! the ledger added.
//!
//! Each app is audited at most once an hour, with at most one additional request per twenty. Before counting begins, a
//! check of its service account and call must pass (`is_needed`).

use std::collections::BTreeSet;
use std::time::Duration;

use pds_core::units;
use pds_interface::range::rfc3339;
use pds_interface::{Ignored, RangeEnd, Tally, TimeRange};
use pds_ledger::HOUR;
use pds_telemetry::{AuditResult, Difference};

use super::distribution::{self, Shares};
use super::evidence::Violation;
use super::plan::{Plan, Poll};
use super::ranges;
use super::schedule::phase_seconds;

/// The finding of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    /// The range has no traffic.
    Idle,
    /// The parts add up. `both` if neither is empty, so that the service distinguishes them from the whole.
    Equal {
        both: bool,
    },
    /// The parts add up, but this assumption is probably violated.
    Suspect(Violation),
    Different(Violation),
    /// A request failed, or late data arrived in between.
    Unanswered,
}

/// The minimum age of an audited hour in seconds, so that data rarely arrives meanwhile.
const AGE: i64 = 600;

/// Requests between two audits: twenty times the requests of an audit, including the repetition for a difference.
const APART: i64 = 4 * 20;

/// The steps of a range in which a middle always splits buckets.
const SPLIT_STEPS: i64 = 9;

/// The range to audit now, if any, and the count that the ledger added for it with these settings, if it is known; the
/// range then counts as audited. The first audit is due in the second period of the process, so that a start causes none.
pub(super) fn due(poll: Poll<'_>) -> Option<(TimeRange, Option<u64>)> {
    let Poll { plan, target, .. } = poll;
    target.counter.as_ref().filter(|_| plan.config.accounting.audit)?;
    let from = plan.evidence(target).begin_counting(plan.watermark.settled_step());
    let apart = apart(poll);
    let settled = plan.watermark.settled().saturating_sub(AGE);
    let period = (settled - phase_seconds(&target.key.owner, apart - AGE)).div_euclid(apart);
    if !target.progress.lock().begin_period(u32::try_from(period).unwrap_or_default()) {
        return None;
    }
    let range = newest(plan, settled);
    let added = ledger_of(poll, range);
    // An app without traffic proves nothing.
    (added != Some(0)).then_some((range, added.filter(|_| range.start >= from)))
}

/// The time between two audits of an app, in seconds.
fn apart(Poll { plan, target, .. }: Poll<'_>) -> i64 {
    let requests = i64::try_from(ranges::windows(plan, target).len()).unwrap_or(1) + 1;
    let interval = units::whole_seconds(plan.interval(target));
    HOUR.max(interval.saturating_mul(APART) / requests)
}

/// The newest range of whole hours, or of two steps if that is longer, that ended before `settled`.
fn newest(plan: &Plan, settled: i64) -> TimeRange {
    let step = plan.watermark.step();
    let length = HOUR.max(2 * step);
    let length = (length + step - 1) / step * step;
    let end = settled.div_euclid(length) * length;
    TimeRange { start: end - length, end }
}

/// The count that the ledger added for the range, if it is known.
fn ledger_of(Poll { context, target, .. }: Poll<'_>, range: TimeRange) -> Option<u64> {
    let ledger = context.ledgers.ledger(&target.key)?;
    ledger.added_in_hour(range.start).filter(|_| range.end - range.start == HOUR)
}

/// Audits `range`, for which the ledger `added` this count.
pub(super) async fn audit(poll: Poll<'_>, (range, added): (TimeRange, Option<u64>)) {
    let check = Check::new(poll, range, Kind::Audit { added });
    let (Ok(finding) | Err(finding)) = check.compare().await;
    check.note(finding);
}

/// Whether a reply is counted only after a check has passed: if it has traffic, or does not state a range after a check
/// has found that ranges are ignored.
pub(super) fn is_needed(Poll { plan, target, .. }: Poll<'_>, tally: &Tally) -> bool {
    let may_be_of_another_range = || tally.range.is_none() && plan.evidence(target).ignores_ranges();
    (plan.config.accounting.audit && tally.total > Some(0)) || may_be_of_another_range()
}

/// Checks whether the replies of the target's account can be trusted, first with ranges that contain or end `range`,
/// which has traffic, then with the newest ranges. Does nothing if it is the turn of another app.
pub(super) async fn verify(poll: Poll<'_>, range: TimeRange, states_range: bool) {
    let Poll { plan, target, .. } = poll;
    if !plan.evidence(target).begin_verification(&target.key.owner, plan.interval(target)) {
        return;
    }
    let (step, settled) = (plan.watermark.step(), plan.watermark.settled_step());
    let proves = |both, middle| states_range || (both && splits_buckets(middle, step));
    let mut last = None;
    // The service may no longer answer for `range`, or answer too little to prove anything.
    for end in BTreeSet::from([range.end, settled]) {
        let own = if end == range.end { range.seconds().cast_signed() } else { 0 };
        let hour = newest(plan, end).seconds().cast_signed();
        // A service may refuse a range of an hour.
        let shorter = [(SPLIT_STEPS * step).min(hour), own, 2 * step];
        // Without a stated range, only a range with a middle that splits buckets proves anything.
        let longest = if states_range { hour } else { hour.max(SPLIT_STEPS * step) };
        let lengths: BTreeSet<i64> = shorter.into_iter().chain([longest.max(own)]).collect();
        for length in lengths.into_iter().rev().filter(|length| *length >= 2 * step) {
            let range = TimeRange { start: end - length, end };
            let check = Check::new(poll, range, Kind::Verification { states_range });
            let (Ok(finding) | Err(finding)) = check.compare().await;
            match finding {
                Finding::Unanswered | Finding::Idle => {}
                Finding::Equal { both } if !proves(both, check.middle) => {
                    last = Some((check, Finding::Equal { both: false }));
                    break;
                }
                _ => return check.note(finding),
            }
            last = Some((check, finding));
        }
    }
    if let Some((check, finding)) = last {
        check.note(finding);
    }
}

/// A step boundary within `range`, a different one each time. Avoids the outermost boundaries, and multiples of 2, 3 and 5
/// steps, which a service may round to.
fn middle(Poll { plan, target, .. }: Poll<'_>, range: TimeRange) -> i64 {
    let step = plan.watermark.step();
    let steps = (range.end - range.start) / step;
    let (first, last) = if steps > 4 { (2, steps - 2) } else { (1, steps - 1) };
    let turn = (plan.watermark.settled_step() / step).wrapping_mul(7919)
        + (target.key.owner.digest() >> 33).cast_signed();
    let places = (last - first + 1).max(1);
    let at = |place: i64| range.start + step * (first + (turn + place).rem_euclid(places));
    (0..places).map(at).find(|at| splits_buckets(*at, step)).unwrap_or_else(|| at(0))
}

/// Whether a boundary of steps lies within each bucket of 2, 3 or 5 steps, to which a service may round.
fn splits_buckets(boundary: i64, step: i64) -> bool {
    [2, 3, 5].iter().all(|width| boundary.div_euclid(step) % width != 0)
}

/// The kind of a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Compares a range that was counted, and the count that the ledger added for it, if it is known.
    Audit { added: Option<u64> },
    /// Precedes counting. If replies state their range, that shows whether it was ignored.
    Verification { states_range: bool },
}

/// One check of one range.
struct Check<'a> {
    poll: Poll<'a>,
    range: TimeRange,
    /// The end of its first part.
    middle: i64,
    kind: Kind,
}

impl<'a> Check<'a> {
    fn new(poll: Poll<'a>, range: TimeRange, kind: Kind) -> Self {
        Self { poll, range, middle: middle(poll, range), kind }
    }

    /// Requests the whole and its parts. `Err` ends the check early.
    async fn compare(&self) -> Result<Finding, Finding> {
        let TimeRange { start, end } = self.range;
        let middle = self.middle;
        let all = self.tally(start, end).await?;
        let parts = [self.tally(start, middle).await?, self.tally(middle, end).await?];
        let [whole, first, second] = [&all, &parts[0], &parts[1]].map(|part| part.total.unwrap_or_default());
        let sum = first.saturating_add(second);
        let shares = distribution::compare(&all, &parts);
        let is_apart = shares == Shares::Apart && matches!(self.kind, Kind::Audit { .. });
        if sum != whole || is_apart {
            let again = self.tally(start, end).await?;
            let late = again.total.unwrap_or_default();
            let is_moving = late != whole && (whole.min(late)..=whole.max(late)).contains(&sum);
            if is_moving || (is_apart && again.shares != all.shares) {
                return Ok(Finding::Unanswered);
            }
        }
        if sum != whole {
            return self.diagnose(&all, [first, second]).await.map(Finding::Different);
        }
        let equal = Finding::Equal { both: first > 0 && second > 0 };
        Ok(match (self.kind, shares) {
            _ if whole == 0 => Finding::Idle,
            (Kind::Verification { .. }, _) => equal,
            _ if is_apart => Finding::Different(Violation::DistributionDiffers),
            (_, Shares::Copied) => Finding::Suspect(Violation::DistributionDiffers),
            (Kind::Audit { added: Some(parts) }, _) if parts > whole => {
                Finding::Different(Violation::TotalsDiffer { parts, whole })
            }
            (Kind::Audit { added: Some(added) }, _)
                if added < whole - whole / 20 && self.rounds_up(whole).await? =>
            {
                Finding::Suspect(Violation::RoundsRanges)
            }
            // A greater whole is late data, which a recheck adds.
            _ => equal,
        })
    }

    /// Whether the service rounds both ends of ranges up: the first second holds all requests of the first step, and
    /// more than the average step. Late data never looks like this.
    async fn rounds_up(&self, whole: u64) -> Result<bool, Finding> {
        let (start, step) = (self.range.start, self.poll.plan.watermark.step());
        let first = self.total(start, start + 1).await?;
        let steps = (self.range.end - start) / step;
        Ok(first.saturating_mul(steps.unsigned_abs()) > whole
            && first < whole
            && step > 1
            && self.total(start + 1, start + step).await? == 0)
    }

    /// The reason why the parts of the range, which have so many requests each, do not add up to `all`.
    async fn diagnose(&self, all: &Tally, parts: [u64; 2]) -> Result<Violation, Finding> {
        let (whole, sum) = (all.total.unwrap_or_default(), parts[0].saturating_add(parts[1]));
        let (step, middle) = (self.poll.plan.watermark.step(), self.middle);
        // A service that states the requested range knows its bounds. If it ignores a bound, neither part is empty, and
        // a step of the range has the count of the whole range, as one of a part has its count. If it ignores both, all
        // are about the same: the count of a default range, which moves.
        // A range that is shorter because longer ones fail may be within a bucket.
        let TimeRange { start, end } = self.range;
        let (length, usual) = (end - start, newest(self.poll.plan, end).seconds().cast_signed());
        let inside = middle + step / 2;
        // The steps of a short range may be its parts. If a bound is ignored, an instant is not nearly empty. A margin at
        // the end of ranges takes a second at most.
        let instant = inside + i64::from(self.poll.plan.config.accounting.range_end != RangeEnd::Exclusive);
        if all.range.is_none()
            && whole > 0
            && !parts.contains(&0)
            && (length >= 5 * step
                || (length >= usual && self.total(inside, instant).await?.saturating_mul(10) > whole))
        {
            let steps = [self.total(start, start + step).await?, self.total(end - step, end).await?];
            if parts.iter().chain(&steps).all(|part| *part >= whole - whole / 100) {
                return Ok(Violation::IgnoresBounds(Ignored::Both));
            }
            let ignores_end = steps[0] >= whole && self.total(middle, middle + step).await? > parts[1] / 2;
            let ignores_start = steps[1] >= whole && self.total(middle - step, middle).await? > parts[0] / 2;
            match (ignores_start, ignores_end) {
                (true, true) => return Ok(Violation::IgnoresBounds(Ignored::Both)),
                (true, false) => return Ok(Violation::IgnoresBounds(Ignored::Start)),
                (false, true) => return Ok(Violation::IgnoresBounds(Ignored::End)),
                (false, false) => {}
            }
        }
        let unknown = Violation::TotalsDiffer { parts: sum, whole };
        if self.poll.plan.config.accounting.range_end != RangeEnd::Exclusive {
            // The end of the first part is left out: a second at most.
            let left_out = sum < whole && whole - sum <= self.total(middle - 1, middle + 1).await?;
            return Ok(if left_out { Violation::OmitsEnd } else { unknown });
        }
        // The middle was counted twice: its bucket, or its last instant.
        let twice = sum.saturating_sub(whole);
        if twice == 0 || self.total(middle, middle).await? != twice {
            return Ok(unknown);
        }
        let rounds =
            self.total(inside, inside).await? == twice && self.total(middle, middle + step).await? == twice;
        Ok(if rounds { Violation::RoundsRanges } else { Violation::CountsEndTwice })
    }

    async fn total(&self, start: i64, end: i64) -> Result<u64, Finding> {
        Ok(self.tally(start, end).await?.total.unwrap_or_default())
    }

    /// The reply about a range, which has a total.
    async fn tally(&self, start: i64, end: i64) -> Result<Tally, Finding> {
        let range = TimeRange { start, end };
        let (tally, _) = self.poll.tally(range).await.map_err(|_| Finding::Unanswered)?;
        let honours = self.poll.target.account.ignored_range().is_none();
        let violation = tally.range.and_then(|answered| Violation::between(range, answered, honours));
        match violation {
            Some(violation) if end > start => Err(Finding::Different(violation)),
            _ if tally.total.is_none() => Err(Finding::Unanswered),
            _ => Ok(tally),
        }
    }

    /// Counts the result of the check, and logs a finding that is new or over.
    fn note(self, finding: Finding) {
        let Poll { context, plan, target, .. } = self.poll;
        let (key, telemetry, account) = (&target.key, &context.telemetry, target.account.name());
        let resource = key.resource.as_str();
        let mut evidence = plan.evidence(target);
        let finding = match finding {
            Finding::Suspect(violation) if evidence.record_suspicion(&key.owner) => {
                Finding::Different(violation)
            }
            other => other,
        };
        match finding {
            // The settings that it is about may have been corrected since; otherwise the next plan has the same evidence.
            Finding::Different(violation) if plan.is_replaced() => evidence.stop_counting(violation),
            _ if plan.is_replaced() => {}
            Finding::Idle => {}
            Finding::Unanswered => telemetry.audited(key.resource, AuditResult::Unanswered),
            Finding::Suspect(_) => telemetry.audited(key.resource, AuditResult::Equal),
            Finding::Equal { both } => {
                telemetry.audited(key.resource, AuditResult::Equal);
                let verified =
                    matches!(self.kind, Kind::Verification { states_range } if both || states_range);
                if evidence.record_match(&key.owner, both, verified) {
                    telemetry.audit_agrees(account, key.resource);
                    tracing::info!(token = account, resource, "audits no longer find a difference");
                }
            }
            Finding::Different(violation) => {
                let audited = Duration::from_secs(apart(self.poll).unsigned_abs());
                let (violation, is_new) = evidence.record_difference(violation, audited);
                telemetry.audited(key.resource, AuditResult::Different);
                let (what, remedy) = (violation.to_string().into(), violation.remedy().into());
                let difference = Difference { what, remedy, target: key.to_string() };
                telemetry.audit_differs(account, key.resource, difference);
                if is_new {
                    tracing::warn!(
                        token = account,
                        resource,
                        project = %key.owner.project,
                        app = %key.owner.app,
                        start = rfc3339(self.range.start),
                        end = rfc3339(self.range.end),
                        "an audit found a difference: {violation}; {}",
                        violation.remedy()
                    );
                }
            }
        }
    }
}
