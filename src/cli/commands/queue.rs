//! `submit`, `queue`, `hold`, `unhold`, `dequeue`, `priority`: what waits, in which order, and why.

use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Subcommand as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::Outcome;
use crate::cli::app::{App, Undone, asked_to_end};
use crate::cli::args::{
    Dequeue, HoldJobs, JobOptions, QueueCommand, QueueStep, RunQueue, SetPriority, SetQueue,
    Submit, TypeOptions,
};
use crate::cli::console;
use crate::cli::print::Output;
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, QueueName, UserName};
use tpu_core::model::queue::{Queue, QueuePolicy, QueueState};
use tpu_core::model::spec::{AnyOf, TargetRequest};
use tpu_core::model::time;
use tpu_core::plan::queue::EntryStanding;
use tpu_core::plan::types::parse_type;
use tpu_core::text::{counted, escape, is_a_slip};
use tpu_ops::act::selection::{self, Sorted};
use tpu_ops::base::called::WaitingCalled;
use tpu_ops::base::ctx::user_of;
use tpu_ops::base::error::did_you_mean;
use tpu_ops::base::named;
use tpu_ops::base::watch;
use tpu_ops::front::queue_list::{self, ListedEntry};
use tpu_ops::waiting::queue::edit::{self, QueueEdit};
use tpu_ops::waiting::queue::expected;
use tpu_ops::waiting::queue::field::Avoided;
use tpu_ops::waiting::queue::members::take_out as take_members_out;
use tpu_ops::waiting::queue::pass::{self, Passage};
use tpu_ops::waiting::queue::places;
use tpu_ops::waiting::queue::{self, why};
use tpu_ops::waiting::whose::{About, Purpose};
use tpu_ops::waiting::words::{nobody_starts, wants};
use tpu_ops::{Ctx, Error, Kind};
use tpu_wire::queue::{
    QueueChangedDocument, QueueDocument, QueueEntryDocument, QueueEntryPart, QueuePart,
    WaitingChangedDocument, members,
};

use super::submit::submit;
use super::waiting::{
    agree_to_change, in_words, needs_question, never_began, of_several, priority, refuse_hopeless,
    still_waiting,
};

/// `explain` of what waits: the entry that the words call, if they call one.
pub(super) fn explain(app: &App, words: &[String]) -> Result<Option<Output>, Error> {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    if data.queues().entries.is_empty() {
        return Ok(None);
    }
    let mut sorted = selection::sort(words, &data)?;
    let called = sorted.take_jobs(&data)?;
    let about = About { word: sorted.user.take(), purpose: Purpose::Look, jobs: &called };
    let [word] = called.as_slice() else { return Ok(None) };
    let Ok(user) = app.requester()?.user(&data, &about) else { return Ok(None) };
    let called = word.waiting(&data, &user);
    let Some(id) = called.first().map(|called| &called.id) else { return Ok(None) };
    let Some(seen) = Seen::of(ctx, &data, id)? else { return Ok(None) };
    let text = seen.in_words(ctx);
    let document = QueueEntryDocument { entry: QueueEntryPart::from(&seen.listed) };
    Ok(Some(Output::new(text, &document).notes(nobody_starts(ctx))))
}

/// Why an entry waits, for people; `None` where it does not wait any more.
pub(in crate::cli) fn why_it_waits(ctx: &Ctx, id: &JobId) -> Result<Option<String>, Error> {
    let data = ctx.data()?;
    Ok(Seen::of(ctx, &data, id)?.map(|seen| seen.in_words(ctx)))
}

/// More of those in front are counted, and not named.
const MOST_AHEAD: usize = 20;

/// An entry with how it stands, and who is in front of it in its queue.
struct Seen<'a> {
    listed: ListedEntry<'a>,
    ahead: Vec<String>,
    /// What would help one that begins nowhere as things are set up.
    advice: Option<String>,
}

