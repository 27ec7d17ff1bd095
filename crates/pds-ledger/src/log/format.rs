//! The bytes of the file.
//!
//! ```text
//! byte 0     "pdsstate", the version, CRC-32 of both
//! 4096       a mark: length of the snapshot, length of all that was synced, CRC-32
//! 8192       another mark; the longer one counts
//! 12288      groups: length, CRC-32, and as many bytes of entries
//! ```
//!
//! Numbers are little endian. The checksum of a mark or group includes its place, so that neither is valid anywhere
//! else. An entry is the length of the key, the length of the value plus one (zero removes the key), both in 7 bits per
//! byte, then key and value. The snapshot is written before the file gets its name; each commit then adds one group,
//! syncs it, and notes the new length in the older mark, which reaches the disk with the next group at the latest. So
//! bytes before the longer mark were once whole, and bytes behind it may be torn. If the longer mark and the last
//! commit are both damaged, the file reads as after a crash that tore both: the commit before it counts.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::Crc;

use super::Entry;
use crate::error::StateError;
use crate::varint;

/// The first bytes of every file.
const MAGIC: [u8; 8] = *b"pdsstate";
/// The version of the file.
pub(crate) const VERSION: u64 = 5;
/// Head and marks have a page each: a torn write of one leaves the others.
const PAGE: u64 = 4096;
/// Positions of the marks.
const MARKS: [u64; 2] = [PAGE, 2 * PAGE];
/// Start of groups.
pub(super) const START: u64 = 3 * PAGE;
/// The bytes of a group before its entries.
const GROUP_HEAD: usize = 8;

/// The lengths of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// Up to the end of the snapshot.
    pub(super) snapshot: u64,
    /// Up to the end of the last whole group.
    pub(crate) whole: u64,
}

/// The first page of a file of this version.
pub(super) fn head(version: u64) -> [u8; 20] {
    summed(0, u64::from_le_bytes(MAGIC), version)
}

/// The mark of that number: its place and its bytes.
pub(super) fn mark(number: usize, lengths: Lengths) -> (u64, [u8; 20]) {
    let place = MARKS[number % MARKS.len()];
    (place, summed(place, lengths.snapshot, lengths.whole))
}

