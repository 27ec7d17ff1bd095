//! The state files of versions 0.1 and 0.2: a redb database with one record per ledger.

use std::ops::Range;

use pds_interface::Resource;
use pds_ledger::{Key, Ledger, Owner, record};
use redb::backends::InMemoryBackend;
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, StorageBackend as _, TableDefinition,
    TableHandle as _,
};

/// The table of format 2, of version 0.2: (digest, project, app, resource) to a record.
const LEDGERS: TableDefinition<'_, (u64, &str, &str, &str), &[u8]> = TableDefinition::new("ledgers");
/// The table of format 1, of version 0.1: (project, app, resource) to a record.
const LEDGERS_1: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("ledgers");
/// "format" to the version of the records.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("pds-exporter");

/// The byte of the file whose bits say which commit is the last, and that it had two phases.
const FLAGS: usize = 9;
const SECOND_IS_LAST: u8 = 1;
const TWO_PHASES: u8 = 4;
/// The bytes of the file that describe the last two commits, and those of each that number it.
const COMMITS: Range<usize> = 64..64 + 2 * COMMIT_BYTES;
const COMMIT_BYTES: usize = 128;
const NUMBER: Range<usize> = 104..112;

/// What a file holds.
#[derive(Debug)]
pub(super) struct Contents {
    /// 1 or 2.
    pub(super) format: u64,
    /// By key.
    pub(super) ledgers: Vec<(Key, Ledger)>,
}

/// Why a file is not what was written last, in a few words.
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// What a file with these bytes holds. The database may panic on bytes that it has not written.
pub(super) fn read(bytes: Vec<u8>) -> Result<Contents, Fault> {
    let flags = bytes.get(FLAGS).copied().unwrap_or(0);
    let mut database = open_verified(bytes, flags)?;
    if !database.check_integrity()? {
        return Err("its checksums do not hold".into());
    }
    let contents = read_all(&database)?;
    // Without that bit the database would fall back to the previous commit.
    if contents.format == 2 && flags & TWO_PHASES == 0 {
        return Err("its head is not what was written".into());
    }
    Ok(contents)
}

fn open(bytes: &[u8]) -> Result<Database, Fault> {
    let backend = InMemoryBackend::new();
    backend.set_len(bytes.len() as u64)?;
    backend.write(0, bytes)?;
    Ok(Database::builder().create_with_backend(backend)?)
}

/// The database in a copy of the file, which has these flags: every page is verified before what it refers to is read.
/// A damaged reference may ask for gigabytes.
fn open_verified(mut bytes: Vec<u8>, flags: u8) -> Result<Database, Fault> {
    let Some(commits) = bytes.get(COMMITS) else { return open(&bytes) };
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
    let opened = open(&bytes);
    if flags & TWO_PHASES != 0 || opened.is_ok() {
        return opened;
    }
    // A commit of one phase may be torn by a crash.
    bytes[COMMITS].copy_from_slice(&previous.repeat(2));
    open(&bytes)
}

fn read_all(database: &Database) -> Result<Contents, Fault> {
    let transaction = database.begin_read()?;
    if !transaction.list_tables()?.any(|table| table.name() == META.name()) {
        return Err("it is a database of something else".into());
    }
    let format = transaction.open_table(META)?.get("format")?.map(|value| value.value());
    let mut ledgers = Vec::new();
    match format {
        Some(1) => {
            for entry in transaction.open_table(LEDGERS_1)?.iter()? {
                let (key, value) = entry?;
                ledgers.push(ledger(1, key.value(), value.value())?);
            }
        }
        Some(2) => {
            for entry in transaction.open_table(LEDGERS)?.iter()? {
                let (key, value) = entry?;
                let (_, project, app, resource) = key.value();
                ledgers.push(ledger(2, (project, app, resource), value.value())?);
            }
        }
        _ => return Err(format!("its format is {format:?}").into()),
    }
    ledgers.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Contents { format: format.unwrap_or_default(), ledgers })
}

