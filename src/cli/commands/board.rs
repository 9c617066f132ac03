//! The board: `find`, `release`, `reserve`, `ssn`, `asn`, `board export|import`.

use std::path::Path;

use clap::builder::styling::AnsiColor;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Board, Find, Notes, Reserve, SheetFormat, SheetStep};
use crate::cli::console;
use crate::cli::print::{Output, paint};
use tpu_core::model::ids::UserName;
use tpu_core::model::time;
use tpu_core::plan::board::{Row, Standing, is_of};
use tpu_core::plan::types::TypeExpr;
use tpu_core::text::counted;
use tpu_ops::Error;
use tpu_ops::act::board::sheet::{self, GROUPS};
use tpu_ops::act::{board, selection};
use tpu_ops::base::error::did_you_mean;
use tpu_wire::board::{
    BoardDocument, NotesDocument, ReleasedDocument, ReservedDocument, SheetDocument,
    SheetImportDocument,
};
use tpu_wire::words::TimePart;

/// One of the commands about the board.
pub(in crate::cli) fn run(app: &App, command: &Board) -> Outcome {
    match command {
        Board::Find(args) => find(app, args),
        Board::Release(args) => release(app, &args.words),
        Board::Reserve(args) => reserve(app, args),
        Board::SetNotes(args) => notes(app, args, false),
        Board::AddNotes(args) => notes(app, args, true),
        Board::Sheet(args) => match &args.step {
            SheetStep::Export { format } => export(app, *format),
            SheetStep::Import { format, file } => import(app, *format, file),
        },
    }
}

/// How `find` shows targets, in the words of the original.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// One line for each, with everything that is known.
    Full,
    /// By group, names only.
    Category,
    /// By group, with who and why.
    CategoryNote,
}

fn find(app: &App, args: &Find) -> Outcome {
    let mut style = Style::CategoryNote;
    let mut types = Vec::new();
    for word in &args.words {
        if let Some(name) = word.strip_prefix("style=") {
            let known = [
                ("full", Style::Full),
                ("category", Style::Category),
                ("category_note", Style::CategoryNote),
            ];
            let found = known.iter().find(|(known, _)| *known == name).map(|(_, style)| *style);
            style = found.ok_or_else(|| {
                Error::usage(format!("style={name}: no such style")).hint(
                    did_you_mean(name, known.map(|(name, _)| name))
                        .unwrap_or_else(|| "full, category or category_note".to_owned()),
                )
            })?;
        } else {
            types.push(TypeExpr::parse(word).ok_or_else(|| {
                Error::usage(format!("'{word}' is no type"))
                    .hint("v2, v234, v3+, v*, v2-32, v5e; `tpu check-status` looks at one target")
            })?);
        }
    }
    let reclaimable = match (args.norm, args.pre) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    };
    let board = board::look(app.ctx()?)?;
    let wanted = |row: &&Row| {
        is_of(row, &types, reclaimable) && (args.deleted == (row.standing == Standing::Gone))
    };
    let rows: Vec<Row> = board.to_be_had().filter(wanted).cloned().collect();
    let text = match style {
        Style::Full => {
            let zone = app.zone(&*app.ctx()?.data()?, None)?;
            rows.iter().map(|row| full(row, &zone)).collect()
        }
        Style::Category | Style::CategoryNote => groups(&rows, style == Style::CategoryNote),
    };
    let text = if rows.is_empty() { "No such target.".to_owned() } else { text };
    let notes = rows
        .iter()
        .filter_map(|row| row.disagreement.as_ref().map(|said| format!("{}: {said}", row.label)));
    Ok(Output::new(text, &BoardDocument::from(&*rows)).notes(notes.collect()))
}

/// The groups of the original, in its order, each with its count.
fn groups(rows: &[Row], with_notes: bool) -> String {
    let mut parts = Vec::new();
    for (name, of) in GROUPS {
        let members: Vec<&Row> = rows.iter().filter(|row| of.contains(&row.standing)).collect();
        if members.is_empty() {
            continue;
        }
        let color = match name {
            "Free" => AnsiColor::Green,
            "Deleted/Preempted" => AnsiColor::Red,
            "Running" => AnsiColor::Blue,
            _ => AnsiColor::Yellow,
        };
        let head =
            format!("{} (Total: {})\n", paint(color, &format!("{name} TPUs")), members.len());
        let place = |row: &Row| format!("{} [{}]", row.label, row.zone.as_deref().unwrap_or("-"));
        let body = if name == "Free" || !with_notes {
            let names: Vec<String> = members
                .iter()
                .map(|row| match &row.user {
                    Some(user) => format!("{} ({user})", place(row)),
                    None => place(row),
                })
                .collect();
            format!("{}\n", names.join("; "))
        } else {
            let lines: Vec<String> =
                members.iter().map(|row| format!("{}{}", place(row), who(row))).collect();
            format!("{}\n", lines.join("\n"))
        };
        parts.push(format!("{head}{body}"));
    }
    parts.join("\n")
}

/// ` (user: notes)`, as far as it is known.
fn who(row: &Row) -> String {
    let notes = tpu_core::text::escape(&row.notes);
    match (&row.user, notes.is_empty()) {
        (Some(user), true) => format!(" ({user})"),
        (Some(user), false) => format!(" ({user}: {notes})"),
        (None, true) => String::new(),
        (None, false) => format!(" ({notes})"),
    }
}

