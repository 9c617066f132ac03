//! What the providers say about every target, each asked once per look and never once per job.
//!
//! A call that failed, a zone that is missing from the answer and a target whose zone nobody knows are
//! all the same: unknown, and nothing follows. A provider that is silent says nothing about its own targets; those
//! of the others are as they are.

mod shared;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::facts::{TargetFact, TargetState, TargetStep};
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::{Machines, ProviderAt, Registration, Target};
use tpu_core::model::time::{self, Timestamp};
use tpu_engine::provider::none::NoProvider;
use tpu_engine::provider::{
    Answer, ENDPOINT_SETTING, EVERYWHERE, ProviderError, Trouble, ZoneAnswer,
};
use tpu_system::sys::threads::{self, Threads};

use crate::base::fact_cache::{self, Heard, HeardOf};
use crate::base::providers::{Numbered, Places};
use crate::{Ctx, Error};

/// How long a look waits for the providers before it goes on without those that are late.
const PATIENCE: Duration = Duration::from_secs(3);

/// How old what was said in the same command may be, in seconds, before it is asked again.
const SERVES_S: u64 = 5;

/// A question that is on its way.
#[derive(Debug)]
pub(super) struct Question {
    at: ProviderAt,
    number: u64,
    asked_at: Timestamp,
    answer: Receiver<Vec<ZoneAnswer>>,
    /// What it said while nobody waited for it.
    late: Option<Vec<ZoneAnswer>>,
}

impl Question {
    /// Asks a provider about all its zones, and waits for nothing.
    fn ask(ctx: &Ctx, provider: &Numbered) -> Self {
        let (say, answer) = channel();
        let door = Arc::clone(&provider.door);
        // Nobody hears it any more where the look is over: that is no failure.
        ctx.threads.spawn(Box::new(move || drop(say.send(door.list(&[])))));
        let Numbered { at, number, .. } = provider;
        Self { at: at.clone(), number: *number, asked_at: ctx.clock.now(), answer, late: None }
    }

    /// Whether the answer has come, by now.
    pub(super) fn is_answered(&mut self) -> bool {
        self.late = self.late.take().or_else(|| self.answer.try_recv().ok());
        self.late.is_some()
    }

    /// The answer, waited for so long at most.
    fn wait(
        &mut self,
        threads: &dyn Threads,
        patience: Duration,
    ) -> Result<Vec<ZoneAnswer>, RecvTimeoutError> {
        self.late.take().map_or_else(|| threads::next_of(threads, &self.answer, patience), Ok)
    }

    fn is_to(&self, provider: &Numbered) -> bool {
        self.at == provider.at && self.number == provider.number
    }
}

fn late() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

/// The answers of one round of questions.
#[derive(Clone, Debug)]
pub struct ProviderFacts {
    /// Which provider each target has.
    places: Places,
    /// What each provider has said.
    said: Vec<Said>,
    asked_at: Timestamp,
}

/// What one provider has said.
#[derive(Clone, Debug)]
struct Said {
    at: ProviderAt,
    number: u64,
    /// Others hear it at once by themselves.
    is_here: bool,
    /// Every target by the provider's name; another zone may have another one of the same.
    known: HashMap<TargetName, Vec<TargetFact>>,
    zones: BTreeMap<String, Result<Timestamp, ProviderError>>,
    asked_at: Timestamp,
    /// Why there was no answer since, where these are the answers of an earlier round.
    unanswered: Option<String>,
    /// What was heard before of targets about which nothing was said now.
    before: Heard,
}

/// The providers that are to be asked: those that watch some target.
fn watching(ctx: &Ctx, places: &Places) -> Vec<Numbered> {
    // What cannot be read names no provider beside the usual one.
    let data = ctx.data();
    let all = data.map_or_else(|_| vec![places.usual().clone()], |data| places.all(&data));
    all.into_iter().filter(|at| !at.name.is_none()).map(|at| ctx.numbered(&at)).collect()
}

impl ProviderFacts {
    /// Asks every provider about all zones, side by side where there are several, and waits for all.
    pub fn ask(ctx: &Ctx) -> Self {
        let places = ctx.places();
        let providers = watching(ctx, &places);
        Self::ask_these(ctx, places, &providers)
    }

    /// Asks these providers alone.
    pub fn ask_all(ctx: &Ctx, asked: &[ProviderAt]) -> Self {
        let asked = asked.iter().filter(|at| !at.name.is_none());
        let providers: Vec<Numbered> = asked.map(|at| ctx.numbered(at)).collect();
        Self::ask_these(ctx, ctx.places(), &providers)
    }

