//! The programs of this machine: an argument vector each, with an environment of which nothing changes what they say.

use std::ffi::OsString;

use tpu_system::effects::Effects;
use tpu_system::sys::proc::{self, ProcError, Spawn};

use super::client::{Client, ClusterDisk, HereDisk, ProgramAnswer, ProgramCall, Silence};

/// What a program needs of our environment. Whatever else there is may change its answers: formats, users, clusters.
const KEPT: [&str; 4] = ["PATH", "HOME", "USER", "LOGNAME"];

/// What makes answers the same everywhere: times in UTC, and every task of an array named.
pub(super) const FIXED: [(&str, &str); 3] =
    [("LC_ALL", "C"), ("TZ", "UTC0"), ("SLURM_BITSTR_LEN", "0")];

/// The programs of this machine.
pub(super) struct LocalClient<'a> {
    conf: Option<String>,
    effects: &'a Effects,
}

impl<'a> LocalClient<'a> {
    /// Those of the cluster of a `slurm.conf`.
    pub(super) fn new(conf: Option<String>, effects: &'a Effects) -> Self {
        Self { conf, effects }
    }

    fn spawn(&self, call: &ProgramCall) -> Spawn {
        let mut words: Vec<OsString> = Vec::new();
        if call.dies_with_us {
            // Whoever is killed takes it along; if that fails, it has an end all the same.
            let guard =
                self.has_program("setpriv").then_some(["setpriv", "--pdeathsig", "KILL", "--"]);
            let guard = || guard.iter().flatten().map(OsString::from);
            words.extend(guard());
            let seconds = call.limit.as_secs().max(1).to_string();
            words.extend(["timeout", "-s", "KILL", &seconds].map(OsString::from));
            words.extend(guard());
        }
        words.push(call.program.into());
        words.extend(call.args.iter().map(OsString::from));
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let mut spawn =
            Spawn::new(program).args(words).timeout(call.limit).env_clear().own_group().cwd("/");
        for name in KEPT {
            if let Some(value) = self.effects.env.var_os(name) {
                spawn = spawn.env(name, value);
            }
        }
        if let Some(conf) = &self.conf {
            spawn = spawn.env("SLURM_CONF", conf);
        }
        // A job would inherit these.
        if call.stdin.is_empty() {
            for (name, value) in FIXED {
                spawn = spawn.env(name, value);
            }
        } else {
            spawn = spawn.stdin(call.stdin.clone());
        }
        spawn
    }

    fn has_program(&self, name: &str) -> bool {
        let path = self.effects.env.var_os("PATH").unwrap_or_default();
        std::env::split_paths(path).any(|dir| dir.join(name).is_file())
    }
}

impl Client for LocalClient<'_> {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, Silence> {
        match proc::run(&self.spawn(call)) {
            Ok(output) => Ok(ProgramAnswer {
                code: output.status.shell_code(),
                stdout: output.text(),
                stderr: output.complaint(),
            }),
            Err(ProcError::TimedOut { after, .. }) => {
                Err(Silence::Late { program: call.program, after })
            }
            Err(
                error @ (ProcError::Missing { .. }
                | ProcError::NoProgram { .. }
                | ProcError::NoDirectory { .. }),
            ) => Err(Silence::NotStarted(error.to_string())),
            Err(error @ ProcError::Io { .. }) => Err(Silence::Broken(error.to_string())),
        }
    }

    fn disk(&self) -> Box<dyn ClusterDisk + '_> {
        Box::new(HereDisk)
    }

    fn at_terminal(&self, words: &[String]) -> Vec<String> {
        let conf = self.conf.as_ref().map(|conf| format!("SLURM_CONF={conf}"));
        let env = conf.map(|conf| ["env".to_owned(), conf]);
        env.into_iter().flatten().chain(words.iter().cloned()).collect()
    }

    fn is_here(&self) -> bool {
        true
    }
}
