//! What the jobset of a user says, as far as it can be read.

use tpu_core::model::data::Data;
use tpu_core::model::ids::UserName;
use tpu_core::text::escape;
use tpu_jobfile::cloudmesh::CloudmeshFile;
use tpu_ops::front::cloudmesh::translate::known;
use tpu_ops::front::cloudmesh::{self, jobset};
use tpu_ops::{Ctx, Error};

/// The jobset of a user, if there is one that can be read.
pub(super) fn jobset_of(
    ctx: &Ctx,
    user: Option<&UserName>,
) -> Result<Option<CloudmeshFile>, Error> {
    let Some(path) = jobset::current(ctx, user)? else { return Ok(None) };
    match cloudmesh::read(ctx, &path) {
        Ok(file) => Ok(Some(file)),
        Err(error) => {
            ctx.warn([unread(&error)]);
            Ok(None)
        }
    }
}

/// The hosts of a jobset that are hosts here, among which its scheduler chooses.
pub(super) fn hosts_of(data: &Data, file: Option<&CloudmeshFile>) -> Vec<String> {
    let all = file.iter().flat_map(|file| &file.hosts);
    let here =
        all.filter_map(|host| known(data, &host.name).or_else(|| known(data, &host.address)));
    here.map(|target| target.name.as_str().to_owned()).collect()
}

/// What is said beside what is known here, where the jobset cannot be read.
pub(super) fn unread(error: &Error) -> String {
    escape(&format!("of the jobset nothing can be said: {}", error.message)).into_owned()
}
