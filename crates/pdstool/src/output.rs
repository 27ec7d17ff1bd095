//! Command output: facts and tables for people, JSON and CSV for programs.

use std::borrow::Cow;
use std::io;

use serde_json::{Map, Value};

use pds_core::printable::{is_terminal_control, plain};

use super::console::{Console, FAINT, STRONG, style_of};
use super::options::OutputFormat;
use super::table;
pub use super::table::{Align, Table, columns, length};

/// A part of a command's output.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// Unchanged lines.
    Text(String),
    /// Names and values; empty values are omitted.
    Facts(Vec<(&'static str, String)>),
    /// A table.
    Table(Table),
}

/// Writes `blocks` to standard output, with an empty line before headings; tables are `cut` to the terminal if set.
fn print(console: &mut Console, blocks: &[Block], cut: bool) -> io::Result<()> {
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
            Block::Table(table) => print_table(console, table, cut)?,
        }
    }
    console.out.flush()
}

/// Writes `blocks` in this format. For people, tables are cut to the terminal, except in `wide`; programs get only
/// facts and tables.
///
/// # Errors
/// If it cannot be written.
pub fn print_as(console: &mut Console, format: OutputFormat, blocks: &[Block]) -> io::Result<()> {
    match format {
        OutputFormat::Table | OutputFormat::Wide => {
            let cut = console.cut && format == OutputFormat::Table;
            print(console, blocks, cut)
        }
        OutputFormat::Json => print_json(console, &json(blocks)),
        OutputFormat::Csv => match blocks.iter().find_map(as_table) {
            Some(table) => print_csv(console, table),
            None => {
                let facts = blocks.iter().flat_map(as_facts);
                let rows: Vec<_> =
                    facts.map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
                print_csv_rows(console, &["FIELD", "VALUE"], &rows)
            }
        },
    }
}

fn as_facts(block: &Block) -> &[(&'static str, String)] {
    if let Block::Facts(facts) = block { facts } else { &[] }
}

fn as_table(block: &Block) -> Option<&Table> {
    if let Block::Table(table) = block { Some(table) } else { None }
}

/// Facts by their names, and tables as lists of objects. Right-aligned columns hold numbers.
fn json(blocks: &[Block]) -> Value {
    let key = |name: &str| name.to_lowercase().replace("/min", "_per_minute").replace([' ', '/'], "_");
    let value = |align: Align, cell: &str| match (cell.parse::<i64>(), cell.parse::<f64>()) {
        (Ok(number), _) if align == Align::Right => Value::from(number),
        (_, Ok(number)) if align == Align::Right && number.is_finite() => Value::from(number),
        _ if align == Align::Right && cell.is_empty() => Value::Null,
        _ => Value::from(cell),
    };
    let object = |table: &Table, row: &Vec<String>| {
        let cells = table.columns.iter().zip(row);
        cells.map(|((name, align), cell)| (key(name), value(*align, cell))).collect::<Map<_, _>>()
    };
    let facts = blocks.iter().flat_map(as_facts);
    let mut fields: Map<_, _> = facts.map(|(name, value)| (key(name), Value::from(&**value))).collect();
    let mut tables = blocks.iter().filter_map(as_table).peekable();
    if tables.peek().is_some() {
        let rows = tables.flat_map(|table| table.rows.iter().map(move |row| object(table, row)));
        fields.insert("rows".to_owned(), rows.collect());
    }
    fields.into()
}

/// Writes `table` as comma-separated values (RFC 4180), the columns' names first.
///
/// # Errors
/// If it cannot be written.
pub fn print_csv(console: &mut Console, table: &Table) -> io::Result<()> {
    let names = table.columns.iter().map(|(name, _)| name.to_lowercase().replace(' ', "_"));
    print_csv_rows(console, &names.collect::<Vec<_>>(), &table.rows)
}

/// Like [`print_csv`], for rows with these names.
///
/// # Errors
/// If they cannot be written.
pub fn print_csv_rows<N: AsRef<str>>(
    console: &mut Console,
    names: &[N],
    rows: &[Vec<String>],
) -> io::Result<()> {
    print_csv_row(console, names)?;
    rows.iter().try_for_each(|row| print_csv_row(console, row))?;
    console.out.flush()
}

fn print_csv_row<C: AsRef<str>>(console: &mut Console, cells: &[C]) -> io::Result<()> {
    let is_terminal = console.out_is_terminal;
    let cells = cells.iter().map(|cell| quoted(cell.as_ref(), is_terminal));
    console.print(&cells.collect::<Vec<_>>().join(","))
}

/// A cell of CSV.
fn quoted(cell: &str, is_terminal: bool) -> String {
    // A carriage return hides text on a terminal.
    let stays = |c: char| matches!(c, '\n' | '\t') || (c == '\r' && !is_terminal);
    match cell.replace(|c| is_terminal_control(c) && !stays(c), "\u{fffd}") {
        text if text.contains(['"', ',', '\n', '\r']) => format!("\"{}\"", text.replace('"', "\"\"")),
        text => text,
    }
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
        let name = console.styled(FAINT, &format!("{name:<width$}"));
        console.print(&format!("{name}  {}", plain(value)))?;
    }
    Ok(())
}

