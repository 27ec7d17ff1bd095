//! Metric families, and how their samples are held and written.
//!
//! A family is declared once, as a [`Family`], beside the code that reads its values: in the file of its
//! endpoint (`interface`), in `ledger` or `telemetry`. HELP, TYPE and UNIT lines, the Markdown catalogue and the
//! checks of configured labels are all derived from that declaration.
//!
//! - [`family`]: the declaration, what follows from a name (unit, OpenMetrics base name), and the catalogue for people.
//! - [`samples`]: the values of one target at rest, as flat numbers beside a shared layout of names and labels.
//! - [`encode`]: the two text formats, byte for byte.

pub mod encode;
pub mod family;
pub mod samples;

pub use encode::Format;
pub use family::{Family, Group, Kind};
pub use samples::{Labels, Layout, Samples, Sink};
