//! Help: the welcome, `tldr`, `help`, completions, the manual page.

use clap::CommandFactory as _;
use serde_json::json;

use crate::cli::Outcome;
use crate::cli::args::Cli;
use crate::cli::legacy;
use crate::cli::print::Output;
use crate::ops::Error;
use crate::ops::error::did_you_mean;

/// The page of useful commands.
const TLDR: &str = include_str!("../../../assets/tldr.md");

/// What `tpu` alone says to somebody who has not begun yet.
pub(in crate::cli) fn welcome() -> Output {
    let text = "tpu launches jobs in tmux windows, shows how they are and why, and brings them back.\n\n  \
        tpu demo              practise on real jobs; needs nothing but tmux, leaves nothing behind\n  \
        tpu add-user NAME     begin: make yourself known\n  \
        tpu set-cur 1         then, in the directory of your code: make it slot 1\n  \
        tpu tldr              a page of useful commands\n  \
        tpu help              every command\n";
    Output::new(text, json!({ "begin": ["demo", "add-user", "set-cur", "tldr", "help"] }))
}

/// `tldr`.
pub(in crate::cli) fn tldr() -> Output {
    Output::new(TLDR, json!({ "text": TLDR }))
}

/// `help`, `help COMMAND`, `-h COMMAND`.
pub(in crate::cli) fn help(command: Option<&str>, all: bool) -> Outcome {
    let mut cli = Cli::command();
    cli.build();
    let text = match command {
        None if all => every_command(&cli),
        None => cli.render_help().ansi().to_string(),
        Some(typed) => {
            let name = legacy::COMMANDS
                .iter()
                .find(|(spelling, _)| *spelling == typed)
                .map_or(typed, |(_, command)| command);
            let known: Vec<String> =
                cli.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
            let Some(sub) = cli.find_subcommand_mut(name) else {
                let hint = did_you_mean(typed, known.iter().map(String::as_str))
                    .unwrap_or_else(|| "`tpu help --all` lists every command".to_owned());
                return Err(Error::usage(format!("there is no command '{typed}'")).hint(hint));
            };
            sub.render_help().ansi().to_string()
        }
    };
    Ok(Output::new(
        text.clone(),
        json!({ "text": anstream::adapter::strip_str(&text).to_string() }),
    ))
}

/// One line for each command.
fn every_command(cli: &clap::Command) -> String {
    let mut text = String::new();
    for sub in cli.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        text += &format!("{:<22} {about}\n", sub.get_name());
    }
    text
}

/// The script that makes a shell ask `tpu` for completions.
pub(in crate::cli) fn completions(shell: clap_complete::Shell) -> Output {
    let mut cli = Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli, "tpu", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    Output::new(text.clone(), json!({ "script": text }))
}

/// The manual page, in roff.
pub(in crate::cli) fn man() -> Outcome {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(|e| Error::failed(format!("cannot make the manual page: {e}")))?;
    let text = String::from_utf8_lossy(&page).into_owned();
    Ok(Output::new(text.clone(), json!({ "roff": text })))
}
