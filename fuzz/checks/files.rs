//! Configuration files, and the journal of a backfill.

use pds_interface::{Tally, response_time};
use pds_ledger::Ledger;
use pds_web::webconfig;
use pdstool::backfill::journal::{Record, append, open, read};
use pdstool::backfill::write::counted;

use super::RANGE;

/// Any file as the configuration: no panic; what is refused says why, what is followed asks for something.
pub(crate) fn configuration(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder for the file");
    let path = dir.path().join("pds-exporter.toml");
    std::fs::write(&path, data).expect("the file can be written");
    match pds_config::load(&path, []) {
        Ok(loaded) => {
            assert!(!loaded.config.projects.is_empty());
            let load = loaded.config.requests_per_minute().total;
            assert!(load > 0.0 && load.is_finite(), "{load} requests a minute");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Any file as the web configuration: no panic, and what is refused says why.
pub(crate) fn web_configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = webconfig::parse(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// Any file as the journal of a backfill: what is read of it is read again after more was added, and no step takes a count
/// back.
pub(crate) fn journal(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder for the file");
    let path = dir.path().join("00000.jsonl");
    std::fs::write(&path, data).expect("the file can be written");
    let records = || {
        let mut records = Vec::new();
        let end = read(&path, |record| {
            records.push(record);
            Ok(())
        });
        (records, end.expect("a readable file"))
    };
    let (mut before, end) = records();
    assert!(
        data[..usize::try_from(end).expect("some kilobytes")].iter().filter(|byte| **byte == b'\n').count()
            == before.len()
    );
    let tally = Tally { total: Some(7), ..Tally::default() };
    let added = Record { end: RANGE.end, tally, ..Record::default() };
    append(&mut open(&path).expect("a journal").0, &path, &added).expect("room on the disk");
    before.push(added);
    assert_eq!(records().0, before);
    let mut ledger = Ledger::open(RANGE.start);
    for record in &before {
        let next = counted(&ledger, record, 300, response_time::RESOURCE);
        assert!(next.total >= ledger.total && next.until >= ledger.until, "{record:?}");
        ledger = next;
    }
}
