//! The state file: a redb database with one record per ledger.
//!
//! Starting from zero, or from an old state, would make every counter wrong. So a file that is damaged, of another
//! version, or in use is refused and left as it is:
//!
//! - Every commit has two phases. With one, a commit torn by a crash and a file damaged later look alike, and the
//!   database falls back to the previous commit.
//! - A copy in memory is examined first. The database writes to a file while it opens, repairs and closes it, treats an
//!   empty one as new, and panics on some damaged ones.
//! - The file is locked once and stays locked, and each commit checks that it is still the one at its path. A file that
//!   is gone, shortened or not synced is written whole again from memory. A file put in its place is not touched.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::Database;

use crate::store::Key;

use super::disk::{Disk, Found};
use super::error::StateError;
use super::ledger::Ledger;
use super::record::{FORMAT, Record};
use super::tables;

/// What a state file is found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examined {
    /// There is none.
    Missing,
    /// A running daemon has it; it is not read.
    InUse,
    /// It is sound and holds that many ledgers.
    Ledgers(usize),
}

/// Examines the file at `path` without changing it.
///
/// # Errors
/// If a daemon could not use it.
pub async fn examine(path: &Path) -> Result<Examined, StateError> {
    let path = path.to_owned();
    let named = path.clone();
    let examined = tokio::task::spawn_blocking(move || {
        let file = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Examined::Missing),
            file => file.map_err(io(&path))?,
        };
        let disk = match lock(&path, file) {
            Err(StateError::InUse(_)) => return Ok(Examined::InUse),
            disk => disk?,
        };
        let (_, ledgers) = tables::examine(&path, disk.bytes().map_err(io(&path))?)?;
        Ok(Examined::Ledgers(ledgers.len()))
    });
    let panicked =
        |panic: tokio::task::JoinError| StateError::Damaged { path: named, what: panic.to_string() };
    examined.await.unwrap_or_else(|panic| Err(panicked(panic)))
}

/// How many times a file that changes during the read is read again.
const MAX_READS: usize = 10;

/// The ledgers in the file at `path`, also while a daemon has it in use. The file is neither locked nor changed.
///
/// # Errors
/// If a daemon could not use it.
pub async fn read(path: &Path) -> Result<Vec<(Key, Ledger)>, StateError> {
    let path = path.to_owned();
    let named = path.clone();
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = std::fs::read(&path).map_err(io(&path))?;
        for _ in 0..MAX_READS {
            // Pages of two commits do not make a state.
            let again = std::fs::read(&path).map_err(io(&path))?;
            if again == bytes {
                break;
            }
            bytes = again;
        }
        tables::examine(&path, bytes).map(|(_, ledgers)| ledgers)
    });
    read.await.unwrap_or_else(|panic| Err(StateError::Damaged { path: named, what: panic.to_string() }))
}

/// The open state file.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    disk: Disk,
    /// `None` after a failed write: redb accepts nothing until the file is opened again.
    database: Option<Database>,
    /// Whether the file cannot be relied on and must be written whole.
    doubtful: bool,
}

impl State {
    /// Opens the file at `path`, or makes one if there is none, and reads all ledgers.
    ///
    /// # Errors
    /// If the file cannot be used; see [`StateError`].
    pub async fn open(path: &Path) -> Result<(Self, Vec<(Key, Ledger)>), StateError> {
        let path = path.to_owned();
        let named = path.clone();
        tokio::task::spawn_blocking(
            move || if path.exists() { Self::existing(path) } else { Self::create(path) },
        )
        .await
        .unwrap_or_else(|panic| Err(StateError::Damaged { path: named, what: panic.to_string() }))
    }

    /// Creates the file. It gets its name only once it is complete. If another daemon was faster, its file stays.
    fn create(path: PathBuf) -> Result<(Self, Vec<(Key, Ledger)>), StateError> {
        let unfinished = Unfinished::write(&path, &[])?;
        match std::fs::hard_link(&unfinished.name.0, &path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Self::existing(path),
            // A file system without hard links.
            Err(_) if !path.exists() => unfinished.rename(&path)?,
            other => other.map_err(io(&path))?,
        }
        sync_folder(&path).map_err(io(&path))?;
        tracing::info!(path = %path.display(), "made a new state file: counters begin at zero");
        Ok((unfinished.into_state(path), Vec::new()))
    }

