//! Filter, order and page of the overview.

use std::collections::{HashMap, HashSet};

use url::form_urlencoded::parse;

use pds_diagnosis::columns::COLUMNS;
use pds_diagnosis::{Column, Listed, Project, Verdict, cause};

use super::links::encode;

/// Apps on a page.
pub(super) const PAGE: usize = 50;

/// The query of an address. A part that cannot be read is ignored and reported ([`Query::ignored`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Only apps of this project.
    pub(super) project: String,
    /// Only apps whose id, name or project contains this, in any case.
    pub(super) name: String,
    /// Only apps whose verdict is not `ok`.
    pub(super) problems: bool,
    /// Only apps of this verdict.
    pub(super) state: Option<Verdict>,
    /// Whether apps are grouped by project.
    pub(super) grouped: bool,
    /// Only apps with a problem of this code.
    pub(super) reason: String,
    /// The key of the column that orders them; empty for the default order.
    pub(super) sort: &'static str,
    /// Whether the order is reversed.
    pub(super) reversed: bool,
    /// The page's number, from 1.
    pub(super) page: usize,
    /// Only the app of exactly this id.
    pub(super) app: String,
    /// The parts that could not be read, as `name=value`.
    pub(super) ignored: Vec<String>,
}

/// The most ignored parts of a query that are reported.
const MAX_IGNORED: usize = 5;
/// The most characters shown of each.
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

impl Query {
    /// Reads the query of an address.
    pub(super) fn read(text: &str) -> Self {
        let mut query = Self { page: 1, ..Self::default() };
        for (name, value) in parse(text.as_bytes()) {
            let understood = match &*name {
                "project" => assign(&mut query.project, &value),
                "name" => assign(&mut query.name, value.trim()),
                "app" => assign(&mut query.app, &value),
                "reason" => {
                    let known = value.is_empty() || cause::ALL.iter().any(|cause| cause.code == value);
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
                "sort" => {
                    let column = Column::of(&value);
                    query.sort = column.map_or(query.sort, |column| column.key);
                    column.is_some()
                }
                "page" => {
                    let page = value.parse::<usize>().ok().filter(|page| *page > 0);
                    query.page = page.unwrap_or(query.page);
                    page.is_some()
                }
                _ => false,
            };
            if !understood && query.ignored.len() < MAX_IGNORED {
                query.ignored.push(format!("{name}={value}").chars().take(MAX_IGNORED_CHARS).collect());
            }
        }
        query
    }

    /// The query as part of an address; empty if it selects nothing.
    pub(super) fn to_text(&self) -> String {
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
        add("sort", self.sort);
        add("reversed", flag(self.reversed));
        add("page", &if self.page > 1 { self.page.to_string() } else { String::new() });
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    /// Whether it filters apps.
    pub(super) fn filters(&self) -> bool {
        *self != Self { page: self.page, ignored: self.ignored.clone(), ..self.unfiltered() }
    }

    /// The selected apps, in order, over all pages. A project matches by id or name.
    pub(super) fn select<'a, A: Listed + Clone>(&self, apps: &'a [A], projects: &[Project]) -> Vec<&'a A> {
        let name = self.name.to_lowercase();
        let holds = |text: &str| text.to_lowercase().contains(&name);
        let asked_for = projects.iter().filter(|project| !self.project.is_empty() && self.is_of(project));
        let named: HashSet<&str> = asked_for.map(|project| &*project.id).collect();
        let wanted = |app: &&A| {
            let ((project, id), (verdict, problems)) = (app.ids(), app.verdict());
            (self.project.is_empty() || named.contains(project))
                && (!self.problems || verdict != Verdict::Ok)
                && self.state.is_none_or(|state| verdict == state)
                && (self.reason.is_empty() || problems.iter().any(|problem| problem.is(&self.reason)))
                && (self.app.is_empty() || id == self.app)
                && (name.is_empty()
                    || holds(id)
                    || holds(project)
                    // A copy, as in `Column::sort`.
                    || A::clone(app).app().name.as_deref().is_some_and(holds))
        };
        let mut selected: Vec<&A> = apps.iter().filter(wanted).collect();
        self.column().sort(&mut selected, self.reversed);
        if self.grouped {
            let places: HashMap<&str, usize> =
                projects.iter().zip(0..).map(|(project, at)| (&*project.id, at)).collect();
            selected.sort_by_key(|app| places.get(app.ids().0));
        }
        selected
    }

