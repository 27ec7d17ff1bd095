//! The state file: a `log` with one entry per ledger.
//!
//! Starting from zero, or from an old state, would make every counter wrong. So a file that is damaged, of another
//! version, or in use is refused and left unchanged. Each commit checks that the file is still the one at its path. A
//! file that is gone, shortened or not synced is rewritten from memory; a file that replaced it is not touched.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::{Key, Owner};
use pds_core::plain_file;
use pds_interface::Resource;

use super::error::StateError;
use super::ledger::{Hold, Ledger};
use super::log::folder::{Folder, try_lock};
use super::log::format::replay;
use super::log::{Entry, Log};
use super::record::{Record, decode, encode};

/// Time limit of a commit, for network file systems that hang. If the write succeeds later, repeating it changes
/// nothing.
pub const MAX_COMMIT: Duration = Duration::from_secs(10);

/// Verdict on a state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examined {
    /// There is none.
    Missing,
    /// Another process has locked it; it is not read.
    InUse,
    /// It is sound and holds this many ledgers.
    Ledgers(usize),
}

/// Examines the file at `path` without changing it; creates and removes a file beside it.
///
/// # Errors
/// If a daemon could not use it.
pub async fn examine(path: &Path) -> Result<Examined, StateError> {
    blocking(path, |path| {
        if Folder::probe(path)? {
            return Ok(Examined::InUse);
        }
        let file = match plain_file::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Examined::Missing),
            file => file.map_err(StateError::io(path))?,
        };
        if !try_lock(&file).map_err(|source| StateError::NoLocks(path.to_owned(), source))? {
            return Ok(Examined::InUse);
        }
        Ok(Examined::Ledgers(of_file(path, &file)?.len()))
    })
    .await
}

/// The ledgers in the file at `path`, also while a daemon has it in use. The file is neither locked nor changed.
///
/// # Errors
/// If a daemon could not use it.
pub async fn read(path: &Path) -> Result<Vec<(Key, Ledger)>, StateError> {
    blocking(path, |path| of_file(path, &plain_file::open(path).map_err(StateError::io(path))?)).await
}

/// The ledgers in a file of this length. `path` is for errors.
///
/// # Errors
/// If a daemon could not use it.
pub fn parse(path: &Path, file: impl Read, length: u64) -> Result<Vec<(Key, Ledger)>, StateError> {
    let mut found = Ledgers::default();
    replay(path, file, length, &mut |key, value| take_entry(&mut found, key, value))?;
    Ok(found.sorted())
}

/// The open state file.
#[derive(Debug)]
pub struct StateFile(Log);

impl StateFile {
    /// Opens or creates the file at `path`, and reads all ledgers.
    ///
    /// # Errors
    /// If the file cannot be used; see [`StateError`].
    pub async fn open(path: &Path) -> Result<(Self, Ledgers), StateError> {
        blocking(path, |path| {
            let folder = Folder::lock(path)?;
            if !path.try_exists().map_err(StateError::io(path))? {
                let log = Log::create(path.to_owned(), folder, std::iter::empty())?;
                tracing::info!(path = %path.display(), "created a new state file: counters begin at zero");
                return Ok((Self(log), Ledgers::default()));
            }
            let mut found = Ledgers::default();
            let take = &mut |key: &[u8], value: Option<&[u8]>| take_entry(&mut found, key, value);
            let log = Log::open(path.to_owned(), folder, take)?;
            Ok((Self(log), found))
        })
        .await
    }

    /// Writes the records in one commit, synced before it returns. If the whole file must be rewritten, calls `all` for
    /// every earlier ledger.
    ///
    /// # Errors
    /// If they could not be written; none of them counts as written.
    pub fn commit(
        &mut self,
        records: &[Record],
        all: impl FnOnce() -> Vec<Record>,
    ) -> Result<(), StateError> {
        self.0.commit(|| records.iter().map(entry), || all().into_iter().map(|record| entry(&record)))
    }
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> Result<T, StateError> + Send + 'static,
) -> Result<T, StateError> {
    let owned = path.to_owned();
    let mut working = tokio::task::spawn_blocking(move || work(&owned));
    let done = match tokio::time::timeout(MAX_COMMIT, &mut working).await {
        Ok(done) => done,
        Err(_) => {
            tracing::warn!(path = %path.display(), "the state folder does not answer");
            working.await
        }
    };
    done.map_err(|error| StateError::io(path)(error.into()))?
}

