//! Starts those whose turn it is.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::act::launch::attempt::Launched;
use crate::act::launch::plan::Turn;
use crate::act::launch::{self, RunRequest};
use crate::act::resume::{self, AgainRequest};
use crate::base::queue_entries::awaited::{AwaitedEnds, Dependence};
use crate::base::queue_entries::occupancy;
use crate::base::{records, secrets, watch};
use crate::{Ctx, Error, Kind};
use tpu_core::model::data::Data;
use tpu_core::model::entry::{AfterWhich, Awaited, Environment, QueueEntry, QueueHold};
use tpu_core::model::facts::{ErrorKind, Evidence, Source};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, Status, StoredVerdict};
use tpu_core::model::member::Array;
use tpu_core::model::rules::Action;
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::target::Machines;
use tpu_core::model::time;
use tpu_core::plan::answer;
use tpu_core::plan::board::Pick;
use tpu_core::plan::choice::Assignment;
use tpu_core::plan::queue::EntryStanding;

use super::field::Avoided;
use super::now::with_what_was_seen;
use super::{after, limits, places, presence, standings, tasks, unbegun};

/// Who finds that a place cannot be had after all looks again, so often at most; then at the next pass.
const ROUNDS: u32 = 8;

/// Whoever has something else to do starts no more than so many in one pass.
pub const AT_ONCE: usize = 16;

/// The name of the fact that what something waited for has ended otherwise.
const DEPENDENCY: &str = "dependency";

/// Whose turn is looked at.
#[derive(Clone, Copy, Debug)]
pub enum Mine<'a> {
    /// This one's, for which somebody waits.
    Own(&'a JobId),
    /// Everybody's who was submitted at this place and for whom nobody waits.
    All,
}

impl Mine<'_> {
    /// Of those that wait, which are meant.
    pub fn meant(self, ctx: &Ctx) -> impl Fn(&QueueEntry) -> bool {
        let here = watch::place(ctx);
        move |entry| match self {
            Self::Own(id) => entry.number == id.window && entry.user == id.user,
            Self::All => entry.keeper.is_none() && entry.place == here,
        }
    }
}

/// A successor whose checkpoint is carried to another region before it begins, which may take hours.
#[derive(Clone, Debug)]
pub struct Hauling {
    request: AgainRequest,
    turn: Turn,
    reason: String,
}

impl Hauling {
    /// The entry of the queue that it is.
    pub fn entry(&self) -> &JobId {
        &self.turn.entry
    }
}

/// What one pass has come to.
#[derive(Debug, Default)]
pub struct Passage {
    /// What has started, each with the entry that it was.
    pub started: Vec<(JobId, Launched, Pick)>,
    /// What is left to whoever has the time.
    pub hauls: Vec<Hauling>,
    /// How many entries of those that were looked at still wait.
    pub waiting: usize,
}

impl Passage {
    /// In lines: what has started.
    pub fn in_words(&self) -> Vec<String> {
        self.started.iter().map(|(_, launched, _)| launched.in_words()).collect()
    }

    /// The jobs that have begun.
    pub fn begun(&self) -> Vec<JobId> {
        self.started.iter().map(|(_, launched, _)| launched.job.clone()).collect()
    }
}

/// Looks at every entry of some once, in the order of the queue, and starts what can begin; once so many have begun,
/// the rest is left to the next pass. Trouble of one is none of the others: whoever could never begin as he is is held,
/// with the reason.
pub fn pass(ctx: &Ctx, mine: Mine<'_>, most: usize) -> Result<Passage, Error> {
    pass_by(ctx, mine, most, None)
}

/// Tells of an entry whether somebody is carrying its checkpoint over already.
type IsHauled<'a> = &'a dyn Fn(&JobId) -> bool;

