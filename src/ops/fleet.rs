//! What the control plane says about every target, asked once per look and never once per job.
//!
//! A call that failed, a zone that is missing from the answer and a target whose zone nobody knows are
//! all the same: unknown, and nothing follows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::kinds::tpu::sim::{Event, Scenario, SimCloud, SimConfig, import};
use crate::model::data::Data;
use crate::model::facts::{TargetFact, TargetState, TargetStep};
use crate::model::ids::TargetName;
use crate::model::settings::CloudKind;
use crate::model::target::LOCAL;
use crate::model::time::{self, Timestamp};
use crate::provider::none::NoProvider;
use crate::provider::{Answer, EVERYWHERE, ProviderError, Trouble, ZoneAnswer};
use crate::store::Who;

use super::heard::Heard;
use super::{Ctx, Error, Kind};

/// How long a look waits for a control plane before it goes on without it.
const PATIENCE: Duration = Duration::from_secs(3);

/// A question that is on its way.
#[derive(Debug)]
pub(super) struct Question {
    asked_at: Timestamp,
    answer: Receiver<Vec<ZoneAnswer>>,
}

fn late() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

/// The answers of one round of questions.
#[derive(Clone, Debug)]
pub struct Fleet {
    kind: CloudKind,
    /// Every target by name; another zone may have another one of the same.
    known: HashMap<TargetName, Vec<TargetFact>>,
    zones: BTreeMap<String, Result<Timestamp, ProviderError>>,
    asked_at: Timestamp,
    /// Why there was no answer since, where these are the answers of an earlier round.
    unanswered: Option<String>,
    /// What was heard before of targets about which nothing was said now.
    before: Heard,
}

impl Fleet {
    /// Asks about all zones.
    pub fn ask(ctx: &Ctx) -> Self {
        let cloud = ctx.cloud();
        let asked_at = ctx.clock.now();
        let answers = if cloud.kind() == CloudKind::None { Vec::new() } else { cloud.list(&[]) };
        Self::of(cloud.kind(), answers, asked_at)
    }

