//! The screen: source and verdict, reasons, table, keys; over the table help or the details of an app.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row as TableRow, Table, Wrap};

use super::view::{Over, View};
use crate::page::{length, shortened};
use pds_core::printable::plain;
use pds_core::units;
use pds_diagnosis::cause::Verdict;
use pds_diagnosis::columns::{COLUMNS, Column};
use pds_diagnosis::model::App;
use pds_diagnosis::model::resource_title;

/// Most lines for reasons.
const MAX_REASONS: usize = 3;

/// The keys, as the help shows them.
const KEYS: &str = "\
q        quit                      ?        this help
Enter    details of the app        Esc      back; clears the filter
/        filter by a name, status, problem or other word
o        copy the address of its page
c        copy the PromQL selector of its series
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
    let selected = view.selected();
    let problems = selected.iter().flat_map(|app| &app.problems).map(|problem| &*problem.text);
    let problems = problems.collect::<Vec<_>>().join("; ");
    frame.render_widget(Paragraph::new(&*plain(&problems)).style(paint(view, Color::Yellow)), problem);
    frame.render_widget(Paragraph::new(foot(view)), keys);
    let apps = apps(view, table.width);
    frame.render_stateful_widget(apps, table, &mut view.table);
    match &view.over {
        Over::Nothing => {}
        Over::Help => over(frame, table, "Keys", KEYS.lines().map(Line::from).collect()),
        Over::Copied(title, text) => {
            let note = "Copied, where the terminal allows it (OSC 52).";
            over(frame, table, title, vec![Line::from(plain(text).into_owned()), Line::from(note)]);
        }
        Over::App => {
            if let Some(app) = &selected {
                over(frame, table, &plain(&app.id), details(app));
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

/// The details of an app: all its columns, each resource, and every problem.
fn details(app: &App) -> Vec<Line<'static>> {
    let columns = COLUMNS.iter().filter(|column| column.rank.is_some() && column.key != "problem");
    let facts = columns.map(|column| (column.title.to_lowercase(), (column.value)(app).text().into_owned()));
    let age = |at: Timestamp| units::span(Timestamp::now().as_second() - at.as_second());
    let resources = app.resources.iter().map(|resource| {
        let polled =
            resource.last_success.map_or_else(|| "never".to_owned(), |at| format!("{} ago", age(at)));
        let failing = resource.failing.as_ref();
        let failing = failing.map(|f| format!("; failing for {}: {}, {}", age(f.since), f.class, f.message));
        let text =
            format!("{}, last success {polled}{}", resource.state.as_str(), failing.unwrap_or_default());
        (resource_title(&resource.resource), text)
    });
    let error = app.last_error.iter();
    let error =
        error.map(|e| ("last error".to_owned(), format!("{} ago: {}, {}", age(e.at), e.class, e.message)));
    let problems = app.problems.iter().map(|problem| ("problem".to_owned(), problem.text.clone()));
    let lines = facts.filter(|(name, value)| name != "last error" && !value.is_empty());
    let lines = lines.chain(resources).chain(error).chain(problems);
    lines.map(|(name, value)| Line::from(format!("{name:<20}{}", plain(&value)))).collect()
}

fn paint(view: &View, color: Color) -> Style {
    if view.color { Style::new().fg(color) } else { Style::new() }
}

fn color(verdict: Verdict) -> Color {
    match verdict {
        Verdict::Problem => Color::Red,
        Verdict::Warning => Color::Yellow,
        Verdict::Ok => Color::Green,
        Verdict::Waiting => Color::Gray,
    }
}

/// Source, number of apps shown and not ok, and age of the data.
fn title(view: &View) -> Line<'static> {
    let shown = view.shown().len();
    let count = match view.rows.len() {
        all if all == shown => units::counted(shown, "app", "apps"),
        all => format!("{shown} of {all} apps"),
    };
    let unwell = match view.rows.iter().filter(|row| row.verdict != Verdict::Ok).count() {
        0 => String::new(),
        unwell => format!(", {unwell} not ok"),
    };
    let seconds = |time| Timestamp::now().duration_since(time).as_secs().max(0);
    let age =
        view.answered.map_or_else(|| "nothing yet".to_owned(), |time| format!("{} s ago", seconds(time)));
    let mut spans = vec![Span::raw(format!("{}  {count}{unwell}  {age}", plain(&view.source)))];
    let verdict = view.summary.verdict;
    if view.answered.is_some() && verdict != Verdict::Ok {
        let style = paint(view, color(verdict)).add_modifier(Modifier::BOLD);
        spans.push(Span::styled(format!("  {}", verdict.as_str()), style));
    }
    Line::from(spans)
}

/// Why the last refresh failed, and the reasons of the verdict.
fn reasons(view: &View) -> Vec<Line<'static>> {
    let failure = view.failure.iter().map(|failure| (Verdict::Problem, failure));
    let all = failure.chain(view.summary.reasons.iter().map(|reason| (reason.verdict, &reason.text)));
    let mut lines: Vec<Line<'static>> = all
        .map(|(verdict, text)| {
            let style = paint(view, color(verdict)).add_modifier(Modifier::BOLD);
            let verdict = Span::styled(format!("{}: ", verdict.as_str()), style);
            Line::from(vec![verdict, Span::raw(plain(text).into_owned())])
        })
        .collect();
    if lines.len() > MAX_REASONS {
        let more = lines.split_off(MAX_REASONS - 1).len();
        lines.push(Line::from(format!("and {more} more reasons: pdstool status")));
    }
    lines
}

