//! Evidence of how a service counts: violations of the assumptions of counting, for each service account and call.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::discriminant;
use std::sync::Arc;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use tokio::time::{Duration, Instant};

use pds_client::{Account, Client};
use pds_config::Config;
use pds_core::units;
use pds_interface::{Ignored, Resource, TimeRange, response_time};
use pds_ledger::sample::AGES;
use pds_ledger::{HOUR, Ledger, Owner};
use pds_telemetry::Telemetry;

/// How the replies of a service violate an assumption of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It does not read these bounds of a range by their configured names.
    #[error("the service ignores {} of ranges", bounds(*.0))]
    IgnoresBounds(Ignored),
    /// It counts a range's last instant, despite `accounting.range_end = "exclusive"`.
    #[error("the service counts the end of a range again in the next range")]
    CountsEndTwice,
    /// It does not count a range's last instant, despite `accounting.range_end = "inclusive"`.
    #[error("the service leaves out the end of ranges")]
    OmitsEnd,
    /// It rounds ranges to more than `accounting.step`.
    #[error("the service rounds ranges to more than accounting.step")]
    RoundsRanges,
    /// A reply states another range than requested.
    #[error("a reply is about another range than requested: {answered} instead of {asked}")]
    OtherRange {
        /// The requested range.
        asked: TimeRange,
        /// The range that the reply states.
        answered: TimeRange,
    },
    /// The totals of parts of a range do not add up to the total of the whole.
    #[error(
        "parts of a range have {}, the whole range has {}; the cause is unknown",
        units::count(*.parts), units::count(*.whole)
    )]
    TotalsDiffer {
        /// Their sum, or the count that the ledger added.
        parts: u64,
        /// The total of the whole.
        whole: u64,
    },
    /// Distributions do not describe the requested ranges.
    #[error("the distributions do not belong to the ranges")]
    DistributionDiffers,
}

fn bounds(ignored: Ignored) -> &'static str {
    match ignored {
        Ignored::Start => "the start",
        Ignored::End => "the end",
        Ignored::Both => "the start and the end",
    }
}

impl Violation {
    /// The violation by a reply about `answered` to a request for `asked`; `None` if they are equal. Names can be the
    /// cause only while no reply `honours` a range.
    pub fn between(asked: TimeRange, answered: TimeRange, honours: bool) -> Option<Self> {
        match answered.ignored_bounds(asked) {
            _ if asked == answered => None,
            Some(ignored) if !honours => Some(Self::IgnoresBounds(ignored)),
            None if answered.is_rounded_from(asked) => Some(Self::RoundsRanges),
            _ => Some(Self::OtherRange { asked, answered }),
        }
    }

    /// The remedy.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::IgnoresBounds(Ignored::Start) => {
                "set api.query_names.start; pdstool check service finds the name"
            }
            Self::IgnoresBounds(Ignored::End) => {
                "set api.query_names.end; pdstool check service finds the name"
            }
            Self::IgnoresBounds(Ignored::Both) => {
                "set api.query_names.start and api.query_names.end; pdstool check service finds them"
            }
            Self::CountsEndTwice => "set accounting.range_end = \"inclusive\"",
            Self::OmitsEnd => "set accounting.range_end = \"exclusive\"",
            Self::RoundsRanges => "set accounting.step to the length that the service rounds to",
            Self::OtherRange { .. } => {
                "report it to the service's owner; only replies about exact ranges are counted"
            }
            Self::TotalsDiffer { .. } => {
                "compare such ranges with pdstool call; if totals are estimates, set a longer accounting.step, or \
                 accounting.audit = false"
            }
            Self::DistributionDiffers => "report it to the service's owner; until then, rely on totals alone",
        }
    }
}

/// The evidence of each service account and call. Reloads keep it unless they change how the service is queried.
#[derive(Debug)]
pub struct EvidenceStore {
    /// The settings that it holds for, as in [`Ledger::verified`].
    settings: u32,
    /// By the number of the account.
    known: Mutex<HashMap<(u64, Resource), Evidence>>,
}

