//! The tables of the state file's database: how they are examined, read and written.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;
use std::path::Path;

use redb::{
    Database, Durability, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition,
    TableHandle as _,
};

use crate::interface::Resource;
use crate::store::{Key, Owner};

use super::disk::Copy;
use super::error::StateError;
use super::ledger::Ledger;
use super::record::{FORMAT, Record, decode, encode};

/// (digest, project, app, resource) to a record. The digest decides when an app is polled, so that what is committed
/// together lies together.
const LEDGERS: TableDefinition<'_, (u64, &str, &str, &str), &[u8]> = TableDefinition::new("ledgers");
/// The table of format 1: (project, app, resource) to a record.
pub(super) const LEDGERS_1: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("ledgers");
/// "format" to the version of the records.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("pds-exporter");
/// redb's default cache is a gigabyte; the ledgers are in memory already and the file is hardly read.
const CACHE_BYTES: usize = 2 << 20;
/// The byte of the file whose bits say which commit is the last, that it had two phases, and that the file was not
/// closed.
pub(super) const FLAGS: usize = 9;
const SECOND_IS_LAST: u8 = 1;
#[cfg(test)]
pub(super) const NOT_CLOSED: u8 = 2;
const TWO_PHASES: u8 = 4;
/// The bytes of the file that describe the last two commits, and those of each that number it.
pub(super) const COMMITS: Range<usize> = 64..64 + 2 * COMMIT_BYTES;
const COMMIT_BYTES: usize = 128;
const NUMBER: Range<usize> = 104..112;

/// The format of a state file, and all its ledgers.
pub type Contents = (u64, Vec<(Key, Ledger)>);

/// The database in `storage`, for the file at `path`.
pub(super) fn open(path: &Path, storage: impl StorageBackend) -> Result<Database, StateError> {
    let database = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(storage);
    database.map_err(|error| from_redb(path, error))
}

/// The database in a copy of the file at `path`, which has these flags: every page is verified before what it refers to
/// is read. A damaged reference may ask for gigabytes.
fn open_verified(path: &Path, mut bytes: Vec<u8>, flags: u8) -> Result<Database, StateError> {
    let Some(commits) = bytes.get(COMMITS) else { return open(path, Copy::new(bytes)) };
    let [first, second] = [0, COMMIT_BYTES].map(|at| commits[at..at + COMMIT_BYTES].to_vec());
    let second_is_last = match flags & TWO_PHASES {
        0 => second[NUMBER].iter().rev().gt(first[NUMBER].iter().rev()),
        _ => flags & SECOND_IS_LAST != 0,
    };
    let (last, previous) = if second_is_last { (second, first) } else { (first, second) };
    // The database trusts a commit of two phases, and verifies one of one phase. If that does not hold, it falls back
    // to the other commit, even if the description of that one is damaged: here both are the same.
    bytes[FLAGS] &= !TWO_PHASES;
    bytes[COMMITS].copy_from_slice(&last.repeat(2));
    if flags & TWO_PHASES != 0 {
        return open(path, Copy::new(bytes));
    }
    // A commit of one phase may be torn by a crash.
    open(path, Copy::new(bytes.clone())).or_else(|_| {
        bytes[COMMITS].copy_from_slice(&previous.repeat(2));
        open(path, Copy::new(bytes))
    })
}