/// The same; with `hauled` whatever a checkpoint is carried over for is left to somebody else.
fn pass_by(
    ctx: &Ctx,
    mine: Mine<'_>,
    most: usize,
    hauled: Option<IsHauled<'_>>,
) -> Result<Passage, Error> {
    let mut passage = Passage::default();
    let mut avoided = Avoided::new();
    let is_mine = mine.meant(ctx);
    let waiting = |data: &Data| data.queues().entries.iter().filter(|one| is_mine(one)).count();
    for _ in 0..ROUNDS {
        let data = ctx.data()?;
        passage.waiting = waiting(&data);
        if passage.waiting == 0 {
            break;
        }
        after::forget_met(ctx)?;
        tasks::end_enough(ctx)?;
        end_hopeless(ctx, &data, &is_mine)?;
        let mut was_refused = false;
        let over = limits::over(ctx, &data);
        for standing in standings(ctx, &data, &avoided)? {
            let Some(entry) = data.queues().entries.get(standing.entry) else { continue };
            let id = entry.id();
            let is_under_way = hauled.is_some_and(|is_hauled| is_hauled(&id))
                || passage.hauls.iter().any(|haul| *haul.entry() == id);
            if !is_mine(entry) || is_under_way {
                continue;
            }
            let left = most.saturating_sub(passage.started.len());
            let starts = standing.starts.into_iter().take(left).collect();
            let standing = EntryStanding { starts, ..standing };
            let leaves = hauled.is_some();
            let all = start_all(ctx, &data, (entry, &over, leaves), &standing, &mut avoided)?;
            was_refused |= all.was_refused;
            let each = all.started.into_iter();
            passage.started.extend(each.map(|(launched, pick)| (id.clone(), launched, pick)));
            passage.hauls.extend(all.haul);
            if all.is_locked_out {
                // Nobody behind it is served before it: the next pass begins with it again.
                return Ok(passage);
            }
        }
        if !was_refused {
            break;
        }
    }
    passage.waiting = waiting(&*ctx.data()?);
    Ok(passage)
}

/// The same for everybody of this place, as the daemon does it: what has started is written down. Where a checkpoint is
/// carried over first, no turn waits for it: that is left to whoever calls, who tells what he is at already.
pub fn dispatch(ctx: &Ctx, is_hauled: IsHauled<'_>) -> Result<Passage, Error> {
    presence::settle(ctx)?;
    let data = ctx.data()?;
    if data.queues().entries.is_empty() {
        return Ok(Passage::default());
    }
    let passage = pass_by(ctx, Mine::All, AT_ONCE, Some(is_hauled))?;
    for (id, launched, pick) in &passage.started {
        note_start(ctx, &data, (id, &pick.reason), launched)?;
    }
    Ok(passage)
}

fn note_start(
    ctx: &Ctx,
    data: &Data,
    (id, reason): (&JobId, &str),
    launched: &Launched,
) -> Result<(), Error> {
    let since = data.queues().entry(id).map_or(ctx.clock.now(), |entry| entry.since);
    let waited = time::age(ctx.clock.now().seconds_since(since));
    let text = format!(
        "started {} on {} ({reason}), after {waited} in the queue",
        launched.job, launched.target
    );
    watch::note(ctx, &ctx.actor, "queue", &text)
}

/// Carries a checkpoint over and starts the successor, which stands in the queue until then. What came of it, in words.
pub fn carry_over(ctx: &Ctx, haul: &Hauling) -> Result<String, Error> {
    let data = ctx.data()?;
    let Hauling { request, turn, reason } = haul;
    let again = match resume::again(ctx, request) {
        Ok(again) => again,
        Err(error) => {
            if let Some(entry) = data.queues().entry(&turn.entry)
                && !is_passing(ctx, turn, &error)
                && still_waits(ctx, turn)
            {
                hold(ctx, entry, &error)?;
            }
            return Err(error);
        }
    };
    note_start(ctx, &data, (&turn.entry, reason), &again.launched)?;
    Ok(again.warnings.iter().fold(again.launched.in_words(), |said, more| said + " " + more))
}

/// The same where no daemon runs at this place that would do it by itself; `None` where one does.
pub fn unless_watched(ctx: &Ctx, most: usize) -> Result<Option<Passage>, Error> {
    if watch::acting(ctx).is_some() {
        return Ok(None);
    }
    if ctx.data()?.queues().entries.is_empty() {
        return Ok(Some(Passage::default()));
    }
    presence::settle(ctx)?;
    pass(ctx, Mine::All, most).map(Some)
}

/// Looks at what waits, behind a change that is made: what has started, and why nobody could look. That is no failure of
/// the change.
pub fn look(ctx: &Ctx, most: usize) -> (Passage, Option<String>) {
    match unless_watched(ctx, most) {
        Ok(passage) => (passage.unwrap_or_default(), None),
        Err(error) => {
            let why = format!("what waits was not looked at: {}", error.message);
            (Passage::default(), Some(why))
        }
    }
}

