//! The log of the reasons of the verdict.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem;

use pds_diagnosis::{Reason, Verdict};

/// The verdicts of reasons, by their codes.
type Known = BTreeMap<Cow<'static, str>, Verdict>;

/// Logs when the reasons of the verdict appear, become more or less severe, and end.
#[derive(Debug, Default)]
pub(super) struct ReasonLog(Known);

impl ReasonLog {
    /// Logs how `reasons` differ from those of the last call. Waiting is not logged.
    pub(super) fn report(&mut self, reasons: &[Reason]) {
        let (new, gone) = self.changes(reasons);
        for Reason { code, verdict, detail, remedy, text, .. } in new {
            let detail = detail.as_deref();
            tracing::warn!(code = &**code, verdict = verdict.as_str(), detail, remedy, "{text}");
        }
        for code in gone.keys() {
            tracing::info!(code = &**code, "a reason of the verdict has ended");
        }
    }

    /// The reasons that did not have their verdict before, and the last ones that are gone.
    fn changes<'a>(&mut self, reasons: &'a [Reason]) -> (Vec<&'a Reason>, Known) {
        let mut gone = mem::take(&mut self.0);
        let mut new = Vec::new();
        for reason in reasons.iter().filter(|reason| reason.verdict != Verdict::Waiting) {
            self.0.insert(reason.code.clone(), reason.verdict);
            if gone.remove(&reason.code) != Some(reason.verdict) {
                new.push(reason);
            }
        }
        (new, gone)
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use pds_diagnosis::{Cause, cause};

    use super::*;

    #[test]
    fn a_reason_is_logged_when_it_appears_and_when_it_is_gone() {
        let reason =
            |cause: &Cause| Reason { code: cause.code.into(), verdict: cause.verdict, ..Reason::default() };
        let (late, refused) = (reason(&cause::POLLS_LATE), reason(&cause::CONFIG_REFUSED));
        let mut log = ReasonLog::default();
        let mut changes = |reasons: &[Reason]| {
            let (new, gone) = log.changes(reasons);
            let new = new.iter().map(|reason| reason.code.to_string()).collect::<Vec<_>>();
            (new, gone.into_keys().collect::<Vec<_>>())
        };
        let both = [late.clone(), refused.clone()];
        assert_eq!(changes(&[late, reason(&cause::WAITING)]), (vec!["polls_late".to_owned()], vec![]));
        assert_eq!(changes(&both), (vec!["config_refused".to_owned()], vec![]));
        assert_eq!(changes(&both), (vec![], vec![]), "what lasts is logged once");
        assert_eq!(changes(slice::from_ref(&refused)), (vec![], vec!["polls_late".into()]));
        let severe = Reason { verdict: Verdict::Problem, ..refused };
        assert_eq!(
            changes(slice::from_ref(&severe)),
            (vec!["config_refused".to_owned()], vec![]),
            "more severe"
        );
        assert_eq!(changes(&[severe]), (vec![], vec![]));
        assert_eq!(changes(&[]), (vec![], vec!["config_refused".into()]));
    }
}
