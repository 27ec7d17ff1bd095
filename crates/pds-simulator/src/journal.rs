//! The received requests: counters, and the last ones in full. Tests check the client with them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use pds_interface::TimeRange;

/// One request to one of the calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// When it was received, by the simulator's clock.
    pub at: Timestamp,
    /// Which call: [`pds_interface::Call::id`].
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
    /// Connections open now.
    pub open: u64,
    /// Requests in flight, including bodies of replies.
    pub under_way: u64,
    /// The maximum number of requests in flight.
    pub most_under_way: u64,
    /// The last requests, oldest first; as many as [`super::Settings::journal`] says.
    pub entries: VecDeque<Entry>,
}

impl Journal {
    /// The entries of one call.
    pub fn of<'a>(&'a self, call: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.call == call)
    }
}

/// The journal while it is recorded.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    journal: Arc<Mutex<Journal>>,
    most: usize,
}

impl Recorder {
    pub(super) fn new(most: usize) -> Self {
        Self { journal: Arc::default(), most }
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&mut Journal) -> T) -> T {
        read(&mut self.journal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn record(&self, entry: Entry) {
        let most = self.most;
        self.read(|journal| {
            journal.total += 1;
            *journal.by_call.entry(entry.call).or_default() += 1;
            *journal.by_status.entry(entry.status.unwrap_or(0)).or_default() += 1;
            if most > 0 {
                if journal.entries.len() == most {
                    journal.entries.pop_front();
                }
                journal.entries.push_back(entry);
            }
        });
    }

    /// Counts a request as in flight until the returned guard is dropped.
    pub(super) fn begin(&self) -> Counted {
        self.read(|journal| {
            journal.under_way += 1;
            journal.most_under_way = journal.most_under_way.max(journal.under_way);
        });
        Counted { recorder: self.clone(), end: |journal| journal.under_way -= 1 }
    }

    /// Counts a connection as open until the returned guard is dropped.
    pub(super) fn connect(&self) -> Counted {
        self.read(|journal| {
            journal.connections += 1;
            journal.open += 1;
        });
        Counted { recorder: self.clone(), end: |journal| journal.open -= 1 }
    }
}

/// A request in flight, or an open connection.
#[derive(Debug)]
pub(super) struct Counted {
    recorder: Recorder,
    end: fn(&mut Journal),
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.recorder.read(self.end);
    }
}
