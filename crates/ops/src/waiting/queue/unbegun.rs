//! The records of what waited and is over before it began.

use crate::act::launch::plan::quoted;
use crate::act::launch::plan::shown;
use crate::base::records;
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::Job;
use tpu_core::model::spec::TargetRequest;
use tpu_core::model::unbegun;
use tpu_system::store::Tx;

/// The record of a member of an entry that waits, or of the job that it is. The caller says how it ended.
pub(super) fn job(data: &Data, entry: &QueueEntry, member: Option<u32>) -> Job {
    let mut job = Job::new(&entry.id(), target(data, entry), dir(data, entry));
    job.keep_spec(&entry.spec_of(member));
    job.command.clone_from(&entry.spec.command);
    job.extra_configs = args(data, entry, member);
    job.stage_dir = entry.spec.staged.as_ref().map(|staged| staged.copy.clone());
    job
}

/// Puts an entry that was taken out of the queue into the archive, as one record under its number, and says in the
/// journal what it was.
pub(super) fn archive(tx: &mut Tx<'_>, entry: &QueueEntry) {
    let (target, dir) = (target(&tx.data, entry), dir(&tx.data, entry));
    let args = args(&tx.data, entry, None);
    let mut what = vec!["it was taken out of the queue and never began: on".to_owned()];
    what.push(target.to_string());
    what.extend(entry.spec.name.iter().map(|name| format!("as {name}")));
    what.extend(entry.spec.array.iter().map(|array| format!("members {array}")));
    what.extend(entry.sweep.iter().map(|sweep| format!("of {}", sweep.in_words())));
    what.extend((!args.is_empty()).then(|| format!("with {args}")));
    what.extend(entry.spec.command.iter().map(|words| format!("-- {}", shown(words))));
    tx.archive_removed(unbegun::record(entry, (target, dir), args));
    records::note(tx, &entry.id(), "dequeued", what.join(" "));
}

fn target(data: &Data, entry: &QueueEntry) -> TargetName {
    match &entry.spec.target {
        TargetRequest::Named(name) => {
            data.resolve_target(name).map_or_else(|| name.as_str().into(), |of| of.name)
        }
        TargetRequest::Any(any_of) => any_of.in_words().as_str().into(),
    }
}

/// The directory of its code, whatever the slots of its user say by now.
pub(super) fn dir(data: &Data, entry: &QueueEntry) -> String {
    if let Some(staged) = &entry.spec.staged {
        return staged.from.clone();
    }
    if let Some(code) = &entry.spec.code {
        return code.top.clone();
    }
    let user = data.user(&entry.user);
    user.and_then(|user| user.dir(entry.spec.dir.unwrap_or(1))).unwrap_or_default().to_owned()
}

/// The arguments as its program would have got them.
fn args(data: &Data, entry: &QueueEntry, member: Option<u32>) -> String {
    let spec = entry.spec_of(member);
    let user = data.user(&entry.user);
    let style = spec.arguments.unwrap_or_default();
    let full = |key| user.and_then(|user| user.alias_in(style, key)).unwrap_or(key);
    let configs = spec.configs.iter().map(|(key, value)| style.argument(full(key), value));
    quoted(&configs.chain(spec.words.iter().cloned()).collect::<Vec<_>>())
}
