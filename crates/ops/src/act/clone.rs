//! The copy of code that lies in a repository: what git clones of it as a job is submitted.

use std::path::Path;
use std::time::Duration;

use tpu_core::model::data::User;
use tpu_core::model::ids::{JobNumber, LaunchToken};
use tpu_core::model::repository::Repository;
use tpu_core::model::spec::Staged;
use tpu_engine::runner::tree;
use tpu_system::sys::proc::{self, Spawn};

use crate::base::launch_paths::{directory_name, roots, stage_dir};
use crate::{Ctx, Error};

/// Whoever submits waits for it no longer.
const LONGEST: Duration = Duration::from_secs(600);

/// Clones the newest state of a branch. Under the name of the copy lies all of it or nothing. Nobody is asked for a password
/// or a passphrase: what git cannot read without one is refused.
pub fn cloned(ctx: &Ctx, user: &User, repository: &Repository) -> Result<Staged, Error> {
    let (now, token) = (ctx.clock.now(), ctx.random.hex(16));
    // It waits under a number that is not known yet, and others may run from it as well.
    let name = directory_name(JobNumber(0), &LaunchToken::new(token), now);
    let copy = stage_dir(&roots(ctx, user)?, &user.name, &name);
    let partial = format!("{copy}.partial");
    let disk = ctx.store.disk();
    let brought = clone(repository, &partial).and_then(|()| {
        // Without it nobody knows what a job wrote there.
        drop(tree::keep_list(Path::new(&partial)));
        disk.rename(Path::new(&partial), Path::new(&copy)).map_err(|e| {
            Error::state(format!("cannot name the copy of {repository}: {copy}: {e}"))
                .hint("check free space and permissions there")
        })
    });
    if brought.is_err() {
        drop(disk.remove_tree(Path::new(&partial)));
    }
    brought.map(|()| Staged { from: copy.clone(), copy })
}

fn clone(repository: &Repository, into: &str) -> Result<(), Error> {
    let branch = repository.branch.iter().flat_map(|branch| ["--branch", branch]);
    // What git and ssh would ask at the terminal (`gitcredentials`, `ssh(1)`: SSH_ASKPASS_REQUIRE) they do not get.
    let git = Spawn::new("git")
        .args(["clone", "--quiet", "--depth", "1", "--no-tags"])
        .args(branch)
        .args(["--", &url(repository), into])
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "false")
        .env("SSH_ASKPASS", "false")
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env("LC_ALL", "C")
        .timeout(LONGEST)
        .own_group();
    let failed = |why: &str| {
        let first = why.lines().find(|line| line.starts_with("fatal:")).or(why.lines().last());
        Error::unreachable(format!("cannot clone {repository}: {}", first.unwrap_or_default()))
            .hint("see whether `git ls-remote` reads it without a question")
    };
    match proc::run(&git) {
        Err(error) => Err(failed(&error.to_string())),
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(failed(&done.complaint())),
    }
}

/// A path as a URL: of a path git makes links and heeds no `--depth` (git-clone(1), `--local`).
fn url(repository: &Repository) -> String {
    let url = &repository.url;
    if url.starts_with('/') { format!("file://{}", url.replace('%', "%25")) } else { url.clone() }
}
