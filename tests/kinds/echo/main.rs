//! `tpu` with one kind of target more: the whole of what somebody writes who adds a kind.

mod disk;
mod echo;

use std::process::ExitCode;
use std::sync::Arc;

use tpu::kinds::Kinds;

fn main() -> ExitCode {
    tpu::cli::main_with(Kinds::built_in().and(Arc::new(echo::Echo)))
}
