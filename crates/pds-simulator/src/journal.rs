//! The received requests: counters, and the last ones in full. Tests check the client with them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use pds_interface::TimeRange;

/// A request to one of the calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// When it was received, by the simulator's clock.
    pub at: Timestamp,
    /// The call: [`pds_interface::Call::id`].
    pub call: &'static str,
    /// The project in the path, if any.
    pub project: Option<Arc<str>>,
    /// The app in the path, if any.
    pub app: Option<Arc<str>>,
    /// The range of a metrics call, if any.
    #[serde(serialize_with = "as_bounds")]
    pub range: Option<TimeRange>,
    /// The container of a metrics call, if any.
    pub container: Option<String>,
    /// The status of the reply; `None` if the connection was reset.
    pub status: Option<u16>,
}

fn as_bounds<S: Serializer>(range: &Option<TimeRange>, serializer: S) -> Result<S::Ok, S::Error> {
    range.map(|range| [range.start, range.end]).serialize(serializer)
}

/// All requests so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Journal {
    /// Requests to the calls.
    pub total: u64,
    /// Requests by call.
    pub by_call: BTreeMap<&'static str, u64>,
    /// Requests by status; 0 counts resets.
    pub by_status: BTreeMap<u16, u64>,
    /// Connections accepted.
    pub connections: u64,
    /// The last requests, oldest first; as many as [`super::Settings::journal`] says.
    pub entries: VecDeque<Entry>,
}

impl Journal {
    /// The entries of one call.
    pub fn of<'a>(&'a self, call: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.call == call)
    }

    /// Adds a request, and keeps the last `most` in full.
    pub(super) fn record(&mut self, entry: Entry, most: usize) {
        self.total += 1;
        *self.by_call.entry(entry.call).or_default() += 1;
        *self.by_status.entry(entry.status.unwrap_or(0)).or_default() += 1;
        self.entries.push_back(entry);
        if self.entries.len() > most {
            self.entries.pop_front();
        }
    }
}