impl<'a> Seen<'a> {
    fn of(ctx: &Ctx, data: &'a Data, id: &JobId) -> Result<Option<Self>, Error> {
        let entries = &data.queues().entries;
        let Some(at) = entries.iter().position(|entry| entry.id() == *id) else { return Ok(None) };
        let Some(entry) = entries.get(at) else { return Ok(None) };
        let mut ahead = Vec::new();
        let is_it = |other: &QueueEntry| other.id() == *id;
        let mut standings = queue::standings(ctx, data, &Avoided::new())?;
        let begins = |of: &EntryStanding<_>| of.entry == at && of.waits.is_none();
        let would_begin = standings.iter().any(begins);
        places::tell(ctx, data, &mut standings, &is_it);
        for standing in standings {
            if standing.entry == at {
                let mut all = expected::expected(ctx, data, &is_it, expected::OF_ONE)?;
                // A machine that does not answer tells nobody when it will.
                let is_foreseen = standing.waits.is_none() || !would_begin;
                let expected = all.remove(id).filter(|_| is_foreseen);
                let mut never = places::hopeless(ctx, data, &|_| true).into_iter();
                let never = never.find(|(hopeless, _)| hopeless == id);
                let advice = never.and_then(|(_, error)| error.hint);
                let listed = ListedEntry { entry, standing, expected };
                return Ok(Some(Self { listed, ahead, advice }));
            }
            let other = entries.get(standing.entry).filter(|other| other.queue == entry.queue);
            ahead.extend(other.map(|other| format!("{} ({})", other.id(), why(ctx, &standing))));
        }
        Ok(None)
    }

    fn in_words(&self, ctx: &Ctx) -> String {
        let Self { listed: ListedEntry { entry, standing, expected }, ahead, advice } = self;
        let word = if entry.held.is_some() { "held" } else { "queued" };
        let mut text = format!("{} is {word}\n", entry.id());
        text += &format!(
            "place: {} in {}, priority {}\n",
            standing.position, entry.queue, entry.priority
        );
        text += &format!("wants: {}\n", wants(&entry.spec.target));
        if let Some(by) = &entry.spec.execution.submitted_by {
            text += &format!("submitted: by {}\n", escape(by));
        }
        if !entry.spec.execution.only_on.is_none() {
            text += &format!("only on: {}\n", escape(&entry.spec.execution.only_on.to_string()));
        }
        if let TargetRequest::Any(AnyOf { order: Some(order), .. }) = &entry.spec.target {
            text += &format!("order: {order}\n");
        }
        text += &format!("why: {}\n", why(ctx, standing));
        if let Some(hint) = advice {
            text += &format!("next: {hint}\n");
        }
        let now = ctx.clock.now();
        if let Some(starts) = expected.as_ref().and_then(|expected| expected.in_words(now)) {
            text += &format!("start: {starts}\n");
        }
        if !ahead.is_empty() {
            let shown = ahead.get(..ahead.len().min(MOST_AHEAD)).unwrap_or_default();
            let more = ahead.len() - shown.len();
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            text += &format!("ahead: {}{more}\n", shown.join("; "));
        }
        if let Some(members) = members(entry) {
            text += &format!("members: {} wait\n", members.len());
        }
        if let Some(sweep) = &entry.sweep {
            text += &format!("sweep: {}\n", sweep.in_words());
        }
        let waited = time::age(ctx.clock.now().seconds_since(entry.since));
        text += &format!("since: {waited}\n");
        text
    }
}

/// `queue …`.
pub(in crate::cli) fn run(app: &App, args: &QueueCommand) -> Outcome {
    let state = |name: &str, state: QueueState| {
        changed(app, name, &QueueEdit { state: Some(state), ..QueueEdit::default() }, edit::set)
    };
    match &args.step {
        None if submits(args) => {
            refuse_mistyped_step(app, &args.words)?;
            as_in_the_original(app, args)
        }
        None => {
            refuse_mistyped_step(app, &args.words)?;
            list(app, &args.words)
        }
        Some(QueueStep::List(some)) => list(app, &some.words),
        Some(QueueStep::Create(args)) => changed(app, &args.queue, &said(args)?, edit::create),
        Some(QueueStep::Set(args)) => changed(app, &args.queue, &said(args)?, edit::set),
        Some(QueueStep::Remove(of)) => {
            edit::remove(app.ctx()?, &QueueName::new(of.queue.clone()))?;
            let text = format!("Queue {} is forgotten.", of.queue);
            Ok(Output::new(text, &QueueChangedDocument { queue: None }))
        }
        Some(QueueStep::Pause(of)) => state(&of.queue, QueueState::Paused),
        Some(QueueStep::Resume(of)) => state(&of.queue, QueueState::Open),
        Some(QueueStep::Drain(of)) => state(&of.queue, QueueState::Draining),
        Some(QueueStep::Run(args)) => dispatch(app, args),
    }
}

