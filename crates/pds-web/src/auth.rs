//! Basic auth: checks passwords against bcrypt hashes. A flood of guesses keeps no user out. Response times reveal no user
//! name while no check waits; otherwise a configured user waits less than a stranger.
//!
//! A hash costs tens of milliseconds by design. So hashes are computed off the I/O threads, few at a time and once for
//! each credential. The outcome is remembered under a keyed hash of the credential, never with the password itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, STANDARD};
use parking_lot::Mutex;
use ring::hmac;
use ring::rand::SecureRandom as _;
use tokio::sync::watch;

use super::error::Error;
use super::turns::{Peer, Turns};
use super::webconfig::{MAX_HIDDEN_COST, bcrypt_cost};
use pds_core::secret::Secret;

/// Hashes computed at once. Two leave the rest of the machine to scrapes, and a slow guess does not delay a scraper's
/// first request.
const MAX_CONCURRENT: usize = 2;

/// Maximum number of checks that wait for their turn.
const MAX_WAITING: usize = 64;

/// Remembered outcomes, successes and failures each, so that guesses never evict successes.
const MAX_OUTCOMES: usize = 256;

/// Encoding of salt and digest in hashes.
const BCRYPT: GeneralPurpose = GeneralPurpose::new(&alphabet::BCRYPT, NO_PAD);

/// Credentials from a client. The parts may be any bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Without a colon.
    pub user: Vec<u8>,
    /// May hold colons, and may be empty.
    pub password: Vec<u8>,
}

impl Credentials {
    /// Reads an `Authorization` header of basic auth (RFC 7617), `Basic <base64 of user:password>`; `None` for anything
    /// else.
    pub fn parse(authorization: &[u8]) -> Option<Self> {
        let (scheme, encoded) = authorization.split_at_checked(6)?;
        let decoded = STANDARD.decode(encoded.trim_ascii()).ok()?;
        let mut parts = decoded.splitn(2, |byte| *byte == b':').map(<[u8]>::to_vec);
        let (user, password) = (parts.next()?, parts.next()?);
        scheme.eq_ignore_ascii_case(b"basic ").then_some(Self { user, password })
    }
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthOutcome {
    /// The password is right, or none is required.
    Accepted,
    /// Anything else.
    Refused,
    /// Too many checks wait.
    Busy,
}

/// Checks credentials and remembers the outcomes.
pub(super) struct Auth {
    /// Random for each process, so that a leaked cache is useless elsewhere.
    key: hmac::Key,
    /// Salt and digest for checks of unknown users, random for each process: nobody knows a matching password, and
    /// nobody can distinguish them from a user's.
    decoy: String,
    turns: Arc<Turns>,
    outcomes: Mutex<HashMap<Fingerprint, Outcome>>,
}

/// A credential's fingerprint, which does not reveal the credential.
type Fingerprint = [u8; 32];

/// `None` while the check is in progress; requests with the same credential share the outcome.
type Outcome = watch::Receiver<Option<AuthOutcome>>;

impl Auth {
    /// Remembers nothing yet.
    pub(super) fn new() -> Result<Arc<Self>, Error> {
        let random = ring::rand::SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random).map_err(|_| Error::NoRandomness)?;
        let (mut salt, mut digest) = ([0; 16], [0; 23]);
        random.fill(&mut salt).and_then(|()| random.fill(&mut digest)).map_err(|_| Error::NoRandomness)?;
        Ok(Arc::new(Self {
            key,
            decoy: BCRYPT.encode(salt) + &BCRYPT.encode(digest),
            turns: Turns::new(MAX_CONCURRENT, MAX_WAITING),
            outcomes: Mutex::default(),
        }))
    }

