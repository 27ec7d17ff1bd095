//! What came of counting again: how far the numbers can be trusted, in figures. The comments here are the descriptions
//! in the schema of `/api/v1/status`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::poll::progress::Rechecked;

/// Requests or runs counted again since the exporter started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CountedAgain {
    /// How many were counted again.
    pub counted: u64,
    /// How many of them the service knew of only after they were first counted.
    pub late: u64,
    /// How many fewer there were than first counted; they stay in the counters.
    pub overcounted: u64,
}

impl CountedAgain {
    /// The share that came late; `None` before anything was counted again.
    #[must_use]
    pub fn late_share(self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
        (self.counted > 0).then(|| self.late as f64 / self.counted as f64)
    }

    /// The sum of all.
    pub(super) fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::default(), |sum, one| Self {
            counted: sum.counted + one.counted,
            late: sum.late + one.late,
            overcounted: sum.overcounted + one.overcounted,
        })
    }
}

impl From<Rechecked> for CountedAgain {
    fn from(Rechecked { counted, late, overcounted }: Rechecked) -> Self {
        Self { counted, late, overcounted }
    }
}