    /// What is known without asking anybody: enough for a target that no provider watches.
    pub fn unasked(ctx: &Ctx) -> Self {
        Self { places: ctx.places(), said: Vec::new(), asked_at: ctx.clock.now() }
    }

    /// Asks about one target: its provider alone, and nobody where none has a say.
    pub fn ask_of(ctx: &Ctx, data: &Data, name: &TargetName) -> Self {
        if data.target(name).is_some_and(|target| target.machines != Machines::Provided) {
            return Self::unasked(ctx);
        }
        let places = ctx.places();
        let at = places.of(data, name).into_owned();
        Self::ask_all(ctx, &[at])
    }

    fn ask_these(ctx: &Ctx, places: Places, providers: &[Numbered]) -> Self {
        let asked_at = ctx.clock.now();
        let said = match providers {
            [only] => vec![Said::of(only, only.door.list(&[]), asked_at)],
            several => {
                let asked: Vec<_> = several.iter().map(|one| Question::ask(ctx, one)).collect();
                let answers = several.iter().zip(asked).map(|(provider, question)| {
                    let answers = question.answer.recv().unwrap_or_else(|_| silence("no answer"));
                    Said::of(provider, answers, asked_at)
                });
                answers.collect()
            }
        };
        Self { places, said, asked_at }.blaming_registrations(ctx)
    }

    /// Names the registration in advice about an address that stands there, and not in the settings.
    fn blaming_registrations(mut self, ctx: &Ctx) -> Self {
        let Ok(data) = ctx.data() else { return self };
        let own = self.places.usual().clone();
        for said in self.said.iter_mut().filter(|said| said.at.endpoint != own.endpoint) {
            let is_there = |known: &Registration| *self.places.told(known) == said.at;
            let mut registered = data.registry().registrations();
            let Some((name, _)) = registered.find(|(_, known)| is_there(known)) else { continue };
            let of_registration = format!("tpu data get targets.{name}");
            for error in said.zones.values_mut().filter_map(|zone| zone.as_mut().err()) {
                let remedy = error.remedy.take();
                error.remedy = remedy.map(|it| it.replace(ENDPOINT_SETTING, &of_registration));
            }
        }
        self
    }

    /// With what was heard before of what is silent now. What others cannot hear at once by themselves is kept for the next
    /// question.
    #[must_use]
    pub fn remembering(self, ctx: &Ctx) -> Self {
        let mut all = fact_cache::last(ctx);
        let facts = self.after(|| all.clone());
        if facts.is_worth_keeping() {
            all.extend(facts.heard());
            fact_cache::keep(ctx, all, BTreeMap::new());
        }
        facts
    }

