//! Access of commands to the service: through the daemon's configuration, or two flags.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use jiff::Timestamp;
use url::Url;

use pds_client::{Account, Client, FetchError, Fetched, Turn, Unobserved};
use pds_config::flags::{DEFAULT_CONFIG, Flags};
use pds_config::running::{Running, is_same_file, running_exporter};
use pds_config::{App, Config, LoadError, Project};
use pds_core::clock::{Clock, is_skewed};
use pds_diagnosis::cause::{CLOCKS_DIFFER, WRONG_ADDRESS};
use pds_diagnosis::clock_difference;
use pds_interface::polled::{ReadSubjects, Reading, Tally, Terms};
use pds_interface::reader::{Subject, Window};
use pds_interface::{Arguments, Cadence, ReplyBody as _, Request, Resource, TimeRange, list_projects};

use super::error::{Result, ToolError};
use super::options::base_url;
use super::report::Finding;

/// The environment, as pairs of name and value.
pub type Environment = Vec<(String, String)>;

/// The service's address and credentials.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Service")]
pub struct ServiceArgs {
    /// The daemon's configuration file: service, tokens, proxy and limits. If the default file does not exist, that of
    /// the exporter that runs on this machine.
    #[arg(
        long = "config.file",
        value_name = "FILE",
        default_value = DEFAULT_CONFIG,
        conflicts_with = "base_url",
        global = true
    )]
    pub config_file: PathBuf,

    /// Address of the service, instead of a configuration file. PDS_EXPORTER__API__... variables still apply.
    #[arg(long = "base-url", value_name = "URL", value_parser = base_url, global = true)]
    pub base_url: Option<Url>,

    /// With --base-url: file with the token [default: the variable PDS_EXPORTER__API__TOKEN].
    #[arg(long, value_name = "FILE", value_parser = pds_config::file_path, requires = "base_url", global = true)]
    pub token_file: Option<PathBuf>,
}

/// A client of the service with its configuration.
#[derive(Clone, Debug)]
pub struct Service {
    /// The configuration in force.
    pub config: Config,
    /// Sends the requests.
    pub client: Client,
}

impl ServiceArgs {
    /// Loads the configuration that the flags name.
    ///
    /// # Errors
    /// If it is not valid.
    pub fn load(&self, environment: &Environment) -> Result<Config> {
        let Some(base_url) = &self.base_url else { return load(&self.config_file, environment) };
        let mut environment = environment.clone();
        // The last of a name counts.
        environment.push(("PDS_EXPORTER__API__BASE_URL".to_owned(), base_url.to_string()));
        if let Some(file) = &self.token_file {
            environment.retain(|(name, _)| name != "PDS_EXPORTER__API__TOKEN");
            environment.push(("PDS_EXPORTER__API__TOKEN_FILE".to_owned(), file.display().to_string()));
        }
        Ok(pds_config::load_without_file(environment)?)
    }

    /// Opens the service that the flags name.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn open(&self, environment: &Environment) -> Result<Service> {
        Service::new(self.load(environment)?)
    }
}

/// The configuration file that is read for `path`: `path` itself; if it is the default and does not exist, the file of
/// the exporter that runs on this machine.
pub fn file(path: &Path) -> PathBuf {
    match running_with(path).filter(|_| is_absent_default(path)) {
        Some(running) => running.flags.config_file,
        None => path.to_owned(),
    }
}

/// Loads the configuration [`file()`] for `path`. If an exporter runs with this file, its variables apply below those
/// of `environment`, and the state file of its flags replaces `state.path`.
///
/// # Errors
/// If it is not valid.
pub fn load(path: &Path, environment: &Environment) -> Result<Config> {
    let Some(Running { flags, environment: theirs }) = running_with(path) else {
        return Ok(pds_config::load(path, environment.iter().cloned())?.config);
    };
    let is_hidden = theirs.is_none();
    // The last of a name counts.
    let variables = theirs.into_iter().flatten().chain(environment.iter().cloned());
    let file = if is_absent_default(path) { &flags.config_file } else { path };
    let loaded = pds_config::load(file, variables);
    let mut config = match loaded {
        Err(error @ LoadError::Problems { .. }) if is_hidden => {
            return Err(ToolError::HiddenEnvironment(error));
        }
        loaded => loaded?.config,
    };
    config.state.path = flags.state_path.or(config.state.path);
    Ok(config)
}

