//! `/config`: the active configuration, and where each value came from.

use maud::{Markup, html};

use crate::status::Refused;
use pds_config::{Explained, Origin, toml};

use super::format::{ago, plural};
use super::layout::{self, Frame};

/// The page of the configuration, or only of the values that differ from the defaults.
pub(super) fn configuration(
    frame: Frame<'_>,
    explained: &[Explained],
    refused: Option<&Refused>,
    only_changed: bool,
) -> Markup {
    let exporter = &frame.status.exporter;
    let rows = explained.iter().filter(|row| !only_changed || row.origin != Origin::Default);
    let (projects, general): (Vec<&Explained>, Vec<&Explained>) =
        rows.partition(|row| project_of(&row.key).is_some());
    let of_one = |one: &&Explained, other: &&Explained| project_of(&one.key) == project_of(&other.key);
    html! {
        div .bar {
            h1 { "Active configuration" }
            form .filter method="get" action=(frame.links.to("/config")) aria-label="Configuration" {
                label .check { input type="checkbox" name="changed" value="1" checked[only_changed]; span { "changed only" } }
                button type="submit" { "Show" }
            }
        }
        p {
            @if let Some(loaded) = exporter.configuration_loaded { "Loaded " (ago(loaded, frame.now)) ". " }
            @if exporter.configuration_good == Some(false) {
                strong .bad { "The last reload was refused; this is the previous configuration." }
            }
        }
        @if let Some(refused) = refused {
            section .notice.refused aria-label="Refused configuration" {
                p { "Refused " (ago(refused.at, frame.now)) ":" }
                pre tabindex="0" role="region" aria-label="Why it was refused" { (refused.problems) }
            }
        }
        (table(&general, "Configuration", "Secrets are not shown. Flags override the environment, which overrides the file, which overrides the defaults; only log.level overrides its flag."))
        @if !projects.is_empty() {
            h2 .apart { "Projects" }
            @for keys in projects.chunk_by(of_one) { (project(keys)) }
        }
        h2 .apart { "As a file" }
        details .reply {
            summary { "Values that differ from the defaults, as TOML" }
            button type="button" .copy hidden { "Copy" }
            pre tabindex="0" role="region" aria-label="Configuration as TOML" { (toml(explained)) }
        }
    }
}

/// The project that a key belongs to: `projects[0]`, after the name of an included file.
fn project_of(key: &str) -> Option<&str> {
    let at = key.find("projects[")?;
    let end = key.get(at..)?.find(']')?;
    key.get(..=at + end)
}

fn project(keys: &[&Explained]) -> Markup {
    let name = keys.first().and_then(|row| project_of(&row.key)).unwrap_or_default();
    let id = keys.iter().find(|row| row.key.strip_prefix(name) == Some(".id"));
    html! {
        details .reply data-key=(name) {
            summary { code { (id.map_or(name, |row| row.value.as_str())) } " " span .sub { (name) ", " (plural(keys.len(), "key", "keys")) } }
            (table(keys, &format!("Keys of {name}"), name))
        }
    }
}

fn table(rows: &[&Explained], label: &str, caption: &str) -> Markup {
    let bodies = html! {
        tbody role="rowgroup" {
            @for row in rows {
                tr role="row" {
                    th scope="row" role="rowheader" { code { (row.key) } }
                    td .beside role="cell" { code { (row.value) } }
                    td .beside role="cell" { span class={ "origin " (row.origin.as_str()) } { (row.origin.as_str()) }
                        @if let Some(variable) = &row.variable { span .sub { (variable) } }
                    }
                    td .meaning role="cell" { (row.help) }
                }
            }
            @if rows.is_empty() { tr role="row" { td colspan="4" .none role="cell" { "No value differs from its default." } } }
        }
    };
    let titles = ["Key", "Value", "From", "What it is"];
    layout::table("configuration cards", label, html! { caption { (caption) } }, &titles, bodies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_belongs_to_its_project_in_its_file() {
        for (key, project) in [
            ("projects[12].apps[3].id", Some("projects[12]")),
            ("teams/a.toml: projects[0].id", Some("teams/a.toml: projects[0]")),
            ("poll.interval", None),
        ] {
            assert_eq!(project_of(key), project);
        }
    }
}
