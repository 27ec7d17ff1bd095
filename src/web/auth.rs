//! Basic auth: passwords against bcrypt hashes, so that neither a flood of guesses nor the time an answer takes
//! helps anybody.
//!
//! Hashing costs tens of milliseconds by design. So it happens off the I/O threads, few at a time and each
//! credential once; what came out is remembered under a keyed hash, never the password itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use tokio::sync::{Semaphore, watch};

use super::error::Error;
use crate::secret::Secret;

/// Hashes computed at once. They are pure processor time: two leave the rest of the machine to scrapes, and one
/// slow guess does not hold up the scraper whose first visit it is.
const AT_ONCE: usize = 2;

/// Credentials under way at once; more are turned away, as they would wait for seconds.
const UNDER_WAY: usize = 64;

/// Outcomes remembered, right and wrong ones apart so that guesses never push out what is right.
const REMEMBERED: usize = 256;

/// Any salt and digest: what matters is that checking against them takes as long.
const NOBODYS_DIGEST: &str = "QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthOutcome {
    /// A user with the right password.
    Welcome,
    /// Anything else.
    Refused,
    /// Too many checks are under way.
    Busy,
}

/// Checks credentials and remembers what came of it.
pub(super) struct Auth {
    /// Random for each process, so that what is remembered is of no use elsewhere.
    key: hmac::Key,
    turns: Semaphore,
    outcomes: Mutex<Outcomes>,
}

/// A credential without what it consists of.
type Fingerprint = [u8; 32];

#[derive(Default)]
struct Outcomes {
    right: HashSet<Fingerprint>,
    wrong: HashSet<Fingerprint>,
    /// Checks that are not done; who comes with the same credential waits for the same result.
    under_way: HashMap<Fingerprint, watch::Receiver<Option<bool>>>,
}

impl Auth {
    /// Remembers nothing yet.
    pub(super) fn new() -> Result<Arc<Self>, Error> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &ring::rand::SystemRandom::new());
        Ok(Arc::new(Self {
            key: key.map_err(|_| Error::NoRandomness)?,
            turns: Semaphore::new(AT_ONCE),
            outcomes: Mutex::default(),
        }))
    }

    /// Checks the value of an `Authorization` header; without users everybody is welcome.
    pub(super) async fn check(
        self: &Arc<Self>,
        users: &BTreeMap<String, Secret>,
        authorization: Option<&[u8]>,
    ) -> AuthOutcome {
        if users.is_empty() {
            return AuthOutcome::Welcome;
        }
        let Some((user, password)) = authorization.and_then(credentials) else { return AuthOutcome::Refused };
        let known = std::str::from_utf8(&user).ok().and_then(|user| users.get(user));
        // An unknown user costs what a known one costs.
        let hash = known.cloned().unwrap_or_else(|| nobodys_hash(users));
        let fingerprint = self.fingerprint(&[&user, hash.expose().as_bytes(), &password]);
        match self.matches(fingerprint, password, hash).await {
            None => AuthOutcome::Busy,
            // Somebody may find what nobody's digest is of; that makes no user.
            Some(matches) if matches && known.is_some() => AuthOutcome::Welcome,
            Some(_) => AuthOutcome::Refused,
        }
    }

    /// The parts one by one with their lengths, so that no two lists of parts are the same text.
    fn fingerprint(&self, parts: &[&[u8]]) -> Fingerprint {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut fingerprint = Fingerprint::default();
        fingerprint.copy_from_slice(context.sign().as_ref());
        fingerprint
    }

    /// Whether the password is the hash's, remembered or computed; `None` where too many wait already.
    async fn matches(
        self: &Arc<Self>,
        fingerprint: Fingerprint,
        password: Vec<u8>,
        hash: Secret,
    ) -> Option<bool> {
        let mut result = {
            let mut outcomes = self.outcomes();
            if outcomes.right.contains(&fingerprint) {
                return Some(true);
            }
            if outcomes.wrong.contains(&fingerprint) {
                return Some(false);
            }
            match outcomes.under_way.get(&fingerprint) {
                Some(result) => result.clone(),
                None if outcomes.under_way.len() >= UNDER_WAY => return None,
                None => {
                    let (done, result) = watch::channel(None);
                    outcomes.under_way.insert(fingerprint, result.clone());
                    // A task of its own: the client may leave, the outcome is still worth remembering.
                    let auth = Arc::clone(self);
                    tokio::spawn(async move {
                        let matches = auth.compute(password, hash).await;
                        auth.remember(fingerprint, matches);
                        done.send_replace(Some(matches));
                    });
                    result
                }
            }
        };
        // A check that was lost with its runtime lets nobody in.
        result.wait_for(Option::is_some).await.ok().and_then(|matches| *matches).or(Some(false))
    }

    async fn compute(&self, password: Vec<u8>, hash: Secret) -> bool {
        let Ok(_turn) = self.turns.acquire().await else { return false };
        let check = tokio::task::spawn_blocking(move || bcrypt::verify(password, hash.expose()));
        matches!(check.await, Ok(Ok(true)))
    }

    fn remember(&self, fingerprint: Fingerprint, matches: bool) {
        let mut outcomes = self.outcomes();
        outcomes.under_way.remove(&fingerprint);
        let kept = if matches { &mut outcomes.right } else { &mut outcomes.wrong };
        if kept.len() >= REMEMBERED
            && let Some(any) = kept.iter().next().copied()
        {
            // Any will do: keyed hashes come in no order that a client could choose.
            kept.remove(&any);
        }
        kept.insert(fingerprint);
    }

    fn outcomes(&self) -> MutexGuard<'_, Outcomes> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// User and password of `Basic <base64>`.
