//! `tpu kjob`: the command line of the Kubernetes job manager, word for word. What has a command of ours is done by that;
//! the rest is answered from the cluster.

mod at;
mod delete;
mod import;
mod listed;
mod queue;
mod submit;
mod words;

use std::ffi::OsString;

use clap::ArgMatches;
use serde_json::json;

use tpu_engine::kinds::{KindAnswer, KindCommand};
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use super::{flavors, images};
use at::At;

pub(in super::super) use at::usual_target;

/// The command.
pub(in super::super) const COMMAND: KindCommand = KindCommand {
    command: words::command,
    spelled: words::spelled,
    destroys: words::destroys,
    run,
};

fn run(effects: &Effects, said: &ArgMatches) -> Result<KindAnswer, RunError> {
    let Some((name, of)) = said.subcommand() else { return Ok(begin(said)) };
    let named = || of.get_one::<String>(words::JOB).map_or("", String::as_str);
    let settings = || at::settings(effects, of.get_one::<String>(words::SETTINGS));
    match name {
        "resources-flavors" => Ok(flavors::listed(&settings()?)),
        "images" => images::listed(effects, &settings()?, images::filter(of)),
        "image-details" => images::detailed(effects, &settings()?, of),
        "queue" => {
            let settings = settings()?;
            let at = match of.get_one::<String>(words::CLUSTER) {
                Some(name) if !name.is_empty() => At::named(effects, name)?,
                Some(_) | None => At::find(effects, &settings)?,
            };
            queue::queue(&at, &settings, of)
        }
        "import" => import::import(effects, of.get_one::<String>(words::FILE)),
        "log" => {
            Err(RunError::usage("there is no command log", "did you mean: tpu kjob logs -j NAME"))
        }
        "submit" => submit::submit(&At::find(effects, &settings()?)?, &settings()?, of),
        "list" => listed::list(&At::find(effects, &settings()?)?),
        "details" => listed::details(&At::find(effects, &settings()?)?, named()),
        "logs" => listed::logs(&At::find(effects, &settings()?)?, named()),
        "delete" => {
            let at = At::find(effects, &settings()?)?;
            delete::delete(&at, of.get_one::<String>(words::JOB), of)
        }
        other => Err(RunError::usage(format!("there is no command {other}"), "tpu help kjob")),
    }
}

/// What it says without a command.
fn begin(said: &ArgMatches) -> KindAnswer {
    let version = env!("CARGO_PKG_VERSION");
    let answer = json!({"version": version});
    let line = format!("tpu {version}, which understands the Kubernetes job manager\n");
    let more = if said.get_flag(words::VERSION) { "" } else { words::EXAMPLES };
    KindAnswer { text: line + more, answer, ..KindAnswer::default() }
}

/// Words of our own command line.
fn ours(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