/// Refuses a first word that resembles a command of `queue` and names nothing else.
fn refuse_mistyped_step(app: &App, words: &[String]) -> Result<(), Error> {
    let Some(word) = words.first().filter(|word| !word.contains('=')) else { return Ok(()) };
    let data = app.ctx()?.data()?;
    let is_known = data.user(&UserName::from(word.as_str())).is_some()
        || data.resolve_target(word).is_some()
        || parse_type(word).is_some()
        || named::is_of_several(&data, word)
        || data.queues().queue(&QueueName::new(word.clone())).is_some();
    let steps = QueueStep::augment_subcommands(clap::Command::new("queue"));
    let mut names = steps.get_subcommands().map(clap::Command::get_name);
    match names.find(|name| is_a_slip(word, name)).filter(|_| !is_known) {
        Some(near) => Err(Error::usage(format!("there is no command 'queue {word}'"))
            .hint(format!("did you mean '{near}'?"))),
        None => Ok(()),
    }
}

/// Whether `queue` is followed by more than one word: then it is about something to be submitted, as in the original.
pub(in crate::cli) fn submits(args: &QueueCommand) -> bool {
    args.step.is_none() && args.words.len() > 1
}

/// `queue USER [DIR] [TYPES] …`. Whose turn it is needs no permission here: what waits begins where there is a place.
fn as_in_the_original(app: &App, args: &QueueCommand) -> Outcome {
    let is_permission = |word: &String| word.starts_with("pm=");
    let (permissions, mut words): (Vec<String>, Vec<String>) =
        args.words.iter().cloned().partition(is_permission);
    if args.ask_notes && !words.iter().any(|word| word.starts_with("ssn=")) {
        if !app.may_ask() {
            return Err(Error::usage("-ssn asks for notes, and there is nobody to ask")
                .hint("give them: ssn=NOTES"));
        }
        words.push(format!("ssn={}", console::ask("Notes: ")?));
    }
    let notes: Vec<String> =
        permissions.iter().map(|word| permission(word)).collect::<Result<_, _>>()?;
    let data = app.ctx()?.data()?;
    let (zone, words) = words.into_iter().partition(|word| is_zone(&data, word));
    let typed = Submit {
        words,
        no_tag: args.no_tag,
        of_type: TypeOptions { zone, ..TypeOptions::default() },
        of_job: JobOptions { log_stage: args.log_stage, ..JobOptions::default() },
        ..Submit::default()
    };
    Ok(submit(app, &typed)?.notes(notes))
}

/// Whether a word names a zone, a region or a continent, and no target or user.
fn is_zone(data: &Data, word: &str) -> bool {
    const CONTINENTS: [&str; 9] =
        ["us", "eu", "europe", "asia", "northamerica", "southamerica", "australia", "me", "africa"];
    let is_known =
        data.resolve_target(word).is_some() || data.user(&UserName::from(word)).is_some();
    let mut parts = word.split('-');
    let is_continent = parts.next().is_some_and(|first| CONTINENTS.contains(&first));
    let is_region =
        parts.next().is_none_or(|region| region.ends_with(|c: char| c.is_ascii_digit()));
    !is_known && is_continent && is_region || data.registry().zones().any(|(zone, _)| zone == word)
}

