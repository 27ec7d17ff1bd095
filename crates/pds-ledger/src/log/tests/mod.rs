//! The log on disks that lose or tear writes or fail, and damaged files.

mod marks;
mod model;
mod sizes;

use std::collections::BTreeMap;
use std::path::Path;

use super::*;

use model::{Disk, Model, Numbers, SECTOR, Stored};

type State = BTreeMap<Vec<u8>, Vec<u8>>;

fn opened(model: &Model) -> Result<(Log<Model>, State), StateError> {
    let mut state = State::new();
    let log = Log::open("state.log".into(), model.clone(), &mut |key, value| {
        take(&mut state, key, value);
        Ok(())
    })?;
    Ok((log, state))
}

fn take(state: &mut State, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => drop(state.insert(key.to_vec(), value.to_vec())),
        None => drop(state.remove(key)),
    }
}

fn created(model: &Model) -> Result<Log<Model>, StateError> {
    Log::create("state.log".into(), model.clone(), std::iter::empty())
}

fn after(state: &State, entries: &[Entry]) -> State {
    let mut state = state.clone();
    entries.iter().for_each(|(key, value)| take(&mut state, key, value.as_deref()));
    state
}

fn all(state: &State) -> Vec<Entry> {
    state.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
}

/// The entries of the commit of that number: two values of some sizes, and now and then a removal.
fn entries(number: usize) -> Vec<Entry> {
    let key = |n: usize| format!("key {}", n % 9).into_bytes();
    let value = |n: usize| vec![u8::try_from(n % 251).unwrap(); (n * 7919) % 90_000];
    let mut entries =
        vec![(key(number), Some(value(number))), (key(number * 5 + 2), Some(value(number + 100)))];
    if number % 4 == 3 {
        entries.push((key(number + 4), None));
    }
    entries
}

/// Start of the first group.
const FIRST: usize = 12_288;

const COMMITS: usize = 40;

/// Result of a run of commits: the last committed state, and a possible later one.
struct Left {
    committed: Option<State>,
    attempted: State,
    snapshots: usize,
}

/// Commits until the disk is dead.
fn run(model: &Model) -> Left {
    let mut left = Left { committed: None, attempted: State::new(), snapshots: 0 };
    let Ok(mut log) = created(model) else { return left };
    left.committed = Some(State::new());
    for number in 0..COMMITS {
        let (entries, state) = (entries(number), left.committed.clone().unwrap());
        left.attempted = after(&state, &entries);
        let before = log.file.1;
        if log.commit(|| entries.clone(), || all(&state)).is_ok() {
            left.committed = Some(left.attempted.clone());
        } else if model.0.borrow().dies {
            return left;
        }
        left.snapshots += usize::from(log.file.1 != before);
    }
    left
}

fn operations_of_a_run() -> usize {
    let model = Model::default();
    let left = run(&model);
    assert!(left.snapshots >= 3, "{} snapshots", left.snapshots);
    assert_eq!(opened(&model).unwrap().1, left.committed.unwrap());
    model.disk().operations
}

#[test]
fn a_power_loss_at_any_point_leaves_the_last_commit_or_the_one_under_way() {
    let (mut before, mut under_way, mut numbers) = (0, 0, Numbers(11));
    for point in 1..=operations_of_a_run() + 1 {
        let model = Model::of(Disk { fails: Some(point), dies: true, ..Disk::default() });
        let left = run(&model);
        let disk = model.disk();
        for _ in 0..4 {
            let model = Model::of(disk.after_power_loss(&mut numbers));
            let (mut log, state) = match opened(&model) {
                Ok(opened) => opened,
                Err(StateError::Io(_, source)) if source.kind() == io::ErrorKind::NotFound => {
                    assert!(left.committed.is_none(), "operation {point}: the log is gone");
                    continue;
                }
                Err(error) => panic!("operation {point}: {error}"),
            };
            let is_before = left.committed.as_ref() == Some(&state);
            assert!(is_before || state == left.attempted, "operation {point}: neither of the two states");
            before += usize::from(is_before);
            under_way += usize::from(!is_before);

            // Everything that was read is durable now, and the log continues.
            let again = Model::of(model.disk().after_power_loss(&mut numbers));
            assert!(opened(&again).unwrap().1 == state, "operation {point}: read, and then lost");
            let entries = entries(point);
            log.commit(|| entries.clone(), || all(&state)).unwrap();
            let again = Model::of(model.disk().after_power_loss(&mut numbers));
            assert!(opened(&again).unwrap().1 == after(&state, &entries), "operation {point}: not durable");
        }
    }
    assert!(before > 100 && under_way > 25, "{before} {under_way}");
}

