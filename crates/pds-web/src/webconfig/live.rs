//! The active configuration: checked at every handshake and request, reread when its files change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::header::{HeaderName, HeaderValue};

use super::client_cert::Demands;
use super::error::WebConfigError;
use super::sources::Sources;
use super::{Loaded, Rate, load};
use crate::backend::Observer;
use pds_core::error_chain::with_sources;
use pds_core::secret::Secret;

/// The configuration for one handshake or request.
#[derive(Debug, Default)]
pub(crate) struct Current {
    /// `None`: connections are plain.
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    demands: Demands,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Empty: no password is asked for.
    pub(crate) users: BTreeMap<String, Secret>,
    limiter: Option<Limiter>,
}

#[derive(Clone, Debug)]
struct Limiter {
    rate: Rate,
    /// For users, or for everybody if no password is asked for.
    welcome: Arc<DefaultDirectRateLimiter>,
    /// For requests without a right password.
    strangers: Arc<DefaultDirectRateLimiter>,
}

impl Limiter {
    fn new(rate: Rate) -> Option<Self> {
        let quota = Quota::with_period(rate.interval)?.allow_burst(rate.burst);
        let bucket = || Arc::new(RateLimiter::direct(quota));
        Some(Self { rate, welcome: bucket(), strangers: bucket() })
    }
}

impl Current {
    /// Whether the rate limit allows one more request now: of a user (or of anybody, if there are no users) if
    /// `welcome`, else of a stranger.
    pub(crate) fn allows_one_more(&self, welcome: bool) -> bool {
        self.limiter.as_ref().is_none_or(|limiter| {
            let bucket = if welcome { &limiter.welcome } else { &limiter.strangers };
            bucket.check().is_ok()
        })
    }

    /// A reload does not fill up a bucket whose rate stays the same.
    fn new(loaded: Loaded, before: Option<&Self>) -> Self {
        let kept = before.and_then(|before| before.limiter.clone());
        let kept = kept.filter(|limiter| Some(limiter.rate) == loaded.rate);
        Self {
            tls: loaded.tls,
            demands: loaded.demands,
            headers: loaded.headers,
            users: loaded.users,
            limiter: kept.or_else(|| loaded.rate.and_then(Limiter::new)),
        }
    }
}

/// Follows a file; without one, the configuration stays empty.
#[derive(Debug)]
pub(crate) struct Live {
    file: Option<(PathBuf, Arc<dyn Observer>)>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    current: Arc<Current>,
    /// The files as they were when last read, successfully or not.
    sources: Sources,
    /// What was wrong with them, so that it is logged once.
    problem: Option<String>,
}

impl Live {
    /// Reads the file for the first time.
    pub(crate) fn start(path: Option<&Path>, observer: Arc<dyn Observer>) -> Result<Self, WebConfigError> {
        let mut state = State::default();
        if let Some(path) = path {
            let loaded = load(path, &mut state.sources)?;
            observer.web_config_read(true);
            log_notes(path, &loaded);
            state.current = Arc::new(Current::new(loaded, None));
        }
        Ok(Self { file: path.map(|path| (path.to_owned(), observer)), state: Mutex::new(state) })
    }

    /// The active configuration.
    pub(crate) fn current(&self) -> Arc<Current> {
        self.current_at(SystemTime::now())
    }

    fn current_at(&self, now: SystemTime) -> Arc<Current> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((path, observer)) = &self.file
            && state.sources.changed(now)
        {
            state.follow(path, &**observer);
        }
        Arc::clone(&state.current)
    }
}

impl State {
    /// Reads the changed files; if they are bad, the last good configuration stays.
    fn follow(&mut self, path: &Path, observer: &dyn Observer) {
        self.sources = Sources::default();
        let loaded = load(path, &mut self.sources).map_err(|error| with_sources(&error));
        match loaded.and_then(|loaded| self.refuse_opening(loaded)) {
            Ok(loaded) => {
                observer.web_config_read(true);
                tracing::info!(file = %path.display(), "the web configuration was read again");
                log_notes(path, &loaded);
                self.current = Arc::new(Current::new(loaded, Some(&self.current)));
                self.problem = None;
            }
            Err(problem) => {
                observer.web_config_read(false);
                if self.problem.as_ref() != Some(&problem) {
                    tracing::error!(file = %path.display(), problem, "the web configuration is bad; the last good one stays in force");
                }
                self.problem = Some(problem);
            }
        }
    }

