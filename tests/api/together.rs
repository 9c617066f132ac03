//! Many act at random over HTTP, beside the daemon, the screen and commands, while the server is killed and begun
//! again: the state is what the journal says, line by line; each request with a key has acted once; what was answered
//! as done was done by whoever asked, and what was refused was not.
//!
//! `./x prove api-clients SECONDS` lets a hundred of them act for that long (600); a share of them in the suite.

mod client;
mod lab;
mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tpu_core::model::archived::Archived;
use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_system::store::{Event, Paths};

use self::client::{Act, Client, Key, Outcome, Seen, Verb};
use self::lab::{Extent, Lab, USERS};
use self::replay::{Doubts, Replay};
use crate::common::dice::Dice;

/// Where each seed is another history.
const SEED: u64 = 0x5eed_0b09;
/// In the suite: so many who ask, so many acts of theirs, and a kill each so many of them.
const SHARE: (usize, usize, (usize, usize)) = (12, 200, (25, 60));
/// So many who ask, and a kill each so many acts, where more is asked for.
const WHOLE: (usize, (usize, usize)) = (100, (60, 240));
/// Commands that act at a time beside them.
const COMMANDS: usize = 2;

/// For as many seconds as `./x prove api-clients` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn asked_for() -> Option<u64> {
    std::env::var("TPU_PROVE_API_CLIENTS").ok().and_then(|text| text.parse().ok())
}

/// Acts with commands until all is over: so many of them, and the tags that they have set.
fn commands(lab: &Lab, mut dice: Dice, number: usize) -> (usize, Vec<String>) {
    let (mut count, mut tags) = (0, Vec::new());
    while !lab.is_over() {
        let user = *dice.one(&USERS);
        let job = lab.some_job(&mut dice, user).map_or(1, |(job, _)| job.window.0);
        count += 1;
        let tag = format!("command-{number}-{count}");
        let line = match dice.below(10) {
            0 | 1 => "queue".to_owned(),
            2 => format!("hold {job} {user}"),
            3 => format!("unhold {job} {user}"),
            4 => format!("kill w={job} {user} -y"),
            5 => format!("set-rule {job} pass {user}"),
            6 | 7 => format!("add-tag {job} {tag} {user}"),
            8 => format!("check {user}"),
            _ => format!("clean {user} -y"),
        };
        let done = lab.env.tpu(&line);
        // What cannot be done as things stand is refused, and where a hundred want to write a turn may not come in
        // time.
        assert!([0, 3, 4, 5, 6].contains(&done.code), "{}", done.report());
        if line.starts_with("add-tag") && done.code == 0 {
            tags.push(tag);
        }
    }
    (count, tags)
}

/// What is known of all jobs that there have been: their names, also of those whose records were cleared away. What
/// goes on from another has its name, and is left out.
fn names(lab: &Lab, data: &Data, events: &[Event]) -> BTreeMap<JobId, String> {
    let goes_on = events.iter().filter(|event| event.kind == "queued" && !begins_anew(event));
    let goes_on: BTreeSet<JobId> = goes_on.filter_map(id_of).collect();
    let entries = data.queues().entries.iter().filter(|entry| entry.succeeds.is_none());
    let mut names: BTreeMap<JobId, String> =
        entries.filter_map(|entry| Some((entry.id(), entry.spec.name.clone()?))).collect();
    let archive = Paths::new(lab.env.data_path()).archive();
    let archive = std::fs::read(archive).unwrap_or_default();
    let lines = archive.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let archived = lines.map(|line| Archived::read(line.to_vec()).unwrap().job);
    let jobs = data.jobs().cloned().chain(archived).filter(|job| job.father.is_none());
    names.extend(jobs.filter_map(|job| Some((job.id(), job.name()?.to_owned()))));
    names.retain(|id, _| !goes_on.contains(id));
    names
}

/// Whether a line of the journal puts a job into a queue that goes on from none.
fn begins_anew(event: &Event) -> bool {
    event.kind == "queued" && !event.text.contains("to go on from")
}

fn id_of(event: &Event) -> Option<JobId> {
    Some(JobId::new(event.user.clone()?, event.job?))
}

