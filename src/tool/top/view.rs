//! Filter, order and keys.

use std::cmp::Ordering;

use jiff::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::TableState;

use super::source::Answer;
use crate::tool::exporter::{Row, Summary};

/// A column to sort by.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Compares rows; the default order puts the most interesting row first.
    pub order: fn(&Row, &Row) -> Ordering,
}

/// The columns to sort by; the screen shows those that fit.
pub static COLUMNS: &[Column] = &[
    Column { name: "VERDICT", order: |a, b| gravity(a).cmp(&gravity(b)) },
    Column { name: "APP", order: |a, b| (&a.project, &a.id).cmp(&(&b.project, &b.id)) },
    Column { name: "STATUS", order: |a, b| a.status.cmp(&b.status) },
    Column { name: "REQ/MIN", order: |a, b| most(a.requests_per_minute, b.requests_per_minute) },
    Column { name: "P50", order: |a, b| most(a.response_time.p50, b.response_time.p50) },
    Column { name: "P90", order: |a, b| most(a.response_time.p90, b.response_time.p90) },
    Column { name: "P95", order: |a, b| most(a.response_time.p95, b.response_time.p95) },
    Column { name: "P99", order: |a, b| most(a.response_time.p99, b.response_time.p99) },
    Column { name: "REPLICAS", order: |a, b| most(a.max_replicas, b.max_replicas) },
    Column { name: "$/H", order: |a, b| most(a.dollars_per_replica_hour, b.dollars_per_replica_hour) },
];

/// Descending; missing values last.
fn most(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

fn gravity(row: &Row) -> usize {
    let order = ["problem", "warning", "waiting"];
    order.iter().position(|verdict| *verdict == row.verdict).unwrap_or(order.len())
}

/// The result of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The view goes on.
    Go,
    /// It ends.
    Quit,
}

/// The view and its state.
#[derive(Debug)]
pub struct View {
    /// Where rows come from.
    pub source: String,
    /// Whether colours are shown.
    pub color: bool,
    /// Only rows that contain this text are shown.
    pub filter: String,
    /// Whether keys go to the filter.
    pub typing: bool,
    /// Index into [`COLUMNS`].
    pub sort: usize,
    /// Whether the order is reversed.
    pub reverse: bool,
    /// Selection and scroll position.
    pub table: TableState,
    /// When rows were last received.
    pub answered: Option<Timestamp>,
    /// Why the last refresh failed; the rows are older.
    pub failure: Option<String>,
    /// The exporter's verdict with its reasons.
    pub summary: Summary,
    /// What covers the table.
    pub over: Over,
    rows: Vec<Row>,
}

/// What covers the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Over {
    /// Nothing.
    #[default]
    Nothing,
    /// The keys.
    Help,
    /// The details of the selected app.
    App,
}

/// Lines that page-up and page-down move by.
const PAGE: u16 = 10;

impl View {
    /// A view without rows yet.
    #[must_use]
    pub fn new(source: String, filter: String, color: bool) -> Self {
        Self {
            source,
            color,
            filter,
            typing: false,
            sort: 0,
            reverse: false,
            table: TableState::new().with_selected(0),
            answered: None,
            failure: None,
            summary: Summary::default(),
            over: Over::Nothing,
            rows: Vec::new(),
        }
    }

