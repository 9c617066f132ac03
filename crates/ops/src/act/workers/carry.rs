//! What a job needs on workers before anything is started there: the copy of its code, where they share no disk with
//! this machine, and what it sets up.
//!
//! A worker that a provider has made and that cannot be reached is given up after a minute. One's own machine is waited
//! for: that it does not answer says nothing about it, and the job is unknown meanwhile, as one that runs there is.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Error;
use crate::act::{stage, worker_shell};
use tpu_core::model::ids::LaunchToken;
use tpu_engine::runner::tree::COPIED;
use tpu_engine::runner::window::silence;
use tpu_system::remote::{Ask, End, Remote, Reply, Worker};
use tpu_system::sys::proc::Feed;

use super::{Control, FIRST_WAIT, LAST_WAIT, rest};

/// For so long a worker of a provider is waited for that cannot be reached.
const CARRIES: Duration = Duration::from_secs(60);

/// What is brought.
pub(super) struct Cargo {
    /// What it is, for people.
    pub(super) what: String,
    /// A directory of this machine.
    pub(super) from: PathBuf,
    /// Its place there, as a shell reads it. Where it is there, nothing is carried.
    pub(super) place: String,
    /// What to do where it cannot be kept.
    pub(super) hint: &'static str,
    /// When the list of what was copied was written, by this machine: a worker that says the same sees the same file, and a
    /// carried one has whole seconds. None where that is nobody's business.
    pub(super) listed_at: Option<String>,
}

impl Cargo {
    /// The copy of the code, in its own place.
    pub(super) fn code(dir: &str) -> Result<Self, Error> {
        let place =
            shlex::try_quote(dir).map_err(|_| Error::usage("a NUL in the stage directory"))?;
        Ok(Self {
            what: dir.to_owned(),
            from: dir.into(),
            place: place.into_owned(),
            hint: "set stage_root to a directory that the workers have or can make",
            listed_at: fs::metadata(Path::new(dir).join(COPIED))
                .ok()
                .filter(|list| list.mtime_nsec() != 0)
                .map(|list| format!("{}.{:09}", list.mtime(), list.mtime_nsec())),
        })
    }
}

/// What brings it.
pub(super) struct Carrier<'a> {
    pub(super) control: &'a Control<'a>,
    pub(super) door: &'a dyn Remote,
    pub(super) token: &'a LaunchToken,
    /// Whether somebody wants the job to end.
    pub(super) stop: &'a AtomicBool,
}

