//! The code of a job that is to begin: where it is, and how much of it is copied without a question.

use std::path::Path;

use crate::act::stage;
use crate::base::code_dir;
use crate::base::ctx::{how_to_begin, user_of};
use crate::{Ctx, Error};
use tpu_core::model::data::User;
use tpu_core::model::execution::Copying;
use tpu_core::model::settings::Settings;
use tpu_core::model::spec::JobSpec;

use super::RunRequest;

/// The directory of a job: the path of its slot, which must be there; of one whose code was copied when it was
/// submitted that of then.
pub(super) fn directory(user: &User, spec: &JobSpec) -> Result<String, Error> {
    if let Some(staged) = &spec.staged {
        return Ok(staged.from.clone());
    }
    if let Some(there) = &spec.execution.workplace {
        return Ok(there.clone());
    }
    if let Some(code) = &spec.code {
        if !Path::new(&code.top).is_dir() {
            return Err(Error::not_found(format!(
                "the directory of its code is gone: {}",
                code.top
            ))
            .hint("name another one: -C PATH, or dir=N"));
        }
        return Ok(code.top.clone());
    }
    let slot = spec.dir.unwrap_or(1);
    let Some(path) = user.dir(slot) else {
        let known: Vec<String> =
            user.working_dir.iter().map(|(slot, path)| format!("{slot}: {path}")).collect();
        let hint = if known.is_empty() {
            how_to_begin(&user.name)
        } else {
            format!("{} has {}", user.name, known.join(", "))
        };
        return Err(Error::not_found(format!("{} has no directory {slot}", user.name)).hint(hint));
    };
    if !Path::new(path).is_dir() {
        return Err(Error::not_found(format!(
            "directory {slot} of {}: {path} is not there",
            user.name
        ))
        .hint(format!("point it elsewhere: tpu set-dir PATH {slot} {}", user.name)));
    }
    Ok(path.to_owned())
}

/// What would be copied of the code of a request, in words, if that is more than the settings let pass without a question.
pub fn too_much(ctx: &Ctx, request: &RunRequest) -> Result<Option<String>, Error> {
    let data = ctx.data()?;
    let user = user_of(&data, &request.user)?;
    let dir = directory(user, &request.spec)?;
    too_much_of(ctx, (user, &ctx.settings(Some(user))?), request, &dir)
}

fn too_much_of(
    ctx: &Ctx,
    (user, settings): (&User, &Settings),
    request: &RunRequest,
    dir: &str,
) -> Result<Option<String>, Error> {
    let spec = &request.spec;
    let is_copied = spec.execution.copying != Copying::Unignored
        && spec.staged.is_none()
        && spec.execution.workplace.is_none()
        && !code_dir::is_home(ctx, spec);
    if request.copies_all || !is_copied {
        return Ok(None);
    }
    let below = spec.code.as_ref().and_then(|code| code.below.as_deref());
    let found = stage::measure(ctx, user, (Path::new(dir), below), &spec.execution)?;
    let fits = found.bytes <= u64::from(settings.copy_limit) * 1_000_000
        && found.files <= u64::from(settings.copy_files);
    Ok((!fits)
        .then(|| format!("the code of {} is {}", code_dir::shown(ctx, dir), found.in_words())))
}

/// Refuses to copy more than the settings let pass without a question.
pub(super) fn is_small_enough(
    ctx: &Ctx,
    of: (&User, &Settings),
    request: &RunRequest,
    dir: &str,
) -> Result<(), Error> {
    match too_much_of(ctx, of, request, dir)? {
        None => Ok(()),
        Some(what) => Err(Error::refused(format!("{what}, and is copied for each job")).hint(
            "name what is no code in .tpuignore; or run it where it lies: --in-place; or copy all of it: -y",
        )),
    }
}
