//! Tables, and how they fit in the width of a terminal: how wide each column becomes, and where its cells are cut.

use std::borrow::Cow;
use std::collections::BTreeSet;

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
    /// Ids, which are cut where they are the same.
    Id,
    /// A verdict or the state of a finding.
    State,
    /// Numbers.
    Right,
}

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

/// The columns of a terminal that `text` takes.
pub fn length(text: &str) -> usize {
    text.chars().count()
}

/// The least width of a column of text.
const MIN_WIDTH: usize = 8;

/// The least width of the last column of text, which says what is wrong.
const READABLE: usize = 24;

/// The least width of a column of ids, unless they need more to differ.
const ID_WIDTH: usize = 16;

/// The space between two columns.
const GAP: usize = 2;

/// The width of each column's longest cell.
fn whole(table: &Table) -> Vec<usize> {
    let width = |(column, (name, _)): (usize, &(Cow<'_, str>, Align))| {
        let cells = table.rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell));
        cells.fold(length(name), usize::max)
    };
    table.columns.iter().enumerate().map(width).collect()
}

/// The least width of each column at which its cells can be read; the first is never cut.
fn least(table: &Table) -> Vec<usize> {
    let last = table.columns.iter().rposition(|(_, align)| *align == Align::Left);
    let width = |(column, whole): (usize, usize)| match table.columns.get(column).map(|(_, align)| align) {
        _ if column == 0 => whole,
        Some(Align::Id) => distinct_width(&cells(table, column), whole).max(whole.min(ID_WIDTH)),
        Some(Align::Left) if Some(column) == last => whole.min(READABLE),
        Some(Align::Left | Align::State) => whole.min(MIN_WIDTH),
        Some(Align::Right) | None => whole,
    };
    whole(table).into_iter().enumerate().map(width).collect()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Whether the table can be read in `width` columns.
pub fn fits(table: &Table, width: usize) -> bool {
    total(&least(table)) <= width
}

/// Widths of the columns: whole, or narrowed until all fit into `width`, the last first.
pub(super) fn widths(table: &Table, width: Option<usize>) -> Vec<usize> {
    let mut widths = whole(table);
    let Some(mut excess) = width.and_then(|width| total(&widths).checked_sub(width)).filter(|it| *it > 0)
    else {
        return widths;
    };
    for least in [least(table), vec![MIN_WIDTH; widths.len()]] {
        let columns = widths.iter_mut().zip(least).zip(&table.columns).skip(1).rev();
        for ((column, least), _) in columns.filter(|(_, (_, align))| *align != Align::Right) {
            let less = excess.min(column.saturating_sub(least));
            *column -= less;
            excess -= less;
        }
    }
    widths
}

/// The cells of a column.
pub(super) fn cells(table: &Table, column: usize) -> Vec<&str> {
    table.rows.iter().filter_map(|row| row.get(column)).map(String::as_str).collect()
}

/// `text` in at most `width` columns, with a mark where it was cut.
pub(crate) fn shortened(text: &str, width: usize) -> Cow<'_, str> {
    if length(text) <= width {
        return text.into();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The least width at which different ids stay different.
fn distinct_width(ids: &[&str], whole: usize) -> usize {
    let (mut low, mut high) = (MIN_WIDTH.min(whole), whole);
    while low < high {
        let middle = usize::midpoint(low, high);
        if distinct_ids(ids, middle).is_some() { high = middle } else { low = middle + 1 }
    }
    high
}

/// `ids` in at most `width` columns, cut where they are the same.
pub(super) fn shortened_ids<'a>(ids: &[&'a str], width: usize) -> Vec<Cow<'a, str>> {
    distinct_ids(ids, width).unwrap_or_else(|| {
        let shared = shared(ids, |id| Box::new(id.chars()));
        ids.iter().map(|id| after_shared(id, width, shared)).collect()
    })
}

/// The same; `None` if different ids become equal. Each id is cut at the end of the shared beginning, or all at one
/// place, perhaps without their shared end.
fn distinct_ids<'a>(ids: &[&'a str], width: usize) -> Option<Vec<Cow<'a, str>>> {
    let count = ids.iter().collect::<BTreeSet<_>>().len();
    let is_distinct = |cut: &Vec<Cow<'_, str>>| cut.iter().collect::<BTreeSet<_>>().len() == count;
    let start = shared(ids, |id| Box::new(id.chars()));
    let end = shared(ids, |id| Box::new(id.chars().rev()));
    let first: Vec<_> = ids.iter().map(|id| after_shared(id, width, start)).collect();
    if is_distinct(&first) {
        return Some(first);
    }
    let places = [4, 2, 6, 7].map(|eighths| width * eighths / 8);
    let cuts = [0, end].into_iter().flat_map(|end| places.map(|start| (start, end)));
    let cut = |(start, end)| ids.iter().map(|id| cut_at(id, width, start, end)).collect();
    cuts.map(cut).find(is_distinct)
}

/// The number of characters that all ids share, read in this direction.
fn shared<'a>(ids: &[&'a str], read: impl Fn(&'a str) -> Box<dyn Iterator<Item = char> + 'a>) -> usize {
    let Some((first, others)) = ids.split_first() else { return 0 };
    let shared = |id: &&'a str| read(first).zip(read(id)).take_while(|(a, b)| a == b).count();
    others.iter().map(shared).min().unwrap_or(0)
}

/// An id in at most `width` columns, cut at the end of the `shared` beginning.
fn after_shared(id: &str, width: usize, shared: usize) -> Cow<'_, str> {
    const MIN_START: usize = 2;
    let less = (length(id) + 1).saturating_sub(width.max(1));
    cut_at(id, width, shared.saturating_sub(less).max(MIN_START), 0)
}

/// An id in at most `width` columns: `start` characters and its last, except `end`.
fn cut_at(id: &str, width: usize, start: usize, end: usize) -> Cow<'_, str> {
    let count = length(id);
    if count <= width {
        return id.into();
    }
    let room = width.saturating_sub(1 + usize::from(end > 0));
    let start = start.min(room);
    let kept = count - end.min(count);
    let rest = kept.saturating_sub(room - start).max(start);
    let middle = (rest > start).then_some('…');
    let tail = id.chars().take(kept).skip(rest);
    id.chars().take(start).chain(middle).chain(tail).chain((end > 0).then_some('…')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cut_where_they_are_the_same() {
        for (id, width, shared, cut) in [
            ("p-vbq86i12-ranker", 17, 11, "p-vbq86i12-ranker"),
            ("p-vbq86i12-ranker", 12, 11, "p-vbq…ranker"),
            ("p-vbq86i12-ranker", 8, 11, "p-…anker"),
            ("p-1a2b3c-embed", 10, 2, "p-…c-embed"),
            ("ranker", 1, 0, "…"),
        ] {
            assert_eq!(after_shared(id, width, shared), cut);
        }
        let [one, two] = ["p-vbq86i4m", "p-lsvmo7ah"]
            .map(|project| ["1", "2"].map(|zone| format!("{project}-recommendations-eu-{zone}-production")));
        for (ids, width, cut) in [
            ([&one[0], &two[0]], 12, ["p-vbq8…ction", "p-lsvm…ction"]),
            ([&one[0], &one[1]], 12, ["p-vbq8…eu-1…", "p-vbq8…eu-2…"]),
        ] {
            assert_eq!(shortened_ids(&ids.map(String::as_str), width), cut);
        }
    }
}
