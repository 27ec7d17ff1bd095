//! The catalogue as Markdown: every family is a row of a table.

use std::fmt::Write as _;

use super::family::Family;

/// The families of one module, with a heading.
#[derive(Clone, Debug)]
pub struct Group {
    /// The heading of the table.
    pub title: &'static str,
    /// Its families, in the order of the page.
    pub families: Vec<Family>,
}

/// Renders the groups as Markdown, one table each.
#[must_use]
pub fn render(groups: &[Group]) -> String {
    let mut out = String::new();
    for group in groups {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "### {}\n\n| family | type | labels | meaning |\n| --- | --- | --- | --- |",
            group.title
        );
        for family in &group.families {
            let labels = family.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(" ");
            let _ = writeln!(
                out,
                "| `{}` | {} | {labels} | {} |",
                family.name,
                family.kind.as_str(),
                cell(family.help)
            );
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
