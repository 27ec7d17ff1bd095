//! Facts, tables and bars as lines of text.

use std::borrow::Cow;
use std::io;

use serde_json::{Map, Value};

use pds_core::printable::{is_terminal_control, plain};

use super::console::{BAR, Console, FAINT, STRONG, style_of};
use super::options::OutputFormat;

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
    /// (label, share 0..=1, text behind the bar)
    Bars(Vec<(String, f64, String)>),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Column names with their alignment.
    pub columns: Vec<(Cow<'static, str>, Align)>,
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
    /// Ids, which are cut within their shared beginning.
    Id,
    /// A verdict or the state of a finding.
    State,
    /// Numbers.
    Right,
}

/// The width of the longest bar.
const BAR_WIDTH: usize = 40;

impl Table {
    /// A table of texts.
    pub fn of_texts<const N: usize>(
        names: [&'static str; N],
        rows: impl IntoIterator<Item = Vec<String>>,
        empty: &'static str,
    ) -> Self {
        let columns = columns(names.map(|name| (name, Align::Left)));
        Self { columns, rows: rows.into_iter().collect(), empty }
    }
}

/// Columns with names that do not depend on the data.
pub fn columns<const N: usize>(columns: [(&'static str, Align); N]) -> Vec<(Cow<'static, str>, Align)> {
    columns.map(|(name, align)| (Cow::Borrowed(name), align)).to_vec()
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
            Block::Bars(bars) => print_bars(console, bars)?,
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
    let value = |align: Align, cell: &str| match cell.parse::<f64>() {
        Ok(number) if align == Align::Right && number.is_finite() => Value::from(number),
        _ => Value::from(cell),
    };
    let object = |table: &Table, row: &Vec<String>| {
        let cells = table.columns.iter().zip(row);
        cells.map(|((name, align), cell)| (key(name), value(*align, cell))).collect::<Map<_, _>>()
    };
    let facts = blocks.iter().flat_map(as_facts);
    let mut fields: Map<_, _> = facts.map(|(name, value)| (key(name), Value::from(&**value))).collect();
    let tables = blocks.iter().filter_map(as_table);
    let rows: Vec<_> =
        tables.flat_map(|table| table.rows.iter().map(move |row| object(table, row))).collect();
    if !rows.is_empty() {
        fields.insert("rows".to_owned(), rows.into());
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
    // A carriage return hides text on a terminal.
    let is_terminal = console.out_is_terminal;
    let stays = |c: char| matches!(c, '\n' | '\t') || (c == '\r' && !is_terminal);
    let quoted = |cell: &C| match cell.as_ref().replace(|c| is_terminal_control(c) && !stays(c), "\u{fffd}") {
        text if text.contains(['"', ',', '\n', '\r']) => format!("\"{}\"", text.replace('"', "\"\"")),
        text => text,
    };
    console.print(&cells.iter().map(quoted).collect::<Vec<_>>().join(","))
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
    let names: Vec<Cow<'_, str>> = table.columns.iter().map(|(name, _)| plain(name)).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect());
    let lines: Vec<Vec<Cow<'_, str>>> = std::iter::once(names).chain(rows).collect();
    let mut widths = vec![0; table.columns.len()];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = length(cell).max(*width);
        }
    }
    if cut {
        shrink(&mut widths, &table.columns, console.width);
    }
    let shared: Vec<usize> = (0..widths.len()).map(|column| shared_start(&lines, column)).collect();
    for (index, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(&widths).zip(table.columns.iter().zip(&shared));
        let cells = cells.map(|((cell, width), ((_, align), shared))| {
            let text = match align {
                Align::Id => shortened_id(cell, *width, *shared),
                _ => shortened(cell, *width),
            };
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

/// Narrows columns of text until all fit into `width`: the last first, the first never.
fn shrink(widths: &mut [usize], columns: &[(Cow<'static, str>, Align)], width: usize) {
    const MIN_WIDTH: usize = 8;
    let mut excess =
        (widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)).saturating_sub(width);
    for (column, (_, align)) in widths.iter_mut().zip(columns).skip(1).rev() {
        if *align != Align::Right {
            let less = excess.min(column.saturating_sub(MIN_WIDTH));
            *column -= less;
            excess -= less;
        }
    }
}

/// `text` in at most `width` columns, with a mark where it was cut.
pub(crate) fn shortened(text: &str, width: usize) -> Cow<'_, str> {
    if length(text) <= width {
        return text.into();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The length of the shared beginning of all cells of a column, without its heading.
fn shared_start(lines: &[Vec<Cow<'_, str>>], column: usize) -> usize {
    let mut cells = lines.iter().skip(1).filter_map(|line| line.get(column));
    let Some(first) = cells.next() else { return 0 };
    let shared = |cell: &Cow<'_, str>| first.chars().zip(cell.chars()).take_while(|(a, b)| a == b).count();
    cells.map(shared).min().unwrap_or(0)
}

/// An id in at most `width` columns, cut at the end of the `shared` beginning.
fn shortened_id(text: &str, width: usize, shared: usize) -> Cow<'_, str> {
    const MIN_START: usize = 2;
    let count = length(text);
    if count <= width {
        return text.into();
    }
    let less = count + 1 - width.max(1);
    let start = shared.saturating_sub(less).max(MIN_START).min(width.saturating_sub(1));
    text.chars().take(start).chain(['…']).chain(text.chars().skip(start + less)).collect()
}

fn print_bars(console: &mut Console, bars: &[(String, f64, String)]) -> io::Result<()> {
    let labels = bars.iter().map(|(label, ..)| length(label)).max().unwrap_or(0);
    let texts = bars.iter().map(|(.., text)| length(text)).max().unwrap_or(0);
    let width = BAR_WIDTH.min(console.width.saturating_sub(labels + texts + 4)).max(8);
    for (label, share, text) in bars {
        let bar = console.styled(BAR, &format!("{:<width$}", bar(*share, width)));
        console.print(&format!("{:>labels$}  {bar}  {text:>texts$}", plain(label)))?;
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

/// The columns of a terminal that `text` takes.
pub(crate) fn length(text: &str) -> usize {
    text.chars().count()
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
            "rows": [{ "id": "1", "requests_per_minute": 4.5 }, { "id": "2", "requests_per_minute": "" }]
        });
        assert_eq!(json(&blocks), expected);
    }

    #[test]
    fn ids_are_cut_where_they_are_the_same() {
        for (id, width, shared, cut) in [
            ("p-vbq86i12-ranker", 17, 11, "p-vbq86i12-ranker"),
            ("p-vbq86i12-ranker", 12, 11, "p-vbq…ranker"),
            ("p-vbq86i12-ranker", 8, 11, "p-…anker"),
            ("p-1a2b3c-embed", 10, 2, "p-…c-embed"),
            ("ranker", 1, 0, "…"),
        ] {
            assert_eq!(shortened_id(id, width, shared), cut);
        }
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!((bar(0.0, 4), bar(1.0, 4), bar(2.0, 4)), (String::new(), "████".into(), "████".into()));
        assert_eq!(bar(0.5, 3), "█▌");
    }
}
