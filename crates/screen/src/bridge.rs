//! The [`Backend`] over the use cases: the one place where the screen meets the rest of the program.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::acts;
use super::backend::{Backend, CliFunctions, CommandRequest};
use super::message::{
    Act, Answer, Ask, Choices, Did, Door, Problem, Proposal, Scope, command_line,
};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::Snapshot;
use tpu_ops::act::board::rooms;
use tpu_ops::act::hosts::figures::{self, Whom};
use tpu_ops::act::{attach, remembered};
use tpu_ops::front::precedent;
use tpu_ops::observe::stats::{self, StatsMemory, StatsRequest};
use tpu_ops::observe::{curves, journal, logs, panes, snapshot, wake};
use tpu_ops::waiting::preview;
use tpu_ops::waiting::queue::{
    self, edit,
    shown::{self, WaitingMembers},
};
use tpu_ops::{Ctx, Error};
use tpu_system::sys::proc::{self, Spawn};

/// Events that the screen shows.
const EVENTS: usize = 1_000;
/// So much of a log file is shown when the window is gone (bytes).
const LOG_BYTES: u64 = 4 << 20;
/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// The use cases, as the screen asks for them.
pub struct Bridge {
    ctx: Ctx,
    /// What `tpu` was told before the command, for the commands that the screen runs.
    flags: Vec<String>,
    /// What the command line lends.
    cli: CliFunctions,
    /// Whose jobs are on the screen: a command that names no user is about theirs.
    user: Mutex<Option<UserName>>,
    memory: Mutex<snapshot::LookMemory>,
    /// The plan looks at everybody's jobs, also while the list shows one user's.
    plan_memory: Mutex<snapshot::LookMemory>,
    wake: Mutex<wake::Wake>,
    /// What was read of logs.
    curves: Mutex<curves::CurveMemory>,
    /// What ran, as it was last read.
    past: Mutex<StatsMemory>,
    /// The pane that was last read.
    near: Mutex<Option<panes::Known>>,
    /// Says the line above the bottom line, where somebody has one.
    caption: Option<Captioner>,
}

/// Says what the line above the bottom line says ([`Backend::caption`]).
pub type Captioner = Box<dyn Fn() -> Vec<String> + Send + Sync>;

impl Bridge {
    /// Takes the effects over; what was read of panes is remembered from look to look. `flags` are the
    /// global flags that commands of the screen are to have beside `--data` and `--tmux-socket`.
    pub fn new(ctx: Ctx, flags: Vec<String>, cli: CliFunctions) -> Self {
        Self {
            ctx,
            flags,
            cli,
            user: Mutex::new(None),
            memory: Mutex::new(snapshot::LookMemory::default()),
            plan_memory: Mutex::default(),
            wake: Mutex::default(),
            curves: Mutex::default(),
            past: Mutex::default(),
            near: Mutex::default(),
            caption: None,
        }
    }

    /// The same with a line above the bottom line.
    #[must_use]
    pub fn captioned(self, caption: Captioner) -> Self {
        Self { caption: Some(caption), ..self }
    }

    /// The global flags with which a command works on the same data file and tmux server as this screen.
    fn flags(&self) -> Vec<String> {
        let mut flags =
            vec!["--data".to_owned(), self.ctx.store.paths().data().display().to_string()];
        let socket = self.ctx.tmux_socket.iter();
        flags.extend(socket.flat_map(|name| ["--tmux-socket".to_owned(), name.clone()]));
        flags.extend(self.flags.iter().cloned());
        flags
    }

    /// Runs a typed command; most that say nothing have just done what they were told.
    fn obey(&self, words: &[String], is_confirmed: bool) -> Result<String, Problem> {
        let said = self.run(words, is_confirmed)?;
        Ok(if said.trim().is_empty() { format!("done: {}", command_line(words)) } else { said })
    }

    /// Runs a command; returns what it says.
    fn run(&self, words: &[String], is_confirmed: bool) -> Result<String, Problem> {
        let mut flags = self.flags();
        flags.extend(is_confirmed.then(|| "--yes".to_owned()));
        let request = CommandRequest { flags, words: words.to_vec(), user: self.user() };
        (self.cli.run)(&self.ctx, &request)
    }