fn foot(view: &View) -> Line<'static> {
    let filter = match (view.typing, &*view.filter) {
        (true, filter) => format!("filter: {filter}_"),
        (false, "") => "/ filter".to_owned(),
        (false, filter) => format!("/ filter: {filter} (Esc clears)"),
    };
    let by = heading(view.sort);
    let text = format!("q quit  ? help  Enter app  s sort by {by}  r reverse  {}", plain(&filter));
    Line::styled(text, Style::new().add_modifier(Modifier::DIM))
}

fn heading(column: &Column) -> String {
    column.title.to_uppercase()
}

/// Least room for problems.
const MIN_PROBLEM: usize = 18;

/// Most room for a word that is neither a name nor a number.
const MAX_WORD: usize = 16;

/// Recent values drawn beside a number.
const TREND: usize = 8;

/// What the screen shows of an app in a column.
fn text(column: &Column, app: &App) -> String {
    let cell = (column.value)(app);
    let text = plain(&cell.text()).into_owned();
    match column.trend {
        Some(trend) if !cell.is_missing() => {
            let values: Vec<Option<f64>> = app.trend.iter().map(trend).collect();
            let line = sparkline(values.get(values.len().saturating_sub(TREND)..).unwrap_or_default());
            if line.is_empty() { text } else { format!("{line} {text}") }
        }
        _ => text,
    }
}

/// A curve of blocks, up to the greatest value; a gap where there is none.
fn sparkline(values: &[Option<f64>]) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().flatten().fold(0.0_f64, |most, value| most.max(*value));
    #[expect(clippy::cast_possible_truncation, reason = "0 to 7")]
    let block = |value: f64| EIGHTHS.get((value / most * 7.0).round() as usize).copied().unwrap_or('▁');
    let is_curve = most > 0.0 && values.iter().flatten().count() > 1;
    if is_curve { values.iter().map(|value| value.map_or(' ', block)).collect() } else { String::new() }
}

/// A column as it is on the screen now: with the text of each row, and as wide as the longest.
struct Drawn {
    column: &'static Column,
    cells: Vec<String>,
    width: usize,
    /// Whether the screen has room for it.
    fits: bool,
}