thread_local! {
    static EXAMINING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread examines a state file. A panic then means that the file is damaged, which the caller reports.
#[must_use]
pub fn is_examining() -> bool {
    EXAMINING.get()
}

/// The format of a state file with these contents, and all its ledgers. `path` is for errors.
///
/// # Errors
/// If it is not what was written last; see [`StateError`].
pub fn examine(path: &Path, bytes: Vec<u8>) -> Result<Contents, StateError> {
    let damaged = |what: &str| StateError::Damaged { path: path.to_owned(), what: what.to_owned() };
    if bytes.is_empty() {
        return Err(damaged("it is empty"));
    }
    let flags = bytes.get(FLAGS).copied().unwrap_or(0);
    let read = || {
        let mut copy = open_verified(path, bytes, flags)?;
        match copy.check_integrity() {
            Ok(true) => read_all(path, &copy),
            Ok(false) => Err(damaged("its checksums do not hold")),
            Err(error) => Err(from_redb(path, error)),
        }
    };
    EXAMINING.set(true);
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    EXAMINING.set(false);
    let (format, ledgers) = found.unwrap_or_else(|_| Err(damaged("it is not what the database writes")))?;
    // Without that bit the database would fall back to the previous commit.
    if format == FORMAT && flags & TWO_PHASES == 0 {
        return Err(damaged("its head is not what was written"));
    }
    Ok((format, ledgers))
}

fn read_all(path: &Path, database: &Database) -> Result<Contents, StateError> {
    let damaged = |what: &str| StateError::Damaged { path: path.to_owned(), what: what.to_owned() };
    let read = || -> Result<Result<Contents, StateError>, redb::Error> {
        let transaction = database.begin_read()?;
        if !transaction.list_tables()?.any(|table| table.name() == META.name()) {
            return Ok(Err(damaged("it is a database of something else")));
        }
        let format = match transaction.open_table(META)?.get("format")?.map(|value| value.value()) {
            Some(format @ 1..=FORMAT) => format,
            Some(found) => return Ok(Err(StateError::OtherFormat { path: path.to_owned(), found })),
            None => return Ok(Err(damaged("it does not say its format"))),
        };
        let mut ledgers = Vec::new();
        if format == 1 {
            for record in transaction.open_table(LEDGERS_1)?.iter()? {
                let (key, value) = record?;
                read_one(&mut ledgers, format, key.value(), value.value())?;
            }
        } else {
            for record in transaction.open_table(LEDGERS)?.iter()? {
                let (key, value) = record?;
                let (_, project, app, resource) = key.value();
                read_one(&mut ledgers, format, (project, app, resource), value.value())?;
            }
        }
        ledgers.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Ok((format, ledgers)))
    };
    read().map_err(|error| from_redb(path, error))?
}

/// Adds the ledger of one record.
fn read_one(
    ledgers: &mut Vec<(Key, Ledger)>,
    format: u64,
    (project, app, resource): (&str, &str, &str),
    record: &[u8],
) -> Result<(), redb::Error> {
    let (Some(resource), Some(ledger)) = (Resource::find(resource), decode(format, record)) else {
        let what = format!("the record of {project}/{app} is not what was written");
        return Err(redb::Error::Corrupted(what));
    };
    // Records of one app are adjacent.
    let last = ledgers.last().map(|(key, _)| &key.owner);
    let same = last.filter(|owner| (&*owner.project, &*owner.app) == (project, app)).cloned();
    let owner = same.unwrap_or_else(|| Owner::new(project.into(), app.into()));
    ledgers.push((Key { owner, resource }, ledger));
    Ok(())
}

/// The order of records in the file.
pub(super) fn order((one, _): &Record, (other, _): &Record) -> Ordering {
    (one.owner.digest(), one).cmp(&(other.owner.digest(), other))
}

fn begin(database: &Database) -> Result<redb::WriteTransaction, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    transaction.set_two_phase_commit(true);
    Ok(transaction)
}

fn put(transaction: &redb::WriteTransaction, records: &[Record]) -> Result<(), redb::Error> {
    let mut table = transaction.open_table(LEDGERS)?;
    for (key, ledger) in records {
        let Owner { project, app, .. } = &*key.owner;
        let name = (key.owner.digest(), &**project, &**app, key.resource.as_str());
        match ledger {
            Some(ledger) => drop(table.insert(name, encode(ledger).as_slice())?),
            None => drop(table.remove(name)?),
        }
    }
    Ok(())
}

