//! The screen: a line about the source, the table, the selected app's problem, the keys.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table};

use crate::printable::plain;
use crate::units;

use super::view::{COLUMNS, View};
use crate::tool::exporter::Row;

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let [head, table, problem, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    // A table without rows loses its selection.
    if view.table.selected().is_none() {
        view.table.select_first();
    }
    frame.render_widget(Paragraph::new(title(view)), head);
    let problem_text = view.selected().map(|row| row.problems.join("; ")).unwrap_or_default();
    let style = paint(view, Color::Yellow);
    frame.render_widget(Paragraph::new(plain(&problem_text)).style(style), problem);
    frame.render_widget(Paragraph::new(foot(view)), keys);
    let apps = apps(view);
    frame.render_stateful_widget(apps, table, &mut view.table);
}

fn paint(view: &View, color: Color) -> Style {
    if view.color { Style::new().fg(color) } else { Style::new() }
}

/// The source, the number of rows, and their age.
fn title(view: &View) -> Line<'static> {
    let shown = view.shown().len();
    let count = if shown == view.count() {
        format!("{shown} apps")
    } else {
        format!("{shown} of {} apps", view.count())
    };
    let age = match view.answered {
        Some(time) => {
            let seconds = Timestamp::now().duration_since(time).as_secs().max(0);
            format!("{seconds} s ago")
        }
        None => "nothing yet".to_owned(),
    };
    let mut spans = vec![Span::raw(format!("{}  {count}  {age}", plain(&view.source)))];
    if let Some(failure) = &view.failure {
        let style = paint(view, Color::Red).add_modifier(Modifier::BOLD);
        spans.push(Span::styled(format!("  {}", plain(failure)), style));
    }
    Line::from(spans)
}

fn foot(view: &View) -> Line<'static> {
    let filter = match (view.typing, &*view.filter) {
        (true, filter) => format!("filter: {filter}_"),
        (false, "") => "/ filter".to_owned(),
        (false, filter) => format!("/ filter: {filter} (Esc clears)"),
    };
    let text = format!("q quit  s sort  r reverse  {filter}");
    Line::styled(text, Style::new().add_modifier(Modifier::DIM))
}

fn apps(view: &View) -> Table<'static> {
    let names = COLUMNS.iter().enumerate().map(|(index, column)| {
        let mark = match (index == view.sort, view.reverse) {
            (true, false) => "▼",
            (true, true) => "▲",
            (false, _) => "",
        };
        let text = Text::from(format!("{}{mark}", column.name));
        Cell::from(text.alignment(if index < 2 { Alignment::Left } else { Alignment::Right }))
    });
    let head = TableRow::new(names).style(Style::new().add_modifier(Modifier::BOLD));
    let rows: Vec<TableRow<'static>> = view.shown().into_iter().map(|row| line(view, row)).collect();
    let widths = [
        Constraint::Fill(3),
        Constraint::Max(14),
        Constraint::Length(9),
        Constraint::Length(11),
        Constraint::Length(11),
        Constraint::Length(11),
        Constraint::Length(11),
        Constraint::Length(10),
        Constraint::Length(8),
    ];
    Table::new(rows, widths)
        .header(head)
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

fn line(view: &View, row: &Row) -> TableRow<'static> {
    let color = match &*row.verdict {
        "problem" => Color::Red,
        "warning" => Color::Yellow,
        "ok" => Color::Green,
        _ => Color::Gray,
    };
    let replicas = match (row.min_replicas, row.max_replicas) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (min, max) => min.or(max).map(|count| count.to_string()).unwrap_or_default(),
    };
    let time = |seconds: Option<f64>| seconds.map(units::seconds).unwrap_or_default();
    let cost = row.dollars_per_replica_hour.map(|dollars| format!("{dollars:.2}")).unwrap_or_default();
    let status = row.status.clone().unwrap_or_else(|| row.verdict.clone());
    let numbers = [
        row.requests_per_minute.map(units::number).unwrap_or_default(),
        time(row.response_time.p50),
        time(row.response_time.p90),
        time(row.response_time.p95),
        time(row.response_time.p99),
        replicas,
        cost,
    ];
    let mut cells = vec![
        Cell::from(plain(&row.id).into_owned()),
        Cell::from(plain(&status).into_owned()).style(paint(view, color)),
    ];
    cells.extend(numbers.map(|text| Cell::from(Text::from(text).alignment(Alignment::Right))));
    TableRow::new(cells)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::tool::exporter::Percentiles;

    #[test]
    fn the_screen_shows_status_requests_percentiles_and_cost() {
        let mut view = View::new("http://127.0.0.1:10090/".to_owned(), String::new(), true);
        let response_time = Percentiles { p50: Some(0.0123), p90: None, p95: Some(1.5), p99: Some(75.0) };
        let ranker = Row {
            id: "p-1-ranker".into(),
            status: Some("active".into()),
            verdict: "ok".into(),
            requests_per_minute: Some(123.4),
            response_time,
            min_replicas: Some(0.0),
            max_replicas: Some(5.0),
            dollars_per_replica_hour: Some(0.432),
            ..Row::default()
        };
        let broken = Row {
            id: "p-1-\u{1b}broken".into(),
            verdict: "problem".into(),
            problems: vec!["no such app".into()],
            ..Row::default()
        };
        view.answered(Ok(vec![ranker, broken]));
        let mut terminal = Terminal::new(TestBackend::new(110, 6)).unwrap();
        terminal.draw(|frame| draw(frame, &mut view)).unwrap();
        let screen = terminal.backend().to_string();
        let lines: Vec<&str> = screen.lines().map(|line| line.trim_matches(['"', ' '])).collect();
        assert!(lines[0].starts_with("http://127.0.0.1:10090/  2 apps  0 s ago"), "{screen}");
        assert!(lines[1].starts_with("APP▼") && lines[1].ends_with("$/H"), "{screen}");
        assert!(lines[2].starts_with("p-1-�broken") && lines[2].contains("problem"), "{screen}");
        let cells: Vec<&str> = lines[3].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(
            cells,
            ["p-1-ranker", "active", "123", "12.3 ms", "1.5 s", "1 min 15 s", "0 to 5", "0.43"]
        );
        assert_eq!(lines[4], "no such app", "{screen}");
    }
}
