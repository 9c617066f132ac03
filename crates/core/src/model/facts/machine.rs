//! What a machine says of itself when it is asked.

use serde::{Deserialize, Serialize};

use crate::model::capacity::{Accelerators, BusyGpus, Memory};
use crate::model::host::Found;

/// What a machine says of itself. Fields are empty where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFact {
    /// What it calls itself.
    pub hostname: String,
    /// Names the time since it was started: another one after each start (`random(4)`).
    pub boot: Option<String>,
    /// CPUs that a program may use.
    pub cpus: Option<u32>,
    /// Memory.
    pub memory: Option<Memory>,
    /// Memory that a program can still have.
    pub available: Option<Memory>,
    /// How many programs wanted a CPU at a time, in the last minute (`proc_loadavg(5)`).
    pub load: Option<f64>,
    /// What is free on the disk of the account's home.
    pub free_disk: Option<Memory>,
    /// Its accelerators, by their numbers.
    pub gpus: Vec<GpuFact>,
    /// Whose those are.
    pub accelerators: Accelerators,
    /// The program of their driver, if that did not answer: how many there are, and who is on them, is not known then.
    pub silent_driver: Option<String>,
    /// The version of tmux.
    pub tmux: Option<String>,
    /// The version of Python.
    pub python: Option<String>,
}

/// One accelerator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFact {
    /// Its number, as its driver counts.
    pub index: u32,
    /// Its driver's name for it, by which its processes are known.
    pub id: String,
    /// What it is.
    pub model: Option<String>,
    /// How much of the last moment it was at work, in per cent.
    pub use_percent: Option<u32>,
    /// Its memory that is in use.
    pub used: Option<Memory>,
    /// Its memory.
    pub memory: Option<Memory>,
    /// How hot it is, in degrees Celsius.
    pub celsius: Option<u32>,
    /// The processes on it.
    pub processes: Vec<GpuProcess>,
}

/// A process on an accelerator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// Its id.
    pub pid: u32,
    /// The account that it runs under.
    pub user: String,
    /// What it has of the accelerator's memory, where the driver says so.
    pub used: Option<Memory>,
}

impl MachineFact {
    /// Reads what `assets/machine.sh` has printed, and what is read after it. `None` where that breaks off: what is missing would be taken for
    /// what is not there.
    pub fn read(text: &str) -> Option<Self> {
        let mut fact = Self::default();
        let mut is_whole = false;
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            let value = value.trim();
            match key {
                "host" => value.clone_into(&mut fact.hostname),
                "boot" => fact.boot = Some(value.to_owned()),
                "cpus" => fact.cpus = value.parse().ok(),
                "memory" => fact.memory = kib(value),
                "available" => fact.available = kib(value),
                "load" => fact.load = value.parse().ok(),
                "disk" => fact.free_disk = kib(value),
                "tmux" => fact.tmux = version(value),
                "python" => fact.python = version(value),
                "nvidia" => fact.gpus.extend(nvidia(value)),
                "on" => fact.on(value),
                "silent" => fact.silent_driver = Some(value.to_owned()),
                "amd" => {
                    fact.accelerators = Accelerators::Amd;
                    fact.gpus.extend(amd(value));
                }
                "chip" => {
                    fact.accelerators = Accelerators::Tpu;
                    let index = u32::try_from(fact.gpus.len()).unwrap_or(u32::MAX);
                    let model = Some(value.to_owned());
                    fact.gpus.push(GpuFact { index, model, ..GpuFact::default() });
                }
                "done" => is_whole = true,
                _ => {}
            }
        }
        fact.gpus.sort_unstable_by_key(|gpu| gpu.index);
        is_whole.then_some(fact)
    }

    /// A process on an accelerator: its name there, the process, whose that is, and what it has of the memory.
    fn on(&mut self, value: &str) {
        let mut words = value.split_whitespace();
        let (Some(id), Some(pid), Some(user)) = (words.next(), words.next(), words.next()) else {
            return;
        };
        let Ok(pid) = pid.parse() else { return };
        let used = words.next().and_then(|mib| mib.parse().ok()).map(Memory);
        if let Some(gpu) = self.gpus.iter_mut().find(|gpu| gpu.id == id) {
            gpu.processes.push(GpuProcess { pid, user: user.to_owned(), used });
        }
    }

    /// The accelerators on which programs are, each with whose they are. Only NVIDIA's driver says that of processes:
    /// of others nobody is seen.
    pub fn busy(&self) -> BusyGpus {
        let who = |gpu: &GpuFact| Some((gpu.index, gpu.processes.first()?.user.clone()));
        self.gpus.iter().filter_map(who).collect()
    }

    /// What is kept of it.
    pub fn found(&self) -> Found {
        Found {
            cpus: self.cpus,
            memory: self.memory,
            gpus: u32::try_from(self.gpus.len()).ok().filter(|count| *count > 0),
            accelerators: self.accelerators,
            model: self.gpus.first().and_then(|gpu| gpu.model.clone()),
            tmux: self.tmux.clone(),
            python: self.python.clone(),
        }
    }
}