    /// Asks about all zones and waits no longer than people do; a late answer is taken by the next look that
    /// has the same `question`. `None` if there was no answer.
    pub(super) fn glance(ctx: &Ctx, question: &mut Option<Question>) -> Option<Self> {
        let cloud = &ctx.cloud();
        // What answers on this machine is not kept waiting for.
        if cloud.kind() != CloudKind::Google {
            return Some(Self::ask(ctx));
        }
        let asked = question.take().unwrap_or_else(|| {
            let (cloud, asked_at) = (Arc::clone(cloud), ctx.clock.now());
            let (say, answer) = channel();
            // Nobody hears it any more where the look is over: that is no failure.
            ctx.threads.spawn(Box::new(move || drop(say.send(cloud.list(&[])))));
            Question { asked_at, answer }
        });
        match asked.answer.recv_timeout(PATIENCE) {
            Ok(answers) => Some(Self::of(cloud.kind(), answers, asked.asked_at)),
            Err(RecvTimeoutError::Timeout) => {
                *question = Some(asked);
                None
            }
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// The same answers, to which the control plane has added nothing since.
    pub(super) fn left_alone(&self) -> Self {
        Self { unanswered: Some(late()), ..self.clone() }
    }

    /// With what was heard before, for the zones that have said nothing now.
    #[must_use]
    pub(super) fn after(mut self, before: impl FnOnce() -> Heard) -> Self {
        if self.zones.values().any(Result::is_err) {
            self.before = before();
        }
        self
    }

    /// Whether a control plane has said something that others cannot hear at once by themselves.
    pub(super) fn is_worth_keeping(&self) -> bool {
        self.kind == CloudKind::Google && self.zones.values().any(Result::is_ok)
    }

    /// Everything that was heard, whenever that was.
    pub(super) fn heard(&self) -> Heard {
        let now = self.targets().map(|fact| (fact.name.clone(), fact.clone()));
        self.before.clone().into_iter().chain(now).collect()
    }

    /// Why nobody knows how a target is now, and what was last heard of it. `None` where its control plane has
    /// just answered, and where none has a say.
    pub(super) fn doubt(&self, fact: &TargetFact, now: Timestamp) -> Option<String> {
        let is_silent = || self.zones.values().any(Result::is_err);
        let (why, known) = match (fact.state, &self.unanswered) {
            (TargetState::Unknown, _) if is_silent() => {
                (&fact.raw_state, self.before.get(&fact.name))
            }
            (TargetState::Unknown | TargetState::NotWatched, _) | (_, None) => return None,
            (_, Some(why)) => (why, Some(fact)),
        };
        let known = known.map_or("nothing was heard before".to_owned(), |fact| {
            let age = time::age(now.seconds_since(fact.observed_at));
            format!("it was {} {age} ago", fact.raw_state)
        });
        Some(format!("{why}; {known}"))
    }

    /// For whoever has waited in vain: how old is what is known.
    pub(super) fn late(&self, now: Timestamp) -> String {
        let newest = self.before.values().map(|fact| fact.observed_at).max();
        let known = newest.map_or_else(
            || "nothing was heard of it before".to_owned(),
            |at| format!("what is known is {} old", time::age(now.seconds_since(at))),
        );
        format!("the cloud said nothing: {}; {known}", late())
    }

    /// What is known where a control plane has not answered: nothing, and why.
    pub(super) fn unanswered(ctx: &Ctx) -> Self {
        let error = ProviderError::new(Trouble::Transient, "list targets", late());
        let answer = ZoneAnswer {
            zone: EVERYWHERE.to_owned(),
            answer: Answer::Unknown { error, last: None },
        };
        Self::of(ctx.cloud().kind(), vec![answer], ctx.clock.now())
    }

    fn of(kind: CloudKind, answers: Vec<ZoneAnswer>, asked_at: Timestamp) -> Self {
        let mut fleet = Self {
            kind,
            known: HashMap::new(),
            zones: BTreeMap::new(),
            asked_at,
            unanswered: None,
            before: Heard::new(),
        };
        for answer in answers {
            let said = match answer.answer {
                Answer::Facts { targets, observed_at } => {
                    for fact in targets {
                        fleet.known.entry(fact.name.clone()).or_default().push(fact);
                    }
                    Ok(observed_at)
                }
                Answer::Unknown { error, .. } => Err(error),
            };
            fleet.zones.insert(answer.zone, said);
        }
        fleet
    }

    /// What is known of a target.
    pub fn fact(&self, data: &Data, name: &TargetName) -> TargetFact {
        // Machines that somebody has registered by their addresses are no control plane's.
        let registered = data.registration(name).map(|known| known.addresses.clone());
        let endpoints = registered.unwrap_or_default();
        if self.kind == CloudKind::None || name.as_str() == LOCAL || !endpoints.is_empty() {
            return TargetFact { endpoints, ..NoProvider::fact(name.clone(), self.asked_at) };
        }
        let zone = data.target(name).and_then(|target| target.zone);
        let namesakes = self.known.get(name).map(Vec::as_slice).unwrap_or_default();
        let is_here = |fact: &&TargetFact| fact.zone == zone;
        match (namesakes.iter().find(is_here), namesakes) {
            (Some(fact), _) => return fact.clone(),
            // While its own zone is silent, another zone's target of the same name says nothing about it.
            (None, [fact]) if !zone.as_ref().is_some_and(|zone| self.is_silent(zone)) => {
                return fact.clone();
            }
            (None, [] | [_]) => {}
            (None, _) => {
                let word = "there is one in several zones".to_owned();
                return self.unseen(name, zone, (TargetState::Unknown, word, self.asked_at));
            }
        }
        let said = |zone: &String| self.zones.get(zone).or_else(|| self.zones.get(EVERYWHERE));
        let said = match zone.as_ref().map(said) {
            Some(Some(Ok(at))) => (TargetState::Gone, "not there".to_owned(), *at),
            Some(Some(Err(why))) => (TargetState::Unknown, why.to_string(), self.asked_at),
            Some(None) => {
                (TargetState::Unknown, "its zone did not answer".to_owned(), self.asked_at)
            }
            None => (TargetState::Unknown, "nobody knows its zone".to_owned(), self.asked_at),
        };
        self.unseen(name, zone, said)
    }

    fn is_silent(&self, zone: &str) -> bool {
        self.zones.get(zone).is_some_and(Result::is_err)
    }

    fn unseen(
        &self,
        name: &TargetName,
        zone: Option<String>,
        (state, word, at): (TargetState, String, Timestamp),
    ) -> TargetFact {
        let source = self.kind.as_str().to_owned();
        fail::fail_point!("bug-unknown-is-gone", |_| {
            TargetFact::new(name.clone(), TargetState::Gone, "not there".to_owned(), self.asked_at)
        });
        TargetFact { zone, source, ..TargetFact::new(name.clone(), state, word, at) }
    }

    /// Every target that the control plane has.
    pub fn targets(&self) -> impl Iterator<Item = &TargetFact> {
        self.known.values().flatten()
    }

    /// The zones that said nothing, why, and what to do about it.
    pub fn silent(&self) -> impl Iterator<Item = (&str, String)> {
        self.zones.iter().filter_map(|(zone, said)| {
            let error = said.as_ref().err()?;
            let remedy = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            Some((zone.as_str(), format!("{error}{remedy}")))
        })
    }
}

/// Why jobs cannot be started on a target as it is, if its control plane says that something can be done
/// about it: `lab-1 is PREEMPTED`.
pub fn obstacle(ctx: &Ctx, typed: &str) -> Result<Option<String>, Error> {
    let data = ctx.data()?;
    let Some(target) = data.resolve_target(typed).filter(|target| !target.is_local()) else {
        return Ok(None);
    };
    let fact = Fleet::ask(ctx).fact(&data, &target.name);
    let is_open = !matches!(fact.state.step(), TargetStep::Launch | TargetStep::Nothing);
    Ok(is_open.then(|| format!("{} is {}", target.name, fact.raw_state)))
}

/// The simulated fleet beside the data file, whatever `cloud` says.
pub fn simulator(ctx: &Ctx) -> SimCloud {
    let paths = ctx.store.paths();
    let targets = ctx.data().map_or_else(|_| Vec::new(), |data| import::fleet(data.registry()));
    SimCloud::open(SimConfig {
        file: paths.sim(),
        machines: Some(paths.state().join("sim")),
        disk: Arc::clone(ctx.store.disk()),
        clock: Arc::clone(&ctx.clock),
        who: Who {
            pid: ctx.env.pid,
            host: ctx.env.hostname.clone(),
            command: format!("tpu {}", ctx.actor),
        },
        seed: ctx.random.below(u64::MAX),
        targets,
    })
}

/// A string of the simulator, about one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pull {
    /// It is taken away.
    Preempt,
    /// It is READY, and made if it is not there.
    Ready,
    /// Programs on it lose their connection to each other.
    Grpc,
    /// Somebody else holds its accelerators.
    Lock,
    /// They are free again.
    Unlock,
    /// There is capacity for it.
    Capacity,
    /// Nobody reaches its workers any more; what runs there goes on.
    Cut,
    /// They can be reached again.
    Mend,
    /// Its creation fails, so many times or until there is capacity again.
    NoCapacity {
        /// How many times.
        times: Option<u32>,
    },
}

/// The simulated cloud, for whoever plays its part.
pub struct Simulator {
    sim: SimCloud,
    /// What happens is only tried out.
    dry_run: bool,
}

impl Simulator {
    /// Opens the fleet beside the data file.
    pub fn open(ctx: &Ctx) -> Self {
        Self { sim: simulator(ctx), dry_run: ctx.store.is_dry_run() }
    }

