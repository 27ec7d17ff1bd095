//! The file that ledgers survive in: a redb database, one record a ledger.
//!
//! A record is checked by a CRC of its own beside redb's checksums, and a file that is damaged, of another
//! version, or in use is left as it is: starting from zero in silence would make every counter a lie.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Crc;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableHandle as _};

use crate::interface::Resource;
use crate::store::Key;

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
    #[error("the state file {} can't be used", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The database refused.
    #[error("the state file {} can't be used", path.display())]
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
            let database = if path.exists() { open(&path)? } else { create(&path)? };
            let ledgers = read_all(&path, &database)?;
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
    let length =
        std::fs::metadata(path).map_err(|source| StateError::Io { path: path.to_owned(), source })?.len();
    if length == 0 {
        // redb would take it for a new one.
        return Err(StateError::Damaged { path: path.to_owned(), what: "it is empty".to_owned() });
    }
    let database =
        Database::builder().set_cache_size(CACHE_BYTES).open(path).map_err(|error| from_redb(path, error))?;
    Ok(database)
}

/// Makes the file under another name first, so that a crash meanwhile leaves none that is half made.
fn create(path: &Path) -> Result<Database, StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let unfinished = path.with_file_name(name);
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
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
    std::fs::rename(&unfinished, path).map_err(io)?;
    open(path)
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
        let mut ledgers = Vec::new();
        for record in transaction.open_table(LEDGERS)?.iter()? {
            let (key, value) = record?;
            let (project, app, resource) = key.value();
            let resource = Resource::ALL.into_iter().find(|known| known.as_str() == resource);
            let (Some(resource), Some(ledger)) = (resource, decode(value.value())) else {
                return Ok(Err(damaged(&format!("the record of {project}/{app} is not what was written"))));
            };
            ledgers.push((Key { project: project.into(), app: app.into(), resource }, ledger));
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
            let name = (&*key.project, &*key.app, key.resource.as_str());
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
        redb::Error::RepairAborted => StateError::Damaged { path, what: "it can't be repaired".to_owned() },
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
    let mut fields = Vec::with_capacity(24 + 16 * ledger.buckets.len());
    fields.extend_from_slice(&ledger.until.to_le_bytes());
    fields.extend_from_slice(&ledger.total.to_le_bytes());
    fields.extend_from_slice(&ledger.unaccounted.to_le_bytes());
    for (threshold, count) in &ledger.buckets {
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
    odd.is_empty().then(|| Ledger {
        until: i64::from_le_bytes(*until),
        total: u64::from_le_bytes(*total),
        unaccounted: u64::from_le_bytes(*unaccounted),
        buckets: buckets
            .iter()
            .map(|[at, count]| (f64::from_le_bytes(*at), u64::from_le_bytes(*count)))
            .collect(),
    })
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}
