//! The active configuration: checked at every handshake and request, reread when its files change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::header::{HeaderName, HeaderValue};
use parking_lot::Mutex;

use super::{Rate, Summary, WebConfigError, file, read, tls};
use crate::Observer;
use pds_core::error_chain::with_sources;
use pds_core::plain_file::Sources;
use pds_core::secret::Secret;

/// The configuration for one handshake or request.
#[derive(Debug, Default)]
pub(crate) struct Current {
    /// `None`: connections are plain.
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Empty: no password is required.
    pub(crate) users: BTreeMap<String, Secret>,
    buckets: Option<Arc<Buckets>>,
    pub(super) summary: Summary,
}

/// A client, as the rate limits distinguish it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Client {
    /// Its password is right, or none is required.
    User,
    Stranger,
}

/// The rate limits of both kinds of clients.
#[derive(Debug)]
struct Buckets {
    users: DefaultDirectRateLimiter,
    strangers: DefaultDirectRateLimiter,
}

fn buckets(rate: Rate) -> Option<Arc<Buckets>> {
    let quota = Quota::with_period(rate.interval)?.allow_burst(rate.burst);
    Some(Arc::new(Buckets { users: RateLimiter::direct(quota), strangers: RateLimiter::direct(quota) }))
}

impl Current {
    /// Takes a token for a request of `client`. Returns `false` if its rate limit is reached.
    pub(crate) fn admits(&self, client: Client) -> bool {
        let Some(Buckets { users, strangers }) = self.buckets.as_deref() else { return true };
        let bucket = if client == Client::User { users } else { strangers };
        bucket.check().is_ok()
    }

    /// The first requirement for clients that `new` lacks.
    fn given_up_by(&self, new: &Self) -> Option<String> {
        let (old, now, less) = (self.summary.demands, new.summary.demands, "require less of clients");
        [
            (self.tls.is_some() && new.tls.is_none(), "TLS is removed", "switch it off"),
            (old.mandatory && !now.mandatory, "a client certificate is no longer required", less),
            (old.verified && !now.verified, "client certificates are no longer verified", less),
            (old.own_ca && !now.own_ca, "the client CA is removed", less),
            (old.named && !now.named, "client_allowed_sans is removed", less),
            (!self.users.is_empty() && new.users.is_empty(), "all users are removed", "require no password"),
        ]
        .into_iter()
        .find_map(|(given_up, what, purpose)| given_up.then(|| format!("{what}; restart to {purpose}")))
    }
}

/// Reads a configuration, with all the files that it names.
pub(super) fn load(path: &Path, sources: &mut Sources) -> Result<Current, WebConfigError> {
    let text = read(sources, "the file", path)?.bytes;
    let text = String::from_utf8(text).map_err(|_| WebConfigError::Yaml("it is not UTF-8".to_owned()))?;
    let file = file::parse(&text)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut notes = Vec::new();
    notes.extend(file::user_notes(&file.users));
    let (tls, demands) = tls::build(&file, folder, sources, &mut notes)?.unzip();
    let summary = Summary {
        tls: tls.is_some(),
        http2: tls.is_some() && file.http2,
        demands: demands.unwrap_or_default(),
        users: file.users.len(),
        rate: file.rate,
        notes,
    };
    Ok(Current {
        tls: tls.map(Arc::new),
        headers: file.headers,
        users: file.users,
        buckets: file.rate.and_then(buckets),
        summary,
    })
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
    /// Their last problem, so that it is logged once.
    problem: Option<String>,
}

impl Live {
    /// Reads the file for the first time.
    pub(crate) fn start(path: Option<&Path>, observer: Arc<dyn Observer>) -> Result<Self, WebConfigError> {
        let mut state = State::default();
        if let Some(path) = path {
            let new = load(path, &mut state.sources)?;
            state.replace(new, path, &*observer);
        }
        Ok(Self { file: path.map(|path| (path.to_owned(), observer)), state: Mutex::new(state) })
    }

    /// The active configuration.
    pub(crate) fn current(&self) -> Arc<Current> {
        self.current_at(SystemTime::now())
    }

    fn current_at(&self, now: SystemTime) -> Arc<Current> {
        let mut state = self.state.lock();
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
        let new = load(path, &mut self.sources).map_err(|error| with_sources(&error));
        match new.and_then(|new| self.current.given_up_by(&new).map_or(Ok(new), Err)) {
            Ok(mut new) => {
                // A reload does not refill buckets whose rate stays the same.
                if new.summary.rate == self.current.summary.rate {
                    new.buckets = self.current.buckets.clone();
                }
                tracing::info!(file = %path.display(), "the web configuration was reloaded");
                self.replace(new, path, observer);
            }
            Err(problem) => {
                observer.web_config_read(false);
                if self.problem.as_ref() != Some(&problem) {
                    tracing::error!(file = %path.display(), problem, "the web configuration is refused; the last accepted one stays in force");
                }
                self.problem = Some(problem);
            }
        }
    }

    fn replace(&mut self, new: Current, path: &Path, observer: &dyn Observer) {
        observer.web_config_read(true);
        for note in &new.summary.notes {
            tracing::warn!(file = %path.display(), note, "the web configuration is valid, but see this note");
        }
        (self.current, self.problem) = (Arc::new(new), None);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pds_core::plain_file::SETTLED;

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

        /// The users after the file is written and has settled.
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
        let admits = |current: Arc<Current>| current.admits(Client::User);
        assert!(admits(followed.live.current()) && admits(followed.live.current()));
        assert_eq!(followed.users_after(&format!("{rate}{ALICE}")), ["alice"]);
        assert!(!admits(followed.live.current_at(SystemTime::now() + SETTLED)));
        followed.users_after(&format!("{ALICE}rate_limit: {{ interval: 1h, burst: 3 }}\n"));
        assert!(admits(followed.live.current_at(SystemTime::now() + SETTLED)));
    }
}
