//! The verdict: whether the numbers can be trusted, and otherwise the reasons and remedies. Below it, facts about the
//! exporter and its service.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::status::Status;
use pds_diagnosis::{Audited, Cause, Disputed, Reason, Scope, ServiceState, Verdict, cause};

use super::format::{self, absolute, age, ago, count, missing, number, plural, seconds, sign, until};
use super::layout::Frame;

/// The verdict in one sentence, and its reasons as links.
pub(super) fn banner(frame: Frame<'_>) -> Markup {
    let summary = &frame.status.summary;
    // If the service is down, the sentence itself states the first reason.
    let stated = usize::from(frame.status.service.state == ServiceState::Down);
    let reasons = summary.reasons.get(stated..).unwrap_or_default();
    html! {
        section class={ "banner " (summary.verdict.as_str()) } aria-label="Verdict" {
            span .sign aria-hidden="true" { (sign(summary.verdict)) }
            div {
                p role="status" { (sentence(frame)) }
                (apps(frame))
                @if let Some(disputed) = summary.disputed {
                    @let of_apps = format!(" of {}", plural(summary.disputed_apps, "app", "apps"));
                    p .sub { (no_longer_there(disputed, "request", &of_apps, None)) }
                }
                // Equal ranges prove nothing about missing numbers.
                @if summary.verdict != Verdict::Problem || summary.audit.different > 0 {
                    @if let Some(checked) = audited(summary.audit) { p .sub { (checked) } }
                }
                @if !reasons.is_empty() {
                    ul .reasons { @for reason in reasons {
                        li class=(reason.verdict.as_str()) {
                            a href=(frame.links.to(&reason.link)) { (reason.text) } " " (details(reason))
                        }
                    } }
                }
            }
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

/// The data that the service no longer has, and the usual causes. The app may have been recreated at `created`.
pub(super) fn no_longer_there(disputed: Disputed, one: &str, of: &str, created: Option<Timestamp>) -> Markup {
    let anew = created.filter(|at| *at > disputed.start);
    html! {
        "The service no longer has " (plural(disputed.lacks, one, &format!("{one}s"))) (of) " between " (absolute(disputed.start)) " and " (absolute(disputed.end))
        ". The counters keep them. "
        @if let Some(at) = anew { "The app was recreated " (absolute(at)) "." }
        @else {
            "Either its backend was down, its history is shorter than " code { "accounting.recheck_after" }
            ", the app was recreated, or the token belongs to another account."
        }
    }
}

/// The number of ranges compared with the sum of their parts and with the ledgers.
fn audited(Audited { equal, different }: Audited) -> Option<Markup> {
    let checked = (equal + different > 0).then(|| plural(equal + different, "range", "ranges"))?;
    Some(
        html! { (checked) " checked, " @if different == 0 { "all equal." } @else { (count(different)) " different." } },
    )
}

/// The states of the apps.
fn apps(frame: Frame<'_>) -> Markup {
    let apps = frame.status.summary.apps;
    let verdict = apps.verdict();
    let text = match apps.unwell() {
        0 if apps.ok == 0 => return html! {},
        0 if apps.waiting > 0 => format!("{} known to be healthy", plural(apps.ok, "app is", "apps are")),
        0 => plural(apps.ok, "app is healthy", "apps are healthy"),
        1 => format!("1 of {} is unhealthy", plural(apps.all, "app", "apps")),
        unwell => format!("{} of {} are unhealthy", count(unwell), plural(apps.all, "app", "apps")),
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
        Verdict::Problem if service.state == ServiceState::Down => html! {
            @if let Some(reason) = summary.reasons.first() {
                strong { (reason.text) } @if let Some(since) = service.down_since { " (" (ago(since, frame.now)) ")" } "."
                (details(reason))
            }
        },
        Verdict::Problem => html! {
            @if summary.untrusted > 0 && summary.untrusted == summary.apps.all {
                strong { "The numbers of " @if summary.untrusted == 1 { "the only app" } @else { "all " (count(summary.untrusted)) " apps" } " cannot be trusted" }
            } @else { strong { "Some numbers cannot be trusted" } }
            @if summary.untrusted > 0 && summary.untrusted < summary.apps.all { ": those of " (count(summary.untrusted)) " of " (plural(summary.apps.all, "app", "apps")) }
            "."
        },
        Verdict::Warning => {
            html! { strong { "Something needs attention" } "; no number is known to be wrong." }
        }
        Verdict::Waiting if service.state == ServiceState::Waiting => {
            html! { strong { "Nothing has been polled yet" } "; numbers appear with the first polls." }
        }
        Verdict::Waiting if summary.reasons.iter().any(|reason| reason.code == cause::WAITING.code) => {
            html! { strong { "Not every app has been polled yet" } "." }
        }
        Verdict::Waiting => html! { strong { "Not all numbers are available yet" } "." },
        Verdict::Ok => html! {
            strong { "All numbers can be trusted" } ": "
            @if summary.apps.all == 0 { "this shard polls no app." }
            @else { (plural(summary.apps.all, "app", "apps")) ", every resource fresh." }
        },
    }
}

/// The causes that stop the requests of a token, each with the state of the token. A warning stops none: the token read
/// before stays in use.
static TOKEN_STATES: [(&Cause, &str); 4] = [
    (&cause::TOKEN_REFUSED, "refused"),
    (&cause::TOKEN_ELSEWHERE, "refused"),
    (&cause::TOKEN_UNREADABLE, "unusable"),
    (&cause::THROTTLED, "throttled"),
];

/// The exporter and its service in a row of facts.
pub(super) fn facts(frame: Frame<'_>) -> Markup {
    let &Status { ref exporter, ref service, failing, .. } = frame.status;
    let failures = service.failures_per_minute;
    let lag = exporter.poll_lag_seconds.filter(|lag| *lag >= 1.0);
    let expiry = exporter.tokens.iter().filter_map(|token| Some((token.expires?, &token.name))).min();
    let overloaded = worst(frame, |cause| *cause == cause::OVERLOADED) != Verdict::Ok;
    let of_token = frame.status.summary.reasons.iter().find_map(|reason| {
        let (_, state) = TOKEN_STATES.iter().find(|(cause, _)| cause.code == reason.code)?;
        Some((reason, *state))
    });
    html! {
        dl .facts aria-label="Exporter and service" {
            (fact("Service", worst(frame, |cause| cause.scope.is_of_service()), html! { span .address { (service.base_url) } }, match service.last_success {
                Some(at) => html! { "last success " (ago(at, frame.now)) },
                None => html! { "no success yet" },
            }))
            (fact("Requests sent", if failing > 0 || failures > 0.0 { Verdict::Warning } else { Verdict::Ok },
                html! { (number(service.requests_per_minute)) " / min" },
                html! {
                    @if failing > 0 { (plural(failing, "resource", "resources")) " failing now" }
                    @else if failures > 0.0 { (number(failures)) " / min failed recently" }
                    @else if service.last_success.is_some() { "no failures" }
                    @else { "no replies yet" }
                }))
            (fact("Next poll", if overloaded { Verdict::Problem } else if lag.is_some() { Verdict::Warning } else { Verdict::Ok },
                match exporter.next_poll { Some(at) => until(at, frame.now), None => missing() },
                html! { @match lag { Some(lag) => { "the last started " (seconds(lag)) " late" } None if overloaded => "more are due than the limit allows", None if exporter.poll_lag_seconds.is_none() => "no polls", None => "polls are on schedule" } }))
            (configuration_fact(frame))
            (fact("Token", worst(frame, |cause| cause.scope == Scope::Token),
                match (of_token, expiry) {
                    (Some((Reason { verdict: Verdict::Problem, .. }, state)), _) => html! { (state) },
                    (_, Some((at, _))) if at <= frame.now => html! { "expired " (ago(at, frame.now)) },
                    (_, Some((at, _))) => html! { "expires " (until(at, frame.now)) },
                    (_, None) => html! { "no expiry date" },
                },
                match (of_token, expiry) {
                    (Some((reason, _)), _) => html! { (reason.text) },
                    (None, Some((_, name))) if exporter.tokens.len() > 1 => html! { (name) ", the first of " (count(exporter.tokens.len())) " to expire" },
                    _ => html! { (plural(exporter.tokens.len(), "service account", "service accounts")) },
                }))
            @if exporter.shards > 1 {
                (fact("Shard", Verdict::Ok, html! { (exporter.shard) " of " (exporter.shards) }, html! { "counted from 0; the others poll the other apps" }))
            }
            (fact("Up", Verdict::Ok, age(exporter.started, frame.now), html! { "since " (format::absolute(exporter.started)) }))
        }
    }
}

fn configuration_fact(frame: Frame<'_>) -> Markup {
    let exporter = &frame.status.exporter;
    let (good, stored) =
        (exporter.configuration_good != Some(false), exporter.state_file_good != Some(false));
    let missing = exporter.restoring.as_ref().filter(|restoring| restoring.missing > 0);
    let is_about = |cause: &Cause| {
        [
            &cause::CONFIG_REFUSED,
            &cause::WEB_CONFIG_REFUSED,
            &cause::STATE_NOT_WRITTEN,
            &cause::NOT_RESTORED,
            &cause::RESTORING,
        ]
        .contains(&cause)
    };
    fact(
        "Configuration",
        worst(frame, is_about),
        html! { a href=(frame.links.to("/config")) { @if good { "active" } @else { "last reload refused" } } },
        html! {
            @if !stored { "the state file cannot be written" }
            @else if exporter.web_configuration_good == Some(false) { "the web configuration was refused" }
            @else if let Some(restoring) = missing { (plural(restoring.missing, "counter waits", "counters wait")) " for Prometheus" }
            @else if let Some(at) = exporter.configuration_loaded { "loaded " (ago(at, frame.now)) }
        },
    )
}

/// The grade of a tile: the worst verdict of the reasons about it.
fn worst(frame: Frame<'_>, is_about: fn(&Cause) -> bool) -> Verdict {
    let reasons = frame.status.summary.reasons.iter();
    let about =
        reasons.filter(|reason| cause::ALL.iter().any(|cause| cause.code == reason.code && is_about(cause)));
    about.map(|reason| reason.verdict).fold(Verdict::Ok, Verdict::min)
}

fn fact(name: &str, grade: Verdict, says: Markup, more: Markup) -> Markup {
    html! {
        div class=(grade.as_str()) {
            dt { (name) }
            dd { @if grade != Verdict::Ok { span aria-hidden="true" { (sign(grade)) " " } } (says) }
            dd .more { (more) }
        }
    }
}
