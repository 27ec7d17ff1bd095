//! The parts that all pages share: head, header, navigation and footer.

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, Render, html};

use crate::status::Status;
use pds_config::Web;

use super::format;
use super::links::{ICON, Links, SCRIPT, STYLE, THEME, TROUBLE, url};

/// The input of every page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) links: &'a Links,
    pub(super) status: &'a Status,
    /// The time against which ages are computed.
    pub(super) now: Timestamp,
}

/// The entries of the navigation.
const NAVIGATION: [(&str, &str); 3] =
    [("/", "Overview"), ("/config", "Configuration"), ("/metrics-catalogue", "Catalogue")];

/// One page: its place in the navigation, and its content.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The path of the current entry in the navigation, or `""`.
    pub(super) tab: &'a str,
    pub(super) title: &'a str,
    /// The query of `/api/v1/status` that returns the page's content as JSON, if there is any.
    pub(super) json: Option<&'a str>,
    /// The part of `/metrics` that belongs to the page, as a query.
    pub(super) metrics: &'a str,
    pub(super) main: Markup,
}

/// A whole page.
pub(super) fn page(frame: Frame<'_>, page: &Page<'_>) -> Markup {
    let Frame { links, status, now } = frame;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title) " · pds-exporter" }
                link rel="icon" type="image/svg+xml" href=(ICON.link(links)) data-trouble=(TROUBLE.link(links));
                link rel="stylesheet" href=(STYLE.link(links));
                script src=(THEME.link(links)) {}
                script src=(SCRIPT.link(links)) defer {}
            }
            body data-started=(status.exporter.started) {
                a .skip href="#main" { "Skip to content" }
                header .top {
                    a .brand href=(links.to("/")) { (mark()) "pds-exporter " span .version { (status.exporter.version) } }
                    nav aria-label="Pages" {
                        @for (path, name) in NAVIGATION {
                            a href=(links.to(path)) aria-current=[(page.tab == path).then_some("page")] { (name) }
                        }
                    }
                    p .refresh {
                        span #refreshed { "As of " time datetime=(now) { (format::clock(now)) " UTC" } }
                        button type="button" #times hidden { "UTC" }
                        button type="button" #theme hidden { "Theme" }
                        button type="button" #pause hidden aria-pressed="false" { "Pause" }
                    }
                }
                p #trouble role="status" hidden {}
                main #main tabindex="-1" { (page.main) }
                footer {
                    p {
                        @if let Some(query) = page.json {
                            "This page as " a href={ (links.to("/api/v1/status")) (query) } { "JSON" } " ("
                            a href=(links.to("/api/v1/status/schema")) { "schema" } "), its "
                            a href=(links.metrics(page.metrics)) { "metrics" } ". "
                        } @else { a href=(links.metrics("")) { "All metrics" } ". " }
                        span #zone { "All times are UTC." } " These pages never query the service."
                    }
                }
            }
        }
    }
}

/// A table below `titles`, in a region named `label` that scrolls on its own. The roles are for tables whose rows a narrow
/// page shows as cards.
pub(super) fn table(class: &str, label: &str, caption: Markup, titles: &[&str], bodies: Markup) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label=(label) {
            table class=[(!class.is_empty()).then_some(class)] role="table" {
                (caption)
                thead role="rowgroup" { tr role="row" {
                    @for title in titles { th scope="col" role="columnheader" { (title) } }
                } }
                (bodies)
            }
        }
    }
}

/// The parts of the address that were not recognised.
pub(super) fn ignored(parts: &[impl Render]) -> Markup {
    html! {
        @if !parts.is_empty() {
            p .notice role="note" {
                "Not recognised and ignored: "
                @for (index, part) in parts.iter().enumerate() { @if index > 0 { ", " } code { (part) } }
                "."
            }
        }
    }
}

/// A query about `what`, with a button that copies it and, if Prometheus is configured, a link.
pub(super) fn query(web: &Web, query: &str, what: &str) -> Markup {
    html! {
        code { (query) } " "
        button type="button" .copy hidden data-copy=(query) aria-label={ "Copy: " (what) } { "Copy" }
        @if let Some(at) = &web.prometheus_url {
            " " a href=(url::prometheus(at, query, false)) rel="noreferrer" aria-label={ "Open in Prometheus: " (what) } { "Open" }
        }
    }
}

/// The mark of the exporter: a counter that rises.
fn mark() -> Markup {
    html! { span .mark aria-hidden="true" { i {} i {} i {} } }
}
