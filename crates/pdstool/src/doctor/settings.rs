//! The configuration, the tokens it names, and what its limits allow against what it needs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::error::ToolError;
use crate::service::{Environment, Service, ServiceArgs};
use pds_client::plain_http_warning;
use pds_core::error_chain::with_sources;
use pds_core::units;
use pds_exporter::cause;
use pds_exporter::config::{Config, LoadError, Problem, TokenSource};

use crate::report::{Report, first_few};

const CHECK: &str = "configuration";

/// A token that expires within this time is worth a warning.
const SOON: Duration = Duration::from_secs(7 * 86_400);

/// Loads the configuration.
pub fn load(report: &mut Report, environment: &Environment, args: &ServiceArgs) -> Option<Config> {
    match args.load(environment) {
        Ok(config) => {
            match &args.base_url {
                Some(url) => report.ok(CHECK, format!("address {url}, no configuration file")),
                None => {
                    let apps: usize = config.projects.iter().map(|project| project.apps.len()).sum();
                    let file = args.config_file.display();
                    report.ok(
                        CHECK,
                        format!(
                            "{file} is valid: {}, {}",
                            units::counted(config.projects.len(), "project", "projects"),
                            units::counted(apps, "app", "apps")
                        ),
                    );
                    if apps == 0 {
                        report.warning(CHECK, cause::NO_APPS.says, cause::NO_APPS.remedy);
                    }
                }
            }
            if let Some(warning) = plain_http_warning(&config.api.base_url) {
                report.warning(CHECK, warning, "Use https:// in api.base_url.");
            }
            Some(config)
        }
        Err(ToolError::Config(LoadError::Problems { problems, .. })) => {
            report_refused(report, problems);
            None
        }
        Err(error) => {
            let remedy = match &error {
                ToolError::Config(LoadError::Syntax { .. }) => "Correct the TOML at this line and column.",
                ToolError::Config(LoadError::Unreadable { .. }) => {
                    "Make the file readable for this user, and save it as UTF-8 without a byte-order mark."
                }
                _ => "Give the file with --config.file, or the address with --base-url.",
            };
            report.problem(CHECK, with_sources(&error), remedy);
            None
        }
    }
}

/// Reports what is wrong with keys: what is the same of several, once.
fn report_refused(report: &mut Report, problems: Vec<Problem>) {
    let mut refused: Vec<(String, Vec<String>)> = Vec::new();
    for Problem { key, message } in problems {
        match refused.iter_mut().find(|(known, _)| *known == message) {
            Some((_, keys)) => keys.push(key),
            None => refused.push((message, vec![key])),
        }
    }
    for (message, keys) in refused {
        let text = format!("{}: {message}", first_few(&keys));
        report.problem(CHECK, text, "Correct this key; pdstool check config checks the file.");
    }
}

