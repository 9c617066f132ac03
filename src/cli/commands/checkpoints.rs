//! `tpu checkpoints`: listed, copied, cleared away.

use std::cell::RefCell;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{CheckpointsArgs, CheckpointsStep, Copy};
use crate::cli::print::{Output, table};
use crate::cli::progress::Transfer;
use tpu_core::model::bucket::BucketPlace;
use tpu_core::model::checkpoint_copy::{self, RegionPlace};
use tpu_core::model::data::User;
use tpu_core::model::lineage::Lineage;
use tpu_core::model::objects::StoragePlace;
use tpu_core::model::prices::Prices;
use tpu_core::plan::prune::{KeepRule, PruneFate};
use tpu_core::text::{self, counted, escape};
use tpu_ops::act::checkpoints::copy::{self, CopiedCheckpoint, CopyOrder};
use tpu_ops::act::checkpoints::find::{self, FoundCheckpoint};
use tpu_ops::act::checkpoints::listed::{self, CheckpointList};
use tpu_ops::act::checkpoints::prune::{self, PruneReport, PruneScope};
use tpu_ops::act::checkpoints::{across, shelf};
use tpu_ops::base::ctx::user_of;
use tpu_ops::waiting::whose::Purpose;
use tpu_ops::{Ctx, Error, Kind};
use tpu_wire::checkpoints::{
    CheckpointsDocument, CopiedCheckpointPart, CopiedCheckpointsDocument, PrunedDocument,
};

/// One of them.
pub(in crate::cli) fn run(app: &App, args: &CheckpointsArgs) -> Outcome {
    match &args.step {
        None => list(app, &args.words),
        Some(step) => act(app, step),
    }
}

/// One that acts.
pub(in crate::cli) fn act(app: &App, step: &CheckpointsStep) -> Outcome {
    match step {
        CheckpointsStep::Copy { from, to, source, all, step } => {
            let which = match (all, step) {
                (true, _) => Chosen::All,
                (false, Some(step)) => Chosen::Step(*step),
                (false, None) => Chosen::Newest,
            };
            copied(app, (from, to, source.as_deref()), which)
        }
        CheckpointsStep::Prune { words, keep, region, quiet } => {
            pruned(app, words, keep, (region.as_deref(), *quiet))
        }
    }
}

/// Whether `tpu cp` names a zone and no target: then it is a copy between regions, of all that is whole, as the original's.
pub(in crate::cli) fn of_cp(args: &Copy) -> Option<CheckpointsStep> {
    let anywhere = BucketPlace { location: "us".to_owned(), ..BucketPlace::default() };
    let is_zone = |word: &str| {
        anywhere.is_near(word).is_some() || anywhere.is_near(&format!("{word}-a")).is_some()
    };
    let is_here = args.from.starts_with("gs://") || !args.from.contains(':');
    let to = args.zone.as_ref().unwrap_or(&args.to);
    if !is_here || !is_zone(to) {
        return None;
    }
    let source = args.zone.is_some().then(|| args.to.clone());
    let (from, to) = (args.from.clone(), to.clone());
    Some(CheckpointsStep::Copy { from, to, source, all: true, step: None })
}

fn list(app: &App, words: &[String]) -> Outcome {
    let ctx = app.ctx()?;
    let (user, jobs) = app.requester()?.user_and_jobs(words)?;
    let list = listed::list(ctx, &user, &jobs)?;
    if list.found.is_empty()
        && !jobs.is_empty()
        && let Some((_, why)) = list.unknown.first()
    {
        return Err(Error::new(Kind::Unreachable, why.clone())
            .hint("nothing was changed; try again, or see what the others have: tpu checkpoints"));
    }
    let zone = app.zone(&*ctx.data()?, Some(&user))?;
    let rows = |list: &CheckpointList| {
        let row = |(id, one): &(tpu_core::model::ids::JobId, FoundCheckpoint)| {
            vec![
                id.to_string(),
                one.step.to_string(),
                text::bytes(one.bytes()),
                one.state.why().map_or_else(|| "yes".to_owned(), |why| format!("no: {why}")),
                one.written().map_or_else(|| "?".to_owned(), |at| zone.stamp(at)),
                escape(&one.place_in_words()).into_owned(),
            ]
        };
        list.found.iter().map(row).collect::<Vec<_>>()
    };
    let text = || {
        if list.found.is_empty() {
            return "No checkpoint was found.".to_owned();
        }
        table::columns(&["job", "step", "size", "complete", "written", "where"], &rows(&list))
    };
    let unknown = list.unknown.iter().map(|(place, why)| format!("{place}: {why}")).collect();
    Ok(Output::either(&app.global, text, || CheckpointsDocument::from(&list)).notes(unknown))
}

