//! One request of a polled call with its reply decoded, as checks need it.

use jiff::Timestamp;

use crate::client::{Account, FetchError, Fetched};
use crate::interface::{Arguments, Cadence, Resource, RuleError, TimeRange};

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
}

impl Unanswered {
    /// The exit code for this reason.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Fetch(error) => code_of_fetch(error),
            Self::Rule(_) => 2,
        }
    }
}

/// Requests `resource` once, as a poll does; metrics for the last five settled minutes.
///
/// # Errors
/// If the service does not reply, or the reply cannot be read.
pub async fn ask(
    service: &Service,
    account: &Account,
    resource: Resource,
    project: &str,
    app: &str,
) -> Result<Fetched, Unanswered> {
    let settle = i64::try_from(service.config.poll.settle.as_secs()).unwrap_or(0);
    let end = Timestamp::now().as_second() - settle;
    let mut arguments = Arguments::about(project, app).at_resolution(service.config.poll.resolution);
    if resource.polled().cadence == Cadence::Metrics {
        arguments =
            arguments.in_range_to(TimeRange { start: end - 300, end }, service.config.accounting.range_end);
    }
    let request = resource.call().request(&arguments, &service.config.api.query_names)?;
    let read = move |body: &[u8]| resource.polled().read(body, &[]).map(|_| ());
    let ((), fetched) = service.client.read(account, resource, &request, read).await?;
    Ok(fetched)
}
