//! What a ledger keeps so that an hour can be counted again: what was added for it, and what came late.

/// The length of what is counted again in one request, in seconds.
pub const HOUR: i64 = 3600;

/// An hour that is still to be counted again. 16 bytes: a ledger has a few of them, or 25 with an age of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hour {
    /// Hours since 1970.
    pub index: u32,
    /// How many of the configured ages it was counted again at.
    pub rechecks: u8,
    /// What was added for it, or the answer when it was last counted again.
    pub added: u64,
}

impl Hour {
    /// The hour that `second` lies in, with nothing added.
    pub(super) fn of(second: i64) -> Self {
        Self { index: u32::try_from(second.div_euclid(HOUR)).unwrap_or_default(), rechecks: 0, added: 0 }
    }

    pub(super) fn start(self) -> i64 {
        i64::from(self.index) * HOUR
    }

    pub(super) fn end(self) -> i64 {
        self.start() + HOUR
    }
}

/// Late data on its way into the counters: in equal parts while the cursor moves through the hour that begins at `from`,
/// a place that its own hour and the age of the recheck fix. So any process that counts the hour again adds it there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Late {
    /// The hour that it belongs to, in hours since 1970; 0 if a version that did not note it found it.
    pub hour: u32,
    /// Where it begins to be added.
    pub from: i64,
    /// How many that hour has with them.
    pub figure: u64,
    /// How many there are.
    pub total: u64,
    /// How many of them were added.
    pub added: u64,
    /// The distribution of their hour: threshold in seconds and share, by rising threshold.
    pub shares: Box<[(f64, f64)]>,
}

/// The late data of a ledger, the oldest first. Most ledgers have none, so it is boxed.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::box_collection, reason = "8 bytes instead of 24 for each of the many that have none")]
pub(super) struct LateData(Option<Box<Vec<Late>>>);

impl LateData {
    pub(super) fn len(&self) -> usize {
        self.iter().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Late> {
        self.0.as_deref().map_or(&[][..], Vec::as_slice).iter()
    }

    pub(super) fn push(&mut self, late: Late) {
        self.0.get_or_insert_default().push(late);
    }

    pub(super) fn retain_mut(&mut self, keep: impl FnMut(&mut Late) -> bool) {
        if let Some(kept) = &mut self.0 {
            kept.retain_mut(keep);
            self.0.take_if(|kept| kept.is_empty());
        }
    }
}

impl Late {
    /// How many of them are added once the cursor stands at `second`.
    pub(super) fn part(&self, second: i64) -> u64 {
        let passed = u128::from((second - self.from).clamp(0, HOUR).unsigned_abs());
        u64::try_from(u128::from(self.total) * passed / u128::from(HOUR.unsigned_abs())).unwrap_or(self.total)
    }
}
