//! The YAML of the web configuration file: text in, checked values out. Files that it names are not read here.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use rustls::SupportedCipherSuite;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::ring::{ALL_CIPHER_SUITES, kx_group};
use serde::Deserialize;
use serde::de::IntoDeserializer as _;

use super::{ClientAuth, WebConfigError};
use pds_core::secret::Secret;

/// A checked file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) tls: Tls,
    pub(super) http2: bool,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) users: BTreeMap<String, Secret>,
    pub(super) rate: Option<Rate>,
}

/// `tls_server_config`.
#[derive(Debug)]
pub(super) struct Tls {
    pub(super) cert: Option<Pem>,
    pub(super) key: Option<Pem>,
    pub(super) client_ca: Option<Pem>,
    pub(super) client_auth: ClientAuth,
    /// Whether any key is set that needs TLS.
    pub(super) enabled: bool,
    pub(super) client_allowed_sans: Option<Vec<String>>,
    /// One of [`VERSIONS`], like `max_version`.
    pub(super) min_version: &'static str,
    pub(super) max_version: &'static str,
    /// Empty means the defaults, as in the toolkit.
    pub(super) cipher_suites: Vec<Named<SupportedCipherSuite>>,
    pub(super) curve_preferences: Vec<Named<&'static dyn SupportedKxGroup>>,
    pub(super) prefer_server_cipher_suites: bool,
}

/// An item by Go's name, and its counterpart in rustls.
pub(super) type Named<T> = (String, Option<T>);