    /// Every target, in the order of their names.
    pub fn targets(&self, ctx: &Ctx) -> Result<Vec<TargetFact>, Error> {
        Ok(self.sim.look()?.targets(ctx.clock.now()))
    }

    /// Lets something happen to a target.
    pub fn pull(&self, name: &TargetName, what: &Pull) -> Result<(), Error> {
        let target = name.as_str().to_owned();
        let event = match what {
            Pull::Preempt => Event::Preempt { target },
            Pull::Ready => Event::Ready { target, zone: None, accelerator: None, pricing: None },
            Pull::Grpc => Event::Grpc { target },
            Pull::Lock => Event::Lock { target },
            Pull::Unlock => Event::Unlock { target },
            Pull::Capacity => Event::Capacity { target: Some(target), zone: None },
            Pull::Cut => Event::Cut { target },
            Pull::Mend => Event::Mend { target },
            Pull::NoCapacity { times } => {
                Event::NoCapacity { target: Some(target), zone: None, times: *times, for_s: None }
            }
        };
        self.happen(&event)
    }

    /// Lets any event happen, or tries it out.
    pub fn happen(&self, event: &Event) -> Result<(), Error> {
        if self.dry_run {
            self.sim.try_out(event)?;
        } else {
            self.sim.pull(event)?;
        }
        Ok(())
    }
}

impl Simulator {
    /// Plays a story; returns how many steps it has. `file` is for the error.
    pub fn play(&self, text: &str, file: &str) -> Result<usize, Error> {
        let story = Scenario::parse(text).map_err(|e| {
            Error::usage(format!("{file}: {e}"))
                .hint("a step has `at` in seconds, `event`, and what the event needs, as `target`")
        })?;
        if !self.dry_run {
            self.sim.play(&story)?;
        }
        Ok(story.steps.len())
    }
}

impl From<ProviderError> for Error {
    fn from(error: ProviderError) -> Self {
        let kind = match error.trouble {
            Trouble::NoCapacity | Trouble::Quota => Kind::Failed,
            Trouble::Transient | Trouble::Auth => Kind::Unreachable,
            Trouble::NotFound => Kind::NotFound,
            Trouble::AlreadyExists | Trouble::Permission | Trouble::NoProvider | Trouble::User => {
                Kind::Refused
            }
            Trouble::State => Kind::State,
        };
        let hint = error
            .hint()
            .unwrap_or_else(|| "`tpu check-status TARGET` shows what is there".to_owned());
        Self::new(kind, error.to_string()).hint(hint)
    }
}
