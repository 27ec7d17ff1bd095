//! Filter, order and page of the overview.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use url::form_urlencoded::parse;

use crate::status::cause::ALL;
use crate::status::{App, Listed, Project, Verdict};

use super::links::encode;

/// Apps on a page.
pub const PAGE: usize = 50;

/// The query of an address. A part that cannot be read is ignored and reported ([`Query::ignored`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Only apps of this project.
    pub project: String,
    /// Only apps whose id, name or project contains this, in any case.
    pub name: String,
    /// Only apps with a problem or warning.
    pub problems: bool,
    /// Only apps of this verdict.
    pub state: Option<Verdict>,
    /// Whether apps are grouped by project.
    pub grouped: bool,
    /// Only apps with a problem of this code.
    pub reason: String,
    /// The order.
    pub sort: Sort,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// Which page, from 1.
    pub page: usize,
    /// Only the app of exactly this id.
    pub app: String,
    /// The parts that could not be read, as `name=value`.
    pub ignored: Vec<String>,
}

/// An order of the apps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of that name")]
pub enum Sort {
    #[default]
    Verdict,
    App,
    P50,
    P95,
    P99,
    Requests,
    Replicas,
    Hardware,
    Cost,
    LastError,
}

impl Sort {
    /// All orders.
    pub const ALL: [Self; 10] = [
        Self::Verdict,
        Self::App,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::Requests,
        Self::Replicas,
        Self::Hardware,
        Self::Cost,
        Self::LastError,
    ];

    /// Its word in a query.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::App => "app",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Requests => "requests",
            Self::Replicas => "replicas",
            Self::Hardware => "hardware",
            Self::Cost => "cost",
            Self::LastError => "error",
        }
    }

    /// Whether its default order is descending.
    #[must_use]
    pub fn is_descending(self) -> bool {
        !matches!(self, Self::Verdict | Self::App | Self::Hardware)
    }

    /// The order of `one` and `other`; an app without a value comes last, reversed or not.
    fn compare(self, one: &impl Listed, other: &impl Listed, reversed: bool) -> Ordering {
        let numbers = |value: fn(&App) -> Option<f64>| {
            missing_last(value(one.app()), value(other.app()), |a, b| b.total_cmp(a), reversed)
        };
        let direct = |order: Ordering| if reversed { order.reverse() } else { order };
        match self {
            Self::Verdict => direct(one.verdict().0.cmp(&other.verdict().0)),
            Self::App => {
                let names = in_any_case(shown(one.app()), shown(other.app()));
                direct(names.then_with(|| one.ids().1.cmp(other.ids().1)))
            }
            Self::P50 => numbers(|app| app.response_time.p50),
            Self::P95 => numbers(|app| app.response_time.p95),
            Self::P99 => numbers(|app| app.response_time.p99),
            Self::Requests => numbers(|app| app.requests_per_minute),
            Self::Replicas => numbers(|app| app.max_replicas),
            Self::Hardware => {
                let (one, other) = (one.app().hardware.as_deref(), other.app().hardware.as_deref());
                missing_last(one, other, |a, b| a.cmp(b), reversed)
            }
            Self::Cost => numbers(|app| app.dollars_per_replica_hour),
            Self::LastError => {
                let at = |app: &App| app.last_error.as_ref().map(|error| error.at);
                missing_last(at(one.app()), at(other.app()), |a, b| b.cmp(a), reversed)
            }
        }
    }
}

/// The most ignored parts of a query that are reported.
const MAX_IGNORED: usize = 5;
/// How much of each of them is shown.
const MAX_IGNORED_CHARS: usize = 60;

fn assign(place: &mut String, value: &str) -> bool {
    value.clone_into(place);
    true
}

/// A flag is on as `1` and off as `0` or nothing.
fn flag(place: &mut bool, value: &str) -> bool {
    *place = value == "1";
    matches!(value, "1" | "0" | "")
}

fn in_any_case(one: &str, other: &str) -> Ordering {
    one.chars().flat_map(char::to_lowercase).cmp(other.chars().flat_map(char::to_lowercase))
}

/// What the overview shows as an app's name.
fn shown(app: &App) -> &str {
    app.name.as_deref().unwrap_or(&app.id)
}

/// The order of two values, reversed if `reversed`; a missing one comes last either way.
fn missing_last<T>(
    one: Option<T>,
    other: Option<T>,
    usual: fn(&T, &T) -> Ordering,
    reversed: bool,
) -> Ordering {
    match (&one, &other) {
        (Some(one), Some(other)) if reversed => usual(other, one),
        (Some(one), Some(other)) => usual(one, other),
        _ => one.is_none().cmp(&other.is_none()),
    }
}

