//! The subject of a reply: a project or an app, and the requested window.

use super::range::TimeRange;

/// The project or app whose series are read from a reply.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The project's id.
    pub project: &'a str,
    /// The app's id; empty if the call is not about one.
    pub app: &'a str,
    /// The labels configured for the project, or for the app if the call is about one.
    pub labels: &'a [(String, String)],
    /// The window of a metrics call; `None` for settings.
    pub window: Option<Window<'a>>,
}

/// A trailing range shown as gauges.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Its length as in the label `window`: `5m`.
    pub label: &'a str,
    /// The container it is restricted to.
    pub container: Option<&'a str>,
    /// Whether it is the first one configured, which the gauges without a `window` label come from.
    pub first: bool,
    /// The requested range.
    pub range: TimeRange,
}
