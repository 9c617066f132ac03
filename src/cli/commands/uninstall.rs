//! `tpu uninstall`: what tpu has put outside its data is listed, and removed with a yes.

use std::path::{Path, PathBuf};

use clap_complete::Shell;

use crate::cli::Outcome;
use crate::cli::app::{App, Undone};
use crate::cli::complete;
use crate::cli::print::{Output, table};
use crate::cli::progress::Progress;
use tpu_core::model::ids::UserName;
use tpu_core::text::escape;
use tpu_ops::base::code_dir;
use tpu_ops::front::uninstall::{self, CompletionFile, Leftover, Leftovers, Silent, Uninstalled};
use tpu_ops::{Ctx, Error, Kind};
use tpu_wire::leaving::{FailedLeftoverPart, LeftoverPart, SilentPart, UninstallDocument};
use tpu_wire::words::Word;

/// `uninstall`.
pub(in crate::cli) fn run(app: &App) -> Outcome {
    let ctx = app.ctx()?;
    let users = users(app)?;
    // A dry run writes nothing, and lists what would be removed once they are recorded.
    if !users.is_empty() {
        uninstall::record_ends(ctx);
    }
    let mut found = {
        let _line = Progress::new(app, "asking hosts and clusters");
        uninstall::find(ctx, &users, &completion_files(app))?
    };
    found.stays.extend(rc_lines(app));
    found.stays.extend(data_stays(ctx));
    let listed = listed(&found);
    if app.global.dry_run || found.items.is_empty() {
        let text = if found.items.is_empty() {
            format!("There is nothing to remove outside the data.\n{listed}")
        } else {
            format!("Would remove:\n{listed}")
        };
        let document = document(true, &found.items, &[], &found);
        return Ok(Output::new(text, &document).code(code(None, &found)));
    }
    if app.asks() {
        app.tell("This is to be removed:");
        listed.lines().for_each(|line| app.tell(line));
    }
    app.agree("Remove it?", Undone { what: "nothing was removed", hint: "`-y` answers yes" })?;
    let items = std::mem::take(&mut found.items);
    let done = {
        let _line = Progress::new(app, "removing");
        uninstall::remove(ctx, items)
    };
    let document = document(false, &done.gone, &done.failed, &found);
    let text = told(&done, &found);
    Ok(Output::new(text, &document).code(code(done.trouble(), &found)))
}

/// Whose jobs are meant elsewhere: those of the person who types it, or of the only user. Without a data file nobody's.
fn users(app: &App) -> Result<Vec<UserName>, Error> {
    match app.ctx()?.data() {
        Ok(data) if data.users().is_empty() => Ok(Vec::new()),
        Ok(data) => Ok(vec![app.user(&data, None)?]),
        // What is wrong with it is said where it is read.
        Err(_) => Ok(Vec::new()),
    }
}

/// Where completions may have been put, each with what tpu prints for that shell.
fn completion_files(app: &App) -> Vec<CompletionFile> {
    let (data, config) = (dir(app, "XDG_DATA_HOME", ".local/share"), config(app));
    let places = [
        (Shell::Bash, data.join("bash-completion/completions/tpu")),
        (Shell::Zsh, data.join("zsh/site-functions/_tpu")),
        (Shell::Zsh, app.env.home.join(".zfunc/_tpu")),
        (Shell::Fish, config.join("fish/completions/tpu.fish")),
    ];
    let file = |(shell, path)| Some(CompletionFile { path, text: complete::script(shell).ok()? });
    places.into_iter().filter_map(file).collect()
}

/// Files of a person in which a shell is told to ask tpu for completions. They are the person's: each line is named.
fn rc_lines(app: &App) -> Vec<String> {
    let home = &app.env.home;
    let files = [
        home.join(".bashrc"),
        home.join(".bash_profile"),
        home.join(".zshrc"),
        config(app).join("fish/config.fish"),
    ];
    let mut found = Vec::new();
    for file in files {
        let Ok(text) = tpu_system::sys::files::read(&file) else { continue };
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().position(|line| line.contains("tpu completions"));
        if let Some(line) = line {
            let place = file.display();
            found.push(format!("line {} of {place} asks tpu for completions; delete it", line + 1));
        }
    }
    found
}

