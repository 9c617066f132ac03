//! Starts those whose turn it is.

use crate::act::ends::Vacated;
use crate::act::lately::Lately;
use crate::act::launch::attempt::Launched;
use crate::act::reconcile;
use crate::base::environment;
use crate::base::queue_entries::awaited::{AwaitedEnds, Dependence};
use crate::base::queue_entries::occupancy;
use crate::base::{records, watch};
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::facts::{ErrorKind, Evidence, Source};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, Launch, Status, StoredVerdict};
use tpu_core::model::member::Array;
use tpu_core::model::rules::Action;
use tpu_core::model::target::Machines;
use tpu_core::model::time;
use tpu_core::plan::answer;
use tpu_core::plan::board::Pick;
use tpu_core::plan::queue::EntryStanding;

use super::alone::{self, Cause};
use super::field::Avoided;
use super::starts::{self, Silent, Starter};
use super::{after, limits, presence, standings, tasks, unbegun};

pub use super::starts::Hauling;

/// Who finds that a place cannot be had after all looks again, so often at most; then at the next pass.
const ROUNDS: u32 = 8;

/// The daemon has something else to do: it starts no more than so many in one turn.
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

/// What one pass has come to.
#[derive(Debug, Default)]
pub struct Passage {
    /// What has started, each with the entry that it was.
    pub started: Vec<(JobId, Launched, Pick)>,
    /// What is left to whoever has the time.
    pub hauls: Vec<Hauling>,
    /// How many entries of those that were looked at still wait.
    pub waiting: usize,
    /// Whether another process passes at this moment, and does what was to be done.
    pub is_left: bool,
}

impl Passage {
    /// The same with what waits by the data file, where another process passes.
    fn counted(self, ctx: &Ctx, data: &Data) -> Self {
        if !self.is_left {
            return self;
        }
        let is_mine = Mine::All.meant(ctx);
        let waiting = data.queues().entries.iter().filter(|entry| is_mine(entry)).count();
        Self { waiting, ..self }
    }

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
    let passage = pass_by(ctx, mine, most, None, &mut Silent::default())?;
    environment::clear_laid_by(ctx);
    Ok(passage)
}

/// Tells of an entry whether somebody is carrying its checkpoint over already.
type IsHauled<'a> = &'a dyn Fn(&JobId) -> bool;

