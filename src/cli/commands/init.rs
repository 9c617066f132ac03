//! `tpu init`: begins, or looks at an installation of the original.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Init;
use crate::cli::console;
use crate::cli::legacy;
use crate::cli::print::Output;
use tpu_core::model::arguments::ArgumentStyle;
use tpu_core::model::ids::UserName;
use tpu_core::model::time::{LOCAL, Zone};
use tpu_core::text::counted;
use tpu_ops::base::account;
use tpu_ops::front::import;
use tpu_ops::front::init::{self, Beginning};
use tpu_ops::front::settings;
use tpu_ops::front::share;
use tpu_ops::waiting::users::{self, NewUser};
use tpu_ops::{Ctx, Error};
use tpu_wire::data::{BegunDocument, FoundDocument};

/// Begins.
pub(in crate::cli) fn run(app: App, args: &Init) -> Outcome {
    match (&args.from, &args.shared) {
        (Some(path), _) => move_in(&app, &app.env.cwd.join(path), args.adopt),
        (None, None) => begin(&app, args),
        (None, Some(dir)) => {
            let named = app.global.data.as_ref().map(|data| app.env.cwd.join(data));
            let app = app.in_directory(dir);
            if named.is_some_and(|data| Some(&data) != app.global.data.as_ref()) {
                let what = "--data or TPU_DATA names another state file than --shared";
                return Err(Error::usage(what).hint("leave one of both away"));
            }
            begin(&app, args)
        }
    }
}

fn begin(app: &App, args: &Init) -> Outcome {
    if let Some(zone) = args.time_zone.as_deref().filter(|zone| !Zone::is_known(zone)) {
        let what = format!(
            "--time-zone {zone}: no time zone that this machine knows; nothing was written"
        );
        return Err(Error::usage(what).hint(
            "local, us, cn, or one such as Europe/Berlin; `timedatectl list-timezones` lists them",
        ));
    }
    let named = args.name.clone().or(app.global.user.clone());
    let mut name = named.clone().unwrap_or(own_name(app)?);
    let mut dir = args.dir.as_ref().map_or(app.env.cwd.clone(), |dir| app.env.cwd.join(dir));
    let mut zone = args.time_zone.clone();
    let mut scripts = args.scripts;
    let mut style = ArgumentStyle::Flags;
    if app.may_ask() && !app.global.yes {
        if args.name.is_none() {
            // Whoever can say a better name than a number does.
            let is_known = named.is_some() || account::in_environment(&app.env).is_some();
            name = asked_name(app, if is_known { &name } else { "" })?;
        }
        if args.dir.is_none() {
            dir = asked_dir(app, &dir)?;
        }
        if zone.is_none() {
            let machine = app.env.local_zone();
            let local = match machine.iana_name() {
                Some(name) => format!("{LOCAL}: {name}"),
                None => LOCAL.to_owned(),
            };
            zone = Some(asked_zone(&local)?).filter(|answer| *answer != local && answer != LOCAL);
        }
        if !is_user(app, &name) {
            style = asked_style(style)?;
        }
        if !scripts && !dir.join("staging.sh").exists() {
            let answer = asked("Put example scripts there (y/n)", "n")?;
            scripts = matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes");
        }
    }
    // Whoever shares an account with others does not begin by taking it over.
    let acts_for =
        app.ctx()?.settings(None)?.user.filter(|user| *user != name && is_user(app, user));
    let mut values = Vec::new();
    if acts_for.is_none() {
        values.push(("user".to_owned(), Value::from(name.as_str())));
    }
    if let Some(data) = &app.global.data {
        values.push(("data".to_owned(), Value::from(app.env.cwd.join(data).to_string_lossy())));
    }
    let beginning = Beginning {
        user: NewUser {
            name: name.clone(),
            tmux_name: None,
            dir: None,
            time_zone: zone,
            commands: legacy::command_words(),
        },
        dir,
        scripts,
        settings: app.config_dir.as_ref().map(|dir| (dir.join("settings.json"), values)),
    };
    let mut said = match &args.shared {
        Some(dir) => share::set_up(app.ctx()?, &app.env.cwd.join(dir), args.group.as_deref())?,
        None => Vec::new(),
    };
    said.extend(init::begin(app.ctx()?, &beginning)?);
    said.extend(args.shared.as_ref().map(|dir| {
        format!("Each of the others types: tpu init --shared {}", app.env.cwd.join(dir).display())
    }));
    if style != ArgumentStyle::Flags {
        settings::set(app.ctx()?, &UserName::from(&*name), "arguments", style.as_str())?;
        said.push(format!(
            "Programs take lr=0.05 as {}: arguments is {}.",
            shown(style),
            style.as_str()
        ));
    }
    said.extend(acts_for.map(|user| {
        format!("Commands of this account that name no user still mean {user}: name {name}, or export TPU_USER={name}.")
    }));
    let text = format!(
        "{}\nNext: tpu run local -- python3 main.py, then tpu monitor. `tpu tldr` shows more.",
        said.join("\n")
    );
    Ok(Output::new(text, &BegunDocument { user: &name, done: &said }))
}

/// The name of this account as a user: the one that it has already, else one that it can have.
fn own_name(app: &App) -> Result<String, Error> {
    let account = account::account(&app.env);
    if is_user(app, &account) {
        return Ok(account);
    }
    Ok(users::name_of_account(app.ctx()?, &legacy::command_words()))
}