    /// Opens the file that is there.
    fn existing(path: PathBuf) -> Result<(Self, Vec<(Key, Ledger)>), StateError> {
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(io(&path))?;
        let disk = lock(&path, file)?;
        remove_unfinished(&path);
        let bytes = disk.bytes().map_err(io(&path))?;
        let (format, ledgers) = tables::examine(&path, bytes)?;
        if format == FORMAT {
            let database = tables::open(&path, disk.clone())?;
            return Ok((Self { path, disk, database: Some(database), doubtful: false }, ledgers));
        }
        let kept = with_suffix(&path, &format!(".format-{format}"));
        std::fs::copy(&path, &kept).and_then(|_| File::open(&kept)?.sync_all()).map_err(io(&kept))?;
        let records: Vec<Record> =
            ledgers.iter().map(|(key, ledger)| (key.clone(), Some(Arc::new(ledger.clone())))).collect();
        let unfinished = Unfinished::write(&path, &records)?;
        unfinished.rename(&path)?;
        tracing::info!(path = %path.display(), kept = %kept.display(), "the state file was of version 0.1.0 and is written anew; its copy is for going back");
        Ok((unfinished.into_state(path), ledgers))
    }

    /// Writes the records in one transaction, synced to disk before it returns. `all` gives every ledger as it was
    /// before them; it is called if the file has to be written whole.
    ///
    /// # Errors
    /// If they could not be written. None of them counts as written then.
    pub fn commit(
        &mut self,
        records: &[Record],
        all: impl FnOnce() -> Vec<Record>,
    ) -> Result<(), StateError> {
        match self.disk.found_at(&self.path).map_err(io(&self.path))? {
            Found::Same => {}
            Found::Other => return Err(StateError::Replaced(self.path.clone())),
            found => {
                if !self.doubtful {
                    tracing::warn!(path = %self.path.display(), truncated = found == Found::Truncated,
                        "the state file was removed or shortened while it was in use; it is written whole again");
                }
                self.doubtful = true;
            }
        }
        if self.doubtful {
            return self.write_whole(records, all());
        }
        // Assumed bad until the commit has succeeded: redb may panic on a file that something else has damaged.
        self.doubtful = true;
        let result = match self.database.take() {
            Some(database) => Ok(database),
            None => tables::open(&self.path, self.disk.clone()),
        };
        let result = result.and_then(|database| {
            tables::write(&self.path, &database, records)?;
            Ok(database)
        });
        self.doubtful = match &result {
            Ok(_) => false,
            Err(StateError::Damaged { .. }) => true,
            Err(_) => self.disk.is_unsynced(),
        };
        self.database = Some(result?);
        Ok(())
    }

    /// Replaces this file by a new one with all ledgers.
    fn write_whole(&mut self, records: &[Record], mut all: Vec<Record>) -> Result<(), StateError> {
        // Of two records of one ledger the later one wins.
        all.extend(records.iter().cloned());
        let unfinished = Unfinished::write(&self.path, &all)?;
        unfinished.rename(&self.path)?;
        *self = unfinished.into_state(std::mem::take(&mut self.path));
        Ok(())
    }
}

/// A new state file under a temporary name, so that a crash never leaves an incomplete one under its own.
struct Unfinished {
    name: UnfinishedName,
    disk: Disk,
    database: Database,
}

impl Unfinished {
    /// Creates a file for `path` with `records`. It is on disk when this returns.
    fn write(path: &Path, records: &[Record]) -> Result<Self, StateError> {
        let name = UnfinishedName(with_suffix(path, &format!("{UNFINISHED}{}", std::process::id())));
        remove(&name.0).map_err(io(path))?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&name.0);
        let disk = lock(path, file.map_err(io(path))?)?;
        let database = tables::open(path, disk.clone())?;
        tables::fill(path, &database, records)?;
        Ok(Self { name, disk, database })
    }

    /// Takes the place of the file at `path`.
    fn rename(&self, path: &Path) -> Result<(), StateError> {
        std::fs::rename(&self.name.0, path).and_then(|()| sync_folder(path)).map_err(io(path))
    }

    fn into_state(self, path: PathBuf) -> State {
        State { path, disk: self.disk, database: Some(self.database), doubtful: false }
    }
}

/// The temporary name of an unfinished file, which is removed on drop.
struct UnfinishedName(PathBuf);

impl Drop for UnfinishedName {
    fn drop(&mut self) {
        // If this fails, the next start removes it.
        let _ = remove(&self.0);
    }
}

/// Suffix of the temporary name, followed by the process id.
const UNFINISHED: &str = ".new-";

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Removes files left by processes that died while they created one.
fn remove_unfinished(path: &Path) {
    let prefix = with_suffix(path, UNFINISHED);
    let Some(prefix) = prefix.file_name().and_then(|name| name.to_str()) else { return };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) {
            let _ = remove(&entry.path());
        }
    }
}

