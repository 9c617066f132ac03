//! The command line as a server borrows it: routes that answer in its words run the command itself.

use std::ffi::OsString;
use std::sync::Arc;

use anstream::adapter::strip_str;

use tpu_core::model::ids::UserName;
use tpu_core::model::settings::{Layer, SettingOrigin};
use tpu_ops::base::setting_layers::Layers;
use tpu_ops::waiting::commands::Told;
use tpu_ops::{Ctx, Error};

use super::Outcome;
use super::app::App;
use super::args::{Cli, Command};

/// Runs a command whose words a server was sent, for `user` where the request names one. Nobody is there who could be
/// asked. `run` is what carries a command out, however it came in.
pub(super) fn run_words(
    ctx: Ctx,
    user: Option<&UserName>,
    words: &[String],
    run: fn(App, Option<Command>) -> Outcome,
) -> Result<Told, Error> {
    let typed: Vec<OsString> = words.iter().map(OsString::from).collect();
    let (cli, name) = Cli::parse_words(&typed).map_err(|error| {
        let said = error.to_string();
        let first = said.lines().next().unwrap_or_default();
        Error::usage(first.trim_start_matches("error: ")).hint("/docs says what there is")
    })?;
    let mut global = cli.global;
    (global.yes, global.no_input) = (true, true);
    let ctx = match user {
        Some(user) => in_the_place_of(ctx, user)?,
        None => ctx,
    };
    let output = run(App::with(global, name, typed, ctx), cli.command)?;
    let (text, members) = output.said();
    // Colours are a terminal's.
    let plain = |text: &str| strip_str(text).to_string();
    let notes = output.notes.iter().map(|note| plain(note)).collect();
    Ok(Told { text: plain(&text), members, notes, code: output.code })
}

/// The same surroundings where this user is at work.
fn in_the_place_of(ctx: Ctx, user: &UserName) -> Result<Ctx, Error> {
    let mut stack = (*ctx.layers.now()).clone();
    let origin = SettingOrigin::Environment("the request".to_owned());
    let mut layer = Layer::default();
    layer.set("user", user.as_str(), &origin)?;
    stack.push((origin, layer));
    Ok(Ctx { layers: Arc::new(Layers::fixed(stack)), ..ctx })
}
