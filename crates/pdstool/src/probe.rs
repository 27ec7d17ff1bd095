//! One request of a polled call with its reply decoded, as checks need it.

use jiff::Timestamp;

use pds_client::{Account, FetchError, Fetched};
use pds_interface::{Arguments, Cadence, Resource, RuleError, TimeRange};

use super::error::code_of_fetch;
use super::service::Service;

/// Why a call fails.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// No usable reply.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The request breaks a rule of the interface.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The reply is about another range than was asked for.
    #[error("{0}")]
    RangeIgnored(String),
}

impl Unanswered {
    /// The exit code for this reason.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Fetch(error) => code_of_fetch(error),
            Self::Rule(_) => 2,
            Self::RangeIgnored(_) => 1,
        }
    }
}

/// Requests `resource` once, as a poll does; metrics for the last five settled minutes.
///
/// # Errors
/// If the service does not reply, or the reply cannot be read or ignores the range.
pub async fn ask(
    service: &Service,
    account: &Account,
    resource: Resource,
    project: &str,
    app: &str,
) -> Result<Fetched, Unanswered> {
    let settle = i64::try_from(service.config.poll.settle.as_secs()).unwrap_or(0);
    let end = Timestamp::now().as_second() - settle;
    let asked = TimeRange { start: end - 300, end };
    let mut arguments = Arguments::about(project, app).at_resolution(service.config.poll.resolution);
    if resource.polled().cadence == Cadence::Metrics {
        arguments = arguments.in_range_to(asked, service.config.accounting.range_end);
    }
    let names = &service.config.api.query_names;
    let request = resource.call().request(&arguments, names)?;
    let read = move |body: &[u8]| resource.polled().read(body, &[]);
    let (reading, fetched) = service.client.read(account, resource, &request, read).await?;
    match reading.tally.and_then(|tally| tally.range) {
        Some(answered) => match answered.ignores(asked) {
            Some(ignored) => Err(Unanswered::RangeIgnored(names.told(ignored, asked, answered))),
            None => Ok(fetched),
        },
        None => Ok(fetched),
    }
}