/// The tokens: whether they can be read, by whom, and when they expire.
pub fn tokens(report: &mut Report, service: &Service) {
    const CHECK: &str = "tokens";
    let config = &service.config;
    let mut sources: Vec<(String, Option<&TokenSource>)> = Vec::new();
    for project in &config.projects {
        let source = project.token.as_ref().or(config.api.token.as_ref());
        if !sources.iter().any(|(_, known)| *known == source) {
            sources.push((project.id.to_string(), source));
        }
    }
    if sources.is_empty() {
        sources.push((String::new(), config.api.token.as_ref()));
    }
    for (project, source) in sources {
        let account = service.client.account(&project);
        let name = account.name();
        let what = match source {
            Some(TokenSource::File(path)) => {
                if let Some((what, remedy)) = unusable(path) {
                    report.problem(CHECK, format!("token {name}: {} {what}", path.display()), remedy);
                    continue;
                }
                if std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o004 != 0) {
                    let text = format!("token {name}: every user can read {}", path.display());
                    report.warning(CHECK, text, format!("chmod 600 {}", path.display()));
                }
                format!("token {name}, in {}", path.display())
            }
            Some(TokenSource::Inline(_)) => format!("token {name}, in the configuration or the environment"),
            None => {
                report.problem(CHECK, "no token is configured", "Set api.token_file.");
                continue;
            }
        };
        let file = match source {
            Some(TokenSource::File(path)) => Some(path.display().to_string()),
            _ => None,
        };
        match account.expiry() {
            None => report.ok(CHECK, format!("{what}: has no expiry")),
            Some(expiry) => {
                let left = expiry.duration_since(Timestamp::now()).as_secs_f64();
                let when = units::time(expiry);
                match left {
                    left if left <= 0.0 => {
                        let remedy = cause::TOKEN_EXPIRED.remedy_at(file.as_deref());
                        report.problem(CHECK, format!("{what}: expired {when}"), remedy);
                    }
                    left if left < SOON.as_secs_f64() => {
                        let text = format!("{what}: expires {when}, in {}", units::seconds(left));
                        report.warning(CHECK, text, cause::TOKEN_EXPIRES_SOON.remedy_at(file.as_deref()));
                    }
                    left => report.ok(CHECK, format!("{what}: expires {when}, in {}", units::seconds(left))),
                }
            }
        }
    }
}

/// Why a file holds no token that can be sent, and what to do about it.
fn unusable(path: &Path) -> Option<(String, String)> {
    let bytes = match pds_core::plain_file::read(path, pds_client::MAX_TOKEN_BYTES) {
        Ok(file) => file.bytes,
        Err(error) => {
            let remedy = cause::TOKEN_UNREADABLE.remedy_at(Some(&path.display().to_string()));
            return Some((format!("cannot be read: {error}"), remedy));
        }
    };
    let marks: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
    if marks.iter().any(|mark| bytes.starts_with(mark)) {
        let remedy = "Save the file as UTF-8 without a byte-order mark.";
        return Some(("begins with a byte-order mark".to_owned(), remedy.to_owned()));
    }
    let is_empty = bytes.iter().all(u8::is_ascii_whitespace);
    is_empty.then(|| ("is empty".to_owned(), "Write the token to it, and nothing else.".to_owned()))
}

/// What the limits allow against what the configuration needs; `answers` are the times that replies took.
pub fn limits(report: &mut Report, config: &Config, answers: &[Duration]) {
    const CHECK: &str = "limits";
    let load = config.requests_per_minute();
    if load.total == 0.0 {
        return;
    }
    match (load.exceeds(&config.api), config.api.max_requests_per_second) {
        (Some(overload), _) => {
            report.warning(CHECK, overload.to_string(), cause::POLLS_LATE.remedy);
        }
        (None, Some(limit)) => {
            let text = format!(
                "needs {} requests/min; api.max_requests_per_second allows {}",
                units::number(load.total),
                limit.get() * 60
            );
            report.ok(CHECK, text);
        }
        (None, None) => {
            let text = format!("needs {} requests/min; no limit is set", units::number(load.total));
            report.ok(CHECK, text);
        }
    }
    let Some(slowest) = answers.iter().max() else { return };
    // As if every request took as long as the slowest one.
    let needed = (load.total / 60.0 * slowest.as_secs_f64()).ceil().max(1.0);
    let allowed = config.api.max_concurrent_requests.get();
    if needed > f64::from(allowed) {
        let text = format!(
            "needs up to {} requests in flight; api.max_concurrent_requests allows {allowed}",
            units::number(needed)
        );
        report.warning(CHECK, text, cause::POLLS_LATE.remedy);
    } else {
        report.ok(CHECK, format!("api.max_concurrent_requests ({allowed}) is enough for replies this fast"));
    }
    if *slowest * 2 > config.api.timeout {
        let text = format!(
            "the slowest reply took {}; api.timeout is {}",
            units::seconds(slowest.as_secs_f64()),
            units::seconds(config.api.timeout.as_secs_f64())
        );
        report.warning(CHECK, text, "Raise api.timeout.");
    }
}
