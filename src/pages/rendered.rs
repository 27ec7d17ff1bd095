//! What the status pages answer.

/// What a path shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// A page.
    Page(String),
    /// A page that says that there is none.
    NoPage(String),
    /// A JSON document.
    Json(String),
    /// Style, script or icon: (content type, content).
    Asset(&'static str, &'static str),
    /// Nothing.
    Nothing,
}