fn print_table(console: &mut Console, table: &Table, cut: bool) -> io::Result<()> {
    if table.rows.is_empty() {
        return console.print(table.empty);
    }
    let name = |(name, align): &(Cow<'static, str>, Align)| (plain(name).into_owned().into(), *align);
    let table = &Table {
        columns: table.columns.iter().map(name).collect(),
        rows: table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| plain(cell).into_owned()).collect())
            .collect(),
        empty: "",
    };
    let widths = table::widths(table, cut.then_some(console.width));
    let mut ids: Vec<_> = widths
        .iter()
        .zip(&table.columns)
        .enumerate()
        .map(|(column, (width, (_, align)))| {
            let is_id = *align == Align::Id;
            is_id.then(|| table::shortened_ids(&table::cells(table, column), *width).into_iter())
        })
        .collect();
    let names: Vec<String> = table.columns.iter().map(|(name, _)| name.to_string()).collect();
    for (index, line) in std::iter::once(&names).chain(&table.rows).enumerate() {
        let cells = line.iter().zip(&widths).zip(table.columns.iter().zip(&mut ids));
        let cells = cells.map(|((cell, width), ((_, align), ids))| {
            let id = ids.as_mut().filter(|_| index > 0).and_then(Iterator::next);
            let text = id.unwrap_or_else(|| table::shortened(cell, *width));
            // The formatter pads to 65,535 columns at most.
            let spaces = " ".repeat(width.saturating_sub(length(&text)));
            match align {
                Align::Right => format!("{spaces}{text}"),
                Align::State if index > 0 => console.styled(style_of(cell), &text) + &spaces,
                _ => format!("{text}{spaces}"),
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let line = line.trim_end();
        let line = if index == 0 { &*console.styled(FAINT, line) } else { line };
        console.print(line)?;
    }
    Ok(())
}

/// A bar of `share` of `width` columns, in eighths of a column.
pub fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let most = 8 * width;
    #[expect(clippy::cast_possible_truncation, reason = "a share of a terminal's width")]
    let eighths = ((share.clamp(0.0, 1.0) * most as f64).round() as usize).min(most);
    "█".repeat(eighths / 8) + EIGHTHS.get(eighths % 8).unwrap_or(&"")
}

/// `text` with its first letter in upper case.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_in_json() {
        let columns = columns([("ID", Align::Left), ("REQUESTS/MIN", Align::Right)]);
        let rows = vec![vec!["1".to_owned(), "4.5".to_owned()], vec!["2".to_owned(), String::new()]];
        let blocks = [
            Block::Facts(vec![("rate limit", "3".to_owned())]),
            Block::Table(Table { columns, rows, empty: "" }),
        ];
        let expected = serde_json::json!({
            "rate_limit": "3",
            "rows": [{ "id": "1", "requests_per_minute": 4.5 }, { "id": "2", "requests_per_minute": null }]
        });
        assert_eq!(json(&blocks), expected);
    }

    #[test]
    fn cells_that_hold_what_separates_cells_or_rows_are_quoted() {
        for separator in [",", "\"", "\n", "\r"] {
            let cell = quoted(&format!("a{separator}b"), false);
            assert!(cell.starts_with("\"a") && cell.ends_with("b\""), "{cell:?}");
        }
        assert_eq!((&*quoted("a\tb", false), &*quoted("a\rb", true)), ("a\tb", "a\u{fffd}b"));
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!((bar(0.0, 4), bar(1.0, 4), bar(2.0, 4)), (String::new(), "████".into(), "████".into()));
        assert_eq!(bar(0.5, 3), "█▌");
    }
}