/// The evidence of one call of a service account.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Whether a check has passed.
    passed: bool,
    /// The ignored bounds of ranges that a check has found, unless one has passed since.
    ignored: Option<Violation>,
    /// The last difference logged, until it is over.
    violation: Option<Violation>,
    /// Until when audits of other apps end no difference: each app that differed is audited again before then.
    differs_until: Option<Instant>,
    /// Checks in a row that found no difference.
    equal: u8,
    /// Checks in a row of each app that found a suspicion.
    suspicions: BTreeMap<Arc<Owner>, u8>,
    /// The start of the time that was counted with these settings.
    counted_from: Option<i64>,
    /// The end of the last sampled hour.
    sampled_until: i64,
    /// The start of the hour of the last result at each age.
    results_of: [i64; AGES.len()],
    /// When an app may check again whether replies can be trusted.
    again_at: Option<Instant>,
    /// The app that checked last.
    last: Option<Arc<Owner>>,
    /// The apps that may check at any time, and until when no others become that: one that is polled often, and one that
    /// is polled rarely, for which no other waits.
    next: [Option<(Arc<Owner>, Instant)>; 2],
}

/// Time between two attempts to determine whether an account's replies can be trusted.
const VERIFY_AGAIN: Duration = Duration::from_secs(30);

/// How long a place is kept for an app that was to check and has not come. An app of which two poll intervals are longer
/// takes the place for rare apps, for two intervals.
const PLACE_KEPT: Duration = Duration::from_secs(600);

/// The number of checks in a row that end a difference, and suspicions in a row that make one.
const IN_A_ROW: u8 = 3;

/// Minimum time between two sampled hours of an account, in seconds.
const SAMPLED_EVERY: i64 = 24 * HOUR;

/// Minimum number of polls of a target between two sampled hours: the three requests of a sample add a hundredth.
const POLLS_APART: i64 = 300;

impl EvidenceStore {
    /// The evidence for `config` with the accounts of `client`: what is known from `before`, the former evidence and
    /// client, of accounts that keep their names and calls that are still polled, if both configurations query the same
    /// service in the same way.
    pub fn new(
        config: &Config,
        client: &Client,
        before: Option<(&Arc<Self>, &Client)>,
        telemetry: &Telemetry,
    ) -> Arc<Self> {
        let settings = settings(config);
        let Some((known, former)) = before.filter(|(known, _)| known.settings == settings) else {
            telemetry.forget_differences();
            return Arc::new(Self { settings, known: Mutex::default() });
        };
        let is_polled = |call: Resource| config.poll.resources.contains(&call);
        let named = |client: &Client| -> HashSet<(u64, String)> {
            client.accounts().map(|account| (account.number(), account.name().to_owned())).collect()
        };
        let kept: HashSet<u64> =
            named(client).intersection(&named(former)).map(|(number, _)| *number).collect();
        known.known.lock().retain(|(account, call), _| is_polled(*call) && kept.contains(account));
        Arc::clone(known)
    }

    /// Forgets differences and results that nothing would end: of calls of an account that are not among the `counted`
    /// ones, or that no audits check, and of ages at which a recheck adds what was missing.
    pub fn forget_unaudited<'a>(
        &self,
        config: &Config,
        client: &Client,
        counted: impl Iterator<Item = (&'a Account, Resource)>,
        telemetry: &Telemetry,
    ) {
        let counted = counted.filter(|_| config.accounting.audit);
        let audited: HashSet<(u64, Resource)> =
            counted.map(|(account, call)| (account.number(), call)).collect();
        let last = config.accounting.recheck_after.iter().max().map_or(0, Duration::as_secs);
        let mut known = self.known.lock();
        for account in client.accounts() {
            for call in Resource::all().filter(|call| !audited.contains(&(account.number(), *call))) {
                telemetry.audit_agrees(account.name(), call);
                if let Some(evidence) = known.get_mut(&(account.number(), call)) {
                    evidence.violation = None;
                }
            }
            let sampled = (account.number(), response_time::RESOURCE);
            for (place, (age, seconds)) in AGES.into_iter().enumerate() {
                if seconds.unsigned_abs() > last && audited.contains(&sampled) {
                    continue;
                }
                telemetry.forget_sample(account.name(), age);
                let results = known.get_mut(&sampled).map(|evidence| &mut evidence.results_of);
                if let Some(result) = results.and_then(|results| results.get_mut(place)) {
                    *result = 0;
                }
            }
        }
    }

