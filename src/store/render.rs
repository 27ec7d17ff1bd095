//! A snapshot of the store as text, family by family, chunk by chunk.

use std::sync::Arc;

use tokio::time::Instant;

use pds_exposition::encode::{Format, head, labels, sample, samples};
use pds_exposition::{Family, Samples};
use pds_interface::Resource;
use pds_ledger::Owner;

use super::filter::Filter;
use super::gone::Gone;
use super::target_state::{UnixNanos, timestamp};

use super::{Section, TargetState};
use pds_telemetry::catalogue::{GONE, LAST_SUCCESS, UP};

/// The samples to expose at one moment, or a part of them, as shared pointers.
#[derive(Debug)]
pub struct Snapshot {
    /// The lowest version of the store that it may show.
    pub(super) version: u64,
    /// The filter that it was made with.
    pub(super) filter: Box<Filter>,
    sections: Vec<PageSection>,
    health: Vec<TargetHealth>,
    gone: Vec<(Arc<Owner>, &'static str, f64)>,
    /// When its first series goes stale; the snapshot is valid until then.
    pub(super) stale_at: Option<Instant>,
}

#[derive(Debug)]
struct PageSection {
    families: Vec<Family>,
    /// Labels and samples.
    targets: Vec<(Arc<str>, Arc<Samples>)>,
}

#[derive(Debug)]
struct TargetHealth {
    owner: Arc<Owner>,
    resource: Resource,
    up: bool,
    last_success: Option<UnixNanos>,
}

/// The value of a target in a health family.
type HealthValue = fn(&TargetHealth) -> Option<f64>;

/// The health families.
const HEALTH: [(Family, HealthValue); 2] = [
    (UP, |health| Some(f64::from(health.up))),
    (LAST_SUCCESS, |health| Some(timestamp(health.last_success?)?.as_duration().as_secs_f64())),
];

/// Chunks are passed on at this size: large enough that passing on is cheap, small enough that a page of a million
/// series never fills memory.
const CHUNK: usize = 64 * 1024;

/// Targets prefetched per batch.
const AHEAD: usize = 16;

/// Prefetches the values of `targets` for family `index`. Values of ten thousand apps are in no cache; otherwise each
/// line would wait for memory in turn.
fn fetch(targets: &[(Arc<str>, Arc<Samples>)], index: usize) {
    let read = |(labels, samples_of): &(Arc<str>, Arc<Samples>)| {
        let value = samples_of.values.get(samples_of.layout.series(index).start).copied().unwrap_or_default();
        let ends = [labels.as_bytes().first(), labels.as_bytes().last()];
        ends.into_iter().flatten().fold(value.to_bits(), |all, byte| all ^ u64::from(*byte))
    };
    std::hint::black_box(targets.iter().fold(0, |all, target| all ^ read(target)));
}

impl Snapshot {
    /// A snapshot of the cells of `sections` that `filter` selects. Each section has its families, and the maximum
    /// number of its cells, 0 if unknown.
    pub(super) fn new<'a, C: Iterator<Item = &'a Arc<TargetState>>>(
        version: u64,
        filter: &Filter,
        sections: impl Iterator<Item = (&'a Vec<Family>, usize, C)>,
        gone: Vec<(Arc<Owner>, Gone)>,
        now: Instant,
    ) -> Self {
        let (mut parts, mut health, mut first_stale) = (Vec::new(), Vec::new(), None);
        let with_health = HEALTH.iter().any(|(family, _)| filter.wants(family));
        for (families, size, cells) in sections {
            let with_samples = families.iter().any(|family| filter.wants(family));
            if !with_samples && !with_health {
                continue;
            }
            // Most of a page's memory while it is rendered.
            let mut targets = Vec::with_capacity(if with_samples { size } else { 0 });
            health.reserve_exact(if with_health { size } else { 0 });
            for cell in cells {
                let show = |samples: &Arc<Samples>| {
                    if with_samples {
                        targets.push((Arc::clone(cell.key.owner.labels()), Arc::clone(samples)));
                    }
                };
                let (health_of, stale_at) = cell.exposed_at(now, show);
                first_stale = [first_stale, stale_at].into_iter().flatten().min();
                if let (true, Section::Endpoint, Some((up, last_success))) =
                    (with_health, cell.section, health_of)
                {
                    let (owner, resource) = (Arc::clone(&cell.key.owner), cell.key.resource);
                    health.push(TargetHealth { owner, resource, up, last_success });
                }
            }
            parts.push(PageSection { families: families.clone(), targets });
        }
        let gone = gone.into_iter().filter(|(owner, _)| filter.wants(&GONE) && filter.wants_app(owner));
        let gone = gone.map(|(owner, gone)| {
            first_stale = [first_stale, Some(gone.until)].into_iter().flatten().min();
            (owner, gone.reason, gone.since.as_duration().as_secs_f64())
        });
        let gone = gone.collect();
        Self {
            version,
            filter: Box::new(filter.clone()),
            sections: parts,
            health,
            gone,
            stale_at: first_stale,
        }
    }

    /// The memory that it uses, or keeps from being freed once the store has newer values.
    pub fn bytes(&self) -> u64 {
        let of_parts = self.sections.iter().map(|part| {
            let values: usize = part.targets.iter().map(|(_, samples)| size_of_val(&*samples.values)).sum();
            values + part.targets.capacity() * size_of::<(Arc<str>, Arc<Samples>)>()
        });
        (of_parts.sum::<usize>() + self.health.capacity() * size_of::<TargetHealth>()) as u64
    }

    /// How many series there are.
    pub fn series(&self) -> usize {
        let targets = self.sections.iter().flat_map(|part| &part.targets);
        let samples: usize = targets.map(|(_, samples)| samples.values.len()).sum();
        let health = self.health.iter().map(|health| 1 + usize::from(health.last_success.is_some()));
        samples + health.sum::<usize>() + self.gone.len()
    }

    /// Writes the page in chunks of whole lines. The caller writes the end of the page (the exporter's own families,
    /// the format's trailer).
    ///
    /// # Errors
    /// The first error of `out`; nothing is written after that.
    pub fn write<E>(&self, format: Format, out: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut chunk = Vec::with_capacity(CHUNK + 1024);
        for part in &self.sections {
            let families = part.families.iter().enumerate();
            for (index, family) in families.filter(|(_, family)| self.filter.wants(family)) {
                let mut headed = false;
                for group in part.targets.chunks(AHEAD) {
                    fetch(group, index);
                    for (labels, samples_of) in group {
                        if !headed && !samples_of.layout.series(index).is_empty() {
                            head(&mut chunk, format, family);
                            headed = true;
                        }
                        samples(&mut chunk, format, family, labels, samples_of.of(index));
                        if chunk.len() >= CHUNK {
                            out(&chunk)?;
                            chunk.clear();
                        }
                    }
                }
            }
        }
        let resources: Vec<String> =
            Resource::all().map(|resource| labels([("resource", resource.as_str())])).collect();
        for (family, value) in HEALTH.iter().filter(|(family, _)| self.filter.wants(family)) {
            let series = self.health.iter().filter_map(|health| {
                let resource = resources.get(health.resource.index()).map_or("", String::as_str);
                Some((&*health.owner, resource, value(health)?))
            });
            write_family(&mut chunk, format, family, series, out)?;
        }
        let gone =
            self.gone.iter().map(|(owner, reason, since)| (&**owner, labels([("reason", *reason)]), *since));
        write_family(&mut chunk, format, &GONE, gone, out)?;
        out(&chunk)
    }
}

/// Writes the head of `family`, if it has `series`, and a line for each: its owner, further labels and value.
fn write_family<'a, E>(
    chunk: &mut Vec<u8>,
    format: Format,
    family: &Family,
    series: impl Iterator<Item = (&'a Owner, impl AsRef<str>, f64)>,
    out: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    for (index, (owner, extra, value)) in series.enumerate() {
        if index == 0 {
            head(chunk, format, family);
        }
        sample(chunk, family, owner.labels(), extra.as_ref(), value);
        if chunk.len() >= CHUNK {
            out(chunk)?;
            chunk.clear();
        }
    }
    Ok(())
}
