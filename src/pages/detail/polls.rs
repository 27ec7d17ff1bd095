//! What is polled for an app, how the last polls went, and what was replied.

use jiff::Timestamp;
use maud::{Markup, html};
use tokio::time::Duration;

use crate::status::detail::Detail;
use crate::store::{PollFailure, PollRecord};

use super::super::banner::counted_again;
use super::super::format::{self, ago, missing, number, seconds, sign, until, verdict_of};
use super::super::layout::Frame;

/// The state of each resource.
pub(super) fn resources(frame: Frame<'_>, detail: &Detail) -> Markup {
    html! {
        section {
            h2 #resources { "Resources" }
            div .scroll tabindex="0" role="region" aria-labelledby="resources" {
                table {
                    caption .hidden { "What is asked about the app" }
                    thead { tr { @for title in ["Resource", "State", "Last success", "Next poll", "Failing since", "Why"] { th scope="col" { (title) } } } }
                    tbody { @for resource in &detail.app.resources {
                        @let grade = verdict_of(resource.state);
                        @let next = detail.next_polls.iter().find(|(name, _)| *name == resource.resource).and_then(|(_, at)| *at);
                        tr {
                            th scope="row" { (format::resource(&resource.resource)) }
                            td { span class={ "verdict " (grade.as_str()) } { span aria-hidden="true" { (sign(grade)) } " " (resource.state.as_str()) } }
                            td { @match resource.last_success { Some(at) => (ago(at, frame.now)), None => "never" } }
                            td { @match next { Some(at) => (until(at, frame.now)), None => (missing()) } }
                            @match &resource.failing {
                                Some(failing) => { td { (ago(failing.since, frame.now)) } td .message { span .class { (failing.class) } " " (failing.message) } }
                                None => { td { (missing()) } td { (missing()) } }
                            }
                        }
                    } }
                }
            }
            @for (total, what) in [(detail.requests_total, "requests"), (detail.runs_total, "runs")] {
                @if let Some(total) = total { p .sub { (number(total)) " " (what) " counted so far." } }
            }
            @if let Some(figures) = counted_again(detail.rechecked) { p .sub { (figures) } }
            @for resource in &detail.app.resources { @if let Some(given_up) = &resource.given_up {
                p { (format::resource(&resource.resource)) " of " (given_up.start) " to " (given_up.end)
                    " is in no counter, as the service refused it: " span .message { (given_up.reason) } }
            } }
        }
    }
}

/// Consecutive polls of one resource with the same outcome.
#[derive(Debug, PartialEq)]
struct Fold<'a> {
    resource: &'static str,
    newest: Timestamp,
    oldest: Timestamp,
    count: usize,
    shortest: Duration,
    longest: Duration,
    failure: Option<&'a PollFailure>,
}

/// `polls`, newest first, folded by outcome.
fn folded<'a>(polls: &'a [(&'static str, PollRecord)]) -> Vec<Fold<'a>> {
    let mut folds: Vec<Fold<'a>> = Vec::new();
    for (resource, poll) in polls {
        let failure = poll.failure.as_ref();
        let last = folds.iter_mut().rev().find(|fold| fold.resource == *resource);
        match last {
            Some(fold) if fold.failure == failure => {
                fold.oldest = poll.at;
                fold.count += 1;
                fold.shortest = fold.shortest.min(poll.took);
                fold.longest = fold.longest.max(poll.took);
            }
            _ => folds.push(Fold {
                resource,
                newest: poll.at,
                oldest: poll.at,
                count: 1,
                shortest: poll.took,
                longest: poll.took,
                failure,
            }),
        }
    }
    folds
}

/// The last polls; those with the same outcome share a row.
pub(super) fn polls(frame: Frame<'_>, detail: &Detail) -> Markup {
    html! {
        section {
            h2 #polls { "Last polls" }
            div .scroll tabindex="0" role="region" aria-labelledby="polls" {
                table {
                    caption { "Polls of one resource with the same outcome share a row. Failures are kept longer than successes." }
                    thead { tr { th scope="col" { "When" } th scope="col" { "Resource" } th scope="col" { "Outcome" } th scope="col" .number { "Took" } th scope="col" { "Why" } } }
                    tbody {
                        @for fold in folded(&detail.polls) { (row(frame, &fold)) }
                        @if detail.polls.is_empty() { tr { td colspan="5" .none { "None yet." } } }
                    }
                }
            }
        }
    }
}

fn row(frame: Frame<'_>, fold: &Fold<'_>) -> Markup {
    html! {
        tr {
            td {
                time datetime=(fold.newest) { (format::clock(fold.newest)) } " " span .sub { (ago(fold.newest, frame.now)) }
                @if fold.count > 1 {
                    " " span .sub { "and " (fold.count - 1) " more since " time datetime=(fold.oldest) { (format::clock(fold.oldest)) } }
                }
            }
            td { (format::resource(fold.resource)) }
            @match fold.failure {
                None => { td { span .verdict.ok { span aria-hidden="true" { "✓" } " ok" } } }
                Some(failure) => { td { span .verdict.problem { span aria-hidden="true" { "✕" } " " (failure.class) } } }
            }
            td .number { (took(fold.shortest, fold.longest)) }
            @match fold.failure {
                None => { td { (missing()) } }
                Some(failure) => { td .message { (failure.message) } }
            }
        }
    }
}

fn took(shortest: Duration, longest: Duration) -> String {
    let (from, to) = (seconds(shortest.as_secs_f64()), seconds(longest.as_secs_f64()));
    if from == to { to } else { format!("{from} – {to}") }
}

/// The last raw replies, for `--web.show-replies`.
pub(super) fn replies(frame: Frame<'_>, detail: &Detail) -> Markup {
    html! {
        section aria-labelledby="replies" {
            h2 #replies { "Last replies" }
            p .sub { "As the service sent them, without tokens. They are kept while memory allows, and for apps whose pages are open." }
            @for (resource, reply) in &detail.replies {
                @match reply {
                    Some(reply) => details .reply {
                        summary { (format::resource(resource)) " " span .sub { (reply.text.len()) " bytes, " (ago(reply.at, frame.now)) } }
                        button type="button" .copy hidden { "Copy" }
                        pre tabindex="0" role="region" aria-label={ "Reply: " (format::resource(resource)) } { (indented(&reply.text)) }
                    }
                    None => p .none { (format::resource(resource)) ": not kept; the next reply will be." }
                }
            }
        }
    }
}

/// Indented JSON; any other text unchanged.
fn indented(text: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(text);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_of_one_outcome_are_one_row_and_a_failure_is_a_row_of_its_own() {
        let poll = |second, class: Option<&'static str>| PollRecord {
            at: Timestamp::from_second(second).unwrap(),
            took: Duration::from_secs(second.unsigned_abs()),
            failure: class.map(|class| PollFailure { class, message: "no reply".into() }),
        };
        let polls = [
            ("app", poll(9, None)),
            ("domains", poll(8, None)),
            ("app", poll(7, None)),
            ("app", poll(6, Some("timeout"))),
            ("app", poll(5, Some("timeout"))),
            ("app", poll(4, None)),
        ];
        let folds: Vec<_> = folded(&polls)
            .iter()
            .map(|fold| (fold.resource, fold.newest.as_second(), fold.oldest.as_second(), fold.count))
            .collect();
        assert_eq!(folds, [("app", 9, 7, 2), ("domains", 8, 8, 1), ("app", 6, 5, 2), ("app", 4, 4, 1)]);
        assert_eq!(took(polls[2].1.took, polls[0].1.took), "7 s – 9 s");
    }
}
