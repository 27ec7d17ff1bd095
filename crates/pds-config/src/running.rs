//! The flags and the environment of an exporter that runs on this machine, from `/proc`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::flags::{CommandLine, Flags};
use crate::key::{ENVIRONMENT_PREFIX, ENVIRONMENT_SEPARATOR};

/// An exporter that runs on this machine.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its flags, with absolute paths.
    pub flags: Flags,
    /// The variables in its environment that set keys; `None` if another user runs it.
    pub environment: Option<Vec<(String, String)>>,
}

/// The exporter that runs on this machine: the process with the lowest id that runs `program` and serves, preferably
/// with the configuration file `config`; a demo if no other runs. `None` if there is no such process, or none that may
/// be read.
///
/// In a container, `--health` has no flags of its own, so it reads those of the running exporter. `pdstool` does the
/// same.
pub fn running_exporter(program: &Path, config: Option<&Path>) -> Option<Running> {
    let proc = Path::new("/proc");
    let processes = std::fs::read_dir(proc).ok()?.flatten();
    let mut ids: Vec<u32> = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    let running = ids.into_iter().filter_map(|id| {
        let process = proc.join(id.to_string());
        // An upgrade has replaced the file of a process that still runs.
        let is_program = |found: PathBuf| {
            let replaced = found.as_os_str().as_bytes().strip_suffix(b" (deleted)");
            found == program || replaced == Some(program.as_os_str().as_bytes())
        };
        let is_same = std::fs::read_link(process.join("exe")).is_ok_and(is_program);
        let line = is_same.then(|| std::fs::read(process.join("cmdline")).ok())??;
        let mut flags = of_process(&line)?;
        if let Ok(folder) = std::fs::read_link(process.join("cwd")) {
            flags.config_file = folder.join(flags.config_file);
            flags.state_path = flags.state_path.map(|path| folder.join(path));
            flags.web_config_file = flags.web_config_file.map(|path| folder.join(path));
            for address in &mut flags.web_listen_address {
                if let Some(path) = address.strip_prefix("unix:") {
                    *address = format!("unix:{}", folder.join(path).display());
                }
            }
        }
        Some(Running { flags, environment: environment_of(&process) })
    });
    let is_other = |flags: &Flags| !config.is_some_and(|config| is_same_file(config, &flags.config_file));
    // The first of those that are equal.
    running.min_by_key(|Running { flags, .. }| (flags.demo, is_other(flags)))
}

/// Whether both paths lead to the same file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    std::fs::canonicalize(one).is_ok_and(|one| std::fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// The variables of a process that set keys. They decide where tokens are sent, so this user must run it.
fn environment_of(process: &Path) -> Option<Vec<(String, String)>> {
    let owner = |path: &Path| std::fs::metadata(path).map(|file| file.uid()).ok();
    let is_ours = owner(process).is_some_and(|uid| owner(Path::new("/proc/self")) == Some(uid));
    let bytes = is_ours.then(|| std::fs::read(process.join("environ")).ok())??;
    let prefix = format!("{ENVIRONMENT_PREFIX}{ENVIRONMENT_SEPARATOR}");
    let variables = bytes.split(|byte| *byte == 0).filter_map(|line| {
        let (name, value) = std::str::from_utf8(line).ok()?.split_once('=')?;
        name.starts_with(&prefix).then(|| (name.to_owned(), value.to_owned()))
    });
    Some(variables.collect())
}

/// The flags of a command line as `/proc` has it, each argument with a zero byte behind it; `None` if it serves nothing.
fn of_process(line: &[u8]) -> Option<Flags> {
    // A process that ends has none.
    let line = line.strip_suffix(&[0])?;
    let arguments = line.split(|byte| *byte == 0).map(|argument| OsString::from_vec(argument.to_vec()));
    let flags = CommandLine::parse(arguments).ok()?.flags;
    (!flags.health && !flags.config_check).then_some(flags)
}

#[cfg(test)]
mod tests {
    use super::of_process;

    #[test]
    fn a_command_line_has_flags_if_it_serves() {
        let flags =
            of_process(b"/pds-exporter\0--web.listen-address=:19090\0--web.route-prefix\0/pds\0").unwrap();
        assert_eq!(flags.web_listen_address, [":19090"]);
        assert_eq!(flags.web_route_prefix.as_deref(), Some("/pds"));
        assert!(of_process(b"/pds-exporter\0").is_some());
        for line in [&b"/pds-exporter\0--health\0"[..], b"x\0--config.check\0", b"x\0--no-such-flag\0", b""] {
            assert!(of_process(line).is_none(), "{}", String::from_utf8_lossy(line));
        }
    }
}
