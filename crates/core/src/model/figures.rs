//! How much machines and the jobs on them have to do: load, memory, accelerators, each with when that was said.
//!
//! A machine is asked by `assets/figures.sh`; [`read`] reads what it says. Figures are of that moment: [`HostFigures`]
//! knows how old they are, and why there are no newer ones.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::capacity::Memory;
use super::facts::{GpuFact, MachineFact};
use super::ids::{JobId, LaunchToken};
use super::time::Timestamp;

/// Older than this, in seconds, and a round was missed: they are shown as old.
pub(crate) const OLD_S: u64 = 150;

/// Older than this, in seconds, and they say nothing any more.
pub(crate) const WORTHLESS_S: u64 = 3600;

/// What a machine said last, and when it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostFigures {
    /// When it was last asked.
    pub asked_at: Timestamp,
    /// Where it was then; another machine may go by its name now.
    pub addresses: Vec<String>,
    /// What it last said; nothing if it never did.
    pub seen: Option<SeenFigures>,
    /// Why the last question has no answer, if it has none.
    pub silent: Option<String>,
}

/// What a machine said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenFigures {
    /// When.
    pub at: Timestamp,
    /// Of itself.
    pub machine: MachineFact,
    /// Of the jobs on it; nothing if its processes could not be looked at. A job without processes is not in it.
    pub jobs: Option<Vec<(JobId, JobFigures)>>,
}

/// What the processes of a job have of their machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobFigures {
    /// How many there are.
    pub processes: usize,
    /// How many cores they kept busy on average over the interval; nothing where that could not be measured.
    pub cores: Option<f64>,
    /// Length of that interval, in seconds.
    pub interval_s: f64,
    /// CPU time that they have had, with the children that they have collected, in seconds.
    pub cpu_s: f64,
    /// Memory that they hold (resident; what several share counts for each of them).
    pub memory: Memory,
    /// The accelerators that it was given, and those on which its processes are by their driver's word: the number of
    /// each, and what its processes have of the memory there, if the driver says so.
    pub gpus: BTreeMap<u32, Option<Memory>>,
}

impl HostFigures {
    /// Seconds since it last said something.
    pub fn age_s(&self, now: Timestamp) -> Option<u64> {
        self.seen.as_ref().map(|seen| now.seconds_since(seen.at))
    }

    /// What is known of it now: nothing of a machine that does not answer, or has not for long.
    pub fn known(&self, now: Timestamp) -> Option<&SeenFigures> {
        let is_worth = |seen: &&SeenFigures| now.seconds_since(seen.at) <= WORTHLESS_S;
        self.seen.as_ref().filter(is_worth).filter(|_| self.silent.is_none())
    }

    /// Whether what is known is older than it would be if somebody still asked.
    pub fn is_old(&self, now: Timestamp) -> bool {
        self.age_s(now).is_none_or(|age| age > OLD_S)
    }

    /// What is known of a job there now.
    pub fn job(&self, id: &JobId, now: Timestamp) -> Option<&JobFigures> {
        let jobs = self.known(now)?.jobs.as_ref()?;
        jobs.iter().find(|(job, _)| job == id).map(|(_, figures)| figures)
    }
}

impl SeenFigures {
    /// Whose processes are on an accelerator by its driver's word: those of a job, else of whom; nothing if nobody's
    /// are.
    pub fn who_is_on(&self, gpu: u32) -> Option<Result<&JobId, &str>> {
        let on = self.machine.gpus.iter().find(|one| one.index == gpu)?;
        let first = on.processes.first()?;
        let mut jobs = self.jobs.iter().flatten();
        let job = jobs.find(|(_, figures)| figures.gpus.contains_key(&gpu)).map(|(job, _)| job);
        Some(job.ok_or(first.user.as_str()))
    }

    /// How much of the machine's accelerators is at work on average, in per cent; nothing if none says so.
    pub fn gpu_percent(&self) -> Option<u32> {
        let said: Vec<u32> = self.machine.gpus.iter().filter_map(|gpu| gpu.use_percent).collect();
        let count = u32::try_from(said.len()).ok().filter(|count| *count > 0)?;
        Some(said.iter().fold(0_u32, |sum, one| sum.saturating_add(*one)) / count)
    }

    /// The heat of the hottest accelerator, in degrees Celsius.
    pub fn celsius(&self) -> Option<u32> {
        self.machine.gpus.iter().filter_map(|gpu| gpu.celsius).max()
    }

    /// Memory in use and in all.
    pub fn memory(&self) -> Option<(Memory, Memory)> {
        let (free, all) = self.machine.available.zip(self.machine.memory)?;
        Some((Memory(all.0.saturating_sub(free.0)), all))
    }
}