/// Asks for a name until there is one by which somebody can be called.
fn asked_name(app: &App, default: &str) -> Result<String, Error> {
    let commands = legacy::command_words();
    let refused = |name: &str| users::refuse_as_user(name, &commands).err();
    loop {
        let name = asked("Your name here", default)?;
        let problem = refused(&name).filter(|_| !is_user(app, &name));
        match problem {
            None => return Ok(name),
            Some(_) if name.is_empty() => {
                console::say("a name is needed: your jobs are listed by it; as in alice\n")?;
            }
            Some(problem) => console::say(&format!("{problem}: {}\n", problem.advice()))?,
        }
    }
}

/// Asks for a directory until there is one of that name. No shell has read the answer.
fn asked_dir(app: &App, here: &Path) -> Result<PathBuf, Error> {
    loop {
        let answer = asked("Directory of your code", &here.to_string_lossy())?;
        let dir = match answer.strip_prefix("~/") {
            Some(below) => app.env.home.join(below),
            None if answer == "~" => app.env.home.clone(),
            None => app.env.cwd.join(&answer),
        };
        if dir.is_dir() {
            return Ok(dir);
        }
        console::say(&format!("{} is not a directory\n", dir.display()))?;
    }
}

/// Asks for a time zone until it is one.
fn asked_zone(local: &str) -> Result<String, Error> {
    loop {
        let answer = asked("Time zone (us, cn, Europe/Berlin, …)", local)?;
        if answer == local || Zone::is_known(&answer) {
            return Ok(answer);
        }
        console::say(&format!(
            "'{answer}' is no time zone; as in Europe/Berlin, or Enter for {local}\n"
        ))?;
    }
}

/// What `lr=0.05` becomes.
fn shown(style: ArgumentStyle) -> &'static str {
    match style {
        ArgumentStyle::Flags => "--lr=0.05",
        ArgumentStyle::Hydra => "lr=0.05",
        ArgumentStyle::Config => "--config.training.learning_rate=0.05",
    }
}

/// Asks how programs take their arguments until it is one of the ways.
fn asked_style(default: ArgumentStyle) -> Result<ArgumentStyle, Error> {
    let ways: Vec<String> = [ArgumentStyle::Flags, ArgumentStyle::Hydra, ArgumentStyle::Config]
        .map(|style| format!("{} as {}", style.as_str(), shown(style)))
        .to_vec();
    let question = format!("How your programs take lr=0.05 ({})", ways.join(", "));
    loop {
        let answer = asked(&question, default.as_str())?;
        match ArgumentStyle::parse(&answer) {
            Some(style) => return Ok(style),
            None => console::say(&format!("'{answer}' is none of flags, hydra and config\n"))?,
        }
    }
}

fn is_user(app: &App, name: &str) -> bool {
    let data = app.ctx().and_then(Ctx::data);
    data.is_ok_and(|data| data.user(&UserName::from(name)).is_some())
}

/// Asks; an empty answer is the default.
fn asked(question: &str, default: &str) -> Result<String, Error> {
    let answer = console::ask(&format!("{question} [{default}]: "))?;
    let answer = answer.trim();
    Ok(if answer.is_empty() { default.to_owned() } else { answer.to_owned() })
}

fn move_in(app: &App, path: &Path, adopt: bool) -> Outcome {
    let ctx = app.ctx()?;
    let report = import::look(ctx, path, &legacy::command_words())?;
    let mut text = format!("{}\n", report.data.display());
    for user in &report.users {
        let jobs: Vec<String> =
            user.jobs.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let jobs = if jobs.is_empty() { "no jobs".to_owned() } else { jobs.join(", ") };
        text += &format!(
            "  user {}: tmux session {}, {}, {jobs}\n",
            user.name,
            user.tmux_name,
            counted(user.dirs, "directory")
        );
    }
    let (targets, aliases) = (counted(report.targets, "target"), counted(report.aliases, "alias"));
    text += &format!("  {targets}, {aliases}\n");
    if !report.unknown_keys.is_empty() {
        text += &format!("  keys of others, which stay: {}\n", report.unknown_keys.join(", "));
    }
    let list = |title: &str, lines: &[String]| {
        let mut block = String::new();
        for line in lines {
            block += &format!("  {}\n", tpu_core::text::escape(line));
        }
        if block.is_empty() { block } else { format!("{title}:\n{block}") }
    };
    text += &list("Beside it", &report.beside);
    text += &list("To know", &report.remarks);
    text += &list("What changes", &report.changes);
    let mut done = Vec::new();
    if adopt {
        let dir = app.config_dir.as_ref().ok_or_else(|| {
            Error::usage("there is no home directory to keep settings in")
                .hint(format!("export TPU_DATA={}", report.data.display()))
        })?;
        let values = [("data".to_owned(), Value::from(report.data.to_string_lossy()))];
        done.push(init::write_settings(ctx, &dir.join("settings.json"), &values)?);
        text += &format!("{}\nNext: tpu check\n", done.join("\n"));
    } else {
        text += &format!(
            "Try it: tpu check --data {0}\nUse it from now on: tpu init --from {0} --adopt\n",
            report.data.display()
        );
    }
    Ok(Output::new(text, &FoundDocument::from((&report, &*done))))
}
