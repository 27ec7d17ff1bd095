//! The reasons for a verdict other than `ok`: one per cause, with everything that the cause stops.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use pds_core::units;
use pds_diagnosis::{
    Cause, Exporter, Failing, Listed as _, Problem, Reason, Scope, Service, ServiceState, Token, Unexpected,
    Verdict, cause, clock_difference,
};
use pds_ledger::restore::Restoring;
use pds_telemetry::Difference;

use super::document::Status;
use super::judge::{self, in_brackets};
use super::view::View;

/// Polls that start later than this are a reason, in seconds.
const MAX_POLL_LAG: f64 = 10.0;

/// The most objects that a reason lists.
const MAX_OBJECTS: usize = 20;
/// The most objects that its text names.
const MAX_NAMED: usize = 3;

/// The addition to the clause of an unreadable token while polls succeed with the one read before.
const STILL_USED: &str = ", so the last one read stays in use";

/// The objects that a cause stops.
#[derive(Debug, Default)]
struct Stopped {
    apps: usize,
    projects: usize,
    objects: Vec<String>,
    tokens: BTreeSet<String>,
    classes: BTreeSet<Cow<'static, str>>,
    since: Option<Timestamp>,
    last: Option<Failing>,
    /// When the last of its targets began to fail.
    last_since: Option<Timestamp>,
    /// The number of tokens whose last good value is accepted.
    still_used: usize,
    /// An addition to the cause's clause.
    more: String,
    detail: Option<String>,
}

/// The objects that each cause stops, by its code.
#[derive(Debug, Default)]
struct Found(BTreeMap<&'static str, Stopped>);

/// All reasons why the verdict is not `ok`, most severe first. Consequences of a service that is silent, or that
/// ignores the requested ranges, are omitted.
pub(super) fn reasons(status: &Status, view: &View, silent_apps: usize) -> Vec<Reason> {
    let mut found = Found::default();
    found.add_service(&status.service, view);
    if let Some(set) = &view.plan.overload {
        found.of(&cause::OVERLOADED).more = format!(": {set}");
    }
    found.add_exporter(&status.exporter, view);
    if let Some(refused) = found.0.get_mut(cause::CONFIG_REFUSED.code) {
        refused.detail.clone_from(&view.refused);
    }
    if let Some(error) = &view.snapshot.state_error {
        found.of(&cause::STATE_NOT_WRITTEN).more = format!(": {error}");
    }
    for Difference { what, remedy, target } in view.snapshot.audit.differences.values() {
        let stopped = found.of(&cause::AUDIT_DIFFERS);
        stopped.objects.push(target.clone());
        stopped.detail = Some(format!("{what}; {remedy}"));
    }
    if silent_apps > 0 {
        let silent = units::plural(silent_apps, "app", "apps");
        found.of(&cause::NO_REQUESTS).more = format!(": the counters of {silent} wait");
    }
    // Other shards have the apps of an empty shard.
    if status.apps.is_empty() && status.exporter.shards == 1 {
        found.of(&cause::NO_APPS);
    }
    let tokens = &status.exporter.tokens;
    let of_apps = || status.apps.iter().map(|app| (app.ids(), &app.problems));
    let of_projects = || status.projects.iter().map(|project| ((&*project.id, ""), &project.problems));
    // A service that is down explains all that is behind, ignored ranges what is behind in the projects of their token.
    let is_down = status.service.state == ServiceState::Down;
    let any_ignored = tokens.iter().any(|token| token.range_ignored.is_some());
    let ignored = |project: &str| any_ignored && view.plan.client.account(project).ignored_range().is_some();
    let unexplained =
        of_apps().chain(of_projects()).filter(|((project, _), _)| !is_down && !ignored(project));
    let causes = unexplained.flat_map(|(_, problems)| problems.iter().filter_map(|problem| problem.cause));
    let unexplained: BTreeSet<&str> = causes.map(|cause| cause.code).collect();
    let counts = |problem: &&Problem| {
        let is_explained =
            |cause: &Cause| cause.scope == Scope::Consequence && !unexplained.contains(cause.code);
        !problem.cause.is_some_and(is_explained)
    };
    for (object, problems) in of_apps().chain(of_projects()) {
        problems.iter().filter(counts).for_each(|problem| found.stops(problem, object, view));
    }
    // One reason reports that the clocks are apart.
    if let Some(disputed) = found.0.get(cause::CLOCK_DISPUTED.code).map(|_| &cause::CLOCK_DISPUTED)
        && let Some(differ) = found.0.remove(cause::CLOCKS_DIFFER.code)
    {
        found.of(disputed).more = differ.more;
    }
    // A refused token needs no second reason to be replaced.
    let refused =
        found.0.get(cause::TOKEN_REFUSED.code).map(|reason| reason.tokens.clone()).unwrap_or_default();
    if let Some(soon) = found.0.get_mut(cause::TOKEN_EXPIRES_SOON.code) {
        soon.tokens.retain(|token| !refused.contains(token));
    }
    let is_common = |cause: &Cause| cause.scope.is_of_service() || cause.scope == Scope::Token;
    let common =
        cause::ALL.iter().filter(|cause| is_common(cause)).filter_map(|cause| found.0.get(cause.code));
    let most = common.map(Stopped::counted).max().unwrap_or_default();
    let reason = |cause: &&'static Cause| {
        let stopped = found.0.remove(cause.code)?;
        let is_reported = cause.scope != Scope::Token || !stopped.tokens.is_empty();
        // The service fails in one way at a time: the last one leads, unless it concerns a few only.
        let leads = is_common(cause) && 2 * stopped.counted() >= most;
        let last_since = Reverse(stopped.last_since.filter(|_| leads));
        is_reported.then(|| (last_since, stopped.reason(cause, tokens, view)))
    };
    let mut reasons: Vec<_> = cause::ALL.iter().filter_map(reason).collect();
    // Stable: the order of the causes.
    reasons.sort_by_key(|(last_since, reason)| (reason.verdict, *last_since));
    reasons.into_iter().map(|(_, reason)| reason).collect()
}

