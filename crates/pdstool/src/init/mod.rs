//! `pdstool init`: writes a first configuration from flags and prompts, checked against the service.
//!
//! - [`draft`]: the text that is written.

pub mod draft;

use std::path::PathBuf;

use clap::Args;
use url::Url;

use pds_config::flags::DEFAULT_CONFIG;
use pds_core::error_chain::with_sources;
use pds_core::printable::{plain, plain_lines};
use pds_interface::polled::Terms;
use pds_interface::{Arguments, get_app, list_projects};

use super::check::service::probe::Prober;
use super::check::service::{MAX_EXAMINED, examine, toml};
use super::console::Console;
use super::error::{Result, ToolError};
use super::options::{base_url, write_private};
use super::report::Report;
use super::service::{Environment, Service, ServiceArgs};
use draft::{Draft, DraftProject};

/// `pdstool init`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Prompts for what the flags do not specify. Looks up every app; a name such as ranker also stands for \
PROJECT-ranker. Detects what the interface leaves open, with up to 70 GET requests, and adds the keys that the service needs.

Examples:
  pdstool init
  pdstool init --base-url https://api.example.com --token-file token --app ranker --app embed"
)]
pub struct InitArgs {
    /// File to write.
    #[arg(long = "config.file", value_name = "FILE", default_value = DEFAULT_CONFIG)]
    file: PathBuf,

    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,

    /// Address of the service.
    #[arg(long = "base-url", value_name = "URL", value_parser = base_url)]
    base_url: Option<Url>,

    /// File with the token.
    #[arg(long = "token-file", value_name = "FILE", value_parser = pds_config::file_path)]
    token_file: Option<PathBuf>,

    /// Project; repeatable [default: all projects of the token].
    #[arg(long, value_name = "ID")]
    project: Vec<String>,

    /// App; repeatable.
    #[arg(long, value_name = "ID")]
    app: Vec<String>,
}

/// Prompts, checks and writes.
///
/// # Errors
/// If an answer is missing, the service refuses, or the file cannot be written.
pub async fn run(console: &mut Console, environment: &Environment, args: &InitArgs) -> Result<()> {
    if args.file.exists() && !args.force {
        let message = format!("{} already exists; use --force to overwrite it", args.file.display());
        return Err(ToolError::Usage(message));
    }
    let url = address(console, args)?;
    let token_file = token_file(console, args)?;
    let reached = ServiceArgs {
        config_file: args.file.clone(),
        base_url: Some(url.clone()),
        token_file: Some(token_file.clone()),
    };
    let service = reached.open(environment)?;
    let listed = list(&service, args).await?;
    let named: Vec<String> = listed
        .iter()
        .map(|project| plain(&format!("{} ({})", project.id, project.note)).into_owned())
        .collect();
    console.say(&format!("The service answers. The token is for {}.", named.join(", ")));
    let mut projects = chosen(console, args, listed)?;
    for project in &mut projects {
        project.apps = apps(console, args, &service, &project.id).await?;
    }
    let is_of = |app: &str, DraftProject { id: project, apps, .. }: &DraftProject| {
        apps.iter().any(|id| id == app || *id == format!("{project}-{app}"))
    };
    if let Some(app) = args.app.iter().find(|app| !projects.iter().any(|project| is_of(app, project))) {
        let message = format!("no project of the token has an app {app}");
        return Err(ToolError::Failed { message, code: 3 });
    }
    let absolute =
        std::path::absolute(&token_file).map_err(ToolError::system("cannot determine the current folder"))?;
    let draft = Draft {
        title: "The configuration of pds-exporter, written by pdstool init.".to_owned(),
        base_url: url.to_string(),
        token_file: Some(absolute.display().to_string()),
        projects,
        ..Draft::default()
    };
    let text = examined(console, service, draft).await?;
    pds_config::load_text(&args.file, &text)?;
    write_private(&args.file, &text, args.force)?;
    let file = args.file.display();
    console.say(&format!("Wrote {file}. Next: pdstool doctor --config.file {file}"));
    Ok(())
}

/// The text of `draft`, with detected settings that the interface leaves open.
async fn examined(console: &mut Console, service: Service, mut draft: Draft) -> Result<String> {
    let apps = draft.projects.iter().flat_map(|project| project.apps.iter().map(|app| (&project.id, app)));
    let apps = apps.take(MAX_EXAMINED).map(|(project, app)| (project.clone(), app.clone()));
    let apps: Vec<(String, String)> = apps.collect();
    if apps.is_empty() {
        return Ok(draft.text());
    }
    console.say("Detecting what the interface leaves open, with up to 70 GET requests...");
    let mut report = Report::default();
    if let Err(error) = examine(&mut Prober::new(service.config)?, &mut report, &apps).await {
        let error = plain_lines(&with_sources(&error));
        console.say(&format!("Detection failed: {error}. To repeat it: pdstool check service"));
    }
    for finding in report.left() {
        let remedy = finding.remedy.as_deref().unwrap_or_default();
        console.say(&plain_lines(&format!("{}: {}. {remedy}", finding.check, finding.text)));
    }
    let lines = report.lines();
    for (section, key, value) in &lines {
        console.say(&format!("The service needs {section}.{key} = {value}."));
    }
    draft.sections = toml(&lines);
    Ok(draft.text())
}