    /// Whether `ledger` has counted with these settings after an audit passed with them.
    pub(super) fn verifies(&self, ledger: &Ledger) -> bool {
        ledger.verified == self.settings
    }

    /// Marks `ledger` as counted with these settings.
    pub(super) fn verified(&self, mut ledger: Ledger) -> Ledger {
        if !self.verifies(&ledger) {
            (ledger.verified, ledger.sample) = (self.settings, None);
        }
        ledger
    }

    /// The evidence of this call of an account.
    pub(super) fn of_call(&self, account: &Account, call: Resource) -> MappedMutexGuard<'_, Evidence> {
        MutexGuard::map(self.known.lock(), |known| known.entry((account.number(), call)).or_default())
    }
}

/// A number that identifies all settings that affect counting, never 0.
fn settings(config: &Config) -> u32 {
    let (names, accounting) = (&config.api.query_names, &config.accounting);
    let all = format!(
        "{} {:?} {:?} {:?} {:?}",
        config.api.base_url, names.start, names.end, accounting.range_end, accounting.step
    );
    let mut crc = flate2::Crc::new();
    crc.update(all.as_bytes());
    crc.sum().max(1)
}

impl Evidence {
    /// Whether a check of this process has shown that replies can be counted: `Ok(false)` while it is not known.
    ///
    /// # Errors
    /// The violation that a check has found.
    pub(super) fn believes(&self) -> Result<bool, Violation> {
        match self.ignored.or(self.violation) {
            Some(violation) if !self.passed => Err(violation),
            _ => Ok(self.passed),
        }
    }

    /// Whether a check has found that the service ignores the requested range.
    pub(super) fn ignores_ranges(&self) -> bool {
        self.ignored.is_some()
    }

    /// Returns whether `app`, which is polled every `interval`, is to check now whether replies can be trusted. If so,
    /// others may not for [`VERIFY_AGAIN`], but for the first of these, so that an app whose checks prove nothing does not
    /// keep others from checking.
    pub(super) fn begin_verification(&mut self, app: &Arc<Owner>, interval: Duration) -> bool {
        let now = Instant::now();
        let places = self.next.iter_mut();
        let is_next = places.filter_map(|place| place.take_if(|(next, _)| *next == *app)).count() > 0;
        let may = is_next || self.again_at.is_none_or(|at| at <= now);
        let [often, rarely] = &mut self.next;
        let (place, wait) =
            if 2 * interval > PLACE_KEPT { (rarely, 2 * interval) } else { (often, PLACE_KEPT) };
        if may {
            (self.again_at, self.last) = (Some(now + VERIFY_AGAIN), Some(Arc::clone(app)));
        } else if self.last.as_ref() != Some(app) && place.as_ref().is_none_or(|(_, until)| *until <= now) {
            *place = Some((Arc::clone(app), now + wait));
        }
        may
    }

    /// Records at the first call that counting with these settings begins where time has `settled` now; earlier time may
    /// have been counted with others. Returns that time.
    pub(super) fn begin_counting(&mut self, settled: i64) -> i64 {
        *self.counted_from.get_or_insert(settled)
    }

    /// Returns whether the hour that ends at `end` may become a sample of a target polled `every` so many seconds. If
    /// so, no hour of the following day may.
    pub(super) fn begin_sample(&mut self, end: i64, every: i64) -> bool {
        let may = end >= self.sampled_until + SAMPLED_EVERY.max(every.saturating_mul(POLLS_APART));
        if may {
            self.sampled_until = end;
        }
        may
    }

    /// Replaces the last result at this age if the hour that begins at `start` is newer. Returns whether it is.
    pub(super) fn replace_older(&mut self, age: usize, start: i64) -> bool {
        let last = self.results_of.get_mut(age).filter(|last| **last < start);
        last.map(|last| *last = start).is_some()
    }

    /// Stops counting if a check found that ranges are ignored: the end of ranges and rounding affect some requests,
    /// ignored names affect all.
    pub(super) fn stop_counting(&mut self, violation: Violation) {
        if matches!(violation, Violation::IgnoresBounds(_)) {
            (self.passed, self.ignored) = (false, Some(violation));
        }
    }

