//! A plain model of jobs, which knows nothing but the lines of the journal: read in their order, they lead to the state
//! that there is.
//!
//! A server that is killed between the change of the state and its line in the journal leaves that change without one.
//! That can be one change for each kill, and only one that somebody asked for whose connection was cut then: those are
//! the doubts, and they are counted.

use std::collections::{BTreeMap, BTreeSet};

use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Status;
use tpu_system::store::Event;

use super::client::{Seen, Verb};

/// What stands in the journal of a successor that waits, before the job that it succeeds.
const GOES_ON: &str = "to go on from ";

/// How a job is, as far as it can be told from what was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stand {
    /// It waits: whether it is held, and how urgent it is.
    Waits(bool, u8),
    /// It is at work.
    Live,
    /// It is over: `finished`, `error`, `killed`, or another goes on with it.
    Over(&'static str),
    /// It was taken out of the queue, or its record was cleared away.
    Gone,
}

struct Known {
    stand: Stand,
    tag: Option<String>,
    rule: Option<String>,
    /// What it goes on from.
    from: Option<JobId>,
}

/// What may have happened without a line in the journal, by the job that it would have happened to.
#[derive(Default)]
pub(super) struct Doubts {
    /// What was tried: the verb, and what the journal would have said.
    pub(super) acts: BTreeMap<JobId, Vec<(Verb, String)>>,
    /// Jobs whose requests were cut off.
    pub(super) submitted: BTreeSet<JobId>,
    /// How many requests for a job were cut off. What one of them put into the queue before its server was killed is
    /// taken out again by whoever finds that nobody waits for it, so that no name is left by which it could be told.
    pub(super) cut: usize,
    /// What came into the queue to begin at once for a request that was cut off, and is gone: whoever took it out may have
    /// been killed before he wrote the line.
    pub(super) withdrawn: BTreeSet<JobId>,
}

impl Doubts {
    fn may(&self, job: &JobId, verbs: &[Verb]) -> bool {
        self.of(job).any(|(verb, _)| verbs.contains(verb))
    }

    fn may_say(&self, job: &JobId, verb: Verb, text: &str) -> bool {
        self.of(job).any(|(known, said)| *known == verb && said == text)
    }

    fn of(&self, job: &JobId) -> impl Iterator<Item = &(Verb, String)> {
        self.acts.get(job).into_iter().flatten()
    }
}

/// The model.
pub(super) struct Replay<'a> {
    jobs: BTreeMap<JobId, Known>,
    /// How requests asked jobs to wait: the journal says that they do, and not how.
    asked: &'a BTreeMap<JobId, (bool, u8)>,
    doubts: &'a Doubts,
    /// What cannot be.
    pub(super) wrong: Vec<String>,
    /// How often something has happened that has no line.
    pub(super) excused: usize,
    /// How many were taken out of the queue that had come into it without a line.
    withdrawn: usize,
}

impl<'a> Replay<'a> {
    pub(super) fn new(asked: &'a BTreeMap<JobId, (bool, u8)>, doubts: &'a Doubts) -> Self {
        Self { jobs: BTreeMap::new(), asked, doubts, wrong: Vec::new(), excused: 0, withdrawn: 0 }
    }

    /// Counts something that has no line, if that may be; else it is wrong.
    fn excuse(&mut self, may_be: bool, what: impl FnOnce() -> String) {
        if may_be {
            self.excused += 1;
        } else {
            self.wrong.push(what());
        }
    }

    /// What a job was asked to be, where it waits from the beginning.
    fn begins(&mut self, id: &JobId, from: Option<JobId>) {
        let (is_held, priority) = self.asked.get(id).copied().unwrap_or((false, 50));
        let (is_held, priority) = if from.is_some() { (false, 50) } else { (is_held, priority) };
        let stand = Stand::Waits(is_held, priority);
        let known = Known { stand, tag: None, rule: None, from };
        if let Some(old) = self.jobs.insert(id.clone(), known) {
            self.wrong.push(format!("{id} was there already: {:?}", old.stand));
        }
    }