impl Query {
    /// Reads the query of an address.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut query = Self { page: 1, ..Self::default() };
        for (name, value) in parse(text.as_bytes()) {
            let understood = match &*name {
                "project" => assign(&mut query.project, &value),
                "name" => assign(&mut query.name, value.trim()),
                "app" => assign(&mut query.app, &value),
                "reason" => {
                    let known = value.is_empty() || ALL.iter().any(|cause| cause.code == value);
                    known && assign(&mut query.reason, &value)
                }
                "problems" => flag(&mut query.problems, &value),
                "state" => {
                    query.state = Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == value);
                    query.state.is_some() || value.is_empty()
                }
                "group" => {
                    query.grouped = value == "project";
                    query.grouped || value.is_empty()
                }
                "reversed" => flag(&mut query.reversed, &value),
                "sort" => match Sort::ALL.into_iter().find(|sort| sort.as_str() == value) {
                    Some(sort) => {
                        query.sort = sort;
                        true
                    }
                    None => false,
                },
                "page" => match value.parse() {
                    Ok(page @ 1..) => {
                        query.page = page;
                        true
                    }
                    _ => false,
                },
                _ => false,
            };
            if !understood && query.ignored.len() < MAX_IGNORED {
                query.ignored.push(format!("{name}={value}").chars().take(MAX_IGNORED_CHARS).collect());
            }
        }
        query
    }

    /// The query as part of an address; empty if nothing is asked for.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut parts = Vec::new();
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                parts.push(format!("{name}={}", encode(value)));
            }
        };
        let flag = |on: bool| if on { "1" } else { "" };
        add("project", &self.project);
        add("name", &self.name);
        add("problems", flag(self.problems));
        add("state", self.state.map_or("", Verdict::as_str));
        add("group", if self.grouped { "project" } else { "" });
        add("reason", &self.reason);
        add("app", &self.app);
        add("sort", if self.sort == Sort::default() { "" } else { self.sort.as_str() });
        add("reversed", flag(self.reversed));
        add("page", &if self.page > 1 { self.page.to_string() } else { String::new() });
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    /// Whether it filters apps.
    #[must_use]
    pub fn filters(&self) -> bool {
        !self.project.is_empty()
            || !self.name.is_empty()
            || self.problems
            || self.state.is_some()
            || !self.reason.is_empty()
            || !self.app.is_empty()
    }

    /// The selected apps, in order, over all pages. A project is found by its id or its name.
    #[must_use]
    pub fn select<'a, A: Listed>(&self, apps: &'a [A], projects: &[Project]) -> Vec<&'a A> {
        let name = self.name.to_lowercase();
        let holds = |text: &str| text.to_lowercase().contains(&name);
        let asked_for = projects.iter().filter(|project| !self.project.is_empty() && self.is_of(project));
        let named: HashSet<&str> = asked_for.map(|project| &*project.id).collect();
        let wanted = |app: &&A| {
            let ((project, id), (verdict, problems)) = (app.ids(), app.verdict());
            (self.project.is_empty() || named.contains(project))
                && (!self.problems || verdict != Verdict::Ok)
                && self.state.is_none_or(|state| verdict == state)
                && (self.reason.is_empty() || problems.iter().any(|problem| problem.code == self.reason))
                && (self.app.is_empty() || id == self.app)
                && (name.is_empty()
                    || holds(id)
                    || holds(project)
                    || app.app().name.as_deref().is_some_and(holds))
        };
        let mut selected: Vec<&A> = apps.iter().filter(wanted).collect();
        // Stable: equal ones stay in the order of the configuration.
        selected.sort_by(|one, other| self.sort.compare(*one, *other, self.reversed));
        if self.grouped {
            let places: HashMap<&str, usize> =
                projects.iter().zip(0..).map(|(project, at)| (&*project.id, at)).collect();
            selected.sort_by_key(|app| places.get(app.ids().0));
        }
        selected
    }

    /// Whether `project` is the requested one, by id or by case-insensitive name.
    #[must_use]
    pub fn is_of(&self, project: &Project) -> bool {
        *project.id == *self.project
            || project.name.as_ref().is_some_and(|name| name.to_lowercase() == self.project.to_lowercase())
    }

    /// This query without its filters; the order stays.
    #[must_use]
    pub fn unfiltered(&self) -> Self {
        Self { sort: self.sort, reversed: self.reversed, grouped: self.grouped, page: 1, ..Self::default() }
    }

    /// This query sorted by `sort`; reversed if it was already.
    #[must_use]
    pub fn sorted(&self, sort: Sort) -> Self {
        let reversed = self.sort == sort && !self.reversed;
        Self { sort, reversed, page: 1, ..self.clone() }
    }

    /// This query for another page.
    #[must_use]
    pub fn on_page(&self, page: usize) -> Self {
        Self { page, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use crate::status::Problem;
    use crate::status::model::{LastError, ResponseTime};

    use super::*;

    impl Listed for App {
        fn ids(&self) -> (&str, &str) {
            (&self.project, &self.id)
        }

        fn verdict(&self) -> (Verdict, &[Problem]) {
            (self.verdict, &self.problems)
        }

        fn app(&self) -> &App {
            self
        }
    }

    #[test]
    fn a_query_survives_its_address() {
        for text in [
            "",
            "?project=p%2D1&name=a%20b",
            "?problems=1&sort=p95&reversed=1&page=3",
            "?state=waiting&group=project",
        ] {
            let query = Query::read(text.trim_start_matches('?'));
            assert_eq!(Query::read(query.to_text().trim_start_matches('?')), query);
        }
        let unreadable = Query::read("sort=nonsense&page=-4&x=%ff&problems=yes&reason=fate&reversed=1");
        assert_eq!(unreadable.to_text(), "?reversed=1");
        assert_eq!(
            unreadable.ignored,
            ["sort=nonsense", "page=-4", "x=\u{fffd}", "problems=yes", "reason=fate"],
            "and the page says so"
        );
        assert_eq!(Query::read("name=%3Cb%3E+%26").name, "<b> &");
    }

    #[test]
    fn sorting_twice_by_a_column_reverses_the_order() {
        let once = Query::read("page=4").sorted(Sort::P95);
        assert_eq!(once.to_text(), "?sort=p95");
        assert_eq!(once.sorted(Sort::P95).to_text(), "?sort=p95&reversed=1");
        assert_eq!(once.sorted(Sort::P95).sorted(Sort::P95).to_text(), "?sort=p95");
    }

    /// An app whose value in every column is `rank`.
    fn app(project: &str, id: &str, rank: u8) -> App {
        let value = Some(f64::from(rank));
        let verdicts = [Verdict::Problem, Verdict::Warning, Verdict::Waiting, Verdict::Ok];
        App {
            project: project.into(),
            id: id.into(),
            name: None,
            status: None,
            error_message: None,
            verdict: verdicts[usize::from(rank)],
            problems: Vec::new(),
            window: "5m".to_owned(),
            response_time: ResponseTime { p50: value, p90: value, p95: value, p99: value },
            requests_per_minute: value,
            min_replicas: None,
            max_replicas: value,
            hardware: Some(format!("hardware {rank}")),
            dollars_per_replica_hour: value,
            resources: Vec::new(),
            last_error: Some(LastError {
                at: Timestamp::from_second(i64::from(rank)).unwrap(),
                resource: "app",
                class: "500",
                message: "".into(),
            }),
            trend: Vec::new(),
        }
    }

    /// An app without a value in the column `sort`, if that column can lack one.
    fn without(sort: Sort, id: &str) -> App {
        let mut app = app("p-1", id, 1);
        match sort {
            Sort::Verdict | Sort::App => {}
            Sort::P50 => app.response_time.p50 = None,
            Sort::P95 => app.response_time.p95 = None,
            Sort::P99 => app.response_time.p99 = None,
            Sort::Requests => app.requests_per_minute = None,
            Sort::Replicas => app.max_replicas = None,
            Sort::Hardware => app.hardware = None,
            Sort::Cost => app.dollars_per_replica_hour = None,
            Sort::LastError => app.last_error = None,
        }
        app
    }

    /// A project whose name is its id's in other words: that of `p-1` is `Project 1`.
    fn project(id: &str) -> Project {
        Project {
            id: id.into(),
            name: Some(id.replace("p-", "Project ")),
            role: None,
            verdict: Verdict::Ok,
            problems: Vec::new(),
            apps: 0,
            custom_domains: None,
            volume_alerts: None,
            resources: Vec::new(),
        }
    }

    fn ids(query: &str, apps: &[App]) -> Vec<String> {
        let projects = ["p-0", "p-1", "p-2"].map(project);
        Query::read(query).select(apps, &projects).iter().map(|app| app.id.to_string()).collect()
    }

    #[test]
    fn every_column_sorts_both_ways_by_its_own_value_alone() {
        for sort in Sort::ALL {
            // The other columns have the opposite order, but for names, which are told apart by them.
            let apps = [1, 3, 0, 2].map(|rank| {
                let mut app = app("p-1", &format!("app-{rank}"), 3 - rank);
                let own = self::app("p-1", "", rank);
                match sort {
                    Sort::App => {}
                    Sort::Verdict => app.verdict = own.verdict,
                    Sort::P50 => app.response_time.p50 = own.response_time.p50,
                    Sort::P95 => app.response_time.p95 = own.response_time.p95,
                    Sort::P99 => app.response_time.p99 = own.response_time.p99,
                    Sort::Requests => app.requests_per_minute = own.requests_per_minute,
                    Sort::Replicas => app.max_replicas = own.max_replicas,
                    Sort::Hardware => app.hardware = own.hardware,
                    Sort::Cost => app.dollars_per_replica_hour = own.dollars_per_replica_hour,
                    Sort::LastError => app.last_error = own.last_error,
                }
                app
            });
            let rising = ["app-0", "app-1", "app-2", "app-3"];
            let falling = ["app-3", "app-2", "app-1", "app-0"];
            let (usual, reversed) = if sort.is_descending() { (falling, rising) } else { (rising, falling) };
            let name = sort.as_str();
            assert_eq!(ids(&format!("sort={name}"), &apps), usual, "{name}");
            assert_eq!(ids(&format!("sort={name}&reversed=1"), &apps), reversed, "{name}");
        }
    }

    #[test]
    fn a_missing_value_comes_last_both_ways_and_equal_ones_stay_in_order() {
        for (sort, reversed) in Sort::ALL.into_iter().flat_map(|sort| [(sort, "0"), (sort, "1")]) {
            let apps = [without(sort, "app-0"), app("p-1", "app-1", 1), app("p-1", "app-2", 1)];
            let expected = match sort {
                Sort::App if reversed == "1" => ["app-2", "app-1", "app-0"],
                Sort::Verdict | Sort::App => ["app-0", "app-1", "app-2"],
                _ => ["app-1", "app-2", "app-0"],
            };
            let name = sort.as_str();
            assert_eq!(
                ids(&format!("sort={name}&reversed={reversed}"), &apps),
                expected,
                "{name} {reversed}"
            );
        }
    }

    #[test]
    fn apps_sort_by_the_name_that_is_shown() {
        let named = |id, name: &str| App { name: Some(name.to_owned()), ..app("p-1", id, 1) };
        let apps = [named("p-1-z", "alpha"), app("p-1", "beta", 1), named("p-1-a", "gamma")];
        assert_eq!(ids("sort=app", &apps), ["p-1-z", "beta", "p-1-a"]);
    }

    #[test]
    fn a_filter_selects_among_several_apps_of_several_projects() {
        let mut apps: Vec<App> =
            (0..12).map(|n| app(&format!("p-{}", n % 3), &format!("p-{}-app-{n:02}", n % 3), 3)).collect();
        apps[4].verdict = Verdict::Warning;
        apps[6].verdict = Verdict::Problem;
        apps[7].name = Some("Ranker".to_owned());
        for (query, wanted) in [
            ("", &[6, 4, 0, 1, 2, 3, 5, 7, 8, 9, 10, 11][..]),
            ("project=p-1", &[4, 1, 7, 10]),
            ("project=project+1", &[4, 1, 7, 10]),
            ("app=p-1-app-07", &[7]),
            ("project=p-1&sort=app&reversed=1", &[7, 10, 4, 1]),
            ("project=p-", &[]),
            ("state=warning", &[4]),
            ("state=problem", &[6]),
            ("group=project", &[6, 0, 3, 9, 4, 1, 7, 10, 2, 5, 8, 11]),
            ("group=project&sort=app&reversed=1&name=app-0", &[9, 6, 3, 0, 7, 4, 1, 8, 5, 2]),
            ("problems=1", &[6, 4]),
            ("project=p-1&problems=1", &[4]),
            ("name=ranker", &[7]),
            ("project=p-2&name=ranker", &[]),
            ("name=APP-1", &[10, 11]),
        ] {
            let wanted: Vec<String> = wanted.iter().map(|n| format!("p-{}-app-{n:02}", n % 3)).collect();
            assert_eq!(ids(query, &apps), wanted, "{query}");
        }
    }
}
