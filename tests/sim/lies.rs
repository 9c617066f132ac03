//! Deliberate bugs, each behind a fail point and played by a door: a process is told what is not so, as it would be
//! if whoever wrote the door, or read its answers, had been mistaken. `bugs` finds every one.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tpu_core::model::facts::{PaneFact, TargetFact, TargetState};
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{Answer, ZoneAnswer};
use tpu_kubernetes::api::{ApiAnswer, ApiCall, ApiVerb, Unanswered};
use tpu_slurm::client::{FileMark, ProgramAnswer, ProgramCall, Silence};
use tpu_system::store::disk::{Contents, Disk as _};
use tpu_system::sys::procs::Processes as _;
use tpu_system::tmux::{NewWindow, TmuxError};

use super::DATA;
use super::effects::Me;
use super::observer::{Health, is_lock};
use super::world::{Proc, Role, State};

/// Whether a bug is there.
fn is_planted(bug: &str) -> bool {
    fail::fail_point!(bug, |_| true);
    false
}

impl Me {
    /// What a process is told that the data file says.
    pub(crate) fn told_of_data(&self, contents: Contents) -> Contents {
        let bytes = if is_planted("bug-old-base") {
            self.before_the_lock(&contents.bytes)
        } else if is_planted("bug-held-for-ever") {
            with_new_leases(&contents.bytes, &self.until())
        } else {
            None
        };
        match bytes {
            Some(bytes) => Contents { bytes, ..contents },
            None => contents,
        }
    }

    /// What a process that has the lock had read before it had it.
    fn before_the_lock(&self, now: &[u8]) -> Option<Vec<u8>> {
        let mut state = self.world.state();
        let holds = state.locks.iter().any(|(path, pid)| is_lock(path) && *pid == self.pid);
        let proc = state.proc_mut(self.pid)?;
        if holds {
            return proc.told.clone();
        }
        proc.told = Some(now.to_vec());
        None
    }

    /// When a lease ends that is taken now.
    fn until(&self) -> String {
        self.world.state().wall(self.pid.host).plus_seconds(30).to_rfc3339()
    }