/// Which of several are copied.
#[derive(Clone, Copy)]
enum Chosen {
    Newest,
    All,
    Step(u64),
}

fn no_region(word: &str, places: &[RegionPlace]) -> Error {
    let error = Error::not_found(format!("checkpoint_copy names no place for {word}"));
    if places.is_empty() {
        return error.hint(
            "say where checkpoints lie: tpu set-settings checkpoint_copy '{\"us-central1\": \"gs://BUCKET/logs\"}'",
        );
    }
    let known: Vec<&str> = places.iter().map(|one| one.region.as_str()).collect();
    error.hint(format!(
        "it knows {}; or name a directory (./NAME) or gs:// address",
        known.join(", ")
    ))
}

/// Whether a word is a place, and not a region or a job.
fn is_place(word: &str) -> bool {
    word.contains('/') || word.starts_with('.')
}

fn place(ctx: &Ctx, word: &str) -> Result<StoragePlace, Error> {
    let place = StoragePlace::parse(word).map_err(Error::usage)?;
    Ok(match place {
        StoragePlace::Directory(dir) => StoragePlace::Directory(ctx.env.cwd.join(dir)),
        bucket @ StoragePlace::Bucket(_) => bucket,
    })
}

/// What is to be copied, and below which place it is to be.
struct CopyPlaces {
    found: Vec<FoundCheckpoint>,
    to: StoragePlace,
    /// The region that it leaves, and the other one.
    regions: Option<(String, String)>,
    /// What moving it costs, as its user says.
    prices: Prices,
}

fn places_of(
    app: &App,
    ctx: &Ctx,
    (from, to, source): (&str, &str, Option<&str>),
) -> Result<CopyPlaces, Error> {
    let data = ctx.data()?;
    let is_there = |word: &str| ctx.env.cwd.join(word).is_dir();
    let job = if is_place(from) || is_there(from) {
        None
    } else {
        Some(app.requester()?.one_job(&[from.to_owned()], Purpose::Look)?)
    };
    let user: Option<&User> = match &job {
        Some(id) => Some(user_of(&data, &id.user)?),
        None => app.requester()?.user_at_work(&data)?.and_then(|name| data.user(&name)),
    };
    let settings = ctx.settings(user)?;
    let (regions, prices) = (checkpoint_copy::places(&settings.checkpoint_copy), settings.prices);
    let pattern = find::pattern(ctx, user)?;
    let shelf = shelf::open(ctx).ok();
    let mut roots = match (&job, user) {
        (Some(id), Some(user)) => {
            let windows = Lineage::of(user, id.window).map(|of| of.windows).unwrap_or_default();
            let logs = windows.iter().rev().filter_map(|window| user.job(*window)?.log_dir.clone());
            logs.map(|log| place(ctx, &log)).collect::<Result<Vec<_>, _>>()?
        }
        _ => vec![place(ctx, from)?],
    };
    if let Some(source) = source {
        let of = checkpoint_copy::for_zone(&regions, source)
            .ok_or_else(|| no_region(source, &regions))?;
        let move_to = |root: &StoragePlace| {
            let (_, below) = checkpoint_copy::above(&regions, root)?;
            Some(of.place.join(&below))
        };
        roots = roots.iter().filter_map(move_to).collect();
    }
    let (mut found, mut root) = (Vec::new(), None);
    for one in roots {
        // A checkpoint itself is looked for in the directory in which it lies.
        let (one, name) = above(&one, pattern.as_ref());
        let all = find::below(ctx, shelf.as_ref(), &one, pattern.as_ref())?;
        let of_name = |of: &FoundCheckpoint| {
            let is_named = |name: &str| of.entries.iter().any(|entry| entry.below == name);
            name.as_deref().is_none_or(is_named)
        };
        found = all.into_iter().filter(of_name).collect();
        root = Some(one);
        if found.iter().any(|one| one.state.is_complete()) {
            break;
        }
    }
    let Some(root) = root else {
        return Err(Error::not_found(format!("{from} logs nowhere that is known"))
            .hint("name the directory or the gs:// address of its checkpoints"));
    };
    let here = checkpoint_copy::above(&regions, &root);
    let (to, there) = if is_place(to) {
        (place(ctx, to)?, None)
    } else {
        let there =
            checkpoint_copy::for_zone(&regions, to).ok_or_else(|| no_region(to, &regions))?;
        let Some((_, below)) = &here else {
            return Err(Error::usage(format!("{root} is below no place of checkpoint_copy"))
                .hint("name where the copy is to be: a directory or a gs:// address"));
        };
        (there.place.join(below), Some(there.region.clone()))
    };
    let there = there
        .or_else(|| checkpoint_copy::above(&regions, &to).map(|(place, _)| place.region.clone()));
    let here = here.map(|(place, _)| place.region.clone());
    let asked = |place: &StoragePlace| {
        let at = shelf.as_ref()?.place(ctx, place.bucket()?).ok()?;
        Some(at.location.to_ascii_lowercase())
    };
    let both = (asked(&root).or(here), asked(&to).or(there));
    let regions = match both {
        (Some(from), Some(to)) if !from.eq_ignore_ascii_case(&to) => Some((from, to)),
        _ => None,
    };
    Ok(CopyPlaces { found, to, regions, prices })
}

