//! Basics of every part of the exporter: time, secrets, files and text. It knows nothing of metrics or of the service.
//!
//! - [`certificate`]: problems of certificates in words.
//! - [`clock`]: the wall clock as an argument.
//! - [`error_chain`]: an error and its causes in one line.
//! - [`framing`]: the units of a stream, such as frames of HTTP/2.
//! - [`memory`]: how much of it others can make the process hold.
//! - [`plain_file`]: files that other programs replace.
//! - [`printable`]: text of others, fit for a terminal, a log line or a page.
//! - [`redact`]: removes secrets from what others have written.
//! - [`secret`]: text that redacts itself.
//! - [`template`]: paths with `{name}` in them, and the percent-encoder.
//! - [`units`]: numbers and durations for people.
//! - [`worded!`]: enums with words.

pub mod certificate;
pub mod clock;
pub mod error_chain;
pub mod framing;
pub mod memory;
pub mod plain_file;
pub mod printable;
pub mod redact;
pub mod secret;
pub mod template;
pub mod units;
mod worded;
