//! When a log takes a snapshot, and what happens without room for a snapshot.

use std::cell::Cell;

use super::*;

#[test]
fn the_log_grows_by_a_quarter_of_its_limit_if_a_snapshot_does_not_fit() {
    let model = Model::default();
    let mut log = created(&model).unwrap();
    let entry = |size: usize| [(b"a".to_vec(), Some(vec![0; size]))];
    log.commit(|| entry(1_000_000), Vec::new).unwrap();
    let next = model.disk().operations + 1;
    model.0.borrow_mut().fails = Some(next);
    log.commit(|| entry(100_000), Vec::new).unwrap();
    assert_eq!((log.file.1, log.limit), (0, MIN_LIMIT / 4 * 5));
    // Another entry has room; the entry after it takes a snapshot.
    let files = [0, 1].map(|_| {
        log.commit(|| entry(100_000), Vec::new).unwrap();
        log.file.1
    });
    assert_eq!(files, [0, 1]);
}

#[test]
fn a_commit_that_takes_a_snapshot_encodes_only_entries_with_room_first() {
    let mut log = created(&Model::default()).unwrap();
    let (calls, encoded) = (Cell::new(0), Cell::new(0));
    let entries = || {
        calls.set(calls.get() + 1);
        let first = calls.get() == 1;
        let (count, encoded) = (4_000_u32, &encoded);
        (0..count).map(move |number| {
            encoded.set(encoded.get() + u32::from(first));
            (number.to_le_bytes().to_vec(), Some(vec![0; 1000]))
        })
    };
    log.commit(entries, Vec::new).unwrap();
    // A log of one MiB has room for a thousand of them.
    assert!((1000..1100).contains(&encoded.get()), "{} of 4,000", encoded.get());
    assert_eq!(calls.get(), 2, "then the snapshot has all of them");
}
