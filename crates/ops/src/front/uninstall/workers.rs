//! Files on ssh hosts and on workers of other targets: what lies in `~/.tpu` there of jobs that are over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::facts::TargetState;
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::Job;
use tpu_core::text::{counted, escape};
use tpu_system::sys::threads::next_of;

use super::{LeftoverKind, Leftovers, Records, Removal};
use crate::act::worker_shell;
use crate::observe::fleet::AskedOnce;
use crate::observe::{doors, runners};
use crate::{Ctx, Error};

/// What is run there.
const SCRIPT: &str = include_str!("../../../../../assets/uninstall.sh");

/// How long they may take, all of them together: a login waits for 10 s for each address of a name.
const PATIENCE: Duration = Duration::from_secs(50);

/// What a worker says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Said {
    /// Runs of jobs that are over.
    over: usize,
    /// Of those, the ones that could not be removed.
    stuck: usize,
    /// Other runs.
    kept: usize,
    /// What else lies there.
    others: BTreeSet<String>,
    is_whole: bool,
}

impl Said {
    fn hear(&mut self, line: &str) {
        let Some(line) = line.strip_prefix("tpu: ") else { return };
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || rest.parse::<usize>().unwrap_or_default();
        match word {
            "over" => self.over += number(),
            "stuck" => self.stuck += number(),
            "kept" => self.kept += number(),
            "other" => self.others.extend([rest.to_owned()]),
            "done" => self.is_whole = true,
            _ => {}
        }
    }
}

/// The launch tokens of jobs that are over, by the target on which they ran. Scripts of a lab do there what they like.
fn by_target(over: &[Job]) -> BTreeMap<TargetName, BTreeSet<String>> {
    let mut found: BTreeMap<TargetName, BTreeSet<String>> = BTreeMap::new();
    for job in over.iter().filter(|job| job.engine.is_none()) {
        if let Some(launch) = job.launch.as_ref().filter(|_| job.is_native()) {
            found.entry(job.tpu.clone()).or_default().insert(launch.token.as_str().to_owned());
        }
    }
    found
}

/// Asks all targets side by side what there is of these jobs.
pub(super) fn find(ctx: &Ctx, data: &Data, records: &Records, found: &mut Leftovers) {
    let mut asked = by_target(&records.over);
    // Where nothing is over yet, nothing is to be removed.
    asked.retain(|name, _| is_elsewhere(ctx, data, name, found));
    results_stay(ctx, records, &asked.keys().cloned().collect(), found);
    let mut answers = answers(ctx, &asked, "list");
    for (name, tokens) in asked {
        match answers.remove(&name).unwrap_or_else(|| Err(late())) {
            Ok(said) => tell((&name, tokens), &said, found),
            Err(error) => found.is_silent(name.as_str(), error.message),
        }
    }
}

/// What all these targets answer, asked side by side. Who is late is not among them.
fn answers(
    ctx: &Ctx,
    asked: &BTreeMap<TargetName, BTreeSet<String>>,
    how: &'static str,
) -> BTreeMap<TargetName, Result<Said, Error>> {
    let (say, said) = channel();
    for (name, tokens) in asked {
        let (ctx, say, name, tokens) = (ctx.clone(), say.clone(), name.clone(), tokens.clone());
        ctx.threads.clone().spawn(Box::new(move || {
            let answer = ask(&ctx, &name, how, &tokens);
            // Nobody hears it any more where the time is over.
            drop(say.send((name, answer)));
        }));
    }
    drop(say);
    let deadline = ctx.clock.monotonic() + PATIENCE;
    let left = || deadline.saturating_sub(ctx.clock.monotonic());
    std::iter::from_fn(|| next_of(&*ctx.threads, &said, left()).ok()).collect()
}

/// Says that a target has not answered in time.
pub(super) fn late() -> Error {
    Error::unreachable(format!("no answer within {} s", PATIENCE.as_secs()))
        .hint("the same again, later, finishes")
}

/// Names the directories of other machines and of login nodes in which jobs logged and worked.
fn results_stay(
    ctx: &Ctx,
    records: &Records,
    elsewhere: &BTreeSet<TargetName>,
    found: &mut Leftovers,
) {
    let mut dirs: BTreeMap<&TargetName, BTreeSet<&Path>> = BTreeMap::new();
    for job in records.over.iter().chain(&records.at_work) {
        let is_elsewhere = if job.engine.is_none() {
            elsewhere.contains(&job.tpu)
        } else {
            let runner = runners::of(ctx, job);
            runner.works_in_copy() && !runner.files().is_seen_from_here()
        };
        let of_job = [&job.log_dir, &job.stage_dir].into_iter().flatten();
        let above = of_job.filter_map(|dir| Path::new(dir).parent());
        if is_elsewhere {
            dirs.entry(&job.tpu).or_default().extend(above);
        }
    }
    for (name, dirs) in dirs {
        let dirs: Vec<String> = dirs.into_iter().map(|dir| dir.display().to_string()).collect();
        let dirs = dirs.join(", ");
        found.stays.push(format!("{name}: copies of code and logs of jobs: {}", escape(&dirs)));
    }
}