    /// Whose jobs are on the screen, if they are one user's.
    fn user(&self) -> Option<UserName> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

    fn wake_mark(&self, _scope: &Scope) -> Result<u64, Problem> {
        Ok(self.wake.lock().unwrap_or_else(PoisonError::into_inner).all(&self.ctx))
    }

    fn snapshot(&self, scope: &Scope) -> Result<Snapshot, Problem> {
        self.user
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&scope.whose.only().cloned());
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        // What cannot be understood is said by the command that set it, and by `doctor`.
        drop(self.ctx.refresh_settings());
        Ok(shown::look(&self.ctx, &mut memory, &scope.whose, WaitingMembers::Folded)?)
    }

    fn caption(&self) -> Vec<String> {
        self.caption.as_ref().map(|says| says()).unwrap_or_default()
    }

    fn pane(
        &self,
        job: &JobId,
        lines: Option<u32>,
        colours: bool,
    ) -> Result<Option<Vec<u8>>, Problem> {
        // Not held while tmux is asked: a reader that waits must not keep another one waiting.
        let mut near = self.near.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let pane = panes::read_again(&self.ctx, job, (lines, colours), &mut near)?;
        *self.near.lock().unwrap_or_else(PoisonError::into_inner) = near;
        if pane.is_some() || lines.is_some() {
            return Ok(pane);
        }
        // All of it, and the window is gone: the log file may still have it.
        Ok(self.ctx.data()?.job(job).and_then(|job| logs::last_bytes(&self.ctx, job, LOG_BYTES)))
    }

    fn ask(&self, ask: &Ask) -> Result<Answer, Problem> {
        Ok(match ask {
            Ask::Targets => Answer::Targets(rooms::look(&self.ctx)?),
            Ask::Figures => {
                // What could not be asked or kept is as old as it says; the next round may have better luck.
                drop(figures::round(&self.ctx, Whom::Everyone));
                Answer::Figures(figures::last(&self.ctx, &*self.ctx.data()?))
            }
            Ask::Queue => Answer::Queue(queue::outlooks(&self.ctx)?),
            Ask::Events => Answer::Events(journal::newest(&self.ctx, None, None, EVENTS)?),
            Ask::Plan => {
                let mut memory = self.plan_memory.lock().unwrap_or_else(PoisonError::into_inner);
                let age = snapshot::ANSWER_SERVES;
                Answer::Plan(preview::plan_with_waiting(&self.ctx, &mut memory, age)?)
            }
            Ask::Usage(question) => {
                let days = question.reach.days();
                let since = days.map(|days| self.ctx.clock.now().plus_seconds(-days * DAY_S));
                let (whose, by) = (question.whose.clone(), question.by);
                let request = StatsRequest { whose, by, since, until: None };
                let mut memory = self.past.lock().unwrap_or_else(PoisonError::into_inner);
                let report = stats::report_from(&self.ctx, &mut memory, &request, &question.zone)?;
                Answer::Usage(Box::new(report))
            }
            Ask::Curves(job) => {
                let mut memory = self.curves.lock().unwrap_or_else(PoisonError::into_inner);
                Answer::Curves(curves::of(&self.ctx, &mut memory, job)?)
            }
            Ask::Choices(user) => Answer::Choices(self.choices(user)?),
            Ask::Precedent(job) => Answer::Precedent(Box::new(precedent::of(&self.ctx, job)?)),
            Ask::FileOfForm(user, file) => {
                let said = precedent::of_file(&self.ctx, user, file)?;
                Answer::Precedent(Box::new(said))
            }
            Ask::Remembered(user) => {
                Answer::Remembered(remembered::lines(&self.ctx, user.as_ref())?)
            }
            Ask::Explain(job) => Answer::Text((self.cli.explain)(&self.ctx, job)?),
            Ask::Would(act) => Answer::Text(acts::would(&self.ctx, act)?),
            Ask::Say(words) => Answer::Text(self.run(words, false)?),
        })
    }

    fn remember(&self, user: Option<&UserName>, line: &str) -> Result<(), Problem> {
        Ok(remembered::remember(&self.ctx, user, line)?)
    }

    fn act(&self, act: &Act) -> Result<Did, Problem> {
        match act {
            Act::Command(words) => Ok(self.obey(words, false)?.into()),
            Act::Confirmed(words) => Ok(self.obey(words, true)?.into()),
            by_key => acts::carry_out(&self.ctx, &self.flags, by_key),
        }
    }

    fn door(&self, door: &Door) -> Result<Vec<String>, Problem> {
        match door {
            Door::Window(job) => Ok(attach::argv(&self.ctx, job)?),
            Door::Command(words) => {
                // What it prints last would vanish with the screen's return.
                let wait = "\"$@\"; code=$?; printf '\\n[Enter] goes back to the monitor '; read -r _; exit $code";
                let mut argv = vec!["env".to_owned()];
                let directory = self.ctx.env.var("TMUX_TMPDIR");
                argv.extend(directory.map(|path| format!("TMUX_TMPDIR={path}")));
                argv.extend(self.user().map(|user| format!("TPU_USER={user}")));
                argv.extend(["sh", "-c", wait, "tpu"].map(str::to_owned));
                argv.push(self.ctx.tpu.display().to_string());
                argv.extend(self.flags());
                argv.extend(words.iter().cloned());
                Ok(argv)
            }
            Door::Pager(job) => {
                let text = self.pane(job, None, false)?.ok_or_else(|| {
                    Problem::new(
                        format!("{job} has no output that can be read"),
                        "nothing of it is left to be read",
                    )
                })?;
                let elsewhere =
                    |problem: String| Problem::new(problem, "TMPDIR names another place");
                let unwritten = |e| elsewhere(format!("cannot write a file for the pager: {e}"));
                let mut file = tempfile::Builder::new()
                    .prefix("tpu-log-")
                    .suffix(".log")
                    .tempfile()
                    .map_err(unwritten)?;
                file.write_all(&text).and_then(|()| file.flush()).map_err(unwritten)?;
                let path = file
                    .into_temp_path()
                    .keep()
                    .map_err(|e| elsewhere(format!("cannot keep the file for the pager: {e}")))?;
                let of = |name: &str| self.ctx.env.non_empty(name).map(str::to_owned);
                let pager =
                    of("PAGER").or_else(|| of("EDITOR")).unwrap_or_else(|| "less".to_owned());
                // The shell reads the pager's own words, as in PAGER="less -R"; the file is gone afterwards.
                let script = format!("{pager} \"$1\"; code=$?; rm -f \"$1\"; exit $code");
                Ok(["sh", "-c", &script, "tpu", &path.display().to_string()]
                    .map(str::to_owned)
                    .to_vec())
            }
        }
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

    fn to_tmux_buffer(&self, text: &str) -> Result<(), Problem> {
        if self.ctx.env.non_empty("TMUX").is_none() {
            return Ok(());
        }
        // The person's own tmux, which $TMUX names; it need not be the one of the jobs.
        let mut spawn = Spawn::new("tmux")
            .args(["load-buffer", "-"])
            .stdin(text.as_bytes())
            .timeout(Duration::from_secs(5))
            .env_clear();
        for (name, value) in &self.ctx.env.vars {
            spawn = spawn.env(name, value);
        }
        proc::run(&spawn).map_err(Error::from)?;
        Ok(())
    }
}

impl Bridge {
    /// What a new run of a user may be made of. Targets are known to the screen already.
    fn choices(&self, user: &UserName) -> Result<Choices, Problem> {
        let data = self.ctx.data()?;
        let user = tpu_ops::base::ctx::user_of(&data, user)?;
        let proposal = |value: String, note: &str| Proposal { value, note: note.to_owned() };
        let dirs = user.working_dir.iter().map(|(slot, path)| proposal(slot.to_string(), path));
        let aliases = user.config_aliases.iter().map(|(alias, full)| proposal(alias.clone(), full));
        let queues = data.queues().all();
        let queues =
            queues.iter().map(|queue| proposal(queue.name.to_string(), &edit::in_words(queue)));
        Ok(Choices {
            dirs: dirs.collect(),
            aliases: aliases.collect(),
            queues: queues.collect(),
            ..Choices::default()
        })
    }
}
