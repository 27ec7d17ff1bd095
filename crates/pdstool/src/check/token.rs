//! `pdstool check token`: a token's projects, its expiry, and which of the needed calls succeed.

use clap::Args;
use futures_util::future::join_all;
use jiff::Timestamp;

use crate::console::Console;
use crate::error::{Result, ToolError};
use crate::options::{OutputArg, OutputFormat};
use crate::output::{self, Block, Table};
use crate::report::grouped;
use crate::service::{Environment, Service, ServiceArgs};
use pds_client::{Account, Class};
use pds_config::Project;
use pds_core::units;
use pds_interface::polled::Terms;
use pds_interface::{Resource, Scope, list_projects};

/// `pdstool check token`.
#[derive(Clone, Debug, Args)]
pub struct TokenArgs {
    /// Project to check, besides those configured.
    #[arg(long, value_name = "ID", env = "PDSTOOL_PROJECT", hide_env_values = true)]
    project: Option<String>,

    /// App of that project to check.
    #[arg(long, value_name = "ID", requires = "project")]
    app: Option<String>,

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    service: ServiceArgs,
}

/// Makes each needed call once per project, and for one of its apps.
///
/// # Errors
/// If a token cannot be used or a call fails.
pub async fn run(console: &mut Console, environment: &Environment, args: &TokenArgs) -> Result<()> {
    let service = args.service.open(environment)?;
    let format = args.output.format;
    let people = format.is_for_people();
    let mut failures = Vec::new();
    let mut made = 0;
    let mut all: Vec<Vec<String>> = Vec::new();
    let accounts = accounts(&service, args);
    let calls = accounts.iter().map(|(account, projects)| call_all(&service, account, projects));
    for ((account, _), (listed, answers)) in accounts.iter().zip(join_all(calls).await) {
        made += answers.len();
        let row = |(call, target, answer): Answer<'_>| {
            vec![call.to_owned(), target.to_owned(), result(answer, &mut failures)]
        };
        let rows: Vec<_> = answers.into_iter().map(row).collect();
        if people {
            let blocks = [
                Block::Heading(format!("Token {}", account.name())),
                Block::Facts(facts(account, listed)),
                Block::Table(Table::of_texts(["CALL", "TARGET", "RESULT"], rows, "no calls to make")),
            ];
            // Not cut, because the reason of a failure is at the end of its row.
            output::print_as(console, OutputFormat::Wide, &blocks)?;
        } else {
            let expiry = account.expiry().map(|expiry| expiry.to_string()).unwrap_or_default();
            let token = |row: Vec<String>| [vec![account.name().to_owned(), expiry.clone()], row].concat();
            all.extend(rows.into_iter().map(token));
        }
    }
    if !people {
        let table = Table::of_texts(["TOKEN", "EXPIRES", "CALL", "TARGET", "RESULT"], all, "");
        output::print_as(console, format, &[Block::Table(table)])?;
    }
    // A token's failure comes first.
    let Some(code) = failures.iter().map(ToolError::code).max() else { return Ok(()) };
    Err(ToolError::Failed { message: format!("{} of {made} calls failed", failures.len()), code })
}

/// The accounts to check, each with its projects, and an app of each project if there is one. Without accounts, the
/// default account without projects.
fn accounts(service: &Service, args: &TokenArgs) -> Vec<(Account, Vec<(String, String)>)> {
    let app = |project: &Project| project.apps.first().map(|app| app.id.to_string()).unwrap_or_default();
    let configured = service.config.projects.iter();
    let mut wanted: Vec<_> = configured.map(|project| (project.id.to_string(), app(project))).collect();
    if let Some(project) = &args.project {
        let configured = wanted.extract_if(.., |(known, _)| known == project).last();
        let app = args.app.clone().or(configured.map(|(_, app)| app));
        wanted.push((project.clone(), app.unwrap_or_default()));
    }
    if wanted.is_empty() {
        wanted.push(Default::default());
    }
    grouped(wanted.into_iter().map(|project| (service.client.account(&project.0), project)))
}

/// A call, its target, and its outcome.
type Answer<'a> = (&'static str, &'a str, Result<()>);

