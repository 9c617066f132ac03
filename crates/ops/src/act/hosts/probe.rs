//! Asks machines about themselves: all side by side, and nobody is waited for longer than is said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::observe::doors;
use crate::observe::fleet::AskedOnce;
use crate::{Ctx, Error};
use tpu_core::model::capacity::BusyGpus;
use tpu_core::model::data::Data;
use tpu_core::model::facts::MachineFact;
use tpu_core::model::target::{Machines, Target};
use tpu_core::model::variables;
use tpu_system::remote::{Ask, End, Remote, Reply, Worker};
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::Spawn;
use tpu_system::sys::procs::Processes;
use tpu_system::sys::threads::next_of;

/// What a machine is asked by before it gets anything to do.
const PROBE: &str = concat!(
    include_str!("../../../../../assets/machine.sh"),
    include_str!("../../../../../assets/probe.sh")
);

/// How long a machine may take to answer somebody who waits for a job to begin: a login takes seconds where much runs.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Less than this on its disk, in MiB, and a job could not even log.
const LEAST_DISK: u64 = 64;

/// The way to one machine.
enum Way {
    Here(Arc<dyn Processes>, Env),
    There(Box<dyn Remote>, Worker),
}

/// What a machine answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The exit code of what it was asked by; this machine says none.
    pub(super) code: i32,
    /// What that printed.
    pub(super) text: String,
}

/// A question to a machine.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// Which.
    pub(super) target: Target,
    /// For bash. Elsewhere `index`, `machine` and `base` are set, as `assets/door.sh` sets them.
    pub(super) script: String,
    /// What the script reads on this machine; elsewhere it reads nothing.
    pub(super) input: Vec<u8>,
}

/// What a machine is asked about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// How it is, and what it has.
    State,
    /// The versions of its programs as well.
    Versions,
}

/// What these machines say of themselves, in their order; of one that has not said anything in time, why.
pub fn machines(
    ctx: &Ctx,
    data: &Data,
    targets: &[Target],
    (depth, patience): (Depth, Duration),
) -> Vec<Result<MachineFact, String>> {
    let versions = if depth == Depth::Versions { "yes" } else { "" };
    let question = |target: &Target| Question {
        target: target.clone(),
        script: format!("versions={versions}\n{PROBE}"),
        input: Vec::new(),
    };
    let questions = targets.iter().map(question).collect();
    let read = |answer: Answer| MachineFact::read(&answer.text).ok_or_else(broke_off);
    let answers = answers(ctx, data, questions, patience);
    answers.into_iter().map(|answer| answer.and_then(read)).collect()
}

/// Why an answer without its end is none.
pub(super) fn broke_off() -> String {
    "its answer broke off".to_owned()
}

/// What machines answer, in the order of the questions, which are asked side by side; of one that has not answered in
/// time, why. A target of several machines is asked by its first.
pub(super) fn answers(
    ctx: &Ctx,
    data: &Data,
    questions: Vec<Question>,
    patience: Duration,
) -> Vec<Result<Answer, String>> {
    let late = || format!("no answer within {} s", patience.as_secs());
    let mut said: Vec<Result<Answer, String>> = questions.iter().map(|_| Err(late())).collect();
    let (say, answers) = channel();
    let deadline = ctx.clock.monotonic() + patience;
    for (place, question) in questions.into_iter().enumerate() {
        match way(ctx, data, &question.target) {
            Err(error) => {
                if let Some(said) = said.get_mut(place) {
                    *said = Err(error.message);
                }
            }
            Ok(way) => {
                let say = say.clone();
                ctx.threads.spawn(Box::new(move || {
                    // Nobody hears it any more where the time is over.
                    drop(say.send((place, ask(&way, question, patience))));
                }));
            }
        }
    }
    drop(say);
    let left = || deadline.saturating_sub(ctx.clock.monotonic());
    while let Ok((place, answer)) = next_of(&*ctx.threads, &answers, left()) {
        if let Some(said) = said.get_mut(place) {
            *said = answer;
        }
    }
    said
}

fn way(ctx: &Ctx, data: &Data, target: &Target) -> Result<Way, Error> {
    if target.is_here() {
        return Ok(Way::Here(Arc::clone(&ctx.procs), ctx.env.clone()));
    }
    let asked = AskedOnce::new(ctx, data, &target.name);
    let door = doors::to(ctx, &asked)?;
    let mut workers = doors::workers(ctx, &asked)?.into_iter();
    match workers.next() {
        Some(worker) => Ok(Way::There(door.remote, worker)),
        None => Err(Error::unreachable(format!("{} has no address", target.name))),
    }
}

fn ask(way: &Way, question: Question, patience: Duration) -> Result<Answer, String> {
    match way {
        Way::Here(procs, env) => here(&**procs, env, question, patience),
        Way::There(remote, worker) => there(&**remote, worker, &question.script),
    }
}

