//! The command line: words in, one use case, text or JSON out.
//!
//! `legacy` rewrites historic spellings, `args` is clap's view, `ops::act::selection` turns words into requests,
//! `dispatch` names the one function in `commands` that each command calls, `print` shows the outcome.
//! No decision about jobs is taken here.

mod app;
pub mod args;
#[cfg(feature = "page")]
mod browser;
mod commands;
mod complete;
mod console;
mod dashes;
#[cfg(feature = "lab")]
mod demo;
mod dispatch;
mod keys;
mod left_out;
pub mod legacy;
mod print;
mod progress;
mod screen;
mod screen_settings;
#[cfg(feature = "page")]
mod serve;
#[cfg(feature = "lab")]
mod sim;
mod verb;
mod whose;

pub use dispatch::nature;
#[cfg(not(feature = "page"))]
use left_out::serve;
#[cfg(not(feature = "lab"))]
use left_out::{demo, sim};

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use tpu_engine::kinds::Kinds;
use tpu_ops::Error;
use tpu_system::sys::clock;
use tpu_system::sys::env::Env;

use app::App;
use args::Cli;
use print::Output;

/// Runs the program: the whole life of one `tpu` process.
pub fn main() -> ExitCode {
    main_with(crate::built_in::kinds())
}

/// The same for a program that has other kinds of target.
pub fn main_with(kinds: Kinds) -> ExitCode {
    args::have_kinds(kinds);
    // Does nothing unless the program is built with fail points, which only tests are.
    let _scenario = fail::FailScenario::setup();
    let words: Vec<OsString> = std::env::args_os().collect();
    let env = Env::read();
    if let Some(answered) = complete::answer(&env, &words) {
        return match answered {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => print::error(&error, &args::Globals::plain()),
        };
    }
    let typed = typed(words);
    let rewritten = legacy::rewrite(typed.clone());
    let (cli, name) = match Cli::parse_words(&rewritten) {
        Ok(parsed) => parsed,
        Err(error) => return print::usage_error(&error, &typed),
    };
    let mut global = cli.global.or_of(&env);
    let command = cli.command.as_ref();
    global.window_of = command.and_then(|it| commands::callbacks::speaks_in_window_of(it, &env));
    if !clock::is_sane() {
        let error = Error::state("the clock of this machine shows a year beyond 9999")
            .hint("set it (`date` shows it); every time that is noted would be wrong");
        return print::error(&error, &global);
    }
    let mut app = App::new(global.clone(), env, name, typed);
    app.onlooker = progress::onlooker(global.json);
    match dispatch::run(app, cli.command) {
        Ok(output) => print::output(&output, &global),
        Err(error) => print::error(&error, &global),
    }
}

/// The words behind the program's name. A link to the program that is called `cms` is `tpu cms`, and so with `jobman`.
fn typed(words: Vec<OsString>) -> Vec<OsString> {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let name = Path::new(&program).file_name().filter(|name| *name != "tpu");
    let Some(name) = name else { return words.collect() };
    let brought: Vec<_> = args::kind_commands().map(|it| (it.command)()).collect();
    let links = brought.iter().flat_map(clap::Command::get_all_aliases).chain(["cms", "jobman"]);
    let of_other = links.into_iter().any(|link| name == link).then_some(name);
    of_other.map(OsString::from).into_iter().chain(words).collect()
}

/// What a command returns.
type Outcome = Result<Output, Error>;