/// A place where checkpoints lie and, where one itself was named, its name there.
fn above(place: &StoragePlace, pattern: Option<&regex::Regex>) -> (StoragePlace, Option<String>) {
    if !find::is_one(place, pattern) {
        return (place.clone(), None);
    }
    match place {
        StoragePlace::Directory(dir) => match (dir.parent(), dir.file_name()) {
            (Some(parent), Some(name)) => (
                StoragePlace::Directory(parent.to_owned()),
                Some(name.to_string_lossy().into_owned()),
            ),
            _ => (place.clone(), None),
        },
        StoragePlace::Bucket(at) => {
            let (parent, name) = at.name.rsplit_once('/').unwrap_or(("", &at.name));
            let parent = tpu_core::model::objects::ObjectAt::new(&*at.bucket, parent);
            (StoragePlace::Bucket(parent), Some(name.to_owned()))
        }
    }
}

fn copied(app: &App, words: (&str, &str, Option<&str>), which: Chosen) -> Outcome {
    let ctx = app.ctx()?;
    let CopyPlaces { found, to, regions, prices } = places_of(app, ctx, words)?;
    let whole = found.iter().filter(|one| one.state.is_complete());
    let chosen: Vec<&FoundCheckpoint> = match which {
        Chosen::All => whole.collect(),
        Chosen::Newest => find::newest(&found).into_iter().collect(),
        Chosen::Step(step) => whole.filter(|one| one.step == step).collect(),
    };
    if chosen.is_empty() {
        let half: Vec<&str> = found.iter().filter_map(|one| one.state.why()).collect();
        let what = match half.first() {
            Some(why) => format!("no whole checkpoint of that kind is in {}: {why}", words.0),
            None => format!("no checkpoint of that kind is in {}", words.0),
        };
        return Err(Error::not_found(what).hint("`tpu checkpoints` lists those of jobs"));
    }
    let bytes: u64 = chosen.iter().map(|one| one.bytes()).sum();
    let price = |bytes: u64| regions.as_ref().map(|(from, _)| across::cost(&prices, from, bytes));
    let mut notes = Vec::new();
    if let Some(((from, there), cost)) = regions.as_ref().zip(price(bytes)) {
        notes.push(format!("{} from {from} to {there} costs {cost}", text::bytes(bytes)));
    }
    let shelf = shelf::open(ctx).ok();
    let bar = RefCell::new(Transfer::new(app, bytes));
    let (mut lines, mut parts, mut before) = (String::new(), Vec::new(), 0);
    for one in &chosen {
        let order = CopyOrder { from: (*one).clone(), to: to.clone() };
        let done = if app.global.dry_run {
            let (to, parts) = (order.place(), one.parts().count());
            CopiedCheckpoint { to, bytes: one.bytes(), parts, was_there: false }
        } else {
            copy::copy((ctx, shelf.as_ref()), &order, &mut |progress| {
                bar.borrow_mut().at(before + progress.there);
                Ok(())
            })?
        };
        before += one.bytes();
        let verb = match (app.global.dry_run, done.was_there) {
            (true, _) => "Would copy",
            (false, true) => "Was there already:",
            (false, false) => "Copied",
        };
        lines += &format!(
            "{verb} step {} ({}) to {}\n",
            one.step,
            text::bytes(done.bytes),
            escape(&done.to.to_string())
        );
        parts.push(CopiedCheckpointPart::from((*one, &done, price(done.bytes))));
    }
    let document = CopiedCheckpointsDocument { copied: parts, dry_run: app.global.dry_run };
    Ok(Output::new(lines, &document).notes(notes))
}

