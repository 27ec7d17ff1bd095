//! What the reader of the overview asked for: filter, order, page.

use std::cmp::Ordering;

use url::form_urlencoded::parse;

use crate::status::{App, Verdict};

use super::links::encode;

/// So many apps are on a page.
pub const PAGE: usize = 50;

/// What the reader asked for. Whatever can't be read is as if it were not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Only apps of this project.
    pub project: String,
    /// Only apps whose id, name or project holds this, in any case.
    pub name: String,
    /// Only apps that are not well.
    pub problems: bool,
    /// The order.
    pub sort: Sort,
    /// Whether it is the other way round than usual.
    pub reversed: bool,
    /// Which page, from 1.
    pub page: usize,
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

    /// Whether its usual order has the largest first.
    #[must_use]
    pub fn is_descending(self) -> bool {
        !matches!(self, Self::Verdict | Self::App | Self::Hardware)
    }

    /// `one` before `other` in the usual order. What has no value comes last.
    fn compare(self, one: &App, other: &App) -> Ordering {
        let numbers = |value: fn(&App) -> Option<f64>| {
            let value = |app| value(app).unwrap_or(f64::NEG_INFINITY);
            value(other).total_cmp(&value(one))
        };
        match self {
            Self::Verdict => one.verdict.cmp(&other.verdict),
            Self::App => (&one.id, &one.project).cmp(&(&other.id, &other.project)),
            Self::P50 => numbers(|app| app.response_time.p50),
            Self::P95 => numbers(|app| app.response_time.p95),
            Self::P99 => numbers(|app| app.response_time.p99),
            Self::Requests => numbers(|app| app.requests_per_minute),
            Self::Replicas => numbers(|app| app.max_replicas),
            Self::Hardware => {
                (one.hardware.is_none(), &one.hardware).cmp(&(other.hardware.is_none(), &other.hardware))
            }
            Self::Cost => numbers(|app| app.dollars_per_replica_hour),
            Self::LastError => {
                other.last_error.as_ref().map(|e| e.at).cmp(&one.last_error.as_ref().map(|e| e.at))
            }
        }
    }
}

impl Query {
    /// Reads the query of an address.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut query = Self { page: 1, ..Self::default() };
        for (name, value) in parse(text.as_bytes()) {
            match &*name {
                "project" => query.project = value.into_owned(),
                "name" => query.name = value.trim().to_owned(),
                "problems" => query.problems = value == "1",
                "sort" => {
                    query.sort = Sort::ALL.into_iter().find(|sort| sort.as_str() == value).unwrap_or_default()
                }
                "reversed" => query.reversed = value == "1",
                "page" => query.page = value.parse().unwrap_or(1).max(1),
                _ => {}
            }
        }
        query
    }

    /// The query as part of an address; empty where nothing was asked for.
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
        add("sort", if self.sort == Sort::default() { "" } else { self.sort.as_str() });
        add("reversed", flag(self.reversed));
        add("page", &if self.page > 1 { self.page.to_string() } else { String::new() });
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    /// Whether it leaves apps out.
    #[must_use]
    pub fn filters(&self) -> bool {
        !self.project.is_empty() || !self.name.is_empty() || self.problems
    }

    /// The apps asked for, in order, all pages of them.
    #[must_use]
    pub fn select<'a>(&self, apps: &'a [App]) -> Vec<&'a App> {
        let name = self.name.to_lowercase();
        let holds = |text: &str| text.to_lowercase().contains(&name);
        let wanted = |app: &&App| {
            (self.project.is_empty() || *app.project == *self.project)
                && (!self.problems || app.verdict != Verdict::Ok)
                && (name.is_empty()
                    || holds(&app.id)
                    || holds(&app.project)
                    || app.name.as_deref().is_some_and(holds))
        };
        let mut selected: Vec<&App> = apps.iter().filter(wanted).collect();
        // Stable: equal ones stay in the order of the configuration.
        selected.sort_by(|one, other| {
            let order = self.sort.compare(one, other);
            if self.reversed { order.reverse() } else { order }
        });
        selected
    }

    /// This query for another order: the other way round where it is the same one.
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
    use super::*;

    #[test]
    fn a_query_survives_its_address() {
        for text in ["", "?project=p%2D1&name=a%20b", "?problems=1&sort=p95&reversed=1&page=3"] {
            let query = Query::read(text.trim_start_matches('?'));
            assert_eq!(Query::read(query.to_text().trim_start_matches('?')), query);
        }
        assert_eq!(Query::read("sort=nonsense&page=-4&x=%ff&problems").to_text(), "");
        assert_eq!(Query::read("name=%3Cb%3E+%26").name, "<b> &");
    }

    #[test]
    fn an_order_asked_for_twice_is_reversed() {
        let once = Query::read("page=4").sorted(Sort::P95);
        assert_eq!(once.to_text(), "?sort=p95");
        assert_eq!(once.sorted(Sort::P95).to_text(), "?sort=p95&reversed=1");
        assert_eq!(once.sorted(Sort::P95).sorted(Sort::P95).to_text(), "?sort=p95");
    }
}