    /// One more line. What was read before it was written must be so still, where somebody insisted on that.
    pub(super) fn happens(&mut self, event: &Event, seen: Option<&Seen>) {
        let (Some(user), Some(window)) = (&event.user, event.job) else { return };
        let id = JobId::new(user.clone(), window);
        if event.kind == "queued" {
            let from = event.text.split_once(GOES_ON).and_then(|(_, job)| JobId::parse(job));
            return self.begins(&id, from);
        }
        if !self.jobs.contains_key(&id) {
            let may_be = match event.kind.as_str() {
                "withdrawn" => {
                    self.withdrawn += 1;
                    self.withdrawn <= self.doubts.cut
                }
                _ => self.doubts.submitted.contains(&id),
            };
            self.excuse(may_be, || format!("{id} was never submitted: {event:?}"));
            self.begins(&id, None);
        }
        if let Some(seen) = seen {
            self.is_as(&id, seen, event);
        }
        let known = &self.jobs[&id];
        let (stand, from) = (known.stand.clone(), known.from.clone());
        match (event.kind.as_str(), &stand) {
            ("held", Stand::Waits(_, priority)) => self.stands(&id, Stand::Waits(true, *priority)),
            ("unhold", Stand::Waits(_, priority)) => {
                self.stands(&id, Stand::Waits(false, *priority));
            }
            ("priority", Stand::Waits(is_held, _)) => match event.text.parse() {
                Ok(priority) => self.stands(&id, Stand::Waits(*is_held, priority)),
                Err(_) => self.wrong.push(format!("{event:?}")),
            },
            ("dequeued" | "withdrawn", Stand::Waits(..)) | ("archived", Stand::Over(_)) => {
                self.stands(&id, Stand::Gone);
            }
            ("run" | "resume" | "rerun", Stand::Waits(is_held, _)) => {
                if *is_held {
                    let may_be = self.doubts.may(&id, &[Verb::Unhold]);
                    self.excuse(may_be, || format!("{id} is held and begins: {event:?}"));
                }
                if let Some(from) = from {
                    self.goes_on(&from, &id);
                }
                self.stands(&id, Stand::Live);
            }
            ("finished", Stand::Live) => self.stands(&id, Stand::Over("finished")),
            // What has failed may be killed, so that no rule brings it back.
            ("killed", Stand::Live | Stand::Over("error")) => {
                self.stands(&id, Stand::Over("killed"));
            }
            // What it was to go on from has ended well, or is not known any more.
            ("error", Stand::Live | Stand::Over("error")) | ("dependency", Stand::Waits(..)) => {
                self.stands(&id, Stand::Over("error"));
            }
            // Whoever claimed it was killed before the journal had a line of that; there are no more of these than kills.
            ("error", Stand::Waits(..)) if event.text == "launch: its window was never opened" => {
                self.excused += 1;
                self.stands(&id, Stand::Over("error"));
            }
            // What waits to continue from another takes over what is said of that: it is said of both.
            ("tag", Stand::Waits(..) | Stand::Live | Stand::Over(_)) => {
                let tag = Some(event.text.clone()).filter(|tag| !tag.is_empty());
                for known in self.both(&id, &stand, from) {
                    self.of(&known).tag.clone_from(&tag);
                }
            }
            ("rule", Stand::Waits(..) | Stand::Live | Stand::Over(_)) => {
                for known in self.both(&id, &stand, from) {
                    self.of(&known).rule = Some(event.text.clone());
                }
            }
            // What is noted of a job beside how it stands.
            ("started", Stand::Live)
            | ("moved" | "judged" | "progress" | "stopped" | "not-stopped", _) => {}
            _ => self.wrong.push(format!("{id} is {stand:?}: {event:?}")),
        }
    }

    /// Insists that a job is as somebody had read it who wanted to change that and nothing else.
    fn is_as(&mut self, id: &JobId, seen: &Seen, event: &Event) {
        let Known { stand, tag, .. } = &self.jobs[id];
        let is_same = match (stand, seen.waiting) {
            (Stand::Waits(is_held, priority), Some(waiting)) => waiting == (*is_held, *priority),
            (Stand::Waits(..), None) | (_, Some(_)) => false,
            (_, None) => seen.tag == *tag,
        };
        // Where one of its changes may have no line, nothing can be said.
        if !is_same && self.doubts.of(id).next().is_none() {
            let now = format!("{stand:?}, tag {tag:?}");
            self.wrong.push(format!("{id} was {now}, and read as {seen:?} before: {event:?}"));
        }
    }

    /// One goes on with another: it takes over what is said of that now.
    fn goes_on(&mut self, from: &JobId, id: &JobId) {
        let Some(before) = self.jobs.get_mut(from) else { return };
        before.stand = Stand::Over("superseded");
        let (tag, rule) = (before.tag.clone(), before.rule.clone());
        let known = self.of(id);
        (known.tag, known.rule) = (tag, rule);
    }