/// A certificate, CA or private key, with the name of its setting. As in the toolkit, a file takes precedence over
/// inline text.
#[derive(Debug)]
pub(super) enum Pem {
    Inline(&'static str, Secret),
    File(&'static str, String),
}

/// `rate_limit`: a token bucket over all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Average time per request.
    pub interval: Duration,
    /// Requests in a burst.
    pub burst: NonZeroU32,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Raw {
    tls_server_config: Option<RawTls>,
    http_server_config: Option<RawHttp>,
    basic_auth_users: Option<BTreeMap<String, Option<Secret>>>,
    rate_limit: Option<RawRate>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawTls {
    cert: Option<Secret>,
    key: Option<Secret>,
    client_ca: Option<Secret>,
    cert_file: Option<String>,
    key_file: Option<String>,
    client_auth_type: Option<String>,
    client_ca_file: Option<String>,
    cipher_suites: Option<Vec<String>>,
    curve_preferences: Option<Vec<String>>,
    min_version: Option<String>,
    max_version: Option<String>,
    prefer_server_cipher_suites: Option<bool>,
    client_allowed_sans: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawHttp {
    http2: Option<bool>,
    headers: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawRate {
    interval: Option<String>,
    burst: Option<i64>,
}

/// Parses and checks the text of a file.
pub(super) fn parse(text: &str) -> Result<File, WebConfigError> {
    // Snippets would show keys and hashes.
    let options = serde_saphyr::options! { with_snippet: false };
    // A file with only comments is valid and has no document.
    let raw: Option<Raw> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| WebConfigError::Yaml(without_values(&error.to_string())))?;
    let raw = raw.unwrap_or_default();
    let http = raw.http_server_config.unwrap_or_default();
    Ok(File {
        headers: headers(http.headers.unwrap_or_default())?,
        http2: http.http2.unwrap_or(true),
        tls: tls(raw.tls_server_config.unwrap_or_default())?,
        users: users(raw.basic_auth_users.unwrap_or_default())?,
        rate: rate(raw.rate_limit.unwrap_or_default())?,
    })
}

fn tls(raw: RawTls) -> Result<Tls, WebConfigError> {
    let pem = |key, inline: Option<Secret>, file_key, file: Option<String>| {
        let file = file.filter(|file| !file.is_empty()).map(|file| Pem::File(file_key, file));
        let inline = inline.filter(|text| !text.expose().is_empty()).map(|text| Pem::Inline(key, text));
        file.or(inline)
    };
    let version = |key, name: Option<String>, default| match name.filter(|name| !name.is_empty()) {
        None => Ok(default),
        Some(name) => VERSIONS.into_iter().find(|version| *version == name).ok_or_else(|| {
            WebConfigError::tls(key, format!("unknown TLS version: {name}; use TLS12 or TLS13"))
        }),
    };
    let policy = raw.client_auth_type.filter(|policy| !policy.is_empty());
    let cert = pem("cert", raw.cert, "cert_file", raw.cert_file);
    let key = pem("key", raw.key, "key_file", raw.key_file);
    let client_ca = pem("client_ca", raw.client_ca, "client_ca_file", raw.client_ca_file);
    Ok(Tls {
        enabled: cert.is_some() || key.is_some() || client_ca.is_some() || policy.is_some(),
        cert,
        key,
        client_ca,
        client_auth: policy.map_or(Ok(ClientAuth::NoClientCert), client_auth)?,
        client_allowed_sans: raw.client_allowed_sans,
        min_version: version("min_version", raw.min_version, "TLS12")?,
        max_version: version("max_version", raw.max_version, "TLS13")?,
        cipher_suites: named("cipher_suites", raw.cipher_suites, cipher, "cipher")?,
        curve_preferences: named("curve_preferences", raw.curve_preferences, curve, "curve")?,
        prefer_server_cipher_suites: raw.prefer_server_cipher_suites.unwrap_or(true),
    })
}

/// Go's names of TLS versions, which sort like the versions. rustls lacks the first two.
const VERSIONS: [&str; 4] = ["TLS10", "TLS11", "TLS12", "TLS13"];

/// Suites of Go's `tls.CipherSuites()`, in any Go version that exporters use, that rustls lacks: CBC, or no forward
/// secrecy.
const UNSAFE_CIPHERS: [&str; 8] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
];

/// `None`: Go has no suite of this name. `Some(None)`: rustls lacks it.
fn cipher(name: &str) -> Option<Option<SupportedCipherSuite>> {
    // The names differ only for TLS 1.3.
    let go_name = |suite: &SupportedCipherSuite| Some(suite.suite().as_str()?.replace("TLS13_", "TLS_"));
    let suite = ALL_CIPHER_SUITES.iter().find(|suite| go_name(suite).as_deref() == Some(name)).copied();
    (suite.is_some() || UNSAFE_CIPHERS.contains(&name)).then_some(suite)
}

/// Like [`cipher`].
fn curve(name: &str) -> Option<Option<&'static dyn SupportedKxGroup>> {
    Some(match name {
        "X25519" => Some(kx_group::X25519),
        "CurveP256" => Some(kx_group::SECP256R1),
        "CurveP384" => Some(kx_group::SECP384R1),
        "CurveP521" => None,
        _ => return None,
    })
}

fn named<T>(
    key: &str,
    list: Option<Vec<String>>,
    known: fn(&str) -> Option<Option<T>>,
    what: &str,
) -> Result<Vec<Named<T>>, WebConfigError> {
    let known = |name: String| match known(&name) {
        Some(ours) => Ok((name, ours)),
        None => Err(WebConfigError::tls(key, format!("unknown {what}: {name}"))),
    };
    list.unwrap_or_default().into_iter().map(known).collect()
}

fn client_auth(policy: String) -> Result<ClientAuth, WebConfigError> {
    ClientAuth::deserialize(policy.as_str().into_deserializer()).map_err(|_: serde::de::value::Error| {
        let problem = format!(
            "invalid ClientAuth: {policy}; use NoClientCert, RequestClientCert, RequireAnyClientCert, \
             VerifyClientCertIfGiven or RequireAndVerifyClientCert"
        );
        WebConfigError::tls("client_auth_type", problem)
    })
}

/// The headers that can be configured, with their values if only some are allowed.
const HEADERS: &[(&str, &[&str])] = &[
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
    ("Content-Security-Policy", &[]),
];

fn headers(raw: BTreeMap<String, Option<String>>) -> Result<Vec<(HeaderName, HeaderValue)>, WebConfigError> {
    let bad = |problem| WebConfigError::value("http_server_config.headers", problem);
    let mut headers = Vec::new();
    for (name, value) in raw {
        let Some((_, allowed)) = HEADERS.iter().find(|(known, _)| *known == name) else {
            let known = "Strict-Transport-Security, X-Content-Type-Options, X-Frame-Options, X-XSS-Protection and \
                         Content-Security-Policy";
            return Err(bad(format!("HTTP header {name:?} can not be configured; only {known} can")));
        };
        let value = value.unwrap_or_default();
        let invalid = |expected: &str| {
            bad(format!("invalid value for {name}. Expected one of: {expected}, but got: {value:?}"))
        };
        if !allowed.is_empty() && !allowed.contains(&value.as_str()) {
            // Lists have the format of the toolkit.
            return Err(invalid(&format!("{allowed:?}").replace(',', "")));
        }
        let parsed = (HeaderName::try_from(&name), HeaderValue::try_from(&value));
        let (Ok(header), Ok(content)) = parsed else { return Err(invalid("visible ASCII")) };
        if !content.is_empty() {
            headers.push((header, content));
        }
    }
    Ok(headers)
}

fn users(raw: BTreeMap<String, Option<Secret>>) -> Result<BTreeMap<String, Secret>, WebConfigError> {
    let not_a_hash = |user: &str| {
        let problem = "not a bcrypt hash ($2a$, $2b$ or $2y$ with a cost from 04 to 31); make one with";
        let problem = format!("{problem}: htpasswd -nBC 10 {user}");
        WebConfigError::value(format!("basic_auth_users.{user}"), problem)
    };
    let checked = raw.into_iter().map(|(user, hash)| {
        let hash = hash.filter(|hash| bcrypt_cost(hash).is_some()).ok_or_else(|| not_a_hash(&user))?;
        Ok((user, hash))
    });
    checked.collect()
}

/// The cost of a bcrypt hash; `None` for anything else. Three versions are the same algorithm; `$2x$` marks hashes of a
/// broken one.
pub(crate) fn bcrypt_cost(hash: &Secret) -> Option<u32> {
    let hash = hash.expose();
    let is_known = ["$2a$", "$2b$", "$2y$"].iter().any(|version| hash.starts_with(version));
    let cost = hash.parse::<bcrypt::HashParts>().ok()?.get_cost();
    (is_known && (4..=31).contains(&cost)).then_some(cost)
}

/// The highest cost of checks for unknown names, about a second. At higher costs, a stranger could occupy a processor
/// for long.
pub(crate) const MAX_HIDDEN_COST: u32 = 14;

/// Settings that have no effect, or that leak user names.
pub(super) fn user_notes(users: &BTreeMap<String, Secret>) -> Vec<String> {
    let note = |user: &String, problem: &str| format!("basic_auth_users.{user}: {problem}");
    let colons = users.keys().filter(|user| user.contains(':'));
    let colons =
        colons.map(|user| note(user, "no client can log in with this name, because ':' ends a name"));
    let costs = || users.iter().filter_map(|(user, hash)| Some((user, bcrypt_cost(hash)?)));
    let dear = costs().filter(|(_, cost)| *cost > MAX_HIDDEN_COST).map(|(user, cost)| {
        let problem = "each check takes seconds, and its duration reveals that the name exists";
        note(user, &format!("cost {cost} is above {MAX_HIDDEN_COST}: {problem}"))
    });
    let (min, max) = (costs().map(|(_, cost)| cost).min(), costs().map(|(_, cost)| cost).max());
    let differ = (min != max).then(|| {
        let (min, max) = (min.unwrap_or_default(), max.unwrap_or_default());
        format!("basic_auth_users: costs differ ({min} to {max}); a wrong password takes as long as at the highest cost")
    });
    colons.chain(dear).chain(differ).collect()
}

fn rate(raw: RawRate) -> Result<Option<Rate>, WebConfigError> {
    let interval = duration(raw.interval.as_deref().unwrap_or("0")).ok_or_else(|| {
        WebConfigError::value("rate_limit.interval", "not a duration like 100ms, 1s or 1m30s")
    })?;
    if interval.is_zero() {
        return Ok(None);
    }
    let burst = u32::try_from(raw.burst.unwrap_or(0)).ok().and_then(NonZeroU32::new);
    let burst = burst.ok_or_else(|| {
        WebConfigError::value("rate_limit.burst", "at least 1, otherwise every request is refused")
    })?;
    Ok(Some(Rate { interval, burst }))
}

/// A duration as Go writes it: `1m30s`, `1.5s`, `250ms`, `0`; a bare number is nanoseconds, as Go's YAML reads it.
fn duration(text: &str) -> Option<Duration> {
    let bare = text.parse().ok().map(Duration::from_nanos);
    bare.or_else(|| humantime::parse_duration(text).ok())
}

/// The error text without the unexpected value, which may be a misplaced key or hash.
fn without_values(text: &str) -> String {
    match text.split_once("string \"").and_then(|(before, after)| Some((before, after.rsplit_once('"')?))) {
        Some((before, (_, after))) => format!("{before}string{after}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

    fn refusal(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn nothing_means_the_defaults() {
        for text in
            ["", "\n", "# only a comment\n", "tls_server_config:\nhttp_server_config:\n", "{}", "---\n"]
        {
            let File { tls, users, rate, http2, .. } = parse(text).unwrap();
            assert!(!tls.enabled && users.is_empty() && rate.is_none() && http2, "{text:?}");
            assert_eq!((tls.min_version, tls.max_version), ("TLS12", "TLS13"));
        }
    }

    #[test]
    fn every_key_is_read() {
        let file = parse(&format!(
            "tls_server_config:
  cert_file: a.crt
  key: |
    inline
  client_auth_type: RequireClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus.example.com]
  min_version: TLS13
  max_version: TLS13
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: no
  curve_preferences: [X25519]
http_server_config:
  http2: off
  headers:
    X-Frame-Options: deny
    Strict-Transport-Security: max-age=63072000
    X-XSS-Protection:
basic_auth_users:
  alice: {HASH}
  7: {HASH}
rate_limit: {{ interval: 1m30s, burst: 5 }}
"
        ))
        .unwrap();
        assert!(matches!((file.tls.cert, file.tls.key), (Some(Pem::File(..)), Some(Pem::Inline(..)))));
        assert_eq!(file.tls.client_auth, ClientAuth::RequireAnyClientCert);
        assert!(!file.http2 && !file.tls.prefer_server_cipher_suites);
        assert_eq!(file.headers.len(), 2);
        assert_eq!(file.users.keys().collect::<Vec<_>>(), ["7", "alice"]);
        let rate = Rate { interval: Duration::from_secs(90), burst: NonZeroU32::new(5).unwrap() };
        assert_eq!(file.rate, Some(rate));
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, expected) in [
            ("tls_server_confg: {}", "tls_server_confg"),
            ("tls_server_config: { certfile: x }", "certfile"),
            ("rate_limit: { burst: 1, burst: 2 }", "burst"),
            ("tls_server_config: { min_version: TLS14 }", "unknown TLS version: TLS14"),
            ("tls_server_config: { cipher_suites: [RC4] }", "unknown cipher: RC4"),
            ("tls_server_config: { curve_preferences: [P256] }", "unknown curve: P256"),
            ("tls_server_config: { client_auth_type: Maybe }", "invalid ClientAuth: Maybe"),
            (
                "http_server_config: { headers: { Server: x } }",
                "HTTP header \"Server\" can not be configured",
            ),
            (
                "http_server_config: { headers: { X-Frame-Options: none } }",
                "invalid value for X-Frame-Options. Expected one of: [\"deny\" \"sameorigin\"], but got: \"none\"",
            ),
            ("basic_auth_users: { alice: plain }", "basic_auth_users.alice: not a bcrypt hash"),
            ("basic_auth_users: { alice: }", "basic_auth_users.alice: not a bcrypt hash"),
            ("rate_limit: { interval: soon }", "rate_limit.interval"),
            ("rate_limit: { interval: -1s, burst: 1 }", "rate_limit.interval"),
            ("rate_limit: { interval: 1s }", "rate_limit.burst"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains(expected), "{text}: {refusal}");
        }
        for hash in [HASH.replace("$2y$", "$2x$"), HASH.replace("$10$", "$32$"), HASH[..50].to_owned()] {
            assert!(refusal(&format!("basic_auth_users: {{ a: {hash} }}")).contains("basic_auth_users.a"));
        }
    }

    #[test]
    fn users_that_cannot_log_in_or_that_timing_reveals_are_named() {
        let notes = |users: &[(&str, u32)]| {
            let hash = |cost: &u32| Secret::new(&HASH.replace("$10$", &format!("${cost:02}$")));
            user_notes(&users.iter().map(|(user, cost)| ((*user).to_owned(), hash(cost))).collect())
        };
        let good = [&[][..], &[("a", 10), ("b", 10)], &[("a", 14)]];
        assert!(good.into_iter().all(|users| notes(users).is_empty()));
        let said = notes(&[("a:b", 4), ("dear", 15)]);
        assert!(said[0].starts_with("basic_auth_users.a:b: no client can log in"), "{said:?}");
        assert!(said[1].starts_with("basic_auth_users.dear: cost 15 is above 14"), "{said:?}");
        assert!(said[2].starts_with("basic_auth_users: costs differ (4 to 15)"), "{said:?}");
        assert_eq!(said.len(), 3);
    }

    #[test]
    fn errors_show_no_value_that_may_be_secret() {
        for text in [
            format!("basic_auth_users: {HASH}"),
            format!("basic_auth_users:\n  alice\n  {HASH}\n"),
            format!("basic_auth_users: [{HASH}]"),
            format!("basic_auth_users:\n  alice: {HASH}\n bob: {HASH}\n"),
            format!("tls_server_config: \"{HASH}\""),
            format!("rate_limit: {{ burst: {HASH} }}"),
            format!("basic_auth_users: {{ alice: {HASH}x }}"),
            format!("basic_auth_users:\n  alice: {HASH}\n  alice: {HASH}\n"),
        ] {
            let refusal = refusal(&text);
            assert!(!refusal.contains("QOauhQNb"), "{refusal}");
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, millis) in
            [("1s", 1000), ("1m30s", 90_000), ("1.5s", 1500), ("250ms", 250), ("0", 0), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(duration("1000000"), Some(Duration::from_millis(1)));
        for text in ["", "s", "1x", "-1s", "1.2.3s", "99999999999999999h"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn every_suite_and_curve_of_rustls_has_a_name() {
        let suites = ALL_CIPHER_SUITES.iter().filter_map(|suite| suite.suite().as_str());
        assert!(suites.clone().all(|name| cipher(&name.replace("TLS13", "TLS")).is_some()));
        assert_eq!(suites.count(), ALL_CIPHER_SUITES.len());
        assert!(cipher("TLS_AES_128_GCM_SHA256").flatten().unwrap().tls13().is_some());
        let curves = ["X25519", "CurveP256", "CurveP384", "CurveP521"].map(|name| curve(name).unwrap());
        assert_eq!(curves.iter().flatten().count(), rustls::crypto::ring::ALL_KX_GROUPS.len());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z_:{}\\[\\] \n\"'$&*!|>#-]{0,200}") {
            let _ = parse(&text);
        }
    }
}