impl Carrier<'_> {
    /// Brings it to workers that do not have it: where a disk is shared, nothing is carried, and the code finds what lies
    /// beside it. Whether all have it.
    pub(super) fn carry(
        &self,
        workers: &[Worker],
        cargo: &Cargo,
        out: &mut dyn Write,
    ) -> Result<bool, Error> {
        let clock = &self.control.ctx.clock;
        let deadline = clock.monotonic() + CARRIES;
        let (mut left, mut wait, mut silent) = (workers.to_vec(), FIRST_WAIT, None);
        let mut sharing = BTreeSet::new();
        let done = loop {
            let lost = match self.carry_once((&left, cargo), &mut sharing, out) {
                Ok(lost) => lost,
                Err(error) => break Err(error),
            };
            left.retain(|worker| lost.contains_key(&worker.index));
            let Some((worker, why)) = lost.first_key_value() else { break Ok(true) };
            if self.is_over(clock.monotonic() >= deadline) {
                let line = format!("the connection is broken: it has not got {}", cargo.what);
                drop(writeln!(out, "tpu: worker {worker}: {line}"));
                break Ok(false);
            }
            self.tell(&mut silent, (*worker, why), out);
            rest(self.control.ctx, wait, self.stop);
            wait = (2 * wait).min(LAST_WAIT);
        };
        if let Some(worker) = silent {
            silence::ends(&self.control.ctx.effects, self.token, worker);
        }
        if let (Ok(true), true) = (&done, sharing.len() == workers.len())
            && let Some(stage) = cargo.from.to_str()
        {
            stage::link_beside(self.control.ctx, self.control.job, stage);
        }
        done
    }

    /// Whether nobody is waited for any longer.
    fn is_over(&self, is_late: bool) -> bool {
        let is_unwanted = || self.stop.load(Ordering::Relaxed) || !self.control.stands(self.token);
        if self.control.is_fixed { is_unwanted() } else { is_late }
    }

    /// Says who does not answer, once for each: in the window, and to whoever looks at the job.
    fn tell(&self, silent: &mut Option<u32>, (worker, why): (u32, &str), out: &mut dyn Write) {
        let before = silent.replace(worker);
        if before == Some(worker) {
            return;
        }
        let effects = &self.control.ctx.effects;
        if let Some(before) = before {
            silence::ends(effects, self.token, before);
        }
        if self.control.is_fixed {
            silence::begins(effects, self.token, worker, why);
        }
        // Nobody who prints is nobody who reads.
        drop(writeln!(out, "{}", self.control.words_of_silence(worker, why)));
        self.control.tell();
    }

    /// One try; the workers that could not be reached, and why.
    fn carry_once(
        &self,
        (workers, cargo): (&[Worker], &Cargo),
        sharing: &mut BTreeSet<u32>,
        out: &mut dyn Write,
    ) -> Result<BTreeMap<u32, String>, Error> {
        let Cargo { what, from, place, hint, listed_at } = cargo;
        let command = match listed_at {
            Some(_) => {
                format!("test -d {place} || exit 1; stat -c %.9Y -- {place}/{COPIED}; exit 0")
            }
            None => format!("test -d {place}"),
        };
        let look = Ask { command, is_ours: true, ..Ask::default() };
        let (mut without, mut lost) = (BTreeSet::new(), BTreeMap::new());
        for (worker, reply) in self.door.ask(workers, &look) {
            match reply {
                Reply::End(End::Exit(1)) => drop(without.insert(worker)),
                Reply::End(End::Lost(why)) => drop(lost.insert(worker, why)),
                Reply::Out(line) if listed_at.as_ref().is_some_and(|at| is_line(&line, at)) => {
                    sharing.insert(worker);
                }
                Reply::Out(_) | Reply::Err(_) | Reply::End(End::Exit(_)) => {}
            }
        }
        if without.is_empty() {
            return Ok(lost);
        }
        let all = tpu_core::text::counted(workers.len(), "worker");
        drop(writeln!(out, "tpu: copying {what} to {} of {all}", without.len()));
        let words = [OsStr::new("-z"), "-C".as_ref(), from.as_os_str(), ".".as_ref()];
        let packed = worker_shell::pack(self.control.ctx, what, &words)?;
        // Under its name there is a whole copy or none. Workers may share their disk with each other: the first
        // copy is everybody's.
        let unpack = format!(
            "p={place}.partial-$(uname -n)-$$-$RANDOM; mkdir -p \"$p\" && tar -xzf - -C \"$p\" || {{ rm -rf \"$p\"; exit 1; }}; \
             mv -T \"$p\" {place} 2>/dev/null || {{ rm -rf \"$p\"; test -d {place}; }}"
        );
        let input = Some(Feed::File(packed));
        let unpack = Ask { command: unpack, input, ..Ask::default() };
        let to: Vec<Worker> =
            workers.iter().filter(|worker| without.contains(&worker.index)).cloned().collect();
        for (worker, reply) in self.door.ask(&to, &unpack) {
            match reply {
                Reply::Err(line) => {
                    drop(write!(out, "tpu: worker {worker}: {}", String::from_utf8_lossy(&line)));
                }
                Reply::End(End::Exit(code)) if code != 0 => {
                    return Err(
                        Error::failed(format!("worker {worker} cannot keep {what}")).hint(*hint)
                    );
                }
                Reply::End(End::Lost(why)) => drop(lost.insert(worker, why)),
                Reply::Out(_) | Reply::End(End::Exit(_)) => {}
            }
        }
        Ok(lost)
    }
}

/// Whether a line says a text and nothing else.
fn is_line(line: &[u8], text: &str) -> bool {
    line.trim_ascii_end() == text.as_bytes()
}