#[test]
fn an_operation_that_fails_loses_no_commit_and_brings_none_back_that_failed() {
    let mut numbers = Numbers(5);
    for point in 1..=operations_of_a_run() {
        let model = Model::of(Disk { fails: Some(point), ..Disk::default() });
        let left = run(&model);
        let Some(committed) = left.committed else { continue };
        let disk = Disk { fails: None, ..model.disk() };
        for disk in [disk.after_power_loss(&mut numbers), disk] {
            let state =
                opened(&Model::of(disk)).unwrap_or_else(|error| panic!("operation {point}: {error}")).1;
            assert!(state == committed || state == left.attempted, "operation {point}");
        }
    }
}

/// A log as a killed process leaves it, opened once, and its contents.
fn good() -> (Vec<u8>, State) {
    let model = Model::default();
    let small = |number: usize| -> Vec<Entry> {
        let short = |value: Vec<u8>| value[..value.len() / 30].to_vec();
        entries(number).into_iter().map(|(key, value)| (key, value.map(short))).collect()
    };
    let mut log = Log::create("state.log".into(), model.clone(), (0..20).flat_map(small)).unwrap();
    (20..COMMITS).for_each(|number| log.commit(|| small(number), Vec::new).unwrap());
    let (log, state) = opened(&model).unwrap();
    let bytes = model.disk().files[log.file.1].now.clone();
    (bytes, state)
}

fn read(bytes: &[u8]) -> Result<State, StateError> {
    let mut state = State::new();
    replay(Path::new("state.log"), bytes, bytes.len() as u64, &mut |key, value| {
        take(&mut state, key, value);
        Ok(())
    })?;
    Ok(state)
}

#[test]
fn a_damaged_file_is_refused_with_the_place_or_has_every_commit() {
    let (good, state) = good();
    let mut numbers = Numbers(3);
    let (mut refused, mut whole) = (0, 0);
    for number in 0..2_000 {
        let (mut bad, at) = (good.clone(), numbers.below(good.len()));
        let sector = at / SECTOR * SECTOR;
        match numbers.below(6) {
            0 => bad[at] ^= 1 << numbers.below(8),
            1 => bad[at..].iter_mut().take(64).for_each(|byte| *byte = numbers.below(256).to_le_bytes()[0]),
            2 => bad[sector..].iter_mut().take(SECTOR).for_each(|byte| *byte = 0),
            3 => bad.copy_within(numbers.below(good.len() / 2)..good.len() / 2, sector / 2),
            // Head and marks.
            4 => bad[[0, 4096, 8192][number % 3] + at % 20] ^= 1 << numbers.below(8),
            _ => bad.truncate(at),
        }
        match read(&bad) {
            Ok(found) => {
                assert!(found == state, "damage {number} goes unnoticed");
                whole += 1;
            }
            Err(StateError::Damaged(_, place, _)) => {
                let first = good.iter().zip(&bad).position(|(one, other)| one != other).unwrap_or(bad.len());
                assert!(place <= first.max(FIRST) as u64, "{place} is behind the damage at {first}");
                refused += 1;
            }
            Err(other) => panic!("damage {number}: {other:?}"),
        }
    }
    assert!(refused > 1000 && whole > 100, "{refused} refused, {whole} whole");
}

#[test]
fn a_torn_end_is_the_commit_before_and_a_cut_one_is_refused() {
    let model = Model::default();
    let mut log = created(&model).unwrap();
    let first = State::from([(b"a".to_vec(), vec![1; 3000])]);
    log.commit(|| all(&first), Vec::new).unwrap();
    let before = model.disk().files[log.file.1].now.clone();
    let second = || [(b"a".to_vec(), None), (b"b".to_vec(), Some(vec![2; 3000]))];
    log.commit(second, || all(&first)).unwrap();
    let marked = model.disk().files[log.file.1].now.clone();
    // State after a machine fails between the group and the mark.
    let mut unmarked = marked.clone();
    unmarked[..FIRST].copy_from_slice(&before[..FIRST]);
    assert_eq!(read(&unmarked).unwrap(), State::from([(b"b".to_vec(), vec![2; 3000])]));
    for length in before.len()..marked.len() {
        assert_eq!(read(&unmarked[..length]).unwrap(), first, "{length}");
        let cut = read(&marked[..length]).unwrap_err();
        assert!(
            matches!(cut, StateError::Damaged(_, at, "it is cut off") if at == before.len() as u64),
            "{cut:?}"
        );
        let mut torn = unmarked.clone();
        torn[length] ^= 1;
        assert_eq!(read(&torn).unwrap(), first, "{length}");
        torn[..FIRST].copy_from_slice(&marked[..FIRST]);
        let torn = read(&torn).unwrap_err();
        assert!(
            matches!(torn, StateError::Damaged(_, at, "a commit differs from what was written") if at == before.len() as u64),
            "{torn:?}"
        );
    }
}