impl Found {
    fn of(&mut self, cause: &Cause) -> &mut Stopped {
        self.0.entry(cause.code).or_default()
    }

    /// Adds the problem of an app, or of a project if `app` is empty.
    fn stops(&mut self, problem: &Problem, (project, app): (&str, &str), view: &View) {
        let cause = problem.cause.unwrap_or(&cause::REQUEST_REFUSED);
        let stopped = self.of(cause);
        let (count, object) = match app {
            "" => (&mut stopped.projects, project.to_owned()),
            app => (&mut stopped.apps, format!("{project}/{app}")),
        };
        *count += 1;
        if stopped.objects.len() < MAX_OBJECTS {
            stopped.objects.push(object);
        }
        if cause.scope == Scope::Token {
            let token = view.plan.client.account(project).name().to_owned();
            if *cause == cause::TOKEN_ELSEWHERE {
                stopped.detail = view.other_project(&token).map(str::to_owned);
            }
            stopped.tokens.insert(token);
        }
        if stopped.detail.is_none() {
            stopped.detail.clone_from(&problem.detail);
        }
        if let Some(failing) = &problem.failing {
            stopped.since = stopped.since.into_iter().chain([failing.cause_since]).min();
            stopped.last_since = stopped.last_since.max(Some(failing.cause_since));
            stopped.classes.insert(failing.class.clone());
            if stopped.last.as_ref().is_none_or(|last| last.since <= failing.since) {
                stopped.last = Some(failing.clone());
            }
        }
    }

