//! Ledgers, and the file they are kept in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use pds_interface::{Tally, TimeRange, response_time};
use pds_ledger::recheck::{Ages, Due};
use pds_ledger::restore::source;
use pds_ledger::{Key, Ledger, LedgerStore, Owner, Unobserved, state};

use super::RANGE;

/// Each line as the reply about the next minute of one ledger, whose hours are counted again as they age: no counter ever
/// falls, the buckets stay cumulative, and a reply that is refused changes nothing.
pub(crate) fn ledger(data: &[u8]) {
    const START: i64 = 1_767_225_600;
    let ages = Ages::new([0]);
    let due = Due { ages: &ages, phase: 0, oldest: None };
    let mut ledger = Ledger::open(START);
    for body in data.split(|byte| *byte == b'\n') {
        let Ok(reading) = response_time::RESOURCE.polled().read(body, &[]) else { continue };
        let tally = reading.tally.unwrap_or_default();
        let next = match ledger.recheck_due(due) {
            Some(hour) => ledger.recheck(hour, &tally, true, due).map(|next| next.map(|(next, _)| next)),
            None => {
                let range = TimeRange { start: ledger.until, end: ledger.until + 60 };
                ledger.add(range, &tally, true, START).map(Some)
            }
        };
        let Ok(Some(next)) = next else { continue };
        assert!(
            next.total >= ledger.total && next.late >= ledger.late && next.overcounted >= ledger.overcounted
        );
        assert!(next.until >= ledger.until && next.rechecked_until >= ledger.rechecked_until);
        let after: BTreeMap<u64, u64> =
            next.buckets().map(|(bound, count)| (bound.to_bits(), count)).collect();
        for (bound, count) in ledger.buckets() {
            // One that replies lack leaves.
            let after = after.get(&bound.to_bits());
            assert!(after.is_none_or(|after| *after >= count), "the bucket {bound} fell from {count}");
        }
        let counts: Vec<u64> = next.buckets().map(|(_, count)| count).collect();
        assert!(counts.is_sorted() && counts.last().is_none_or(|last| *last <= next.total), "{counts:?}");
        ledger = next;
    }
}

/// Any bytes as a reply of Prometheus: each cursor is one that the reply holds, and on its side of now.
pub(crate) fn cursors(data: &[u8]) {
    const NOW: i64 = RANGE.end;
    let Ok(answers) = source::parse(data, NOW) else { return };
    // A field that is not read may hold half a character.
    let Ok(reply) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    assert_eq!(reply["status"], "success");
    let series = reply["data"]["result"].as_array().expect("a list of series");
    for answer in answers {
        let of_counter = series.iter().filter(|series| {
            let labels = &series["metric"];
            labels["project"] == *answer.key.owner.project
                && labels["app"] == *answer.key.owner.app
                && labels["resource"] == answer.key.resource.as_str()
        });
        let values: Vec<f64> = of_counter
            .flat_map(|series| series["values"].as_array().into_iter().flatten().chain([&series["value"]]))
            .filter_map(|point| point[1].as_str()?.parse().ok())
            .filter(|value: &f64| value.fract() == 0.0 && *value >= 1.0 && *value < 9_007_199_254_740_992.0)
            .collect();
        let greatest = |within: fn(f64) -> bool| {
            values.iter().copied().filter(|value| within(*value)).reduce(f64::max).map(|value| value as i64)
        };
        assert_eq!(answer.cursor.map(|cursor| cursor.until), greatest(|value| value <= NOW as f64));
        assert_eq!(answer.later, greatest(|value| value > NOW as f64));
    }
}

/// Reads any bytes as a state file, as the content of a commit, and as changes to a good state file: five bytes at a
/// time, an offset and the change there. The entries read are those written, or the file is refused. If a mark is
/// damaged, too, the last commit may be missing: a crash may tear both.
pub(crate) fn state_file(data: &[u8]) {
    let path = Path::new("state.log");
    let parse = |bytes: &[u8]| state::parse(path, bytes, bytes.len() as u64);
    drop(parse(data));
    let (good, expected) = good_state();
    drop(parse(&[good, &commit(good.len(), data)[..]].concat()));
    let mut bytes = good.clone();
    for change in data.chunks_exact(5) {
        let offset = u32::from_le_bytes([change[0], change[1], change[2], change[3]]);
        let length = bytes.len();
        bytes[usize::try_from(offset).unwrap_or_default() % length] ^= change[4];
    }
    if let Ok(ledgers) = parse(&bytes) {
        let is_whole = MARKS.into_iter().all(|mark| bytes[mark..mark + 20] == good[mark..mark + 20]);
        let missing = expected.len() - ledgers.len();
        assert!(missing <= usize::from(!is_whole), "{missing} commits are missing");
        let changed = ledgers.iter().find(|ledger| !expected.contains(ledger));
        assert_eq!(changed, None, "damage went unnoticed");
    }
}

/// The places of the marks in a file.
const MARKS: [usize; 2] = [4096, 8192];

/// A commit that holds these bytes, at this offset of a file.
fn commit(at: usize, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).expect("some kilobytes").to_le_bytes();
    let mut sum = flate2::Crc::new();
    [&(at as u64).to_le_bytes(), &length[..], data].into_iter().for_each(|part| sum.update(part));
    [&length, &sum.sum().to_le_bytes(), data].concat()
}

/// The bytes of a state file, and what is in it.
type StateFile = (Vec<u8>, Vec<(Key, Ledger)>);

fn good_state() -> &'static StateFile {
    static GOOD: OnceLock<StateFile> = OnceLock::new();
    GOOD.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a folder for the file");
        let path = dir.path().join("state.log");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (ledgers, committer) = LedgerStore::open(Some(&path), Arc::new(Unobserved), Duration::ZERO)
                .await
                .expect("a new file");
            for app in 0..40 {
                let owner = Owner::new("p-1".into(), format!("p-1-app-{app}").into());
                let key = Key { owner, resource: response_time::RESOURCE };
                let range = TimeRange { start: RANGE.start + app, ..RANGE };
                let reply =
                    Tally { total: Some(7), shares: vec![(0.5, 3.0 / 7.0), (1.0, 1.0)], ..Tally::default() };
                let ledger = Ledger::open(range.start).add(range, &reply, true, 0).expect("a good reply");
                ledgers.commit(&key, ledger).await.expect("room on the disk");
            }
            committer.finished().await;
        });
        let bytes = std::fs::read(&path).expect("the file");
        let ledgers = state::parse(&path, &*bytes, bytes.len() as u64).expect("a good file");
        assert_eq!(ledgers.len(), 40);
        (bytes, ledgers)
    })
}
