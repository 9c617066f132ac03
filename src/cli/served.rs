//! The command line as a server borrows it: routes that answer in its words run the command itself.

use std::ffi::OsString;
use std::sync::Arc;

use anstream::adapter::strip_str;

use tpu_core::model::ids::UserName;
use tpu_core::model::settings::{Layer, SettingOrigin};
use tpu_ops::base::setting_layers::Layers;
use tpu_ops::waiting::commands::{LentCommands, Told};
use tpu_ops::{Ctx, Error};

use super::app::App;
use super::args::Cli;
use super::{dispatch, legacy};

/// The commands of this program.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnCommands;

impl LentCommands for OwnCommands {
    fn words(&self) -> Vec<String> {
        legacy::command_words()
    }

    fn run(&self, ctx: Ctx, user: Option<&UserName>, words: &[String]) -> Result<Told, Error> {
        let typed: Vec<OsString> = words.iter().map(OsString::from).collect();
        let (cli, name) = Cli::parse_words(&typed).map_err(|error| {
            let said = error.to_string();
            let first = said.lines().next().unwrap_or_default();
            Error::usage(first.trim_start_matches("error: ")).hint("/docs says what there is")
        })?;
        let mut global = cli.global;
        // Nobody is there who could be asked.
        (global.yes, global.no_input) = (true, true);
        let ctx = match user {
            Some(user) => in_the_place_of(ctx, user)?,
            None => ctx,
        };
        let app = App::with(global, name, typed, ctx);
        let output = dispatch::run(app, cli.command)?;
        let (text, members) = output.said();
        // Colours are a terminal's.
        let plain = |text: &str| strip_str(text).to_string();
        let notes = output.notes.iter().map(|note| plain(note)).collect();
        Ok(Told { text: plain(&text), members, notes, code: output.code })
    }
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
