//! The `Authorization` header of basic auth (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What a client claims. Neither part need be text.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Without a colon.
    pub user: Vec<u8>,
    /// May hold colons, and may be empty.
    pub password: Vec<u8>,
}

/// Reads `Basic <base64 of user:password>`; `None` for anything else.
#[must_use]
pub fn parse(authorization: &[u8]) -> Option<Credentials> {
    let (scheme, encoded) = authorization.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut user = STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = user.iter().position(|byte| *byte == b':')?;
    let password = user.split_off(colon + 1);
    user.truncate(colon);
    Some(Credentials { user, password })
}
