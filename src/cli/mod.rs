//! The command line: words in, one use case, text or JSON out.
//!
//! `legacy` rewrites historic spellings, `args` is clap's view, `resolve` turns words into requests,
//! `dispatch` names the one function in `commands` that each command calls, `print` shows the outcome.
//! No decision about jobs is taken here.

mod app;
pub mod args;
mod commands;
mod complete;
mod dispatch;
pub mod legacy;
mod print;
mod progress;
mod resolve;
mod screen;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::ops::Error;
use crate::sys::env::Env;

use args::Cli;
use print::Output;

/// Runs the program: the whole life of one `tpu` process.
pub fn main() -> ExitCode {
    // Does nothing unless the program is built with fail points, which only tests are.
    let _scenario = fail::FailScenario::setup();
    let words: Vec<OsString> = std::env::args_os().collect();
    let env = Env::read();
    let mut rewritten: Vec<OsString> = words.first().cloned().into_iter().collect();
    rewritten.extend(legacy::rewrite(words.iter().skip(1).cloned().collect()));

    if let Some(answered) = complete::answer(&env, &words) {
        return match answered {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => print::error(&error, &args::Globals::plain()),
        };
    }
    let parsed = Cli::command().try_get_matches_from(&rewritten).and_then(|matches| {
        let name = matches.subcommand_name().unwrap_or("tpu").to_owned();
        Cli::from_arg_matches(&matches).map(|cli| (cli, name))
    });
    let (cli, name) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return print::usage_error(&error, &rewritten),
    };
    let global = cli.global.clone();
    match dispatch::run(cli, &name, env) {
        Ok(output) => print::output(&output, &global),
        Err(error) => print::error(&error, &global),
    }
}

/// What a command returns.
type Outcome = Result<Output, Error>;
