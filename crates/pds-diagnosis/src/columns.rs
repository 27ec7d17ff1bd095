//! The columns of an app: one table for the page, its order, CSV, and `pdstool apps`.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use jiff::Timestamp;
use pds_core::units;
use pds_ledger::Owner;

use super::cause::Verdict;
use super::incident::LastError;
use super::model::{App, Resource, State, TrendPoint, class_title};
use super::verdict::Problem;

/// A column.
#[derive(Debug)]
pub struct Column {
    /// Its word in addresses: `?sort=p95`.
    pub key: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its name for programs, with the unit; `""` if other columns hold its parts.
    pub name: &'static str,
    /// Whether the page shows it.
    pub page: bool,
    /// Its rank for narrow terminals: 0 is always shown. `None` if terminals never show it.
    pub rank: Option<u8>,
    /// The cell of an app; its kind is the same for every app.
    pub value: for<'a> fn(&'a dyn Listed) -> Cell<'a>,
    /// Its recent values.
    pub trend: Option<fn(&TrendPoint) -> Option<f64>>,
}

/// The properties that apps are selected and sorted by.
pub trait Listed {
    /// The whole app, which may be read on this call.
    fn app(&self) -> &App;

    /// The ids of its project and its own.
    fn ids(&self) -> (&str, &str) {
        (&self.app().project, &self.app().id)
    }

    /// The verdict on it, and why it is not `ok`.
    fn verdict(&self) -> (Verdict, &[Problem]) {
        (self.app().verdict, &self.app().problems)
    }
}

impl Listed for App {
    fn app(&self) -> &App {
        self
    }
}

/// The content of an app's cell.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// The verdict.
    Verdict(Verdict),
    /// The app's name and ids.
    App(&'a App),
    /// A word.
    Text(Option<&'a str>),
    /// A number in its base unit, and how people read it.
    Number(Option<f64>, fn(f64) -> String),
    /// The minimum and the maximum.
    Range(Option<f64>, Option<f64>),
    /// How fresh each resource is.
    Freshness(&'a [Resource]),
    /// The last failed poll.
    Failure(Option<&'a LastError>),
    /// The app's problems.
    Problems(&'a [Problem]),
}

/// The highest rank that a narrow table shows.
pub const NARROW: u8 = 3;

const fn row(
    (key, title, name): (&'static str, &'static str, &'static str),
    (page, rank): (bool, Option<u8>),
    value: for<'a> fn(&'a dyn Listed) -> Cell<'a>,
) -> Column {
    Column { key, title, name, page, rank, value, trend: None }
}

use Cell::{Failure, Freshness, Number, Problems, Range, Text};
use units::{dollars, number, seconds};

/// All columns; the first is the default order.
#[rustfmt::skip]
pub static COLUMNS: &[Column] = &[
    row(("verdict", "Verdict", "verdict"), (true, Some(0)), |row| Cell::Verdict(row.verdict().0)),
    row(("app", "App", "app"), (true, Some(0)), |row| Cell::App(row.app())),
    row(("project", "Project", "project"), (false, Some(10)), |row| Text(Some(row.ids().0))),
    row(("status", "Status", "status"), (false, Some(3)), |row| Text(row.app().status.as_deref())),
    row(("freshness", "Freshness", ""), (true, None), |row| Freshness(&row.app().resources)),
    Column { trend: Some(|point| point.requests_per_minute), ..row(("requests", "Requests/min", "requests_per_minute"),
        (true, Some(1)), |row| Number(row.app().requests_per_minute, number)) },
    row(("p50", "p50", "p50_seconds"), (true, Some(5)), |row| Number(row.app().response_time.p50, seconds)),
    row(("p90", "p90", "p90_seconds"), (false, Some(7)), |row| Number(row.app().response_time.p90, seconds)),
    Column { trend: Some(|point| point.p95), ..row(("p95", "p95", "p95_seconds"),
        (true, Some(2)), |row| Number(row.app().response_time.p95, seconds)) },
    row(("p99", "p99", "p99_seconds"), (true, Some(4)), |row| Number(row.app().response_time.p99, seconds)),
    row(("replicas", "Replicas", ""), (true, Some(6)), |row| Range(row.app().min_replicas, row.app().max_replicas)),
    row(("min", "Min", "min_replicas"), (false, None), |row| Number(row.app().min_replicas, number)),
    row(("max", "Max", "max_replicas"), (false, None), |row| Number(row.app().max_replicas, number)),
    row(("hardware", "Hardware", "hardware"), (true, Some(9)), |row| Text(row.app().hardware.as_deref())),
    row(("cost", "Replica/h", "dollars_per_replica_hour"), (true, Some(8)), |row| Number(row.app().dollars_per_replica_hour, dollars)),
    row(("error", "Last error", "last_error"), (true, Some(11)), |row| Failure(row.app().last_error.as_ref())),
    row(("problem", "Problem", "problem"), (false, Some(0)), |row| Problems(row.verdict().1)),
];

impl Column {
    /// The column with this key.
    pub fn of(key: &str) -> Option<&'static Self> {
        COLUMNS.iter().find(|column| column.key == key)
    }

    /// The columns that the page shows.
    pub fn of_page() -> impl Iterator<Item = &'static Self> {
        COLUMNS.iter().filter(|column| column.page)
    }

    /// Whether it holds quantities, which are aligned right and sorted in descending order.
    pub fn is_number(&self) -> bool {
        matches!((self.value)(&App::default()), Number(..) | Range(..))
    }

    /// Whether its usual order is descending.
    pub fn is_descending(&self) -> bool {
        self.is_number() || matches!((self.value)(&App::default()), Failure(_))
    }

    /// Sorts `apps`; those without a value come last, reversed or not, and equal ones stay in order. Reads a copy of each
    /// app and drops it, because a hundred thousand whole apps take too much memory.
    pub fn sort<A: Listed + Clone>(&self, apps: &mut [&A], reversed: bool) {
        let key = |app: &&A| (self.value)(&A::clone(app)).key();
        let mut keyed: Vec<(Option<Key>, &A)> = apps.iter().map(|app| (key(app), *app)).collect();
        keyed.sort_by(|(one, _), (other, _)| match (one, other) {
            (Some(one), Some(other)) => {
                let order = one.partial_cmp(other).unwrap_or(Ordering::Equal);
                if reversed { order.reverse() } else { order }
            }
            (one, other) => one.is_none().cmp(&other.is_none()),
        });
        apps.iter_mut().zip(keyed).for_each(|(place, (_, app))| *place = app);
    }
}

impl Cell<'_> {
    /// Whether the app has no value there.
    pub fn is_missing(&self) -> bool {
        match self {
            Text(text) => text.is_none(),
            Number(value, _) => value.is_none(),
            Range(min, max) => min.or(*max).is_none(),
            Failure(error) => error.is_none(),
            Problems(problems) => problems.is_empty(),
            Self::Verdict(_) | Self::App(_) | Freshness(_) => false,
        }
    }

    /// For people; `""` for a missing value.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Number(value, write) => value.map(write).unwrap_or_default().into(),
            Range(Some(min), Some(max)) => format!("{}–{}", number(*min), number(*max)).into(),
            Range(min, max) => min.or(*max).map(number).unwrap_or_default().into(),
            Failure(Some(error)) => class_title(&error.class),
            Problems(problems) => problems.first().map_or("", |problem| &problem.text).into(),
            _ => self.raw(),
        }
    }

    /// For programs: numbers as they are, in base units; `""` for a missing value.
    pub fn raw(&self) -> Cow<'_, str> {
        match self {
            Self::Verdict(verdict) => verdict.as_str().into(),
            Self::App(app) => (&*app.id).into(),
            Text(text) => text.unwrap_or_default().into(),
            Number(value, _) => value.map(|value| value.to_string()).unwrap_or_default().into(),
            Failure(error) => error.map_or(String::new(), |e| format!("{} {}", e.at, e.class)).into(),
            Problems(problems) => {
                problems.iter().map(|problem| &*problem.text).collect::<Vec<_>>().join("; ").into()
            }
            Freshness(resources) => stalest(resources).map_or("", State::as_str).into(),
            Range(..) => "".into(),
        }
    }

    /// Its place in the order of the column; `None` for a missing value.
    fn key(&self) -> Option<Key> {
        match self {
            missing if missing.is_missing() => None,
            Self::Verdict(verdict) => Some(Key::Verdict(*verdict)),
            Self::App(app) => {
                let title = app.title().chars().flat_map(char::to_lowercase).collect();
                Some(Key::App(title, Arc::clone(&app.id)))
            }
            Number(value, _) => value.map(|value| Key::Number(Reverse(value))),
            Range(_, max) => Some(Key::Number(Reverse(max.unwrap_or(f64::MIN)))),
            Failure(error) => error.map(|error| Key::Time(Reverse(error.at))),
            Freshness(resources) => Some(Key::State(stalest(resources))),
            Text(_) | Problems(_) => Some(Key::Word(self.raw().into())),
        }
    }
}

