//! Samples of completeness: how much of an hour was counted, as the service knows it at later ages.

use pds_core::units;
use pds_interface::range::rfc3339;
use pds_interface::{TimeRange, response_time};
use pds_ledger::sample::{AGES, MIN_RATIO};
use pds_ledger::{Completeness, Ledger, Sample};
use pds_telemetry::Difference;

use super::plan::Poll;

/// The total of `range` as the service knows it now.
pub(super) async fn known(poll: Poll<'_>, range: TimeRange) -> Option<u64> {
    let (tally, _) = poll.tally(range).await.ok()?;
    tally.total.filter(|_| tally.range.is_none_or(|of| of == range))
}

/// Returns whether the target's hour that ends at `end` may become a sample. Each service account samples one hour a
/// day, across all calls, or fewer if polls are rare.
pub(super) fn begin_sample(Poll { plan, target, .. }: Poll<'_>, end: i64) -> bool {
    let every = units::whole_seconds(plan.interval(target));
    let evidence = || plan.evidence.of_call(&target.account, response_time::RESOURCE);
    plan.config.accounting.audit && evidence().begin_sample(end, every)
}

/// Shows the results of a ledger's sample that are newer than the known results of its service account: a new result,
/// or after a restart the results in the state file.
pub(super) fn note_samples(poll: Poll<'_>, ledger: &Ledger) {
    let Poll { plan, target, .. } = poll;
    let Some(sample) = ledger.sample.as_deref().filter(|_| plan.evidence.verifies(ledger)) else { return };
    if !plan.config.accounting.audit || plan.is_replaced() {
        return;
    }
    begin_sample(poll, sample.range().end);
    for (place, (age, seconds)) in AGES.into_iter().enumerate() {
        let Some(result) = sample.result(age) else { continue };
        // A recheck at that age adds the missing requests.
        let is_counted = plan.watermark.ages().last() >= Some(seconds);
        let evidence = || plan.evidence.of_call(&target.account, response_time::RESOURCE);
        if !is_counted && evidence().replace_older(place, result.start) {
            note_sample(poll, sample, age, result);
        }
    }
}

/// Shows the result of `sample` at `age`, and logs missing requests if they are news.
fn note_sample(
    Poll { context, target, .. }: Poll<'_>,
    sample: &Sample,
    age: &'static str,
    Completeness { start, ratio }: Completeness,
) {
    let account = target.account.name();
    let lacks = (ratio < MIN_RATIO).then(|| Difference {
        what: format!("{:.1} % of an hour's requests came too late to be counted", 100.0 * (1.0 - ratio))
            .into(),
        remedy: format!("add \"{}\" to accounting.recheck_after", sample.complete_at(age)).into(),
        target: target.key.to_string(),
    });
    let (hour, text) =
        (rfc3339(start), lacks.as_ref().map(|lacks| format!("{}; {}", lacks.what, lacks.remedy)));
    if context.telemetry.sampled(account, age, ratio, lacks)
        && let Some(text) = text
    {
        tracing::warn!(token = account, target_id = %target.key, hour, age, "an audit found a difference: {text}");
    }
}
