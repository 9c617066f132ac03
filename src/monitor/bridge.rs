//! The [`Backend`] over the use cases: the one place where the screen meets the rest of the program.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::backend::Backend;
use super::message::{Problem, Scope};
use crate::model::ids::{JobId, UserName};
use crate::model::job::Succession;
use crate::model::time::Timestamp;
use crate::model::view::Snapshot;
use crate::ops::resume::{self, AgainRequest};
use crate::ops::{Ctx, Error, attach, clean, kill, panes, pulse, rules, snapshot};
use crate::sys::proc::{self, Spawn};

/// The use cases, as the screen asks for them.
pub struct Bridge {
    ctx: Ctx,
    memory: Mutex<snapshot::Memory>,
}

impl Bridge {
    /// Takes the effects over; what was read of panes is remembered from look to look.
    pub fn new(ctx: Ctx) -> Self {
        Self { ctx, memory: Mutex::new(snapshot::Memory::default()) }
    }

    /// The effects, for whoever has to clean up after the screen.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn again(&self, job: &JobId, how: Succession) -> Result<String, Problem> {
        let request = AgainRequest { job: job.clone(), how, target: None, force: false };
        let again = resume::again(&self.ctx, &request)?;
        let mut toast = format!("{job} goes on in window {}", again.launched.job.window);
        for warning in again.warnings {
            toast += &format!("; {warning}");
        }
        Ok(toast)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self { message: error.message, hint: error.hint }
    }
}

impl Backend for Bridge {
    fn now(&self) -> Timestamp {
        self.ctx.clock.now()
    }

    fn monotonic(&self) -> Duration {
        self.ctx.clock.monotonic()
    }

    fn pulse(&self, _scope: &Scope) -> Result<u64, Problem> {
        Ok(pulse::all(&self.ctx))
    }

    fn snapshot(&self, scope: &Scope) -> Result<Snapshot, Problem> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(snapshot::look(&self.ctx, &mut memory, scope.user.as_ref())?)
    }

    fn pane(
        &self,
        job: &JobId,
        lines: Option<u32>,
        colours: bool,
    ) -> Result<Option<Vec<u8>>, Problem> {
        Ok(panes::read(&self.ctx, job, lines, colours)?)
    }

    fn resume(&self, job: &JobId) -> Result<String, Problem> {
        self.again(job, Succession::Resume)
    }

    fn rerun(&self, job: &JobId) -> Result<String, Problem> {
        self.again(job, Succession::Rerun)
    }

    fn kill(&self, jobs: &[JobId]) -> Result<String, Problem> {
        let mut killed = Vec::new();
        let mut problems = Vec::new();
        for (job, result) in kill::kill(&self.ctx, jobs) {
            match result {
                Ok(_) => killed.push(job.to_string()),
                Err(error) => problems.push(error),
            }
        }
        match Error::all(problems) {
            None => Ok(format!("killed {}", killed.join(", "))),
            Some(error) => Err(error.into()),
        }
    }

    fn clean(&self, user: &UserName) -> Result<String, Problem> {
        Ok(clean::clean(&self.ctx, user, false)?.summary())
    }

    fn tag(&self, job: &JobId, tag: &str) -> Result<String, Problem> {
        rules::add_tag(&self.ctx, job, tag)?;
        Ok(if tag.is_empty() {
            format!("{job} has no tag now")
        } else {
            format!("tagged {job}: {tag}")
        })
    }

    fn attach_argv(&self, job: &JobId) -> Result<Vec<String>, Problem> {
        Ok(attach::argv(&self.ctx, job)?)
    }

    fn foreground(&self, argv: &[String]) -> Result<(), Problem> {
        let Some((program, args)) = argv.split_first() else { return Ok(()) };
        let ended = proc::run_in_foreground(&Spawn::new(program).args(args));
        match ended.map_err(Error::from)? {
            status if status.success() => Ok(()),
            status => Err(Problem::new(
                format!("{program} ended with exit code {}", status.shell_code()),
                argv.join(" "),
            )),
        }
    }
}