/// An amount in KiB.
fn kib(text: &str) -> Option<Memory> {
    text.parse::<u64>().ok().map(|kib| Memory(kib / 1024))
}

/// `tmux 3.4`, `Python 3.11.2`: the last word.
fn version(text: &str) -> Option<String> {
    text.split_whitespace().last().map(str::to_owned)
}

/// `0, GPU-4c…, NVIDIA A100-SXM4-80GB, 97, 40123, 81920, 61`; what a card does not say is `[N/A]`.
fn nvidia(line: &str) -> Option<GpuFact> {
    let mut values = line.split(',').map(str::trim);
    let index = values.next()?.parse().ok()?;
    let id = values.next()?.to_owned();
    let model = values.next().map(str::to_owned);
    let mut number = || values.next().and_then(|value| value.parse::<u64>().ok());
    let small = |value: Option<u64>| value.and_then(|value| u32::try_from(value).ok());
    Some(GpuFact {
        index,
        id,
        model,
        use_percent: small(number()),
        used: number().map(Memory),
        memory: number().map(Memory),
        celsius: small(number()),
        processes: Vec::new(),
    })
}

/// `0 12`: a card and how much it is at work.
fn amd(line: &str) -> Option<GpuFact> {
    let mut words = line.split_whitespace();
    let index = words.next()?.parse().ok()?;
    let use_percent = words.next().and_then(|word| word.parse().ok());
    Some(GpuFact { index, id: index.to_string(), use_percent, ..GpuFact::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "host gpu01\nboot 6c2a\ncpus 64\nmemory 263856128\navailable 201000000\nload 3.25\n\
        disk 1048576\ntmux tmux 3.4\npython Python 3.11.2\n\
        nvidia 0, GPU-aa, NVIDIA A100-SXM4-80GB, 97, 40123, 81920, 61\n\
        nvidia 1, GPU-bb, NVIDIA A100-SXM4-80GB, [N/A], 3, 81920, 33\n\
        on GPU-aa 4711 bob 40100\ndone\n";

    #[test]
    fn what_a_machine_says_of_itself_is_read() {
        let fact = MachineFact::read(SAID).unwrap();
        assert_eq!((fact.hostname.as_str(), fact.boot.as_deref()), ("gpu01", Some("6c2a")));
        assert_eq!((fact.cpus, fact.load), (Some(64), Some(3.25)));
        assert_eq!(fact.memory, Some(Memory(257_672)));
        assert_eq!(fact.free_disk, Some(Memory(1024)));
        assert_eq!(fact.gpus.len(), 2);
        assert_eq!((fact.gpus[0].use_percent, fact.gpus[1].use_percent), (Some(97), None));
        assert_eq!(fact.gpus[0].celsius, Some(61));
        assert_eq!(fact.gpus[0].processes[0].used, Some(Memory(40_100)));
        assert_eq!(fact.busy(), BusyGpus::from([(0, "bob".to_owned())]));
        let found = fact.found();
        assert_eq!((found.gpus, found.accelerators), (Some(2), Accelerators::Nvidia));
        assert_eq!(found.tmux.as_deref(), Some("3.4"));
        assert_eq!(found.python.as_deref(), Some("3.11.2"));
    }

    #[test]
    fn an_answer_that_breaks_off_is_none() {
        assert_eq!(MachineFact::read(SAID.strip_suffix("done\n").unwrap()), None);
        assert_eq!(MachineFact::read(""), None);
        let bare = MachineFact::read("host x\nchip /dev/accel0\nchip /dev/accel1\ndone\n").unwrap();
        assert_eq!((bare.found().gpus, bare.accelerators), (Some(2), Accelerators::Tpu));
    }
}