    /// Checks the value of an `Authorization` header from `peer`; without users, every request passes.
    pub(super) async fn check(
        self: &Arc<Self>,
        users: &BTreeMap<String, Secret>,
        authorization: Option<&[u8]>,
        peer: Peer,
    ) -> AuthOutcome {
        if users.is_empty() {
            return AuthOutcome::Accepted;
        }
        let Some(Credentials { user, password }) = authorization.and_then(Credentials::parse) else {
            return AuthOutcome::Refused;
        };
        let known = std::str::from_utf8(&user).ok().and_then(|user| users.get(user));
        let hashes = self.hashes(users, known);
        // All unknown names share one queue.
        let name = known.and_then(|_| String::from_utf8(user.clone()).ok());
        let hash = hashes.first().map(Secret::expose).unwrap_or_default();
        let fingerprint = self.fingerprint(&[&user, hash.as_bytes(), &password]);
        let mut outcome = {
            let mut outcomes = self.outcomes.lock();
            let known = outcomes.entry(fingerprint).or_insert_with(|| {
                let (done, outcome) = watch::channel(None);
                // A separate task: the outcome is worth remembering even if the client disconnects.
                let auth = Arc::clone(self);
                tokio::spawn(async move {
                    let outcome = auth.compute(password, hashes, peer, name, &done).await;
                    auth.remember(fingerprint, outcome);
                    done.send_replace(Some(outcome));
                });
                outcome
            });
            known.clone()
        };
        // A check that is lost with its runtime fails.
        let outcome = outcome.wait_for(Option::is_some).await;
        outcome.ok().and_then(|outcome| *outcome).unwrap_or(AuthOutcome::Refused)
    }

    /// The hashes to check a password against, in order, until it matches: the hash of a `known` user, and decoys, so
    /// that a wrong password takes equally long for every name. Each step of the cost doubles the work, so costs c, c,
    /// c + 1, ... d - 1 together take as long as cost d of the most expensive user.
    fn hashes(&self, users: &BTreeMap<String, Secret>, known: Option<&Secret>) -> Vec<Secret> {
        let decoy = |cost| Secret::new(&format!("$2b${cost:02}${}", self.decoy));
        let highest_cost = users.values().filter_map(bcrypt_cost).max().unwrap_or(bcrypt::DEFAULT_COST);
        let highest_cost = highest_cost.min(MAX_HIDDEN_COST);
        match known {
            None => vec![decoy(highest_cost)],
            Some(hash) => {
                let cost = bcrypt_cost(hash).unwrap_or(highest_cost);
                std::iter::once(hash.clone()).chain((cost..highest_cost).map(decoy)).collect()
            }
        }
    }

    /// Hashes each part with its length, so that no two lists of parts are equal.
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

    /// Computes the outcome: [`AuthOutcome::Busy`] if the queue is full, or if the clients have disconnected when their
    /// turn comes.
    async fn compute(
        &self,
        password: Vec<u8>,
        hashes: Vec<Secret>,
        peer: Peer,
        user: Option<String>,
        done: &watch::Sender<Option<AuthOutcome>>,
    ) -> AuthOutcome {
        // A match with a decoy authenticates nobody.
        let is_user = user.is_some();
        let turn = self.turns.acquire(peer, user).await;
        // `outcomes` keeps one receiver for further requests.
        if turn.is_none() || done.receiver_count() <= 1 {
            return AuthOutcome::Busy;
        }
        let check = tokio::task::spawn_blocking(move || {
            hashes.iter().position(|hash| matches!(bcrypt::verify(&password, hash.expose()), Ok(true)))
        });
        // The others are decoys.
        let matches = matches!(check.await, Ok(Some(0)));
        if matches && is_user { AuthOutcome::Accepted } else { AuthOutcome::Refused }
    }