fn is_absent_default(path: &Path) -> bool {
    path == Path::new(DEFAULT_CONFIG) && !path.exists()
}

/// The exporter that runs on this machine with the file at `path`, or with any if `path` is the default and there is no
/// such file. The file decides where tokens are sent, so this user or root must own it.
fn running_with(path: &Path) -> Option<Running> {
    let running = running_exporter(&exporter_beside()?, Some(path)).filter(|running| !running.flags.demo)?;
    let file = &running.flags.config_file;
    let owner = |path: &Path| std::fs::metadata(path).map(|file| file.uid()).ok();
    let trusted = [Some(0), owner(Path::new("/proc/self"))];
    ((is_absent_default(path) || is_same_file(path, file)) && trusted.contains(&Some(owner(file)?)))
        .then_some(running)
}

/// The flags of the exporter beside this program that runs on this machine, preferably with the configuration file `config`.
pub fn flags_of_exporter(config: Option<&Path>) -> Option<Flags> {
    running_exporter(&exporter_beside()?, config).map(|running| running.flags)
}

fn exporter_beside() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.with_file_name("pds-exporter"))
}

impl Service {
    /// The service of `config`.
    ///
    /// # Errors
    /// If no client can be built for it.
    pub fn new(config: Config) -> Result<Self> {
        let client = Client::new(&config.api, &config.accounts(), Arc::new(Unobserved), Clock::system())?
            .retrying_refused_after(config.poll.settings_interval);
        Ok(Self { config, client })
    }

    /// Each account that a configured project uses, once; without projects, the default account.
    pub fn accounts(&self) -> Vec<Account> {
        let accounts: Vec<Account> = self.client.accounts().cloned().collect();
        if accounts.is_empty() { vec![self.client.account("")] } else { accounts }
    }

    /// The projects that the token of `account` is for.
    ///
    /// # Errors
    /// If the service does not reply with a list of them.
    pub async fn projects(&self, account: &Account) -> Result<list_projects::Reply> {
        let request = list_projects::CALL.request(&Arguments::default(), &self.config.api.query_names)?;
        Ok(list_projects::Reply::decode(&self.call(account, &request).await?)?)
    }

    /// The body of the reply to `request`, sent with the token of `account`.
    ///
    /// # Errors
    /// If the service does not reply, or refuses.
    pub async fn call(&self, account: &Account, request: &Request) -> Result<Bytes> {
        match self.client.call(account, request).await {
            Ok(fetched) => Ok(fetched.body),
            Err(error) => Err(self.refusal(account, error).await),
        }
    }

    /// The error of a call with the token of `account`. If the address has no list of projects, the address is the
    /// cause, not an id.
    async fn refusal(&self, account: &Account, error: FetchError) -> ToolError {
        let hint = self.config.base_url_warning();
        let is_list = error.request.ends_with(list_projects::CALL.path.0);
        let is_listed = async || {
            let request = list_projects::CALL.request(&Arguments::default(), &self.config.api.query_names);
            let Ok(request) = request else { return true };
            !self.client.call(account, &request).await.is_err_and(|error| error.is_not_found())
        };
        if !error.is_not_found() || (!is_list && (hint.is_none() || is_listed().await)) {
            return error.into();
        }
        ToolError::NoList(error, hint.unwrap_or_else(|| WRONG_ADDRESS.remedy.to_owned()))
    }

    /// Requests `resource` once, as a poll does; metrics for `range`. Returns the decoded reply and the fetched one.
    ///
    /// # Errors
    /// If the service does not reply, or the reply cannot be read.
    pub async fn read(
        &self,
        resource: Resource,
        project: &str,
        app: &str,
        range: TimeRange,
    ) -> Result<(ReadSubjects, Fetched)> {
        let (config, polled) = (&self.config, resource.polled());
        let mut arguments = Arguments::about(project, app).at_resolution(config.poll.resolution);
        if polled.cadence == Cadence::Metrics {
            arguments = arguments.in_range_to(range, config.accounting.range_end);
        }
        let request = resource.call().request(&arguments, &config.api.query_names)?;
        let terms = config.terms(configured(config, project, app), Some(range));
        let terms = Terms { project: project.into(), app: app.into(), ..terms };
        let decode = move |body: &[u8]| polled.decode(body, &terms);
        let account = self.client.account(project);
        Ok(self.client.read(&Turn::new(&account), resource, &request, decode).await?)
    }

