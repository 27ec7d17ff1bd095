//! The log of the reasons of the verdict.

use std::collections::BTreeSet;
use std::mem;

use pds_diagnosis::{Reason, Verdict, cause};

/// Logs when the reasons of the verdict appear and end.
#[derive(Debug, Default)]
pub(super) struct ReasonLog(BTreeSet<&'static str>);

impl ReasonLog {
    /// Logs how `reasons` differ from those of the last call. Waiting is not logged.
    pub(super) fn tell(&mut self, reasons: &[Reason]) {
        let (new, gone) = self.changes(reasons);
        for Reason { code, verdict, detail, remedy, text, .. } in new {
            let detail = detail.as_deref();
            tracing::warn!(code = &**code, verdict = verdict.as_str(), detail, remedy, "{text}");
        }
        for code in gone {
            tracing::info!(code, "a reason of the verdict has ended");
        }
    }

    /// The reasons that were not among the last ones, and the codes of those that are gone.
    fn changes<'a>(&mut self, reasons: &'a [Reason]) -> (Vec<&'a Reason>, BTreeSet<&'static str>) {
        let mut gone = mem::take(&mut self.0);
        let mut new = Vec::new();
        for reason in reasons.iter().filter(|reason| reason.verdict != Verdict::Waiting) {
            let Some(cause) = cause::ALL.iter().find(|cause| cause.code == reason.code) else { continue };
            self.0.insert(cause.code);
            if !gone.remove(cause.code) {
                new.push(reason);
            }
        }
        (new, gone)
    }
}

#[cfg(test)]
mod tests {
    use pds_diagnosis::Cause;

    use super::*;

    #[test]
    fn a_reason_is_logged_when_it_appears_and_when_it_is_gone() {
        let reason =
            |cause: &Cause| Reason { code: cause.code.into(), verdict: cause.verdict, ..Reason::default() };
        let (late, refused) = (reason(&cause::POLLS_LATE), reason(&cause::CONFIG_REFUSED));
        let mut log = ReasonLog::default();
        let mut changes = |reasons: &[Reason]| {
            let (new, gone) = log.changes(reasons);
            (new.iter().map(|reason| reason.code.to_string()).collect::<Vec<_>>(), Vec::from_iter(gone))
        };
        let both = [late.clone(), refused.clone()];
        assert_eq!(changes(&[late, reason(&cause::WAITING)]), (vec!["polls_late".to_owned()], vec![]));
        assert_eq!(changes(&both), (vec!["config_refused".to_owned()], vec![]));
        assert_eq!(changes(&both), (vec![], vec![]), "what lasts is logged once");
        assert_eq!(changes(&[refused]), (vec![], vec!["polls_late"]));
        assert_eq!(changes(&[]), (vec![], vec!["config_refused"]));
    }
}
