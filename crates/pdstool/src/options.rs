//! Shared options: the output format, points in time, the address of the service, and files that commands write.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use url::Url;

use super::error::{Result, ToolError};
use pds_config::parse_url;
use pds_core::plain_file::{self, PRIVATE};

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people: as wide as the terminal.
    #[default]
    Table,
    /// For people: all columns, nothing cut.
    Wide,
    /// For programs: JSON. Replies of the service and of an exporter are printed as received.
    Json,
    /// For programs: comma-separated values with all columns, numbers unrounded.
    Csv,
}

impl OutputFormat {
    /// Whether people read it.
    pub fn is_for_people(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

/// The option `--output`.
#[derive(Clone, Copy, Debug, Args)]
pub struct OutputArg {
    /// Output format.
    #[arg(id = "output", short, long = "output", value_name = "FORMAT", default_value = "table")]
    pub format: OutputFormat,
}

/// Writes a file that may hold a token: only its owner can read it. An existing file stays until its replacement is
/// complete.
///
/// # Errors
/// If it cannot be written, or exists and `over` is not set.
pub fn write_private(path: &Path, text: &str, over: bool) -> Result<()> {
    // Takes the name, and refuses anything but a regular file.
    let written = open_private(path, over).and_then(|there| {
        plain_file::replace(path, text.as_bytes()).inspect_err(|_| {
            if there.metadata().is_ok_and(|there| there.len() == 0) {
                // It would stop the next attempt.
                drop(fs::remove_file(path));
            }
        })
    });
    written.map_err(ToolError::file("cannot write", path))
}

/// Opens a file for writing that only its owner can read.
///
/// # Errors
/// If it cannot be opened, or exists and `over` is not set.
pub fn open_private(path: &Path, over: bool) -> io::Result<File> {
    plain_file::open_own(path, OpenOptions::new().write(true).create(true).create_new(!over).mode(PRIVATE))
}

/// An address of the service as a flag.
///
/// # Errors
/// If it is no http or https URL, or has a user or password.
pub fn base_url(text: &str) -> Result<Url, String> {
    let url = parse_url(text)?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    if has_user { Err("must not contain credentials; use --token-file".to_owned()) } else { Ok(url) }
}

/// The point in time that `text` gives, perhaps relative to `now`, in seconds since the Unix epoch.
///
/// # Errors
/// If it gives none.
pub fn time(text: &str, now: Timestamp) -> Result<i64, String> {
    if text == "now" {
        return Ok(now.as_second());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_second());
    }
    if let Ok(day) = day(text) {
        return Ok(day.as_second());
    }
    let ago = humantime::parse_duration(text).ok().and_then(|ago| i64::try_from(ago.as_secs()).ok());
    ago.map(|ago| now.as_second().saturating_sub(ago)).ok_or_else(|| {
        "write a time such as 2026-01-31T12:00:00Z, a day (its beginning in UTC) such as 2026-01-31, \
         or how long ago such as 24h"
            .to_owned()
    })
}

/// The beginning of a day in UTC.
///
/// # Errors
/// If `text` is anything but a day: the time of another zone would be dropped silently.
pub fn day(text: &str) -> Result<Timestamp, String> {
    let day = Date::strptime("%Y-%m-%d", text).and_then(|date| date.to_zoned(TimeZone::UTC));
    day.map(|day| day.timestamp()).map_err(|_| "write a day such as 2026-01-31".to_owned())
}

/// Returns `text` itself if it gives a [`time`].
///
/// # Errors
/// If it gives none.
pub fn checked_time(text: &str) -> Result<String, String> {
    time(text, Timestamp::now()).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_private_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        // The longer name of the replacement is not possible.
        let longest = folder.path().join("f".repeat(255));
        assert!(write_private(&longest, "first", false).is_err() && !longest.exists());
        fs::write(&longest, "old").unwrap();
        assert!(write_private(&longest, "new", true).is_err());
        assert_eq!(fs::read_to_string(&longest).unwrap(), "old");
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(write_private(&path, "new", false).is_err());
        write_private(&path, "new", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, PRIVATE);
    }

    #[test]
    fn an_address_with_credentials_is_a_usage_error() {
        assert!(base_url("https://user:hunter2@x").is_err_and(|error| !error.contains("hunter2")));
        assert!(base_url("https://user@x").is_err() && base_url("https://x").is_ok());
    }

    #[test]
    fn times_days_and_durations_are_points_in_time() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let at = |text: &str| time(text, now).unwrap() - now.as_second();
        assert_eq!(at("2026-01-31T13:00:00+01:00"), 0);
        assert_eq!(at("2026-01-31"), -12 * 3600);
        assert_eq!((at("24h"), at("now"), at("1h 30m")), (-86_400, 0, -5400));
        for wrong in ["", "yesterday", "24", "2026-13-01", "-1h", "2026-01-31T18:00:00", "2026-01-31 18:00"] {
            assert!(time(wrong, now).is_err(), "{wrong}");
        }
    }
}