impl JobFigures {
    /// For people, part by part: `0.98 cores over 1.0 s`, `312 MiB`, `3 processes`.
    pub fn in_words(&self) -> Vec<String> {
        let processes = crate::text::counted(self.processes, "process");
        let cores =
            self.cores.map(|cores| format!("{cores:.2} cores over {:.1} s", self.interval_s));
        let mut parts: Vec<String> = cores.into_iter().collect();
        parts.extend([amount(self.memory), processes]);
        parts
    }

    /// Its accelerators for people: `GPU 0 97 % 40.1/80.0 GiB 61 °C`. `machine` is the one that it is on.
    pub fn gpus_in_words(&self, machine: &MachineFact) -> Vec<String> {
        let one = |(index, own): (&u32, &Option<Memory>)| {
            let gpu = machine.gpus.iter().find(|gpu| gpu.index == *index);
            let said = gpu.map(|gpu| gpu_in_words(gpu, *own)).filter(|said| !said.is_empty());
            format!("GPU {index} {}", said.as_deref().unwrap_or("unknown"))
        };
        self.gpus.iter().map(one).collect()
    }
}

/// An accelerator for people: `97 % 40.1/80.0 GiB 61 °C`; `own` is what somebody's processes have of its memory.
pub fn gpu_in_words(gpu: &GpuFact, own: Option<Memory>) -> String {
    let own = own.map(|own| format!("(own {})", amount(own)));
    let some = [
        gpu.use_percent.map(|percent| format!("{percent} %")),
        gpu.used.zip(gpu.memory).map(used_of),
        own,
        gpu.celsius.map(|celsius| format!("{celsius} °C")),
    ];
    some.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// An amount of memory as people read it: `312 MiB`, `1.3 GiB`.
pub fn amount(memory: Memory) -> String {
    if memory.0 < 1024 { format!("{} MiB", memory.0) } else { format!("{} GiB", gib(memory)) }
}

/// What is used of what there is: `40.1/80.0 GiB`.
pub fn used_of((used, all): (Memory, Memory)) -> String {
    format!("{}/{} GiB", gib(used), gib(all))
}

/// An amount of memory in GiB, with one digit.
pub fn gib(Memory(mib): Memory) -> String {
    let tenths = mib.saturating_mul(10).saturating_add(512) / 1024;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The jobs of a machine by their launches, each with what is known of it and with its processes.
pub type ByLaunch = BTreeMap<LaunchToken, (JobFigures, Vec<u32>)>;

/// Reads what `assets/figures.sh` has printed: the machine, and its jobs, if its processes could be looked at. `None`
/// where that breaks off.
pub fn read(text: &str) -> Option<(MachineFact, Option<ByLaunch>)> {
    let mut machine = MachineFact::read(text)?;
    let mut seen = BTreeSet::new();
    // A driver that stammers has no two accelerators of one number.
    machine.gpus.retain(|gpu| seen.insert(gpu.index));
    let mut jobs = Samples::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        jobs.hear(&words);
    }
    Some((machine, jobs.figures()))
}

/// Two samples of the processes of jobs.
#[derive(Default)]
struct Samples {
    /// Ticks in a second, bytes in a page.
    clock: Option<(f64, u64)>,
    first: Sample,
    second: Sample,
}

/// What processes had when they were looked at.
#[derive(Default)]
struct Sample {
    /// Seconds since the machine was started.
    at: Option<f64>,
    /// By their ids.
    processes: BTreeMap<u32, Had>,
}

/// What a process had.
struct Had {
    token: LaunchToken,
    parent: u32,
    /// Ticks of its own.
    own: u64,
    /// Ticks of the children that it has collected.
    children: u64,
    pages: u64,
}

impl Samples {
    fn hear(&mut self, words: &[&str]) {
        match words {
            ["clock", ticks, page] => {
                let positive = |ticks: &f64| *ticks >= 1.0;
                self.clock = ticks.parse().ok().filter(positive).zip(page.parse().ok());
            }
            ["sample", which, at] => {
                if let Some(sample) = self.sample(which) {
                    sample.at = at.parse().ok();
                }
            }
            ["process", which, token, numbers @ ..] => {
                let numbers: Vec<u64> =
                    numbers.iter().filter_map(|word| word.parse().ok()).collect();
                let (Some(sample), &[pid, parent, user, system, user_of, system_of, pages]) =
                    (self.sample(which), numbers.as_slice())
                else {
                    return;
                };
                let (Ok(pid), Ok(parent)) = (u32::try_from(pid), u32::try_from(parent)) else {
                    return;
                };
                let had = Had {
                    token: LaunchToken::new(*token),
                    parent,
                    own: user.saturating_add(system),
                    children: user_of.saturating_add(system_of),
                    pages,
                };
                sample.processes.insert(pid, had);
            }
            _ => {}
        }
    }

    fn sample(&mut self, which: &str) -> Option<&mut Sample> {
        match which {
            "first" => Some(&mut self.first),
            "second" => Some(&mut self.second),
            _ => None,
        }
    }

    fn figures(self) -> Option<ByLaunch> {
        let (ticks, page) = self.clock?;
        let interval_s = self.first.at.zip(self.second.at).map(|(from, to)| to - from);
        // Not infinite, either: a machine may say anything.
        let interval_s = interval_s.filter(|seconds| *seconds > 0.0 && *seconds < 1e6);
        let used = self.used();
        let mut jobs = ByLaunch::new();
        for (pid, had) in &self.second.processes {
            let (figures, pids) = jobs.entry(had.token.clone()).or_default();
            figures.processes += 1;
            figures.cpu_s += whole(had.own.saturating_add(had.children)) / ticks;
            // In KiB until all of them are counted.
            let kib = had.pages.saturating_mul(page) / 1024;
            figures.memory.0 = figures.memory.0.saturating_add(kib);
            pids.push(*pid);
        }
        for (token, (figures, _)) in &mut jobs {
            figures.memory.0 /= 1024;
            figures.interval_s = interval_s.unwrap_or_default();
            let spent = used.get(token).copied().unwrap_or_default();
            figures.cores = interval_s.map(|seconds| whole(spent) / ticks / seconds);
        }
        Some(jobs)
    }

    /// Ticks that each job had between the samples. What a child had before it was collected is in its parent's
    /// account afterwards, and was counted in its own.
    fn used(&self) -> BTreeMap<LaunchToken, u64> {
        let mut all: BTreeMap<LaunchToken, (u64, u64)> = BTreeMap::new();
        for (pid, before) in &self.first.processes {
            let (gained, known) = all.entry(before.token.clone()).or_default();
            if let Some(now) = self.second.processes.get(pid) {
                let own = now.own.saturating_sub(before.own);
                let children = now.children.saturating_sub(before.children);
                *gained = gained.saturating_add(own).saturating_add(children);
            } else if self.second.processes.contains_key(&before.parent) {
                *known = known.saturating_add(before.own).saturating_add(before.children);
            }
        }
        all.into_iter()
            .map(|(token, (gained, known))| (token, gained.saturating_sub(known)))
            .collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "ticks of years are exact in a float")]
fn whole(ticks: u64) -> f64 {
    ticks as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "clock 100 4096\nsample first 50.00\n\
        process first a 10 1 100 20 5 0 2560\nprocess first a 11 10 30 0 0 0 1000\n\
        process first b 20 1 7 0 0 0 256\n\
        host h\ncpus 4\nload 1.5\nnvidia 0, G, X, 90, 10, 100, 40\nnvidia 0, G, X, 10, 10, 100, 40\n\
        sample second 52.00\n\
        process second a 10 1 200 20 65 0 5120\nprocess second b 20 1 7 0 0 0 256\ndone\n";

    #[test]
    fn shares_are_what_was_used_between_two_samples() {
        let (machine, jobs) = read(SAID).unwrap();
        let jobs = jobs.unwrap();
        assert_eq!(machine.gpus.len(), 1, "one of a number");
        let (a, pids) = &jobs[&LaunchToken::new("a")];
        // One second of its own, and 60 ticks of a child that had had 30 of them before.
        assert_eq!((a.cores, a.interval_s, pids.as_slice()), (Some(0.65), 2.0, &[10][..]));
        assert_eq!((a.memory, a.processes), (Memory(20), 1));
        let (b, _) = &jobs[&LaunchToken::new("b")];
        assert_eq!((b.cores, b.cpu_s, b.memory), (Some(0.0), 0.07, Memory(1)));
    }

    #[test]
    fn what_could_not_be_looked_at_is_unknown_and_not_nothing() {
        let (_, jobs) = read("host h\ndone\n").unwrap();
        assert_eq!(jobs, None);
        assert_eq!(read(SAID.strip_suffix("done\n").unwrap()), None);
        let (_, jobs) = read("clock 100 4096\nsample first 1\nhost h\ndone\n").unwrap();
        assert_eq!(jobs, Some(ByLaunch::new()), "nobody is there");
        let garbage = "clock x y\nprocess first\nprocess second a 1\nsample third 1\ndone\n";
        assert_eq!(read(garbage).unwrap().1, None);
    }

    #[test]
    fn who_does_not_answer_or_has_not_for_long_is_unknown() {
        let at = Timestamp::from_second;
        let (machine, _) = read(SAID).unwrap();
        let mut host = HostFigures {
            asked_at: at(100),
            addresses: Vec::new(),
            seen: Some(SeenFigures { at: at(100), machine, jobs: None }),
            silent: None,
        };
        assert!(host.known(at(160)).is_some() && !host.is_old(at(160)));
        assert!(host.known(at(400)).is_some() && host.is_old(at(400)));
        assert!(host.known(at(100 + 3601)).is_none());
        host.silent = Some("no route".to_owned());
        assert_eq!((host.known(at(160)), host.age_s(at(160))), (None, Some(60)));
    }
}