/// The ledger of a record, which begins with the CRC-32 of the rest.
fn ledger(
    format: u64,
    (project, app, resource): (&str, &str, &str),
    bytes: &[u8],
) -> Result<(Key, Ledger), String> {
    let ledger = bytes.split_first_chunk::<4>().and_then(|(sum, fields)| {
        let mut crc = flate2::Crc::new();
        crc.update(fields);
        (crc.sum() == u32::from_le_bytes(*sum)).then(|| record::decode(format, fields))?
    });
    let (Some(resource), Some(ledger)) = (Resource::find(resource), ledger) else {
        return Err(format!("the record of {project}/{app} is not what was written"));
    };
    Ok((Key { owner: Owner::new(project.into(), app.into()), resource }, ledger))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use pds_interface::response_time;

    use super::*;

    fn of_version(version: &str) -> Vec<u8> {
        let packed = format!("{}/../../tests/state/{version}.redb.gz", env!("CARGO_MANIFEST_DIR"));
        let mut file = Vec::new();
        flate2::read::GzDecoder::new(std::fs::File::open(packed).unwrap()).read_to_end(&mut file).unwrap();
        file
    }

    #[test]
    fn a_file_of_version_0_1_0_is_read() {
        let Contents { format, ledgers } = read(of_version("0.1.0")).unwrap();
        assert_eq!((format, ledgers.len()), (1, 6));
        let (key, ledger) = &ledgers[4];
        assert_eq!((&*key.owner.app, key.resource), ("p-1-app-3", response_time::RESOURCE));
        assert_eq!((ledger.until, ledger.total, ledger.unaccounted), (1_772_366_580, 3000, 60));
        assert_eq!(ledger.buckets().collect::<Vec<_>>(), [(0.035, 1200), (1.0, 2700), (60.0, 3000)]);
    }

    #[test]
    fn a_torn_commit_of_version_0_1_0_gives_way_to_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.redb");
        std::fs::write(&path, of_version("0.1.0")).unwrap();
        let database = Database::create(&path).unwrap();
        // As 0.1.0 wrote: of one phase.
        let transaction = database.begin_write().unwrap();
        transaction.open_table(LEDGERS_1).unwrap().pop_first().unwrap().unwrap();
        transaction.commit().unwrap();
        let killed = std::fs::read(&path).unwrap();
        // The database panics on some damaged files.
        let found = |bytes: Vec<u8>| {
            let contents = std::panic::catch_unwind(|| read(bytes)).ok()?.ok()?;
            Some(contents.ledgers.len())
        };
        assert_eq!(found(killed.clone()), Some(5));
        let (first, second) = (COMMITS.start, COMMITS.start + COMMIT_BYTES);
        let damaged = |places: &[usize]| {
            let mut bytes = killed.clone();
            places.iter().for_each(|place| bytes[place + 8] ^= 0x80);
            found(bytes)
        };
        let described = [damaged(&[first]), damaged(&[second]), damaged(&[first, second])];
        assert!(matches!(described, [Some(5), Some(6), None] | [Some(6), Some(5), None]), "{described:?}");
        // Pages that only the last commit has, and those that both have.
        let pages: Vec<_> = (4096..killed.len()).step_by(4096).map(|page| damaged(&[page])).collect();
        assert!(pages.contains(&Some(6)) && pages.contains(&None), "{pages:?}");
    }

    #[test]
    fn a_damaged_file_of_version_0_2_0_is_refused_or_has_every_ledger() {
        let good = of_version("0.2.0");
        let Contents { format, ledgers } = read(good.clone()).unwrap();
        assert_eq!((format, ledgers.len()), (2, 16));
        let mut refused = 0;
        for at in (0..good.len()).step_by(good.len() / 211 + 97).chain(0..320) {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            match std::panic::catch_unwind(|| read(bad)) {
                Ok(Ok(found)) => assert!(found.ledgers == ledgers, "byte {at} turned over goes unnoticed"),
                Ok(Err(_)) | Err(_) => refused += 1,
            }
        }
        assert!(refused > 10, "only {refused} were refused");
    }
}
