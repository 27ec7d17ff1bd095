//! `/config`: the configuration in force, and where each value came from.

use maud::{Markup, html};

use crate::config::Explained;
use crate::status::Refused;

use super::format::ago;
use super::layout::Frame;

/// The page of the configuration.
pub(super) fn configuration(frame: Frame<'_>, explained: &[Explained], refused: Option<&Refused>) -> Markup {
    let exporter = &frame.status.exporter;
    html! {
        h1 { "Configuration in force" }
        p {
            @if let Some(loaded) = exporter.configuration_loaded { "Loaded " (ago(loaded, frame.now)) ". " }
            @if exporter.configuration_good == Some(false) {
                strong .bad { "The last attempt to load it again was refused; this is the one before." }
            }
        }
        @if let Some(refused) = refused {
            section .notice.refused aria-label="Refused configuration" {
                p { "Refused " (ago(refused.at, frame.now)) ":" }
                pre tabindex="0" role="region" aria-label="Why it was refused" { (refused.problems) }
            }
        }
        div .scroll tabindex="0" role="region" aria-label="Configuration" {
            table .configuration {
                caption { "Secrets are not shown. Flags override the environment, which overrides the file, which overrides the defaults." }
                thead { tr { th scope="col" { "Key" } th scope="col" { "Value" } th scope="col" { "From" } th scope="col" { "What it is" } } }
                tbody { @for row in explained {
                    tr {
                        th scope="row" { code { (row.key) } }
                        td { code { (row.value) } }
                        td { span class={ "origin " (row.origin) } { (row.origin) }
                            @if let Some(variable) = &row.variable { span .sub { (variable) } }
                        }
                        td .meaning { (row.help) }
                    }
                } }
            }
        }
    }
}