/// What there is to be wrong with requests that have keys: each answer is the same, and there is one job of those that
/// were answered, and at most one of any other.
fn keys_acted_once(
    keys: &[&Key],
    names: &BTreeMap<JobId, String>,
    doubts: &Doubts,
    events: &[Event],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut of_name: BTreeMap<&str, BTreeSet<&JobId>> = BTreeMap::new();
    for (id, name) in names {
        of_name.entry(name).or_default().insert(id);
    }
    let lines_of = |kind: &str| -> BTreeSet<JobId> {
        events.iter().filter(|event| event.kind == kind).filter_map(id_of).collect()
    };
    let withdrawn = lines_of("withdrawn");
    for key in keys {
        let first = key.answers.first();
        if key.answers.iter().any(|answer| Some(answer) != first) {
            wrong.push(format!("{}: answered differently: {:?}", key.name, key.answers));
        }
        let jobs = of_name.get(key.name.as_str()).map_or(0, BTreeSet::len);
        let least = usize::from(first.is_some());
        if !(least..=1).contains(&jobs) {
            wrong.push(format!("{}: {jobs} jobs, answered {:?}", key.name, first));
        }
        let is_named = |id: &JobId| names.get(id) == Some(&key.name);
        if let Some(ids) = first
            && !(ids.len() == 1 && is_named(&ids[0]) && !withdrawn.contains(&ids[0]))
        {
            wrong.push(format!("{}: answered with {ids:?}, which is not its job", key.name));
        }
    }
    // Nothing comes to be but what somebody asked for.
    let nobodys = nameless(names, events).into_iter().filter(|id| !doubts.withdrawn.contains(id));
    wrong.extend(nobodys.map(|id| format!("nobody knows what {id} was")));
    wrong
}

/// The kind of line by which an act stands in the journal.
fn kind(verb: Verb) -> &'static str {
    match verb {
        Verb::Hold => "held",
        Verb::Unhold => "unhold",
        Verb::Priority => "priority",
        Verb::Tag => "tag",
        Verb::Rule => "rule",
        Verb::Kill => "killed",
        Verb::Requeue => "queued",
    }
}

/// By what an act is found in the journal: who did what to which job.
type Mark<'a> = (&'a str, JobId, &'static str, &'a str);

/// What there is to be wrong with acts beside the journal: each that was answered as done stands there once as done by
/// that one, and none that was refused does.
fn acts_stand_once(acts: &[&Act], events: &[Event]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut lines: BTreeMap<(&str, JobId, &str, &str), usize> = BTreeMap::new();
    let (mut ended, mut ended_by) = (BTreeSet::new(), BTreeMap::<(&str, JobId), usize>::new());
    for event in events {
        let Some(id) = id_of(event) else { continue };
        let (actor, kind) = (event.actor.as_str(), event.kind.as_str());
        if matches!(kind, "killed" | "dequeued") {
            *ended_by.entry((actor, id.clone())).or_default() += 1;
            ended.insert(id.clone());
        }
        *lines.entry((actor, id, kind, &event.text)).or_default() += 1;
    }
    let mut tried: BTreeMap<Mark<'_>, (usize, usize)> = BTreeMap::new();
    let mut kills: BTreeMap<(&str, JobId), usize> = BTreeMap::new();
    for act in acts {
        let Act { actor, job, verb, text, outcome, .. } = act;
        let is_done = usize::from(*outcome == Outcome::Done);
        let may_be = usize::from(*outcome != Outcome::Refused);
        match verb {
            Verb::Kill | Verb::Requeue => {
                *kills.entry((actor, job.clone())).or_default() += may_be;
                if *verb == Verb::Kill && is_done == 1 && !ended.contains(job) {
                    wrong.push(format!("{job}: {actor} was told that it is killed"));
                }
            }
            _ => {
                let mark = (actor.as_str(), job.clone(), kind(*verb), text.as_str());
                let of = tried.entry(mark).or_default();
                *of = (of.0 + is_done, of.1 + may_be);
            }
        }
        if let Some(waits) = &act.becomes {
            let text = format!("in default, to go on from {job}");
            let found = lines.get(&(actor.as_str(), waits.clone(), "queued", text.as_str()));
            // Of a lineage, its last attempt is put back.
            let any =
                |event: &&Event| event.kind == "queued" && id_of(event).as_ref() == Some(waits);
            let is_of_lineage = events.iter().filter(any).any(|event| event.actor == *actor);
            if found != Some(&1) && !is_of_lineage {
                wrong.push(format!("{waits}: {actor} has put {job} back, {found:?} times"));
            }
        }
    }
    for (mark, (least, most)) in tried {
        let found = lines.get(&mark).copied().unwrap_or(0);
        if !(least..=most).contains(&found) {
            wrong.push(format!("{mark:?}: {found} times in the journal, not {least} to {most}"));
        }
    }
    for ((actor, job), most) in kills {
        let found = ended_by.get(&(actor, job.clone())).copied().unwrap_or(0);
        if found > most {
            wrong.push(format!("{job}: ended {found} times by {actor}, asked {most} times"));
        }
    }
    wrong
}

