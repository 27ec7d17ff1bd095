//! The requests of the check: about one app, counted, with query names that may change.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::error::{Result, ToolError};
use crate::service::{Service, skew};
use pds_client::{FetchError, Reason};
use pds_config::Config;
use pds_core::units;
use pds_interface::param::QueryNames;
use pds_interface::polled::{Reading, Terms};
use pds_interface::{
    Arguments, RangeEnd, Resolution, Resource, Tally, TimeRange, response_time, run_execution_time,
};

/// Age of the requested hour's end, by which late data has arrived.
const HOURS_AGO: i64 = 2;

/// Statuses that refuse a request for its arguments, the range included.
const REFUSALS: [u16; 8] = [400, 402, 403, 404, 413, 414, 416, 422];

/// Requests data about one app.
#[derive(Debug)]
pub struct Prober {
    /// The service and its configuration.
    pub service: Service,
    /// The app, after its project.
    pub app: (String, String),
    /// Query names that the service honours, as far as known.
    pub names: QueryNames,
    /// An hour long past, whose data is complete.
    pub hour: TimeRange,
    /// The number of requests in the hour.
    pub total: f64,
    /// Requests sent.
    pub sent: usize,
    /// The service's clock minus ours, in seconds, for each reply with a date.
    pub skews: Vec<f64>,
}

impl Prober {
    /// Begins with no requests to the service of `config`.
    ///
    /// # Errors
    /// If no client can be built for it.
    pub fn new(mut config: Config) -> Result<Self> {
        // Retries would not be counted.
        config.api.max_retries = 0;
        let Service { config, client } = Service::new(config)?;
        // Otherwise, a range that is refused with 403 would stop all others.
        let service = Service { client: client.retrying_refused_after(Duration::ZERO), config };
        let now = Timestamp::now().as_second();
        let end = (now - HOURS_AGO * 3600).div_euclid(3600) * 3600;
        Ok(Self {
            names: service.config.api.query_names.clone(),
            service,
            app: Default::default(),
            hour: TimeRange { start: end - 3600, end },
            total: 0.0,
            sent: 0,
            skews: Vec::new(),
        })
    }

    /// 47 minutes of the hour, with bounds that no service uses by default or rounds to: 06:07 to 06:54.
    pub fn odd(&self) -> TimeRange {
        TimeRange { start: self.hour.start + 7 * 60, end: self.hour.start + 54 * 60 }
    }

    /// Chooses the app with the most requests.
    ///
    /// # Errors
    /// If no app answers.
    pub async fn choose(&mut self, apps: &[(String, String)]) -> Result<()> {
        let mut busiest: Option<(f64, &(String, String))> = None;
        let (mut failure, mut refused) = (Ok(()), HashSet::new());
        for candidate in apps {
            let account = self.service.client.account(&candidate.0).name().to_owned();
            if refused.contains(&account) {
                continue;
            }
            self.app.clone_from(candidate);
            match self.requests(self.hour).await {
                Ok(answer) => {
                    let total = answer.count().unwrap_or(0.0);
                    if busiest.is_none_or(|(most, _)| total > most) {
                        busiest = Some((total, candidate));
                    }
                }
                Err(error) => {
                    // A refused token is sent once.
                    if matches!(&error, ToolError::Fetch(error) if error.status() == Some(401)) {
                        refused.insert(account);
                    }
                    failure = Err(error);
                }
            }
        }
        let Some((total, app)) = busiest else { return failure };
        self.app.clone_from(app);
        self.total = total;
        Ok(())
    }

    /// The requests in `range`, with the end that an ideal service expects.
    ///
    /// # Errors
    /// If the service does not answer.
    pub async fn requests(&mut self, range: TimeRange) -> Result<Tally> {
        self.counted(range, RangeEnd::Exclusive, None).await
    }

    /// Like [`Prober::requests`], for a service with this kind of range end, and for a container.
    ///
    /// # Errors
    /// If the service does not answer.
    pub async fn counted(
        &mut self,
        range: TimeRange,
        end: RangeEnd,
        container: Option<&str>,
    ) -> Result<Tally> {
        let (project, app) = self.app.clone();
        let arguments = Arguments::about(&project, &app).in_range_to(range, end).in_container(container);
        let mut tally = self.send(response_time::RESOURCE, &arguments).await?.tally.unwrap_or_default();
        tally.range = tally.range.map(|range| end.covered_range(range));
        Ok(tally)
    }

    /// The times of the datapoints of run execution times in `range`, in order.
    ///
    /// # Errors
    /// If the service does not answer.
    pub async fn datapoints(&mut self, range: TimeRange, resolution: Resolution) -> Result<Vec<f64>> {
        let (project, app) = self.app.clone();
        let arguments = Arguments::about(&project, &app)
            .in_range_to(range, RangeEnd::Exclusive)
            .at_resolution(resolution);
        let points = self.send(run_execution_time::RESOURCE, &arguments).await?.points;
        Ok(points.iter().map(|point| point.time).collect())
    }

    async fn send(&mut self, resource: Resource, arguments: &Arguments<'_>) -> Result<Reading> {
        let request = resource.call().request(arguments, &self.names)?;
        self.sent += 1;
        let fetched = self.service.client.call(&self.service.client.account(&self.app.0), &request).await?;
        self.skews.extend(skew(&fetched));
        let read = resource.polled().decode(&fetched.body, &Terms::default())?;
        Ok(read(&[]))
    }
}

/// Separates a refusal of the request (`Err` inside) from other errors.
///
/// # Errors
/// All errors but refusals.
pub fn refused<T>(answer: Result<T>) -> Result<Result<T, String>> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(ToolError::Fetch(FetchError { reason: Reason::Status { status, message, .. }, .. }))
            if REFUSALS.contains(&status) =>
        {
            Ok(Err(format!("{status} {message}").trim_end().to_owned()))
        }
        Err(error) => Err(error),
    }
}

/// Whole seconds for people.
pub fn lasting(seconds: u64) -> String {
    units::seconds(Duration::from_secs(seconds).as_secs_f64())
}

/// A duration as the configuration writes it.
pub fn written(seconds: u64) -> String {
    format!("\"{}\"", humantime::format_duration(Duration::from_secs(seconds)))
}
