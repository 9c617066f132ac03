//! A cluster among the targets of the world, of whatever kind: who runs on it, and what must never happen there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tpu_core::model::target::Registration;
use tpu_engine::kinds::KindOfTarget;

use super::effects::Me;
use super::observer::Cause;
use super::world::{Pid, State, World};
use crate::slurm::sim::Liar;

/// The targets that are parts of it.
pub(crate) const TARGETS: [&str; 2] = ["gpu", "gpu-2"];

/// Which one the world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Whose lists, or whose memory, may be wrong.
    Slurm(Option<Liar>),
    Kubernetes,
}

/// A start of a job: its name there, and which of its starts it is.
pub(crate) type Start = (String, u32);

/// The programs that run there: by their starts, which the observer knows them as, and for how many seconds nothing of
/// their work was kept.
pub(crate) type Begun = BTreeMap<Start, (usize, f64)>;

/// What a job was submitted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) lineage: u32,
    /// Where what it prints is, or what it keeps beside that.
    pub(crate) log: PathBuf,
    /// What it goes on from.
    pub(crate) loads: Option<PathBuf>,
}

impl Order {
    /// Reads the words of the command that say which lineage it is of and from where it goes on.
    pub(crate) fn read(text: &str, log: PathBuf) -> Self {
        let word = |name: &str| {
            let (_, rest) = text.split_once(name)?;
            let ends = |c: char| c.is_whitespace() || c == '\'' || c == '"';
            rest.get(..rest.find(ends).unwrap_or(rest.len())).map(str::to_owned)
        };
        Self {
            lineage: word("--config.lineage=").and_then(|n| n.parse().ok()).unwrap_or(0),
            log,
            loads: word("--config.load_from=").map(PathBuf::from),
        }
    }
}

/// A start that is at work.
#[derive(Clone, Debug)]
pub(crate) struct AtWork {
    pub(crate) start: Start,
    /// The launch token of its job.
    pub(crate) token: String,
    pub(crate) order: Order,
}

/// One thing that happens, as the seed has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    /// Below 100.
    pub(crate) choice: u64,
    /// Below 1000.
    pub(crate) which: u64,
    /// Milliseconds.
    pub(crate) long: Duration,
}

/// A cluster of the world.
pub(crate) trait Cluster: Send + Sync {
    /// How one of [`TARGETS`] is registered.
    fn registration(&self, target: &str) -> Registration;

    /// The kind of target, with the door of one process to it.
    fn kind(self: Arc<Self>, me: &Me) -> Arc<dyn KindOfTarget>;

    /// The programs that run there.
    fn begun(&self) -> MutexGuard<'_, Begun>;

    /// What became of a start that is not at work any more; `None` of one that is.
    fn fate(&self, start: &Start) -> Option<Cause>;

    /// What is at work there.
    fn at_work(&self) -> Vec<AtWork>;

    /// Ends a start of a launch that was given up before it was submitted, if it is one.
    fn refuses(&self, at: &AtWork) -> bool;

    /// A program prints.
    fn prints(&self, at: &AtWork, text: &str);

    /// A program keeps its work.
    fn keeps(&self, at: &AtWork, step: f64);

    /// A program ends by itself.
    fn ends(&self, at: &AtWork, code: i32);

    /// Time has passed; then what must never happen there is looked for.
    fn hold(&self, world: &World);

    /// Whether a launch has a job there that is not over.
    fn is_live(&self, token: &str) -> bool;

    /// A job that nobody knows, or whose record is over.
    fn forgotten(&self, world: &World) -> Option<String>;

    /// Something happens to it.
    fn happens(&self, world: &World, draw: Draw);

    /// All is well with it from now on.
    fn calm(&self);
}

/// Whatever the cluster has no more, or not as it was, is dead.
pub(crate) fn bury(cluster: &dyn Cluster, world: &World) {
    let mut begun = cluster.begun();
    let over: Vec<(Start, Cause)> =
        begun.keys().filter_map(|start| Some((start.clone(), cluster.fate(start)?))).collect();
    for (start, cause) in over {
        let Some((number, _)) = begun.remove(&start) else { continue };
        let mut state = world.state();
        if let Some(program) = state.observer.programs.get_mut(number) {
            program.cause.get_or_insert(cause);
        }
        let now = state.now;
        state.observer.ended(number, now);
    }
}

/// The word under which a process notes when it last heard from the cluster.
const ASKED: &str = "cluster";

impl State {
    /// A process has heard from the cluster what is there.
    pub(crate) fn has_asked_cluster(&mut self, me: Pid) {
        let now = self.own_time(me);
        if let Some(proc) = self.proc_mut(me) {
            proc.asked.insert(ASKED.to_owned(), now);
        }
    }

    /// A process ends something there: what it knows must be new.
    pub(crate) fn rests_on_cluster(&mut self, me: Pid) {
        let now = self.own_time(me);
        let asked = self.proc(me).and_then(|proc| proc.asked.get(ASKED).copied());
        let age = asked.map(|at| now.saturating_sub(at));
        if age.is_none_or(|age| age > Duration::from_secs(65)) {
            self.violation(format!("7: a job is ended on an answer that is {age:?} old"));
        }
    }
}