    /// Requests `resource` once, as a poll does; metrics for the last five settled minutes. Returns the reading and the
    /// fetched reply.
    ///
    /// # Errors
    /// If the service does not reply, or the reply cannot be read or ignores the range.
    pub async fn probe(&self, resource: Resource, project: &str, app: &str) -> Result<(Reading, Fetched)> {
        let settle = self.config.poll.settle.as_secs();
        let end = Timestamp::now().as_second() - i64::try_from(settle).unwrap_or(0);
        let asked = TimeRange { start: end - 300, end };
        let (read, fetched) = self.read(resource, project, app, asked).await?;
        let is_metrics = resource.polled().cadence == Cadence::Metrics;
        let window = is_metrics.then_some(Window { label: "5m", container: None, first: true, range: asked });
        let reading = read(&[Subject { project, app, labels: &[], window }]);
        self.answered(reading.tally.as_ref(), asked)?;
        Ok((reading, fetched))
    }

    /// The range that a reply to a request for `asked` is about, read as `accounting.range_end` says; `None` if it states none.
    ///
    /// # Errors
    /// If the service ignores the requested range.
    pub fn answered(&self, tally: Option<&Tally>, asked: TimeRange) -> Result<Option<TimeRange>> {
        let Some(stated) = tally.and_then(|tally| tally.range) else { return Ok(None) };
        let answered = self.config.accounting.range_end.covered_range(stated);
        let Some(ignored) = answered.ignored_bounds(asked) else { return Ok(Some(answered)) };
        let text = self.config.api.query_names.describe_ignored(ignored, asked, answered);
        Err(ToolError::RangeIgnored(text))
    }
}

/// The service's clock minus ours at a reply that was just read, in seconds, if the reply has a date.
pub fn skew(fetched: &Fetched) -> Option<f64> {
    Some(least_skew(fetched.date?, fetched.took, Timestamp::now()))
}

/// The least difference of clocks that explains a reply, dated at some time between its request and `now`.
fn least_skew(date: Timestamp, took: Duration, now: Timestamp) -> f64 {
    let half = took.as_secs_f64() / 2.0;
    // A date has whole seconds, so it is half a second early on average.
    let skew = (date.as_duration() - now.as_duration()).as_secs_f64() + 0.5 + half;
    skew - skew.clamp(-half, half)
}

/// The finding about the service's clock, which differs from ours by these seconds.
pub fn clock(skews: &[f64]) -> Finding {
    let mut skews = skews.to_vec();
    skews.sort_by(f64::total_cmp);
    let Some(skew) = skews.get(skews.len() / 2) else {
        return Finding::note("replies have no Date header: counting relies on this machine's clock alone");
    };
    // Dates have whole seconds.
    if skew.abs() <= 1.5 {
        return Finding::ok("the clocks of the service and this machine agree within 1.5 s");
    }
    let text = clock_difference(*skew);
    match is_skewed(*skew) {
        true => Finding::warning(format!("{}: {text}", CLOCKS_DIFFER.says), CLOCKS_DIFFER.remedy),
        false => Finding::ok(text),
    }
}

/// The app of these ids in `config`.
pub fn configured<'a>(config: &'a Config, project: &str, app: &str) -> Option<&'a App> {
    let mut apps = config.projects.iter().filter(|known| *known.id == *project).flat_map(|of| &of.apps);
    apps.find(|known| *known.id == *app)
}

/// The apps of `config`, each after its project.
pub fn apps(config: &Config) -> impl Iterator<Item = (String, String)> {
    let apps = config.projects.iter().flat_map(|project| project.apps.iter().map(move |app| (project, app)));
    apps.map(|(project, app)| (project.id.to_string(), app.id.to_string()))
}

