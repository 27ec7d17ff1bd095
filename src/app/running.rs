//! The flags of the exporter that runs on this machine. The health check is part of an image, and whoever runs the
//! image decides on the flags: so `--health` alone takes those of the exporter beside it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use super::flags::{CommandLine, Flags};

/// The flags of the process with the lowest id that runs the same program as this one and serves. `None` if there is
/// no such process, or the system has no `/proc`.
pub(super) fn flags() -> Option<Flags> {
    let proc = Path::new("/proc");
    let program = std::fs::read_link(proc.join("self/exe")).ok()?;
    let processes = std::fs::read_dir(proc).ok()?.flatten();
    let mut ids: Vec<u32> = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    ids.into_iter().find_map(|id| {
        let process = proc.join(id.to_string());
        let is_same = std::fs::read_link(process.join("exe")).is_ok_and(|found| found == program);
        let line = is_same.then(|| std::fs::read(process.join("cmdline")).ok())??;
        of(&line)
    })
}

/// The flags of a command line as `/proc` has it, each argument with a zero byte behind it; `None` if it serves nothing.
fn of(line: &[u8]) -> Option<Flags> {
    // A process that ends has none.
    let line = line.strip_suffix(&[0])?;
    let arguments = line.split(|byte| *byte == 0).map(|argument| OsString::from_vec(argument.to_vec()));
    let flags = CommandLine::parse(arguments).ok()?.flags;
    (!flags.health && !flags.config_check).then_some(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_that_serves_has_flags() {
        let flags = of(b"/pds-exporter\0--web.listen-address=:19090\0--web.route-prefix\0/pds\0").unwrap();
        assert_eq!(flags.web_listen_address, [":19090"]);
        assert_eq!(flags.web_route_prefix.as_deref(), Some("/pds"));
        assert!(of(b"/pds-exporter\0").is_some());
    }

    #[test]
    fn a_command_line_that_serves_nothing_has_none() {
        for line in [&b"/pds-exporter\0--health\0"[..], b"x\0--config.check\0", b"x\0--no-such-flag\0", b""] {
            assert!(of(line).is_none(), "{}", String::from_utf8_lossy(line));
        }
    }
}
