//! Service accounts and their tokens.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

use pds_core::secret::Secret;

use super::chance::{hash, hash_text};

/// A service account.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Account {
    /// The project it belongs to.
    pub(super) project: Arc<str>,
    /// When its token expires, if ever.
    pub(super) expires: Option<Timestamp>,
}

/// The issued tokens. Only these are valid.
#[derive(Debug, Default)]
pub(super) struct Tokens(HashMap<Secret, Account>);

impl Tokens {
    /// The token of the account of `project` that expires at `expires`; the same each time.
    pub(super) fn issue(&mut self, seed: u64, project: &Arc<str>, expires: Option<Timestamp>) -> Secret {
        let mut claims = serde_json::json!({ "sub": format!("sa-{project}"), "project_id": &**project });
        if let Some(expires) = expires {
            claims["exp"] = expires.as_second().into();
        }
        let header = encode(br#"{"alg":"HS256","typ":"JWT"}"#);
        let signed = format!("{header}.{}", encode(claims.to_string().as_bytes()));
        let token = Secret::new(&format!("{signed}.{}", signature(seed, &signed)));
        self.0.insert(token.clone(), Account { project: Arc::clone(project), expires });
        token
    }

    /// The account that an `Authorization` header names, if its token was issued and is not expired at `now`.
    pub(super) fn account(
        &self,
        authorization: Option<&[u8]>,
        now: Timestamp,
    ) -> Result<&Account, &'static str> {
        let text = authorization.and_then(|value| std::str::from_utf8(value).ok());
        let Some(text) = text else { return Err("authorization is missing") };
        let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = token else { return Err("authorization must be a bearer token") };
        match self.0.get(&Secret::new(token.trim())) {
            None => Err("the token is not valid"),
            Some(account) if account.expires.is_some_and(|expires| expires <= now) => {
                Err("the token has expired")
            }
            Some(account) => Ok(account),
        }
    }

    /// Revokes a token.
    pub(super) fn revoke(&mut self, token: &Secret) {
        self.0.remove(token);
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// 32 bytes that depend on the seed and the signed text. They only look like a signature: a token is valid because it
/// was issued.
fn signature(seed: u64, signed: &str) -> String {
    let start = hash_text(seed, signed);
    let bytes: Vec<u8> = (0..4).flat_map(|part| hash(&[start, part]).to_be_bytes()).collect();
    encode(&bytes)
}

/// The secret value of a new API key.
pub(super) fn api_key(seed: u64, project: &str, number: u64) -> Secret {
    let start = hash_text(hash(&[seed, number]), project);
    Secret::new(&format!("pk-{:016x}{:016x}", hash(&[start, 0]), hash(&[start, 1])))
}
