//! The file that ledgers survive in: a redb database, one record a ledger.
//!
//! A record is checked by a CRC of its own beside redb's checksums, and a file that is damaged, of another
//! version, or in use is left as it is: starting from zero in silence would make every counter a lie.

use std::fs::TryLockError;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flate2::Crc;
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition, TableHandle as _,
};

use crate::interface::Resource;
use crate::store::{Key, Owner};

use super::ledger::Ledger;

/// (project, app, resource) to a record.
const LEDGERS: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("ledgers");
/// "format" to the version of the records.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("pds-exporter");
/// The version of the records written here.
const FORMAT: u64 = 1;
/// redb's default cache is a gigabyte; the ledgers are in memory already and the file is hardly read.
const CACHE_BYTES: usize = 2 << 20;

/// Why the state file can't be used. The file is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process has it open.
    #[error("the state file {} is in use by another process; every daemon needs one of its own", .0.display())]
    InUse(PathBuf),
    /// It is not what was written.
    #[error("the state file {} is damaged ({what}); restore it, or move it away to count from zero", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It was written by another version.
    #[error("the state file {} is of format {found}, and this version reads format {FORMAT}", path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// It can't be read or written.
    #[error("the state file {} cannot be used", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The database refused.
    #[error("the state file {} cannot be used", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<redb::Error>,
    },
}

/// The open state file.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    /// `None` after a failed write: redb accepts nothing more then, until the file is opened again.
    database: Option<Database>,
}

impl State {
    /// Opens the file at `path`, or makes one where there is none, and reads all ledgers.
    ///
    /// # Errors
    /// Where the file can't be used; see [`StateError`].
    pub async fn open(path: &Path) -> Result<(Self, Vec<(Key, Ledger)>), StateError> {
        let path = path.to_owned();
        let named = path.clone();
        // redb panics on some damaged files; on a thread of its own that is an error like others.
        tokio::task::spawn_blocking(move || {
            let ledgers = if path.exists() { examine(&path)? } else { create(&path)? };
            let database = open(&path)?;
            Ok((Self { path, database: Some(database) }, ledgers))
        })
        .await
        .unwrap_or_else(|panic| Err(StateError::Damaged { path: named, what: panic.to_string() }))
    }

    /// Writes the records in one transaction, synced to disk before it returns.
    ///
    /// # Errors
    /// Where they could not be written; none of them is then.
    pub fn commit(&mut self, records: &[(Key, Option<Arc<Ledger>>)]) -> Result<(), StateError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => open(&self.path)?,
        };
        write(&database, records).map_err(|error| from_redb(&self.path, error))?;
        self.database = Some(database);
        Ok(())
    }
}

fn open(path: &Path) -> Result<Database, StateError> {
    Database::builder().set_cache_size(CACHE_BYTES).open(path).map_err(|error| from_redb(path, error))
}

/// Reads all ledgers from a copy of the file in memory. redb writes to a file while it opens, repairs and closes it,
/// and takes an empty one for new; so it is let near the file itself only after a copy has proved sound.
fn examine(path: &Path) -> Result<Vec<(Key, Ledger)>, StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let damaged = |what: String| StateError::Damaged { path: path.to_owned(), what };
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(path).map_err(io)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(StateError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => return Err(io(source)),
        Ok(()) => {}
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io)?;
    if bytes.is_empty() {
        return Err(damaged("it is empty".to_owned()));
    }
    let copy = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(Copy(Mutex::new(bytes)));
    let mut copy = copy.map_err(|error| from_redb(path, error))?;
    match copy.check_integrity() {
        Ok(true) => {}
        Ok(false) => return Err(damaged("its checksums do not hold".to_owned())),
        Err(error) => return Err(from_redb(path, error)),
    }
    read_all(path, &copy)
}

/// A database file's contents in memory.
#[derive(Debug)]
struct Copy(Mutex<Vec<u8>>);

impl Copy {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn span(offset: u64, length: usize) -> std::ops::Range<usize> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    start..start.saturating_add(length)
}

