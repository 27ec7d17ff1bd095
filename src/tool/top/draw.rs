//! The screen: source and verdict, reasons, table, keys; over the table help or the details of an app.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row as TableRow, Table, Wrap};

use super::view::{COLUMNS, Over, View};
use crate::printable::plain;
use crate::tool::exporter::Row;
use crate::units;

/// Most lines for reasons.
const MAX_REASONS: usize = 3;

/// The keys, as the help shows them.
const KEYS: &str = "\
q        quit                      ?        this help
Enter    details of the app        Esc      back; clears the filter
/        filter by project, id, status, verdict or problem
s S      sort by the next, the previous column
r        reverse the order
up down page-up page-down home end: move";

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let reasons = reasons(view);
    let [head, why, table, problem, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::try_from(reasons.len()).unwrap_or(0)),
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
    frame.render_widget(Paragraph::new(reasons), why);
    let problem_text = view.selected().map(|row| row.problems.join("; ")).unwrap_or_default();
    let style = paint(view, Color::Yellow);
    frame.render_widget(Paragraph::new(plain(&problem_text).into_owned()).style(style), problem);
    frame.render_widget(Paragraph::new(foot(view)), keys);
    let apps = apps(view, table.width);
    frame.render_stateful_widget(apps, table, &mut view.table);
    match view.over {
        Over::Nothing => {}
        Over::Help => {
            over(frame, table, "Keys", KEYS.lines().map(|line| Line::from(line.to_owned())).collect())
        }
        Over::App => {
            if let Some(row) = view.selected() {
                over(frame, table, &plain(&row.id), details(&row));
            }
        }
    }
}

/// A box over the table.
fn over(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'static>>) {
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(format!(" {title} "));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), area);
}

/// The details of an app.
fn details(row: &Row) -> Vec<Line<'static>> {
    let time = |value: Option<f64>| value.map(units::seconds).unwrap_or_default();
    let number = |value: Option<f64>| value.map(units::number).unwrap_or_default();
    let facts = [
        ("project", row.project.clone()),
        ("verdict", row.verdict.clone()),
        ("status", row.status.clone().unwrap_or_default()),
        ("requests/min", number(row.requests_per_minute)),
        ("p50", time(row.response_time.p50)),
        ("p90", time(row.response_time.p90)),
        ("p95", time(row.response_time.p95)),
        ("p99", time(row.response_time.p99)),
        ("replicas", replicas(row)),
        ("hardware", row.hardware.clone().unwrap_or_default()),
        (
            "cost",
            row.dollars_per_replica_hour
                .map(|d| format!("{}/h a replica", units::dollars(d)))
                .unwrap_or_default(),
        ),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let facts = facts.map(|(name, value)| Line::from(format!("{name:<14}{}", plain(&value))));
    let problems =
        row.problems.iter().map(|problem| Line::from(format!("{:<14}{}", "problem", plain(problem))));
    facts.chain(problems).collect()
}

fn paint(view: &View, color: Color) -> Style {
    if view.color { Style::new().fg(color) } else { Style::new() }
}

fn color(verdict: &str) -> Color {
    match verdict {
        "problem" => Color::Red,
        "warning" => Color::Yellow,
        "ok" => Color::Green,
        _ => Color::Gray,
    }
}

/// Source, number of apps shown and not ok, and age of the data.
fn title(view: &View) -> Line<'static> {
    let shown = view.shown().len();
    let count = if shown == view.count() {
        units::counted(shown, "app", "apps")
    } else {
        format!("{shown} of {} apps", view.count())
    };
    let unwell = match view.unwell() {
        0 => String::new(),
        unwell => format!(", {unwell} not ok"),
    };
    let age = match view.answered {
        Some(time) => {
            let seconds = Timestamp::now().duration_since(time).as_secs().max(0);
            format!("{seconds} s ago")
        }
        None => "nothing yet".to_owned(),
    };
    let source = view.source.trim_end_matches('/');
    let mut spans = vec![Span::raw(format!("{}  {count}{unwell}  {age}", plain(source)))];
    let verdict = &view.summary.verdict;
    if !verdict.is_empty() && verdict != "ok" {
        let style = paint(view, color(verdict)).add_modifier(Modifier::BOLD);
        spans.push(Span::styled(format!("  {}", plain(verdict)), style));
    }
    Line::from(spans)
}