/// The lines of the journal before which a job has to be as somebody had read it: those of acts that stand there once.
fn read_before<'a>(acts: &[&'a Act], events: &[Event]) -> BTreeMap<usize, &'a Seen> {
    let mut before = BTreeMap::new();
    for act in acts.iter().filter(|act| act.outcome == Outcome::Done) {
        let Some(seen) = &act.on else { continue };
        let is_it = |event: &Event| {
            event.actor == act.actor
                && event.kind == kind(act.verb)
                && event.text == act.text
                && id_of(event).as_ref() == Some(&act.job)
        };
        let all: Vec<usize> = (0..events.len()).filter(|n| is_it(&events[*n])).collect();
        if let [only] = all.as_slice() {
            before.insert(*only, seen);
        }
    }
    before
}

/// What may have happened without a line in the journal.
fn doubts(
    acts: &[&Act],
    keys: &[&Key],
    names: &BTreeMap<JobId, String>,
    events: &[Event],
) -> Doubts {
    let mut doubts = Doubts::default();
    for act in acts.iter().filter(|act| act.outcome == Outcome::Unknown) {
        let of = doubts.acts.entry(act.job.clone()).or_default();
        of.push((act.verb, act.text.clone()));
    }
    let cut: BTreeSet<&str> =
        keys.iter().filter(|key| key.was_cut).map(|key| key.name.as_str()).collect();
    let submitted = names.iter().filter(|(_, name)| cut.contains(name.as_str()));
    doubts.submitted = submitted.map(|(id, _)| id.clone()).collect();
    doubts.cut = cut.len();
    let withdrawn = nameless(names, events);
    // No more of them than requests that were cut off and asked for a job at once.
    let at_once = keys.iter().filter(|key| key.was_cut && key.is_now).count();
    if withdrawn.len() <= at_once {
        doubts.withdrawn = withdrawn;
    }
    doubts
}

/// Jobs that came into the queue and of which nothing is left: neither a record nor a line that takes them out.
fn nameless(names: &BTreeMap<JobId, String>, events: &[Event]) -> BTreeSet<JobId> {
    let withdrawn = events.iter().filter(|event| event.kind == "withdrawn");
    let withdrawn: BTreeSet<JobId> = withdrawn.filter_map(id_of).collect();
    let begun = events.iter().filter(|event| begins_anew(event)).filter_map(id_of);
    begun.filter(|id| !names.contains_key(id) && !withdrawn.contains(id)).collect()
}

/// Jobs that have run, each as often as it has.
fn runs(lab: &Lab) -> BTreeMap<JobId, usize> {
    let text = std::fs::read_to_string(lab.env.path("ran")).unwrap_or_default();
    let mut runs = BTreeMap::new();
    for line in text.lines() {
        *runs.entry(JobId::parse(line).unwrap()).or_default() += 1;
    }
    runs
}

