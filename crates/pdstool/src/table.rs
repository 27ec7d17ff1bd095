//! A table before it is printed.

use std::borrow::Cow;

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
