//! What a machine sees of a directory, by its own word: nobody else can tell which disks it shares.

use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::job::Job;
use tpu_core::model::target::{Machines, Target};

use super::probe::{self, PATIENCE, Question};

/// Whether a machine sees a directory.
pub fn sees(ctx: &Ctx, data: &Data, target: &Target, dir: &str) -> Result<bool, Error> {
    is_so(ctx, data, target, &format!("[ -d {} ]", quoted(dir)?))
}

/// Whether an attempt may have left something on a disk that its machine has for itself: there is something in its
/// log directory, and not what we write there from the first moment on. An error where that disk is not there, or
/// where the machine never had the attempt. Asked only of machines at addresses that somebody registered; all others
/// see what their kind says.
pub(crate) fn has_own(ctx: &Ctx, data: &Data, attempt: &Job, log: &str) -> Result<bool, Error> {
    let target = data.target(&attempt.tpu);
    let target = target.filter(|of| of.machines == Machines::Fixed && attempt.is_native());
    let (Some(target), Some(launch)) = (target, &attempt.launch) else { return Ok(false) };
    let script = format!("run={}.0 dir={}\n{OWN}", quoted(launch.token.as_str())?, quoted(log)?);
    is_so(ctx, data, &target, &script)
}

/// Whether there is something in a directory of an attempt on its machine. Asked only of those of which
/// [`has_own`] is.
pub(crate) fn holds_own(ctx: &Ctx, data: &Data, attempt: &Job, dir: &str) -> Result<bool, Error> {
    let target = data.target(&attempt.tpu);
    let target = target.filter(|of| of.machines == Machines::Fixed && attempt.is_native());
    let Some(target) = target else { return Ok(false) };
    let script = format!("[ -n \"$(ls -A -- {} 2>/dev/null)\" ]", quoted(dir)?);
    is_so(ctx, data, &target, &script)
}

/// Ends with 0 where something is in the directory that only this machine sees, with 1 where nothing is, and with
/// [`GONE`] where that cannot be said: see `worker.sh` for what lies there.
const OWN: &str = r#"
run=$HOME/.tpu/runs/$run
[ -d "$run" ] || exit 44
[ ! -e "$dir/output.log" ] || exit 1
if [ ! -d "$dir" ]; then
    [ ! -e "$run/logs" ] || exit 44
    exit 1
fi
found=$(ls -A -- "$dir") || exit 44
[ -n "$found" ]"#;

/// By this code a script says that the disk is not there.
const GONE: i32 = 44;

fn quoted(word: &str) -> Result<String, Error> {
    let quoted = shlex::try_quote(word).map_err(|_| Error::usage(format!("a NUL in {word:?}")))?;
    Ok(quoted.into_owned())
}

/// Whether a test succeeds on a machine.
fn is_so(ctx: &Ctx, data: &Data, target: &Target, test: &str) -> Result<bool, Error> {
    let question = Question { target: target.clone(), script: test.to_owned(), input: Vec::new() };
    let answer = probe::answers(ctx, data, vec![question], PATIENCE).pop();
    let why = match answer {
        Some(Ok(answer)) if answer.code == 0 => return Ok(true),
        Some(Ok(answer)) if answer.code == 1 => return Ok(false),
        Some(Ok(answer)) if answer.code == GONE => {
            "what was logged there is not to be seen".to_owned()
        }
        Some(Ok(answer)) => format!("code {}", answer.code),
        Some(Err(why)) => why,
        None => "nobody asked it".to_owned(),
    };
    let what = format!("what {} has on its disk is unknown: {why}", target.name);
    Err(Error::unreachable(what)
        .hint(format!("nothing was changed; look at it: tpu ssh {}", target.name)))
}