/// Two numbers with the checksum that they have at this place.
fn summed(place: u64, one: u64, two: u64) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&one.to_le_bytes());
    bytes[8..16].copy_from_slice(&two.to_le_bytes());
    let sum = checksum(place, &[&bytes[..16]]);
    bytes[16..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Entries that are valid together or not at all.
#[derive(Debug)]
pub(super) struct Group(pub(super) Vec<u8>);

impl Group {
    pub(super) fn new() -> Self {
        Self(vec![0; GROUP_HEAD])
    }

    /// Entries of up to `room` bytes and one more entry, and whether these are all.
    pub(super) fn within(room: u64, entries: impl IntoIterator<Item = Entry>) -> (Self, bool) {
        let mut group = Self::new();
        let fits = entries.into_iter().all(|(key, value)| {
            group.put(&key, value.as_deref());
            group.len() <= room
        });
        (group, fits)
    }

    /// Adds an entry; without a value it removes the key.
    pub(super) fn put(&mut self, key: &[u8], value: Option<&[u8]>) {
        varint::put(&mut self.0, key.len() as u64);
        varint::put(&mut self.0, value.map_or(0, |value| value.len() as u64 + 1));
        self.0.extend_from_slice(key);
        self.0.extend_from_slice(value.unwrap_or_default());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == GROUP_HEAD
    }

    /// How many bytes it takes.
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Its bytes at this place.
    pub(super) fn at(&mut self, place: u64) -> io::Result<&[u8]> {
        let (head, entries) = self.0.split_at_mut(GROUP_HEAD);
        let length = u32::try_from(entries.len()).map_err(io::Error::other)?.to_le_bytes();
        head[..4].copy_from_slice(&length);
        head[4..].copy_from_slice(&checksum(place, &[&length, entries]).to_le_bytes());
        Ok(&self.0)
    }
}

/// Receiver of the entries of a file; an error describes a corrupt entry.
pub(crate) type Each<'a> = &'a mut dyn FnMut(&[u8], Option<&[u8]>) -> Result<(), &'static str>;

/// Calls `each` with every entry of every whole group of `file`, which has this length. Returns how far the groups
/// reach. Uses no more memory than the largest group, and none for a damaged length. `path` is for errors.
///
/// # Errors
/// If anything but a group that was never synced is damaged.
pub(crate) fn replay(
    path: &Path,
    file: impl Read,
    length: u64,
    each: Each<'_>,
) -> Result<Lengths, StateError> {
    let damaged = |at, what| StateError::Damaged(path.to_owned(), at, what);
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let marked = lengths(path, &mut reader, length)?;
    let (mut at, mut entries) = (START, Vec::new());
    while group(&mut reader, (at, length), &mut entries).map_err(StateError::io(path))? {
        read_entries(&entries, each).map_err(|what| damaged(at, what))?;
        at += (GROUP_HEAD + entries.len()) as u64;
    }
    if at < marked.whole {
        let what =
            if length < marked.whole { "it is cut off" } else { "a commit differs from what was written" };
        return Err(damaged(at, what));
    }
    Ok(Lengths { whole: at, ..marked })
}

/// Reads head and marks, which precede the groups.
fn lengths(path: &Path, reader: &mut impl BufRead, length: u64) -> Result<Lengths, StateError> {
    let damaged = |at, what| Err(StateError::Damaged(path.to_owned(), at, what));
    let mut start = Vec::new();
    reader.take(START).read_to_end(&mut start).map_err(StateError::io(path))?;
    let numbers = |at: u64| {
        let bytes = start.get(usize::try_from(at).ok()?..)?.first_chunk::<20>()?;
        let (words, _) = bytes.as_chunks::<8>();
        Some((u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]), *bytes))
    };
    let Some((_, version, first)) = numbers(0) else {
        let at = if start.len() < MAGIC.len() { 0 } else { start.len() as u64 };
        return damaged(at, if start.is_empty() { "it is empty" } else { "it is cut off" });
    };
    if first != head(version) {
        return damaged(0, "it does not begin like a state file");
    }
    if version != VERSION {
        return Err(StateError::OtherFormat(path.to_owned(), version));
    }
    if length < START {
        return damaged(length, "it is cut off");
    }
    let marks = MARKS.into_iter().enumerate().filter_map(|(number, place)| {
        let (snapshot, whole, bytes) = numbers(place)?;
        let lengths = Lengths { snapshot, whole };
        (mark(number, lengths).1 == bytes).then_some(lengths)
    });
    match marks.max_by_key(|lengths| lengths.whole) {
        Some(lengths) => Ok(lengths),
        None => damaged(MARKS[0], "both of its marks differ from what was written"),
    }
}

/// Reads the entries of the group that begins at `at` in a file of this length. Returns whether the group is whole.
fn group(reader: &mut impl BufRead, (at, length): (u64, u64), entries: &mut Vec<u8>) -> io::Result<bool> {
    entries.clear();
    let Some(room) = (length - at).checked_sub(GROUP_HEAD as u64) else { return Ok(false) };
    let (mut size, mut sum) = ([0; 4], [0; 4]);
    let read = reader.read_exact(&mut size).and_then(|()| reader.read_exact(&mut sum)).and_then(|()| {
        let size = u64::from(u32::from_le_bytes(size));
        if size > room { Ok(0) } else { reader.take(size).read_to_end(entries) }
    });
    match read {
        Ok(count) => Ok(count > 0 && checksum(at, &[&size, entries]).to_le_bytes() == sum),
        // Shortened while it was read.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_entries(mut entries: &[u8], each: Each<'_>) -> Result<(), &'static str> {
    const WRONG: &str = "an entry differs from what was written";
    while !entries.is_empty() {
        let mut number = || usize::try_from(varint::take(&mut entries)?).ok();
        let (key, value) = (number().ok_or(WRONG)?, number().ok_or(WRONG)?);
        let (key, rest) = entries.split_at_checked(key).ok_or(WRONG)?;
        let (bytes, rest) = rest.split_at_checked(value.saturating_sub(1)).ok_or(WRONG)?;
        each(key, (value > 0).then_some(bytes))?;
        entries = rest;
    }
    Ok(())
}

/// CRC-32 of the place and these bytes.
fn checksum(place: u64, parts: &[&[u8]]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&place.to_le_bytes());
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}
