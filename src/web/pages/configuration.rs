//! `/config`: the configuration in force, and where each value came from.

use maud::{Markup, html};

use crate::config::keys::Key;
use crate::config::{Explained, Origin};

use super::format::ago;
use super::layout::Frame;

/// The page of the configuration.
pub(super) fn configuration(frame: Frame<'_>, explained: &[Explained]) -> Markup {
    let exporter = &frame.status.exporter;
    html! {
        h1 { "Configuration in force" }
        p {
            @if let Some(loaded) = exporter.configuration_loaded { "Loaded " (ago(loaded, frame.now)) ". " }
            @if exporter.configuration_good == Some(false) {
                strong .bad { "The last attempt to load it again was refused; this is the one before." }
            }
        }
        div .scroll tabindex="0" role="region" aria-label="Configuration" {
            table .configuration {
                caption { "Secrets are not shown. The environment goes before the file, the file before the defaults." }
                thead { tr { th scope="col" { "Key" } th scope="col" { "Value" } th scope="col" { "From" } th scope="col" { "What it is" } } }
                tbody { @for row in explained {
                    @let key = Key::find(&declared(&row.key));
                    tr {
                        th scope="row" { code { (row.key) } }
                        td { code { (row.value) } }
                        td { span class={ "origin " (row.origin) } { (row.origin) }
                            @if row.origin == Origin::Environment {
                                @if let Some(name) = key.and_then(Key::environment_name) { span .sub { (name) } }
                            }
                        }
                        td .meaning { (key.map_or("", |key| key.why)) }
                    }
                } }
            }
        }
    }
}

/// The declared path of a key: `projects[0].id` is `projects[].id`.
fn declared(key: &str) -> String {
    let mut path = String::with_capacity(key.len());
    let mut inside = false;
    for c in key.chars() {
        inside = (inside || c == '[') && c != ']';
        if !inside || c == '[' {
            path.push(c);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_lists_have_their_declaration() {
        assert_eq!(declared("projects[0].apps[12].id"), "projects[].apps[].id");
        assert!(Key::find(&declared("projects[3].labels")).is_some());
        assert_eq!(declared("api.base_url"), "api.base_url");
    }
}