    /// What a process is told that another file says: it is not there, if it says that somebody has closed a window.
    pub(crate) fn told_of_file(path: &Path, contents: Contents) -> io::Result<Contents> {
        if path.ends_with("closed") && is_planted("bug-no-trace") {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(contents)
    }

    /// What is to take the place of the data file is written over it, and not put in its place.
    pub(crate) fn written_in_place(&self, from: &Path, to: &Path) -> Option<io::Result<()>> {
        if to != Path::new(DATA) || !is_planted("bug-in-place") {
            return None;
        }
        let bytes = self.world.disk.bytes(from).unwrap_or_default();
        let written = || {
            self.remove(from)?;
            self.remove(to)?;
            self.create(to, &bytes, 0o660)
        };
        Some(written())
    }

    /// Whether what is added to a file goes nowhere.
    pub(crate) fn goes_nowhere(path: &Path) -> bool {
        path == super::archive() && is_planted("bug-no-archive")
    }

    /// Whether a process that is there, or has been, counts as alive whatever has become of it.
    pub(crate) fn seems_alive(&self, pid: u32) -> bool {
        let is_used = |pid| self.table().is_ok_and(|table| table.get(pid).is_some());
        is_planted("bug-held-for-ever") || (is_planted("bug-reused-pid") && is_used(pid))
    }

    /// Opens another window if the answer about one was lost.
    pub(crate) fn opened_again(
        &self,
        window: &NewWindow,
        opened: Result<PaneFact, TmuxError>,
    ) -> Result<PaneFact, TmuxError> {
        if opened.is_err() && is_planted("bug-second-window") {
            return self.open(&NewWindow { index: window.index + 1, ..window.clone() });
        }
        opened
    }
}

/// What a program of Slurm is said to have said: that there is nothing, where it has not answered; that it was not heard,
/// where it was.
pub(crate) fn told_of_slurm(
    call: &ProgramCall,
    answer: Result<ProgramAnswer, Silence>,
) -> Result<ProgramAnswer, Silence> {
    let is_good = matches!(&answer, Ok(said) if said.code == 0);
    match call.program {
        "squeue" | "sacct" | "scontrol" if !is_good && is_planted("bug-silent-is-gone") => {
            // It was started anew, and has jobs of others.
            let stdout = match call.args.last().map(String::as_str) {
                Some("config") => "BOOT_TIME = now\n",
                Some("--format=%A") => "1\n",
                _ => "",
            };
            Ok(ProgramAnswer { stdout: stdout.to_owned(), ..ProgramAnswer::default() })
        }
        "sbatch" if !is_good && is_planted("bug-unheard") => {
            Err(Silence::NotStarted("nobody has heard it".to_owned()))
        }
        _ => answer,
    }
}

/// Whether every submission to a cluster is to be lost, so that a mistake about those is met.
pub(crate) fn is_wanted_lost() -> bool {
    is_planted("bug-unheard")
}

/// What is said of the files of jobs: that they are as they always were.
pub(crate) fn told_of_marks(marks: Vec<Option<FileMark>>) -> Vec<Option<FileMark>> {
    if !is_planted("bug-silent-is-gone") {
        return marks;
    }
    let still = |_| FileMark { length: 1, written: Timestamp::from_second(0) };
    marks.into_iter().map(|mark| mark.map(still)).collect()
}

/// What the API server of a cluster is said to have said: that there is nothing, where it has not answered; that it was
/// not asked, where it was.
pub(crate) fn told_of_kubernetes(
    call: &ApiCall,
    answer: Result<ApiAnswer, Unanswered>,
) -> Result<ApiAnswer, Unanswered> {
    let is_good = matches!(&answer, Ok(said) if said.status < 500);
    let is_job = call.path.ends_with("/jobs");
    match call.verb {
        ApiVerb::Get if !is_good && is_job && is_planted("bug-silent-is-empty") => {
            Ok(ApiAnswer { status: 200, body: "{\"items\":[]}".into(), ..ApiAnswer::default() })
        }
        ApiVerb::Post if !is_good && is_job && is_planted("bug-unheard") => {
            Err(Unanswered::NotSent("nobody has heard it".to_owned()))
        }
        _ => answer,
    }
}

/// All leases that were not given back, as if they had just been taken.
fn with_new_leases(bytes: &[u8], until: &str) -> Option<Vec<u8>> {
    let mut data: Value = serde_json::from_slice(bytes).ok()?;
    let free = Timestamp::from_second(0).to_rfc3339();
    let labs = data["users"].as_object_mut().into_iter().flat_map(|users| users.values_mut());
    for job in labs.filter_map(|lab| lab["job_data"].as_array_mut()).flatten() {
        if let Some(lease) = job["extra_msgs"].get_mut("lease")
            && lease["until"] != free
        {
            lease["until"] = until.into();
        }
    }
    Some(data.to_string().into_bytes())
}

impl State {
    /// Whether the process table leaves a process out: a program whose window has gone.
    pub(crate) fn is_left_out(&self, proc: &Proc) -> bool {
        let Role::Program(number) = proc.role else { return false };
        let program = self.observer.programs.get(number);
        program.is_some_and(|program| program.health == Health::Orphan)
            && is_planted("bug-leftovers")
    }

    /// What a zone is said to have: what there once was, or nothing if it does not answer.
    pub(crate) fn told_of_zone(&mut self, zone: &mut ZoneAnswer, observed_at: Timestamp) {
        match &mut zone.answer {
            Answer::Facts { targets, .. } if is_planted("bug-old-fact") => {
                for target in targets {
                    self.as_it_once_was(target);
                }
            }
            Answer::Unknown { .. } if is_planted("bug-unknown-is-gone") => {
                zone.answer = Answer::Facts { targets: Vec::new(), observed_at };
            }
            Answer::Facts { .. } | Answer::Unknown { .. } => {}
        }
    }

    /// A target that was gone a while ago is gone.
    fn as_it_once_was(&mut self, target: &mut TargetFact) {
        let now = self.now;
        if target.state != TargetState::Ready {
            self.gone.insert(target.name.clone(), (now, target.clone()));
        } else if let Some((at, old)) = self.gone.get(&target.name)
            && now.saturating_sub(*at) < Duration::from_secs(60)
        {
            *target = TargetFact { observed_at: target.observed_at, ..old.clone() };
        }
    }
}
