//! What still runs another `tpu` than this one, after an upgrade: the daemon and servers, which say their version in a note.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use tpu_core::model::time::Timestamp;
use tpu_core::model::version::{VERSION, to_ours};
use tpu_system::store::atomic;
use tpu_system::sys::procs::{self, Process};

use super::lease;
use super::watch::Note;
use crate::{Ctx, Error};

/// The one command that starts all of them anew.
pub const RESTART: &str = "tpu daemon restart";

/// How a process stands to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsTpu {
    /// It runs this program.
    This,
    /// It runs an earlier version, or one that was replaced since.
    Earlier,
    /// It runs a later version.
    Later,
}

/// Says how a process that noted this version stands to this program.
pub fn compared(version: Option<&str>, pid: u32) -> RunsTpu {
    match to_ours(version) {
        Ordering::Less => RunsTpu::Earlier,
        Ordering::Greater => RunsTpu::Later,
        Ordering::Equal if procs::is_program_replaced(pid) => RunsTpu::Earlier,
        Ordering::Equal => RunsTpu::This,
    }
}

/// What to say of a process that runs another `tpu`, and what to type; `None` of one that runs this one.
pub fn in_words(what: &str, version: Option<&str>, pid: u32) -> Option<(String, String)> {
    let said = version.map_or_else(|| "an earlier tpu".to_owned(), |said| format!("tpu {said}"));
    match compared(version, pid) {
        RunsTpu::This => None,
        RunsTpu::Earlier if version == Some(VERSION) => {
            let what = format!("{what} runs a tpu {VERSION} that has been replaced since");
            Some((what, format!("{RESTART} (jobs continue)")))
        }
        RunsTpu::Earlier => Some((
            format!("{what} runs {said}, and this is tpu {VERSION}"),
            format!("{RESTART} (jobs continue)"),
        )),
        RunsTpu::Later => Some((
            format!("{what} runs {said}, which is newer than this tpu ({VERSION})"),
            "use that one: `type -a tpu` lists those that you have".to_owned(),
        )),
    }
}

/// What to say of the daemon of this place if it runs another `tpu`.
pub fn of_daemon(note: &Note) -> Option<String> {
    let (what, then) = in_words("the daemon", note.version.as_deref(), note.pid)?;
    Some(format!("{what}: {then}"))
}

/// What a server says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerNote {
    /// Who it is, as an owner of leases.
    pub owner: String,
    /// Its process id.
    pub pid: u32,
    /// When it began to answer.
    pub since: Timestamp,
    /// Where it answers.
    pub address: String,
    /// The version of its program.
    pub version: String,
    /// The program that it is to become, once it was told to start anew.
    #[serde(default)]
    pub next: Option<PathBuf>,
}

impl ServerNote {
    /// That of this process.
    pub fn of_this(ctx: &Ctx, address: String) -> Self {
        Self {
            owner: lease::me(&ctx.env),
            pid: ctx.env.pid,
            since: ctx.clock.now(),
            address,
            version: VERSION.to_owned(),
            next: None,
        }
    }

    /// Writes it down.
    pub fn write(&self, ctx: &Ctx) -> Result<(), Error> {
        ctx.store.state_dir()?;
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let path = ctx.store.paths().server_note(self.pid);
        Ok(atomic::write_passing(&**ctx.store.disk(), &path, &bytes, 0o600)?)
    }

    /// Takes it away.
    pub fn forget(&self, ctx: &Ctx) {
        drop(ctx.store.disk().remove(&ctx.store.paths().server_note(self.pid)));
    }

    /// The one of a process of this account, while that lives.
    pub fn read(ctx: &Ctx, path: &Path) -> Option<Self> {
        let disk = ctx.store.disk();
        // In a directory of several accounts, another one could name any process of ours.
        if disk.stat(path).ok()?.uid != ctx.env.uid {
            return None;
        }
        let note: Self = serde_json::from_slice(&disk.read(path).ok()?.bytes).ok()?;
        let is_itself = lease::process_of(&note.owner).is_some_and(|(pid, _)| pid == note.pid);
        (is_itself && lease::is_alive(ctx, &note.owner) == Some(true)).then_some(note)
    }

    /// Its process, and never a later one of the same id.
    pub fn process(&self) -> Option<Process> {
        let (pid, start) = lease::process_of(&self.owner)?;
        Process::read(pid).filter(|found| found.start == start)
    }

    /// What to say of it, and what to type, if it runs another `tpu`.
    pub fn in_words(&self) -> Option<(String, String)> {
        let what = format!("the server on {} (process {})", self.address, self.pid);
        in_words(&what, Some(&self.version), self.pid)
    }

    /// Whether it is of a later version than this program.
    pub fn is_newer(&self) -> bool {
        compared(Some(&self.version), self.pid) == RunsTpu::Later
    }
}

/// The servers of this data file that this account started on this machine and that answer beside no daemon.
pub fn servers(ctx: &Ctx) -> Vec<ServerNote> {
    let state = ctx.store.paths().state();
    let names = ctx.store.disk().list(&state).unwrap_or_default();
    let is_note = |name: &&String| {
        name.strip_prefix("server-").is_some_and(|rest| rest.strip_suffix(".json").is_some())
    };
    let notes = names.iter().filter(is_note);
    // One of another account can be neither read nor told anything.
    notes.filter_map(|name| ServerNote::read(ctx, &state.join(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::open::for_test;

    #[test]
    fn a_server_counts_by_a_note_that_its_own_account_has_written_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = for_test(dir.path());
        let note = ServerNote::of_this(&ctx, "http://127.0.0.1:1".to_owned());
        note.write(&ctx).unwrap();
        let path = ctx.store.paths().server_note(note.pid);
        assert_eq!(ServerNote::read(&ctx, &path), Some(note.clone()));
        let mut other = ctx.clone();
        other.effects.env.uid += 1;
        assert_eq!(ServerNote::read(&other, &path), None, "the file is of another account");
        assert_eq!(servers(&other), []);
        // Its words are about another process than its writer.
        let about_another = ServerNote { pid: 1, ..note.clone() };
        about_another.write(&ctx).unwrap();
        assert_eq!(ServerNote::read(&ctx, &ctx.store.paths().server_note(1)), None);
        assert_eq!(servers(&ctx), [note]);
    }
}
