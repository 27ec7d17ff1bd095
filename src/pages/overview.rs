//! `/`: whether the numbers can be trusted, and which app is slow.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::status::LazyApp;
use pds_diagnosis::{App, Cell, Column, Project, Resource, State, Summary, Verdict};

use super::banner::{banner, facts};
use super::format::{self, age, ago, count, missing, number, plural, sign, value, verdict, verdict_of};
use super::layout::{Frame, ignored, table};
use super::plots::sparkline;
use super::query::{PAGE, Query};
use super::timeline;

/// The most projects listed; the filter finds the others.
const MAX_PROJECTS: usize = 15;
/// The most projects that the filter suggests, as a long list would outweigh the page. Any id can be typed.
const MAX_SUGGESTED_PROJECTS: usize = 200;

/// The overview that `query` selects.
pub(super) fn overview(frame: Frame<'_>, query: &Query) -> Markup {
    let selected = query.select(&frame.status.apps, &frame.status.projects);
    html! {
        h1 .hidden { "Overview" }
        (banner(frame))
        (ignored(&query.ignored))
        (facts(frame))
        (timeline::overview(frame))
        section aria-labelledby="apps" {
            div .bar {
                h2 #apps { "Apps" }
                (chips(frame, query))
                (filter(frame, query))
            }
            (apps(frame, query, &selected))
            (pages(frame, query, selected.len()))
            (freshness_legend())
        }
        (projects(frame, query))
    }
}

/// The title in a browser tab: the problem, if there is one.
pub(super) fn title(summary: &Summary) -> String {
    match (summary.verdict, summary.apps.unwell()) {
        (Verdict::Problem, _) => "Numbers cannot be trusted".to_owned(),
        (_, 0) => "Overview".to_owned(),
        (_, unwell) => format!("{} unhealthy", plural(unwell, "app", "apps")),
    }
}

/// The number of apps in each state, as links that show only those apps.
fn chips(frame: Frame<'_>, query: &Query) -> Markup {
    let summary = &frame.status.summary;
    let apps_of = |verdict| match verdict {
        Verdict::Problem => summary.problem,
        Verdict::Warning => summary.warning,
        Verdict::Waiting => summary.waiting,
        Verdict::Ok => summary.ok,
    };
    let link = |state| {
        let query = Query { state, problems: false, page: 1, ..query.clone() };
        frame.links.overview(&query.to_text())
    };
    html! {
        nav .chips aria-label="Apps by state" {
            a href=(link(None)) aria-current=[query.state.is_none().then_some("true")] { "all " (count(summary.apps.all)) }
            @for verdict in Verdict::ALL {
                @if apps_of(verdict) > 0 || query.state == Some(verdict) {
                    a class=(verdict.as_str()) href=(link(Some(verdict))) aria-current=[(query.state == Some(verdict)).then_some("true")] {
                        span aria-hidden="true" { (sign(verdict)) " " } (verdict.as_str()) " " (count(apps_of(verdict)))
                    }
                }
            }
        }
    }
}

/// The heading of a project's apps.
fn group(frame: Frame<'_>, id: &str) -> Markup {
    let project = frame.status.projects.iter().find(|project| *project.id == *id);
    let name = project.and_then(|project| project.name.as_deref()).unwrap_or(id);
    html! {
        tr .group role="row" data-key={ "project " (id) } {
            th role="rowheader" scope="rowgroup" colspan=(Column::of_page().count()) {
                span .line title=(name) { (name) }
                @if let Some(project) = project { " " span .sub { (id) ", " (plural(project.apps, "app", "apps")) } }
            }
        }
    }
}

fn filter(frame: Frame<'_>, query: &Query) -> Markup {
    let known = frame.status.projects.iter().map(|project| project.name.as_deref().unwrap_or(&project.id));
    html! {
        form .filter method="get" action=(frame.links.to("/")) role="search" aria-label="Apps" {
            label { span { "Name" } input type="search" name="name" value=(query.name) placeholder="part of a name or id"; }
            label { span { "Project" }
                input name="project" value=(query.project) list="projects-known" placeholder="all" autocomplete="off";
            }
            datalist #projects-known { @for id in known.take(MAX_SUGGESTED_PROJECTS) { option value=(id) {} } }
            label .check { input type="checkbox" name="problems" value="1" checked[query.problems]; span { "problems only" } }
            label .check { input type="checkbox" name="group" value="project" checked[query.grouped]; span { "by project" } }
            @if !query.sort.is_empty() { input type="hidden" name="sort" value=(query.sort); }
            @if query.reversed { input type="hidden" name="reversed" value="1"; }
            @if let Some(state) = query.state { input type="hidden" name="state" value=(state.as_str()); }
            @if !query.reason.is_empty() { input type="hidden" name="reason" value=(query.reason); }
            button type="submit" { "Show" }
            @if query.filters() { a .clear href=(frame.links.overview(&query.unfiltered().to_text())) { "All apps" } }
        }
    }
}

