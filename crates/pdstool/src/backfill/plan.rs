//! The requests of a run, and whether it resumes an earlier one.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Result, ToolError};
use crate::options::time;
use crate::service;
use pds_config::Config;
use pds_core::{plain_file, units};
use pds_exposition::Family;
use pds_interface::range::rfc3339;
use pds_interface::{Cadence, Resolution, Resource, TimeRange};

use super::BackfillArgs;
use super::journal;
use super::series::SPILLED;

/// The plan of a run. A run resumes an earlier one of the same plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The service.
    base_url: String,
    /// The query names of a range's start and end, and the configured kind of its end.
    ranges: [String; 3],
    /// The range as given, which may be relative to the time of the first run.
    given: (String, Option<String>),
    /// The first second, on a whole step.
    pub start: i64,
    /// The end, on a whole step.
    pub end: i64,
    /// Time between samples, in seconds.
    pub step: i64,
    /// Trailing windows, in seconds.
    pub windows: Vec<i64>,
    /// The data resolution, as in the interface.
    resolution: Option<String>,
    /// (project, app)
    pub apps: Vec<(String, String)>,
    /// The thresholds that are read of each app's distributions, in seconds; empty means all.
    thresholds: Vec<Vec<f64>>,
    /// Further labels of every series.
    pub labels: Vec<(String, String)>,
}

/// A metrics call of an app, with a journal of its own.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// Its place in the plan, which names its journal.
    pub index: usize,
    /// The project's id.
    pub project: &'a str,
    /// The app's id.
    pub app: &'a str,
    /// The call.
    pub resource: Resource,
}

impl Plan {
    /// The plan for `args`.
    ///
    /// # Errors
    /// If there is no such app or range.
    pub fn new(config: &Config, args: &BackfillArgs) -> Result<Self> {
        let now = Timestamp::now();
        let seconds = |duration: &Duration| units::whole_seconds(*duration);
        let step = seconds(&args.step);
        let settled = now.as_second() - seconds(&config.poll.settle);
        let moment = |text: &str| time(text, now).map_err(ToolError::Usage);
        let start = moment(&args.start)?;
        let end = args.end.as_deref().map(moment).transpose()?.unwrap_or(settled);
        if start.min(end) < 0 {
            return Err(ToolError::Usage("the range must not begin or end before 1970".to_owned()));
        }
        // Includes the step that contains the start, but not the step that contains the end.
        let (start, end) = (start.div_euclid(step) * step, end.div_euclid(step) * step);
        if end > settled {
            let message = format!("the range must end by {}: later data has not settled", rfc3339(settled));
            return Err(ToolError::Usage(message));
        }
        if end <= start {
            let message = format!("no whole step fits between {} and {}", rfc3339(start), rfc3339(end));
            return Err(ToolError::Usage(message));
        }
        let mut labels = HashSet::new();
        if let Some((name, _)) = args.labels.iter().find(|(name, _)| !labels.insert(name)) {
            return Err(ToolError::Usage(format!("the label {name} is given twice")));
        }
        let (names, range_end) = (&config.api.query_names, config.accounting.range_end.as_str());
        let resolution = config.poll.resolution;
        let windows = if args.windows.is_empty() { &config.poll.windows } else { &args.windows };
        let mut lengths = HashSet::new();
        let apps = service::meant_apps(config, args.project.as_deref(), &args.apps)?;
        let terms =
            apps.iter().map(|(project, app)| config.terms(service::configured(config, project, app), None));
        Ok(Self {
            base_url: config.api.base_url.to_string(),
            ranges: [&names.start, &names.end, range_end].map(str::to_owned),
            given: (args.start.clone(), args.end.clone()),
            start,
            end,
            step,
            windows: windows.iter().map(seconds).filter(|window| lengths.insert(*window)).collect(),
            resolution: (resolution != Resolution::Standard).then(|| resolution.as_str().to_owned()),
            thresholds: terms.map(|terms| terms.thresholds).collect(),
            apps,
            labels: args.labels.clone(),
        })
    }

    /// The streams, in the order of their requests.
    pub fn streams(&self) -> impl Iterator<Item = Stream<'_>> {
        let apps = self.apps.iter();
        let streams = apps.flat_map(|(project, app)| metrics_calls().map(move |call| (project, app, call)));
        streams.enumerate().map(|(index, (project, app, resource))| Stream { index, project, app, resource })
    }

    /// The lengths of the ranges that end with each step: the windows, and the step itself.
    pub fn lengths(&self) -> Vec<i64> {
        let mut lengths = self.windows.clone();
        lengths.push(self.step);
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// The number of all requests.
    pub fn requests(&self) -> u64 {
        let steps = TimeRange { start: self.start, end: self.end }.seconds() / self.step.unsigned_abs();
        steps * self.requests_per_step() * self.streams().count() as u64
    }

    /// The number of requests per step of a stream.
    pub fn requests_per_step(&self) -> u64 {
        self.lengths().len() as u64
    }

    /// Whether an earlier run has the same plan, so that its range is resumed.
    fn continues(&self, earlier: &Self) -> bool {
        Self { start: earlier.start, end: earlier.end, ..self.clone() } == *earlier
    }
}

/// The calls with a range, in the order of their families.
pub fn metrics_calls() -> impl Iterator<Item = Resource> {
    Resource::all().filter(|resource| resource.polled().cadence == Cadence::Metrics)
}