/// The same; with `hauled` whatever a checkpoint is carried over for is left to somebody else.
fn pass_by(
    ctx: &Ctx,
    mine: Mine<'_>,
    most: usize,
    hauled: Option<IsHauled<'_>>,
    silent: &mut Silent,
) -> Result<Passage, Error> {
    let mut passage = Passage::default();
    let mut avoided = Avoided::new();
    let is_mine = mine.meant(ctx);
    let waiting = |data: &Data| data.queues().entries.iter().filter(|one| is_mine(one)).count();
    if reconcile::is_left(ctx, &*ctx.data()?) {
        reconcile::reconcile(ctx)?;
    }
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
        let standings = standings(ctx, &data, &avoided)?;
        let lately = Lately::default();
        let mut starter = Starter {
            ctx,
            data: &data,
            over: limits::over(ctx, &data),
            limits: occupancy::of_users(ctx, &data),
            leaves_hauls: hauled.is_some(),
            is_reconciled: false,
            lately: &lately,
            avoided: &mut avoided,
            silent,
        };
        for standing in standings {
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
            let all = starter.start_all(entry, &standing)?;
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

/// Passes for everybody of this place whose entry no process waits for, if no other process does so already. Where a
/// checkpoint has to be carried over, that is left to the caller.
fn for_everybody(
    ctx: &Ctx,
    cause: Cause,
    most: usize,
    is_hauled: IsHauled<'_>,
    mut server: Option<u32>,
) -> Result<Passage, Error> {
    let mut all = Passage { is_left: true, ..Passage::default() };
    alone::in_turn(ctx, cause, &mut || {
        presence::settle(ctx)?;
        let mut silent = Silent::in_server(server);
        let left = most.saturating_sub(all.started.len());
        let is_left = |id: &JobId| is_hauled(id) || all.hauls.iter().any(|of| of.entry() == id);
        let passage = pass_by(ctx, Mine::All, left, Some(&is_left), &mut silent)?;
        server = silent.next_server(ctx);
        all.started.extend(passage.started);
        all.hauls.extend(passage.hauls);
        (all.waiting, all.is_left) = (passage.waiting, false);
        Ok(())
    })?;
    environment::clear_laid_by(ctx);
    Ok(all)
}

/// The same for everybody of this place, as the daemon does it: what has started is written down. Where a checkpoint is
/// carried over first, no turn waits for it: that is left to whoever calls, who tells what he is at already.
pub fn dispatch(ctx: &Ctx, is_hauled: IsHauled<'_>) -> Result<Passage, Error> {
    let data = ctx.data()?;
    if data.queues().entries.is_empty() {
        return Ok(Passage::default());
    }
    let passage = for_everybody(ctx, Cause::Poll, AT_ONCE, is_hauled, None)?.counted(ctx, &data);
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
    let again = starts::haul(ctx, haul)?;
    note_start(ctx, &data, (haul.entry(), &haul.reason), &again.launched)?;
    Ok(again.warnings.iter().fold(again.launched.in_words(), |said, more| said + " " + more))
}

/// The same where no daemon runs at this place that would do it by itself; `None` where one does. To be called when
/// something has changed: a process that passes already looks once more.
pub fn unless_watched(ctx: &Ctx, most: usize) -> Result<Option<Passage>, Error> {
    without_daemon(ctx, Cause::Command, most)
}

/// The same for a process that looks from time to time: while another process passes, it does nothing.
pub fn now_and_then(ctx: &Ctx) -> Result<Option<Passage>, Error> {
    without_daemon(ctx, Cause::Poll, usize::MAX)
}

fn without_daemon(ctx: &Ctx, cause: Cause, most: usize) -> Result<Option<Passage>, Error> {
    if watch::acting(ctx).is_some() {
        return Ok(None);
    }
    let data = ctx.data()?;
    if data.queues().entries.is_empty() && !reconcile::is_left(ctx, &data) {
        return Ok(Some(Passage::default()));
    }
    Ok(Some(here(ctx, cause, most, None)?.counted(ctx, &data)))
}

/// Passes, and carries checkpoints over that have to be. That may take hours: it is done when others may pass again.
fn here(ctx: &Ctx, cause: Cause, most: usize, server: Option<u32>) -> Result<Passage, Error> {
    let mut all = for_everybody(ctx, cause, most, &|_| false, server)?;
    for haul in std::mem::take(&mut all.hauls) {
        // What goes wrong is said by the entry, which is held then.
        let Ok(again) = starts::haul(ctx, &haul) else { continue };
        let job = &again.launched.job;
        ctx.warn(again.warnings.iter().map(|warning| format!("{job}: {warning}")));
        let pick = Pick { target: again.launched.target.clone(), reason: haul.reason.clone() };
        all.started.push((haul.entry().clone(), again.launched, pick));
        all.waiting = all.waiting.saturating_sub(1);
    }
    Ok(all)
}

/// Looks at what waits, behind a change that is made: what has started, and why nobody could look. That is no failure of
/// the change.
pub fn look(ctx: &Ctx, most: usize) -> (Passage, Option<String>) {
    told(unless_watched(ctx, most))
}

pub(super) fn told(passage: Result<Option<Passage>, Error>) -> (Passage, Option<String>) {
    match passage {
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

/// A job has ended: what waits for its place may begin. What becomes of that does not concern the job.
pub fn make_way(ctx: &Ctx, vacated: &Vacated) {
    // What is left of a server that has ended starts no other one.
    let is_in_place = || vacated.server.is_none_or(|server| ctx.tmux.is_there(server));
    if vacated.is_wanted && watch::acting(ctx).is_none() && is_in_place() {
        let passage = here(ctx, Cause::End, usize::MAX, vacated.server);
        ctx.warn(told(passage.map(Some)).1);
    }
}

/// A script or a person has said how a job ended. A script is still there: its launcher lets the next one begin when the
/// script has ended. Here that is done where no launcher will: the original has none.
pub fn after_word(ctx: &Ctx, id: &JobId) {
    let Ok(data) = ctx.data() else { return };
    let has_said_so = |launch: &Launch| launch.ended.is_some();
    if data.job(id).is_some_and(|job| job.launch.as_ref().is_none_or(has_said_so)) {
        make_way(ctx, &Vacated::of(&data, id));
    }
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
