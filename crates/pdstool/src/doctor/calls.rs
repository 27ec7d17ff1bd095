//! The result and duration of each call, and the service's clock.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use pds_client::{Account, Fetched};

use crate::error::ToolError;
use crate::service::{self, Service};
use pds_core::units;
use pds_diagnosis::{Cause, cause, mistake_in_id};
use pds_interface::polled::Reading;
use pds_interface::{Counted, ReplyBody as _, Resource, Scope, TimeRange, get_app, list_projects};
use pds_ledger::{Ledger, Refusal};

use crate::report::{Finding, Report, first_few, grouped};

const CHECK: &str = "calls";

/// Concurrent requests.
const AT_ONCE: usize = 8;

/// The most apps whose settings are requested.
const MAX_APPS: usize = 200;

/// How long api.max_requests_per_second may delay them all together, in seconds.
const PATIENCE: u32 = 10;

/// A call to be made. Its subject is a token, a project or an app; the ids that it does not need are empty.
#[derive(Debug)]
struct PlannedCall {
    resource: Resource,
    project: String,
    app: String,
}

/// Findings so far.
#[derive(Debug, Default)]
struct Answers {
    took: Vec<(Resource, Duration)>,
    /// The service's clock minus ours at each reply, in seconds.
    skews: Vec<f64>,
    failures: Vec<(Explanation, Failure)>,
    /// Fields whose values violate the interface, each with the subject of its reply.
    unexpected: Vec<(String, String)>,
    /// The ids of the projects that each token lists, by the account's name.
    listed: HashMap<String, Vec<String>>,
    /// Whether the address returns no list of projects, and no call has succeeded.
    at_wrong_address: bool,
    /// Apps whose settings it has, each with the account's name.
    apps: HashMap<String, String>,
}