/// Why the last refresh failed, and the reasons of the verdict.
fn reasons(view: &View) -> Vec<Line<'static>> {
    let failure = view.failure.iter().map(|failure| ("problem", failure.clone()));
    let reasons = view.summary.reasons.iter().map(|reason| (&*reason.verdict, reason.text.clone()));
    let all: Vec<_> = failure.chain(reasons).collect();
    let line = |(verdict, text): &(&str, String)| {
        let style = paint(view, color(verdict)).add_modifier(Modifier::BOLD);
        Line::from(vec![Span::styled(format!("{verdict}: "), style), Span::raw(plain(text).into_owned())])
    };
    let mut lines: Vec<Line<'static>> = all.iter().take(MAX_REASONS).map(line).collect();
    if all.len() > MAX_REASONS {
        lines.pop();
        lines.push(Line::from(format!("and {} more reasons: pdstool status", all.len() + 1 - MAX_REASONS)));
    }
    lines
}

fn foot(view: &View) -> Line<'static> {
    let filter = match (view.typing, &*view.filter) {
        (true, filter) => format!("filter: {filter}_"),
        (false, "") => "/ filter".to_owned(),
        (false, filter) => format!("/ filter: {filter} (Esc clears)"),
    };
    let by = COLUMNS.get(view.sort).map_or("", |column| column.name);
    let text = format!("q quit  ? help  Enter app  s sort by {by}  r reverse  {}", plain(&filter));
    Line::styled(text, Style::new().add_modifier(Modifier::DIM))
}

/// A column of the screen.
struct Shown {
    name: &'static str,
    width: u16,
    right: bool,
    value: fn(&Row) -> String,
}

const fn shown(name: &'static str, width: u16, right: bool, value: fn(&Row) -> String) -> Shown {
    Shown { name, width, right, value }
}

fn time(seconds: Option<f64>) -> String {
    seconds.map(units::seconds).unwrap_or_default()
}

/// The columns after the app's id, most important first; the reason takes the remaining width.
static BY_NEED: &[Shown] = &[
    shown("VERDICT", 8, false, |row| row.verdict.clone()),
    shown("REQ/MIN", 8, true, |row| row.requests_per_minute.map(units::number).unwrap_or_default()),
    shown("P95", 10, true, |row| time(row.response_time.p95)),
    shown("STATUS", 10, false, |row| row.status.clone().unwrap_or_default()),
    shown("P99", 10, true, |row| time(row.response_time.p99)),
    shown("P50", 10, true, |row| time(row.response_time.p50)),
    shown("REPLICAS", 9, true, replicas),
    shown("P90", 10, true, |row| time(row.response_time.p90)),
    shown("$/H", 7, true, |row| row.dollars_per_replica_hour.map(|d| format!("{d:.2}")).unwrap_or_default()),
];

/// The order of the columns on the screen.
const ORDER: [&str; 9] = ["VERDICT", "STATUS", "REQ/MIN", "P50", "P90", "P95", "P99", "REPLICAS", "$/H"];

/// Minimum width of a reason.
const MIN_REASON: u16 = 18;

/// The columns that fit beside an id of this width.
fn fitting(width: u16, id: u16) -> Vec<&'static Shown> {
    let mut room = width.saturating_sub(id + 1 + MIN_REASON);
    let mut fitting: Vec<&Shown> = Vec::new();
    for column in BY_NEED {
        if room <= column.width {
            break;
        }
        room -= column.width + 1;
        fitting.push(column);
    }
    fitting.sort_by_key(|column| ORDER.iter().position(|name| *name == column.name));
    fitting
}

fn apps(view: &View, width: u16) -> Table<'static> {
    let rows = view.shown();
    let longest = rows.iter().map(|row| row.id.chars().count()).max().unwrap_or(0);
    // The id keeps its width; other columns are dropped first.
    let id = u16::try_from(longest).unwrap_or(u16::MAX).clamp(8, (width / 2).max(8));
    let columns = fitting(width, id);
    let head = |name: &'static str, right: bool| {
        let sorted = COLUMNS.get(view.sort).is_some_and(|column| column.name == name);
        let mark = match (sorted, view.reverse) {
            (true, false) => "▼",
            (true, true) => "▲",
            (false, _) => "",
        };
        let text = Text::from(format!("{name}{mark}"));
        Cell::from(text.alignment(if right { Alignment::Right } else { Alignment::Left }))
    };
    let names = columns.iter().map(|column| head(column.name, column.right));
    let names = std::iter::once(head("APP", false)).chain(names).chain([head("REASON", false)]);
    let lines: Vec<TableRow<'static>> = rows.into_iter().map(|row| line(view, row, &columns)).collect();
    let widths = columns.iter().map(|column| Constraint::Length(column.width));
    let widths = std::iter::once(Constraint::Length(id)).chain(widths).chain([Constraint::Fill(1)]);
    Table::new(lines, widths.collect::<Vec<_>>())
        .header(TableRow::new(names).style(Style::new().add_modifier(Modifier::BOLD)))
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

