//! What is polled for an app, how the last polls went, and what was replied.

use maud::{Markup, html};

use crate::status::detail::Detail;
use crate::store::PollRecord;
use pds_diagnosis::cause::Verdict;

use super::super::banner::counted_again;
use super::super::format::{self, ago, count_of, graded, missing, seconds, until, verdict_of};
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
                    tbody { @for (resource, next) in detail.app.resources.iter().zip(&detail.next_polls) {
                        tr {
                            th scope="row" { (format::resource(&resource.resource)) }
                            td { (graded(verdict_of(resource.state), resource.state.as_str())) }
                            td { @match resource.last_success { Some(at) => (ago(at, frame.now)), None => "never" } }
                            td { @match next { Some(at) => (until(*at, frame.now)), None => (missing()) } }
                            @match &resource.failing {
                                Some(failing) => { td { (ago(failing.since, frame.now)) } td .message { span .class { (failing.class) } " " (failing.message) } }
                                None => { td { (missing()) } td { (missing()) } }
                            }
                        }
                    } }
                }
            }
            @for (total, what) in [(detail.requests_total, "requests"), (detail.runs_total, "runs")] {
                @if let Some(total) = total { p .sub { (count_of(total)) " " (what) " counted so far." } }
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
#[derive(Debug)]
struct Fold<'a> {
    resource: &'static str,
    newest: &'a PollRecord,
    /// The others, newest first.
    earlier: Vec<&'a PollRecord>,
}

/// `polls`, newest first, folded by outcome.
fn folded<'a>(polls: &'a [(&'static str, PollRecord)]) -> Vec<Fold<'a>> {
    let mut folds: Vec<Fold<'a>> = Vec::new();
    for (resource, poll) in polls {
        match folds.iter_mut().rev().find(|fold| fold.resource == *resource) {
            Some(fold) if fold.newest.failure == poll.failure => fold.earlier.push(poll),
            _ => folds.push(Fold { resource, newest: poll, earlier: Vec::new() }),
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

fn row(frame: Frame<'_>, Fold { resource, newest, earlier }: &Fold<'_>) -> Markup {
    let (grade, outcome, why) = match &newest.failure {
        None => (Verdict::Ok, "ok", None),
        Some(failure) => (Verdict::Problem, failure.class, Some(&failure.message)),
    };
    html! {
        tr {
            td {
                time datetime=(newest.at) { (format::clock(newest.at)) } " " span .sub { (ago(newest.at, frame.now)) }
                @if let Some(oldest) = earlier.last() {
                    " " span .sub { "and " (earlier.len()) " more since " time datetime=(oldest.at) { (format::clock(oldest.at)) } }
                }
            }
            td { (format::resource(resource)) }
            td { (graded(grade, outcome)) }
            td .number { (took(newest, earlier)) }
            @match why { Some(why) => td .message { (why) }, None => td { (missing()) } }
        }
    }
}

/// How long the polls took: the least and the most.
fn took(newest: &PollRecord, earlier: &[&PollRecord]) -> String {
    let times = || earlier.iter().map(|poll| poll.took).chain([newest.took]);
    let [from, to] =
        [times().min(), times().max()].map(|time| seconds(time.unwrap_or_default().as_secs_f64()));
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
    use jiff::Timestamp;
    use tokio::time::Duration;

    use super::*;
    use crate::store::PollFailure;

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
            .map(|Fold { resource, newest, earlier }| {
                let oldest = earlier.last().unwrap_or(newest);
                (*resource, newest.at.as_second(), oldest.at.as_second(), earlier.len() + 1)
            })
            .collect();
        assert_eq!(folds, [("app", 9, 7, 2), ("domains", 8, 8, 1), ("app", 6, 5, 2), ("app", 4, 4, 1)]);
        assert_eq!(took(&polls[0].1, &[&polls[2].1]), "7 s – 9 s");
    }
}
