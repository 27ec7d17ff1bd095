//! The configuration, the tokens it names, and what its limits allow against what it needs.

use std::time::Duration;

use jiff::Timestamp;

use crate::error::ToolError;
use crate::service::{Environment, Service, ServiceArgs};
use pds_client::{Account, MAX_TOKEN_BYTES, plain_http_warning};
use pds_config::{Config, LoadError};
use pds_core::error_chain::with_sources;
use pds_core::{plain_file, units};
use pds_diagnosis::cause;

use crate::report::{Finding, first_few, grouped};

/// A token that expires within this time, in seconds, is worth a warning.
const SOON: f64 = 7.0 * 86_400.0;

/// Loads the configuration, if it can be used.
pub fn load(environment: &Environment, args: &ServiceArgs) -> (Vec<Finding>, Option<Config>) {
    let config = match args.load(environment) {
        Ok(config) => config,
        Err(error) => return (refused(error), None),
    };
    let mut found = Vec::new();
    if let Some(url) = &args.base_url {
        found.push(Finding::ok(format!("address {url}, no configuration file")));
    } else {
        let apps: usize = config.projects.iter().map(|project| project.apps.len()).sum();
        let projects = units::counted(config.projects.len(), "project", "projects");
        let file = args.config_file.display();
        found.push(Finding::ok(format!(
            "{file} is valid: {projects}, {}",
            units::counted(apps, "app", "apps")
        )));
        if apps == 0 {
            found.push(Finding::warning(cause::NO_APPS.says, cause::NO_APPS.remedy));
        }
    }
    if let Some(warning) = plain_http_warning(&config.api.base_url) {
        found.push(Finding::warning(warning, "Use https:// in api.base_url."));
    }
    if let Some(warning) = config.of_proxies() {
        found.push(Finding::warning(warning, "Set api.proxy_url if the service is behind that proxy."));
    }
    (found, Some(config))
}

/// Why there is no configuration; what is the same of several keys, once.
fn refused(error: ToolError) -> Vec<Finding> {
    let remedy = match error {
        ToolError::Config(LoadError::Problems { problems, .. }) => {
            let problems = problems.into_iter().map(|problem| (problem.message, problem.key));
            let remedy = "Correct this key; pdstool check config checks the file.";
            let finding = |(message, keys): (String, Vec<String>)| {
                Finding::problem(format!("{}: {message}", first_few(&keys)), remedy)
            };
            return grouped(problems).into_iter().map(finding).collect();
        }
        ToolError::Config(LoadError::Syntax { .. }) => "Correct the TOML at this line and column.",
        ToolError::Config(LoadError::Unreadable { .. }) => {
            "Make the file readable for this user, and save it as UTF-8 without a byte-order mark."
        }
        _ => "Give the file with --config.file, or the address with --base-url.",
    };
    vec![Finding::problem(with_sources(&error), remedy)]
}

/// The tokens: whether they can be read, by whom, and when they expire.
pub fn tokens(service: &Service) -> Vec<Finding> {
    let mut found = Vec::new();
    for account in service.accounts() {
        let expires = token(service, &account, &mut found).map(|what| expiry(&account, &what));
        found.push(expires.unwrap_or_else(|problem| problem));
    }
    found
}

/// The token of `account` and where it is, in words. That others can read it goes to `found`.
///
/// # Errors
/// If there is no token that can be sent.
fn token(service: &Service, account: &Account, found: &mut Vec<Finding>) -> Result<String, Finding> {
    let name = account.name();
    let Some(path) = account.file() else {
        if service.config.api.token.is_none() && *account == service.client.account("") {
            return Err(Finding::problem("no token is configured", "Set api.token_file."));
        }
        return Ok(format!("token {name}, in the configuration or the environment"));
    };
    let file = path.display();
    let unusable =
        |what: &str, remedy: &str| Finding::problem(format!("token {name}: {file} {what}"), remedy);
    let read = plain_file::read(path, MAX_TOKEN_BYTES).map_err(|error| {
        let remedy = cause::TOKEN_UNREADABLE.remedy_at(Some(&file.to_string()));
        unusable(&format!("cannot be read: {error}"), &remedy)
    })?;
    match &*read.bytes {
        [0xef, 0xbb, 0xbf, ..] | [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            let remedy = "Save the file as UTF-8 without a byte-order mark.";
            return Err(unusable("begins with a byte-order mark", remedy));
        }
        bytes if bytes.trim_ascii().is_empty() => {
            return Err(unusable("is empty", "Write the token to it, and nothing else."));
        }
        _ => {}
    }
    if read.readable_by_others {
        let text = format!("token {name}: every user can read {file}");
        found.push(Finding::warning(text, format!("chmod 600 {file}")));
    }
    Ok(format!("token {name}, in {file}"))
}

/// When the token of `account` expires, which is called `what`.
fn expiry(account: &Account, what: &str) -> Finding {
    let Some(expiry) = account.expiry() else { return Finding::ok(format!("{what}: has no expiry")) };
    let file = account.file().map(|path| path.display().to_string());
    let when = units::time(expiry);
    let left = expiry.duration_since(Timestamp::now()).as_secs_f64();
    let expires = format!("{what}: expires {when}, in {}", units::seconds(left));
    if left <= 0.0 {
        let remedy = cause::TOKEN_EXPIRED.remedy_at(file.as_deref());
        Finding::problem(format!("{what}: expired {when}"), remedy)
    } else if left < SOON {
        Finding::warning(expires, cause::TOKEN_EXPIRES_SOON.remedy_at(file.as_deref()))
    } else {
        Finding::ok(expires)
    }
}

/// What the limits allow against what the configuration needs; `answers` are the times that replies took.
pub fn limits(config: &Config, answers: &[Duration]) -> Vec<Finding> {
    let load = config.requests_per_minute();
    if load.total == 0.0 {
        return Vec::new();
    }
    let mut found = vec![match load.exceeds(&config.api) {
        Some(set) => Finding::warning(format!("{}: {set}", cause::OVERLOADED.says), cause::OVERLOADED.remedy),
        None => {
            let allowed = match config.api.max_requests_per_second {
                Some(limit) => format!("api.max_requests_per_second = {limit} is enough"),
                None => "no limit is set".to_owned(),
            };
            Finding::ok(format!("needs {} requests/min; {allowed}", units::number(load.total)))
        }
    }];
    let Some(slowest) = answers.iter().max().map(Duration::as_secs_f64) else { return found };
    // As if every request took as long as the slowest one.
    let needed = (load.total / 60.0 * slowest).ceil().max(1.0);
    let allowed = config.api.max_concurrent_requests.get();
    if needed > f64::from(allowed) {
        let needed = units::number(needed);
        let text =
            format!("needs up to {needed} requests in flight; api.max_concurrent_requests allows {allowed}");
        found.push(Finding::warning(text, cause::POLLS_LATE.remedy));
    } else {
        found.push(Finding::ok(format!(
            "api.max_concurrent_requests ({allowed}) is enough for replies this fast"
        )));
    }
    let timeout = config.api.timeout.as_secs_f64();
    if slowest * 2.0 > timeout {
        let (slowest, timeout) = (units::seconds(slowest), units::seconds(timeout));
        let text = format!("the slowest reply took {slowest}; api.timeout is {timeout}");
        found.push(Finding::warning(text, "Raise api.timeout."));
    }
    found
}
