//! The daemon.

use std::process::ExitCode;

fn main() -> ExitCode {
    pds_exporter::app::run::main(std::env::args_os(), std::env::vars_os())
}