    /// Takes over new rows.
    pub fn answered(&mut self, answer: Answer) {
        match answer {
            Ok(shown) => {
                self.rows = shown.rows;
                self.summary = shown.summary;
                self.answered = Some(Timestamp::now());
                self.failure = None;
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// How many rows there are, shown or not.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// How many rows are not ok.
    #[must_use]
    pub fn unwell(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict != "ok").count()
    }

    /// The rows shown, in their order.
    #[must_use]
    pub fn shown(&self) -> Vec<&Row> {
        let wanted = self.filter.to_lowercase();
        let holds = |text: &str| text.to_lowercase().contains(&wanted);
        let mut rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| {
                holds(&row.project)
                    || holds(&row.id)
                    || holds(&row.verdict)
                    || row.status.as_deref().is_some_and(holds)
                    || row.problems.iter().any(|problem| holds(problem))
            })
            .collect();
        let by_name = |a: &Row, b: &Row| (&a.project, &a.id).cmp(&(&b.project, &b.id));
        if let Some(column) = COLUMNS.get(self.sort) {
            rows.sort_by(|a, b| {
                let order = (column.order)(a, b);
                if self.reverse { order.reverse() } else { order }.then_with(|| by_name(a, b))
            });
        }
        rows
    }

    /// The row selected, if there is one.
    #[must_use]
    pub fn selected(&self) -> Option<Row> {
        let shown = self.shown();
        self.table
            .selected()
            .and_then(|index| shown.get(index.min(shown.len().saturating_sub(1))))
            .map(|row| (*row).clone())
    }

    /// Handles a key.
    pub fn pressed(&mut self, key: KeyEvent) -> Next {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Next::Quit;
        }
        if self.typing {
            match key.code {
                KeyCode::Enter | KeyCode::Esc => self.typing = false,
                KeyCode::Backspace => drop(self.filter.pop()),
                KeyCode::Char(c) => self.filter.push(c),
                _ => {}
            }
            return Next::Go;
        }
        if self.over != Over::Nothing {
            match key.code {
                KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?') => self.over = Over::Nothing,
                KeyCode::Up => self.table.select_previous(),
                KeyCode::Down => self.table.select_next(),
                _ => {}
            }
            return Next::Go;
        }
        match key.code {
            KeyCode::Char('q') => return Next::Quit,
            KeyCode::Char('?' | 'h') => self.over = Over::Help,
            KeyCode::Enter if self.selected().is_some() => self.over = Over::App,
            KeyCode::Char('s') => self.sort = (self.sort + 1) % COLUMNS.len(),
            KeyCode::Char('S') => self.sort = (self.sort + COLUMNS.len() - 1) % COLUMNS.len(),
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up => self.table.select_previous(),
            KeyCode::Down => self.table.select_next(),
            KeyCode::PageUp => self.table.scroll_up_by(PAGE),
            KeyCode::PageDown => self.table.scroll_down_by(PAGE),
            KeyCode::Home => self.table.select_first(),
            KeyCode::End => self.table.select_last(),
            _ => {}
        }
        Next::Go
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Shown;
    use super::*;

    fn row(id: &str, verdict: &str, requests: Option<f64>) -> Row {
        Row { id: id.into(), verdict: verdict.into(), requests_per_minute: requests, ..Row::default() }
    }

    fn press(view: &mut View, keys: &str) -> Next {
        keys.chars().map(|c| view.pressed(KeyEvent::from(KeyCode::Char(c)))).last().unwrap()
    }

    #[test]
    fn rows_are_sorted_and_filtered_as_keys_say() {
        let mut view = View::new(String::new(), String::new(), false);
        let rows = vec![row("b", "ok", Some(5.0)), row("a", "ok", None), row("c", "problem", Some(9.0))];
        view.answered(Ok(Shown { rows, ..Shown::default() }));
        let shown = |view: &View| view.shown().iter().map(|row| row.id.clone()).collect::<String>();
        assert_eq!(shown(&view), "cab", "the gravest first");
        press(&mut view, "s");
        assert_eq!(shown(&view), "abc");
        press(&mut view, "ss");
        assert_eq!(shown(&view), "cba", "the most first, the unknown last");
        press(&mut view, "r");
        assert_eq!(shown(&view), "abc");
        press(&mut view, "/PROB");
        assert_eq!(shown(&view), "c");
        view.pressed(KeyEvent::from(KeyCode::Enter));
        assert_eq!(view.selected().map(|row| row.id), Some("c".to_owned()));
        view.pressed(KeyEvent::from(KeyCode::Enter));
        assert_eq!(view.over, Over::App);
        assert_eq!((press(&mut view, "q"), view.over), (Next::Go, Over::Nothing), "q closes what is over");
        press(&mut view, "?");
        assert_eq!(view.over, Over::Help);
        view.pressed(KeyEvent::from(KeyCode::Esc));
        assert_eq!(press(&mut view, "q"), Next::Quit);
    }

    #[test]
    fn a_failure_keeps_the_rows_and_is_shown() {
        let mut view = View::new(String::new(), String::new(), false);
        view.answered(Ok(Shown { rows: vec![row("a", "ok", None)], ..Shown::default() }));
        view.answered(Err("cannot connect".to_owned()));
        assert_eq!((view.count(), view.failure.as_deref()), (1, Some("cannot connect")));
    }
}