/// Lists the projects of one account, then makes the other calls for them concurrently. If the first call gets no
/// reply, makes no other, so that the check takes no longer than one request. At a wrong address, the list is the only
/// answer.
async fn call_all<'a>(
    service: &Service,
    account: &Account,
    projects: &'a [(String, String)],
) -> (String, Vec<Answer<'a>>) {
    let listed = service.projects(account).await;
    let silent = matches!(&listed, Err(ToolError::Fetch(error)) if error.class() == Class::Timeout);
    let mut calls = Vec::new();
    for (project, app) in if silent { &[] } else { projects } {
        for resource in Resource::all() {
            let target = match resource.polled().scope {
                Scope::Account => continue,
                Scope::Project => project,
                Scope::App => app,
            };
            if !target.is_empty() {
                let (call, probe) = (resource.call(), service.probe(resource, project, app));
                calls.push(async move {
                    let terms = Terms::about(project, app);
                    let judged = probe.await.and_then(|(_, fetched)| Ok(call.judge(&fetched.body, &terms)?));
                    (call.purpose, &**target, judged)
                });
            }
        }
    }
    let mut others = join_all(calls).await;
    let is_right_address = others.iter().any(|(.., answer)| answer.is_ok());
    let (shown, answer) = match listed {
        Ok(projects) => (shown(&projects), Ok(())),
        Err(ToolError::NoList(error, _)) if is_right_address => (String::new(), Err(error.into())),
        Err(error) => (String::new(), Err(error)),
    };
    if matches!(answer, Err(ToolError::NoList(..))) {
        others.clear();
    }
    let mut answers = vec![(list_projects::CALL.purpose, "the token", answer)];
    answers.extend(others);
    (shown, answers)
}

/// The projects as the service lists them.
fn shown(projects: &list_projects::Reply) -> String {
    let described =
        projects.iter().map(|project| format!("{} ({}, {})", &*project.id, &*project.name, &*project.role));
    described.collect::<Vec<_>>().join(", ")
}

/// The facts about a token.
fn facts(account: &Account, projects: String) -> Vec<(&'static str, String)> {
    let expiry = match account.expiry() {
        _ if account.problem().is_some() => "unknown".to_owned(),
        Some(expiry) if expiry <= Timestamp::now() => {
            let state = if account.is_accepted() { "it is still accepted" } else { "it has expired" };
            format!("{}: {state}", units::time(expiry))
        }
        Some(expiry) => {
            let left = expiry.duration_since(Timestamp::now()).as_secs_f64();
            format!("{}, in {}", units::time(expiry), units::seconds(left))
        }
        None => "not stated in the token".to_owned(),
    };
    vec![("projects", projects), ("expires", expiry)]
}

/// The result of a call as its row shows it. A reason of an earlier failure is not repeated.
fn result(answer: Result<()>, failures: &mut Vec<ToolError>) -> String {
    let Err(error) = answer else { return "ok".to_owned() };
    // The row names the request.
    let reason = error.reason();
    let is_known = failures.iter().any(|known| known.reason() == reason);
    failures.push(error);
    if is_known { "failed as above".to_owned() } else { reason }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_configured_project_that_is_named_keeps_its_app() {
        let text = "[api]\nbase_url = \"https://a\"\ntoken = \"t\"\n[[projects]]\nid = \"p-1\"\napps = [\"p-1-a\"]\n";
        let config = pds_config::load_text(Path::new("x.toml"), text).unwrap().config;
        let service = Service::new(config).unwrap();
        let checked = |project: Option<&str>, app: Option<&str>| {
            let args = TokenArgs {
                project: project.map(str::to_owned),
                app: app.map(str::to_owned),
                output: OutputArg { format: OutputFormat::Table },
                service: ServiceArgs { config_file: "x.toml".into(), base_url: None, token_file: None },
            };
            accounts(&service, &args).into_iter().flat_map(|(_, projects)| projects).collect::<Vec<_>>()
        };
        let pair = |project: &str, app: &str| (project.to_owned(), app.to_owned());
        assert_eq!(checked(None, None), [pair("p-1", "p-1-a")]);
        assert_eq!(checked(Some("p-1"), None), [pair("p-1", "p-1-a")]);
        assert_eq!(checked(Some("p-1"), Some("p-1-b")), [pair("p-1", "p-1-b")]);
        assert_eq!(checked(Some("p-2"), None), [pair("p-1", "p-1-a"), pair("p-2", "")]);
    }
}
