//! What the model is read from.

use jiff::Timestamp;
use tokio::time::Instant;

use crate::poll::plan::{Target, TargetSubject};
use crate::poll::{Context, Plan};

/// The targets of one project or app, with its subject in each of them.
pub(super) type Parts<'a> = Vec<(&'a Target, &'a TargetSubject)>;

/// What the model is read from, at one moment.
pub(super) struct View<'a> {
    pub(super) plan: &'a Plan,
    pub(super) context: &'a Context,
    pub(super) now: Timestamp,
    pub(super) instant: Instant,
}