fn config(app: &App) -> PathBuf {
    dir(app, "XDG_CONFIG_HOME", ".config")
}

fn dir(app: &App, variable: &str, usual: &str) -> PathBuf {
    let said = app.env.non_empty(variable).map(PathBuf::from);
    said.unwrap_or_else(|| app.env.home.join(usual))
}

/// What of the data stays, and how it is taken along and removed.
fn data_stays(ctx: &Ctx) -> Vec<String> {
    let shown = |path: &Path| escape(&code_dir::shown(ctx, &path.to_string_lossy())).into_owned();
    let paths = ctx.store.paths();
    let mut stays = Vec::new();
    if paths.data().exists() {
        stays.push(format!(
            "your data: {}, {} and {} (tpu export DIR writes them as CSV and JSON; once no job runs, rm -r removes them)",
            shown(paths.data()),
            shown(&paths.state()),
            shown(&paths.backups())
        ));
    }
    let settings = ctx.secrets.as_deref().and_then(Path::parent);
    if let Some(settings) = settings.filter(|dir| dir.exists()) {
        stays.push(format!("your settings, secrets and keys: {}", shown(settings)));
    }
    stays.push(format!("this program: {} (remove it as you installed it)", shown(&ctx.tpu)));
    stays
}

fn rows<'a>(items: impl Iterator<Item = &'a Leftover>) -> String {
    let row = |item: &Leftover| {
        let words = [item.kind.as_str(), item.place.as_str(), item.what.as_str()];
        words.iter().map(|word| escape(word).into_owned()).collect()
    };
    table::aligned(&items.map(row).collect::<Vec<Vec<String>>>())
}

fn listed(found: &Leftovers) -> String {
    format!("{}{}{}", rows(found.items.iter()), silent(&found.silent), stays(&found.stays))
}

fn silent(silent: &[Silent]) -> String {
    let line = |of: &Silent| {
        format!("  {}: {}\n", escape(&of.place), escape(of.why.lines().next().unwrap_or_default()))
    };
    let lines: String = silent.iter().map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!(
        "No answer, so that files or objects may stay there (the same again, later, finishes):\n{lines}"
    )
}

fn stays(stays: &[String]) -> String {
    let lines: Vec<String> = stays.iter().map(|line| format!("  {line}\n")).collect();
    format!("Stays:\n{}", lines.concat())
}

fn told(done: &Uninstalled, found: &Leftovers) -> String {
    let mut text = String::new();
    if !done.gone.is_empty() {
        text += &format!("Removed:\n{}", rows(done.gone.iter()));
    }
    for (item, error) in &done.failed {
        let why = error.message.lines().next().unwrap_or_default();
        text += &format!(
            "Not removed: {}: {} ({})\n",
            escape(&item.place),
            escape(why),
            error.advice()
        );
    }
    text + &silent(&found.silent) + &stays(&found.stays)
}

fn document<'a>(
    listed_only: bool,
    removed: &'a [Leftover],
    failed: &'a [(Leftover, Error)],
    found: &'a Leftovers,
) -> UninstallDocument<'a> {
    let failed = failed.iter().map(|(item, error)| FailedLeftoverPart {
        kind: Word(item.kind),
        place: &item.place,
        why: &error.message,
    });
    UninstallDocument {
        listed_only,
        removed: removed.iter().map(LeftoverPart::from).collect(),
        failed: failed.collect(),
        silent: found.silent.iter().map(SilentPart::from).collect(),
        stays: &found.stays,
    }
}

/// That something did not answer comes first: the same command finishes it.
fn code(trouble: Option<Kind>, found: &Leftovers) -> u8 {
    let silent = (!found.silent.is_empty()).then_some(Kind::Unreachable);
    silent.or(trouble).map_or(0, Kind::exit_code)
}
