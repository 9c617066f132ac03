//! What lies in the log directory of a job of a file beside what it prints: what it was to do, where its workers are, and
//! what had happened before it began.
//!
//! `spec.yaml` is the job as a file, with everything filled in. `queue.log` is what the journal says of the job up to
//! then, `tpu.log` what it says of its target, `ips.json` where its workers are. They are for people and their programs:
//! nothing here reads them. Where workers are reached, `command_worker_<i>.log` is what the command says on each.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::statvfs;
use serde_json::json;

use tpu_core::model::data::Data;
use tpu_core::model::execution::Execution;
use tpu_core::model::job::Job;
use tpu_core::model::target::Machines;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::JobView;
use tpu_core::text::escape;
use tpu_engine::runner::window::unwritten::LogLoss;
use tpu_jobfile::own::{self, SaidAgain};
use tpu_jobfile::yaml::{self, Yaml};
use tpu_system::remote::Worker;
use tpu_system::store::atomic;

use super::journal::Event;
use crate::{Ctx, Error};

/// So far back is looked for what happened before a job began.
const EVENTS: usize = 10_000;
/// So much of it is written down, the newest.
const WRITTEN: usize = 200;
/// They may name what is its owner's alone.
const MODE: u32 = 0o600;

/// A job as a job file, and what of it no file can say; fails where a word of its command is no text.
pub fn as_file(data: &Data, job: &Job) -> Result<(String, Vec<String>), Error> {
    let words = shlex::split(&job.extra_configs).unwrap_or_default();
    let kind = data.target(&job.tpu).map(|target| target.kind.as_str().to_owned());
    let said = own::of_spec(&job.spec_with(words), &kind.unwrap_or_default());
    let (document, left_out) = documented(said)?;
    Ok((yaml::written(&[document]), left_out))
}

/// A job of a file as the document that it would be, and what of it no file can say; fails where a word of its command is
/// no text.
pub fn documented(said: SaidAgain) -> Result<(Yaml, Vec<String>), Error> {
    let SaidAgain { job, mut left_out } = said;
    let document = own::document(&job).map_err(|word| {
        Error::refused(format!("its command has a word that is not text: {}", word.display()))
            .hint("no file can say it; `tpu script` prints what started it")
    })?;
    left_out.sort_unstable();
    Ok((document, left_out))
}

/// Writes down what is known of jobs of a file as they begin. That it cannot be written is said, and keeps none of them
/// from beginning.
pub fn keep(ctx: &Ctx, jobs: &[&Job]) {
    let jobs: Vec<&Job> = jobs.iter().copied().filter(|job| is_of_file(job)).collect();
    if jobs.is_empty() {
        return;
    }
    let Ok(data) = ctx.data() else { return };
    let mut events: Vec<Event> = ctx.store.events().take(EVENTS).flatten().collect();
    events.reverse();
    // Members of a group have one target together.
    let mut of_targets: HashMap<&str, String> = HashMap::new();
    for job in jobs {
        let id = job.id();
        let group = job.member().map(|member| member.group);
        let is_own = |event: &Event| {
            let of = event.job.is_some_and(|of| of == id.window || Some(of) == group);
            of && event.user.as_ref() == Some(&id.user)
        };
        put(ctx, job, "queue.log", &written(&events, is_own));
        let of_target = of_targets.entry(job.tpu.as_str()).or_insert_with_key(|target| {
            written(&events, |event| event.job.is_none() && names(&event.text, target))
        });
        put(ctx, job, "tpu.log", of_target);
        match as_file(&data, job) {
            Ok((file, left_out)) => {
                let told =
                    left_out.iter().map(|what| format!("# not in a file: {}\n", escape(what)));
                put(ctx, job, "spec.yaml", &(told.collect::<String>() + &file));
            }
            Err(error) => ctx.warn([error.message]),
        }
    }
}

/// Writes down where the workers of a job of a file are.
pub(crate) fn keep_workers(ctx: &Ctx, job: &Job, workers: &[Worker]) {
    if is_of_file(job) {
        let of = |worker: &Worker| json!({"worker": worker.index, "address": worker.address});
        let all: Vec<_> = workers.iter().map(of).collect();
        put(ctx, job, "ips.json", &format!("{:#}\n", json!(all)));
    }
}

/// What the command says on one worker, `command_worker_<i>.log`, from its beginning; `None` where that is not kept.
pub fn of_command(job: &Job, worker: u32) -> Option<File> {
    let dir = job.log_dir.as_ref().filter(|_| is_of_file(job))?;
    let path = Path::new(dir).join(format!("command_worker_{worker}.log"));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(MODE).open(path).ok()
}

/// What is wrong with the log of a job: what it lacks of the output, or that its disk takes nothing more. `None` while all is
/// well, and where nobody can see that from here.
pub fn trouble(ctx: &Ctx, job: &Job) -> Option<String> {
    let is_over = !job.status.is_live();
    if let Some(loss) = LogLoss::of(&ctx.effects, job) {
        return Some(loss.in_words(is_over));
    }
    let dir = job.log_dir.as_deref().filter(|_| !is_over)?;
    let disk = statvfs(Path::new(dir)).ok()?;
    let is_full = disk.f_blocks > 0 && disk.f_bavail == 0;
    is_full.then(|| format!("its log takes nothing more: the disk of {dir} is full"))
}

/// When the log of a job was last written that has no window any more, and of whose end nobody knows the time.
pub fn last_written(ctx: &Ctx, view: &JobView) -> Option<Timestamp> {
    let has_window = view.pane_id.is_some() || view.machines == Machines::Engine;
    if has_window || view.is_queued() || view.exit.is_some() || view.ended_at.is_some() {
        return None;
    }
    let log = Path::new(view.log_dir.as_ref()?).join("output.log");
    let (seconds, _) = ctx.store.disk().stat(&log).ok()?.modified;
    Some(Timestamp::from_second(seconds))
}

/// Whether a job says what only a file says.
fn is_of_file(job: &Job) -> bool {
    job.execution().is_some_and(Execution::is_of_file)
}

/// Whether a text names a target, and not one of which the name only begins or ends so.
fn names(text: &str, target: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.split(|c: char| !is_part(c)).any(|word| word.trim_end_matches('.') == target)
}

fn written(events: &[Event], is_meant: impl Fn(&Event) -> bool) -> String {
    let mut lines: Vec<String> = events
        .iter()
        .rev()
        .filter(|event| is_meant(event))
        .take(WRITTEN)
        .map(|Event { at, actor, kind, text, .. }| {
            format!("{} {} {kind}: {}\n", at.to_rfc3339(), escape(actor), escape(text))
        })
        .collect();
    lines.reverse();
    lines.concat()
}

fn put(ctx: &Ctx, job: &Job, name: &str, text: &str) {
    let Some(dir) = &job.log_dir else { return };
    // What an engine runs may log where only its machines see it.
    if job.engine.is_some() && ctx.store.disk().stat(Path::new(dir)).is_err() {
        return;
    }
    let path = Path::new(dir).join(name);
    if let Err(error) = atomic::write_file(&**ctx.store.disk(), &path, text.as_bytes(), MODE) {
        ctx.warn([format!("{} is not written: {error}", path.display())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_by_its_whole_name() {
        assert!(names("started on v4-8-p1 (the only one)", "v4-8-p1"));
        assert!(names("made v4-8-p1.", "v4-8-p1"));
        assert!(!names("started on v4-8-p10", "v4-8-p1"));
        assert!(!names("my-v4-8-p1", "v4-8-p1"));
    }
}