fn of_file(path: &Path, file: &File) -> Result<Vec<(Key, Ledger)>, StateError> {
    let length = file.metadata().map_err(StateError::io(path))?.len();
    parse(path, file, length)
}

/// The ledgers in memory, as last committed.
#[derive(Debug, Default)]
pub struct Ledgers {
    pub(super) by_key: HashMap<Key, Arc<Ledger>>,
    /// Why some ledgers are not shown or not opened yet.
    pub(super) holds: HashMap<Key, Hold>,
    /// The thresholds of the last ledger. Most apps have the same thresholds and share one list.
    pub(super) thresholds: Arc<[f64]>,
    /// Whether their file has not been read yet.
    pub(super) is_opening: bool,
}

impl Ledgers {
    /// Takes the ledgers of the file, `found`.
    pub(super) fn open(&mut self, found: Self) {
        *self = Self { holds: std::mem::take(&mut self.holds), ..found };
    }

    /// `ledger`, which shares its thresholds with the last one.
    pub(super) fn shared(&mut self, mut ledger: Ledger) -> Arc<Ledger> {
        ledger.share_thresholds(&mut self.thresholds);
        Arc::new(ledger)
    }

    pub(super) fn take(&mut self, records: impl IntoIterator<Item = Record>) {
        for (key, ledger) in records {
            match ledger {
                Some(ledger) => drop(self.by_key.insert(key, ledger)),
                None => drop(self.by_key.remove(&key)),
            }
        }
    }

    pub(super) fn records(&self) -> Vec<Record> {
        self.by_key.iter().map(|(key, ledger)| (key.clone(), Some(Arc::clone(ledger)))).collect()
    }

    /// All of them, sorted by key.
    pub fn sorted(self) -> Vec<(Key, Ledger)> {
        let ledgers = self.by_key.into_iter();
        let ledgers = ledgers.map(|(key, ledger)| (key, Arc::unwrap_or_clone(ledger)));
        let mut ledgers: Vec<(Key, Ledger)> = ledgers.collect();
        ledgers.sort_by(|(one, _), (other, _)| one.cmp(other));
        ledgers
    }
}

/// Adds an entry of a file to the ledgers before it.
fn take_entry(found: &mut Ledgers, key: &[u8], value: Option<&[u8]>) -> Result<(), &'static str> {
    const WRONG: &str = "a ledger differs from what was written";
    let key = key_of(key).ok_or(WRONG)?;
    let ledger = value.map(|value| decode(value).ok_or(WRONG)).transpose()?;
    let ledger = ledger.map(|ledger| found.shared(ledger));
    found.take([(key, ledger)]);
    Ok(())
}

fn entry((key, ledger): &Record) -> Entry {
    (key_bytes(key), ledger.as_deref().map(encode))
}

/// The lengths of resource and project (1 and 4 bytes), then resource, project and app.
fn key_bytes(key: &Key) -> Vec<u8> {
    let (resource, Owner { project, app, .. }) = (key.resource.as_str(), &*key.owner);
    #[expect(clippy::cast_possible_truncation, reason = "resources are named by us, projects by the service")]
    let (first, second) = (resource.len() as u8, (project.len() as u32).to_le_bytes());
    [&[first][..], &second, resource.as_bytes(), project.as_bytes(), app.as_bytes()].concat()
}