    fn remember(&self, fingerprint: Fingerprint, outcome: AuthOutcome) {
        let mut outcomes = self.outcomes.lock();
        outcomes.remove(&fingerprint);
        if outcome == AuthOutcome::Busy {
            return;
        }
        let equal = outcomes.iter().filter(|(_, known)| *known.borrow() == Some(outcome));
        // Any entry will do, as clients cannot influence the order of keyed hashes.
        if let Some(surplus) = equal.map(|(other, _)| *other).nth(MAX_OUTCOMES - 1) {
            outcomes.remove(&surplus);
        }
        outcomes.insert(fingerprint, watch::channel(Some(outcome)).1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::{JoinHandle, JoinSet};

    use super::*;

    const PEER: Peer = Peer::Local;

    /// How many outcomes are remembered as this; `None` counts checks in progress.
    fn remembered(auth: &Auth, outcome: Option<AuthOutcome>) -> usize {
        auth.outcomes.lock().values().filter(|known| *known.borrow() == outcome).count()
    }

    /// At the lowest cost: tests check results, not durations.
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
        for (header, outcome) in [
            (basic("alice:wonder:land"), AuthOutcome::Accepted),
            (basic("bob:"), AuthOutcome::Accepted),
            (basic("alice:wonderland"), AuthOutcome::Refused),
            (basic("bob:x"), AuthOutcome::Refused),
            (basic("carol:wonder:land"), AuthOutcome::Refused),
            (basic("alice"), AuthOutcome::Refused),
            (b"Basic !".to_vec(), AuthOutcome::Refused),
            (b"Bearer x".to_vec(), AuthOutcome::Refused),
            (b"Basi".to_vec(), AuthOutcome::Refused),
            (b"".to_vec(), AuthOutcome::Refused),
        ] {
            // Twice: computed, then remembered.
            for _ in 0..2 {
                let checked = auth.check(&users, Some(&header), PEER).await;
                assert_eq!(checked, outcome, "{}", header.escape_ascii());
            }
        }
        assert_eq!(auth.check(&users, None, PEER).await, AuthOutcome::Refused);
        assert_eq!(auth.check(&BTreeMap::new(), None, PEER).await, AuthOutcome::Accepted);
        let lower = String::from_utf8(basic("bob:")).unwrap().replace("Basic", "bAsIc");
        assert_eq!(auth.check(&users, Some(lower.as_bytes()), PEER).await, AuthOutcome::Accepted);
    }

    #[tokio::test]
    async fn the_decoy_differs_with_each_process_and_admits_nobody() {
        let mut users = users();
        let mut auth = Auth::new().unwrap();
        assert_ne!(auth.decoy, Auth::new().unwrap().decoy);
        let known = bcrypt::hash("fakepassword", 4).unwrap();
        Arc::get_mut(&mut auth).unwrap().decoy = known["$2b$04$".len()..].to_owned();
        for _ in 0..2 {
            let outcome = auth.check(&users, Some(&basic("carol:fakepassword")), PEER).await;
            assert_eq!(outcome, AuthOutcome::Refused);
        }
        // Since costs differ, a decoy follows the hash of a known user.
        users.insert("dear".to_owned(), Secret::new(&bcrypt::hash("x", 5).unwrap()));
        assert_eq!(auth.check(&users, Some(&basic("bob:fakepassword")), PEER).await, AuthOutcome::Refused);
        let right = remembered(&auth, Some(AuthOutcome::Accepted));
        assert_eq!(right, 0, "a stranger takes no place of a user");
    }

    #[tokio::test]
    async fn a_changed_hash_invalidates_the_cache() {
        let (auth, mut users) = (Auth::new().unwrap(), users());
        assert_eq!(auth.check(&users, Some(&basic("bob:")), PEER).await, AuthOutcome::Accepted);
        users.insert("bob".to_owned(), Secret::new(&bcrypt::hash("new", 4).unwrap()));
        assert_eq!(auth.check(&users, Some(&basic("bob:")), PEER).await, AuthOutcome::Refused);
    }

    /// All turns; no hash is computed while they are held.
    async fn all_turns(auth: &Auth) -> Vec<Option<crate::turns::Turn>> {
        vec![auth.turns.acquire(PEER, None).await, auth.turns.acquire(PEER, None).await]
    }

    /// Lets all tasks run as far as they can.
    async fn settle() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn one_credential_is_computed_once_however_many_bring_it() {
        let (auth, users) = (Auth::new().unwrap(), users());
        let turns = all_turns(&auth).await;
        let waiting: JoinSet<_> = (0..50).map(|_| checking(&auth, &users, "alice:wonder:land")).collect();
        settle().await;
        assert_eq!(remembered(&auth, None), 1);
        drop(turns);
        let outcomes = waiting.join_all().await;
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(AuthOutcome::Accepted))));
        assert_eq!((remembered(&auth, Some(AuthOutcome::Accepted)), remembered(&auth, None)), (1, 0));
    }

    #[tokio::test]
    async fn a_flood_of_password_guesses_is_bounded_and_evicts_no_user() {
        let (auth, users) = (Auth::new().unwrap(), users());
        let right = basic("alice:wonder:land");
        assert_eq!(auth.check(&users, Some(&right), PEER).await, AuthOutcome::Accepted);
        let turns = all_turns(&auth).await;
        let logins = (0..MAX_WAITING + 10).map(|guess| format!("alice:{guess}"));
        let guesses: JoinSet<_> = logins.map(|login| checking(&auth, &users, &login)).collect();
        settle().await;
        // While all of them wait, a remembered user gets in.
        assert_eq!(auth.check(&users, Some(&right), PEER).await, AuthOutcome::Accepted);
        drop(turns);
        let outcomes: Vec<_> = guesses.join_all().await.into_iter().map(Result::unwrap).collect();
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == AuthOutcome::Busy).count(), 10);
        assert!(!outcomes.contains(&AuthOutcome::Accepted));
        for fingerprint in 0..MAX_OUTCOMES + 10 {
            auth.remember(auth.fingerprint(&[&fingerprint.to_be_bytes()]), AuthOutcome::Refused);
        }
        assert_eq!(remembered(&auth, Some(AuthOutcome::Refused)), MAX_OUTCOMES);
        assert_eq!(remembered(&auth, Some(AuthOutcome::Accepted)), 1);
    }

    fn checking(auth: &Arc<Auth>, users: &BTreeMap<String, Secret>, login: &str) -> JoinHandle<AuthOutcome> {
        let (auth, users, header) = (Arc::clone(auth), users.clone(), basic(login));
        tokio::spawn(async move { auth.check(&users, Some(&header), PEER).await })
    }

    #[tokio::test]
    async fn guesses_from_the_address_of_a_user_do_not_keep_its_password_out() {
        let (auth, users) = (Auth::new().unwrap(), users());
        let turns = all_turns(&auth).await;
        let guess = |numbers: std::ops::Range<usize>| {
            numbers.for_each(|user| drop(checking(&auth, &users, &format!("nobody{user}:x"))));
        };
        guess(0..MAX_WAITING * 2);
        settle().await;
        let right = checking(&auth, &users, "bob:");
        settle().await;
        guess(10_000..10_000 + MAX_WAITING * 2);
        settle().await;
        drop(turns);
        assert_eq!(right.await.unwrap(), AuthOutcome::Accepted);
        let computed = remembered(&auth, Some(AuthOutcome::Refused));
        assert!(computed <= MAX_WAITING / 4, "{computed} guesses were computed before");
    }

    #[tokio::test]
    async fn a_check_whose_client_has_disconnected_is_not_computed() {
        let (auth, users) = (Auth::new().unwrap(), users());
        let turns = all_turns(&auth).await;
        let header = basic("alice:x");
        let left = auth.check(&users, Some(&header), PEER);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, left).await.is_err());
        drop(turns);
        while remembered(&auth, None) > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(remembered(&auth, Some(AuthOutcome::Refused)), 0);
    }

    #[test]
    fn a_wrong_password_takes_as_long_with_any_name() {
        let auth = Auth::new().unwrap();
        let work =
            |hashes: &[Secret]| hashes.iter().map(|hash| 1_u64 << bcrypt_cost(hash).unwrap()).sum::<u64>();
        for (costs, highest_cost) in
            [(&[4][..], 4), (&[4, 8, 10], 10), (&[12, 12], 12), (&[4, 14], 14), (&[4, 22], 14)]
        {
            let hash = |cost: &u32| Secret::new(&format!("$2b${cost:02}${}", auth.decoy));
            let users: BTreeMap<_, _> =
                costs.iter().enumerate().map(|(user, cost)| (user.to_string(), hash(cost))).collect();
            let stranger = auth.hashes(&users, None);
            assert_eq!(work(&stranger), 1 << highest_cost, "{costs:?}");
            // A valid hash, not an error that would return at once.
            if highest_cost == 4 {
                assert!(matches!(bcrypt::verify("fakepassword", stranger[0].expose()), Ok(false)));
            }
            for (hash, cost) in users.values().zip(costs) {
                let known = auth.hashes(&users, Some(hash));
                assert_eq!(work(&known), 1 << highest_cost.max(*cost), "{costs:?}: {cost}");
            }
        }
    }

    #[test]
    fn owners_with_the_same_concatenation_differ() {
        let auth = Auth::new().unwrap();
        assert_ne!(auth.fingerprint(&[b"ab", b"c"]), auth.fingerprint(&[b"a", b"bc"]));
        assert_ne!(auth.fingerprint(&[b"", b"x"]), auth.fingerprint(&[b"x", b""]));
    }
}