/// What a permission of the original says, and that it is not needed: its first digit is about targets whose job has
/// failed, its second about those whose job has finished; of each 1 is one's own, 2 another's, 3 both.
fn permission(word: &str) -> Result<String, Error> {
    const WHOSE: [&str; 4] = ["none", "your own", "others'", "everybody's"];
    let digits: Vec<char> = word.trim_start_matches("pm=").chars().collect();
    let whose = |digit: &char| WHOSE.get(digit.to_digit(10)? as usize);
    let [failed, finished] = digits.as_slice() else { return Err(no_permission(word)) };
    let (Some(failed), Some(finished)) = (whose(failed), whose(finished)) else {
        return Err(no_permission(word));
    };
    Ok(format!(
        "{word} is not needed (targets whose job has failed: {failed}; finished: {finished}): it begins on the first \
         of its targets that is free, whoever had it"
    ))
}

fn no_permission(word: &str) -> Error {
    Error::usage(format!("{word}: a permission is two digits from 0 to 3"))
        .hint("leave it out: it begins on the first target that is free; or as in pm=01")
}

/// What was said of a queue.
fn said(args: &SetQueue) -> Result<QueueEdit, Error> {
    let policy = args.policy.as_deref().map(|word| {
        QueuePolicy::parse(word).ok_or_else(|| {
            let known = QueuePolicy::ALL.map(QueuePolicy::as_str);
            let hint = did_you_mean(word, known).unwrap_or_else(|| known.join(", "));
            Error::usage(format!("--policy {word}: no such policy")).hint(hint)
        })
    });
    let most = args.max_parallel.as_deref().map(|text| match text {
        "none" => Ok(None),
        text => text.parse().ok().filter(|most| *most > 0).map(Some).ok_or_else(|| {
            Error::usage(format!("--max-parallel {text}: no number of jobs"))
                .hint("as in --max-parallel 3, or none")
        }),
    });
    let on = match args.on.as_slice() {
        [] => None,
        [none] if none == "none" => Some(Vec::new()),
        on => Some(on.to_vec()),
    };
    Ok(QueueEdit { policy: policy.transpose()?, max_parallel: most.transpose()?, on, state: None })
}

fn changed(
    app: &App,
    name: &str,
    edit: &QueueEdit,
    change: fn(&Ctx, &QueueName, &QueueEdit) -> Result<Queue, Error>,
) -> Outcome {
    let queue = change(app.ctx()?, &QueueName::new(name), edit)?;
    if !app.global.dry_run {
        drop(pass::look_after(app.ctx()?));
    }
    let text = format!("Queue {}: {}.", queue.name, edit::in_words(&queue));
    Ok(Output::new(text, &QueueChangedDocument { queue: Some(QueuePart::from(&queue)) }))
}

/// `queue list`.
fn list(app: &App, words: &[String]) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let list = queue_list::list(ctx, &data, words)?;
    Ok(Output::new(list.in_words(ctx), &QueueDocument::from(&list)).notes(list.notes(ctx)))
}

/// How often `queue run` looks.
const LOOK: Duration = Duration::from_secs(1);
/// At each so manieth look `queue run` says what is new of what still waits.
const SAID_EACH: u32 = 10;
/// Between two questions whether it is to end.
const POLL: Duration = Duration::from_millis(100);