impl Drawn {
    fn new(column: &'static Column, rows: &[&App], screen: usize) -> Self {
        let most = match column.key {
            "app" => (screen / 2).max(8),
            _ if column.is_number() => usize::MAX,
            _ => MAX_WORD,
        };
        let cells = rows.iter().map(|app| shortened(&text(column, app), most).into_owned());
        let cells: Vec<String> = cells.collect();
        // With room for the mark of the order.
        let width = cells.iter().map(|cell| length(cell)).chain([length(column.title) + 1]).max();
        Self { column, cells, width: width.unwrap_or_default(), fits: false }
    }
}

/// The columns for which a screen of this width has room, in their order. Numbers are whole or not there.
fn fitting(rows: &[&App], screen: usize) -> Vec<Drawn> {
    let columns = COLUMNS.iter().filter(|column| column.key != "problem" && column.rank.is_some());
    let mut columns: Vec<Drawn> = columns.map(|column| Drawn::new(column, rows, screen)).collect();
    let mut by_rank: Vec<&mut Drawn> = columns.iter_mut().collect();
    by_rank.sort_by_key(|drawn| drawn.column.rank);
    let mut room = screen.saturating_sub(MIN_PROBLEM);
    for drawn in by_rank {
        drawn.fits = drawn.width < room || drawn.column.rank == Some(0);
        if drawn.fits {
            room = room.saturating_sub(drawn.width + 1);
        }
    }
    columns.retain(|drawn| drawn.fits);
    columns
}