/// The place of an app in the order of a column: words ascending, numbers and times descending.
#[derive(PartialEq, PartialOrd)]
enum Key {
    Verdict(Verdict),
    State(Option<State>),
    Word(String),
    /// The name in lower case, and the id.
    App(String, Arc<str>),
    Number(Reverse<f64>),
    Time(Reverse<Timestamp>),
}

fn stalest(resources: &[Resource]) -> Option<State> {
    resources.iter().map(|resource| resource.state).min()
}

impl App {
    /// The name it is shown under.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    /// The label matchers that select its series: PromQL escapes strings as the page does.
    pub fn selector(&self) -> String {
        Owner::new(Arc::clone(&self.project), Arc::clone(&self.id)).labels().to_string()
    }

    /// Whether its name or a column that is no number contains `text`, in any case.
    pub fn holds(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let words = COLUMNS.iter().map(|column| (column.value)(self));
        let words = words.filter(|cell| !matches!(cell, Number(..)));
        text.is_empty()
            || self.title().to_lowercase().contains(&text)
            || words.into_iter().any(|cell| cell.raw().to_lowercase().contains(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_holds_any_id() {
        let app = App { project: "p".into(), id: "a\"b\\c\nd".into(), ..App::default() };
        assert_eq!(app.selector(), r#"project="p",app="a\"b\\c\nd""#);
    }

    #[test]
    fn an_app_without_a_maximum_comes_after_those_with_one() {
        let app = |max_replicas| App { min_replicas: Some(1.0), max_replicas, ..App::default() };
        let replicas = Column::of("replicas").unwrap();
        let [without, with] = [None, Some(0.0)].map(app);
        let mut apps = [&without, &with];
        replicas.sort(&mut apps, false);
        assert_eq!(apps.map(|app| app.max_replicas), [Some(0.0), None]);
    }
}