fn credentials(authorization: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, encoded) = authorization.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut user = STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = user.iter().position(|byte| *byte == b':')?;
    let password = user.split_off(colon + 1);
    user.truncate(colon);
    Some((user, password))
}

/// A hash that costs as much as the most expensive one of the users, and is nobody's.
fn nobodys_hash(users: &BTreeMap<String, Secret>) -> Secret {
    let cost = |hash: &Secret| hash.expose().parse::<bcrypt::HashParts>().map_or(0, |parts| parts.get_cost());
    let cost = users.values().map(cost).max().unwrap_or(bcrypt::DEFAULT_COST);
    Secret::new(&format!("$2b${cost:02}${NOBODYS_DIGEST}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lowest cost there is: tests ask what is checked, not how long it takes.
    fn users() -> BTreeMap<String, Secret> {
        let hash = |password: &str| Secret::new(&bcrypt::hash(password, 4).unwrap());
        BTreeMap::from([("alice".to_owned(), hash("wonder:land")), ("bob".to_owned(), hash(""))])
    }

    fn basic(credentials: &str) -> Vec<u8> {
        format!("Basic {}", STANDARD.encode(credentials)).into_bytes()
    }

    #[tokio::test]
    async fn only_a_user_with_the_right_password_gets_in() {
        let (auth, users) = (Auth::new().unwrap(), users());
        for (header, verdict) in [
            (basic("alice:wonder:land"), AuthOutcome::Welcome),
            (basic("bob:"), AuthOutcome::Welcome),
            (basic("alice:wonderland"), AuthOutcome::Refused),
            (basic("bob:x"), AuthOutcome::Refused),
            (basic("carol:wonder:land"), AuthOutcome::Refused),
            // What the digest of nobody is of.
            (basic("carol:fakepassword"), AuthOutcome::Refused),
            (basic("alice"), AuthOutcome::Refused),
            (b"Basic !".to_vec(), AuthOutcome::Refused),
            (b"Bearer x".to_vec(), AuthOutcome::Refused),
            (b"Basi".to_vec(), AuthOutcome::Refused),
            (b"".to_vec(), AuthOutcome::Refused),
        ] {
            // Twice: computed, then remembered.
            for _ in 0..2 {
                assert_eq!(auth.check(&users, Some(&header)).await, verdict, "{}", header.escape_ascii());
            }
        }
        assert_eq!(auth.check(&users, None).await, AuthOutcome::Refused);
        assert_eq!(auth.check(&BTreeMap::new(), None).await, AuthOutcome::Welcome);
        let lower = String::from_utf8(basic("bob:")).unwrap().replace("Basic", "bAsIc");
        assert_eq!(auth.check(&users, Some(lower.as_bytes())).await, AuthOutcome::Welcome);
    }

    #[tokio::test]
    async fn a_changed_hash_ends_what_was_remembered() {
        let (auth, mut users) = (Auth::new().unwrap(), users());
        assert_eq!(auth.check(&users, Some(&basic("bob:"))).await, AuthOutcome::Welcome);
        users.insert("bob".to_owned(), Secret::new(&bcrypt::hash("new", 4).unwrap()));
        assert_eq!(auth.check(&users, Some(&basic("bob:"))).await, AuthOutcome::Refused);
    }

    #[tokio::test]
    async fn one_credential_is_computed_once_however_many_bring_it() {
        let (auth, users) = (Auth::new().unwrap(), users());
        let header = basic("alice:wonder:land");
        let mut waiting = tokio::task::JoinSet::new();
        // Nobody computes while the turns are taken.
        let turns = auth.turns.acquire_many(2).await.unwrap();
        for _ in 0..50 {
            let (auth, users, header) = (Arc::clone(&auth), users.clone(), header.clone());
            waiting.spawn(async move { auth.check(&users, Some(&header)).await });
        }
        tokio::task::yield_now().await;
        assert_eq!(auth.outcomes().under_way.len(), 1);
        drop(turns);
        assert!(waiting.join_all().await.iter().all(|verdict| *verdict == AuthOutcome::Welcome));
        let outcomes = auth.outcomes();
        assert_eq!((outcomes.right.len(), outcomes.under_way.len()), (1, 0));
    }

    #[tokio::test]
    async fn a_flood_of_guesses_is_bounded_and_pushes_nobody_out() {
        let (auth, users) = (Auth::new().unwrap(), users());
        let right = basic("alice:wonder:land");
        assert_eq!(auth.check(&users, Some(&right)).await, AuthOutcome::Welcome);
        let turns = auth.turns.acquire_many(2).await.unwrap();
        let mut guesses = tokio::task::JoinSet::new();
        for guess in 0..UNDER_WAY + 10 {
            let (auth, users) = (Arc::clone(&auth), users.clone());
            guesses.spawn(async move { auth.check(&users, Some(&basic(&format!("alice:{guess}")))).await });
        }
        tokio::task::yield_now().await;
        // While all of them wait, who was here before gets in.
        assert_eq!(auth.check(&users, Some(&right)).await, AuthOutcome::Welcome);
        drop(turns);
        let verdicts = guesses.join_all().await;
        assert_eq!(verdicts.iter().filter(|verdict| **verdict == AuthOutcome::Busy).count(), 10);
        assert!(!verdicts.contains(&AuthOutcome::Welcome));
        for fingerprint in 0..REMEMBERED + 10 {
            auth.remember(auth.fingerprint(&[&fingerprint.to_be_bytes()]), false);
        }
        let outcomes = auth.outcomes();
        assert_eq!((outcomes.wrong.len(), outcomes.right.len()), (REMEMBERED, 1));
    }

    #[test]
    fn an_unknown_user_costs_as_much_as_the_most_expensive_known_one() {
        let users = BTreeMap::from([
            ("a".to_owned(), Secret::new(&bcrypt::hash("x", 4).unwrap())),
            ("b".to_owned(), Secret::new(&bcrypt::hash("x", 5).unwrap())),
        ]);
        let hash = nobodys_hash(&users);
        assert_eq!(hash.expose().parse::<bcrypt::HashParts>().unwrap().get_cost(), 5);
        // It is a hash to check against, not an error that would come back at once.
        assert!(matches!(bcrypt::verify("fakepassword", hash.expose()), Ok(false)));
    }

    #[test]
    fn parts_that_read_the_same_together_are_told_apart() {
        let auth = Auth::new().unwrap();
        assert_ne!(auth.fingerprint(&[b"ab", b"c"]), auth.fingerprint(&[b"a", b"bc"]));
        assert_ne!(auth.fingerprint(&[b"", b"x"]), auth.fingerprint(&[b"x", b""]));
    }
}
