//! The token of a service account: its source, re-reading its file when it changes, and its metrics.
//!
//! The file is read again while requests are made, at most once a second. The file is small, and reading it detects
//! every kind of change: a rewrite in place, a rename over it, or Kubernetes swapping the symlink of the directory.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::observer::Reporter;
use super::{Account, Shared};
use pds_core::clock::from_unix_seconds;
use pds_core::plain_file;
use pds_core::secret::Secret;

/// Minimum time between two reads of the file, unless the service has just refused the token.
const REREAD_EVERY: Duration = Duration::from_secs(1);

/// The maximum size of a token. A larger file was named by mistake and is not read into memory.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// Source of a bearer token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenSource {
    /// The configuration or the environment.
    Inline(Secret),
    /// A file, read again whenever it changes.
    File(PathBuf),
}

impl TokenSource {
    fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Inline(_) => None,
        }
    }
}

/// Why no token is available, in words.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(Arc<str>);

/// A token ready to send.
#[derive(Debug)]
pub(super) struct Token {
    /// The token itself.
    pub(super) secret: Secret,
    /// `Bearer ...`, marked as sensitive, so that no library shows it.
    pub(super) header: HeaderValue,
    /// Version of the token, which counts its changes.
    pub(super) generation: u64,
    /// Its file is open to every user of the machine.
    pub(super) readable_by_others: bool,
}

/// The token of one service account.
#[derive(Debug)]
pub(super) struct Credentials {
    /// Number of the account.
    number: u64,
    pub(super) source: Option<TokenSource>,
    pub(super) reporter: Reporter,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    token: Result<Arc<Token>, CredentialsError>,
    /// When the file was last read.
    read: Instant,
    /// Why the last read failed.
    problem: Option<Arc<str>>,
    /// Whether the log has reported that every user can read the file.
    exposed: bool,
}

impl Credentials {
    /// Reads the token for the first time. A failure is logged now, and returned to every request until there is a
    /// token.
    pub(super) fn new(number: u64, name: Arc<str>, source: Option<TokenSource>, shared: Shared) -> Self {
        let missing = "no token is configured: set api.token_file, or token_file of the project";
        let state = State {
            token: Err(CredentialsError(missing.into())),
            read: Instant::now(),
            problem: None,
            exposed: false,
        };
        let reporter = Reporter::new(name, shared);
        let credentials = Self { number, source, reporter, state: Mutex::new(state) };
        credentials.reread();
        credentials
    }

    /// The file that it is read from, if any.
    pub(super) fn file(&self) -> Option<&Path> {
        self.source.as_ref()?.file()
    }

    /// The token to send now.
    pub(super) fn current(&self) -> Result<Arc<Token>, CredentialsError> {
        let mut state = self.state.lock();
        if self.file().is_some() && state.read.elapsed() >= REREAD_EVERY {
            self.read_into(&mut state);
        }
        state.token.clone()
    }

    /// Reads the token again at once: the service has just refused the one that was sent.
    pub(super) fn reread(&self) {
        self.read_into(&mut self.state.lock());
    }

    fn read_into(&self, state: &mut State) {
        let Some(source) = &self.source else { return };
        let before = state.token.as_ref().ok();
        let known = before.is_some();
        let read = read(source, before.map(|token| &**token));
        state.read = Instant::now();
        if source.file().is_some() {
            self.reporter.update(|facts| facts.readable = Some(read.is_ok()));
        }
        match read {
            Ok(changed) => {
                let name = &*self.reporter.name();
                if state.problem.take().is_some() {
                    tracing::info!(token = name, "the token can be used again");
                } else if known && changed.is_some() {
                    tracing::info!(token = name, "the token has changed");
                }
                if let Some(token) = changed {
                    if token.readable_by_others && !std::mem::replace(&mut state.exposed, true) {
                        tracing::warn!(token = name, "every user of this machine can read the token file");
                    }
                    self.reporter.update(|facts| facts.expires = expiry(&token.secret));
                    // Until the account is gone, even if it is not in force: requests may be in flight.
                    self.reporter.shared.redactor.add(self.number, &token.secret);
                    state.token = Ok(Arc::new(token));
                }
            }
            Err(error) => {
                if state.problem.replace(Arc::clone(&error.0)).is_none() {
                    let consequence = match known {
                        true => "the last good token is kept",
                        false => "requests that need it fail",
                    };
                    let file = self.file();
                    self.reporter.log(|observer, name| {
                        observer.token_unreadable(name, file, &error.0, consequence);
                    });
                }
                if !known {
                    state.token = Err(error);
                }
            }
        }
    }
}

