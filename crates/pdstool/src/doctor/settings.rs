//! The configuration, its tokens, and its limits compared with the requests it needs.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::error::ToolError;
use crate::service::{Environment, Service, ServiceArgs};
use pds_client::{Account, plain_http_warning};
use pds_config::{Config, LoadError, Problem};
use pds_core::error_chain::with_sources;
use pds_core::units;
use pds_diagnosis::{Cause, cause};

use crate::report::{Finding, first_few, grouped};

/// Opens the service of the configuration in `file`, if that can be used.
pub fn load(environment: &Environment, args: &ServiceArgs, file: &Path) -> (Vec<Finding>, Option<Service>) {
    let service = match args.open(environment) {
        Ok(service) => service,
        Err(error) => return (refused(error), None),
    };
    let config = &service.config;
    let mut found = Vec::new();
    if let Some(url) = &args.base_url {
        found.push(Finding::ok(format!("address {url}, no configuration file")));
    } else {
        let apps: usize = config.projects.iter().map(|project| project.apps.len()).sum();
        let projects = units::plural(config.projects.len(), "project", "projects");
        let text = format!("{} is valid: {projects}, {}", file.display(), units::plural(apps, "app", "apps"));
        found.push(Finding::ok(text));
        if apps == 0 {
            found.push(Finding::warning(cause::NO_APPS.says, cause::NO_APPS.remedy));
        }
    }
    let warnings = config.include_warnings.iter();
    found.extend(warnings.map(|warning| Finding::warning(warning, "Correct the pattern, or remove it.")));
    if let Some(warning) = plain_http_warning(&config.api.base_url) {
        found.push(Finding::warning(warning, "Use https:// in api.base_url."));
    }
    if let Some(warning) = config.proxy_warning() {
        found.push(Finding::warning(warning, "Set api.proxy_url if the service is behind that proxy."));
    }
    (found, Some(service))
}

/// The problems of the configuration; a problem of several keys is reported once.
fn refused(error: ToolError) -> Vec<Finding> {
    let of_keys = |problems: Vec<Problem>, remedy: &str| {
        let problems = problems.into_iter().map(|problem| (problem.message, problem.key));
        let finding = |(message, keys): (String, Vec<String>)| {
            Finding::problem(format!("{}: {message}", first_few(&keys)), remedy)
        };
        grouped(problems).into_iter().map(finding).collect()
    };
    let remedy = match error {
        ToolError::Config(LoadError::Problems { problems, .. }) => {
            return of_keys(problems, "Correct this key; pdstool check config checks the file.");
        }
        ToolError::HiddenEnvironment(LoadError::Problems { problems, .. }) => {
            let remedy = "If the environment of the running exporter sets this key, run pdstool as its user, or set the same \
                          variable; otherwise correct the key.";
            return of_keys(problems, remedy);
        }
        ToolError::Config(LoadError::Syntax { .. }) => "Correct the TOML at this line and column.",
        ToolError::Config(LoadError::Unreadable { .. }) => {
            "Make the file readable for this user, and save it as UTF-8 without a byte-order mark."
        }
        ToolError::Client(_) => "Correct the key that it names.",
        _ => "Set --config.file to the file, or --base-url to the address.",
    };
    vec![Finding::problem(with_sources(&error), remedy)]
}

/// The tokens: whether they can be read, by whom, when they expire, and which are for other projects.
pub fn tokens(service: &Service) -> Vec<Finding> {
    let others = service.client.mismatched_tokens();
    let other = |account: &Account| {
        let (cause, said) = (&cause::TOKEN_ELSEWHERE, others.get(account.name())?);
        Some(Finding::warning(format!("{}: {said}", cause.says_of(&[account.name()])), cause.remedy))
    };
    let findings = |account: &Account| [token(account), other(account).into_iter().collect()].concat();
    service.accounts().iter().flat_map(findings).collect()
}

fn token(account: &Account) -> Vec<Finding> {
    let file = account.file().map(|path| path.display().to_string());
    let wrong = |cause: &Cause, more: String| {
        Finding::of(
            cause,
            cause.says_of(&[account.name()]) + &more,
            cause.remedy_for(account.name(), file.as_deref()),
        )
    };
    let mut found = Vec::new();
    if account.is_readable_by_others() {
        let file = file.as_deref().unwrap_or_default();
        let text = format!("token {}: every user can read {file}", account.name());
        found.push(Finding::warning(text, format!("chmod 600 {file}")));
    }
    let place = file
        .as_ref()
        .map_or("in the configuration or the environment".to_owned(), |file| format!("in {file}"));
    found.push(match (account.problem(), account.expiry()) {
        (Some(problem), _) => wrong(&cause::TOKEN_UNREADABLE, format!(": {problem}")),
        (None, None) => Finding::ok(format!("token {}, {place}: states no expiry", account.name())),
        (None, Some(expiry)) => {
            let left = expiry.as_second() - Timestamp::now().as_second();
            let (when, wait) = (units::time(expiry), units::seconds(left as f64));
            match Cause::of_expiry(left, account.is_accepted()) {
                Some(cause) => wrong(cause, format!(" at {when}; it is {place}")),
                None => Finding::ok(format!("token {}, {place}: expires {when}, in {wait}", account.name())),
            }
        }
    });
    found
}

/// Compares the limits with the needs of the configuration; `answers` are durations of replies.
pub fn limits(config: &Config, answers: &[Duration]) -> Vec<Finding> {
    let demand = config.requests_per_minute();
    if demand.total == 0.0 {
        return Vec::new();
    }
    let mut found = vec![match demand.overload(&config.api) {
        Some(set) => {
            let cause = &cause::OVERLOADED;
            Finding::of(cause, format!("{}: {set}", cause.says), cause.remedy_at(None))
        }
        None => {
            let allowed = match config.api.max_requests_per_second {
                Some(limit) => format!("api.max_requests_per_second = {limit} is enough"),
                None => "no limit is set".to_owned(),
            };
            Finding::ok(format!("needs {} requests/min; {allowed}", units::number(demand.total)))
        }
    }];
    let Some(slowest) = answers.iter().max().map(Duration::as_secs_f64) else { return found };
    // Assumes that every request takes as long as the slowest.
    let needed = (demand.total / 60.0 * slowest).ceil().max(1.0);
    let allowed = f64::from(config.api.max_concurrent_requests.get());
    let is_too_low = needed > allowed;
    let [needed, allowed] = [needed, allowed].map(units::rounded);
    if is_too_low {
        let text =
            format!("needs up to {needed} requests in flight; api.max_concurrent_requests allows {allowed}");
        found.push(Finding::warning(text, cause::POLLS_LATE.remedy));
    } else {
        let text = format!("api.max_concurrent_requests ({allowed}) is enough for replies this fast");
        found.push(Finding::ok(text));
    }
    let timeout = config.api.timeout.as_secs_f64();
    if slowest * 2.0 > timeout {
        let (slowest, timeout) = (units::seconds(slowest), units::seconds(timeout));
        let text = format!("the slowest reply took {slowest}; api.timeout is {timeout}");
        found.push(Finding::warning(text, "Raise api.timeout."));
    }
    found
}
