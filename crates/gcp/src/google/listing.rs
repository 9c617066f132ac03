//! The whole fleet in one call: pages put together, unreachable zones set apart, queued resources joined in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::{
    Answer, Api, EVERYWHERE, Google, Method, ProviderError, Queued, Trouble, ZoneAnswer, wire,
};
use crate::GOOGLE;
use crate::queued;
use tpu_core::model::facts::{QueuedState, TargetFact};
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::retry;

/// Targets on one page.
const PAGE: u32 = 1_000;
/// More pages than anybody has: an answer that never ends is none.
const PAGES: usize = 1_000;
/// Queued resources are listed again after so long, even if nothing suggests that there are any.
const QUEUED_AGE: Duration = Duration::from_secs(600);

/// A complete list, as it came.
pub(super) struct Listed {
    pub(super) entries: Vec<Value>,
    /// Zones that did not answer.
    pub(super) unreachable: BTreeSet<String>,
}

/// A fleet without the zones that did not answer.
struct Fleet {
    targets: Vec<TargetFact>,
    unreachable: BTreeSet<String>,
    at: Timestamp,
}

impl Google {
    /// The answers of these zones.
    pub(super) fn list_zones(&self, zones: &[String]) -> Vec<ZoneAnswer> {
        let [zone] = zones else {
            let mut all: BTreeMap<String, Answer> =
                self.list_everywhere().into_iter().map(|one| (one.zone, one.answer)).collect();
            let rest = all.remove(EVERYWHERE);
            let of = |zone: &String| ZoneAnswer {
                zone: zone.clone(),
                answer: all.remove(zone).or_else(|| rest.clone()).unwrap_or_else(|| {
                    let message = "the answer says nothing about the zone";
                    self.unknown(zone, ProviderError::new(Trouble::Transient, doing(zone), message))
                }),
            };
            return zones.iter().map(of).map(|one| self.known_since(one)).collect();
        };
        let answer = match self.fleet(zone) {
            Ok(fleet) if !fleet.unreachable.contains(zone) => {
                Answer::Facts { targets: fleet.targets, observed_at: fleet.at }
            }
            Ok(_) => self.unknown(zone, unreachable(zone)),
            Err(error) => self.unknown(zone, error),
        };
        vec![self.known_since(ZoneAnswer { zone: zone.clone(), answer })]
    }

    /// The answers of all zones that have targets or did not answer, and one for all others together.
    pub(super) fn list_everywhere(&self) -> Vec<ZoneAnswer> {
        let everywhere = EVERYWHERE.to_owned();
        let fleet = match self.fleet(EVERYWHERE) {
            Ok(fleet) => fleet,
            Err(error) => {
                let answer = self.unknown(EVERYWHERE, error);
                return vec![ZoneAnswer { zone: everywhere, answer }];
            }
        };
        let observed_at = fleet.at;
        let mut zones: BTreeMap<String, Vec<TargetFact>> = BTreeMap::new();
        for fact in fleet.targets {
            let zone = fact.zone.clone().unwrap_or_default();
            zones.entry(zone).or_default().push(fact);
        }
        zones.retain(|zone, _| !fleet.unreachable.contains(zone));
        zones.insert(everywhere, Vec::new());
        let silent = fleet.unreachable.iter().map(|zone| ZoneAnswer {
            zone: zone.clone(),
            answer: self.unknown(zone, unreachable(zone)),
        });
        let mut answers: Vec<ZoneAnswer> = silent.collect();
        let said = zones.into_iter().map(|(zone, targets)| {
            self.known_since(ZoneAnswer { zone, answer: Answer::Facts { targets, observed_at } })
        });
        answers.extend(said);
        answers
    }

    /// One round: the nodes, and the queued resources if there may be any.
    fn fleet(&self, zone: &str) -> Result<Fleet, ProviderError> {
        let doing = doing(zone);
        let api = self.api().map_err(|e| ProviderError { doing: doing.clone(), ..e })?;
        let at = self.config.clock.now();
        let nodes = self.pages(api, (zone, "nodes"), &doing)?;
        let mut targets = Vec::with_capacity(nodes.entries.len());
        let mut has_parents = false;
        for entry in &nodes.entries {
            has_parents |= wire::parent(entry).is_some();
            targets.push(wire::node(entry, at).ok_or_else(|| unreadable(&doing))?);
        }
        let mut missing = nodes.unreachable;
        let queued = if self.wants_queued(&targets, has_parents) {
            let (queued, silent) = self.list_queued(api, zone)?;
            missing.extend(silent);
            queued
        } else {
            self.memory().queued.clone()
        };
        queued::join(&mut targets, &queued, GOOGLE.as_str());
        Ok(Fleet { targets: self.remembered(targets, at), unreachable: missing, at })
    }

    /// Whether the queued resources are to be looked at: the first time, while any is not settled, after
    /// this process has changed them, and once in a while.
    fn wants_queued(&self, targets: &[TargetFact], has_parents: bool) -> bool {
        let now = self.config.clock.monotonic();
        let memory = self.memory();
        let is_settled = |queued: &Queued| {
            let is_active = crate::states::of_queued(&queued.word) == QueuedState::Active;
            let is_ready = |fact: &TargetFact| queued.is_for(fact) && fact.raw_state == "READY";
            is_active && targets.iter().any(is_ready)
        };
        memory.queued_changed
            || memory.queued_at.is_none_or(|at| now.saturating_sub(at) > QUEUED_AGE)
            || has_parents && memory.queued.is_empty()
            || !memory.queued.iter().all(is_settled)
    }