    /// Records the difference that a check found in an app that is audited at these intervals. Returns its cause, and
    /// whether that is new: ignored ranges are the cause of all later differences.
    pub(super) fn record_difference(&mut self, violation: Violation, audited: Duration) -> (Violation, bool) {
        self.stop_counting(violation);
        let violation = self.ignored.unwrap_or(violation);
        self.equal = 0;
        // Twice, because an audit may go unanswered.
        self.differs_until = self.differs_until.max(Some(Instant::now() + 2 * audited));
        let before = self.violation.replace(violation);
        (violation, before.as_ref().map(discriminant) != Some(discriminant(&violation)))
    }

    /// Records a suspicion about `app`. Returns whether there were too many in a row.
    pub(super) fn record_suspicion(&mut self, app: &Arc<Owner>) -> bool {
        self.equal = 0;
        let suspicions = self.suspicions.entry(Arc::clone(app)).or_default();
        *suspicions = suspicions.saturating_add(1);
        *suspicions >= IN_A_ROW
    }

    /// Records that a check of `app` found no difference: `both` if both parts of the range had traffic, `verified` if
    /// the check proved that replies can be trusted, which ends a difference. Returns whether a difference ended.
    pub(super) fn record_match(&mut self, app: &Owner, both: bool, verified: bool) -> bool {
        if both || verified {
            (self.passed, self.ignored) = (true, None);
        }
        self.suspicions.remove(app);
        self.equal = self.equal.saturating_add(u8::from(both));
        let may_differ = self.differs_until.is_some_and(|until| Instant::now() < until);
        (verified || (self.equal >= IN_A_ROW && !may_differ)) && self.violation.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    const AN_HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_audit_holds_for_the_settings_that_affect_counting() {
        let of = |(host, tables): (&str, &str)| {
            let text = format!(
                "[api]\nbase_url = \"https://{host}\"\ntoken = \"t\"\n{tables}\n[[projects]]\nid = \"p\"\n"
            );
            settings(&pds_config::load_text(Path::new("pds-exporter.toml"), &text).unwrap().config)
        };
        let all = [
            ("a.example.com", ""),
            ("b.example.com", ""),
            ("a.example.com", "[api.query_names]\nstart = \"from\""),
            ("a.example.com", "[api.query_names]\nend = \"to\""),
            ("a.example.com", "[accounting]\nrange_end = \"inclusive\""),
            ("a.example.com", "[accounting]\nstep = \"5m\""),
        ];
        let all = all.map(of);
        assert_eq!(BTreeSet::from(all).len(), all.len(), "{all:?}");
        // Half of a checksum is the same for both.
        let steps = ["60s", "2m"].map(|step| format!("[accounting]\nstep = \"{step}\""));
        let [minute, two] = steps.map(|step| of(("a.example.com:37369", &step)));
        assert_ne!(minute, two);
        assert_eq!(of(("a.example.com", "[poll]\ninterval = \"2m\"")), all[0]);
    }

    #[test]
    fn ignored_ranges_explain_later_differences_until_a_check_passes() {
        let owner = Owner::new("p".into(), "a".into());
        let (names, totals) = (
            Violation::IgnoresBounds(Ignored::Both),
            Violation::TotalsDiffer { parts: 10_000, whole: 5_000 },
        );
        let mut evidence = Evidence::default();
        let differs = |evidence: &mut Evidence, violation| evidence.record_difference(violation, AN_HOUR);
        assert_eq!(differs(&mut evidence, names), (names, true));
        assert_eq!(differs(&mut evidence, totals), (names, false));
        assert_eq!(evidence.believes(), Err(names));
        assert!(evidence.record_match(&owner, false, true));
        assert_eq!(differs(&mut evidence, totals), (totals, true));
        assert_eq!(evidence.believes(), Ok(true));
    }

    #[tokio::test(start_paused = true)]
    async fn apps_check_in_turn_whether_replies_can_be_trusted() {
        let [sparse, busy, rare] = ["a", "b", "c"].map(|app| Owner::new("p".into(), app.into()));
        let mut evidence = Evidence::default();
        let pass = async |seconds| tokio::time::advance(Duration::from_secs(seconds)).await;
        let mut begins = |app| evidence.begin_verification(app, Duration::from_secs(60));
        assert!(begins(&sparse) && !begins(&sparse));
        pass(10).await;
        assert!(!begins(&rare) && !begins(&busy));
        pass(21).await;
        assert!(begins(&busy), "nobody waits for the app that is next");
        pass(10).await;
        assert!(begins(&rare), "it waits for nobody");
        assert!(!begins(&rare) && !begins(&sparse));
        pass(20).await;
        assert!(begins(&sparse), "it was next");
        pass(10).await;
        assert!(!begins(&rare));
        pass(50).await;
        assert!(begins(&sparse));
        pass(10).await;
        assert!(!begins(&busy) && !begins(&busy), "the other app is next");
        pass(590).await;
        assert!(begins(&sparse));
        pass(10).await;
        assert!(!begins(&busy) && begins(&busy), "the other app has not come");
    }

    #[tokio::test(start_paused = true)]
    async fn apps_that_are_polled_rarely_check_in_turn() {
        let apps = ["a", "b", "c"].map(|app| Owner::new("p".into(), app.into()));
        let mut evidence = Evidence::default();
        let mut checked = BTreeSet::new();
        let interval = Duration::from_secs(900);
        for _ in 0..8 {
            for app in &apps {
                if evidence.begin_verification(app, interval) {
                    checked.insert(Arc::clone(app));
                }
                tokio::time::advance(interval / 180).await;
            }
            tokio::time::advance(interval / 180 * 177).await;
        }
        assert_eq!(checked.len(), apps.len());
    }

    #[tokio::test(start_paused = true)]
    async fn an_app_that_is_polled_once_a_day_keeps_no_other_from_checking() {
        let [sparse, rare, busy] = ["a", "b", "c"].map(|app| Owner::new("p".into(), app.into()));
        let mut evidence = Evidence::default();
        let (minute, day) = (Duration::from_secs(60), Duration::from_secs(86_400));
        assert!(evidence.begin_verification(&sparse, minute));
        assert!(!evidence.begin_verification(&rare, day));
        assert!(!evidence.begin_verification(&busy, minute));
        tokio::time::advance(minute).await;
        assert!(evidence.begin_verification(&sparse, minute));
        assert!(evidence.begin_verification(&busy, minute));
        tokio::time::advance(day).await;
        assert!(evidence.begin_verification(&sparse, minute));
        assert!(evidence.begin_verification(&rare, day));
    }

    #[tokio::test(start_paused = true)]
    async fn equal_audits_of_other_apps_end_no_difference_and_no_suspicion() {
        let [one, other] = ["a", "b"].map(|app| Owner::new("p".into(), app.into()));
        let mut evidence = Evidence::default();
        let hour = async || tokio::time::advance(AN_HOUR).await;
        for hours in 1..=4 {
            let (_, is_new) = evidence.record_difference(Violation::CountsEndTwice, AN_HOUR);
            assert_eq!(is_new, hours == 1, "it is new once");
            for _ in 0..3 {
                assert!(!evidence.record_match(&other, true, false));
            }
            hour().await;
        }
        for hours in 1..=3 {
            assert_eq!(evidence.record_suspicion(&one), hours == 3);
            assert!(!evidence.record_match(&other, false, false));
        }
        hour().await;
        assert!(!evidence.record_match(&one, true, false) && !evidence.record_match(&one, true, false));
        assert!(
            evidence.record_match(&one, true, false),
            "three in a row, two hours after the last difference"
        );
        assert!(!evidence.record_suspicion(&one), "its own audit ends a suspicion");
    }

    #[tokio::test(start_paused = true)]
    async fn a_difference_of_an_app_that_is_audited_rarely_lasts_until_its_next_audit() {
        let other = Owner::new("p".into(), "b".into());
        let mut evidence = Evidence::default();
        evidence.record_difference(Violation::CountsEndTwice, 3 * AN_HOUR);
        evidence.record_difference(Violation::CountsEndTwice, AN_HOUR);
        for hours in 0..=6 {
            let ends = (0..3).any(|_| evidence.record_match(&other, true, false));
            assert_eq!(ends, hours == 6, "{hours}");
            tokio::time::advance(AN_HOUR).await;
        }
    }
}