fn tell((name, tokens): (&TargetName, BTreeSet<String>), said: &Said, found: &mut Leftovers) {
    if said.over > 0 {
        let what = format!("{} in ~/.tpu of jobs that are over", counted(said.over, "directory"));
        let removal = Removal::Files(name.clone(), tokens);
        found.add(LeftoverKind::Files, (name.to_string(), what), removal);
    }
    if said.kept > 0 {
        let runs = counted(said.kept, "directory");
        found
            .stays
            .push(format!("{name}: {runs} in ~/.tpu/runs of other jobs, or of jobs at work"));
    }
    if !said.others.is_empty() {
        let names: Vec<&str> = said.others.iter().map(String::as_str).collect();
        let names = names.join(", ");
        found.stays.push(format!("{name}: ~/.tpu has {}, which is not tpu's", escape(&names)));
    }
}

/// Whether a target has machines that may still be there, with disks of their own.
fn is_elsewhere(ctx: &Ctx, data: &Data, name: &TargetName, found: &mut Leftovers) -> bool {
    let Some(target) = data.target(name) else {
        found.stays.push(format!(
            "{name} is not known any more: what jobs left in ~/.tpu there stays (tpu register, then this again)"
        ));
        return false;
    };
    if target.is_here() {
        return false;
    }
    let asked = AskedOnce::new(ctx, data, name);
    match doors::to(ctx, &asked) {
        Ok(door) if !door.is_elsewhere => false,
        Ok(_) => {
            doors::are_fixed(data, name)
                || !matches!(asked.fact().state, TargetState::Gone | TargetState::Preempted)
        }
        Err(error) => {
            found.is_silent(name.as_str(), error.message);
            false
        }
    }
}

/// Removes on these targets, side by side, what there is of the runs of these tokens. Who is late is not among the answers.
pub(super) fn remove(
    ctx: &Ctx,
    asked: &BTreeMap<TargetName, BTreeSet<String>>,
) -> BTreeMap<TargetName, Result<(), Error>> {
    let ends = |(name, said): (TargetName, Result<Said, Error>)| {
        let end = said.and_then(|said| is_gone(&name, &said));
        (name, end)
    };
    answers(ctx, asked, "remove").into_iter().map(ends).collect()
}

/// Refuses where something could not be removed.
fn is_gone(name: &TargetName, said: &Said) -> Result<(), Error> {
    if said.stuck == 0 {
        return Ok(());
    }
    let left = counted(said.stuck, "directory");
    Err(Error::failed(format!("{name}: {left} in ~/.tpu/runs cannot be removed"))
        .hint(format!("look why: tpu ssh {name} all --command 'ls -lA ~/.tpu/runs'")))
}

fn ask(ctx: &Ctx, name: &TargetName, how: &str, tokens: &BTreeSet<String>) -> Result<Said, Error> {
    let mut lines: Vec<u8> = Vec::new();
    for token in tokens {
        lines.extend_from_slice(token.as_bytes());
        lines.push(b'\n');
    }
    let mut all = Said { is_whole: true, ..Said::default() };
    let command = format!("how={how}\n{SCRIPT}");
    for (ended, said) in worker_shell::answers(ctx, name, &command, lines)? {
        let mut of_worker = Said::default();
        said.lines().for_each(|line| of_worker.hear(line));
        let why = match ended.code {
            Err(why) => Some(why),
            Ok(_) if !of_worker.is_whole => Some("its answer broke off".to_owned()),
            Ok(_) => None,
        };
        if let Some(why) = why {
            return Err(Error::unreachable(format!("worker {}: {why}", ended.worker))
                .hint("nothing more was removed there; the same again, once it answers"));
        }
        all.over += of_worker.over;
        all.stuck += of_worker.stuck;
        all.kept += of_worker.kept;
        all.others.extend(of_worker.others);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tpu_core::model::time::Timestamp;
    use tpu_system::sys::clock::Clock;
    use tpu_system::sys::threads::Threads;

    use super::*;
    use crate::front::open::for_test;

    /// Threads of which none comes to an end.
    #[derive(Default)]
    struct Stuck(Mutex<Vec<Box<dyn FnOnce() + Send>>>);

    impl Threads for Stuck {
        fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
            self.0.lock().unwrap().push(work);
        }
    }

    /// A clock that is a minute later at each look.
    #[derive(Default)]
    struct Minutes(Mutex<u64>);

    impl Clock for Minutes {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(1_000)
        }

        fn monotonic(&self) -> Duration {
            let mut looks = self.0.lock().unwrap();
            *looks += 1;
            Duration::from_secs(*looks * 60)
        }

        fn sleep(&self, _: Duration) {}
    }

    #[test]
    fn a_target_that_does_not_answer_in_time_holds_up_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let mut ctx = for_test(dir.path());
        ctx.effects.threads = Arc::new(Stuck::default());
        ctx.effects.clock = Arc::new(Minutes::default());
        let asked =
            BTreeMap::from([("h1".into(), BTreeSet::new()), ("h2".into(), BTreeSet::new())]);
        assert!(remove(&ctx, &asked).is_empty());
        assert_eq!(late().kind, crate::Kind::Unreachable, "the same command again finishes it");
    }

    #[test]
    fn only_a_whole_answer_counts() {
        let mut said = Said::default();
        for line in ["tpu: over 2", "motd", "tpu: kept 1", "tpu: other my notes"] {
            said.hear(line);
        }
        assert_eq!((said.over, said.kept, said.is_whole), (2, 1, false));
        assert!(said.others.contains("my notes"));
        said.hear("tpu: done");
        assert!(said.is_whole);
    }
}