    /// The queued resources of a zone or of all, and the zones that did not answer.
    pub(super) fn list_queued(
        &self,
        api: &Api,
        zone: &str,
    ) -> Result<(Vec<Queued>, BTreeSet<String>), ProviderError> {
        let doing = match zone {
            EVERYWHERE => "list the queued resources".to_owned(),
            zone => format!("list the queued resources of zone {zone}"),
        };
        let now = self.config.clock.now();
        let began = self.config.clock.monotonic();
        let listed = self.pages(api, (zone, "queuedResources"), &doing)?;
        let queued: Vec<Queued> =
            listed.entries.iter().flat_map(|entry| wire::queued(entry, now)).collect();
        if zone == EVERYWHERE {
            let mut memory = self.memory();
            memory.queued.clone_from(&queued);
            memory.queued_at = Some(began);
            memory.queued_changed = false;
        }
        Ok((queued, listed.unreachable))
    }

    /// All pages of a list of one zone or of all.
    pub(super) fn pages(
        &self,
        api: &Api,
        (zone, kind): (&str, &str),
        doing: &str,
    ) -> Result<Listed, ProviderError> {
        let location = if zone == EVERYWHERE { "-".to_owned() } else { super::escaped(zone) };
        let path = format!("projects/{}/locations/{location}/{kind}?pageSize={PAGE}", api.project);
        self.pages_at(api, (&format!("{}/{path}", api.base), kind), doing)
    }

    /// All pages of a list at an address that has parameters already. One page that is missing makes the whole
    /// unknown.
    pub(super) fn pages_at(
        &self,
        api: &Api,
        (path, kind): (&str, &str),
        doing: &str,
    ) -> Result<Listed, ProviderError> {
        let mut listed = Listed { entries: Vec::new(), unreachable: BTreeSet::new() };
        let mut tokens: BTreeSet<String> = BTreeSet::new();
        let mut token = String::new();
        loop {
            let page = match token.as_str() {
                "" => path.to_owned(),
                token => format!("{path}&pageToken={}", super::escaped(token)),
            };
            let page = self.persistently(|| api.ask_at(Method::Get, &page, None, doing))?;
            token = read_page(page, kind, &mut listed).ok_or_else(|| unreadable(doing))?;
            if token.is_empty() {
                return Ok(listed);
            }
            if !tokens.insert(token.clone()) || tokens.len() > PAGES {
                let message = "the list never ends: the API gives the same page again";
                return Err(ProviderError::new(Trouble::Transient, doing, message));
            }
        }
    }

    /// A page is asked for until it comes, as often as the settings of this provider want.
    pub(super) fn persistently(
        &self,
        call: impl FnMut() -> Result<Value, ProviderError>,
    ) -> Result<Value, ProviderError> {
        let (clock, random) = (&*self.config.clock, &*self.config.random);
        retry::at_most(self.config.list_tries, clock, random, call)
    }

    /// Facts with the time since which this process has seen them so, where the API does not say.
    pub(super) fn remembered(&self, mut facts: Vec<TargetFact>, now: Timestamp) -> Vec<TargetFact> {
        let mut memory = self.memory();
        for fact in &mut facts {
            let key = (fact.zone.clone().unwrap_or_default(), fact.name.as_str().to_owned());
            match memory.words.get(&key) {
                Some((word, since)) if *word == fact.raw_state => {
                    fact.since = fact.since.or(Some(*since));
                }
                _ => {
                    memory.words.insert(key, (fact.raw_state.clone(), now));
                }
            }
        }
        facts
    }

    fn unknown(&self, zone: &str, error: ProviderError) -> Answer {
        let answered = &self.memory().answered;
        let last = answered.get(zone).or_else(|| answered.get(EVERYWHERE)).copied();
        Answer::Unknown { error, last }
    }

    /// Remembers when a zone has answered.
    fn known_since(&self, answer: ZoneAnswer) -> ZoneAnswer {
        if let Answer::Facts { observed_at, .. } = &answer.answer {
            self.memory().answered.insert(answer.zone.clone(), *observed_at);
        }
        answer
    }
}

fn doing(zone: &str) -> String {
    match zone {
        EVERYWHERE => "list the fleet".to_owned(),
        zone => format!("list zone {zone}"),
    }
}

fn unreachable(zone: &str) -> ProviderError {
    let message = "UNAVAILABLE: the API cannot reach the zone";
    ProviderError::new(Trouble::Transient, doing(zone), message)
}

/// An entry that cannot be read could be anything: so the list is not complete.
pub(super) fn unreadable(doing: &str) -> ProviderError {
    let message = "the answer cannot be read as a list";
    ProviderError::new(Trouble::Transient, doing, message)
}

/// Adds a page; the token of the next one, empty after the last. `None` if it is no page.
fn read_page(page: Value, kind: &str, listed: &mut Listed) -> Option<String> {
    let Value::Object(mut page) = page else { return None };
    if page.contains_key("error") {
        return None;
    }
    match page.remove(kind) {
        None | Some(Value::Null) => {}
        Some(Value::Array(entries)) => listed.entries.extend(entries),
        Some(_) => return None,
    }
    match page.remove("unreachable") {
        None | Some(Value::Null) => {}
        Some(Value::Array(zones)) => {
            for zone in zones {
                let zone = zone.as_str()?.rsplit('/').next()?;
                listed.unreachable.insert(zone.to_owned());
            }
        }
        Some(_) => return None,
    }
    match page.remove("nextPageToken") {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(token)) => Some(token),
        Some(_) => None,
    }
}
