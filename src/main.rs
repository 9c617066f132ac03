//! The `tpu` program: read the command line, run it, print at most one error, return its exit code.
use std::process::ExitCode;

fn main() -> ExitCode {
    tpu::cli::main()
}
