//! What a machine sees of a directory, by its own word: nobody else can tell which disks it shares.

use crate::model::data::Data;
use crate::model::ids::TargetName;
use crate::model::job::Job;
use crate::model::target::{Machines, Target};
use crate::ops::{Ctx, Error};

use super::probe::{self, PATIENCE};

/// Whether a machine sees a directory.
pub fn sees(ctx: &Ctx, data: &Data, target: &Target, dir: &str) -> Result<bool, Error> {
    is_so(ctx, data, target, &format!("[ -d {} ]", quoted(dir)?))
}

/// Whether an attempt may have left something on a disk that its machine has for itself: there is something in its
/// log directory, and not what we write there from the first moment on. Asked only of machines at addresses that
/// somebody registered; all others see what their kind says.
pub fn has_own(ctx: &Ctx, data: &Data, attempt: &Job, log: &str) -> Result<bool, Error> {
    let target = data.target(&attempt.tpu);
    let Some(target) = target.filter(|of| of.machines == Machines::Fixed && attempt.is_native())
    else {
        return Ok(false);
    };
    let dir = quoted(log)?;
    let own = format!("[ ! -e {dir}/output.log ] && [ -n \"$(ls -A -- {dir} 2>/dev/null)\" ]");
    is_so(ctx, data, &target, &own)
}

fn quoted(dir: &str) -> Result<String, Error> {
    let quoted = shlex::try_quote(dir).map_err(|_| Error::usage(format!("a NUL in {dir:?}")))?;
    Ok(quoted.into_owned())
}

/// Whether a test succeeds on a machine.
fn is_so(ctx: &Ctx, data: &Data, target: &Target, test: &str) -> Result<bool, Error> {
    let answer = probe::answers(ctx, data, std::slice::from_ref(target), (test, PATIENCE)).pop();
    let why = match answer {
        Some(Ok(answer)) if answer.code == 0 => return Ok(true),
        Some(Ok(answer)) if answer.code == 1 => return Ok(false),
        Some(Ok(answer)) => format!("code {}", answer.code),
        Some(Err(why)) => why,
        None => "nobody asked it".to_owned(),
    };
    Err(silent(&target.name, &why))
}

fn silent(name: &TargetName, why: &str) -> Error {
    Error::unreachable(format!("what {name} has on its disk is unknown: {why}"))
        .hint(format!("nothing was changed; look at it: tpu hosts probe {name}"))
}