/// The same, with a warning where nobody could look.
pub fn look_after(ctx: &Ctx) -> Passage {
    let (passage, trouble) = look(ctx, usize::MAX);
    ctx.warn(trouble);
    passage
}

/// What has become of an entry.
#[derive(Default)]
struct Begun {
    started: Vec<(Launched, Pick)>,
    haul: Option<Hauling>,
    /// Whether one of its places was not to be had after all.
    was_refused: bool,
    /// Whether the data file could not be written, because somebody else kept its lock.
    is_locked_out: bool,
}

/// Starts as many jobs of an entry as it was given places.
fn start_all(
    ctx: &Ctx,
    data: &Data,
    (entry, over, leaves_hauls): (&QueueEntry, &[JobId], bool),
    standing: &EntryStanding<Vec<Pick>>,
    avoided: &mut Avoided,
) -> Result<Begun, Error> {
    let mut all = Begun::default();
    if standing.starts.is_empty() {
        return Ok(all);
    }
    // Members that differ are no one submission, nor those of which a limit of ours keeps some back.
    let queue = data.queues().queue(&entry.queue);
    let is_limited = queue.is_none_or(|queue| queue.max_parallel.is_some())
        || occupancy::of_users(ctx, data).contains_key(&entry.user);
    for (at, picks) in standing.starts.iter().enumerate() {
        let engine = picks.first().and_then(|pick| data.target(&pick.target));
        let is_engine = engine.is_some_and(|target| target.machines == Machines::Engine);
        let is_each = entry.after.iter().any(|after| after.which == AfterWhich::Each);
        let differ = entry.sweep.is_some() || is_each;
        let is_whole_group = is_engine && entry.spec.array.is_some() && !differ && !is_limited;
        if is_whole_group && at > 0 {
            break;
        }
        let member = standing.members.get(at).copied();
        let turn = Turn {
            entry: entry.id(),
            queue: entry.queue.clone(),
            member: member.filter(|_| !is_whole_group),
            is_whole_group,
            passes: standing.passes.clone(),
            over: over.to_vec(),
        };
        // A store that cannot be read as it is passes by nobody's waiting.
        let may_begin = secrets::are_kept(ctx, &entry.spec.execution);
        if leaves_hauls && let Some(haul) = haul_of(ctx, data, entry, (picks, &turn))? {
            return Ok(Begun { haul: Some(haul), ..all });
        }
        match may_begin.and_then(|()| start(ctx, data, entry, (picks, &turn), avoided)) {
            Ok(started) if started.is_empty() => return Ok(Begun { was_refused: true, ..all }),
            Ok(started) => all.started.extend(started),
            Err(error) if entry.keeper.is_some() => return Err(error),
            // It was claimed: its record says what became of it, or somebody else has started it.
            Err(_) if !still_waits(ctx, &turn) => return Ok(Begun { was_refused: true, ..all }),
            Err(error) if error.is_locked_out() => return Ok(Begun { is_locked_out: true, ..all }),
            // Whoever cannot be asked now is asked again.
            Err(error) if error.kind == Kind::Unreachable => {
                return Ok(Begun { was_refused: true, ..all });
            }
            Err(error) => {
                hold(ctx, entry, &error)?;
                break;
            }
        }
    }
    Ok(all)
}

/// What has to be carried over before an entry begins at the first of its places, if anything has.
fn haul_of(
    ctx: &Ctx,
    data: &Data,
    entry: &QueueEntry,
    (picks, turn): (&[Pick], &Turn),
) -> Result<Option<Hauling>, Error> {
    // Nobody else is asked twice where his job would begin.
    let is_set = !ctx.settings(data.user(&entry.user))?.checkpoint_copy.is_empty();
    let (Some(succeeds), Some(pick), true) = (entry.succeeds, picks.first(), is_set) else {
        return Ok(None);
    };
    let Pick { target, reason } = pick.clone();
    let on = Assignment { target, reason: reason.clone(), busy: None };
    let request = successor(entry, succeeds, (Some(on), turn));
    // What speaks against it is told by whoever starts it.
    let plan = resume::plan(ctx, &request).ok().map(|(plan, _)| plan);
    let hauls = plan.is_some_and(|plan| plan.haul.is_some());
    Ok(hauls.then(|| Hauling { request, turn: turn.clone(), reason }))
}

