//! Apps that are gone. For a day, the page shows when each vanished, so that an alert that ends has an explanation.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::{Duration, Instant};

use pds_ledger::Owner;

/// How long the page shows an app that is gone.
const NAMED_FOR: Duration = Duration::from_secs(86_400);

/// The reason of an app for which the service answers 404.
const NOT_FOUND: &str = "not_found";
/// The reason of an app that the configuration no longer has.
const REMOVED: &str = "removed";

/// An app that is gone.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    /// The value of the label `reason`.
    pub(super) reason: &'static str,
    pub(super) since: Timestamp,
    /// The page names it until then.
    until: Instant,
    /// Whether repeated polls confirm it over a long enough time.
    is_certain: bool,
}

/// The apps that are gone, or may be.
#[derive(Debug, Default)]
pub struct GoneApps {
    apps: BTreeMap<Arc<Owner>, Gone>,
}

impl GoneApps {
    /// Records a 404 for the app at `at`, which proves nothing if the address is wrong (`misled`). Returns whether the
    /// app is gone, because it has returned 404 for longer than `after`.
    pub fn not_found(&mut self, owner: &Arc<Owner>, misled: bool, at: Timestamp, after: Duration) -> bool {
        if misled {
            let is_gone = self.is_gone(owner);
            if !is_gone {
                self.apps.remove(owner);
            }
            return is_gone;
        }
        let until = Instant::now() + NAMED_FOR;
        let new = Gone { reason: NOT_FOUND, since: at, until, is_certain: false };
        let gone = self.apps.entry(Arc::clone(owner)).or_insert(new);
        gone.is_certain |= until - gone.until > after;
        gone.is_certain
    }

    /// Whether the app is known to be gone.
    pub fn is_gone(&self, owner: &Owner) -> bool {
        self.apps.get(owner).is_some_and(|gone| gone.is_certain)
    }

    /// Records that the service answered for the app. A removed app stays gone: the poll began before its removal.
    pub fn found(&mut self, owner: &Owner) {
        if self.apps.get(owner).is_some_and(|gone| gone.reason == NOT_FOUND) {
            self.apps.remove(owner);
        }
    }

    /// Records that these apps were removed from the configuration at `at`, and that apps for which `is_configured` is
    /// true are back.
    pub(super) fn removed(
        &mut self,
        owners: impl Iterator<Item = Arc<Owner>>,
        at: Timestamp,
        is_configured: impl Fn(&Owner) -> bool,
    ) {
        self.apps.retain(|owner, gone| match gone.reason {
            NOT_FOUND => is_configured(owner),
            _ => !is_configured(owner) && gone.until > Instant::now(),
        });
        self.recall(owners.map(|owner| (owner, at)), at);
    }

    /// Records that these apps were removed from the configuration at these times, as known at `now`. The latest time
    /// of each app counts.
    pub(super) fn recall(&mut self, lost: impl Iterator<Item = (Arc<Owner>, Timestamp)>, now: Timestamp) {
        for (owner, since) in lost {
            let left = NAMED_FOR.saturating_sub(now.duration_since(since).unsigned_abs());
            let until = Instant::now() + left;
            let gone = Gone { reason: REMOVED, since, until, is_certain: true };
            let known = self.apps.entry(owner).or_insert_with(|| gone.clone());
            if known.since < since {
                *known = gone;
            }
        }
    }

    /// The apps that the page shows at `now`, and until when.
    pub(super) fn named(&self, now: Instant) -> impl Iterator<Item = (&Arc<Owner>, Gone, Instant)> {
        let certain = self.apps.iter().filter(|(_, gone)| gone.is_certain);
        certain.map(|(owner, gone)| (owner, gone.clone(), gone.until)).filter(move |(.., until)| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_404_of_a_wrong_address_proves_nothing() {
        let app: Arc<Owner> = Owner::new("p".into(), "a".into());
        let mut gone = GoneApps::default();
        let mut found = Vec::new();
        for misled in [false, true, false, false, true] {
            let (at, after) = (Timestamp::UNIX_EPOCH, Duration::from_secs(300));
            found.push(gone.not_found(&app, misled, at, after));
            tokio::time::advance(Duration::from_secs(301)).await;
        }
        assert_eq!(found, [false, false, false, true, true], "an app that is certainly gone stays gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_removed_app_is_named_for_a_day_since_it_was_last_there_and_then_forgotten() {
        let app: Arc<Owner> = Owner::new("p".into(), "a".into());
        let at = |hour: i64| Timestamp::from_second(hour * 3600).unwrap();
        let mut gone = GoneApps::default();
        for since in [at(2), at(5), at(3)] {
            gone.recall([(Arc::clone(&app), since)].into_iter(), at(6));
        }
        let named = |gone: &GoneApps, hours: u64| {
            let now = Instant::now() + Duration::from_secs(hours * 3600);
            gone.named(now).map(|(_, gone, _)| gone.since).next()
        };
        assert_eq!((named(&gone, 22), named(&gone, 23)), (Some(at(5)), None));
        tokio::time::advance(NAMED_FOR).await;
        gone.removed(std::iter::empty(), at(30), |_| false);
        assert!(gone.apps.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_ends_a_404_but_brings_no_removed_app_back() {
        let [missing, removed] = ["a", "b"].map(|app| Owner::new("p".into(), app.into()));
        let (mut gone, at) = (GoneApps::default(), Timestamp::UNIX_EPOCH);
        gone.not_found(&missing, false, at, Duration::ZERO);
        gone.removed([Arc::clone(&removed)].into_iter(), at, |owner| *owner == *missing);
        assert!(gone.apps.len() == 2 && gone.is_gone(&removed));
        for owner in [&missing, &removed] {
            gone.found(owner);
        }
        assert!(gone.apps.len() == 1 && gone.is_gone(&removed));
        // A reload that has it again.
        gone.removed(std::iter::empty(), at, |_| true);
        assert!(gone.apps.is_empty());
    }
}