fn here(
    procs: &dyn Processes,
    env: &Env,
    question: Question,
    patience: Duration,
) -> Result<Answer, String> {
    let mut ask = Spawn::new("bash").args(["-c".to_owned(), question.script]);
    ask = ask.stdin(question.input).timeout(patience).own_group().env_clear();
    for (name, value) in &env.vars {
        ask = ask.env(name, value);
    }
    // What carries the mark of a job is taken for one of its processes.
    for name in variables::claiming() {
        ask = ask.env_remove(name);
    }
    let text = procs.tell(&ask).map_err(|error| error.to_string())?;
    Ok(Answer { code: 0, text })
}

fn there(remote: &dyn Remote, worker: &Worker, script: &str) -> Result<Answer, String> {
    let machine =
        shlex::try_quote(&worker.address).map_err(|_| "its address holds a NUL".to_owned())?;
    let index = worker.index;
    let set = format!("index={index} machine={machine} base=${{HOME:?}}/.tpu\n");
    let ask = Ask { command: set + script, input: None, is_ours: true };
    let mut text = Vec::new();
    for (_, reply) in remote.ask(std::slice::from_ref(worker), &ask) {
        match reply {
            Reply::Out(line) => text.extend(line),
            Reply::Err(_) => {}
            Reply::End(End::Exit(code)) => {
                return Ok(Answer { code, text: String::from_utf8_lossy(&text).into_owned() });
            }
            Reply::End(End::Lost(why)) => return Err(why),
        }
    }
    Err("it did not answer".to_owned())
}

/// Whether a machine is asked before a job begins there: one that somebody has added as a host, and one whose GPUs
/// are given out, on which somebody else may be.
pub(super) fn is_asked(data: &Data, target: &Target) -> bool {
    let is_host = data.registration(&target.name).is_some_and(|known| known.host.is_some());
    match target.machines {
        Machines::Fixed => is_host || target.capacity.gpus.is_some(),
        Machines::Here => target.capacity.gpus.is_some(),
        Machines::Provided | Machines::Engine => false,
    }
}

/// Why nothing can begin on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// By its own word, which it says to everybody.
    Said(String),
    /// It could not be asked; another account may have another way.
    Unasked(String),
}

impl Unusable {
    /// Why, in words.
    pub(crate) fn into_words(self) -> String {
        match self {
            Self::Said(why) | Self::Unasked(why) => why,
        }
    }
}

/// Whether jobs can begin on machines by their own words, and on which of their GPUs somebody is at work; in their
/// order, asked side by side.
pub(crate) fn preflight(
    ctx: &Ctx,
    data: &Data,
    targets: &[Target],
) -> Vec<Result<BusyGpus, Unusable>> {
    let asked: Vec<Target> =
        targets.iter().filter(|target| is_asked(data, target)).cloned().collect();
    let mut answers = machines(ctx, data, &asked, (Depth::State, PATIENCE)).into_iter();
    let one = |target: &Target| {
        if !is_asked(data, target) {
            return Ok(BTreeMap::new());
        }
        let answer = answers.next().unwrap_or_else(|| Err("nobody asked it".to_owned()));
        let fact = answer.map_err(Unusable::Unasked)?;
        may_begin(target, &fact).map_err(Unusable::Said)
    };
    targets.iter().map(one).collect()
}

/// What speaks against a job on a machine, or the GPUs on which somebody is at work.
fn may_begin(target: &Target, fact: &MachineFact) -> Result<BusyGpus, String> {
    if let Some(left) = fact.free_disk.filter(|left| left.0 < LEAST_DISK) {
        return Err(format!("its disk is full: {left} are free"));
    }
    let Some(counted) = target.capacity.gpus.and_then(|count| usize::try_from(count).ok()) else {
        return Ok(fact.busy());
    };
    if let Some(driver) = &fact.silent_driver {
        return Err(format!("who is on its GPUs is unknown: {driver} does not answer"));
    }
    // Without a driver that says something of any of them nobody can know.
    let there = fact.gpus.len();
    if there > 0 && there < counted {
        return Err(format!("only {there} of its {counted} GPUs answer"));
    }
    Ok(fact.busy())
}

/// The same for a machine that somebody has named.
pub(crate) fn before_start(ctx: &Ctx, data: &Data, target: &Target) -> Result<BusyGpus, Error> {
    let name = &target.name;
    let answer = preflight(ctx, data, std::slice::from_ref(target)).pop();
    let unasked = || Err(Unusable::Unasked("nobody asked it".to_owned()));
    answer.unwrap_or_else(unasked).map_err(Unusable::into_words).map_err(|why| {
        Error::unreachable(format!("{name} cannot be used now: {why}")).hint(format!(
            "take another one, or look: tpu hosts probe {name}; nothing new begins there after: tpu hosts drain {name}"
        ))
    })
}