    /// Asks about all zones and waits no longer than people do, from `since` on; a late answer is taken by the next
    /// look that has the same `questions`. Of a provider that is late, what it said `before` holds on, with its age;
    /// the second value names those of which there is nothing.
    pub(super) fn glance(
        ctx: &Ctx,
        questions: &mut Vec<Question>,
        (before, since): (Option<&Self>, Duration),
    ) -> (Self, Vec<ProviderAt>) {
        let places = ctx.places();
        let providers = watching(ctx, &places);
        Self::ask_those(ctx, questions, &providers);
        let (asked_at, deadline) = (ctx.clock.now(), since + PATIENCE);
        let mut silent = Vec::new();
        let mut said = Vec::new();
        for provider in &providers {
            let Some(asked) = questions.iter().position(|question| question.is_to(provider)) else {
                // What answers on this machine is not kept waiting for.
                said.push(Said::of(provider, provider.door.list(&[]), asked_at));
                continue;
            };
            let left = deadline.saturating_sub(ctx.clock.monotonic());
            let mut question = questions.swap_remove(asked);
            match question.wait(&*ctx.threads, left) {
                Ok(answers) => {
                    said.push(Said::of(provider, answers, question.asked_at));
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => questions.push(question),
                Err(RecvTimeoutError::Disconnected) => {}
            }
            let known = before.and_then(|before| before.said_by(provider));
            said.push(if let Some(known) = known {
                Said { unanswered: Some(late()), ..known.clone() }
            } else {
                silent.push(provider.at.clone());
                Said::of(provider, silence(&late()), asked_at)
            });
        }
        (Self { places, said, asked_at }.blaming_registrations(ctx), silent)
    }

    /// Asks the questions of a glance, and waits for nothing.
    pub(super) fn ask_ahead(ctx: &Ctx, questions: &mut Vec<Question>) {
        Self::ask_those(ctx, questions, &watching(ctx, &ctx.places()));
    }

    fn ask_those(ctx: &Ctx, questions: &mut Vec<Question>, providers: &[Numbered]) {
        questions.retain(|question| providers.iter().any(|one| question.is_to(one)));
        for provider in providers.iter().filter(|provider| !provider.door.is_here()) {
            if !questions.iter().any(|question| question.is_to(provider)) {
                questions.push(Question::ask(ctx, provider));
            }
        }
    }

    /// What the daemon hears in a turn. It waits for the only provider, without which there is nothing to be done;
    /// where there are several, one that is silent keeps it from nothing that concerns the others.
    pub(super) fn in_turn(ctx: &Ctx, questions: &mut Vec<Question>, before: Option<&Self>) -> Self {
        let places = ctx.places();
        let providers = watching(ctx, &places);
        if providers.len() < 2 {
            // Nobody takes an answer that comes later.
            questions.clear();
            return Self::ask_these(ctx, places, &providers);
        }
        Self::glance(ctx, questions, (before, ctx.clock.monotonic())).0
    }

    fn said_by(&self, provider: &Numbered) -> Option<&Said> {
        self.said.iter().find(|said| said.at == provider.at && said.number == provider.number)
    }

    /// Whether these answers are those of the providers that are to be asked now.
    pub(super) fn is_of_today(&self, ctx: &Ctx) -> bool {
        let providers = watching(ctx, &ctx.places());
        self.said.len() == providers.len()
            && providers.iter().all(|provider| self.said_by(provider).is_some())
    }

    /// With what was heard before, for the zones that have said nothing now.
    #[must_use]
    pub(super) fn after(mut self, before: impl FnOnce() -> HeardOf) -> Self {
        if self.said.iter().any(Said::has_silence) {
            let mut before = before();
            for said in self.said.iter_mut().filter(|said| said.has_silence()) {
                if let Some(heard) = before.remove(&said.at.to_string()) {
                    said.before = heard;
                }
            }
        }
        self
    }

    /// Whether a provider has said something that others cannot hear at once by themselves.
    pub(super) fn is_worth_keeping(&self) -> bool {
        self.said.iter().any(|said| !said.is_here && said.zones.values().any(Result::is_ok))
    }

    /// Everything that was heard, whenever that was, by provider.
    pub(super) fn heard(&self) -> HeardOf {
        let of = |said: &Said| {
            let now = said.facts().map(|fact| (fact.name.clone(), fact.clone()));
            said.before.clone().into_iter().chain(now).collect()
        };
        self.said.iter().map(|said| (said.at.to_string(), of(said))).collect()
    }

    /// Why nobody knows how a target is now, and what was last heard of it. `None` where its provider has
    /// just answered, and where none has a say.
    pub fn doubt(&self, data: &Data, fact: &TargetFact, now: Timestamp) -> Option<String> {
        if fact.machines != Machines::Provided {
            return None;
        }
        let at = self.places.of(data, &fact.name);
        let said = self.said.iter().find(|said| said.at == *at)?;
        let (why, known) = match (fact.state, &said.unanswered) {
            (TargetState::Unknown, _) if said.has_silence() => {
                (&fact.raw_state, said.before.get(&fact.name.of_provider()))
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

    /// For whoever has waited in vain for a provider: how old is what is known.
    pub(super) fn late(&self, silent: &ProviderAt, now: Timestamp) -> String {
        let said = self.said.iter().find(|said| said.at == *silent);
        let before = said.iter().flat_map(|said| said.before.values());
        let newest = before.map(|fact| fact.observed_at).max();
        let known = newest.map_or_else(
            || "nothing was heard of it before".to_owned(),
            |at| format!("what is known is {} old", time::age(now.seconds_since(at))),
        );
        let who = if self.said.len() > 1 { silent.to_string() } else { "the cloud".to_owned() };
        format!("{who} said nothing: {}; {known}", late())
    }

    /// Why its provider does not know who asks about a target, where that is it.
    pub(crate) fn login(&self, data: &Data, name: &TargetName) -> Option<&ProviderError> {
        let at = self.places.of(data, name);
        let said = self.said.iter().find(|said| said.at == *at)?;
        let zone = data.target(name).and_then(|target| target.zone);
        let of_zone = zone.and_then(|zone| said.zones.get(&zone));
        let answer = of_zone.or_else(|| said.zones.get(EVERYWHERE))?;
        answer.as_ref().err().filter(|error| error.trouble == Trouble::Auth)
    }

    /// What is known of a target.
    pub fn fact(&self, data: &Data, name: &TargetName) -> TargetFact {
        self.fact_of(data, name, data.target(name).as_ref())
    }

    /// The same by whoever knows what the data file says of it.
    pub(crate) fn fact_of(
        &self,
        data: &Data,
        name: &TargetName,
        target: Option<&Target>,
    ) -> TargetFact {
        let machines = target.map(|target| target.machines).unwrap_or_default();
        let fact = match target.map(|target| self.places.kinds().of(target)) {
            Some(Err(unknown)) => {
                let word = unknown.to_string();
                TargetFact::new(name.clone(), TargetState::Unknown, word, self.asked_at)
            }
            // Machines that somebody has registered by their addresses are no provider's.
            Some(Ok(_)) | None if machines != Machines::Provided => {
                let registered = data.registration(name).map(|known| known.addresses.clone());
                let endpoints = registered.unwrap_or_default();
                TargetFact { endpoints, ..NoProvider::fact(name.clone(), self.asked_at) }
            }
            Some(Ok(_)) | None => {
                let at = self.places.of(data, name);
                let zone = target.and_then(|target| target.zone.clone());
                match self.said.iter().find(|said| said.at == *at) {
                    Some(said) => said.fact(name, zone),
                    None if at.name.is_none() => NoProvider::fact(name.clone(), self.asked_at),
                    None => {
                        let word = format!("{at} was not asked");
                        TargetFact::new(name.clone(), TargetState::Unknown, word, self.asked_at)
                    }
                }
            }
        };
        TargetFact { machines, ..fact }
    }

    /// Every target that a provider has.
    pub fn targets(&self) -> impl Iterator<Item = (&ProviderAt, &TargetFact)> {
        self.said.iter().flat_map(|said| said.facts().map(|fact| (&said.at, fact)))
    }

    /// The targets that providers have and that are none of the `known` ones, those of the data file.
    pub fn strangers(
        &self,
        data: &Data,
        known: &HashMap<TargetName, TargetFact>,
    ) -> Vec<TargetFact> {
        let known: HashSet<_> = known
            .values()
            .map(|fact| {
                (self.places.of(data, &fact.name), fact.name.of_provider(), fact.zone.as_ref())
            })
            .collect();
        // A namesake in another zone, or of another provider, is another target.
        let is_known = |at: &ProviderAt, fact: &TargetFact| {
            known.contains(&(Cow::Borrowed(at), fact.name.clone(), fact.zone.as_ref()))
        };
        let others = self.targets().filter(|(at, fact)| !is_known(at, fact));
        others.map(|(_, fact)| fact.clone()).collect()
    }

    /// The zones that said nothing, why, and what to do about it. Where there are several providers, each zone is
    /// named with its own.
    pub fn silent(&self) -> Vec<(String, String)> {
        let mut silent = Vec::new();
        for said in &self.said {
            for (zone, answer) in &said.zones {
                let Err(error) = answer else { continue };
                let remedy = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                let who =
                    if self.said.len() > 1 { format!("{}: ", said.at) } else { String::new() };
                silent.push((zone.clone(), format!("{who}{error}{remedy}")));
            }
        }
        silent
    }
}

/// A target about which its provider is asked when that is first needed, and once.
pub struct AskedOnce<'a> {
    /// What the data file says.
    pub data: &'a Data,
    /// Its name.
    pub name: &'a TargetName,
    ctx: &'a Ctx,
    fact: OnceCell<TargetFact>,
}

impl<'a> AskedOnce<'a> {
    /// Nobody was asked yet.
    pub fn new(ctx: &'a Ctx, data: &'a Data, name: &'a TargetName) -> Self {
        Self { data, name, ctx, fact: OnceCell::new() }
    }

    /// What providers have `said` a moment ago serves, unless it is nothing.
    pub(crate) fn after(
        ctx: &'a Ctx,
        data: &'a Data,
        name: &'a TargetName,
        said: Option<&ProviderFacts>,
    ) -> Self {
        let is_fresh = |fact: &TargetFact| {
            let age = ctx.clock.now().seconds_since(fact.observed_at);
            fact.state != TargetState::Unknown && age <= SERVES_S
        };
        let fact = said.map(|said| said.fact(data, name)).filter(is_fresh);
        Self { fact: fact.map(OnceCell::from).unwrap_or_default(), ..Self::new(ctx, data, name) }
    }

    /// How it is.
    pub fn fact(&self) -> &TargetFact {
        self.fact.get_or_init(|| {
            ProviderFacts::ask_of(self.ctx, self.data, self.name).fact(self.data, self.name)
        })
    }
}

/// The answer of a provider that has none.
fn silence(why: &str) -> Vec<ZoneAnswer> {
    let error = ProviderError::new(Trouble::Transient, "list targets", why);
    let answer = Answer::Unknown { error, last: None };
    vec![ZoneAnswer { zone: EVERYWHERE.to_owned(), answer }]
}

impl Said {
    fn of(provider: &Numbered, answers: Vec<ZoneAnswer>, asked_at: Timestamp) -> Self {
        let mut said = Self {
            at: provider.at.clone(),
            number: provider.number,
            is_here: provider.door.is_here(),
            known: HashMap::new(),
            zones: BTreeMap::new(),
            asked_at,
            unanswered: None,
            before: Heard::new(),
        };
        for answer in answers {
            let of_zone = match answer.answer {
                Answer::Facts { targets, observed_at } => {
                    for fact in targets {
                        said.known.entry(fact.name.clone()).or_default().push(fact);
                    }
                    Ok(observed_at)
                }
                Answer::Unknown { error, .. } => Err(error),
            };
            said.zones.insert(answer.zone, of_zone);
        }
        said
    }

    fn facts(&self) -> impl Iterator<Item = &TargetFact> {
        self.known.values().flatten()
    }

    fn has_silence(&self) -> bool {
        self.zones.values().any(Result::is_err)
    }

    /// What it says of the target that the data file calls `name`.
    fn fact(&self, name: &TargetName, zone: Option<String>) -> TargetFact {
        let called = |fact: &TargetFact| TargetFact { name: name.clone(), ..fact.clone() };
        let namesakes = self.known.get(&name.of_provider()).map(Vec::as_slice).unwrap_or_default();
        let is_here = |fact: &&TargetFact| fact.zone == zone;
        match (namesakes.iter().find(is_here), namesakes) {
            (Some(fact), _) => return called(fact),
            // While its own zone is silent, another zone's target of the same name says nothing about it.
            (None, [fact]) if !zone.as_ref().is_some_and(|zone| self.is_silent(zone)) => {
                return called(fact);
            }
            (None, [] | [_]) => {}
            (None, _) => {
                let word = "there is one in several zones".to_owned();
                return self.unseen(name, zone, (TargetState::Unknown, word, self.asked_at));
            }
        }
        let of_zone = |zone: &String| self.zones.get(zone).or_else(|| self.zones.get(EVERYWHERE));
        let said = match zone.as_ref().map(of_zone) {
            Some(Some(Ok(at))) => (TargetState::Gone, "not there".to_owned(), *at),
            Some(Some(Err(why))) => (TargetState::Unknown, in_words(why), self.asked_at),
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
        let source = self.at.name.as_str().to_owned();
        TargetFact { zone, source, ..TargetFact::new(name.clone(), state, word, at) }
    }
}

/// Why a provider says nothing, with what to type where a person has to log in first.
fn in_words(error: &ProviderError) -> String {
    let remedy = error.hint().filter(|_| error.trouble == Trouble::Auth);
    remedy.map_or_else(|| error.to_string(), |remedy| format!("{error}; {remedy}"))
}

/// Why jobs cannot be started on a target as it is, if its control plane says that something can be done
/// about it: `lab-1 is PREEMPTED`.
pub fn obstacle(ctx: &Ctx, typed: &str) -> Result<Option<String>, Error> {
    let data = ctx.data()?;
    let Some(target) = data.resolve_target(typed).filter(|target| !target.is_here()) else {
        return Ok(None);
    };
    let fact = ProviderFacts::ask_of(ctx, &data, &target.name).fact(&data, &target.name);
    let is_open = !matches!(fact.state.step(), TargetStep::Launch | TargetStep::Nothing);
    Ok(is_open.then(|| format!("{} is {}", target.name, fact.raw_state)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_system::sys::threads::OsThreads;

    #[test]
    fn an_answer_that_comes_late_is_noticed_and_kept_for_the_next_look() {
        let (say, answer) = channel();
        let (at, asked_at) = (ProviderAt::default(), Timestamp::from_second(5));
        let mut question = Question { at, number: 0, asked_at, answer, late: None };
        assert!(!question.is_answered());
        assert!(question.wait(&OsThreads, Duration::ZERO).is_err());
        say.send(silence("a word")).unwrap();
        assert!(question.is_answered());
        assert!(question.is_answered(), "however often it is asked");
        assert_eq!(question.wait(&OsThreads, Duration::ZERO).unwrap(), silence("a word"));
    }
}
