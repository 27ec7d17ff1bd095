//! Facts, tables and bars as lines of text.

use std::io;

use crate::printable::plain;

use super::console::{BAR, Console, FAINT, STRONG};

/// A part of what a command shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// Lines as they are.
    Text(String),
    /// Names and values; empty values are left out.
    Facts(Vec<(&'static str, String)>),
    /// A table.
    Table(Table),
    /// (label, share 0..=1, text behind the bar)
    Bars(Vec<(String, f64, String)>),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Column names with their alignment.
    pub columns: Vec<(&'static str, Align)>,
    /// Their values.
    pub rows: Vec<Vec<String>>,
    /// The text for an empty table.
    pub empty: &'static str,
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// The width of the longest bar.
const BAR_WIDTH: usize = 40;

/// Writes `blocks` to standard output, headings with an empty line before them.
///
/// # Errors
/// If it cannot be written.
pub fn print(console: &mut Console, blocks: &[Block]) -> io::Result<()> {
    for (index, block) in blocks.iter().enumerate() {
        match block {
            Block::Heading(text) => {
                if index > 0 {
                    console.print("")?;
                }
                let text = console.styled(STRONG, &plain(text));
                console.print(&text)?;
            }
            Block::Text(text) => {
                for line in text.lines() {
                    console.print(&plain(line))?;
                }
            }
            Block::Facts(facts) => print_facts(console, facts)?,
            Block::Table(table) => print_table(console, table)?,
            Block::Bars(bars) => print_bars(console, bars)?,
        }
    }
    console.out.flush()
}

/// Writes `table` as comma-separated values (RFC 4180), the columns' names first.
///
/// # Errors
/// If it cannot be written.
pub fn print_csv(console: &mut Console, table: &Table) -> io::Result<()> {
    let quoted = |text: &str| match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let names = table.columns.iter().map(|(name, _)| quoted(name));
    console.print(&names.collect::<Vec<_>>().join(","))?;
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| quoted(&plain(cell))).collect();
        console.print(&cells.join(","))?;
    }
    console.out.flush()
}

/// Writes `value` as indented JSON. Control characters are escaped by JSON itself.
///
/// # Errors
/// If it cannot be written.
pub fn print_json(console: &mut Console, value: &serde_json::Value) -> io::Result<()> {
    console.print(&serde_json::to_string_pretty(value)?)?;
    console.out.flush()
}

fn print_facts(console: &mut Console, facts: &[(&'static str, String)]) -> io::Result<()> {
    let facts: Vec<_> = facts.iter().filter(|(_, value)| !value.is_empty()).collect();
    let width = facts.iter().map(|(name, _)| length(name)).max().unwrap_or(0);
    for (name, value) in facts {
        let name = console.styled(FAINT, &pad(name, width, Align::Left));
        console.print(&format!("{name}  {}", plain(value)))?;
    }
    Ok(())
}

fn print_table(console: &mut Console, table: &Table) -> io::Result<()> {
    if table.rows.is_empty() {
        return console.print(table.empty);
    }
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(|cell| plain(cell).into_owned()).collect()).collect();
    let widths: Vec<usize> = table
        .columns
        .iter()
        .enumerate()
        .map(|(column, (name, _))| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell));
            cells.chain([length(name)]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: &[String]| {
        let columns = cells.iter().zip(&widths).zip(&table.columns);
        let padded: Vec<String> =
            columns.map(|((cell, width), (_, align))| pad(cell, *width, *align)).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let names: Vec<String> = table.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let head = console.styled(FAINT, &line(&names));
    console.print(&head)?;
    for row in &rows {
        console.print(&line(row))?;
    }
    Ok(())
}

fn print_bars(console: &mut Console, bars: &[(String, f64, String)]) -> io::Result<()> {
    let labels = bars.iter().map(|(label, ..)| length(label)).max().unwrap_or(0);
    let texts = bars.iter().map(|(.., text)| length(text)).max().unwrap_or(0);
    let width = BAR_WIDTH.min(console.width.saturating_sub(labels + texts + 4)).max(8);
    for (label, share, text) in bars {
        let bar = console.styled(BAR, &pad(&bar(*share, width), width, Align::Left));
        let label = pad(&plain(label), labels, Align::Right);
        console.print(&format!("{label}  {bar}  {}", pad(text, texts, Align::Right)))?;
    }
    Ok(())
}

/// A bar of `share` of `width` columns, in eighths of one.
#[must_use]
pub fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let most = 8 * width;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a terminal's width"
    )]
    let eighths = ((share.clamp(0.0, 1.0) * most as f64).round() as usize).min(most);
    "█".repeat(eighths / 8) + EIGHTHS.get(eighths % 8).unwrap_or(&"")
}

fn pad(text: &str, width: usize, align: Align) -> String {
    let spaces = " ".repeat(width.saturating_sub(length(text)));
    match align {
        Align::Left => format!("{text}{spaces}"),
        Align::Right => format!("{spaces}{text}"),
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!((bar(0.0, 4), bar(1.0, 4), bar(2.0, 4)), (String::new(), "████".into(), "████".into()));
        assert_eq!(bar(0.5, 3), "█▌");
    }
}