/// The apps that arguments mean, each with its project: all of `config`, or of the given `project`, or the given apps.
///
/// # Errors
/// If there are none, or the project of an app is not known.
pub fn meant_apps(config: &Config, given: Option<&str>, names: &[String]) -> Result<Vec<(String, String)>> {
    let is_meant = |project: &str| names.is_empty() && given.is_none_or(|given| given == project);
    let mut meant: Vec<_> = apps(config).filter(|(project, _)| is_meant(project)).collect();
    for app in names {
        let pair = (project(config, given, Some(app))?, app.clone());
        if !meant.contains(&pair) {
            meant.push(pair);
        }
    }
    if meant.is_empty() {
        let none = match given {
            Some(id) => format!(
                "no app of project {id} is configured; use --app, or another --project or PDSTOOL_PROJECT"
            ),
            None => "no apps are configured; use --project and --app".to_owned(),
        };
        return Err(ToolError::Usage(none));
    }
    Ok(meant)
}

/// The given project, the one with this `app`, or the only one of `config`.
///
/// # Errors
/// If none is given, and not exactly one configured project matches.
pub fn project(config: &Config, given: Option<&str>, app: Option<&str>) -> Result<String> {
    let has = |project: &&Project| project.apps.iter().any(|known| Some(&*known.id) == app);
    // Ids of apps usually begin with the id of their project.
    let begins = |project: &&Project| app.is_some_and(|app| app.starts_with(&format!("{}-", project.id)));
    let mut meant: Vec<&Project> = config.projects.iter().filter(has).collect();
    if meant.is_empty() {
        meant = config.projects.iter().filter(begins).collect();
    }
    if meant.is_empty() {
        meant = config.projects.iter().collect();
    }
    match (given, &*meant) {
        (Some(project), _) => Ok(project.to_owned()),
        (None, [only]) => Ok(only.id.to_string()),
        (None, []) => {
            Err(ToolError::Usage("no project given; use --project or set PDSTOOL_PROJECT".to_owned()))
        }
        (None, several) => {
            let ids = several.iter().map(|project| &*project.id).collect::<Vec<_>>().join(", ");
            Err(ToolError::Usage(format!("several projects match ({ids}); use --project")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reply_is_no_evidence_of_a_clock() {
        let now = Timestamp::from_second(1_000).unwrap();
        for (date, took, least) in
            [(1_000, 0, 0.5), (990, 1, -8.5), (990, 20, 0.0), (990, 8, -1.5), (1_009, 4, 9.5)]
        {
            let skew = least_skew(Timestamp::from_second(date).unwrap(), Duration::from_secs(took), now);
            assert!((skew - least).abs() < 1e-9, "{date} {took}: {skew}");
        }
    }

    #[test]
    fn a_project_is_needed_only_if_several_match() {
        let text = ["p-1 a p-1-b", "p-2 a p-2-b"].map(|line| {
            let (id, apps) = line.split_once(' ').unwrap_or_default();
            let apps = apps.split(' ').map(|app| format!("\"{app}\"")).collect::<Vec<_>>().join(", ");
            format!("[[projects]]\nid = \"{id}\"\napps = [{apps}]\n")
        });
        let text = format!("[api]\nbase_url = \"https://x\"\ntoken = \"x\"\n{}", text.concat());
        let config = pds_config::load_text(Path::new("x.toml"), &text).unwrap().config;
        for (given, app, found) in [
            (None, Some("p-1-b"), Ok("p-1")),
            (None, Some("p-2-unknown"), Ok("p-2")),
            (Some("p-9"), Some("p-1-b"), Ok("p-9")),
            (None, Some("a"), Err("several projects match (p-1, p-2)")),
            (None, None, Err("several projects match (p-1, p-2)")),
        ] {
            match (project(&config, given, app).map_err(|error| error.to_string()), found) {
                (Ok(id), Ok(found)) => assert_eq!(id, found),
                (Err(said), Err(part)) => assert!(said.contains(part), "{said}"),
                (other, _) => panic!("{given:?} {app:?}: {other:?}"),
            }
        }
        let meant = |given| meant_apps(&config, given, &["a".to_owned()]);
        assert_eq!(meant(Some("p-2")).unwrap(), [("p-2".to_owned(), "a".to_owned())]);
        assert!(meant(None).is_err_and(|error| error.to_string().contains("several projects match")));
    }
}