    /// Whether `project` is the requested one, by id or by case-insensitive name.
    pub(super) fn is_of(&self, project: &Project) -> bool {
        *project.id == *self.project
            || project.name.as_ref().is_some_and(|name| name.to_lowercase() == self.project.to_lowercase())
    }

    /// Whether the list of projects has `project`.
    pub(super) fn lists(&self, project: &Project) -> bool {
        (self.project.is_empty() || self.is_of(project))
            && (self.reason.is_empty() || project.problems.iter().any(|problem| problem.is(&self.reason)))
    }

    /// This query without its filters; the order stays.
    pub(super) fn unfiltered(&self) -> Self {
        Self { sort: self.sort, reversed: self.reversed, grouped: self.grouped, page: 1, ..Self::default() }
    }

    /// The column that orders the apps.
    pub(super) fn column(&self) -> &'static Column {
        Column::of(self.sort).unwrap_or(&COLUMNS[0])
    }

    /// This query sorted by the column `sort`; reversed if it was already.
    pub(super) fn sorted(&self, sort: &'static str) -> Self {
        let reversed = self.column().key == sort && !self.reversed;
        Self { sort, reversed, page: 1, ..self.clone() }
    }

    /// This query for another page.
    pub(super) fn on_page(&self, page: usize) -> Self {
        Self { page, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::OnceCell;

    use jiff::Timestamp;

    use pds_diagnosis::{App, LastError, Problem, Resource, ResponseTime, State};

    use super::*;

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
        let once = Query::read("page=4").sorted("p95");
        assert_eq!(once.to_text(), "?sort=p95");
        assert_eq!(once.sorted("p95").to_text(), "?sort=p95&reversed=1");
        assert_eq!(once.sorted("p95").sorted("p95").to_text(), "?sort=p95");
    }

    /// An app whose value in every column is `rank`.
    fn app(project: &str, id: &str, rank: u8) -> App {
        let value = Some(f64::from(rank));
        let verdicts = [Verdict::Problem, Verdict::Warning, Verdict::Waiting, Verdict::Ok];
        let state = [State::Stale, State::Failing, State::Late, State::Fresh][usize::from(rank)];
        App {
            project: project.into(),
            id: id.into(),
            status: Some(format!("status {rank}")),
            verdict: verdicts[usize::from(rank)],
            problems: vec![Problem::from(format!("problem {rank}"))],
            response_time: ResponseTime { p50: value, p90: value, p95: value, p99: value },
            requests_per_minute: value,
            min_replicas: value,
            max_replicas: value,
            hardware: Some(format!("hardware {rank}")),
            dollars_per_replica_hour: value,
            resources: vec![Resource { state, ..Resource::default() }],
            last_error: Some(LastError {
                at: Timestamp::from_second(i64::from(rank)).unwrap(),
                ..LastError::default()
            }),
            ..App::default()
        }
    }

    /// `app` with the value of `own` in the column `key`.
    fn with(key: &str, app: App, own: &App) -> App {
        let own = own.clone();
        match key {
            "verdict" => App { verdict: own.verdict, ..app },
            "project" => App { project: own.project, ..app },
            "status" => App { status: own.status, ..app },
            "freshness" => App { resources: own.resources, ..app },
            "requests" => App { requests_per_minute: own.requests_per_minute, ..app },
            "p50" | "p90" | "p95" | "p99" => {
                let mut times = app.response_time;
                match key {
                    "p50" => times.p50 = own.response_time.p50,
                    "p90" => times.p90 = own.response_time.p90,
                    "p95" => times.p95 = own.response_time.p95,
                    _ => times.p99 = own.response_time.p99,
                }
                App { response_time: times, ..app }
            }
            "min" => App { min_replicas: own.min_replicas, ..app },
            "replicas" | "max" => App { max_replicas: own.max_replicas, ..app },
            "hardware" => App { hardware: own.hardware, ..app },
            "cost" => App { dollars_per_replica_hour: own.dollars_per_replica_hour, ..app },
            "error" => App { last_error: own.last_error, ..app },
            "problem" => App { problems: own.problems, ..app },
            other => panic!("add the values of {other} to `app` and `with` in src/pages/query.rs"),
        }
    }

    /// A project with a name made of its id: `Project 1` for `p-1`.
    fn project(id: &str) -> Project {
        Project { id: id.into(), name: Some(id.replace("p-", "Project ")), ..Project::default() }
    }

    fn ids(query: &str, apps: &[App]) -> Vec<String> {
        let projects = ["p-0", "p-1", "p-2"].map(project);
        Query::read(query).select(apps, &projects).iter().map(|app| app.id.to_string()).collect()
    }

    #[test]
    fn every_column_sorts_both_ways_by_its_own_value_alone() {
        // A later test distinguishes names.
        for column in COLUMNS.iter().filter(|column| column.key != "app") {
            // The other columns have the opposite order.
            let apps = [1, 3, 0, 2].map(|rank| {
                let id = format!("app-{rank}");
                with(column.key, app("p-1", &id, 3 - rank), &app(&format!("p-{rank}"), &id, rank))
            });
            let rising = ["app-0", "app-1", "app-2", "app-3"];
            let falling = ["app-3", "app-2", "app-1", "app-0"];
            let (usual, reversed) =
                if column.is_descending() { (falling, rising) } else { (rising, falling) };
            let name = column.key;
            assert_eq!(ids(&format!("sort={name}"), &apps), usual, "{name}");
            assert_eq!(ids(&format!("sort={name}&reversed=1"), &apps), reversed, "{name}");
        }
    }

    #[test]
    fn a_missing_value_comes_last_both_ways_and_equal_ones_stay_in_order() {
        let present = ["verdict", "app", "project", "freshness"];
        for column in COLUMNS.iter().filter(|column| !present.contains(&column.key)) {
            for reversed in ["0", "1"] {
                let mut without = with(column.key, app("p-1", "app-0", 1), &App::default());
                if column.key == "replicas" {
                    without.min_replicas = None;
                }
                let apps = [without, app("p-1", "app-1", 1), app("p-1", "app-2", 1)];
                let query = format!("sort={}&reversed={reversed}", column.key);
                assert_eq!(ids(&query, &apps), ["app-1", "app-2", "app-0"], "{query}");
            }
        }
    }

    /// An app that is read when it is needed.
    #[derive(Clone)]
    struct Lazy(App, OnceCell<()>);

    impl Listed for Lazy {
        fn app(&self) -> &App {
            self.1.get_or_init(|| ());
            &self.0
        }

        fn ids(&self) -> (&str, &str) {
            self.0.ids()
        }

        fn verdict(&self) -> (Verdict, &[Problem]) {
            self.0.verdict()
        }
    }

    #[test]
    fn a_selection_keeps_no_app_in_memory() {
        let apps = [2, 1, 3].map(|rank| Lazy(app("p-1", &format!("app-{rank}"), rank), OnceCell::new()));
        for query in ["sort=p95", "sort=app", "sort=freshness", "name=nowhere", ""] {
            Query::read(query).select(&apps, &[project("p-1")]);
            assert!(apps.iter().all(|app| app.1.get().is_none()), "{query}");
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