fn line(view: &View, row: &Row, columns: &[&Shown]) -> TableRow<'static> {
    let style = paint(view, color(&row.verdict));
    let cell = |column: &&Shown| {
        let text = Text::from(plain(&(column.value)(row)).into_owned());
        let cell = Cell::from(text.alignment(if column.right { Alignment::Right } else { Alignment::Left }));
        if column.right { cell } else { cell.style(style) }
    };
    let id = Cell::from(plain(&row.id).into_owned());
    let reason = Cell::from(plain(row.problems.first().map_or("", |problem| problem)).into_owned());
    TableRow::new(std::iter::once(id).chain(columns.iter().map(cell)).chain([reason]))
}

fn replicas(row: &Row) -> String {
    match (row.min_replicas, row.max_replicas) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (min, max) => min.or(max).map(|count| count.to_string()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::source::Shown as Answered;
    use super::*;
    use crate::tool::exporter::{Percentiles, Reason, Summary};

    fn screen(view: &mut View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        let screen = terminal.backend().to_string();
        screen.lines().map(|line| line.trim_matches('"').trim_end().to_owned()).collect()
    }

    fn view() -> View {
        let mut view = View::new("http://127.0.0.1:10090".to_owned(), String::new(), true);
        let response_time = Percentiles { p50: Some(0.0123), p90: None, p95: Some(1.5), p99: Some(75.0) };
        let ranker = Row {
            id: "p-abc12345-a-rather-long-name".into(),
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
        let reason =
            |text: &str| Reason { verdict: "problem".into(), text: text.into(), ..Reason::default() };
        let reasons = vec![reason("the service does not answer")];
        let summary = Summary { verdict: "problem".into(), reasons, ..Summary::default() };
        view.answered(Ok(Answered { rows: vec![ranker, broken], summary }));
        view
    }

    #[test]
    fn at_80_columns_name_verdict_and_reason_are_whole() {
        let mut view = view();
        let lines = screen(&mut view, 80, 24);
        assert_eq!(lines[0], "http://127.0.0.1:10090  2 apps, 1 not ok  0 s ago  problem");
        assert_eq!(lines[1], "problem: the service does not answer");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines[2]), ["APP", "VERDICT▼", "REQ/MIN", "P95", "REASON"]);
        assert_eq!(words(&lines[3]), ["p-1-�broken", "problem", "no", "such", "app"]);
        assert_eq!(words(&lines[4]), ["p-abc12345-a-rather-long-name", "ok", "123", "1.5", "s"]);
        assert_eq!(lines[22], "no such app", "{lines:?}");
        assert!(lines[23].starts_with("q quit  ? help  Enter app  s sort by VERDICT"), "{lines:?}");
    }

    #[test]
    fn a_wide_screen_has_every_column_and_a_narrow_one_keeps_the_name() {
        let mut view = view();
        let lines = screen(&mut view, 160, 12);
        for name in ORDER {
            assert!(lines[2].contains(name), "{name}: {}", lines[2]);
        }
        let lines = screen(&mut view, 60, 12);
        assert!(lines[4].starts_with("p-abc12345-a-rather-long-name"), "{lines:?}");
    }

    #[test]
    fn help_and_one_app_cover_the_table() {
        let mut view = view();
        view.over = Over::Help;
        assert!(screen(&mut view, 80, 24).join("\n").contains("Enter    details of the app"));
        view.over = Over::App;
        let lines = screen(&mut view, 80, 24).join("\n");
        assert!(lines.contains("p-1-�broken") && lines.contains("problem       no such app"), "{lines}");
    }

    #[test]
    fn many_reasons_leave_room_for_the_table_and_an_outage_is_the_first() {
        let mut view = view();
        let reason = view.summary.reasons[0].clone();
        view.summary.reasons = vec![reason; 9];
        view.answered(Err("cannot connect".to_owned()));
        let lines = screen(&mut view, 80, 24);
        assert_eq!(lines[1], "problem: cannot connect");
        assert_eq!(lines[3], "and 8 more reasons: pdstool status");
    }
}