    fn add_service(&mut self, service: &Service, view: &View) {
        let is_waiting = view.settled.started.is_none();
        if let Some(skew) = service.clock_skew_seconds.filter(|_| service.clocks_differ) {
            self.of(&cause::CLOCKS_DIFFER).more = format!(": {}", clock_difference(skew as f64));
            if is_waiting {
                self.of(&cause::CLOCKS_DIFFER).more +=
                    "; counting begins once two of its replies agree on the time";
            }
        } else if is_waiting && service.last_success.is_some() && view.plan.config.accounting.enabled {
            self.of(&cause::COUNTERS_WAIT);
        }
    }

    /// Adds the problems of the exporter itself.
    fn add_exporter(&mut self, exporter: &Exporter, view: &View) {
        exporter.tokens.iter().for_each(|token| self.add_token(token, view));
        for (good, cause) in [
            (exporter.configuration_good, &cause::CONFIG_REFUSED),
            (exporter.web_configuration_good, &cause::WEB_CONFIG_REFUSED),
            (Some(!exporter.panicked), &cause::PANICKED),
        ] {
            if good == Some(false) {
                self.of(cause);
            }
        }
        for Unexpected { resource, field, target } in &exporter.unexpected {
            let stopped = self.of(&cause::UNEXPECTED_VALUES);
            stopped.objects.push(format!("{resource}.{field}"));
            stopped.more = format!(": {}, last from {target}", stopped.objects.join(", "));
        }
        match &exporter.restoring {
            Some(Restoring { missing: missing @ 1.., obstacle, .. }) => {
                let stopped = self.of(judge::restoring(view));
                let why = obstacle.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
                stopped.more = format!(": {} hidden{why}", units::plural(*missing, "counter", "counters"));
            }
            Some(Restoring { obstacle: Some(why), .. }) => {
                self.of(&cause::NO_CURSORS).more = format!(": {why}");
            }
            _ => {}
        }
        // The first round is late because everything is due at once; later, a limit that is too low explains late
        // polls, or a service that throttles them.
        let is_throttled = || view.plan.client.accounts().any(|account| account.is_throttled());
        let is_explained = || self.0.contains_key(cause::OVERLOADED.code) || is_throttled();
        let lag = exporter.poll_lag_seconds.filter(|lag| *lag >= MAX_POLL_LAG);
        let lag = lag.filter(|_| view.context.store.is_complete() && !is_explained());
        if let Some(lag) = lag {
            self.of(&cause::POLLS_LATE).more = format!(": {}", units::seconds(lag.round()));
        }
    }

    fn add_token(&mut self, token: &Token, view: &View) {
        let is_accepted =
            view.snapshot.tokens.get(&token.name).is_some_and(|known| known.accepted == Some(true));
        if token.readable == Some(false) || (token.file.is_none() && token.problem.is_some()) {
            let stopped = self.of_token(&cause::TOKEN_UNREADABLE, token);
            stopped.detail = token.problem.as_ref().map(ToString::to_string);
            stopped.still_used += usize::from(is_accepted);
        }
        if let Some(told) = &token.range_ignored {
            self.of_token(&cause::RANGE_IGNORED, token).detail = Some(told.to_string());
        }
        let Some(at) = token.expires else { return };
        let left = at.as_second() - view.now.as_second();
        if let Some(cause) = Cause::of_expiry(left, is_accepted) {
            self.of_token(cause, token);
        }
    }

    fn of_token(&mut self, cause: &Cause, token: &Token) -> &mut Stopped {
        let stopped = self.of(cause);
        stopped.tokens.insert(token.name.clone());
        stopped
    }
}

impl Stopped {
    fn counted(&self) -> usize {
        self.apps + self.projects
    }