impl Drop for Credentials {
    fn drop(&mut self) {
        self.reporter.shared.redactor.remove(self.number);
    }
}

impl Account {
    /// Why its source holds no token that can be sent; `None` if it does.
    pub fn problem(&self) -> Option<Arc<str>> {
        self.inner.credentials.state.lock().problem.clone()
    }

    /// The project that its token is for, if the token last read states one.
    pub(super) fn project(&self) -> Option<String> {
        let state = self.inner.credentials.state.lock();
        claims(&state.token.as_ref().ok()?.secret)?.get("project_id")?.as_str().map(str::to_owned)
    }

    /// Whether every user of this machine can read its token.
    pub fn is_readable_by_others(&self) -> bool {
        self.inner.credentials.current().is_ok_and(|token| token.readable_by_others)
    }
}

/// The token that `source` holds now.
///
/// # Errors
/// If it holds none that can be sent.
pub fn read_token(source: &TokenSource) -> Result<Secret, CredentialsError> {
    Ok(read(source, None)?.map(|token| token.secret).unwrap_or_default())
}

/// The token that `source` holds now; `None` if it is still the token `before`.
fn read(source: &TokenSource, before: Option<&Token>) -> Result<Option<Token>, CredentialsError> {
    let (secret, readable_by_others) = match source {
        TokenSource::File(path) => read_file(path)?,
        TokenSource::Inline(secret) => (secret.clone(), false),
    };
    if before.is_some_and(|before| before.secret == secret) {
        return Ok(None);
    }
    let file = source.file().map(|path| format!(" in {}", path.display())).unwrap_or_default();
    let bad = |problem: &str| CredentialsError(format!("the token{file} {problem}").into());
    if let Some(surplus) = surplus(secret.expose()) {
        return Err(bad(&format!("{surplus}; write only the token, on one line")));
    }
    let mut header = HeaderValue::try_from(format!("Bearer {}", secret.expose()))
        .map_err(|_| bad("contains characters that are not allowed in HTTP headers"))?;
    header.set_sensitive(true);
    let generation = before.map_or(0, |before| before.generation + 1);
    Ok(Some(Token { secret, header, generation, readable_by_others }))
}

/// Describes surplus text that was copied with a token, as the end of a sentence about the token.
pub fn surplus(token: &str) -> Option<&'static str> {
    let is_named = token.split_once('=').is_some_and(|(name, rest)| {
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        // Base64 ends in up to two `=`.
        name.bytes().all(is_name) && !rest.trim_matches('=').is_empty()
    });
    match token.trim() {
        token if token.starts_with(['{', '[']) => Some("is JSON"),
        token if token.lines().count() > 1 => Some("has more than one line"),
        token if token.starts_with(['"', '\'']) => Some("stands in quotes"),
        token if token.to_ascii_lowercase().starts_with("bearer ") => Some("begins with `Bearer`"),
        _ if is_named => Some("is an assignment (NAME=token)"),
        token if token.contains(char::is_whitespace) => Some("holds spaces"),
        _ if !token.is_ascii() => Some("is not ASCII"),
        _ => None,
    }
}

/// Whether `text` looks like a JWT, so that it must not be shown where the path of a file is expected.
pub fn is_jwt(text: &str) -> bool {
    text.starts_with("eyJ") && text.matches('.').count() >= 2 && !text.contains('/')
}

/// Reads the file on the current thread: it is small, local, and read at most once a second.
fn read_file(path: &Path) -> Result<(Secret, bool), CredentialsError> {
    let file = path.display();
    let failed =
        |error: &dyn Display| CredentialsError(format!("cannot read the token file {file}: {error}").into());
    let read = plain_file::read(path, MAX_TOKEN_BYTES).map_err(|error| failed(&error))?;
    let text = String::from_utf8(read.bytes).map_err(|_| failed(&"not UTF-8"))?;
    match text.trim_start_matches('\u{feff}').trim() {
        "" => Err(CredentialsError(format!("the token file {file} is empty").into())),
        token => Ok((Secret::new(token), read.readable_by_others)),
    }
}

/// The claims of the token, if it is a JWT. Only the service can verify its signature.
fn claims(secret: &Secret) -> Option<serde_json::Map<String, serde_json::Value>> {
    let parts: Vec<&str> = secret.expose().split('.').collect();
    let [_header, claims, _signature] = parts[..] else { return None };
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// The expiry that the token states, if any.
fn expiry(secret: &Secret) -> Option<Timestamp> {
    // Issuers write 0 for a token that never expires.
    from_unix_seconds(claims(secret)?.get("exp")?.as_f64().filter(|exp| *exp > 0.0)?)
}