/// `queue run`: starts what waits, until nothing waits.
fn dispatch(app: &App, args: &RunQueue) -> Outcome {
    let ctx = app.ctx()?;
    if let Some(monitor) = watch::acting(ctx) {
        return Err(Error::refused(format!(
            "the daemon does that already: process {}",
            monitor.pid
        ))
        .hint("`tpu queue` shows what waits; `tpu daemon stop` ends the daemon"));
    }
    let ended = asked_to_end(&[SIGINT, SIGHUP, SIGTERM])?;
    let mut started: Vec<JobId> = Vec::new();
    let mut waited = Vec::new();
    let mut looks = 0_u32;
    loop {
        let passed =
            if args.once { pass::unless_watched(ctx, usize::MAX) } else { pass::now_and_then(ctx) };
        let passage = match passed {
            Ok(Some(passage)) => passage,
            Ok(None) => {
                return Err(Error::refused("the daemon runs now, and starts what waits")
                    .hint("`tpu queue` shows what waits"));
            }
            Err(error) if matches!(error.kind, Kind::State | Kind::Unreachable) && !args.once => {
                app.tell(&format!("trouble: {}", error.message));
                Passage { waiting: 1, ..Passage::default() }
            }
            Err(error) => return Err(error),
        };
        for line in passage.in_words() {
            app.tell(&line);
        }
        started.extend(passage.begun());
        if passage.waiting > 0 && !args.once {
            refuse_hopeless(ctx, passage.waiting)?;
        }
        if passage.waiting > 0 && looks.is_multiple_of(SAID_EACH) {
            let waiting = still_waiting(ctx);
            for line in waiting.iter().filter(|line| !waited.contains(*line)) {
                app.tell(line);
            }
            waited = waiting;
        }
        looks += 1;
        if args.once || passage.waiting == 0 || ended.load(Ordering::Relaxed) {
            let text = match passage.waiting {
                0 => format!("Started {}; nothing waits.", counted(started.len(), "job")),
                waiting => {
                    format!("Started {}; {waiting} wait on.", counted(started.len(), "job"))
                }
            };
            return Ok(Output::new(text, &WaitingChangedDocument::of(&[], &started)));
        }
        let until = ctx.clock.monotonic() + LOOK;
        while !ended.load(Ordering::Relaxed) && ctx.clock.monotonic() < until {
            ctx.clock.sleep(POLL);
        }
    }
}

/// What waits of a user, by words.
struct Chosen {
    ids: Vec<JobId>,
    /// What speaks against jobs that are called and wait no more.
    problems: Vec<Error>,
}

impl Chosen {
    /// Does something to all of it, and says so. A line for each that waits no more says that.
    fn change(
        self,
        app: &App,
        does: impl FnOnce(&[JobId]) -> Result<(), Error>,
        what: &str,
    ) -> Outcome {
        let Self { ids, problems } = self;
        if ids.is_empty() {
            return of_several(Output::default(), true, problems);
        }
        agree_to_change(app, &ids)?;
        does(&ids)?;
        of_several(told(app, &ids, what)?, false, problems)
    }
}

/// What the words call.
fn chosen(app: &App, mut sorted: Sorted, data: &Data) -> Result<Chosen, Error> {
    sorted.no_selector()?;
    sorted.no_pair()?;
    let words = sorted.take_jobs(data)?;
    if words.is_empty() {
        return Err(Error::usage("which of those that wait?").hint("`tpu queue` lists them"));
    }
    let user = app.user(data, sorted.user.take())?;
    let (ids, problems) = edit::called(data, &user, &words)?;
    Ok(Chosen { ids, problems })
}