    /// A job, and the one that it waits to continue from.
    fn both(&self, id: &JobId, stand: &Stand, from: Option<JobId>) -> Vec<JobId> {
        let from =
            from.filter(|from| matches!(stand, Stand::Waits(..)) && self.jobs.contains_key(from));
        [Some(id.clone()), from].into_iter().flatten().collect()
    }

    /// Whether something may have been said without a line: of a job, of what it goes on from, or of what goes on from it.
    fn may_say(&self, id: &JobId, verb: Verb, text: &str) -> bool {
        let goes_on = self.jobs.iter().filter(|(_, known)| known.from.as_ref() == Some(id));
        let from = self.jobs.get(id).and_then(|known| known.from.as_ref());
        let mut all = goes_on.map(|(other, _)| other).chain(from).chain([id]);
        all.any(|of| self.doubts.may_say(of, verb, text))
    }

    fn of(&mut self, id: &JobId) -> &mut Known {
        self.jobs.get_mut(id).expect("the caller has seen it")
    }

    fn stands(&mut self, id: &JobId, stand: Stand) {
        if let Some(known) = self.jobs.get_mut(id) {
            known.stand = stand;
        }
    }

    /// Insists that this is the state that there is.
    pub(super) fn is_all(&mut self, data: &Data) {
        let entries = data.queues().entries.iter();
        let mut there: BTreeMap<JobId, (Stand, Option<String>, Option<String>)> = entries
            .map(|entry| {
                let stand = Stand::Waits(entry.held.is_some(), entry.priority.number());
                (entry.id(), (stand, None, None))
            })
            .collect();
        for job in data.jobs() {
            let stand = match &job.status {
                Status::Finished => Stand::Over("finished"),
                Status::Error(_) => Stand::Over("error"),
                Status::Killed(_) => Stand::Over("killed"),
                Status::Resumed(_) | Status::Rerunned(_) => Stand::Over("superseded"),
                Status::Unset | Status::Starting | Status::Running => Stand::Live,
            };
            let is = (stand, job.job_tags.clone(), Some(job.rules.to_string()));
            there.insert(job.id(), is);
        }
        let ids: BTreeSet<JobId> = self.jobs.keys().chain(there.keys()).cloned().collect();
        for id in ids {
            let (stand, tag, rule) = there.remove(&id).unwrap_or((Stand::Gone, None, None));
            self.ends_as(&id, &stand, (tag, rule));
        }
    }

    fn ends_as(
        &mut self,
        id: &JobId,
        stand: &Stand,
        (tag, rule): (Option<String>, Option<String>),
    ) {
        let Some(known) = self.jobs.get(id) else {
            let may_be = self.doubts.submitted.contains(id);
            return self.excuse(may_be, || format!("{id} is {stand:?} and was never submitted"));
        };
        let (by_lines, known_tag, known_rule) =
            (known.stand.clone(), known.tag.clone(), known.rule.clone());
        if *stand != by_lines {
            let doubts = self.doubts;
            let may_be = match (&by_lines, stand) {
                (Stand::Waits(was, before), Stand::Waits(is, after)) => {
                    let verb = if *is { Verb::Hold } else { Verb::Unhold };
                    (was == is || doubts.may(id, &[verb]))
                        && (before == after
                            || doubts.may_say(id, Verb::Priority, &after.to_string()))
                }
                (Stand::Waits(..), Stand::Gone) => {
                    doubts.withdrawn.contains(id) || doubts.may(id, &[Verb::Kill])
                }
                (Stand::Live, Stand::Over("killed")) => {
                    doubts.may(id, &[Verb::Kill, Verb::Requeue])
                }
                _ => false,
            };
            self.excuse(may_be, || format!("{id} is {stand:?}, and {by_lines:?} by the journal"));
        }
        if !matches!(stand, Stand::Live | Stand::Over(_)) {
            return;
        }
        if tag != known_tag {
            let may_be = self.may_say(id, Verb::Tag, tag.as_deref().unwrap_or_default());
            self.excuse(may_be, || {
                format!("{id} has the tag {tag:?}, and {known_tag:?} by the journal")
            });
        }
        if let (Some(rule), Some(known)) = (rule, known_rule)
            && rule != known
        {
            let may_be = self.may_say(id, Verb::Rule, &rule);
            self.excuse(may_be, || format!("{id} has the rule {rule}, and {known} by the journal"));
        }
    }
}
