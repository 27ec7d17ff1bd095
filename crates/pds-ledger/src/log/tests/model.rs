//! A disk in memory that loses, tears and reorders unsynced writes.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use crate::log::folder::{Directory, LeadsTo, Storage};

pub(super) const SECTOR: usize = 512;

/// Numbers that look random and are the same in every run.
#[derive(Clone, Debug)]
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// A change of a file that is not synced yet.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length, 0),
            Self::Write(at, data) => {
                bytes.resize(bytes.len().max(at + data.len()), 0);
                bytes[*at..][..data.len()].copy_from_slice(data);
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    /// State that a running process sees.
    pub(super) now: Vec<u8>,
    /// State that is durable, and state that may be.
    pub(super) synced: Vec<u8>,
    pub(super) pending: Vec<Change>,
}

/// Files of the two names: the log, and its successor.
pub(super) type Names = [Option<usize>; 2];

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) files: Vec<Stored>,
    pub(super) names: Names,
    /// The names as last synced, and after each change since.
    pub(super) history: Vec<Names>,
    /// How many operations there were, and which one fails. After `dies`, all of them do.
    pub(super) operations: usize,
    pub(super) fails: Option<usize>,
    pub(super) dies: bool,
    pub(super) written: usize,
}

impl Disk {
    /// Counts an operation. Whether it fails.
    fn fails(&mut self) -> bool {
        self.operations += 1;
        self.fails.is_some_and(|fails| fails == self.operations || self.dies && fails < self.operations)
    }

    fn name(&mut self, names: Names) {
        self.names = names;
        self.history.push(names);
    }

    /// The disk after a power loss: some unsynced writes are there, some are missing, and some are torn.
    pub(super) fn after_power_loss(&self, numbers: &mut Numbers) -> Self {
        let mut files = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            if !self.history.iter().flatten().any(|name| *name == Some(number)) {
                files.push(Stored::default());
                continue;
            }
            let mut bytes = file.synced.clone();
            for change in &file.pending {
                match (numbers.below(3), change) {
                    (0, _) => {}
                    (1, Change::Write(at, data)) => {
                        let mut from = 0;
                        while from < data.len() {
                            let sector = (SECTOR - (at + from) % SECTOR).min(data.len() - from);
                            if numbers.below(2) == 0 {
                                Change::Write(at + from, data[from..from + sector].to_vec())
                                    .apply(&mut bytes);
                            }
                            from += sector;
                        }
                    }
                    _ => change.apply(&mut bytes),
                }
            }
            files.push(Stored { now: bytes.clone(), synced: bytes, pending: Vec::new() });
        }
        // Names change in order.
        let names =
            if self.history.is_empty() { [None; 2] } else { self.history[numbers.below(self.history.len())] };
        Self { files, names, history: vec![names], ..Self::default() }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Model(pub(super) Rc<RefCell<Disk>>);

#[derive(Debug)]
pub(super) struct Handle(Model, pub(super) usize);

fn failed() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl Model {
    pub(super) fn of(disk: Disk) -> Self {
        Self(Rc::new(RefCell::new(disk)))
    }

    pub(super) fn disk(&self) -> Disk {
        self.0.borrow().clone()
    }
}

impl Storage for Handle {
    fn reader(&self) -> impl io::Read {
        io::Cursor::new(self.0.0.borrow().files[self.1].now.clone())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.0.borrow().files[self.1].now.len() as u64)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut disk = self.0.0.borrow_mut();
        let fails = disk.fails();
        // A write that fails may have written some of it.
        let bytes = if fails { &bytes[..bytes.len() / 2] } else { bytes };
        disk.written += bytes.len();
        let change = Change::Write(usize::try_from(at).unwrap(), bytes.to_vec());
        change.apply(&mut disk.files[self.1].now);
        disk.files[self.1].pending.push(change);
        if fails { Err(failed()) } else { Ok(()) }
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut disk = self.0.0.borrow_mut();
        if disk.fails() {
            return Err(failed());
        }
        let change = Change::Length(usize::try_from(length).unwrap());
        change.apply(&mut disk.files[self.1].now);
        disk.files[self.1].pending.push(change);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.0.0.borrow_mut();
        let (fails, dies) = (disk.fails(), disk.dies);
        let file = &mut disk.files[self.1];
        if fails {
            // The kernel treats failed writes as written.
            if !dies {
                file.pending.clear();
            }
            return Err(failed());
        }
        file.synced.clone_from(&file.now);
        file.pending.clear();
        Ok(())
    }
}

impl Directory for Model {
    type File = Handle;

    fn open(&self) -> io::Result<Handle> {
        let log = self.0.borrow().names[0];
        Ok(Handle(self.clone(), log.ok_or(io::ErrorKind::NotFound)?))
    }

    fn create(&self) -> io::Result<Handle> {
        let mut disk = self.0.borrow_mut();
        if disk.fails() {
            return Err(failed());
        }
        let number = disk.files.len();
        disk.files.push(Stored::default());
        let log = disk.names[0];
        disk.name([log, Some(number)]);
        Ok(Handle(self.clone(), number))
    }

    fn replace(&self) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        if disk.fails() {
            return Err(failed());
        }
        let new = disk.names[1];
        disk.name([new, None]);
        Ok(())
    }

    fn discard(&self) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        let log = disk.names[0];
        disk.name([log, None]);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        if disk.fails() {
            return Err(failed());
        }
        disk.history = vec![disk.names];
        Ok(())
    }

    fn leads_to(&self, file: &Handle, length: u64) -> io::Result<LeadsTo> {
        let disk = self.0.borrow();
        Ok(match disk.names[0] {
            None => LeadsTo::Nothing,
            Some(other) if other != file.1 => LeadsTo::Other,
            Some(same) if (disk.files[same].now.len() as u64) < length => LeadsTo::Shortened,
            Some(_) => LeadsTo::Same,
        })
    }
}