impl StorageBackend for Copy {
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let bytes = self.bytes();
        out.copy_from_slice(bytes.get(span(offset, out.len())).ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        // A damaged header may ask for any size.
        const MAX: u64 = 1 << 32;
        if len > MAX {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        self.bytes().resize(span(len, 0).start, 0);
        Ok(())
    }

    fn sync_data(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        let mut bytes = self.bytes();
        bytes
            .get_mut(span(offset, data.len()))
            .ok_or(std::io::ErrorKind::UnexpectedEof)?
            .copy_from_slice(data);
        Ok(())
    }
}

/// Makes the file under another name first, so that a crash meanwhile leaves none that is half made, and then gives it
/// its own, unless another daemon was faster: that one's file is never taken away. A new file has no ledgers.
fn create(path: &Path) -> Result<Vec<(Key, Ledger)>, StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let unfinished = path.with_file_name(name);
    remove(&unfinished).map_err(io)?;
    let made = Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create(&unfinished)
        .map_err(|e| from_redb(path, e))?;
    let format = || -> Result<(), redb::Error> {
        let transaction = made.begin_write()?;
        transaction.open_table(META)?.insert("format", FORMAT)?;
        transaction.open_table(LEDGERS)?;
        Ok(transaction.commit()?)
    };
    format().map_err(|error| from_redb(path, error))?;
    drop(made);
    // Unlike a renaming, a link never takes the place of a file that is there.
    let linked = std::fs::hard_link(&unfinished, path);
    remove(&unfinished).map_err(io)?;
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => examine(path),
        other => other.map(|()| Vec::new()).map_err(io),
    }
}

/// Removes a file that may not be there.
fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read_all(path: &Path, database: &Database) -> Result<Vec<(Key, Ledger)>, StateError> {
    let damaged = |what: &str| StateError::Damaged { path: path.to_owned(), what: what.to_owned() };
    let read = || -> Result<Result<Vec<(Key, Ledger)>, StateError>, redb::Error> {
        let transaction = database.begin_read()?;
        if !transaction.list_tables()?.any(|table| table.name() == META.name()) {
            return Ok(Err(damaged("it is a database of something else")));
        }
        let format = transaction.open_table(META)?.get("format")?.map(|value| value.value());
        match format {
            Some(FORMAT) => {}
            Some(found) => return Ok(Err(StateError::OtherFormat { path: path.to_owned(), found })),
            None => return Ok(Err(damaged("it does not say its format"))),
        }
        let mut ledgers: Vec<(Key, Ledger)> = Vec::new();
        for record in transaction.open_table(LEDGERS)?.iter()? {
            let (key, value) = record?;
            let (project, app, resource) = key.value();
            let resource = Resource::ALL.into_iter().find(|known| known.as_str() == resource);
            let (Some(resource), Some(ledger)) = (resource, decode(value.value())) else {
                return Ok(Err(damaged(&format!("the record of {project}/{app} is not what was written"))));
            };
            // Records of one app follow one another.
            let last = ledgers.last().map(|(key, _)| &key.owner);
            let same = last.filter(|owner| (&*owner.project, &*owner.app) == (project, app)).cloned();
            let owner = same.unwrap_or_else(|| Owner::new(project.into(), app.into()));
            ledgers.push((Key { owner, resource }, ledger));
        }
        Ok(Ok(ledgers))
    };
    read().map_err(|error| from_redb(path, error))?
}

fn write(database: &Database, records: &[(Key, Option<Arc<Ledger>>)]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(LEDGERS)?;
        for (key, ledger) in records {
            let name = (&*key.owner.project, &*key.owner.app, key.resource.as_str());
            match ledger {
                Some(ledger) => drop(table.insert(name, encode(ledger).as_slice())?),
                None => drop(table.remove(name)?),
            }
        }
    }
    Ok(transaction.commit()?)
}

