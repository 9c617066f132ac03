//! What everything stands on: room on the disks, and a tmux server that answers.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, statvfs};

use tpu_core::model::data::Data;
use tpu_core::model::job::Job;
use tpu_core::text;
use tpu_engine::runner::window::unwritten::LogLoss;
use tpu_system::sys::procs;
use tpu_system::tmux::TmuxError;

use crate::observe::log_files;

use super::{Ctx, Error, Finding, Severity, warning};

/// Less room than this will soon be none: a checkpoint is larger.
const LITTLE: u64 = 100 << 20;

/// Copies of code and logs need so much where the state directory is, unless settings name other places.
const ENOUGH: u64 = 1_000_000_000;

/// A change needs so much beside the data file itself, for the journal and the archive.
const MARGIN: usize = 4 << 10;

/// Says that tmux is missing or too old, and what to type.
pub(super) fn unusable_tmux(ctx: &Ctx) -> Option<Finding> {
    let problem = ctx.tmux.usable().err()?;
    let is_absent = matches!(problem, TmuxError::Missing | TmuxError::TooOld { .. });
    let error = is_absent.then(|| Error::from(problem))?;
    let what = format!("{error}; only jobs on this machine and over ssh need it");
    Some(warning(what, error.advice()))
}

/// Why tmux cannot be asked, and what to do.
pub(super) fn silent_tmux(reason: &str) -> Finding {
    let what = format!("tmux cannot be asked: {reason}");
    let stopped: Vec<String> = procs::stopped_tmux_servers().iter().map(u32::to_string).collect();
    let (what, remedy) = if stopped.is_empty() {
        (what, "look at the rights of its socket: `tmux ls` shows what tmux says".to_owned())
    } else {
        let pids = stopped.join(" ");
        let what = format!("{what}; a tmux server was stopped and stands still: process {pids}");
        (what, format!("continue it, nothing is lost: kill -CONT {pids}"))
    };
    Finding { severity: Severity::Broken, what, remedy: Some(remedy) }
}

/// Whether the next change can be written, and whether there is room for what jobs write.
pub(super) fn disks(ctx: &Ctx, findings: &mut Vec<Finding>) {
    let dir = ctx.store.paths().dir();
    if !dir.is_dir() {
        return;
    }
    if let Err(error) = try_to_write(ctx, dir) {
        findings.push(Finding {
            severity: Severity::Broken,
            what: format!("the next change cannot be written in {}: {error}", dir.display()),
            remedy: Some(format!("make room or look at the rights there: df -h {}", dir.display())),
        });
        return;
    }
    let settings = ctx.settings(None).unwrap_or_default();
    let roots = [settings.log_root, settings.stage_root].into_iter().flatten().map(PathBuf::from);
    for place in std::iter::once(dir.to_owned()).chain(roots) {
        let Ok(disk) = statvfs(&place) else { continue };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let size = disk.f_blocks.saturating_mul(disk.f_frsize);
        if if place == dir { is_nearly_full(free, size) } else { free < LITTLE } {
            findings.push(warning(
                format!("{} are left on the disk of {}", text::bytes(free), place.display()),
                format!("make room: df -h {}; tpu disk shows what tpu keeps", place.display()),
            ));
        }
    }
}

/// Jobs whose logs do not have what they print, since nothing more can be written there.
pub(super) fn logs(ctx: &Ctx, data: &Data, findings: &mut Vec<Finding>) {
    let ends_early = |job: &Job| LogLoss::of(&ctx.effects, job).is_some_and(|loss| loss.lasts);
    let meant = data.jobs().filter(|job| job.child.is_none());
    let meant = meant.filter(|job| job.status.is_live() || ends_early(job));
    findings.extend(meant.filter_map(|job| {
        let trouble = log_files::trouble(ctx, job)?;
        let dir = job.log_dir.as_deref().unwrap_or_default();
        let remedy = format!("make room: df -h {dir}; tpu disk shows what tpu keeps");
        Some(warning(format!("{}: {trouble}", job.id()), remedy))
    }));
}

/// Whether little is left of a disk of this size: of a large one a share, since others write there, too.
fn is_nearly_full(free: u64, size: u64) -> bool {
    free < ENOUGH || free < size / 20
}

/// Writes as much as the next change would into a file without a name: it goes with this process, however
/// that ends.
fn try_to_write(ctx: &Ctx, dir: &Path) -> io::Result<()> {
    let size = ctx.store.disk().stat(ctx.store.paths().data()).map_or(0, |stat| stat.size);
    let bytes = vec![b'\n'; usize::try_from(size).unwrap_or(0).saturating_add(MARGIN)];
    let mut probe = nameless(ctx, dir)?;
    probe.write_all(&bytes)?;
    probe.sync_all()
}

/// A file in a directory that has no name there.
fn nameless(ctx: &Ctx, dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR) {
        return Ok(File::from(file));
    }
    // Not every file system can make one (NFS): its name, under which nobody finds a byte, is taken away before
    // anything is written. One that another process of this number left goes with it.
    let path = dir.join(format!(".tpu-space-probe-{}", ctx.env.pid));
    drop(fs::remove_file(&path));
    let file = File::create_new(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_nearly_full_below_a_gigabyte_or_a_twentieth() {
        const GB: u64 = 1_000_000_000;
        assert!(is_nearly_full(GB - 1, 2 * GB) && !is_nearly_full(GB, 2 * GB));
        assert!(is_nearly_full(49 * GB, 1_000 * GB) && !is_nearly_full(50 * GB, 1_000 * GB));
    }
}