/// The address from the flag or the prompt.
fn address(console: &mut Console, args: &InitArgs) -> Result<Url> {
    if let Some(url) = &args.base_url {
        return Ok(url.clone());
    }
    loop {
        let answer = console.ask("Address of the service, such as https://api.example.com:", "--base-url")?;
        match base_url(&answer) {
            Ok(url) => return Ok(url),
            Err(problem) => console.say(&format!("{answer}: {problem}")),
        }
    }
}

/// The file with the token. A missing file is created from a pasted token.
fn token_file(console: &mut Console, args: &InitArgs) -> Result<PathBuf> {
    let path = match &args.token_file {
        Some(path) => path.clone(),
        None => loop {
            let answer = console.ask("File with the token [token]:", "--token-file")?;
            match pds_config::file_path(if answer.is_empty() { "token" } else { &answer }) {
                Ok(path) => break path,
                Err(problem) => console.say(&format!("The answer {problem}.")),
            }
        },
    };
    if path.exists() || !console.can_ask {
        return Ok(path);
    }
    let token = console
        .ask_secret(&format!("{} does not exist. Paste the token (hidden) to create it:", path.display()))?;
    if token.is_empty() {
        return Err(ToolError::Usage("no token was entered".to_owned()));
    }
    write_private(&path, &format!("{token}\n"), false)?;
    Ok(path)
}

/// The projects that the token is for. If only their list is missing, those of the flags with a known app.
async fn list(service: &Service, args: &InitArgs) -> Result<Vec<DraftProject>> {
    let listed = service.projects(&service.client.account("")).await;
    if let Err(ToolError::NoList(..)) = listed {
        let mut known = Vec::new();
        for (id, app) in args.project.iter().flat_map(|id| args.app.iter().map(move |app| (id, app))) {
            if look_up(service, id, app).await?.is_some() {
                let note = "the service returns no list of projects".to_owned();
                known.push(DraftProject { id: id.clone(), note, ..DraftProject::default() });
            }
        }
        known.dedup_by(|one, other| one.id == other.id);
        if !known.is_empty() {
            return Ok(known);
        }
    }
    let draft = |project: list_projects::Project| DraftProject {
        note: format!("{}, {}", &*project.name, &*project.role),
        id: project.id.0,
        ..DraftProject::default()
    };
    Ok(listed?.into_iter().map(draft).collect())
}

/// The selected projects: those of the flags, or of the prompt, or all.
fn chosen(console: &mut Console, args: &InitArgs, listed: Vec<DraftProject>) -> Result<Vec<DraftProject>> {
    let mut wanted = args.project.clone();
    if wanted.is_empty() && console.can_ask && listed.len() > 1 && args.app.is_empty() {
        wanted = words(&console.ask("Which projects? [all]:", "--project")?);
    }
    if wanted.is_empty() {
        return Ok(listed);
    }
    if let Some(id) = wanted.iter().find(|id| !listed.iter().any(|project| project.id == **id)) {
        let message = format!("the token does not belong to the project {id}");
        return Err(ToolError::Failed { message, code: 3 });
    }
    Ok(listed.into_iter().filter(|project| wanted.contains(&project.id)).collect())
}

fn words(text: &str) -> Vec<String> {
    text.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The apps of a project, each looked up.
async fn apps(
    console: &mut Console,
    args: &InitArgs,
    service: &Service,
    project: &str,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let asked = args.app.is_empty();
    loop {
        let question = format!("Apps of {project} (ids or names, separated by spaces; empty for none):");
        let wanted = if asked { words(&console.ask(&question, "--app")?) } else { args.app.clone() };
        let mut missing = None;
        for app in wanted {
            match look_up(service, project, &app).await? {
                Some(id) if !found.contains(&id) => found.push(id),
                Some(_) => {}
                None => missing = Some(app),
            }
        }
        match missing {
            // A flag may be about another project.
            Some(app) if asked => console.say(&format!("{project} has no app {app}.")),
            _ => return Ok(found),
        }
    }
}

/// The id of an app, given as its id or its name; `None` if the service knows neither.
async fn look_up(service: &Service, project: &str, app: &str) -> Result<Option<String>> {
    let names = &service.config.api.query_names;
    let prefixed = format!("{project}-{app}");
    let candidates = if app.starts_with(&format!("{project}-")) { vec![app] } else { vec![&*prefixed, app] };
    for id in candidates {
        let request = get_app::CALL.request(&Arguments::about(project, id), names)?;
        match service.client.call(&service.client.account(project), &request).await {
            Ok(fetched) => {
                get_app::CALL.judge(&fetched.body, &Terms::about(project, id))?;
                return Ok(Some(id.to_owned()));
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