#[test]
fn whatever_many_do_at_once_is_what_the_journal_says_and_each_key_acts_once() {
    let (count, extent, apart) = match asked_for() {
        Some(seconds) => (WHOLE.0, Extent::Time(Duration::from_secs(seconds)), WHOLE.1),
        None => (SHARE.0, Extent::Acts(SHARE.1), SHARE.2),
    };
    let lab = Lab::new(extent);
    let holders = lab.holders(count);
    let monitor = lab.env.daemon(&[]);
    let screen = lab.screen();
    let dice =
        |number: u64| Dice(SEED.wrapping_mul(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (mut clients, mut commanded, server) = std::thread::scope(|scope| {
        let (lab, dice) = (&lab, &dice);
        let server = scope.spawn(move || lab.serve_and_kill(dice(0), apart));
        let threads: Vec<_> = (1..)
            .zip(&holders)
            .map(|(number, holder)| {
                scope.spawn(move || Client::new(lab, holder, dice(number).0).run())
            })
            .collect();
        let others: Vec<_> = (0..COMMANDS)
            .map(|number| {
                let dice = dice(u64::try_from(1_000 + number).unwrap());
                scope.spawn(move || commands(lab, dice, number))
            })
            .collect();
        let clients: Vec<Client<'_>> = threads.into_iter().map(|of| of.join().unwrap()).collect();
        let commanded: Vec<_> = others.into_iter().map(|of| of.join().unwrap()).collect();
        (clients, commanded, server.join().unwrap())
    });
    // Whoever was cut off asks what became of it; then whoever was answered asks again, and everybody is told the same.
    clients.iter_mut().for_each(Client::asks_what_became);
    lab.comes_to_rest();
    clients.iter_mut().for_each(Client::asks_again);
    server.kill();
    Lab::end(monitor);
    let shown = screen.screen();
    assert!(shown.contains("alice"), "the screen shows it all the time:\n{shown}");
    drop(screen);

    let (data, events) = (lab.data(), lab.history());
    let acts: Vec<&Act> = clients.iter().flat_map(|client| &client.acts).collect();
    let keys: Vec<&Key> = clients.iter().flat_map(|client| &client.keys).collect();
    let names = names(&lab, &data, &events);
    let mut wrong: Vec<String> = clients.iter().flat_map(|client| client.wrong.clone()).collect();
    let doubts = doubts(&acts, &keys, &names, &events);
    wrong.extend(keys_acted_once(&keys, &names, &doubts, &events));
    wrong.extend(acts_stand_once(&acts, &events));

    let by_name: BTreeMap<&str, &&Key> = keys.iter().map(|key| (key.name.as_str(), key)).collect();
    let asked = names.iter().filter_map(|(id, name)| {
        let key = by_name.get(name.as_str())?;
        Some((id.clone(), (key.is_held, key.priority)))
    });
    let asked: BTreeMap<JobId, (bool, u8)> = asked.collect();
    let read = read_before(&acts, &events);
    let mut replay = Replay::new(&asked, &doubts);
    for (number, event) in events.iter().enumerate() {
        replay.happens(event, read.get(&number).copied());
    }
    replay.is_all(&data);
    wrong.append(&mut replay.wrong);
    if replay.excused > lab.kills() {
        wrong.push(format!("{} changes without a line, {} kills", replay.excused, lab.kills()));
    }

    let runs = runs(&lab);
    wrong.extend(
        runs.iter().filter(|(_, times)| **times > 1).map(|of| format!("ran twice: {of:?}")),
    );
    let finished = events.iter().filter(|event| event.kind == "finished").filter_map(id_of);
    wrong.extend(finished.filter(|id| !runs.contains_key(id)).map(|id| format!("{id} ran never")));
    for tag in commanded.iter_mut().flat_map(|(_, tags)| std::mem::take(tags)) {
        let times = events.iter().filter(|event| event.kind == "tag" && event.text == tag).count();
        if times != 1 {
            wrong.push(format!("a command has set the tag {tag}: {times} times in the journal"));
        }
    }
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for (status, times) in clients.iter().flat_map(|client| &client.statuses) {
        *statuses.entry(*status).or_default() += times;
    }
    println!(
        "{count} clients, {} acts, {} commands, {} kills in {} s: answers {statuses:?}; {} keys, {} of them cut off, \
         {} jobs run; {} lines of the journal, {} acts on what was read before, {} changes without a line",
        lab.acts(),
        commanded.iter().map(|(count, _)| count).sum::<usize>(),
        lab.kills(),
        lab.seconds(),
        keys.len(),
        keys.iter().filter(|key| key.was_cut).count(),
        runs.len(),
        events.len(),
        read.len(),
        replay.excused,
    );
    let some: Vec<&str> = wrong.iter().take(30).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), some.join("\n"));
}
