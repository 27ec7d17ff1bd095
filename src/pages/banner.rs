//! The answer to the first question: can the numbers be trusted? If not, why, and what to do.

use maud::{Markup, html};

use crate::status::model::ServiceState;
use crate::status::verdict::{Audited, CountedAgain, Reason};
use crate::status::{Status, Verdict};

use super::format::{ago, count, number, sign};
use super::layout::Frame;

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
                @if let Some(figures) = counted_again(summary.rechecked) { p .sub { (figures) } }
                @if let Some(checked) = audited(summary.audit) { p .sub { (checked) } }
                @if !reasons.is_empty() {
                    ul .reasons { @for reason in reasons { (line(frame, reason)) } }
                }
            }
        }
    }
}

fn line(frame: Frame<'_>, reason: &Reason) -> Markup {
    html! {
        li class=(reason.verdict.as_str()) {
            a href=(frame.links.to(&reason.link)) { (reason.text) }
            " " (details(reason))
        }
    }
}

/// The last failure in words, and what to do.
fn details(reason: &Reason) -> Markup {
    html! {
        @if let Some(detail) = &reason.detail { span .reason { (detail) } }
        span .action { (reason.remedy) }
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

/// How many ranges were checked against the sum of their parts and against the ledgers.
fn audited(Audited { equal, different }: Audited) -> Option<Markup> {
    #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
    let checked = (equal + different > 0).then(|| number((equal + different) as f64))?;
    Some(
        html! { (checked) " ranges checked, " @if different == 0 { "all equal." } @else { (different) " different." } },
    )
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
        1 => format!("1 of {} is unwell", count(apps.all, "app", "apps")),
        unwell => format!("{unwell} of {} are unwell", count(apps.all, "app", "apps")),
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
            @if let Some(reason) = summary.reasons.first() {
                strong { (reason.text) } @if let Some(since) = service.down_since { " (" (ago(since, frame.now)) ")" } "."
                (details(reason))
            }
        },
        Verdict::Problem => html! {
            @if summary.untrusted > 0 && summary.untrusted == summary.apps.all {
                strong { "The numbers of " @if summary.untrusted == 1 { "the only app" } @else { "all " (summary.untrusted) " apps" } " cannot be trusted" }
            } @else { strong { "Some numbers cannot be trusted" } }
            @if summary.untrusted > 0 && summary.untrusted < summary.apps.all { ": those of " (summary.untrusted) " of " (count(summary.apps.all, "app", "apps")) }
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
            strong { "All numbers can be trusted" } ": "
            @if summary.apps.all == 0 { "this shard polls no app." }
            @else { (count(summary.apps.all, "app", "apps")) ", every resource fresh." }
        },
    }
}
