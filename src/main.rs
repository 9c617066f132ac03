//! The `tpu` program: read the command line, run it, print at most one error, return its exit code.
use std::process::ExitCode;

/// Gives memory back that a screen or a daemon has held for a moment; see `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    tpu::cli::main()
}
