//! The answer to the first question, in one sentence: can the numbers be trusted?

use maud::{Markup, html};

use crate::status::model::{Service, ServiceState, Summary};
use crate::status::{Status, Verdict};

use super::format::{self, ago, count, span};
use super::layout::{Frame, sign};

/// The sentence, with its sign.
pub(super) fn banner(frame: Frame<'_>) -> Markup {
    let Status { service, summary, .. } = frame.status;
    let (grade, says) = match silence(service.state) {
        Some((what, why)) => (Verdict::Problem, no_answer(frame, what, why)),
        None if service.state == ServiceState::Waiting => (
            Verdict::Waiting,
            html! { strong { "Nothing was asked yet" } "; numbers come with the first polls." },
        ),
        None => of_apps(service, summary),
    };
    html! {
        section class={ "banner " (grade.as_str()) } aria-label="Verdict" {
            span .sign aria-hidden="true" { (sign(grade)) }
            p role="status" { (says) }
        }
    }
}

/// That nothing comes from the service, and why, where that is so.
fn silence(state: ServiceState) -> Option<(&'static str, &'static str)> {
    match state {
        ServiceState::Waiting | ServiceState::Up => None,
        ServiceState::NotAsked => Some(("The service is not asked", ": the token file cannot be read")),
        ServiceState::TokenRefused => Some(("The service refuses the token", "")),
        ServiceState::Throttled => Some(("The service asks us to slow down", "")),
        ServiceState::Down => Some(("The service does not answer", "")),
    }
}

fn no_answer(frame: Frame<'_>, what: &str, why: &str) -> Markup {
    let service = &frame.status.service;
    html! {
        strong { (what) }
        @if let Some(since) = service.down_since {
            " since " time datetime=(since) { (format::absolute(since)) } " (" (ago(since, frame.now)) ")"
        }
        (why) "."
        @if let Some(reason) = &service.reason { span .reason { (reason) } }
        (aside(service))
    }
}

/// Of a service that answers, the gravest comes first.
fn of_apps(service: &Service, summary: &Summary) -> (Verdict, Markup) {
    let wrong = summary.problem + summary.warning;
    if summary.problem > 0 {
        let says = html! {
            strong { (count(summary.problem, "app has a problem", "apps have problems")) }
            @if summary.warning > 0 { ", " (count(summary.warning, "deserves", "deserve")) " a look" }
            "; " (summary.apps - wrong - summary.waiting) " of " (summary.apps) " are well."
            (aside(service))
        };
        return (Verdict::Problem, says);
    }
    if summary.warning > 0 {
        let says = html! {
            strong { (count(summary.warning, "app deserves a look", "apps deserve a look")) } "; all numbers are there."
            (aside(service))
        };
        return (Verdict::Warning, says);
    }
    if let Some(clocks) = clocks(service) {
        let says = html! { strong { (clocks) } "; all numbers go by the one that is behind." };
        return (Verdict::Warning, says);
    }
    if summary.waiting > 0 {
        let says = html! {
            strong { (count(summary.waiting, "app was", "apps were")) " not asked in full yet" } "; the others are well."
        };
        return (Verdict::Waiting, says);
    }
    let says = html! {
        strong { "All numbers can be trusted" } ": " (count(summary.apps, "app", "apps")) ", every resource fresh."
    };
    (Verdict::Ok, says)
}

/// That the clocks differ, beside something graver.
fn aside(service: &Service) -> Markup {
    html! { @if let Some(clocks) = clocks(service) { span .reason { (clocks) "." } } }
}

/// How far the clocks are apart, where that matters.
fn clocks(service: &Service) -> Option<String> {
    let skew = service.clock_skew_seconds.filter(|_| service.clocks_differ)?;
    let side = if skew < 0 { "behind" } else { "ahead of" };
    Some(format!("The service's clock is {} {side} ours", span(skew.saturating_abs())))
}
