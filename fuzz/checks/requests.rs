//! Requests of readers: headers and queries.

use base64::Engine as _;
use pds_exporter::store::Filter;
use pds_web::{Credentials, negotiate};

/// Any text as the headers by which a form is asked for: no panic; capitals change nothing, nor does an element that is
/// empty or none of ours.
pub(crate) fn negotiation(data: &[u8]) {
    let Ok(header) = std::str::from_utf8(data) else { return };
    for same in [header.to_ascii_uppercase(), format!(" ,x-y/z;q=0.9,{header}")] {
        assert_eq!(negotiate::format(Some(header)), negotiate::format(Some(&same)), "{header:?}");
        assert_eq!(negotiate::encoding(Some(header)), negotiate::encoding(Some(&same)), "{header:?}");
    }
}

/// Any query: what is read of it, written as a query, reads the same.
pub(crate) fn query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = Filter::parse(Some(text));
    let names = read.names.iter().map(|name| ("name[]", name));
    let projects = read.projects.iter().map(|project| ("project", project));
    let apps = read.apps.iter().map(|app| ("app", app));
    let pairs = names.chain(projects).chain(apps);
    let written = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    assert_eq!(Filter::parse(Some(&written)), read, "{text:?}");
}

/// Any bytes as an `Authorization` header: no panic, and what is read says the same when written again.
pub(crate) fn authorization(data: &[u8]) {
    let Some(read) = Credentials::parse(data) else { return };
    assert!(!read.user.contains(&b':'));
    let text =
        base64::engine::general_purpose::STANDARD.encode([&*read.user, b":", &*read.password].concat());
    for scheme in ["Basic ", "bAsIc "] {
        assert!(Credentials::parse(format!("{scheme}{text}").as_bytes()) == Some(read.clone()));
        assert!(Credentials::parse(format!("{scheme} \t{text} ").as_bytes()) == Some(read.clone()));
    }
    assert!(Credentials::parse(text.as_bytes()).is_none(), "a scheme is needed");
}