/// Everything about one target, on one line.
fn full(row: &Row, zone: &time::Zone) -> String {
    let mut parts = vec![
        row.standing.as_str().to_owned(),
        row.accelerator.clone().unwrap_or_else(|| "-".to_owned()),
        row.zone.clone().unwrap_or_else(|| "-".to_owned()),
        row.pricing.as_str().to_owned(),
    ];
    parts.extend(row.user.clone());
    parts.extend(row.until.map(|until| format!("until {}", zone.stamp(until))));
    parts.extend(row.jobs.iter().map(ToString::to_string));
    parts.extend(row.tags.iter().map(|tags| format!("[{}]", tpu_core::text::escape(tags))));
    parts.extend(
        Some(tpu_core::text::escape(&row.notes).into_owned()).filter(|notes| !notes.is_empty()),
    );
    format!("{} ({}): {}\n", row.label, row.target, parts.join(", "))
}

/// A target and, if one was typed, a user.
fn target_and_user(
    app: &App,
    words: &[String],
    verb: &str,
) -> Result<(String, Option<UserName>), Error> {
    let data = app.ctx()?.data()?;
    let mut sorted = selection::sort(words, &data)?;
    let named = sorted.take("tpu");
    let mut targets: Vec<String> = named.into_iter().chain(sorted.rest.drain(..)).collect();
    // `tpu release v2-32-p2 ailce`: the word that is no target was meant for a user.
    if targets.len() == 2
        && let Some(at) = targets.iter().position(|word| data.resolve_target(word).is_none())
    {
        let word = targets.remove(at);
        let users = data.users().iter().map(|user| user.name.as_str());
        let hint = did_you_mean(&word, users);
        return Err(Error::not_found(format!("'{word}' is neither a user nor a target"))
            .hint(hint.unwrap_or_else(|| "`tpu list-users` lists the users".to_owned())));
    }
    sorted.nothing_else()?;
    match targets.as_slice() {
        [target] => {
            sorted.no_number()?;
            Ok((target.clone(), sorted.user))
        }
        [] if verb == "release" && (!sorted.windows.is_empty() || !sorted.numbers.is_empty()) => {
            let windows = sorted.windows.iter().map(|window| window.0);
            let first = windows.chain(sorted.numbers.iter().copied()).next().unwrap_or_default();
            Err(selection::no_job(&data, &first.to_string(), verb)
                .err()
                .unwrap_or_else(|| Error::usage("which target?")))
        }
        [] => Err(Error::usage("which target?").hint(format!("as in: tpu {verb} v2-32-p2"))),
        _ => Err(Error::usage("one target at a time, please")
            .hint(format!("as in: tpu {verb} v2-32-p2"))),
    }
}

fn release(app: &App, words: &[String]) -> Outcome {
    let (typed, user) = target_and_user(app, words, "release")?;
    let ctx = app.ctx()?;
    let user = user.or_else(|| app.global.user.as_deref().map(UserName::from));
    let (target, was_taken) = board::release(ctx, &typed, user.as_ref())?;
    let text =
        if was_taken { format!("{target} is free now.") } else { format!("{target} was free.") };
    Ok(Output::new(text, &ReleasedDocument { target: &target, was_taken }))
}

fn reserve(app: &App, args: &Reserve) -> Outcome {
    let (typed, user) = target_and_user(app, &args.words, "reserve")?;
    let seconds = time::parse_age(&args.time).ok_or_else(|| {
        Error::usage(format!("--for {}: not a time", args.time)).hint("as in 45m or 2h")
    })?;
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let user = app.user(&data, user)?;
    let (target, until) = board::reserve(ctx, &typed, &user, seconds)?;
    Ok(Output::new(
        format!("{target} is {user}'s for {}.", time::age(seconds)),
        &ReservedDocument { target: &target, user: &user, until: TimePart(until) },
    ))
}

fn notes(app: &App, args: &Notes, add: bool) -> Outcome {
    let text = args.notes.join(" ");
    let (target, notes) = board::set_notes(app.ctx()?, &args.target, text.trim(), add)?;
    let told = if notes.is_empty() {
        format!("{target} has no notes now.")
    } else {
        format!("Notes of {target}: {}", tpu_core::text::escape(&notes))
    };
    Ok(Output::new(told, &NotesDocument { target: &target, notes: &notes }))
}

fn export(app: &App, format: SheetFormat) -> Outcome {
    let table = sheet::table(app.ctx()?)?;
    let document = SheetDocument::from(&*table);
    let text = match format {
        SheetFormat::Csv => sheet::to_csv(&table)?,
        SheetFormat::Json => serde_json::to_string_pretty(&document.rows).unwrap_or_default(),
    };
    Ok(Output::new(text, &document))
}

fn import(app: &App, format: SheetFormat, file: &Path) -> Outcome {
    let bytes = read(file)?;
    let rows = match format {
        SheetFormat::Csv => sheet::from_csv(&bytes)?,
        SheetFormat::Json => sheet::from_json(&bytes)?,
    };
    let imported = sheet::import(app.ctx()?, &rows)?;
    let text = format!("{} of {} taken.", imported.taken.len(), counted(rows.len(), "row"));
    let notes = imported
        .refused
        .iter()
        .map(|(place, why)| format!("{place} was not taken: {}", tpu_core::text::escape(why)));
    let document = SheetImportDocument::from(&imported);
    let code = u8::from(!imported.refused.is_empty());
    Ok(Output::new(text, &document).notes(notes.collect()).code(code))
}

/// A file, or standard input.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, Error> {
    let read = if file == Path::new("-") { console::read_all() } else { std::fs::read(file) };
    read.map_err(|e| {
        Error::not_found(format!("cannot read {}: {e}", file.display()))
            .hint("check the spelling; - is standard input")
    })
}