/// Removes a file if it exists.
fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Syncs the folder of `path`, so that a new name in it survives a crash of the machine.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder)?.sync_all() {
        // Some file systems cannot sync folders, and need no such sync.
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        other => other,
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> StateError + use<> {
    let path = path.to_owned();
    |source| StateError::Io { path, source }
}

fn lock(path: &Path, file: File) -> Result<Disk, StateError> {
    match Disk::lock(file) {
        Ok(Some(disk)) => Ok(disk),
        Ok(None) => Err(StateError::InUse(path.to_owned())),
        Err(source) => Err(StateError::NoLocks { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::tables::META;
    use crate::interface::response_time;
    use crate::store::Owner;

    fn ledgers(count: i64) -> Vec<(Key, Ledger)> {
        let ledger = |n: i64| {
            let mut ledger = Ledger::open(60 * n);
            (ledger.total, ledger.unaccounted) = (n.unsigned_abs(), 7);
            ledger.with_buckets(&[(0.035, 1), (1.0, n.unsigned_abs())])
        };
        let key = |n: i64| Key {
            owner: Owner::new("p".into(), format!("a-{n:03}").into()),
            resource: response_time::RESOURCE,
        };
        (1..=count).map(|n| (key(n), ledger(n))).collect()
    }

    async fn file_of(path: &Path, ledgers: &[(Key, Ledger)]) {
        let (mut state, found) = State::open(path).await.unwrap();
        assert_eq!(found, []);
        let records: Vec<_> =
            ledgers.iter().map(|(key, ledger)| (key.clone(), Some(Arc::new(ledger.clone())))).collect();
        state.commit(&records, Vec::new).unwrap();
    }

    async fn refusal(path: &Path) -> String {
        let before = std::fs::read(path).unwrap();
        let error = State::open(path).await.err().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), before, "a file that is refused is left as it was");
        let text = error.to_string();
        assert!(text.contains(&path.display().to_string()), "{text} names the file");
        text
    }

    #[tokio::test]
    async fn ledgers_come_back_as_they_were_committed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        let written = ledgers(100);
        file_of(&path, &written).await;
        let (mut state, found) = State::open(&path).await.unwrap();
        assert_eq!(found, written);
        state.commit(&[(written[0].0.clone(), None)], Vec::new).unwrap();
        drop(state);
        assert_eq!(State::open(&path).await.unwrap().1, written[1..]);
    }

    #[tokio::test]
    async fn a_file_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        let (_held, _) = State::open(&path).await.unwrap();
        let error = State::open(&path).await.err().unwrap();
        assert!(matches!(&error, StateError::InUse(named) if *named == path), "{error:?}");
    }

    #[test]
    fn the_lock_outlives_whatever_opens_and_closes_the_database_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        drop(State::create(path.clone()).unwrap());
        let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let disk = lock(&path, open()).unwrap();
        let is_locked = || matches!(lock(&path, open()), Err(StateError::InUse(_)));
        tables::examine(&path, disk.bytes().unwrap()).unwrap();
        assert!(is_locked(), "between examining and opening");
        drop(tables::open(&path, disk.clone()).unwrap());
        assert!(is_locked(), "while a file that redb gave up on is opened again");
        drop(disk);
        assert!(!is_locked());
    }

    #[tokio::test]
    async fn a_file_of_another_kind_or_version_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        for (contents, says) in
            [(&b""[..], "it is empty"), (b"# not a database, but long enough to be looked at", "damaged")]
        {
            std::fs::write(&path, contents).unwrap();
            let refused = refusal(&path).await;
            assert!(refused.contains(says), "{refused}");
        }
        std::fs::remove_file(&path).unwrap();
        drop(Database::create(&path).unwrap());
        assert!(refusal(&path).await.contains("a database of something else"));
        let database = Database::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(META).unwrap().insert("format", 3).unwrap();
        transaction.commit().unwrap();
        drop(database);
        assert!(refusal(&path).await.contains("is of format 3, and this version reads formats 1 and 2"));
    }

    /// The file at `path` with one of every so many bytes turned over, one at a time: refused, or exactly `written`.
    async fn assert_damage_is_noticed(path: &Path, good: &[u8], written: &[(Key, Ledger)]) {
        let mut refused = 0;
        // A prime, so that all parts of all pages are met; and each byte of the head.
        for at in (0..good.len()).step_by(good.len() / 211 + 97).chain(0..320) {
            let mut bad = good.to_vec();
            bad[at] ^= 0x55;
            std::fs::write(path, &bad).unwrap();
            if let Ok((_, found)) = State::open(path).await {
                assert!(found == written, "byte {at} turned over changes the ledgers in silence");
            } else {
                refused += 1;
                assert!(std::fs::read(path).unwrap() == bad, "byte {at}: a damaged file is overwritten");
            }
        }
        assert!(refused > 10, "only {refused} were refused");
    }

    #[tokio::test]
    async fn a_damaged_file_is_refused_or_gives_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        let written = ledgers(300);
        file_of(&path, &written).await;
        let good = std::fs::read(&path).unwrap();
        for length in [1, 100, 4096, good.len() / 2, good.len() - 1] {
            std::fs::write(&path, &good[..length]).unwrap();
            refusal(&path).await;
        }
        assert_damage_is_noticed(&path, &good, &written).await;
    }

    #[tokio::test]
    async fn a_damaged_reference_to_a_large_page_takes_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        file_of(&path, &ledgers(1)).await;
        let closed = std::fs::read(&path).unwrap();
        let mut marked_as_open = closed.clone();
        marked_as_open[tables::FLAGS] |= tables::NOT_CLOSED;
        let (mut state, written) = State::open(&path).await.unwrap();
        state.commit(&[(written[0].0.clone(), Some(Arc::new(written[0].1.clone())))], Vec::new).unwrap();
        let killed = std::fs::read(&path).unwrap();
        drop(state);
        // What the database reads first. One bit makes it look for a page of 256 MiB.
        let name = b"allocator_state";
        let mut cases = Vec::new();
        for good in [&closed, &marked_as_open, &killed] {
            let named = (0..good.len()).filter(|at| good[*at..].starts_with(name));
            cases.extend(named.flat_map(|at| at + name.len()..at + 256).map(|at| (good, at)));
        }
        let mut of_one_phase = killed.clone();
        of_one_phase[tables::FLAGS] = tables::NOT_CLOSED;
        // No commit holds, and the database would try the other even if its description is damaged.
        of_one_phase.iter_mut().skip(4096).step_by(4096).for_each(|byte| *byte ^= 1);
        cases.extend(tables::COMMITS.map(|at| (&of_one_phase, at)));
        assert!(cases.len() > 700, "{}", cases.len());
        for (good, at) in cases {
            let mut bytes = good.clone();
            bytes[at] ^= 0x80;
            std::fs::write(&path, &bytes).unwrap();
            drop(State::open(&path).await);
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak < 128 * 1024, "{peak} kB");
    }

    #[tokio::test]
    async fn a_file_left_by_a_kill_and_damaged_never_goes_back_to_an_older_commit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        let (mut state, _) = State::open(&path).await.unwrap();
        let mut written = ledgers(100);
        for commit in 0..5 {
            for (_, ledger) in &mut written {
                ledger.until += 60;
                ledger.total += 7 * commit;
            }
            let records: Vec<Record> =
                written.iter().map(|(key, ledger)| (key.clone(), Some(Arc::new(ledger.clone())))).collect();
            state.commit(&records, Vec::new).unwrap();
        }
        // As a process leaves it that is killed: nothing is closed.
        let good = std::fs::read(&path).unwrap();
        let copy = dir.path().join("copy.redb");
        std::fs::write(&copy, &good).unwrap();
        assert!(State::open(&copy).await.unwrap().1 == written, "as it is");
        assert_damage_is_noticed(&copy, &good, &written).await;
    }

    fn total(n: u64) -> (Key, Arc<Ledger>) {
        let (key, mut ledger) = ledgers(1).remove(0);
        ledger.total = n;
        (key, Arc::new(ledger))
    }

    #[tokio::test]
    async fn a_file_removed_or_shortened_while_in_use_is_written_whole_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        let written = ledgers(20);
        let all = || -> Vec<Record> {
            written.iter().map(|(key, ledger)| (key.clone(), Some(Arc::new(ledger.clone())))).collect()
        };
        let (mut state, _) = State::open(&path).await.unwrap();
        for n in 0..2 {
            if n == 0 {
                std::fs::remove_file(&path).unwrap();
            } else {
                drop(File::create(&path).unwrap());
            }
            let (key, ledger) = total(1000 + n);
            state.commit(&[(key, Some(ledger))], all).unwrap();
            state.commit(&[], Vec::new).unwrap();
            assert!(matches!(State::open(&path).await, Err(StateError::InUse(_))), "it is locked");
            let copy = dir.path().join("copy.redb");
            std::fs::copy(&path, &copy).unwrap();
            let (_, found) = State::open(&copy).await.unwrap();
            assert_eq!(found.len(), 20);
            assert_eq!(found[0].1.total, 1000 + n, "the record of the commit holds");
            std::fs::remove_file(&copy).unwrap();
        }
    }

    #[tokio::test]
    async fn a_file_that_replaces_the_state_file_is_neither_written_nor_used() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("state.redb"), dir.path().join("other"));
        let (mut state, _) = State::open(&path).await.unwrap();
        std::fs::write(&other, "another file").unwrap();
        std::fs::rename(&other, &path).unwrap();
        for _ in 0..2 {
            let (key, ledger) = total(1);
            let error = state.commit(&[(key, Some(ledger))], Vec::new).unwrap_err();
            assert!(matches!(error, StateError::Replaced(_)), "{error:?}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"another file");
        std::fs::remove_file(&path).unwrap();
        let (key, ledger) = total(2);
        state.commit(&[(key, Some(ledger))], Vec::new).unwrap();
        drop(state);
        assert_eq!(State::open(&path).await.unwrap().1[0].1.total, 2);
    }

    #[tokio::test]
    async fn a_file_that_could_not_be_synced_is_written_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        let (mut state, _) = State::open(&path).await.unwrap();
        let before = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
        state.doubtful = true;
        let (key, ledger) = total(3);
        state.commit(&[(key, Some(ledger))], Vec::new).unwrap();
        assert!(!state.doubtful);
        assert_ne!(std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap()), before);
        drop(state);
        assert_eq!(State::open(&path).await.unwrap().1[0].1.total, 3);
    }

    #[tokio::test]
    async fn nothing_unfinished_is_left_beside_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        drop(State::open(&path).await.unwrap());
        std::fs::write(dir.path().join("state.redb.new-4711"), "left by a process that died").unwrap();
        drop(State::open(&path).await.unwrap());
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["state.redb"]);
    }

    fn of_version_0_1_0() -> Vec<u8> {
        let packed = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/state/0.1.0.redb.gz"));
        let mut file = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut file).unwrap();
        file
    }

    #[test]
    fn a_torn_commit_of_version_0_1_0_gives_way_to_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        std::fs::write(&path, of_version_0_1_0()).unwrap();
        let database = Database::create(&path).unwrap();
        // As 0.1.0 wrote: of one phase.
        let transaction = database.begin_write().unwrap();
        transaction.open_table(tables::LEDGERS_1).unwrap().pop_first().unwrap().unwrap();
        transaction.commit().unwrap();
        let killed = std::fs::read(&path).unwrap();
        let found = |bytes: &[u8]| tables::examine(&path, bytes.to_vec()).ok().map(|(_, found)| found.len());
        assert_eq!(found(&killed), Some(5));
        let (first, second) = (tables::COMMITS.start, tables::COMMITS.start + tables::COMMITS.len() / 2);
        let damaged = |places: &[usize]| {
            let mut bytes = killed.clone();
            places.iter().for_each(|place| bytes[place + 8] ^= 0x80);
            found(&bytes)
        };
        let described = [damaged(&[first]), damaged(&[second]), damaged(&[first, second])];
        assert!(matches!(described, [Some(5), Some(6), None] | [Some(6), Some(5), None]), "{described:?}");
        // Pages that only the last commit has, and those that both have.
        let pages: Vec<_> = (4096..killed.len()).step_by(4096).map(|page| damaged(&[page])).collect();
        assert!(pages.contains(&Some(6)) && pages.contains(&None), "{pages:?}");
    }

    #[tokio::test]
    async fn a_file_of_version_0_1_0_is_converted_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        let old = of_version_0_1_0();
        std::fs::write(&path, &old).unwrap();
        let (state, found) = State::open(&path).await.unwrap();
        assert_eq!(found.len(), 6);
        let (key, ledger) = &found[4];
        assert_eq!((&*key.owner.app, key.resource), ("p-1-app-3", response_time::RESOURCE));
        assert_eq!((ledger.until, ledger.total, ledger.unaccounted), (1_772_366_580, 3000, 60));
        assert_eq!(ledger.buckets().collect::<Vec<_>>(), [(0.035, 1200), (1.0, 2700), (60.0, 3000)]);
        drop(state);
        assert!(std::fs::read(dir.path().join("state.redb.format-1")).unwrap() == old, "for going back");
        assert_eq!(State::open(&path).await.unwrap().1, found);
    }

    #[tokio::test]
    async fn a_directory_in_the_way_or_no_folder_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let folder = State::open(dir.path()).await.err().unwrap();
        assert!(folder.to_string().contains(&dir.path().display().to_string()), "{folder}");
        let nowhere = dir.path().join("missing/state.redb");
        let error = State::open(&nowhere).await.err().unwrap();
        assert!(matches!(&error, StateError::Io { path, .. } if *path == nowhere), "{error:?}");
    }
}
