//! Filter, order and keys.

use jiff::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::TableState;

use crate::exporter::ExporterStatus;
use pds_core::template::percent_encode;
use pds_diagnosis::columns::{COLUMNS, Column};
use pds_diagnosis::model::App;
use pds_diagnosis::verdict::Summary;

/// What an exporter answered, or the error as one sentence.
pub type Answer = Result<ExporterStatus, String>;

/// The columns to sort by: those that terminals show.
fn columns() -> Vec<&'static Column> {
    COLUMNS.iter().filter(|column| column.rank.is_some()).collect()
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The view goes on.
    Go,
    /// It goes on, with this text in the clipboard.
    Copy(String),
    /// It ends.
    Quit,
}

/// The view and its state.
#[derive(Debug, Default)]
pub struct View {
    /// The address that rows come from, without a slash at its end.
    pub source: String,
    /// Whether colours are shown.
    pub color: bool,
    /// Only rows that contain this text are shown.
    pub filter: String,
    /// Whether keys go to the filter.
    pub typing: bool,
    /// The column that orders the rows.
    pub sort: &'static Column,
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
    /// All rows, shown or not.
    pub rows: Vec<App>,
}

/// What covers the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Over {
    /// Nothing.
    #[default]
    Nothing,
    /// The keys.
    Help,
    /// The details of the selected app.
    App,
    /// A text that was copied, with its title.
    Copied(&'static str, String),
}

/// Lines that page-up and page-down move by.
const PAGE: u16 = 10;

impl View {
    /// A view without rows yet.
    pub fn new(source: String, filter: String, color: bool) -> Self {
        Self { source, color, filter, table: TableState::new().with_selected(0), ..Self::default() }
    }

    /// Takes over new rows.
    pub fn answered(&mut self, answer: Answer) {
        match answer {
            Ok(shown) => {
                self.rows = shown.apps;
                self.summary = shown.summary;
                self.answered = Some(Timestamp::now());
                self.failure = None;
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// The rows shown, in their order.
    pub fn shown(&self) -> Vec<&App> {
        let mut rows: Vec<&App> = self.rows.iter().filter(|row| row.holds(&self.filter)).collect();
        rows.sort_by(|a, b| {
            let order = self.sort.compare(*a, *b, self.reverse);
            order.then_with(|| (&a.project, &a.id).cmp(&(&b.project, &b.id)))
        });
        rows
    }

    /// The row selected, if there is one.
    pub fn selected(&self) -> Option<App> {
        let shown = self.shown();
        let index = self.table.selected()?.min(shown.len().saturating_sub(1));
        shown.get(index).map(|row| (*row).clone())
    }

    /// The column so many places after the present one.
    fn sorted_by_neighbour(&self, places: usize) -> &'static Column {
        let columns = columns();
        let place = columns.iter().position(|column| *column == self.sort).unwrap_or_default();
        columns.get((place + places) % columns.len()).copied().unwrap_or_default()
    }

    /// The address of an app's page.
    fn page(&self, app: &App) -> String {
        let mut url = format!("{}/apps/", self.source);
        percent_encode(&app.project, &mut url);
        url.push('/');
        percent_encode(&app.id, &mut url);
        url
    }

    fn copy(&mut self, title: &'static str, text: String) -> Next {
        self.over = Over::Copied(title, text.clone());
        Next::Copy(text)
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
        if self.over != Over::Nothing && !matches!(key.code, KeyCode::Up | KeyCode::Down) {
            if matches!(key.code, KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?')) {
                self.over = Over::Nothing;
            }
            return Next::Go;
        }
        match key.code {
            KeyCode::Char('q') => return Next::Quit,
            KeyCode::Char('?' | 'h') => self.over = Over::Help,
            KeyCode::Enter if self.selected().is_some() => self.over = Over::App,
            KeyCode::Char('o') => {
                if let Some(app) = self.selected() {
                    return self.copy("Page", self.page(&app));
                }
            }
            KeyCode::Char('c') => {
                if let Some(app) = self.selected() {
                    return self.copy("PromQL", format!("{{{}}}", app.selector()));
                }
            }
            KeyCode::Char('s') => self.sort = self.sorted_by_neighbour(1),
            KeyCode::Char('S') => self.sort = self.sorted_by_neighbour(columns().len() - 1),
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
    use super::*;
    use pds_diagnosis::cause::Verdict;

    fn row(id: &str, verdict: Verdict, requests_per_minute: Option<f64>) -> App {
        App { id: id.into(), verdict, requests_per_minute, ..App::default() }
    }

    fn status(apps: Vec<App>) -> ExporterStatus {
        ExporterStatus { apps, ..ExporterStatus::default() }
    }

    fn press(view: &mut View, keys: &str) -> Next {
        keys.chars().map(|c| view.pressed(KeyEvent::from(KeyCode::Char(c)))).last().unwrap()
    }

    #[test]
    fn rows_are_sorted_and_filtered_as_keys_say() {
        let mut view = View::new(String::new(), String::new(), false);
        let (ok, problem) = (Verdict::Ok, Verdict::Problem);
        let rows = vec![row("b", ok, Some(5.0)), row("a", ok, None), row("c", problem, Some(9.0))];
        view.answered(Ok(status(rows)));
        let shown = |view: &View| view.shown().iter().map(|row| &*row.id).collect::<String>();
        assert_eq!(shown(&view), "cab", "the gravest first");
        press(&mut view, "s");
        assert_eq!(shown(&view), "abc");
        press(&mut view, "sss");
        assert_eq!((view.sort.key, &*shown(&view)), ("requests", "cba"), "the most first, the unknown last");
        press(&mut view, "r");
        assert_eq!(shown(&view), "bca", "the unknown last");
        press(&mut view, "/PROB");
        assert_eq!(shown(&view), "c");
        view.pressed(KeyEvent::from(KeyCode::Enter));
        assert_eq!(view.selected().map(|row| row.id), Some("c".into()));
        view.pressed(KeyEvent::from(KeyCode::Enter));
        assert_eq!(view.over, Over::App);
        assert_eq!((press(&mut view, "q"), &view.over), (Next::Go, &Over::Nothing), "q closes what is over");
        press(&mut view, "?");
        assert_eq!(view.over, Over::Help);
        view.pressed(KeyEvent::from(KeyCode::Esc));
        assert_eq!(press(&mut view, "q"), Next::Quit);
    }

    #[test]
    fn the_page_and_the_series_of_an_app_are_copied() {
        let mut view = View::new("http://exporter/pds".to_owned(), String::new(), false);
        assert_eq!((press(&mut view, "o"), press(&mut view, "c")), (Next::Go, Next::Go), "no app, no copy");
        view.answered(Ok(status(vec![App { project: "p".into(), ..row("a/\"b", Verdict::Ok, None) }])));
        for (key, title, text) in [
            ("o", "Page", "http://exporter/pds/apps/p/a%2F%22b"),
            ("c", "PromQL", "{project=\"p\",app=\"a/\\\"b\"}"),
        ] {
            assert_eq!(press(&mut view, key), Next::Copy(text.to_owned()));
            assert_eq!(view.over, Over::Copied(title, text.to_owned()));
            press(&mut view, "q");
        }
    }

    #[test]
    fn a_failure_keeps_the_rows_and_is_shown() {
        let mut view = View::new(String::new(), String::new(), false);
        view.answered(Ok(status(vec![row("a", Verdict::Ok, None)])));
        view.answered(Err("cannot connect".to_owned()));
        assert_eq!((view.rows.len(), view.failure.as_deref()), (1, Some("cannot connect")));
    }
}
