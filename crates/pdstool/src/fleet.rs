//! The statuses of several exporters: failures, and missing or repeated shards.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::Value;

use crate::error::{Result, ToolError};
use crate::exporter::{Exporter, ExporterStatus};
use crate::report::{first_few, grouped};
use pds_core::error_chain::with_sources;

/// Missing shards are searched below this number: an exporter may report any number of shards.
const MAX_SHARDS: u32 = 10_000;

/// Replies of exporters.
#[derive(Debug, Default)]
pub struct Fleet {
    /// Each exporter with its status and the whole reply.
    pub replies: Vec<(Exporter, ExporterStatus, Value)>,
    /// The addresses of the others, and why they have no status.
    pub failures: Vec<(String, String)>,
}

impl Fleet {
    /// The number of exporters.
    pub fn count(&self) -> usize {
        self.replies.len() + self.failures.len()
    }

    /// Succeeds if every exporter replied.
    ///
    /// # Errors
    /// The first failure.
    pub fn complete(&self) -> Result<()> {
        self.failures.first().map_or(Ok(()), |(_, failure)| Err(ToolError::failed(failure)))
    }

    /// For each service and number of shards: the number, and how often each shard replied.
    fn shards(&self) -> Vec<(u32, BTreeMap<u32, u32>)> {
        let exporters = self.replies.iter().map(|(_, status, _)| {
            let exporter = &status.exporter;
            ((&*status.service.base_url, exporter.shards), exporter.shard)
        });
        let times = |((_, count), shards): ((&str, u32), Vec<u32>)| {
            let mut times: BTreeMap<u32, u32> = (0..count.min(MAX_SHARDS)).map(|shard| (shard, 0)).collect();
            shards.into_iter().for_each(|shard| *times.entry(shard).or_default() += 1);
            (count, times)
        };
        grouped(exporters).into_iter().map(times).filter(|(count, _)| *count > 1).collect()
    }

    /// Whether a shard did not reply.
    pub fn lacks_shards(&self) -> bool {
        self.shards().iter().any(|(_, times)| times.values().any(|times| *times == 0))
    }

    /// Shards of the same service that are missing, or replied more than once, in a sentence.
    pub fn gaps(&self) -> Option<String> {
        let text = |(count, times): (u32, BTreeMap<u32, u32>)| {
            let part = |what: &str, is_gap: fn(u32) -> bool| {
                let found = times.iter().filter(|(_, times)| is_gap(**times));
                let found: Vec<String> = found.map(|(shard, _)| shard.to_string()).collect();
                (!found.is_empty()).then(|| format!("of {count} shards, {what}: {}", first_few(&found)))
            };
            [part("missing", |times| times == 0), part("queried more than once", |times| times > 1)]
        };
        let gaps: Vec<String> = self.shards().into_iter().flat_map(text).flatten().collect();
        let mut names: Vec<&str> = self.replies.iter().map(|(exporter, ..)| &*exporter.name).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| pair.first());
        let twice = twice.map(|name| format!("{name} is queried more than once"));
        let gaps: Vec<String> = gaps.into_iter().chain(twice).collect();
        (!gaps.is_empty()).then(|| gaps.join("; "))
    }
}

/// The statuses of `exporters`, requested at once.
///
/// # Errors
/// If none replies with its status.
pub async fn read_all(exporters: &[Exporter]) -> Result<Fleet> {
    let mut fleet = Fleet::default();
    let replies = join_all(exporters.iter().map(Exporter::status)).await;
    for (exporter, reply) in exporters.iter().zip(replies) {
        match reply {
            Ok((status, sent)) => fleet.replies.push((exporter.clone(), status, sent)),
            Err(error) => {
                let remedy = error.remedy().map(|remedy| format!(". {remedy}")).unwrap_or_default();
                let failure = format!("no status from {}: {}{remedy}", exporter.name, with_sources(&error));
                fleet.failures.push((exporter.name.clone(), failure));
            }
        }
    }
    if fleet.replies.is_empty() { fleet.complete().map(|()| fleet) } else { Ok(fleet) }
}
