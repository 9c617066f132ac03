//! Help: the welcome, `tldr`, `help`, completions, the manual page.

use crate::cli::Outcome;
use crate::cli::args::Cli;
use crate::cli::complete;
use crate::cli::legacy;
use crate::cli::print::Output;
use tpu_ops::Error;
use tpu_ops::base::error::did_you_mean;
use tpu_wire::pages::{ManualDocument, ScriptDocument, TextDocument, WelcomeDocument};

/// The page of useful commands.
const TLDR: &str = include_str!("../../../assets/tldr.md");

/// What `tpu` alone says to somebody who has not begun yet.
pub(in crate::cli) fn welcome() -> Output {
    // Nobody has said yet how wide the terminal is: no line is longer than 80.
    let text = "tpu launches jobs in tmux windows, shows how they are, and brings them back.\n\n  \
        tpu demo              practise on real jobs: needs only tmux, leaves nothing\n  \
        tpu init              begin: in the directory of your code, be made known\n  \
        tpu init --from PATH  move in: look at the data.json of the original first\n  \
        tpu tldr              a page of useful commands\n  \
        tpu help              the commands on one screen\n\n\
        Then: tpu run local -- python3 main.py, and tpu monitor.\n";
    Output::new(text, &WelcomeDocument { begin: ["demo", "init", "tldr", "help"] })
}

/// `tldr`.
pub(in crate::cli) fn tldr() -> Output {
    Output::new(TLDR, &TextDocument { text: TLDR })
}

/// `help`, `help COMMAND`, `-h COMMAND`.
pub(in crate::cli) fn help(command: Option<&str>, all: bool) -> Outcome {
    let mut cli = Cli::definitions();
    cli.build();
    let text = match command {
        None if all => every_command(&cli),
        None => cli.render_help().ansi().to_string(),
        Some(typed) => subcommand(&mut cli, typed)?.render_help().ansi().to_string(),
    };
    let plain = anstream::adapter::strip_str(&text).to_string();
    Ok(Output::new(text, &TextDocument { text: &plain }))
}

/// A command by any of its spellings.
fn subcommand<'a>(cli: &'a mut clap::Command, typed: &str) -> Result<&'a mut clap::Command, Error> {
    if let Some(remedy) = legacy::gone(typed) {
        return Err(Error::refused(format!("tpu has no '{typed}', on purpose")).hint(remedy));
    }
    let spelling = legacy::COMMANDS.iter().find(|(spelling, _)| *spelling == typed);
    let name = spelling.map_or(typed, |(_, command)| command);
    let name = name.split(' ').next().unwrap_or(name);
    let known: Vec<String> = cli.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    cli.find_subcommand_mut(name).ok_or_else(|| {
        let hint = did_you_mean(typed, known.iter().map(String::as_str))
            .unwrap_or_else(|| "`tpu help --all` lists every command".to_owned());
        Error::usage(format!("there is no command '{typed}'")).hint(hint)
    })
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
pub(in crate::cli) fn completions(shell: clap_complete::Shell) -> Outcome {
    let text = complete::script(shell)?;
    Ok(Output::new(text.clone(), &ScriptDocument { script: &text }))
}

/// The manual page of `tpu`, or of one command, in roff.
pub(in crate::cli) fn man(command: Option<&str>) -> Outcome {
    let mut cli = Cli::definitions();
    cli.build();
    let of = match command {
        None => cli,
        Some(typed) => subcommand(&mut cli, typed)?.clone().name(format!("tpu-{typed}")),
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(of).render(&mut page).map_err(|e| {
        Error::failed(format!("cannot make the manual page: {e}"))
            .hint("`tpu help --all` shows the same")
    })?;
    let text = String::from_utf8_lossy(&page).into_owned();
    Ok(Output::new(text.clone(), &ManualDocument { roff: &text }))
}