    /// Refuses a configuration that demands less of clients than the active one.
    fn refuse_opening(&self, loaded: Loaded) -> Result<Loaded, String> {
        if self.current.tls.is_some() && loaded.tls.is_none() {
            return Err("TLS is gone; to switch it off, restart".to_owned());
        }
        if let Some(missing) = self.current.demands.missing_in(loaded.demands) {
            return Err(format!("{missing}; to ask less of clients, restart"));
        }
        if !self.current.users.is_empty() && loaded.users.is_empty() {
            return Err("all users are gone; to ask for no password, restart".to_owned());
        }
        Ok(loaded)
    }
}

fn log_notes(path: &Path, loaded: &Loaded) {
    for note in &loaded.notes {
        tracing::warn!(file = %path.display(), note, "the web configuration is valid, but see this note");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::sources::SETTLED;
    use super::*;
    use crate::backend::tests::Counted;

    const ALICE: &str =
        "basic_auth_users:\n  alice: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi\n";

    struct Followed {
        _folder: tempfile::TempDir,
        path: PathBuf,
        counted: Counted,
        live: Live,
    }

    impl Followed {
        fn start(text: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("web.yml");
            fs::write(&path, text).unwrap();
            let counted = Counted::default();
            let live = Live::start(Some(&path), Arc::new(counted.clone())).unwrap();
            Self { _folder: folder, path, counted, live }
        }

        /// The users once the file was written and settled.
        fn users_after(&self, text: &str) -> Vec<String> {
            fs::write(&self.path, text).unwrap();
            let settled = SystemTime::now() + SETTLED;
            self.live.current_at(settled).users.keys().cloned().collect()
        }

        fn reload_successful(&self) -> bool {
            self.counted.config_good().unwrap()
        }
    }

    #[test]
    fn users_follow_the_file_and_a_bad_file_changes_nothing() {
        let followed = Followed::start(ALICE);
        assert!(followed.reload_successful());
        assert_eq!(followed.users_after(&ALICE.replace("alice", "bob")), ["bob"]);
        assert_eq!(followed.users_after("basic_auth_users: { alice: plain }"), ["bob"]);
        assert!(!followed.reload_successful());
        assert_eq!(followed.users_after(ALICE), ["alice"]);
        assert!(followed.reload_successful());
    }

    #[test]
    fn a_file_that_became_empty_opens_nothing() {
        let followed = Followed::start(ALICE);
        assert_eq!(followed.users_after(""), ["alice"]);
        assert!(!followed.reload_successful());
        fs::remove_file(&followed.path).unwrap();
        assert_eq!(followed.live.current().users.len(), 1);
    }

    #[test]
    fn a_file_still_being_written_is_left_alone() {
        let followed = Followed::start(ALICE);
        fs::write(&followed.path, ALICE.replace("alice", "bob")).unwrap();
        assert!(followed.live.current_at(SystemTime::now()).users.contains_key("alice"));
        assert!(followed.live.current_at(SystemTime::now() + SETTLED).users.contains_key("bob"));
    }

    #[test]
    fn a_bucket_is_not_filled_up_by_a_reload() {
        let rate = "rate_limit: { interval: 1h, burst: 2 }\n";
        let followed = Followed::start(rate);
        assert!(
            followed.live.current().allows_one_more(true) && followed.live.current().allows_one_more(true)
        );
        assert_eq!(followed.users_after(&format!("{rate}{ALICE}")), ["alice"]);
        assert!(!followed.live.current_at(SystemTime::now() + SETTLED).allows_one_more(true));
        followed.users_after(&format!("{ALICE}rate_limit: {{ interval: 1h, burst: 3 }}\n"));
        assert!(followed.live.current_at(SystemTime::now() + SETTLED).allows_one_more(true));
    }
}