/// Writes the records in one transaction, synced to disk before it returns.
pub(super) fn write(path: &Path, database: &Database, records: &[Record]) -> Result<(), StateError> {
    let written = || -> Result<(), redb::Error> {
        let transaction = begin(database)?;
        put(&transaction, records)?;
        Ok(transaction.commit()?)
    };
    written().map_err(|error| from_redb(path, error))
}

/// Writes the records of a new database, and its format.
pub(super) fn fill(path: &Path, database: &Database, records: &[Record]) -> Result<(), StateError> {
    let filled = || -> Result<(), redb::Error> {
        let transaction = begin(database)?;
        transaction.open_table(META)?.insert("format", FORMAT)?;
        put(&transaction, records)?;
        Ok(transaction.commit()?)
    };
    filled().map_err(|error| from_redb(path, error))
}

fn from_redb(path: &Path, error: impl Into<redb::Error>) -> StateError {
    let path = path.to_owned();
    match error.into() {
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::interface::{response_time, run_execution_time};

    /// A file in memory that counts what is written to it.
    #[derive(Debug)]
    struct Metered {
        copy: Copy,
        written: Arc<AtomicU64>,
    }

    impl StorageBackend for Metered {
        fn len(&self) -> io::Result<u64> {
            self.copy.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.copy.read(offset, out)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.copy.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.copy.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.written.fetch_add(data.len() as u64, Relaxed);
            self.copy.write(offset, data)
        }
    }

    /// How many times as many bytes are written as change when a minute's ledgers of 10,000 apps are committed second
    /// by second, in this order.
    fn written_for_changed(order: impl FnMut(&[Record; 2], &[Record; 2]) -> Ordering) -> f64 {
        let path = Path::new("state.redb");
        let written = Arc::new(AtomicU64::new(0));
        let backend = Metered { copy: Copy::new(Vec::new()), written: Arc::clone(&written) };
        let database = open(path, backend).unwrap();
        let buckets: Vec<(f64, u64)> = (1..=22).map(|n| (f64::from(n), 1)).collect();
        let requests = Arc::new(Ledger::open(0).with_buckets(&buckets));
        let runs = Arc::new(Ledger::open(0));
        let records = |app: u32| {
            let owner = Owner::new("p-abc12345".into(), format!("p-abc12345-app-{app:05}").into());
            let resources = [response_time::RESOURCE, run_execution_time::RESOURCE];
            let keys = resources.map(|resource| Key { owner: Arc::clone(&owner), resource });
            let [first, second] = keys;
            [(first, Some(Arc::clone(&requests))), (second, Some(Arc::clone(&runs)))]
        };
        let mut all: Vec<[Record; 2]> = (0..10_000).map(records).collect();
        fill(path, &database, all.as_flattened()).unwrap();
        all.sort_by(order);
        let before = written.load(Relaxed);
        let mut changed = 0;
        for second in all.chunks(167) {
            let records = second.as_flattened();
            write(path, &database, records).unwrap();
            let size = |(key, ledger): &Record| {
                8 + key.owner.project.len() + key.owner.app.len() + encode(ledger.as_ref().unwrap()).len()
            };
            changed += records.iter().map(size).sum::<usize>();
        }
        #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
        let times = (written.load(Relaxed) - before) as f64 / changed as f64;
        times
    }

    #[test]
    fn records_committed_together_are_stored_together() {
        let as_polled = written_for_changed(|one, other| super::order(&one[0], &other[0]));
        let by_chance = |records: &[Record; 2]| records[0].0.owner.digest().reverse_bits();
        let scattered = written_for_changed(|one, other| by_chance(one).cmp(&by_chance(other)));
        println!("bytes written for each that changes: {as_polled:.2}, scattered {scattered:.2}");
        assert!(as_polled < 3.0 && scattered > 2.0 * as_polled, "{as_polled:.2}, scattered {scattered:.2}");
    }
}