/// The families of a file, in the order of the daemon's page. Each has a file in the folder while it is gathered.
pub fn families() -> impl Iterator<Item = Family> {
    let families = metrics_calls().flat_map(|resource| resource.polled().families());
    families.chain(pds_ledger::FAMILIES.iter().copied())
}

/// The file in the folder that is locked.
const LOCK: &str = "lock";

/// The file in the folder that holds the plan, and the beginning of its name until it is complete.
const PLAN: &str = "plan.json";
const NEW_PLAN: &str = "plan.json.new-";

/// The file in the folder that becomes the result.
pub const WHOLE: &str = "openmetrics";

/// How the names of journals end.
const JOURNAL: &str = "jsonl";

/// The entries of the folder: files that runs write, and others. A link or a file in the folder's place is among the
/// others.
fn files(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    if !fs::symlink_metadata(folder).is_ok_and(|folder| folder.is_dir()) {
        return Ok((Vec::new(), vec![folder.to_owned()]));
    }
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|of| Ok(of?.path())).collect());
    let entries: Vec<PathBuf> = entries.map_err(ToolError::file("cannot read", folder))?;
    let is_number = |text: &str| text.parse::<usize>().is_ok();
    Ok(entries.into_iter().partition(|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let numbered = name.strip_prefix(SPILLED).or_else(|| name.strip_suffix(JOURNAL)?.strip_suffix('.'));
        let numbered = numbered.or_else(|| name.strip_prefix(NEW_PLAN));
        [LOCK, PLAN, WHOLE].contains(&name)
            || numbered.is_some_and(is_number)
            || families().any(|family| family.name == name)
    }))
}

fn remove(paths: &[PathBuf]) -> Result<()> {
    paths.iter().try_for_each(|path| fs::remove_file(path).map_err(ToolError::file("cannot remove", path)))
}

/// A plan and the folder of its journals, locked by one process at a time.
#[derive(Debug)]
pub struct Work {
    /// The plan, with the range of an earlier run if there was one.
    pub plan: Plan,
    /// `FILE.partial`.
    pub folder: PathBuf,
    /// Locked until this is dropped.
    _lock: File,
}

impl Work {
    /// Creates the folder, or resumes one that an earlier run of the same plan left.
    ///
    /// # Errors
    /// If the file exists or cannot be made, the folder is not of this plan, or another process holds it.
    pub fn open(plan: Plan, args: &BackfillArgs) -> Result<Self> {
        let whole_name = args.file.as_os_str().as_encoded_bytes();
        let name = args.file.file_name().map(OsStr::as_encoded_bytes);
        if !name.is_some_and(|name| whole_name.ends_with(name)) {
            return Err(ToolError::Usage(format!("{} names no file", args.file.display())));
        }
        // A dangling link exists, too.
        if fs::symlink_metadata(&args.file).is_ok() {
            return Err(ToolError::Usage(format!("{} already exists", args.file.display())));
        }
        let folder = plain_file::beside(&args.file, ".partial");
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.map_err(ToolError::file("cannot make the folder", &folder))?,
        }
        let refuse = |why: &str| Err(ToolError::Usage(format!("{} {why}", folder.display())));
        let (own, others) = files(&folder)?;
        if let Some(other) = others.first() {
            let other = other.display();
            let message = format!("{other} is not of an earlier run; move it, or write another file");
            return Err(ToolError::Usage(message));
        }
        let lock = folder.join(LOCK);
        let lock = plain_file::create(&lock).map_err(ToolError::file("cannot write", &lock))?;
        if lock.try_lock().is_err() {
            return refuse("is used by another run");
        }
        let mut earlier: Vec<PathBuf> = own.into_iter().filter(|path| !path.ends_with(LOCK)).collect();
        if args.restart {
            remove(&earlier)?;
            earlier.clear();
        }
        let path = folder.join(PLAN);
        let is_begun = |path: &PathBuf| path.ends_with(PLAN) || path.extension() == Some(JOURNAL.as_ref());
        if !earlier.iter().any(is_begun) {
            let text = serde_json::to_vec(&plan).unwrap_or_default();
            plain_file::replace(&path, &text).map_err(ToolError::file("cannot write", &path))?;
            return Ok(Self { plan, folder, _lock: lock });
        }
        let written = match plain_file::read(&path, plain_file::MAX_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.map_err(ToolError::file("cannot read", &path))?.bytes,
        };
        match serde_json::from_slice::<Plan>(&written) {
            Ok(earlier) if plan.continues(&earlier) => Ok(Self { plan: earlier, folder, _lock: lock }),
            Ok(_) => refuse(
                "belongs to a run with other arguments or another configuration; repeat those, or use --restart",
            ),
            Err(_) => refuse("has no valid plan.json; use --restart to discard its replies"),
        }
    }

    /// Removes the files of this run, and the folder if nobody has put another file into it.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(&self) -> Result<()> {
        remove(&files(&self.folder)?.0)?;
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }

    /// The file of a stream's journal.
    pub fn journal(&self, stream: &Stream<'_>) -> PathBuf {
        self.folder.join(format!("{:05}.{JOURNAL}", stream.index))
    }

    /// The number of requests that earlier runs completed.
    ///
    /// # Errors
    /// If a journal cannot be read.
    pub fn answered_requests(&self) -> Result<u64> {
        let mut steps = 0;
        for stream in self.plan.streams() {
            journal::read(&self.journal(&stream), |_| {
                steps += 1;
                Ok(())
            })?;
        }
        Ok(steps * self.plan.requests_per_step())
    }
}
