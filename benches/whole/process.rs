//! The processes of a run: started on a core, looked at through /proc, ended when dropped.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

/// A running process that listens.
pub(crate) struct Process {
    child: Child,
    /// `http://127.0.0.1:port`
    pub(crate) url: String,
}

/// The cores of a process: one of the machine, or any.
#[derive(Clone, Copy)]
pub(crate) enum Core {
    Any,
    First,
    Last,
}

/// A command on a core.
pub(crate) fn command(program: &str, core: Core) -> Command {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at = match core {
        Core::Any => return Command::new(program),
        Core::First => 0,
        Core::Last => cores - 1,
    };
    let mut command = Command::new("taskset");
    command.args(["-c", &at.to_string(), program]);
    command
}

/// This program in another role.
pub(crate) fn role(role: &str, core: Core) -> Command {
    let mut command = command(&std::env::current_exe().unwrap().display().to_string(), core);
    command.arg(role);
    command
}

impl Process {
    /// Starts a command that says `listening ADDRESS` on one of its outputs.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (found, address) = std::sync::mpsc::channel();
        for stream in [Box::new(stdout) as Box<dyn std::io::Read + Send>, Box::new(stderr)] {
            let found = found.clone();
            std::thread::spawn(move || {
                let mut said = String::new();
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    said.push_str(&line);
                    if let Some(at) = line.contains("listening").then(|| line.find("127.0.0.1:")).flatten() {
                        let address = line[at..].split([' ', '"', ',']).next().unwrap_or_default();
                        let _ = found.send(format!("http://{address}"));
                    }
                }
            });
        }
        let url = address.recv_timeout(std::time::Duration::from_secs(60)).expect("the process listens");
        Self { child, url }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Processor time used so far, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        cpu_of(self.pid())
    }

    /// Resident memory now and at most, in bytes.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let field = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
        };
        (field("VmRSS:"), field("VmHWM:"))
    }

    /// Bytes it has had written to disk.
    pub(crate) fn written(&self) -> u64 {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.pid())).unwrap();
        io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap().parse().unwrap()
    }

    /// How often a second it has the system flush a file to disk; `None` if strace cannot be had. Tracing slows it
    /// down, so this comes last.
    pub(crate) fn flushes(&self, time: std::time::Duration) -> Option<f64> {
        let trace = Command::new("timeout")
            .args(["-s", "INT", &time.as_secs().to_string(), "strace", "-f", "-qq"])
            .args(["-e", "trace=fsync,fdatasync,msync,sync_file_range", "-p", &self.pid().to_string()])
            .output()
            .ok()?;
        let said = String::from_utf8_lossy(&trace.stderr);
        // A call that others interrupt has a second line, "<... fsync resumed>".
        let calls =
            said.lines().filter(|line| line.contains("sync(") || line.contains("sync_file_range(")).count();
        (!said.contains("strace:") && !said.contains("failed to run"))
            .then(|| calls as f64 / time.as_secs_f64())
    }
}

impl Process {
    /// Kills it, if it still runs.
    pub(crate) fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Processor time of a process in seconds, with that of threads that have ended: a page is made by a thread of its own.
pub(crate) fn cpu_of(pid: u32) -> f64 {
    /// The unit in which Linux counts, on every architecture.
    const TICKS_A_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name of the program, which may hold anything, ends with the last parenthesis.
    let fields = text.rsplit_once(") ").unwrap().1.split(' ');
    fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS_A_SECOND
}

/// The number that a command prints after `name`.
pub(crate) fn number_of(mut command: Command, name: &str) -> f64 {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    said.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
}