/// Whether one of these words calls what waits, and no job that has begun.
fn call_what_waits(app: &App, words: &[String]) -> Result<bool, Error> {
    let data = app.ctx()?.data()?;
    if data.queues().entries.is_empty() {
        return Ok(false);
    }
    let mut sorted = selection::sort(words, &data)?;
    let Ok(called) = sorted.take_jobs(&data) else { return Ok(false) };
    // Nobody is guessed: something is to be changed.
    let named = app.requester()?.user_named(&data, sorted.user.as_ref());
    let Ok(Some(user)) = named else { return Ok(false) };
    let owner = user_of(&data, &user)?;
    for word in &called {
        let waits = !edit::named(&data, &user, word).is_empty();
        if waits && (!word.is_of(owner) || word.only_waits(&data, owner)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn told(app: &App, ids: &[JobId], what: &str) -> Outcome {
    let ctx = app.ctx()?;
    let passage = if app.global.dry_run { Passage::default() } else { pass::look_after(ctx) };
    let mut lines: Vec<String> = ids.iter().map(|id| format!("{id} {what}.")).collect();
    lines.extend(passage.in_words());
    let started = passage.begun();
    Ok(Output::new(lines.join("\n"), &WaitingChangedDocument::of(ids, &started)))
}

/// `hold`.
pub(in crate::cli) fn hold(app: &App, args: &HoldJobs) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let chosen = chosen(app, selection::sort(&args.words, &data)?, &data)?;
    chosen.change(app, |ids| edit::hold(ctx, ids, args.why.as_deref()), "is held")
}

/// `unhold` of what waits; `None` where the words call something else.
pub(super) fn unhold(app: &App, words: &[String]) -> Result<Option<Output>, Error> {
    if !call_what_waits(app, words)? {
        return Ok(None);
    }
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let chosen = chosen(app, selection::sort(words, &data)?, &data)?;
    if app.global.dry_run {
        let names: Vec<String> = chosen.ids.iter().map(ToString::to_string).collect();
        let would = Output::would(&format!("let {} begin", names.join(", ")));
        return of_several(would, names.is_empty(), chosen.problems).map(Some);
    }
    chosen.change(app, |ids| edit::unhold(ctx, ids), "starts when its turn comes").map(Some)
}

/// `dequeue`.
pub(in crate::cli) fn dequeue(app: &App, args: &Dequeue) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let stars = args.words.iter().filter(|word| *word == "*").count();
    let words: Vec<String> = args.words.iter().filter(|word| *word != "*").cloned().collect();
    let sorted = selection::sort(&words, &data)?;
    let chosen = if args.all || stars > 0 {
        sorted.nothing_else()?;
        sorted.no_number()?;
        let user = app.user(&data, sorted.user)?;
        let entries = data.queues().entries.iter().filter(|entry| entry.user == user);
        let ids: Vec<JobId> = entries.map(QueueEntry::id).collect();
        if ids.is_empty() {
            return Err(Error::not_found("nothing waits").hint("`tpu queue` lists what does"));
        }
        Chosen { ids, problems: Vec::new() }
    } else {
        chosen(app, sorted, &data)?
    };
    let undone =
        Undone { what: "nothing was taken out", hint: "add -y to take it out without a question" };
    let whole = |id: &JobId| WaitingCalled { id: id.clone(), members: None };
    let called: Vec<WaitingCalled> = chosen.ids.iter().map(whole).collect();
    if !called.is_empty() && needs_question(app, &[], &called)? {
        let names = in_words(ctx, &called)?;
        app.agree(&format!("Take {names} out of the queue?"), undone)?;
    }
    chosen.change(app, |ids| edit::dequeue(ctx, ids), "waits no more, and never began")
}

/// Takes what is called out of the queue: jobs, groups, members.
pub(super) fn take_out_called(app: &App, called: &[WaitingCalled]) -> Outcome {
    take_members_out(app.ctx()?, called)?;
    let passage = pass::look_after(app.ctx()?);
    let mut lines: Vec<String> = called.iter().map(never_began).collect();
    lines.extend(passage.in_words());
    let ids: Vec<JobId> = called.iter().map(|called| called.id.clone()).collect();
    let started = passage.begun();
    Ok(Output::new(lines.join("\n"), &WaitingChangedDocument::of(&ids, &started)))
}

/// `priority`.
pub(in crate::cli) fn set_priority(app: &App, args: &SetPriority) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    if args.first {
        let chosen = chosen(app, selection::sort(&args.words, &data)?, &data)?;
        let first = "comes before all others of its priority";
        return chosen.change(app, |ids| edit::move_to_front(ctx, ids), first);
    }
    // The last word, beside that of a user, who may stand anywhere.
    let is_user = |word: &String| {
        let names = word.strip_prefix("user=").unwrap_or(word);
        word.starts_with("id=") || data.user(&UserName::from(names)).is_some()
    };
    let mut words = args.words.clone();
    let last = words.iter().rposition(|word| !is_user(word)).map(|at| words.remove(at));
    let Some(last) = last.filter(|_| !words.is_empty()) else {
        return Err(Error::usage("what, and how urgent?").hint("as in: tpu priority 12 80"));
    };
    let priority = priority(&last)?;
    let chosen = chosen(app, selection::sort(&words, &data)?, &data)?;
    let has = format!("has priority {priority}");
    chosen.change(app, |ids| edit::set_priority(ctx, ids, priority), &has)
}
