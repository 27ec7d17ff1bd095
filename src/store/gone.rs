//! Apps that are gone. For a day, the page shows when each vanished, so that an alert that ends has an explanation.

use std::collections::{BTreeMap, BTreeSet};
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
    pub(super) until: Instant,
    /// Whether repeated polls confirm it over a long enough time.
    is_certain: bool,
    /// The service account that it was polled with; empty if it was removed from the configuration.
    account: Arc<str>,
}

/// The apps that are gone, or may be.
#[derive(Debug, Default)]
pub struct GoneApps {
    apps: BTreeMap<Arc<Owner>, Gone>,
    /// The service accounts whose list of projects returns 404: the address is wrong, so a 404 for an app proves
    /// nothing.
    misled: BTreeSet<Arc<str>>,
}

impl GoneApps {
    /// Records that `account` got a 404 for the app at `at`. Returns whether the app is gone, because it has returned
    /// 404 for longer than `after`.
    pub fn not_found(&mut self, owner: &Arc<Owner>, account: &str, at: Timestamp, after: Duration) -> bool {
        if self.misled.contains(account) {
            return self.is_gone(owner);
        }
        let until = Instant::now() + NAMED_FOR;
        let new = Gone { reason: NOT_FOUND, since: at, until, is_certain: false, account: account.into() };
        let gone = self.apps.entry(Arc::clone(owner)).or_insert(new);
        gone.is_certain |= until - gone.until > after;
        gone.is_certain
    }

    /// Whether the app is known to be gone.
    pub fn is_gone(&self, owner: &Owner) -> bool {
        self.apps.get(owner).is_some_and(|gone| gone.is_certain)
    }

    /// Records whether `account` gets a 404 for its list of projects. If it does, apps with a 404 are not gone.
    pub fn note_address(&mut self, account: &str, is_wrong: bool) {
        if is_wrong {
            self.misled.insert(account.into());
            self.apps.retain(|_, gone| gone.is_certain || *gone.account != *account);
        } else {
            self.misled.remove(account);
        }
    }

    /// Forgets the wrong address of accounts whose list of projects `is_polled` no longer.
    pub(crate) fn keep_addresses(&mut self, is_polled: impl Fn(&str) -> bool) {
        self.misled.retain(|account| is_polled(account));
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
            let gone = Gone { reason: REMOVED, since, until, is_certain: true, account: Arc::default() };
            let known = self.apps.entry(owner).or_insert_with(|| gone.clone());
            if known.since < since {
                *known = gone;
            }
        }
    }

    /// The apps that the page shows at `now`.
    pub(super) fn named(&self, now: Instant) -> Vec<(Arc<Owner>, Gone)> {
        let named = self.apps.iter().filter(|(_, gone)| gone.is_certain && gone.until > now);
        named.map(|(owner, gone)| (Arc::clone(owner), gone.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use pds_interface::get_app;
    use pds_ledger::Key;

    use super::*;
    use crate::store::{Filter, PollRecord, Section, Store, Variant};

    #[tokio::test(start_paused = true)]
    async fn a_wrong_address_misleads_about_the_apps_of_its_account_only() {
        let [one, other] = ["a", "b"].map(|app| Owner::new("p".into(), app.into()));
        let mut gone = GoneApps::default();
        for minutes in 0..=6 {
            gone.note_address("one", true);
            let found = [(&one, "one"), (&other, "other")].map(|(owner, account)| {
                gone.not_found(owner, account, Timestamp::UNIX_EPOCH, Duration::from_secs(300))
            });
            assert_eq!(found, [false, minutes == 6]);
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        // A configuration without the list of projects.
        gone.keep_addresses(|_| false);
        for is_gone in [false, true] {
            let at = Timestamp::UNIX_EPOCH;
            assert_eq!(gone.not_found(&one, "one", at, Duration::from_secs(300)), is_gone);
            tokio::time::advance(Duration::from_secs(301)).await;
        }
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
            gone.named(now).first().map(|(_, gone)| gone.since)
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
        gone.not_found(&missing, "t", at, Duration::ZERO);
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

    #[test]
    fn a_scrape_that_reads_the_cells_delays_no_poll_that_finds_an_app() {
        let (store, at) = (Store::new(&[]), Timestamp::UNIX_EPOCH);
        let key = Key { owner: Owner::new("p".into(), "a".into()), resource: get_app::RESOURCE };
        let mut cells = store.new_cells();
        let cell = cells.add(key, Section::Endpoint);
        cells.replace(at);
        let polled = PollRecord { at, took: Duration::ZERO, behind: false, failure: None };
        cell.record(polled, &Variant::default());
        let scraped = store.clone();
        // Locks the cell.
        let is_free = cell.history(|_| {
            std::thread::spawn(move || scraped.snapshot(Instant::now(), &Filter::default()));
            while !store.was_read(store.version()) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(50));
            store.0.gone.try_lock_for(Duration::from_secs(5)).is_some()
        });
        assert!(is_free, "the scrape waits for the cell alone");
    }

    #[test]
    fn a_wrong_address_leaves_what_is_certain() {
        let app: Arc<Owner> = Owner::new("p".into(), "a".into());
        let mut gone = GoneApps::default();
        let at = Timestamp::UNIX_EPOCH;
        gone.removed([Arc::clone(&app)].into_iter(), at, |_| false);
        gone.note_address("", true);
        assert!(gone.is_gone(&app));
    }
}
