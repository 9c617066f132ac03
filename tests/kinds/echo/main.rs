//! `tpu` with one kind of target more: the whole of what somebody writes who adds a kind.

mod disk;
mod echo;

use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    tpu::cli::main_with(tpu::built_in::kinds().and(Arc::new(echo::Echo)))
}
