//! Each call's answer with its time, and the service's clock.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use pds_client::Fetched;

use crate::error::{Result, ToolError};
use crate::service::{self, Service};
use pds_core::units;
use pds_diagnosis::cause::{self, Cause};
use pds_interface::{Resource, Scope};

use crate::report::{Finding, Report, first_few, grouped};

const CHECK: &str = "calls";

/// Requests at a time.
const AT_ONCE: usize = 8;

/// The most apps whose settings are requested.
const MAX_APPS: usize = 200;

/// Findings so far.
#[derive(Debug, Default)]
struct Answers {
    took: Vec<Duration>,
    /// The service's clock minus ours at each reply, in seconds.
    skews: Vec<f64>,
    failures: Vec<Failure>,
}

/// Calls that fail for one reason, or for one cause that stops them all.
#[derive(Debug)]
struct Failure {
    resource: Resource,
    cause: &'static Cause,
    /// Remedy of the first; others may name another id.
    reason: String,
    subjects: Vec<String>,
}

/// Makes every polled call and reports its result. Returns the times that replies took.
pub async fn check(report: &mut Report, service: &Service) -> Vec<Duration> {
    let mut answers = Answers::default();
    for resource in service.config.poll.resources.clone() {
        let subjects = subjects(service, resource);
        let asked = subjects
            .iter()
            .map(|(project, app)| async move { (project, app, service.probe(resource, project, app).await) });
        let mut replies = stream::iter(asked).buffered(AT_ONCE);
        let mut took = Vec::new();
        while let Some((project, app, reply)) = replies.next().await {
            took.extend(answers.add(service, resource, project, app, reply));
        }
        if let (Some(least), Some(most)) = (took.iter().min(), took.iter().max()) {
            let [least, most] = [least, most].map(|took| units::seconds(took.as_secs_f64()));
            let text = match (subjects.len(), took.len()) {
                (1, _) => format!("answers in {most}"),
                (asked, answered) => {
                    let [asked, answered] = [asked, answered].map(|count| units::count_of(count as u64));
                    let share = if asked == answered { "all".to_owned() } else { format!("{answered} of") };
                    format!("{share} {asked} answer, in {least} to {most}")
                }
            };
            report.add(CHECK, [Finding::ok(format!("{}: {text}", resource.call().purpose))]);
        }
        answers.took.extend(took);
    }
    if answers.took.is_empty() && answers.failures.is_empty() {
        report.add(CHECK, [Finding::note("no projects or apps are configured")]);
    }
    for Failure { cause, reason, subjects, .. } in &answers.failures {
        let text = format!("{}: {}: {reason}", cause.says_of(&[]), first_few(subjects));
        report.add(CHECK, [Finding::problem(text, cause.remedy_at(None))]);
    }
    if !answers.took.is_empty() {
        report.add("clock", [service::clock(&answers.skews)]);
    }
    answers.took
}

/// The subjects of a resource: every account, every project, and the first app of each project; for settings every app,
/// to find mistyped ids.
fn subjects(service: &Service, resource: Resource) -> Vec<(String, String)> {
    let projects = &service.config.projects;
    let ids = projects.iter().map(|project| project.id.to_string());
    let mut subjects: Vec<(String, String)> = match resource.polled().scope {
        Scope::Account if projects.is_empty() => vec![Default::default()],
        Scope::Account => {
            let accounts = grouped(ids.map(|id| (service.client.account(&id), id)));
            let first = accounts.into_iter().filter_map(|(_, ids)| ids.into_iter().next());
            first.map(|id| (id, String::new())).collect()
        }
        Scope::Project => ids.map(|id| (id, String::new())).collect(),
        Scope::App if resource.call().query.is_empty() => service::apps(&service.config).collect(),
        Scope::App => {
            let first = projects.iter().filter_map(|project| Some((project, project.apps.first()?)));
            first.map(|(project, app)| (project.id.to_string(), app.id.to_string())).collect()
        }
    };
    subjects.truncate(MAX_APPS.max(projects.len()));
    subjects
}

impl Answers {
    /// The duration of the reply; `None` if there is no usable one.
    fn add(
        &mut self,
        service: &Service,
        resource: Resource,
        project: &str,
        app: &str,
        reply: Result<Fetched>,
    ) -> Option<Duration> {
        match reply {
            Ok(fetched) => {
                self.skews.extend(service::skew(&fetched));
                Some(fetched.took)
            }
            Err(error) => {
                let subject = match (project, app) {
                    ("", _) => format!("token {}", service.client.account("").name()),
                    (project, "") => project.to_owned(),
                    (_, app) => app.to_owned(),
                };
                self.failed(resource, format!("{} of {subject}", resource.as_str()), &error);
                None
            }
        }
    }

    fn failed(&mut self, resource: Resource, subject: String, error: &ToolError) {
        let (reason, cause) = (error.reason(), cause(resource, error));
        // After a refusal, the token's other calls are not sent.
        let stops_all = cause.scope == cause::Scope::Token;
        let is_same = |known: &&mut Failure| {
            known.cause == cause && (stops_all || known.resource == resource || known.reason == reason)
        };
        match self.failures.iter_mut().find(is_same) {
            Some(known) => known.subjects.push(subject),
            None => self.failures.push(Failure { resource, cause, reason, subjects: vec![subject] }),
        }
    }
}

/// The cause of a call that does not answer.
fn cause(resource: Resource, error: &ToolError) -> &'static Cause {
    match error {
        // The list of projects carries no id.
        ToolError::Fetch(error) if error.is_not_found() && resource.polled().scope == Scope::Account => {
            &cause::WRONG_ADDRESS
        }
        ToolError::Fetch(error) => Cause::of_class(error.class().as_str()),
        ToolError::RangeIgnored(_) => &cause::RANGE_IGNORED,
        _ => &cause::REQUEST_REFUSED,
    }
}