fn apps(frame: Frame<'_>, query: &Query, selected: &[&LazyApp]) -> Markup {
    let page = selected.chunks(PAGE).nth(query.page - 1).unwrap_or_default();
    let window = frame.status.apps.first().map_or("", |app| app.window.as_str());
    let head = |column: &'static Column| {
        html! {
            @let order = if column.is_descending() == query.reversed { "ascending" } else { "descending" };
            th scope="col" role="columnheader" class=[column.is_number().then_some("number")]
                aria-sort=[(column.key == query.column().key).then_some(order)] {
                a href=(frame.links.overview(&query.sorted(column.key).to_text())) { (column.title) }
            }
        }
    };
    html! {
        div .scroll.tall {
            table .apps.cards role="table" {
                caption {
                    (plural(selected.len(), "app", "apps")) @if query.filters() { " of " (count(frame.status.apps.len())) }
                    @if !window.is_empty() { "; response times and rates over the last " (window) }
                }
                thead role="rowgroup" { tr role="row" {
                    @for column in Column::of_page() { (head(column)) }
                } }
                tbody role="rowgroup" {
                    @for (index, app) in page.iter().enumerate() {
                        @let before = index.checked_sub(1).and_then(|before| page.get(before));
                        @if query.grouped && before.is_none_or(|before| before.project != app.project) { (group(frame, &app.project)) }
                        (row(frame, app))
                    }
                    @if page.is_empty() { tr role="row" { td role="cell" colspan=(Column::of_page().count()) .none {
                        @if frame.status.apps.is_empty() { (how_to_add(frame)) }
                        @else if selected.is_empty() { "No app matches. " a href=(frame.links.overview(&query.unfiltered().to_text())) { "All apps" } }
                        @else { "There is no page " (count(query.page)) ". " a href=(frame.links.overview(&query.on_page(pages_of(selected.len())).to_text())) { "Last page" } }
                     } } }
                }
            }
        }
    }
}

/// The remedy of an empty list.
fn how_to_add(frame: Frame<'_>) -> Markup {
    html! {
        @if frame.status.exporter.shards > 1 { "No configured app belongs to this shard." }
        @else {
            "No app is configured. Add one to " code { "[[projects]]" } " in the configuration: "
            code { "id = \"p-…\", apps = [\"p-…-…\"]" } ", and reload it."
        }
    }
}

fn row(frame: Frame<'_>, app: &App) -> Markup {
    html! {
        tr role="row" class=(app.verdict.as_str()) data-key={ (app.project) "/" (app.id) } {
            @for column in Column::of_page() {
                @let cell = (column.value)(app);
                @if let Cell::App(_) = cell {
                    th scope="row" role="rowheader" {
                        a .app href=(frame.links.app(&app.project, &app.id)) title=(app.title()) { (app.title()) }
                        span .sub { @if app.name.is_some() { (app.id) } " in " (app.project) @if app.name_is_old { "; last known name" } }
                        @if let Some(problem) = app.problems.first() { span .why { (problem.text) } }
                    }
                } @else {
                    td role="cell" class=[column.is_number().then_some("number")] data-name=(column.title) {
                        @match column.trend {
                            Some(trend) => {
                                @let points: Vec<Option<f64>> = app.trend.iter().map(trend).collect();
                                span .trend { (sparkline(&points, &format!("recent {}", column.title))) span { (shown(frame, app, &cell)) } }
                            }
                            None => (shown(frame, app, &cell)),
                        }
                    }
                }
            }
        }
    }
}

fn shown(frame: Frame<'_>, app: &App, cell: &Cell<'_>) -> Markup {
    html! {
        @let polls = format!("{}#polls", frame.links.app(&app.project, &app.id));
        @match cell {
            Cell::Verdict(known) => { (verdict(*known)) @if let Some(status) = &app.status { span .sub { (status) } } },
            Cell::Freshness(resources) => (freshness(resources, frame.now, Some(&polls))),
            Cell::Failure(Some(error)) => { a .class href=(polls) { (format::class(&error.class)) } " " (ago(error.at, frame.now)) },
            Cell::Failure(None) => span .sub { "none" },
            cell if cell.is_missing() => (missing()),
            cell => (cell.text()),
        }
    }
}