    fn reason(mut self, cause: &'static Cause, tokens: &[Token], view: &View) -> Reason {
        let counted = self.counted();
        if is_expiry(cause) {
            let expired = tokens.iter().filter(|token| self.tokens.contains(&token.name));
            self.since = expired.filter_map(|token| token.expires).min();
        }
        let is_still_used = self.still_used > 0 && self.still_used == self.tokens.len() && counted == 0;
        if is_still_used {
            self.more = STILL_USED.to_owned();
        }
        let names: Vec<&str> = self.tokens.iter().map(String::as_str).collect();
        let only = tokens.iter().find(|token| names == [token.name.as_str()]);
        let link = match (self.apps, self.projects) {
            (0, 0) => cause.page.to_owned(),
            (0, _) => format!("/?reason={}#projects", cause.code),
            _ => format!("/?reason={}", cause.code),
        };
        let mut objects = self.objects.clone();
        if objects.is_empty() {
            objects.extend(self.tokens.iter().cloned());
        }
        let count = if counted > 0 { counted } else { objects.len().max(1) };
        objects.truncate(MAX_OBJECTS);
        Reason {
            code: cause.code.into(),
            about: cause.about,
            verdict: if is_still_used { Verdict::Warning } else { cause.verdict },
            text: self.text(cause, &names, view),
            detail: self.detail.or_else(|| self.last.as_ref().map(|last| last.message.to_string())),
            count,
            objects,
            link,
            remedy: match only {
                Some(token) => cause.remedy_for(&token.name, token.file.as_deref()),
                None => cause.remedy_at(None),
            },
        }
    }

    /// As one line: `The service returns errors (502) since 05:22 UTC: 3 apps and 1 project`.
    fn text(&self, cause: &Cause, tokens: &[&str], view: &View) -> String {
        let mut text = cause.says_of(tokens) + &cause.place(&view.plan.config.api);
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        text.push_str(&in_brackets(self.classes.iter().map(|class| &**class)));
        match self.since {
            Some(at) if is_expiry(cause) && tokens.len() > 1 => {
                text.push_str(&format!(", the first at {}", units::time(at)))
            }
            Some(at) if is_expiry(cause) => text.push_str(&format!(" at {}", units::time(at))),
            Some(since) => text.push_str(&format!(" since {}", time_of_day(since, view.now))),
            None => {}
        }
        text.push_str(&self.more);
        if self.counted() > 0 {
            let sign = if self.more.is_empty() { ": " } else { "; " };
            text.push_str(&format!("{sign}{}", self.concerned(cause)));
        }
        text
    }

    /// The apps and projects: their names if they are few, otherwise their number and the first of them.
    fn concerned(&self, cause: &Cause) -> String {
        let phrase = |count: usize, one, many| (count > 0).then(|| units::plural(count, one, many));
        let counted = [phrase(self.apps, "app", "apps"), phrase(self.projects, "project", "projects")];
        let counted: Vec<String> = counted.into_iter().flatten().collect();
        let names: Vec<&str> = self.objects.iter().take(MAX_NAMED).map(|object| short(object)).collect();
        match (names.split_last(), self.counted()) {
            (Some((only, [])), 1) => (*only).to_owned(),
            // A cause that stops everything needs no example.
            _ if !matches!(cause.scope, Scope::Target | Scope::Consequence) => counted.join(" and "),
            (Some((last, others)), ..=MAX_NAMED) => format!("{} and {last}", others.join(", ")),
            _ => format!("{} ({}, ...)", counted.join(" and "), names.join(", ")),
        }
    }
}

/// Whether the time of `cause` is when tokens expire.
fn is_expiry(cause: &Cause) -> bool {
    [&cause::TOKEN_EXPIRED, &cause::TOKEN_EXPIRES_SOON].contains(&cause)
}

/// The id of an app without that of its project, or the id of a project.
fn short(object: &str) -> &str {
    object.split_once('/').map_or(object, |(_, app)| app)
}

/// `05:22 UTC`, and the date before it unless it is today.
fn time_of_day(at: Timestamp, now: Timestamp) -> String {
    let day = |time: Timestamp| time.strftime("%F").to_string();
    at.strftime(if day(at) == day(now) { "%H:%M UTC" } else { "%F %H:%M UTC" }).to_string()
}
