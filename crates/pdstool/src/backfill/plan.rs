//! The requests of a run, and whether it resumes an earlier one.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Result, ToolError};
use crate::options::time;
use crate::service;
use pds_config::Config;
use pds_core::plain_file;
use pds_interface::range::rfc3339;
use pds_interface::{Cadence, Resolution, Resource, TimeRange};

use super::BackfillArgs;
use super::journal;

/// The plan of a run. A run resumes an earlier one of the same plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The service.
    base_url: String,
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
        let seconds = |duration: &Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let step = seconds(&args.step);
        let settled = now.as_second() - seconds(&config.poll.settle);
        let moment = |text: &str| time(text, now).map_err(ToolError::Usage);
        let start = moment(&args.start)?;
        let end = args.end.as_deref().map(moment).transpose()?.unwrap_or(settled);
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
        let resolution = config.poll.resolution;
        let windows = if args.windows.is_empty() { &config.poll.windows } else { &args.windows };
        Ok(Self {
            base_url: config.api.base_url.to_string(),
            given: (args.start.clone(), args.end.clone()),
            start,
            end,
            step,
            windows: windows.iter().map(seconds).collect(),
            resolution: (resolution != Resolution::Standard).then(|| resolution.as_str().to_owned()),
            apps: service::meant_apps(config, args.project.as_deref(), &args.apps)?,
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

/// The file in the folder that is locked.
const LOCK: &str = "lock";

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
    /// If the file exists, the folder belongs to another plan, or another process holds it.
    pub fn open(plan: Plan, args: &BackfillArgs) -> Result<Self> {
        if args.file.exists() {
            return Err(ToolError::Usage(format!("{} already exists", args.file.display())));
        }
        let folder = pds_ledger::state::beside(&args.file, ".partial");
        fs::create_dir_all(&folder).map_err(ToolError::file("cannot make the folder", &folder))?;
        let lock = folder.join(LOCK);
        let lock = plain_file::create(&lock).map_err(ToolError::file("cannot write", &lock))?;
        if lock.try_lock().is_err() {
            return Err(ToolError::Usage(format!("another run is using {}", folder.display())));
        }
        let path = folder.join("plan.json");
        if args.restart {
            for entry in fs::read_dir(&folder).map_err(ToolError::file("cannot read", &folder))?.flatten() {
                if entry.file_name() != LOCK {
                    fs::remove_file(entry.path()).map_err(ToolError::file("cannot remove", &entry.path()))?;
                }
            }
        }
        let Ok(written) = plain_file::read(&path, plain_file::MAX_BYTES) else {
            let text = serde_json::to_vec(&plan).unwrap_or_default();
            plain_file::create(&path)
                .and_then(|mut file| file.write_all(&text))
                .map_err(ToolError::file("cannot write", &path))?;
            return Ok(Self { plan, folder, _lock: lock });
        };
        match serde_json::from_slice::<Plan>(&written.bytes) {
            Ok(earlier) if plan.continues(&earlier) => Ok(Self { plan: earlier, folder, _lock: lock }),
            _ => Err(ToolError::Usage(format!(
                "{} belongs to a run with other arguments; repeat those, or use --restart",
                folder.display()
            ))),
        }
    }

    /// The file of a stream's journal.
    pub fn journal(&self, stream: &Stream<'_>) -> PathBuf {
        self.folder.join(format!("{:05}.jsonl", stream.index))
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