/// The request for the attempt that an entry is to succeed another one with.
fn successor(
    entry: &QueueEntry,
    succeeds: Awaited,
    (on, turn): (Option<Assignment>, &Turn),
) -> AgainRequest {
    let job = JobId::new(entry.user.clone(), succeeds.job);
    AgainRequest { on, turn: Some(turn.clone()), ..resume::by_rules(&job, succeeds.how) }
}

/// Starts the next job of an entry, or all that wait of a group at an engine, at the first of its places that is to be
/// had; nothing if none is.
fn start(
    ctx: &Ctx,
    data: &Data,
    entry: &QueueEntry,
    (picks, turn): (&[Pick], &Turn),
    avoided: &mut Avoided,
) -> Result<Vec<(Launched, Pick)>, Error> {
    // For one that was named there was no choice.
    let is_chosen = matches!(entry.spec.target, TargetRequest::Any(_));
    let said = is_chosen.then(|| with_what_was_seen(ctx, picks.to_vec())).transpose()?;
    for (pick, busy) in places::answers(ctx, data, entry, said.as_deref().unwrap_or(picks)) {
        let Ok(busy) = busy else {
            avoided.entry(entry.id()).or_default().insert(pick.target.clone());
            continue;
        };
        let Pick { target, reason } = pick.clone();
        let request = RunRequest {
            user: entry.user.clone(),
            spec: spec_of(entry, turn),
            on: Some(Assignment { target, reason, busy }),
            force: entry.force,
        };
        match launch(ctx, &request, (turn, entry)) {
            Ok(launched) => {
                return Ok(launched.into_iter().map(|one| (one, pick.clone())).collect());
            }
            // It is no fault of that place: whoever stands behind would get it ahead of this one.
            Err(error) if error.is_locked_out() => return Err(error),
            Err(error) if is_passing(ctx, turn, &error) => {
                avoided.entry(entry.id()).or_default().insert(pick.target.clone());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Vec::new())
}

/// Starts one job, or a whole group.
fn launch(
    ctx: &Ctx,
    request: &RunRequest,
    (turn, entry): (&Turn, &QueueEntry),
) -> Result<Vec<Launched>, Error> {
    if let Some(succeeds) = entry.succeeds {
        let again = resume::again(ctx, &successor(entry, succeeds, (request.on.clone(), turn)))?;
        let job = &again.launched.job;
        ctx.warn(again.warnings.iter().map(|warning| format!("{job}: {warning}")));
        return Ok(vec![again.launched]);
    }
    let env = environment(&entry.env);
    if turn.is_whole_group {
        let group = launch::launch_group_in_turn(ctx, request, (turn, env))?;
        return Ok(group.members.into_iter().map(|(_, launched)| launched).collect());
    }
    Ok(vec![launch::launch_in_turn(ctx, request, (turn, env))?])
}

/// What one job of an entry is to do.
fn spec_of(entry: &QueueEntry, turn: &Turn) -> JobSpec {
    let array = entry.spec.array.clone().filter(|_| turn.is_whole_group);
    JobSpec { array, ..entry.spec_of(turn.member) }
}

/// Whether it is trouble that may pass while the entry waits. What goes wrong once its place is handed in is told by
/// the record that it was handed in for.
fn is_passing(ctx: &Ctx, turn: &Turn, error: &Error) -> bool {
    let may_pass = matches!(error.kind, Kind::Unreachable | Kind::State | Kind::Refused);
    error.passes || may_pass && still_waits(ctx, turn)
}

/// Whether nobody has started yet what was to be started; also where that is not known.
fn still_waits(ctx: &Ctx, turn: &Turn) -> bool {
    ctx.data().map_or(true, |data| {
        let Some(entry) = data.queues().entry(&turn.entry) else { return false };
        match (turn.member, &entry.spec.array) {
            (Some(index), Some(array)) => array.indexes().contains(&index),
            (Some(_), None) => false,
            (None, _) => true,
        }
    })
}

/// Holds what could not begin wherever it was: others are not to wait behind it, and somebody has to look.
pub(super) fn hold(ctx: &Ctx, entry: &QueueEntry, error: &Error) -> Result<(), Error> {
    let id = entry.id();
    ctx.transact(|tx| {
        let now = tx.now;
        if let Some(entry) = tx.data.queues_mut().entry_mut(&id) {
            let why = error.message.lines().next().unwrap_or_default().to_owned();
            entry.held = Some(QueueHold { by: "tpu".to_owned(), since: now, why: Some(why) });
            records::note(tx, &id, "held", format!("it could not begin: {}", error.message));
        }
        Ok(())
    })
}

/// Ends what waits for something that will never come.
fn end_hopeless(
    ctx: &Ctx,
    data: &Data,
    is_mine: impl Fn(&QueueEntry) -> bool,
) -> Result<(), Error> {
    let ends = AwaitedEnds::of_file(data);
    let is_so = |entry: &&QueueEntry| {
        is_mine(entry) && !hopeless(&ends, entry).is_empty() && !may_yet_end_well(ctx, data, entry)
    };
    let ids: Vec<JobId> = data.queues().entries.iter().filter(is_so).map(QueueEntry::id).collect();
    for id in ids {
        ctx.transact(|tx| {
            let Some(entry) = tx.data.queues().entry(&id).cloned() else { return Ok(()) };
            let ended = hopeless(&AwaitedEnds::of_file(&tx.data), &entry);
            let is_among = |index: &u32| ended.iter().any(|(member, _)| *member == Some(*index));
            let all = entry.spec.array.iter().flat_map(Array::indexes);
            let rest: Vec<u32> = all.copied().filter(|index| !is_among(index)).collect();
            match tx.data.queues_mut().entry_mut(&id) {
                Some(entry) if !rest.is_empty() => {
                    let array = entry.spec.array.take();
                    entry.spec.array = array.and_then(|array| array.only(rest));
                }
                _ if ended.is_empty() => {}
                _ => drop(tx.data.queues_mut().take(&id)),
            }
            for (member, why) in ended {
                let mut job = unbegun::job(&tx.data, &entry, member);
                if job.member().is_some() {
                    job.windows_id = tx.data.next_number(&entry.user, None).unwrap_or(entry.number);
                }
                job.status = Status::Error(ErrorKind::Dependency);
                let evidence = Evidence::fact(Source::Record, DEPENDENCY, &*why);
                job.verdict = Some(StoredVerdict::new(ErrorKind::Dependency, Some(&evidence)));
                let id = job.id();
                if let Some(user) = tx.data.user_mut(&entry.user) {
                    user.push_job(job);
                }
                records::note(tx, &id, DEPENDENCY, why);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Whether something that an entry waits for may come back yet: it was taken away, and nobody has said so.
fn may_yet_end_well(ctx: &Ctx, data: &Data, entry: &QueueEntry) -> bool {
    let now = ctx.clock.now();
    let is_open = |job: &Job| {
        let is_watched = || {
            let target = data.target(&job.tpu);
            target.is_some_and(|target| target.machines == Machines::Provided)
        };
        let acts = || job.rules.iter().any(|(_, action)| action != Action::Pass);
        job.monitor && answer::may_be_judged_yet(job, now) && acts() && is_watched()
    };
    entry.after.iter().any(|after| tasks::known(data, &after.job).any(is_open))
}

/// What of an entry can begin no more, each with the reason: the job that it is, or members.
fn hopeless(ends: &AwaitedEnds<'_>, entry: &QueueEntry) -> Vec<(Option<u32>, String)> {
    if let Dependence::Never(why) = ends.dependence(entry) {
        let all = entry.spec.array.as_ref().map(|array| array.indexes().to_vec());
        let members = all.map_or_else(|| vec![None], |all| all.into_iter().map(Some).collect());
        return members.into_iter().map(|member| (member, why.clone())).collect();
    }
    let never = ends.each(entry).map(|each| each.never).unwrap_or_default();
    never.into_iter().map(|(index, why)| (Some(index), why)).collect()
}

/// What an entry keeps of the environment in which it was asked for.
pub(super) fn kept(env: Vec<(OsString, OsString)>) -> Environment {
    let pair = |(name, value): (OsString, OsString)| {
        OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat())
    };
    env.into_iter().map(pair).collect()
}

fn environment(kept: &Environment) -> Vec<(OsString, OsString)> {
    let pair = |word: &OsString| {
        let (name, value) =
            word.as_bytes().split_at(word.as_bytes().iter().position(|b| *b == b'=')?);
        let os = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((os(name), os(value.get(1..)?)))
    };
    kept.iter().filter_map(pair).collect()
}
