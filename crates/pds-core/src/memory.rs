//! Bounds of the memory that others make the process hold: replies, answers, connections.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::plain_file;

/// The maximum budget, and the budget without a limit of a cgroup.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The minimum budget: replies and answers of the default sizes fit in their shares.
const MIN_BYTES: u64 = 12 * 1024 * 1024;

/// The budget is the cgroup's limit divided by this: the rest is for the process itself, and for work on the bytes
/// held.
const LIMIT_DIVISOR: u64 = 4;

/// Unit of the semaphores, in bytes.
const UNIT: u64 = 1024;

/// Files of the kernel are shorter than this.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Bytes that others can make the process hold, all together. Cloning shares it.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    bytes: u64,
    shares: [Share; 5],
}

impl MemoryBudget {
    /// A quarter of the memory limit of this process' cgroup, if there is one, and 64 MiB at most.
    pub fn of_process() -> Self {
        Self::within(cgroup_limit(Path::new("/")))
    }

    /// The budget of a process that may take `limit` bytes in all.
    pub fn within(limit: Option<u64>) -> Self {
        let bytes = limit.map_or(MAX_BYTES, |limit| (limit / LIMIT_DIVISOR).clamp(MIN_BYTES, MAX_BYTES));
        Self { bytes, shares: EIGHTHS.map(|eighths| Share::new(bytes * eighths / 8)) }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many bytes of it are held, over all shares.
    pub fn used(&self) -> u64 {
        self.shares.iter().map(|share| share.bytes() - share.free.available_permits() as u64 * UNIT).sum()
    }

    /// The share of `holder`.
    pub fn share(&self, holder: Holder) -> Share {
        self.shares[holder as usize].clone()
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::within(None)
    }
}

/// Shares of a [`MemoryBudget`], so that no holder takes what another needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Pages until their clients have read them.
    Answers,
    /// Clients' connections: TLS handshakes and headers of requests.
    Connections,
    /// Small replies of the service, and the beginnings of large ones.
    SmallReplies,
    /// Large replies of the service.
    LargeReplies,
    /// Replies of the Prometheus that cursors are read from.
    Restoring,
}

/// The eighths of the budget that each [`Holder`] has, in their order.
const EIGHTHS: [u64; 5] = [3, 2, 1, 1, 1];

/// A part of a [`MemoryBudget`]. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Share {
    units: u32,
    free: Arc<Semaphore>,
}

/// Bytes of a [`Share`], given back when this is dropped.
pub type Room = OwnedSemaphorePermit;

impl Share {
    fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        // Values of 32 bits fit everywhere.
        let free = Arc::new(Semaphore::new(usize::try_from(units).unwrap_or(usize::MAX)));
        Self { units, free }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.units) * UNIT
    }

    /// Waits for room for `bytes`, at most for all there is; `None` is never returned.
    pub async fn acquire(&self, bytes: u64) -> Option<Room> {
        // The semaphore is never closed.
        Arc::clone(&self.free).acquire_many_owned(self.units_of(bytes)).await.ok()
    }

    /// Room for `bytes`, at most for the whole share; `None` if it is not free.
    #[must_use]
    pub fn try_acquire(&self, bytes: u64) -> Option<Room> {
        Arc::clone(&self.free).try_acquire_many_owned(self.units_of(bytes)).ok()
    }

    /// Takes the part for `bytes` out of `room`, at most all of it; `None` is never returned.
    #[must_use]
    pub fn split(&self, room: &mut Room, bytes: u64) -> Option<Room> {
        let units = usize::try_from(self.units_of(bytes)).unwrap_or(usize::MAX);
        room.split(units.min(room.num_permits()))
    }

    fn units_of(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units)
    }
}

/// The least memory limit of the cgroups that this process is in, of either version.
fn cgroup_limit(root: &Path) -> Option<u64> {
    let read = |path: &Path| plain_file::read_text(path, MAX_FILE_BYTES).ok();
    let groups = read(&root.join("proc/self/cgroup"))?;
    let limits = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let (mounted, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        // Inside of a container, the folder of the group may be the root.
        let groups = Path::new(group.trim_start_matches('/')).ancestors();
        groups.filter_map(|group| read(&root.join(mounted).join(group).join(file))?.trim().parse().ok()).min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn shares_are_bounded_and_counted_together() {
        let budget = MemoryBudget::default();
        let (one, other) = (budget.share(Holder::Connections), budget.share(Holder::SmallReplies));
        assert_eq!((one.bytes(), other.bytes()), (MAX_BYTES / 4, MAX_BYTES / 8));
        assert_eq!(EIGHTHS.iter().sum::<u64>(), 8);
        let all = one.acquire(u64::MAX).await;
        let little = other.try_acquire(1).unwrap();
        assert!(one.try_acquire(1).is_none());
        assert_eq!(budget.used(), MAX_BYTES / 4 + UNIT);
        drop((all, little));
        assert_eq!(budget.used(), 0);
        let mut room = one.try_acquire(3 * UNIT).unwrap();
        let part = one.split(&mut room, UNIT + 1).unwrap();
        drop(room);
        assert_eq!(budget.used(), 2 * UNIT);
        drop(part);
        assert_eq!(budget.used(), 0);
        assert!(one.try_acquire(1).is_some());
    }

    #[test]
    fn the_budget_is_a_quarter_of_the_least_limit() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let bytes = || MemoryBudget::within(cgroup_limit(root.path())).bytes() >> 20;
        assert_eq!(bytes(), 64, "no cgroup at all");
        write("proc/self/cgroup", "2:cpu:/\n0::/pods/one\n");
        write("sys/fs/cgroup/pods/one/memory.max", "max\n");
        assert_eq!(bytes(), 64, "no limit");
        write("sys/fs/cgroup/pods/memory.max", "134217728\n");
        assert_eq!(bytes(), 32);
        write("sys/fs/cgroup/pods/one/memory.max", "1048576\n");
        assert_eq!(bytes(), 12);
        write("proc/self/cgroup", "4:memory:/elsewhere\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "201326592\n");
        assert_eq!(bytes(), 48);
    }
}