fn apps(view: &View, width: u16) -> Table<'static> {
    let rows = view.shown();
    let columns = fitting(&rows, usize::from(width));
    let aligned = |column: &Column, text: String| {
        let side = if column.is_number() { Alignment::Right } else { Alignment::Left };
        Cell::from(Text::from(text).alignment(side))
    };
    let head = |column: &Column| {
        let mark = match (column == view.sort, view.reverse) {
            (true, false) => "▼",
            (true, true) => "▲",
            (false, _) => "",
        };
        aligned(column, format!("{}{mark}", heading(column)))
    };
    let problem = Column::of("problem");
    let names = columns.iter().map(|drawn| head(drawn.column)).chain(problem.map(head));
    let lines = rows.iter().enumerate().map(|(index, app)| {
        let style = paint(view, color(app.verdict));
        let cell = |drawn: &Drawn| {
            let cell = aligned(drawn.column, drawn.cells.get(index).cloned().unwrap_or_default());
            if drawn.column.key == "verdict" { cell.style(style) } else { cell }
        };
        TableRow::new(columns.iter().map(cell).chain(problem.map(|column| Cell::from(text(column, app)))))
    });
    let width = |drawn: &Drawn| Constraint::Length(u16::try_from(drawn.width).unwrap_or(u16::MAX));
    let widths: Vec<Constraint> = columns.iter().map(width).chain([Constraint::Fill(1)]).collect();
    Table::new(lines.collect::<Vec<_>>(), widths)
        .header(TableRow::new(names).style(Style::new().add_modifier(Modifier::BOLD)))
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::exporter::ExporterStatus;
    use pds_diagnosis::model::{ResponseTime, TrendPoint};
    use pds_diagnosis::verdict::Problem;
    use pds_diagnosis::verdict::{Reason, Summary};

    fn screen(view: &mut View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        let screen = terminal.backend().to_string();
        screen.lines().map(|line| line.trim_matches('"').trim_end().to_owned()).collect()
    }

    fn view() -> View {
        let mut view = View::new("http://127.0.0.1:10090".to_owned(), String::new(), true);
        let ranker = App {
            id: "p-abc12345-a-rather-long-name".into(),
            status: Some("active".into()),
            verdict: Verdict::Ok,
            requests_per_minute: Some(123.4),
            response_time: ResponseTime { p50: Some(0.0123), p90: None, p95: Some(1.5), p99: Some(75.0) },
            min_replicas: Some(0.0),
            max_replicas: Some(5.0),
            dollars_per_replica_hour: Some(0.432),
            ..App::default()
        };
        let broken = App {
            id: "p-1-\u{1b}broken".into(),
            verdict: Verdict::Problem,
            problems: vec![Problem::from("no such app".to_owned())],
            ..App::default()
        };
        let reason =
            |text: &str| Reason { verdict: Verdict::Problem, text: text.into(), ..Reason::default() };
        let reasons = vec![reason("the service does not answer")];
        let summary = Summary { verdict: Verdict::Problem, reasons, ..Summary::default() };
        let apps = vec![ranker, broken];
        view.answered(Ok(ExporterStatus { apps, summary, ..ExporterStatus::default() }));
        view
    }

    #[test]
    fn at_80_columns_name_verdict_and_reason_are_whole() {
        let mut view = view();
        let lines = screen(&mut view, 80, 24);
        assert_eq!(lines[0], "http://127.0.0.1:10090  2 apps, 1 not ok  0 s ago  problem");
        assert_eq!(lines[1], "problem: the service does not answer");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines[2]), ["VERDICT▼", "APP", "REQUESTS/MIN", "P95", "PROBLEM"]);
        assert_eq!(words(&lines[3]), ["problem", "p-1-�broken", "no", "such", "app"]);
        assert_eq!(words(&lines[4]), ["ok", "p-abc12345-a-rather-long-name", "123", "1.5", "s"]);
        assert_eq!(lines[22], "no such app", "{lines:?}");
        assert!(lines[23].starts_with("q quit  ? help  Enter app  s sort by VERDICT"), "{lines:?}");
    }

    #[test]
    fn a_wide_screen_has_every_column_and_a_narrow_one_keeps_the_name() {
        let mut view = view();
        let lines = screen(&mut view, 250, 12);
        for column in COLUMNS.iter().filter(|column| column.rank.is_some()) {
            assert!(lines[2].contains(&heading(column)), "{}: {}", column.key, lines[2]);
        }
        let lines = screen(&mut view, 60, 12);
        assert!(lines[4].contains("p-abc12345-a-rather-long-name"), "{lines:?}");
    }

    #[test]
    fn digits_are_whole_or_not_there_at_every_width() {
        let mut view = view();
        let mut apps: Vec<App> = view.shown().into_iter().cloned().collect();
        let app = apps.last_mut().unwrap();
        app.id = "ranker".into();
        app.response_time.p95 = Some(3030.0);
        app.requests_per_minute = Some(24_691_357_802.0);
        app.dollars_per_replica_hour = Some(123_456.78);
        app.trend = [1.0, 2.0].map(|p95| TrendPoint { p95: Some(p95), requests_per_minute: None }).to_vec();
        view.answered(Ok(ExporterStatus { apps, ..ExporterStatus::default() }));
        let all = ["24,691,357,802", "50 min 30 s", "$123456.78", "12.3 ms", "1 min 15 s", "0–5"];
        for width in 20..260 {
            let line = &screen(&mut view, width, 8)[3];
            // What is left of a line without its words holds no digit.
            let rest = all.iter().fold(line.clone(), |line, word| line.replacen(word, "", 1));
            assert!(!rest.contains(|c: char| c.is_ascii_digit()), "{width}: {line}");
        }
        let line = screen(&mut view, 259, 8).swap_remove(3);
        assert!(all.iter().all(|word| line.contains(word)), "{line}");
        assert!(line.contains("▅█ 50 min 30 s"), "{line}");
    }

    #[test]
    fn help_and_one_app_cover_the_table() {
        let mut view = view();
        view.over = Over::Help;
        assert!(screen(&mut view, 80, 24).join("\n").contains("Enter    details of the app"));
        view.over = Over::App;
        let lines = screen(&mut view, 80, 24).join("\n");
        assert!(
            lines.contains("p-1-�broken") && lines.contains("problem             no such app"),
            "{lines}"
        );
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