fn pruned(
    app: &App,
    words: &[String],
    keep: &[String],
    (region, quiet): (Option<&str>, bool),
) -> Outcome {
    let ctx = app.ctx()?;
    // `--keep newest 7`: the number is a job.
    let (rule, more) = match keep {
        [every, number, more @ ..] if every == "every" => {
            (vec![every.clone(), number.clone()], more)
        }
        [rule, more @ ..] => (vec![rule.clone()], more),
        [] => (Vec::new(), &[][..]),
    };
    let rule = KeepRule::parse(&rule).ok_or_else(|| {
        Error::usage(format!("--keep {}: nothing is kept by that", rule.join(" ")))
            .hint("newest, best, or every N, as in: --keep every 10k")
    })?;
    let words: Vec<String> = words.iter().chain(more).cloned().collect();
    let scope = if let Some(region) = region {
        PruneScope::Below(roots(ctx, region)?)
    } else {
        let (user, jobs) = app.requester()?.user_and_jobs(&words)?;
        PruneScope::Jobs(user, jobs)
    };
    let acts = app.global.yes && !app.global.dry_run;
    let report =
        if acts { prune::act(ctx, &scope, rule)? } else { prune::look(ctx, &scope, rule)? };
    let mut notes: Vec<String> = report
        .unread
        .iter()
        .map(|(place, why)| format!("{place}: {why}; nothing of its run goes"))
        .collect();
    if !acts && report.removed().next().is_some() {
        notes.push("nothing was removed; to do so: the same with -y".to_owned());
    }
    let text = told(&report, acts, quiet);
    Ok(Output::new(text, &PrunedDocument::from((&report, !acts))).notes(notes))
}

/// The places of a region or a continent.
fn roots(ctx: &Ctx, region: &str) -> Result<Vec<StoragePlace>, Error> {
    let data = ctx.data()?;
    let users = data.users().iter().map(Some).chain([None]);
    let mut all: Vec<RegionPlace> = Vec::new();
    for user in users {
        all.extend(checkpoint_copy::places(&ctx.settings(user)?.checkpoint_copy));
    }
    let continent = if region == "eu" { "europe" } else { region };
    let is_there = |one: &&RegionPlace| {
        let of = one.region.to_ascii_lowercase();
        of == region || of == continent || of.starts_with(&format!("{continent}-"))
    };
    let found: Vec<StoragePlace> =
        all.iter().filter(is_there).map(|one| one.place.clone()).collect();
    if found.is_empty() { Err(no_region(region, &all)) } else { Ok(found) }
}

fn told(report: &PruneReport, acts: bool, quiet: bool) -> String {
    if report.all.is_empty() {
        return "No checkpoint was found.".to_owned();
    }
    let mut rows = Vec::new();
    for one in &report.all {
        let (verb, why) = match one.fate {
            PruneFate::Remove if acts => ("removed", String::new()),
            PruneFate::Remove => ("would go", String::new()),
            PruneFate::Keep(_) if quiet => continue,
            PruneFate::Keep(why) => ("stays", why.to_owned()),
        };
        rows.push(vec![
            verb.to_owned(),
            one.found.step.to_string(),
            text::bytes(one.found.bytes()),
            escape(&one.found.place_in_words()).into_owned(),
            why,
        ]);
    }
    let bytes = report.removed().map(FoundCheckpoint::bytes).sum();
    let many = counted(report.removed().count(), "checkpoint");
    let verb = if acts { "Removed" } else { "Would remove" };
    format!("{}{verb} {many}, {}.", table::aligned(&rows), text::bytes(bytes))
}
