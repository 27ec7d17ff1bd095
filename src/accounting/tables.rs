//! The tables of the state file's database: how they are examined, read and written.

use std::cell::Cell;
use std::path::Path;

use redb::{
    Database, Durability, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition,
    TableHandle as _,
};

use crate::interface::Resource;
use crate::store::{Key, Owner};

use super::disk::Copy;
use super::ledger::Ledger;
use super::record::{decode, encode};
use super::state::{Record, StateError};

/// (project, app, resource) to a record.
const LEDGERS: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("ledgers");
/// "format" to the version of the records.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("pds-exporter");
/// The version of the records written here. The one before, of version 0.1.0, is read.
pub(super) const FORMAT: u64 = 2;
/// redb's default cache is a gigabyte; the ledgers are in memory already and the file is hardly read.
const CACHE_BYTES: usize = 2 << 20;
/// Which bit of which byte of the file says that the last commit had two phases.
const TWO_PHASES: (usize, u8) = (9, 4);

/// The format of a state file, and all its ledgers.
pub type Contents = (u64, Vec<(Key, Ledger)>);

/// The database in `storage`, for the file at `path`.
pub(super) fn open(path: &Path, storage: impl StorageBackend) -> Result<Database, StateError> {
    let database = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(storage);
    database.map_err(|error| from_redb(path, error))
}

thread_local! {
    static EXAMINING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread examines a state file: a panic means that the file is damaged, which is said then.
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
    let two_phases = bytes.get(TWO_PHASES.0).is_some_and(|byte| byte & TWO_PHASES.1 != 0);
    let read = || {
        let mut copy = open(path, Copy::new(bytes))?;
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
    // Where that bit is lost, the commit before the last one would be taken for good.
    if format == FORMAT && !two_phases {
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
        let mut ledgers: Vec<(Key, Ledger)> = Vec::new();
        for record in transaction.open_table(LEDGERS)?.iter()? {
            let (key, value) = record?;
            let (project, app, resource) = key.value();
            let resource = Resource::find(resource);
            let (Some(resource), Some(ledger)) = (resource, decode(format, value.value())) else {
                return Ok(Err(damaged(&format!("the record of {project}/{app} is not what was written"))));
            };
            // Records of one app follow one another.
            let last = ledgers.last().map(|(key, _)| &key.owner);
            let same = last.filter(|owner| (&*owner.project, &*owner.app) == (project, app)).cloned();
            let owner = same.unwrap_or_else(|| Owner::new(project.into(), app.into()));
            ledgers.push((Key { owner, resource }, ledger));
        }
        Ok(Ok((format, ledgers)))
    };
    read().map_err(|error| from_redb(path, error))?
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
        let name = (&*key.owner.project, &*key.owner.app, key.resource.as_str());
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

/// The same for a new database, which says its format from then on.
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
