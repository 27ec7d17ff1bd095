//! Aids for reading the overview's table of apps: counts per state, headings of projects, a legend.

use maud::{Markup, html};

use crate::status::columns::Column;
use crate::status::{State, Verdict};

use super::format::count;
use super::layout::{Frame, sign, verdict_of};
use super::query::Query;

/// The number of apps in each state, as links that show only those apps.
pub(super) fn chips(frame: Frame<'_>, query: &Query) -> Markup {
    let summary = &frame.status.summary;
    let of = |verdict| match verdict {
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
            a href=(link(None)) aria-current=[query.state.is_none().then_some("true")] { "all " (summary.apps.all) }
            @for verdict in Verdict::ALL {
                @if of(verdict) > 0 || query.state == Some(verdict) {
                    a class=(verdict.as_str()) href=(link(Some(verdict))) aria-current=[(query.state == Some(verdict)).then_some("true")] {
                        span aria-hidden="true" { (sign(verdict)) " " } (verdict.as_str()) " " (of(verdict))
                    }
                }
            }
        }
    }
}

/// The heading of a project's apps.
pub(super) fn group(frame: Frame<'_>, id: &str) -> Markup {
    let project = frame.status.projects.iter().find(|project| *project.id == *id);
    let name = project.and_then(|project| project.name.as_deref()).unwrap_or(id);
    html! {
        tr .group role="row" data-key={ "project " (id) } {
            th role="rowheader" scope="rowgroup" colspan=(Column::of_page().count()) {
                span .line title=(name) { (name) }
                @if let Some(project) = project { " " span .sub { (id) ", " (count(project.apps, "app", "apps")) } }
            }
        }
    }
}

/// What the signs of freshness mean.
pub(super) fn freshness_legend() -> Markup {
    let meanings = [
        (State::Fresh, "the last poll succeeded"),
        (State::Waiting, "not polled yet"),
        (State::Late, "the next poll is overdue"),
        (State::Failing, "the last poll failed; values are still shown"),
        (State::Stale, "failing for so long that its values are gone"),
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