fn from_redb(path: &Path, error: impl Into<redb::Error>) -> StateError {
    let path = path.to_owned();
    match error.into() {
        redb::Error::DatabaseAlreadyOpen => StateError::InUse(path),
        redb::Error::Corrupted(what) => StateError::Damaged { path, what },
        redb::Error::RepairAborted => StateError::Damaged { path, what: "it cannot be repaired".to_owned() },
        redb::Error::UpgradeRequired(version) => StateError::OtherFormat { path, found: u64::from(version) },
        redb::Error::Io(source) if source.kind() == std::io::ErrorKind::InvalidData => {
            StateError::Damaged { path, what: source.to_string() }
        }
        redb::Error::Io(source) => StateError::Io { path, source },
        other => StateError::Database { path, source: Box::new(other) },
    }
}

/// A record: CRC-32 of the rest, then cursor, total, unaccounted seconds, and threshold and count of each bucket,
/// each 8 bytes, little endian.
fn encode(ledger: &Ledger) -> Vec<u8> {
    let mut fields = Vec::with_capacity(24 + 16 * ledger.buckets().len());
    fields.extend_from_slice(&ledger.until.to_le_bytes());
    fields.extend_from_slice(&ledger.total.to_le_bytes());
    fields.extend_from_slice(&ledger.unaccounted.to_le_bytes());
    for (threshold, count) in ledger.buckets() {
        fields.extend_from_slice(&threshold.to_le_bytes());
        fields.extend_from_slice(&count.to_le_bytes());
    }
    let mut record = crc(&fields).to_le_bytes().to_vec();
    record.append(&mut fields);
    record
}

/// The ledger of a record; `None` where it is not what was written.
fn decode(record: &[u8]) -> Option<Ledger> {
    let (sum, fields) = record.split_first_chunk::<4>()?;
    let (words, rest) = fields.as_chunks::<8>();
    if u32::from_le_bytes(*sum) != crc(fields) || !rest.is_empty() {
        return None;
    }
    let [until, total, unaccounted, buckets @ ..] = words else { return None };
    let (buckets, odd) = buckets.as_chunks::<2>();
    let bucket = |[at, count]: &[[u8; 8]; 2]| (f64::from_le_bytes(*at), u64::from_le_bytes(*count));
    odd.is_empty().then(|| {
        let mut ledger = Ledger::open(i64::from_le_bytes(*until));
        ledger.total = u64::from_le_bytes(*total);
        ledger.unaccounted = u64::from_le_bytes(*unaccounted);
        ledger.with_buckets(&buckets.iter().map(bucket).collect::<Vec<_>>())
    })
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledgers(count: i64) -> Vec<(Key, Ledger)> {
        let ledger = |n: i64| {
            let mut ledger = Ledger::open(60 * n);
            (ledger.total, ledger.unaccounted) = (n.unsigned_abs(), 7);
            ledger.with_buckets(&[(0.035, 1), (1.0, n.unsigned_abs())])
        };
        let key = |n: i64| Key {
            owner: Owner::new("p".into(), format!("a-{n:03}").into()),
            resource: Resource::ResponseTime,
        };
        (1..=count).map(|n| (key(n), ledger(n))).collect()
    }

    async fn file_of(path: &Path, ledgers: &[(Key, Ledger)]) {
        let (mut state, found) = State::open(path).await.unwrap();
        assert_eq!(found, []);
        let records: Vec<_> =
            ledgers.iter().map(|(key, ledger)| (key.clone(), Some(Arc::new(ledger.clone())))).collect();
        state.commit(&records).unwrap();
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
        state.commit(&[(written[0].0.clone(), None)]).unwrap();
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
        transaction.open_table(META).unwrap().insert("format", 2).unwrap();
        transaction.commit().unwrap();
        drop(database);
        assert!(refusal(&path).await.contains("is of format 2, and this version reads format 1"));
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
        // Every 97th byte turned over, one at a time: a prime, so that all parts of all pages are met.
        for at in (0..good.len()).step_by(good.len() / 211 + 97) {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            std::fs::write(&path, &bad).unwrap();
            if let Ok((_, found)) = State::open(&path).await {
                assert!(found == written, "byte {at} turned over changes the ledgers in silence");
            } else {
                assert!(std::fs::read(&path).unwrap() == bad, "byte {at}: a damaged file is overwritten");
            }
        }
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