fn key_of(bytes: &[u8]) -> Option<Key> {
    let ([resource, project @ ..], names) = bytes.split_first_chunk::<5>()?;
    let (resource, names) = std::str::from_utf8(names).ok()?.split_at_checked((*resource).into())?;
    let (project, app) = names.split_at_checked(u32::from_le_bytes(*project) as usize)?;
    Some(Key { owner: Owner::new(project.into(), app.into()), resource: Resource::find(resource)? })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::HOUR;
    use crate::recheck::{Ages, tests::busy};
    use pds_interface::{response_time, run_execution_time};
    use std::path::PathBuf;
    use tempfile::TempDir;

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

    fn records(ledgers: &[(Key, Ledger)]) -> Vec<Record> {
        ledgers.iter().map(|(key, ledger)| (key.clone(), Some(Arc::new(ledger.clone())))).collect()
    }

    /// A new folder, and the path of a state file in it.
    pub(crate) fn state_file() -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.log");
        (dir, path)
    }

    async fn refusal(path: &Path) -> String {
        let before = std::fs::read(path).unwrap();
        let error = StateFile::open(path).await.err().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), before, "a file that is refused is left as it was");
        let text = error.to_string();
        assert!(text.contains(&path.display().to_string()), "{text} names the file");
        text
    }

    fn inode(path: &Path) -> u64 {
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap())
    }

    #[tokio::test]
    async fn ledgers_come_back_as_they_were_committed() {
        let (_dir, path) = state_file();
        let mut written = ledgers(100);
        // A name that could be taken for the end of another.
        let key =
            Key { owner: Owner::new("p\0p".into(), "\0a".into()), resource: run_execution_time::RESOURCE };
        written.push((key, Ledger::open(-1)));
        let (mut state, found) = StateFile::open(&path).await.unwrap();
        assert_eq!(found.sorted(), []);
        state.commit(&records(&written), Vec::new).unwrap();
        assert_eq!(read(&path).await.unwrap(), written, "while it is in use");
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(parse(&path, &*bytes, bytes.len() as u64).unwrap(), written);
        drop(state);
        let (mut state, found) = StateFile::open(&path).await.unwrap();
        assert_eq!(found.sorted(), written);
        state.commit(&[(written[0].0.clone(), None)], Vec::new).unwrap();
        drop(state);
        assert_eq!(StateFile::open(&path).await.unwrap().1.sorted(), written[1..]);
    }

    #[tokio::test]
    async fn a_file_in_use_is_refused_by_all_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let [path, link, name, lock] =
            ["state.log", "link", "name", "state.log.lock"].map(|name| dir.path().join(name));
        // To a path without a file.
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let (held, _) = StateFile::open(&link).await.unwrap();
        assert!(path.is_file() && link.is_symlink(), "links are followed");
        std::fs::hard_link(&path, &name).unwrap();
        for path in [&path, &link, &name] {
            let error = StateFile::open(path).await.err().unwrap();
            assert!(matches!(&error, StateError::InUse(named) if named == path), "{error:?}");
            assert_eq!(examine(path).await.unwrap(), Examined::InUse);
        }
        std::fs::remove_file(lock).unwrap();
        assert!(matches!(StateFile::open(&path).await, Err(StateError::InUse(_))), "without the lock file");
        drop(held);
        assert_eq!(examine(&path).await.unwrap(), Examined::Ledgers(0));
        let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("new")), "nothing is left");
        let lock = std::fs::File::create(dir.path().join("state.log.lock")).unwrap();
        lock.lock().unwrap();
        assert_eq!(examine(&path).await.unwrap(), Examined::InUse, "the lock file alone");
        drop(lock);
        StateFile::open(&path).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_of_another_kind_or_cut_off_is_refused_and_left_alone() {
        let (_dir, path) = state_file();
        StateFile::open(&path).await.unwrap().0.commit(&records(&ledgers(20)), Vec::new).unwrap();
        let good = std::fs::read(&path).unwrap();
        for (contents, says) in [
            (&b""[..], "is damaged at byte 0 (it is empty)"),
            (b"# not a log, but long enough to be looked at", "(it does not begin like a state file)"),
            (&good[..good.len() - 1], "(it is cut off)"),
        ] {
            std::fs::write(&path, contents).unwrap();
            let refused = refusal(&path).await;
            assert!(refused.contains(says), "{refused}");
        }
    }

    fn total(n: u64) -> Record {
        let (key, mut ledger) = ledgers(1).remove(0);
        ledger.total = n;
        (key, Some(Arc::new(ledger)))
    }

    #[tokio::test]
    async fn a_file_removed_or_shortened_while_in_use_is_written_whole_again() {
        let (_dir, path) = state_file();
        let written = ledgers(20);
        let (mut state, _) = StateFile::open(&path).await.unwrap();
        for n in 0..2 {
            if n == 0 {
                std::fs::remove_file(&path).unwrap();
            } else {
                drop(File::create(&path).unwrap());
            }
            state.commit(&[total(1000 + n)], || records(&written)).unwrap();
            state.commit(&[], Vec::new).unwrap();
            assert!(matches!(StateFile::open(&path).await, Err(StateError::InUse(_))), "it is locked");
            let found = read(&path).await.unwrap();
            assert_eq!(found.len(), 20);
            assert_eq!(found[0].1.total, 1000 + n, "the record of the commit holds");
        }
    }

    #[tokio::test]
    async fn a_file_that_replaces_the_state_file_is_neither_written_nor_used() {
        let (dir, path) = state_file();
        let other = dir.path().join("other");
        let (mut state, _) = StateFile::open(&path).await.unwrap();
        std::fs::write(&other, "another file").unwrap();
        std::fs::rename(&other, &path).unwrap();
        for _ in 0..2 {
            let error = state.commit(&[total(1)], Vec::new).unwrap_err();
            assert!(matches!(error, StateError::Replaced(_)), "{error:?}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"another file");
        std::fs::remove_file(&path).unwrap();
        state.commit(&[total(2)], Vec::new).unwrap();
        drop(state);
        assert_eq!(StateFile::open(&path).await.unwrap().1.sorted()[0].1.total, 2);
    }

    #[tokio::test]
    async fn a_log_that_outgrows_its_snapshot_is_replaced_by_one() {
        let (dir, path) = state_file();
        let (mut state, _) = StateFile::open(&path).await.unwrap();
        let (first, mut longest) = (inode(&path), 0);
        // While it is open, no other file gets its inode.
        let _open = std::fs::File::open(&path).unwrap();
        let mut written = ledgers(999);
        for commit in 0..30 {
            written.iter_mut().for_each(|(_, ledger)| ledger.total += commit);
            state.commit(&records(&written), || records(&written)).unwrap();
            longest = longest.max(std::fs::metadata(&path).unwrap().len());
        }
        assert!(inode(&path) != first && (500_000..1 << 20).contains(&longest), "{longest}");
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["state.log", "state.log.lock"], "nothing else is left beside it");
        std::fs::write(dir.path().join("state.log.new-1"), "left by a process that died").unwrap();
        let others = ["state.log.new-copy", "state.log.new-"].map(|name| dir.path().join(name));
        others.iter().for_each(|other| std::fs::write(other, "of somebody else").unwrap());
        drop(state);
        assert!(StateFile::open(&path).await.unwrap().1.sorted() == written);
        assert!(!dir.path().join("state.log.new-1").exists());
        assert!(others.iter().all(|other| other.exists()));
    }

    #[test]
    fn the_ledgers_of_100_000_apps_take_at_most_80_megabytes_and_those_of_kept_hours_are_known() {
        let resources = [response_time::RESOURCE, run_execution_time::RESOURCE];
        let sizes = |age: i64| {
            let size = |resource: &Resource| {
                let owner = Owner::new("p-abc12345".into(), "p-abc12345-app-012345".into());
                let ledger = busy(age, if *resource == response_time::RESOURCE { 25 } else { 0 });
                // Two lengths come before each entry.
                let record = key_bytes(&Key { owner, resource: *resource }).len() + encode(&ledger).len() + 3;
                (record, ledger.rechecks_bytes())
            };
            resources.iter().map(size).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
        };
        // Bytes per app are tenths of a MB per 100,000 apps.
        let [hour, day, three] = [1, 24, 72].map(sizes);
        println!("per app, in the file and open in memory: 1h {hour:?}, 24h {day:?}, 3d {three:?}");
        assert!(hour.0 < 800 && hour.1 < 300, "{hour:?}");
        assert!(day.1 < 2600 && three.1 < 7500, "{day:?} {three:?}");
        for (age, (_, measured)) in [(1, hour), (24, day), (72, three)] {
            let ages = Ages::new([age * HOUR]);
            let reported = ages.kept_bytes(25) + ages.kept_bytes(0);
            assert!(
                reported.abs_diff(measured) < measured / 6,
                "{age} h: {reported} bytes are reported, not {measured}"
            );
        }
        assert_eq!(Ages::default().kept_bytes(25), 0);
    }

    #[tokio::test]
    async fn a_directory_in_the_way_or_no_folder_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let folder = StateFile::open(dir.path()).await.err().unwrap();
        assert!(folder.to_string().contains(&dir.path().display().to_string()), "{folder}");
        let nowhere = dir.path().join("missing/state.log");
        let error = StateFile::open(&nowhere).await.err().unwrap();
        assert!(matches!(&error, StateError::Io(path, _) if *path == nowhere), "{error:?}");
        assert!(examine(&nowhere).await.is_err());
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(
            examine(&dir.path().join("file/state.log")).await.is_err(),
            "a file where a folder should be"
        );
    }
}
