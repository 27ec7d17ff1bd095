//! The answer to the first question: can the numbers be trusted? If not, why, and what to do.

use maud::{Markup, html};

use crate::status::model::ServiceState;
use crate::status::verdict::CountedAgain;
use crate::status::verdict::Reason;
use crate::status::{Status, Verdict};

use super::format::{self, ago, count, number};
use super::layout::{Frame, sign};

/// Reasons listed; the rest is only counted.
const MAX_REASONS: usize = 8;

/// The verdict in one sentence, and its reasons as links.
pub(super) fn banner(frame: Frame<'_>) -> Markup {
    let summary = &frame.status.summary;
    // If nothing comes from the service, the sentence itself states the first reason.
    let reasons = summary.reasons.get(usize::from(is_silent(frame.status))..).unwrap_or_default();
    html! {
        section class={ "banner " (summary.verdict.as_str()) } aria-label="Verdict" {
            span .sign aria-hidden="true" { (sign(summary.verdict)) }
            div {
                p role="status" { (sentence(frame)) }
                (apps(frame))
                @if let Some(figures) = counted_again(frame.status.summary.rechecked) { p .sub { (figures) } }
                @if !reasons.is_empty() {
                    ul .reasons { @for reason in reasons.iter().take(MAX_REASONS) { (line(frame, reason)) } }
                    @if let Some(more @ 1..) = reasons.len().checked_sub(MAX_REASONS) {
                        p .sub { "and " (count(more, "more reason", "more reasons")) " in the "
                            a href=(frame.links.to("/api/v1/status")) { "JSON" } "." }
                    }
                }
            }
        }
    }
}

fn line(frame: Frame<'_>, reason: &Reason) -> Markup {
    html! {
        li class=(reason.verdict.as_str()) {
            a href=(frame.links.to(&reason.link)) { (reason.text) }
            " " span .action { (reason.action) }
        }
    }
}

/// How many requests were counted again, and what share of them were late.
pub(super) fn counted_again(rechecked: CountedAgain) -> Option<Markup> {
    #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
    let (counted, fewer) = (rechecked.counted as f64, rechecked.overcounted as f64);
    let late = rechecked.late_share()? * 100.0;
    Some(html! {
        (number(counted)) " requests counted again since startup; " (number(late)) " % came late"
        @if fewer > 0.0 { ", and " (number(fewer)) " were no longer there" }
        "."
    })
}

/// Whether the service sends nothing.
fn is_silent(status: &Status) -> bool {
    !matches!(status.service.state, ServiceState::Up | ServiceState::Waiting)
}

/// The answer to the second question: are the apps well?
fn apps(frame: Frame<'_>) -> Markup {
    let apps = frame.status.summary.apps;
    let verdict = apps.verdict();
    let text = match apps.unwell() {
        0 if apps.ok == 0 => return html! {},
        0 if apps.waiting > 0 => format!("{} known to be well", count(apps.ok, "app is", "apps are")),
        0 => count(apps.ok, "app is well", "apps are well"),
        unwell => format!("{unwell} of {} unwell", count(apps.all, "app is", "apps are")),
    };
    html! {
        p class={ "apps-state " (verdict.as_str()) } {
            span aria-hidden="true" { (sign(verdict)) " " } strong { (text) } "."
        }
    }
}

fn sentence(frame: Frame<'_>) -> Markup {
    let Status { service, summary, .. } = frame.status;
    match summary.verdict {
        Verdict::Problem if is_silent(frame.status) => html! {
            @if let Some(Reason { text, .. }) = summary.reasons.first() { strong { (text) } }
            @if let Some(since) = service.down_since {
                " since " time datetime=(since) { (format::absolute(since)) } " (" (ago(since, frame.now)) ")"
            }
            "."
            @if let Some(reason) = &service.reason { span .reason { (reason) } }
            @if let Some(Reason { action, .. }) = summary.reasons.first() { span .action { (action) } }
        },
        Verdict::Problem => html! {
            strong { "Some numbers cannot be trusted" }
            @if summary.untrusted > 0 { ": those of " (summary.untrusted) " of " (count(summary.apps.all, "app", "apps")) }
            "."
        },
        Verdict::Warning => {
            html! { strong { "All numbers are there, but something needs attention" } "." }
        }
        Verdict::Waiting if service.state == ServiceState::Waiting => {
            html! { strong { "Nothing has been polled yet" } "; numbers appear with the first polls." }
        }
        Verdict::Waiting => html! { strong { "Not every app has been polled yet" } "." },
        Verdict::Ok => html! {
            strong { "All numbers can be trusted" } ": " (count(summary.apps.all, "app", "apps")) ", every resource fresh."
        },
    }
}