#[test]
fn opening_a_log_truncates_unsynced_bytes() {
    let (good, state) = good();
    let now = [&good[..], &[1; 100]].concat();
    let torn = Stored { synced: now.clone(), now, pending: Vec::new() };
    let model = Model::of(Disk { files: vec![torn], names: [Some(0), None], ..Disk::default() });
    assert_eq!(opened(&model).unwrap().1, state);
    assert_eq!(model.disk().files[0].now.len(), good.len());
}

#[test]
fn a_length_in_a_file_allocates_no_memory() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let (good, _) = good();
    let before = peak();
    let mut group = Group::new();
    // Key and value of 4 GiB each, and then nothing.
    group.0.extend([0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    let mut bytes = [&good[..], group.at(good.len() as u64).unwrap()].concat();
    let refused = read(&bytes).unwrap_err();
    assert!(matches!(refused, StateError::Damaged(_, at, _) if at == good.len() as u64), "{refused:?}");
    // A group of 4 GiB.
    bytes[good.len()..][..4].copy_from_slice(&[0xff; 4]);
    assert!(read(&bytes).is_ok(), "as torn");
    assert!(peak() - before < 16 << 10, "{} kB", peak() - before);
}

#[test]
fn at_most_seventeen_bytes_are_written_for_ten_that_change() {
    let model = Model::default();
    let mut log = created(&model).unwrap();
    // Like the two ledgers of an app.
    let apps: Vec<[Entry; 2]> = (0..10_000)
        .map(|app| {
            [(66_u8, 464), (71, 104)].map(|(resource, size)| {
                (
                    format!("{}p-abc12345p-abc12345-app-{app:05}", char::from(resource)).into(),
                    Some(vec![0; size]),
                )
            })
        })
        .collect();
    let every: Vec<Entry> = apps.iter().flatten().cloned().collect();
    log.commit(|| every.clone(), Vec::new).unwrap();
    let (before, mut changed, mut longest) = (model.0.borrow().written, 0, 0);
    let snapshot = log.lengths.snapshot;
    // Six snapshots.
    while log.file.1 < 7 {
        for second in apps.chunks(167) {
            let entries = second.as_flattened();
            log.commit(|| entries.to_vec(), || every.clone()).unwrap();
            changed +=
                entries.iter().map(|(key, value)| key.len() + value.as_ref().unwrap().len()).sum::<usize>();
            longest = longest.max(log.lengths.whole);
        }
    }
    let times = (model.0.borrow().written - before) as f64 / changed as f64;
    println!(
        "bytes written for each that changes: {times:.3}; {longest} at the most, {snapshot} of them live"
    );
    assert!(times < 1.7 && longest < snapshot / 10 * 26, "{times:.3}, {longest} for {snapshot}");
}

#[test]
fn a_file_of_another_kind_or_version_is_refused() {
    let mut later = vec![0; 3 * 4096];
    later[..20].copy_from_slice(&head(VERSION));
    assert!(matches!(read(&later), Err(StateError::Damaged(_, 4096, _))), "without marks");
    for (bytes, at) in [(&b""[..], 0), (b"pdsst", 0), (b"pdsstate", 8), (b"# not a log, but long enough", 0)]
    {
        assert!(
            matches!(read(bytes), Err(StateError::Damaged(_, found, _)) if found == at),
            "{:?}",
            read(bytes)
        );
    }
    let version = (VERSION + 1).to_le_bytes();
    later[8..16].copy_from_slice(&version);
    let mut crc = flate2::Crc::new();
    [&[0; 8][..], b"pdsstate", &version].into_iter().for_each(|part| crc.update(part));
    later[16..20].copy_from_slice(&crc.sum().to_le_bytes());
    assert!(matches!(read(&later), Err(StateError::OtherFormat(_, version)) if version == VERSION + 1));
}

#[test]
fn a_mount_point_is_refused() {
    let error = Folder::lock(Path::new("/proc")).err().unwrap();
    assert!(matches!(error, StateError::Mounted(_)), "{error:?}");
}