/// The freshness of each resource: a sign, an age, and a name for screen readers and tooltips. A failing one links to
/// its `polls`.
fn freshness(resources: &[Resource], now: Timestamp, polls: Option<&str>) -> Markup {
    let said = |resource: &Resource| {
        let grade = verdict_of(resource.state);
        html! {
            span aria-hidden="true" { (sign(grade)) " " }
            span .hidden { (format::resource(&resource.resource)) " " (resource.state.as_str()) " " }
            @match resource.last_success { Some(at) => (age(at, now)), None => span { "never" } }
        }
    };
    html! {
        ul .freshness {
            @for resource in resources {
                @let grade = verdict_of(resource.state);
                li class=(grade.as_str()) title={ (format::resource(&resource.resource)) ": " (resource.state.as_str()) } {
                    @match polls.filter(|_| resource.failing.is_some()) {
                        Some(polls) => a href=(polls) { (said(resource)) },
                        None => (said(resource)),
                    }
                }
            }
        }
    }
}

/// The legend of the signs of freshness.
fn freshness_legend() -> Markup {
    let meanings = [
        (State::Fresh, "the last poll succeeded"),
        (State::Waiting, "not polled yet"),
        (State::Late, "the next poll is overdue"),
        (State::Failing, "the last poll failed; values are still shown"),
        (State::Stale, "failing for so long that its values are no longer shown"),
    ];
    html! {
        p .freshness-legend.sub {
            "Freshness: time since the last successful poll of settings, response time and run execution time, in this order. "
            @for (state, meaning) in meanings {
                @let verdict = verdict_of(state);
                span class=(verdict.as_str()) { span .tone aria-hidden="true" { (sign(verdict)) } " " (state.as_str()) ": " (meaning) } " "
            }
        }
    }
}

fn pages_of(apps: usize) -> usize {
    apps.div_ceil(PAGE).max(1)
}

fn pages(frame: Frame<'_>, query: &Query, selected: usize) -> Markup {
    let pages = pages_of(selected);
    let link = |page: usize| frame.links.overview(&query.on_page(page).to_text());
    html! {
        @if pages > 1 {
            nav .pages aria-label="Pages of apps" {
                @if query.page > 1 { a rel="prev" href=(link(pages.min(query.page - 1))) { "Previous" } }
                span { "Page " (count(query.page.min(pages))) " of " (count(pages)) }
                @if query.page < pages { a rel="next" href=(link(query.page + 1)) { "Next" } }
            }
        }
    }
}

fn projects(frame: Frame<'_>, query: &Query) -> Markup {
    let mut wanted: Vec<&Project> =
        frame.status.projects.iter().filter(|project| query.lists(project)).collect();
    wanted.sort_by_key(|project| project.verdict);
    let caption = html! {
        caption {
            (plural(wanted.len(), "project", "projects"))
            @if wanted.len() > MAX_PROJECTS { "; the first " (MAX_PROJECTS) ", problems first" }
        }
    };
    let titles = ["Project", "Role", "Freshness", "Apps", "Custom domains", "Storage alerts"];
    let rows = wanted.into_iter().take(MAX_PROJECTS).map(|project| project_row(frame, project));
    html! {
        section {
            h2 #projects { "Projects" }
            (table("projects cards", "Projects", caption, &titles, html! { tbody role="rowgroup" { @for row in rows { (row) } } }))
        }
    }
}

fn project_row(frame: Frame<'_>, project: &Project) -> Markup {
    let only = Query { project: project.id.to_string(), page: 1, ..Query::default() };
    html! {
        tr role="row" class=(project.verdict.as_str()) data-key=(project.id) {
            th scope="row" role="rowheader" {
                a href=(frame.links.overview(&only.to_text())) { (project.name.as_deref().unwrap_or(&project.id)) }
                @if project.name.is_some() { span .sub { (project.id) } }
                @if let Some(problem) = project.problems.first() { span .why { (problem.text) } }
            }
            td role="cell" data-name="Role" { (value(project.role.as_deref(), str::to_owned)) }
            td role="cell" data-name="Freshness" { (freshness(&project.resources, frame.now, None)) }
            td role="cell" data-name="Apps" { (count(project.apps)) }
            td role="cell" data-name="Custom domains" { (value(project.custom_domains, number)) }
            td role="cell" data-name="Storage alerts" {
                @match &project.volume_alerts {
                    None => (missing()),
                    Some(alerts) if alerts.is_empty() => "off",
                    Some(alerts) => { "at " (alerts.join(", ")) " %" }
                }
            }
        }
    }
}
