//! Results of audits of the service's replies.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use prometheus::IntCounter;

use pds_interface::Resource;

use super::Telemetry;

pds_core::worded! {
    /// The outcome of one audit: a value of the label `result`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AuditResult {
        /// The parts equal the whole and the counters.
        Equal = "equal",
        /// The parts differ from the whole or the counters.
        Different = "different",
        /// A request failed, a total is missing, or data arrived meanwhile.
        Unanswered = "unanswered",
    }
}

/// Results of audits since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditSnapshot {
    /// Ranges whose parts are equal to the whole.
    pub equal: u64,
    /// Ranges whose parts are not.
    pub different: u64,
    /// Ranges for which a request failed, a total is missing, or data arrived meanwhile.
    pub unanswered: u64,
    /// The last difference by service account ("default" or a project), and by call or, for samples, their age.
    pub differences: BTreeMap<(Arc<str>, &'static str), Difference>,
}

/// A difference that an audit found.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Behaviour of the service that contradicts what counting assumes.
    pub what: Arc<str>,
    /// The setting that corrects it.
    pub remedy: Cow<'static, str>,
    /// The resource and app that were audited.
    pub target: String,
}

impl Telemetry {
    /// A range of `resource` was audited.
    pub fn audited(&self, resource: Resource, result: AuditResult) {
        self.audits(resource, result).inc();
        let audit = &mut self.0.figures.lock().audit;
        *match result {
            AuditResult::Equal => &mut audit.equal,
            AuditResult::Different => &mut audit.different,
            AuditResult::Unanswered => &mut audit.unanswered,
        } += 1;
    }

    /// An audit of `resource` of an account found a difference.
    pub fn audit_differs(&self, account: &str, resource: Resource, difference: Difference) {
        self.0.figures.lock().audit.differences.insert((account.into(), resource.as_str()), difference);
    }

    /// Audits of `resource` of an account find no difference any more.
    pub fn audit_agrees(&self, account: &str, resource: Resource) {
        self.0.figures.lock().audit.differences.remove(&(account.into(), resource.as_str()));
    }

    /// Records that a sampled hour of `account` was requested again at `age`: this share of it was counted, too little
    /// if it `lacks` something. Returns whether that is new.
    pub fn sampled(&self, account: &str, age: &'static str, ratio: f64, lacks: Option<Difference>) -> bool {
        self.0.metrics.audit_completeness.set(&[account, age], ratio);
        let differences = &mut self.0.figures.lock().audit.differences;
        let key = (account.into(), age);
        let is_new = differences.remove(&key).is_none() && lacks.is_some();
        differences.extend(lacks.map(|lacks| (key, lacks)));
        is_new
    }

    /// Sampled hours of `account` are no longer requested at `age`.
    pub fn forget_sample(&self, account: &str, age: &'static str) {
        self.0.metrics.audit_completeness.set(&[account, age], None);
        self.0.figures.lock().audit.differences.remove(&(account.into(), age));
    }

    /// Forgets the differences and ratios of `account`.
    pub(super) fn forget_audits(&self, account: &str) {
        for (age, _) in pds_ledger::sample::AGES {
            self.0.metrics.audit_completeness.set(&[account, age], None);
        }
        self.0.figures.lock().audit.differences.retain(|(of, _), _| **of != *account);
    }

    /// Forgets all differences and ratios, because other settings are in force.
    pub fn forget_differences(&self) {
        self.0.figures.lock().audit.differences.clear();
        self.0.metrics.audit_completeness.0.reset();
    }

    /// Creates all series, so that their increase can be read from the first one on.
    pub(super) fn start_audits_at_zero(&self) {
        for resource in Resource::all().filter(|resource| resource.polled().counted.is_some()) {
            for result in AuditResult::ALL {
                self.audits(resource, result);
            }
        }
    }

    fn audits(&self, resource: Resource, result: AuditResult) -> IntCounter {
        self.0.metrics.audit_ranges.with_label_values(&[resource.as_str(), result.as_str()])
    }
}
