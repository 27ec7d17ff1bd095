//! `process_*`, from `/proc/self`: see proc(5).

use std::fs;

use pds_exposition::encode::{head, sample};
use pds_exposition::{Family, Format};

/// Clock ticks a second in `/proc`, the same on every architecture that this is built for.
const TICKS: f64 = 100.0;

/// Each family and how it is read; `None` is a missing series.
type Metric = (Family, fn() -> Option<f64>);

/// The families that every exporter has.
const METRICS: &[Metric] = &[
    (
        Family::counter("process_cpu_seconds_total", &[], "Total user and system CPU time spent in seconds."),
        || Some((stat(13)? + stat(14)?) / TICKS),
    ),
    (Family::gauge("process_max_fds", &[], "Maximum number of open file descriptors."), || {
        field("/proc/self/limits", "Max open files")
    }),
    (Family::gauge("process_open_fds", &[], "Number of open file descriptors."), || {
        // The folder that is being read is one of them.
        Some(fs::read_dir("/proc/self/fd").ok()?.skip(1).map(|_| 1.0).sum())
    }),
    (Family::gauge("process_resident_memory_bytes", &[], "Resident memory size in bytes."), || {
        Some(field("/proc/self/status", "VmRSS:")? * 1024.0)
    }),
    (
        Family::gauge(
            "process_start_time_seconds",
            &[],
            "Start time of the process since unix epoch in seconds.",
        ),
        || Some(field("/proc/stat", "btime")? + stat(21)? / TICKS),
    ),
    (Family::gauge("process_threads", &[], "Number of OS threads in the process."), || {
        field("/proc/self/status", "Threads:")
    }),
    (Family::gauge("process_virtual_memory_bytes", &[], "Virtual memory size in bytes."), || {
        Some(field("/proc/self/status", "VmSize:")? * 1024.0)
    }),
];

/// The families of the process.
pub fn process_families() -> impl Iterator<Item = &'static Family> {
    METRICS.iter().map(|(family, _)| family)
}

/// Reads and writes the requested families.
pub(super) fn write(out: &mut Vec<u8>, format: Format, wanted: impl Fn(&Family) -> bool) {
    for (family, read) in METRICS.iter().filter(|(family, _)| wanted(family)) {
        if let Some(value) = read() {
            head(out, format, family);
            sample(out, family, "", "", value);
        }
    }
}

/// The field of `/proc/self/stat` with the number `index + 1` in proc(5). Field 2 is the program's name in parentheses,
/// which may hold blanks.
fn stat(index: usize) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after_name) = text.rsplit_once(')')?;
    after_name.split_whitespace().nth(index - 2)?.parse().ok()
}

/// The first number of the line that begins with `name`.
fn field(path: &str, name: &str) -> Option<f64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> f64 {
        let (_, read) = METRICS.iter().find(|(family, _)| family.name == name).unwrap();
        read().unwrap()
    }

    #[test]
    fn every_family_has_a_value_that_fits_this_process() {
        let before = read("process_cpu_seconds_total");
        while read("process_cpu_seconds_total") <= before {}
        let now = jiff::Timestamp::now().as_second() as f64;
        let age = now - read("process_start_time_seconds");
        assert!((-1.0..3_600.0).contains(&age), "started {age} s ago");
        let open = read("process_open_fds");
        let file = fs::File::open("/proc/self/stat").unwrap();
        assert!(read("process_open_fds") >= open.min(4.0), "{open}");
        drop(file);
        assert!(open < read("process_max_fds"));
        assert!((1e6..1e10).contains(&read("process_resident_memory_bytes")));
        assert!(read("process_virtual_memory_bytes") > read("process_resident_memory_bytes"));
        assert!(read("process_threads") >= 1.0);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_missing_series() {
        assert_eq!(field("/proc/no/such/file", "VmRSS:"), None);
        assert_eq!(field("/proc/self/status", "NoSuchField:"), None);
    }
}