/// Calls that fail for the same reason are reported once: the cause, and the likely mistake in an id.
type Explanation = (&'static Cause, Option<String>);

/// A failed call.
#[derive(Debug)]
struct Failure {
    /// The error; other calls may name another id or path.
    error: String,
    subject: String,
    account: Account,
}

/// Makes every polled call and reports its result. Returns the durations of replies.
pub async fn check(report: &mut Report, service: &Service) -> Vec<Duration> {
    let resources = &service.config.poll.resources;
    let subjects = |resource| subjects(service, resource).enumerate();
    let calls = resources.iter().copied().flat_map(|resource| {
        subjects(resource).map(move |(index, (project, app))| (index, PlannedCall { resource, project, app }))
    });
    let mut calls: Vec<(usize, PlannedCall)> = calls.collect();
    // A list of projects comes first: it shows whether address and token are right. One request of each resource follows,
    // and settings precede metrics: they show whether an id is right.
    calls.sort_by_key(|(index, PlannedCall { resource, .. })| {
        (resource.polled().scope != Scope::Account, *index > 0, *resource != get_app::RESOURCE)
    });
    let mut calls: Vec<PlannedCall> = calls.into_iter().map(|(_, call)| call).collect();
    let limit = service.config.api.max_requests_per_second.map(NonZeroU32::get);
    let most = limit.map_or(calls.len(), |limit| limit.saturating_mul(PATIENCE) as usize);
    if most < calls.len() {
        let [few, all] = [most, calls.len()].map(units::count);
        let text = format!(
            "{few} of {all} calls are made: api.max_requests_per_second allows no more in {PATIENCE} s"
        );
        report.add(CHECK, [Finding::note(text)]);
        calls.truncate(most);
    }
    let lists = calls.partition_point(|call| call.resource.polled().scope == Scope::Account);
    let (first, others) = calls.split_at(lists.max(1).min(calls.len()));
    let (mut answers, mut failed) = (Answers::default(), Vec::new());
    for calls in [first, others] {
        let replies = calls
            .iter()
            .map(|call| async move { (call, service.probe(call.resource, &call.project, &call.app).await) });
        let mut replies = stream::iter(replies).buffered(AT_ONCE);
        while let Some((call, reply)) = replies.next().await {
            match reply {
                Ok(reply) => answers.succeeded(service, call, reply),
                Err(error) => failed.push((call, error)),
            }
        }
    }
    // A success shows that the address or an id is right, whatever fails.
    failed.into_iter().for_each(|(call, error)| answers.failed(service, call, &error));
    for resource in resources {
        let made = calls.iter().filter(|call| call.resource == *resource).count();
        let took: Vec<_> =
            answers.took.iter().filter(|(of, _)| of == resource).map(|(_, took)| took).collect();
        if let (Some(least), Some(most)) = (took.iter().min(), took.iter().max()) {
            let [least, most] = [least, most].map(|took| units::seconds(took.as_secs_f64()));
            let text = match (made, took.len()) {
                (1, _) => format!("answers in {most}"),
                (made, answered) => {
                    let [made, answered] = [made, answered].map(units::count);
                    let share = if made == answered { "all".to_owned() } else { format!("{answered} of") };
                    format!("{share} {made} answer, in {least} to {most}")
                }
            };
            report.add(CHECK, [Finding::ok(format!("{}: {text}", resource.call().purpose))]);
        }
    }
    if calls.is_empty() {
        report.add(CHECK, [Finding::note("no projects or apps are configured")]);
    }
    // A token that cannot be read is reported as such.
    answers.failures.retain(|((cause, _), _)| **cause != cause::TOKEN_UNREADABLE);
    for ((cause, mistake), failures) in grouped(answers.failures) {
        let place = cause.place(&service.config.api);
        let accounts = grouped(failures.iter().map(|failure| (&failure.account, ())));
        let tokens: Vec<&str> = accounts.iter().map(|(account, _)| account.name()).collect();
        let error = failures.first().map_or("", |failure| &failure.error);
        let mistake = mistake.map(|mistake| format!("; {mistake}")).unwrap_or_default();
        let subjects: Vec<String> = failures.iter().map(|failure| failure.subject.clone()).collect();
        let text = format!("{}{place}: {}: {error}{mistake}", cause.says_of(&tokens), first_few(&subjects));
        let remedy = match &*accounts {
            [(only, _)] => cause.remedy_for(only.name(), only.file().and_then(Path::to_str)),
            _ => cause.remedy_at(None),
        };
        report.add(CHECK, [Finding::of(cause, text, remedy)]);
    }
    for (field, subjects) in grouped(answers.unexpected) {
        let cause = &cause::UNEXPECTED_VALUES;
        let text = format!("{}: {field} of {}", cause.says, first_few(&subjects));
        report.add(CHECK, [Finding::of(cause, text, cause.remedy_at(None))]);
    }
    if !answers.took.is_empty() {
        report.add("clock", [service::clock(&answers.skews)]);
    }
    answers.took.into_iter().map(|(_, took)| took).collect()
}

/// The subjects of a resource: every account, every project, and the first app of each project; for settings every app,
/// to find mistyped ids.
fn subjects(service: &Service, resource: Resource) -> impl Iterator<Item = (String, String)> {
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
    subjects.into_iter()
}

/// Why the daemon would not count a reply to `resource`, if it keeps counters. The requested range is no whole step, so
/// the service may have rounded it.
fn refusal(service: &Service, resource: Resource, reading: &Reading) -> Option<Refusal> {
    let counted = resource.polled().counted.filter(|_| service.config.accounting.enabled)?;
    let tally = reading.tally.as_ref()?;
    let range = tally.range.unwrap_or(TimeRange { start: 0, end: 0 });
    Ledger::open(range.start).add(range, tally, counted == Counted::Requests, i64::MAX).err()
}

/// The subject of a call, in words.
fn subject(service: &Service, PlannedCall { project, app, .. }: &PlannedCall) -> String {
    match (&**project, &**app) {
        ("", _) => format!("token {}", service.client.account(project).name()),
        (project, "") => project.to_owned(),
        (_, app) => app.to_owned(),
    }
}

impl Answers {
    fn succeeded(&mut self, service: &Service, call: &PlannedCall, (reading, fetched): (Reading, Fetched)) {
        let PlannedCall { resource, project, app } = call;
        let (account, subject) = (service.client.account(project), subject(service, call));
        if let Some(refusal) = refusal(service, *resource, &reading) {
            let subject = format!("{} of {subject}", resource.as_str());
            let failure = Failure { error: refusal.to_string(), subject, account: account.clone() };
            self.failures.push(((&cause::RANGE_DIFFERS, None), failure));
        }
        for field in reading.unexpected {
            let label = reading.unexpected_label.as_ref().filter(|_| field == "distribution");
            let label = label.map(|label| format!(" ({label:?})")).unwrap_or_default();
            let field = format!("{}.{field}{label}", resource.as_str());
            self.unexpected.push((field, subject.clone()));
        }
        self.skews.extend(service::skew(&fetched));
        self.took.push((*resource, fetched.took));
        if *resource == get_app::RESOURCE {
            self.apps.insert(app.clone(), account.name().to_owned());
        }
        if let (list_projects::RESOURCE, Ok(projects)) =
            (*resource, list_projects::Reply::decode(&fetched.body))
        {
            let ids = projects.into_iter().map(|project| project.id.0).collect();
            self.listed.insert(account.name().to_owned(), ids);
        }
    }

    /// Adds a failed call; after all that succeeded, and after those of lists.
    fn failed(&mut self, service: &Service, call: &PlannedCall, error: &ToolError) {
        let PlannedCall { resource, project, app } = call;
        let account = service.client.account(project);
        let is_list = resource.polled().scope == Scope::Account;
        let is_not_found = matches!(error, ToolError::Fetch(error) if error.is_not_found());
        self.at_wrong_address |= is_list && is_not_found && self.took.is_empty();
        let cause = match self.cause(service, &account, error) {
            cause if *cause == cause::NOT_FOUND && (is_list || self.apps.contains_key(app)) => {
                &cause::CALL_MISSING
            }
            cause => cause,
        };
        let listed = || self.listed.get(account.name()).cloned();
        let is_of_id = [&cause::NOT_FOUND, &cause::FORBIDDEN].contains(&cause);
        let configured = service.config.projects.iter().map(|project| &*project.id);
        let mistake = is_of_id.then(|| mistake_in_id(project, app, configured, listed)).flatten();
        let subject = format!("{} of {}", resource.as_str(), subject(service, call));
        self.failures.push(((cause, mistake), Failure { error: error.reason(), subject, account }));
    }

    /// The cause of a failed call with `account`, as the daemon determines it.
    fn cause(&self, service: &Service, account: &Account, error: &ToolError) -> &'static Cause {
        match error {
            ToolError::Fetch(error) => {
                let has_other_token = !self.apps.values().any(|name| name == account.name())
                    && service.client.mismatched_tokens().contains_key(account.name());
                let expiry = || account.expiry().filter(|_| !account.is_accepted());
                let has_expired = || expiry().is_some_and(|at| at <= Timestamp::now());
                Cause::within(error.class().as_str(), self.at_wrong_address, has_other_token, has_expired)
            }
            ToolError::RangeIgnored(_) => &cause::RANGE_IGNORED,
            _ => &cause::REQUEST_REFUSED,
        }
    }
}
