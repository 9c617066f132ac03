//! Recipes on the workers of a target: each worker on its own, step by step, until one of its steps fails.
//! What is so already is left alone. One log for each worker and step.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

use tpu_core::model::recipe::{CopyOf, RecipeError, Recipes, SecretSource, Step};
use tpu_core::model::target::Target;
use tpu_system::remote::{Ask, End, Remote, Reply, Upload, Worker};

use tpu_core::text::escape;
use tpu_system::sys::files;
use tpu_system::sys::proc::Feed;

use crate::observe::doors;
use crate::observe::fleet::AskedOnce;
use crate::{Ctx, Error};

/// The recipes of the program itself.
const BUILT_IN: &str = include_str!("../../../../assets/recipes.toml");

/// A recipe that is to be carried out.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its name.
    pub recipe: String,
    /// Whose workers.
    pub target: Target,
    /// Also where it is so already.
    pub force: bool,
}

/// What came of one step on one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// It is so already, or was looked at and is well.
    Done,
    /// It is so now.
    SetUp,
    /// It is not so, and could not be brought about: why.
    Failed(String),
    /// The worker cannot be reached: nobody knows.
    Lost(String),
}

impl StepEnd {
    /// Why it is not well, if it is not.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Failed(why) | Self::Lost(why) => Some(why),
            Self::Done | Self::SetUp => None,
        }
    }
}

/// One step on one worker.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The worker.
    pub worker: u32,
    /// The step's name.
    pub step: String,
    /// What came of it.
    pub result: StepEnd,
    /// Where its words are kept.
    pub log: PathBuf,
    /// What it said, if the recipe wants it shown.
    pub shown: Vec<String>,
}

/// The lab's recipes before those of the program. A file with mistakes is an error with each of them.
pub fn read(ctx: &Ctx) -> Result<Recipes, Error> {
    let built_in = Recipes::parse(BUILT_IN, "built in").map_err(|mistakes| mistaken(&mistakes))?;
    let named = ctx.provider_settings().recipes.map(|file| ours(ctx, &file));
    let beside = ctx.patterns.as_ref().and_then(|path| Some(path.parent()?.join("recipes.toml")));
    let Some(path) = named.clone().or(beside) else { return Ok(built_in) };
    let bytes = match files::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if named.is_none() && e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(built_in);
        }
        Err(e) => {
            return Err(Error::state(format!(
                "cannot read the recipes in {}: {e}",
                path.display()
            ))
            .hint("`tpu get-settings --origin` says who names that file"));
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let own = Recipes::parse(&text, &path.display().to_string());
    Ok(own.map_err(|mistakes| mistaken(&mistakes))?.over(built_in))
}

fn mistaken(mistakes: &[RecipeError]) -> Error {
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    Error::usage(lines.join("\n")).hint("nothing was done; correct the file and repeat the command")
}

/// A path of this machine, `~/` being our home.
fn ours(ctx: &Ctx, path: &str) -> PathBuf {
    let home = ctx.env.non_empty("HOME");
    match (path.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => Path::new(home).join(below),
        _ => ctx.env.cwd.join(path),
    }
}

/// A step, and what it takes from this machine or why that is not there.
struct Ready {
    step: Step,
    taken: Result<Taken, String>,
}

/// What a set-up takes from this machine.
struct Taken {
    uploads: Vec<Upload>,
    input: Option<Vec<u8>>,
}

/// The steps of a recipe for its target, in order. Fails when no recipe of that name is for it.
pub fn steps(ctx: &Ctx, request: &Request) -> Result<Vec<Step>, Error> {
    let recipes = read(ctx)?;
    let steps = recipes.steps(&request.recipe, &request.target).unwrap_or_default();
    if !steps.is_empty() {
        return Ok(steps);
    }
    let names: Vec<&str> = recipes.names().into_iter().map(|(name, _)| name).collect();
    let mut why = recipes.misfits(&request.recipe, &request.target);
    if why.is_empty() {
        why.push("it has no steps".to_owned());
    }
    Err(Error::refused(format!(
        "no recipe '{}' fits {}: {}",
        request.recipe,
        request.target.name,
        why.join("; ")
    ))
    .hint(format!(
        "there are {}; write one (tpu help solve; assets/example/recipes.toml is an example), or say what \
         the target is: tpu register {} --zone ZONE --type TYPE",
        names.join(", "),
        request.target.name
    )))
}

/// What came of a recipe, for people.
pub fn in_words(request: &Request, outcomes: &[Outcome]) -> String {
    let count = |wanted: fn(&StepEnd) -> bool| {
        outcomes.iter().filter(|outcome| wanted(&outcome.result)).count()
    };
    let mut text = String::new();
    for outcome in outcomes {
        for line in &outcome.shown {
            text += &format!("[worker {}] {}\n", outcome.worker, escape(line));
        }
    }
    text + &format!(
        "{} on {}: {} well, {} set up, {} failed, {} lost.\n",
        request.recipe,
        request.target.name,
        count(|end| *end == StepEnd::Done),
        count(|end| *end == StepEnd::SetUp),
        count(|end| matches!(end, StepEnd::Failed(_))),
        count(|end| matches!(end, StepEnd::Lost(_))),
    )
}

impl Outcome {
    /// Whether its step is done on its worker.
    pub fn is_well(&self) -> bool {
        matches!(self.result, StepEnd::Done | StepEnd::SetUp)
    }
}

/// Carries a recipe out. `tell` hears of each step as it ends.
pub fn run(
    ctx: &Ctx,
    request: &Request,
    tell: &mut dyn FnMut(&Outcome),
) -> Result<Vec<Outcome>, Error> {
    let steps = steps(ctx, request)?;
    let data = ctx.data()?;
    let asked = AskedOnce::new(ctx, &data, &request.target.name);
    let workers = doors::workers(ctx, &asked)?;
    let door = doors::to(ctx, &asked)?;
    let logs = ctx.store.paths().recipe_logs(&request.target.name).join(&request.recipe);
    let ready = steps.into_iter().map(|step| prepare(ctx, step)).collect::<Vec<_>>();
    let mut all: Vec<Outcome> = Vec::new();
    let (say, heard) = channel();
    std::thread::scope(|scope| {
        for worker in &workers {
            let cook = Cook { remote: &*door.remote, worker, force: request.force, logs: &logs };
            let (ready, say) = (&ready, say.clone());
            scope.spawn(move || {
                for (number, step) in (1..).zip(ready) {
                    let outcome = cook.step(number, step);
                    let goes_on = outcome.is_well();
                    if say.send(outcome).is_err() || !goes_on {
                        return;
                    }
                }
            });
        }
        drop(say);
        for outcome in heard {
            tell(&outcome);
            all.push(outcome);
        }
    });
    // Each worker's steps are in order already.
    all.sort_by_key(|outcome| outcome.worker);
    Ok(all)
}

/// Takes what a step needs from this machine; what is missing matters only where it is set up.
fn prepare(ctx: &Ctx, step: Step) -> Ready {
    let taken = taken(ctx, &step).map(|(files, input)| {
        let upload = |(bytes, to, mode): OneFile| Upload { path: to.into(), mode, bytes };
        Taken { uploads: files.into_iter().map(upload).collect(), input }
    });
    Ready { step, taken }
}

/// What is in a file, its place on a worker, and its rights.
pub(super) type OneFile = (Vec<u8>, String, u32);

/// The files that a step copies, and its input; why one of them is not there.
pub(crate) fn taken(ctx: &Ctx, step: &Step) -> Result<(Vec<OneFile>, Option<Vec<u8>>), String> {
    let one = |file: &CopyOf| {
        let from = ours(ctx, &file.from);
        let bytes = files::read(&from).map_err(|e| format!("{}: {e}", from.display()))?;
        Ok((bytes, file.to.clone(), file.rights().unwrap_or(0o600)))
    };
    let all: Result<Vec<OneFile>, String> = step.files.iter().map(one).collect();
    let input = step.input.as_ref().map(|input| secret(ctx, input)).transpose();
    Ok((all?, input?))
}

/// The first that is there.
fn secret(ctx: &Ctx, from: &SecretSource) -> Result<Vec<u8>, String> {
    let mut looked = Vec::new();
    if let Some(name) = &from.env {
        if let Some(value) = ctx.env.non_empty(name) {
            return Ok(format!("{value}\n").into_bytes());
        }
        looked.push(format!("${name}"));
    }
    if let Some(file) = &from.file {
        let path = ours(ctx, file);
        match files::read(&path) {
            Ok(bytes) => return Ok(bytes),
            Err(e) => looked.push(format!("{}: {e}", path.display())),
        }
    }
    if let Some(key) = &from.data {
        let value = ctx.data().ok().map(|data| data.to_value()[key.as_str()].clone());
        if let Some(text) = value.as_ref().and_then(serde_json::Value::as_str) {
            return Ok(format!("{text}\n").into_bytes());
        }
        looked.push(format!("{key} in data.json"));
    }
    Err(format!("its input is not there ({})", looked.join(", ")))
}

/// Whoever carries a recipe out on one worker.
struct Cook<'a> {
    remote: &'a dyn Remote,
    worker: &'a Worker,
    force: bool,
    logs: &'a Path,
}

impl Cook<'_> {
    fn step(&self, number: u32, ready: &Ready) -> Outcome {
        let step = &ready.step;
        let file = format!("worker-{}.{number:02}-{}.log", self.worker.index, step.name);
        let mut log = Log::create(self.logs, &file);
        let result = self.bring_about(ready, &mut log);
        let shown = if step.show { std::mem::take(&mut log.shown) } else { Vec::new() };
        let result = match (result, log.failed) {
            (StepEnd::Done | StepEnd::SetUp, Some(why)) => StepEnd::Failed(why),
            (result, _) => result,
        };
        Outcome { worker: self.worker.index, step: step.name.clone(), result, log: log.path, shown }
    }

    fn bring_about(&self, ready: &Ready, log: &mut Log) -> StepEnd {
        let step = &ready.step;
        if let Some(check) = &step.check
            && !(self.force && step.setup.is_some())
        {
            match self.ask("check", check, (step.timeout_s, None), log) {
                End::Exit(0) => return StepEnd::Done,
                End::Exit(code) if step.setup.is_none() => {
                    return StepEnd::Failed(log.why("the check", code));
                }
                End::Exit(_) => {}
                End::Lost(why) => return StepEnd::Lost(why),
            }
        }
        let Some(setup) = &step.setup else { return StepEnd::Done };
        let taken = match &ready.taken {
            Ok(taken) => taken,
            Err(what) => return StepEnd::Failed(what.clone()),
        };
        for upload in &taken.uploads {
            let kept = self.remote.put(std::slice::from_ref(self.worker), upload);
            if let Some((_, Err(error))) = kept.into_iter().next() {
                return StepEnd::Lost(error.to_string());
            }
        }
        match self.ask("setup", setup, (step.timeout_s, taken.input.clone()), log) {
            End::Exit(0) => {}
            End::Exit(code) => return StepEnd::Failed(log.why("the set-up", code)),
            End::Lost(why) => return StepEnd::Lost(why),
        }
        let Some(check) = &step.check else { return StepEnd::SetUp };
        match self.ask("check", check, (step.timeout_s, None), log) {
            End::Exit(0) => StepEnd::SetUp,
            End::Exit(code) => StepEnd::Failed(log.why("set up, and the check still", code)),
            End::Lost(why) => StepEnd::Lost(why),
        }
    }

    /// Runs one command, for so many seconds at most, and keeps what it says.
    fn ask(
        &self,
        what: &str,
        command: &str,
        (seconds, input): (u32, Option<Vec<u8>>),
        log: &mut Log,
    ) -> End {
        log.begin(what, command);
        let quoted = shlex::try_quote(command).unwrap_or_default().into_owned();
        let command = format!("timeout -k 10 {seconds} bash -c {quoted}");
        let mut end = End::Lost("it said nothing".to_owned());
        let ask = Ask { command, input: input.map(Feed::from), ..Ask::default() };
        for (_, reply) in self.remote.ask(std::slice::from_ref(self.worker), &ask) {
            match reply {
                Reply::Out(line) => log.line(&line, true),
                Reply::Err(line) => log.line(&line, false),
                Reply::End(how) => end = how,
            }
        }
        log.line(format!("-- {end:?}\n").as_bytes(), false);
        end
    }
}

/// The log of a step.
struct Log {
    path: PathBuf,
    file: Option<std::fs::File>,
    /// Why it cannot be kept.
    failed: Option<String>,
    shown: Vec<String>,
    last: String,
}

impl Log {
    /// Lines that are kept for showing.
    const SHOWN: usize = 200;

    fn create(dir: &Path, name: &str) -> Self {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        let path = dir.join(name);
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        let opened = made.and_then(|()| {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600).open(&path)
        });
        let failed = opened.as_ref().err().map(|e| format!("cannot keep {}: {e}", path.display()));
        Self { path, file: opened.ok(), failed, shown: Vec::new(), last: String::new() }
    }

    fn begin(&mut self, what: &str, command: &str) {
        self.last.clear();
        self.shown.clear();
        self.write(format!("$ {what}: {}\n", command.trim()).as_bytes());
    }

    fn line(&mut self, bytes: &[u8], is_shown: bool) {
        self.write(bytes);
        let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
        if text.is_empty() || text.starts_with("-- ") {
            return;
        }
        if is_shown && self.shown.len() < Self::SHOWN {
            self.shown.push(text.clone());
        }
        self.last = text;
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(file) = &mut self.file
            && let Err(e) = file.write_all(bytes)
        {
            self.failed.get_or_insert(format!("cannot keep {}: {e}", self.path.display()));
        }
    }

    /// Why something failed, in its own last words.
    fn why(&self, what: &str, code: i32) -> String {
        let how = match code {
            124 | 137 => "took too long".to_owned(),
            code => format!("ended with {code}"),
        };
        match self.last.as_str() {
            "" => format!("{what} {how}"),
            last => format!("{what} {how}: {last}"),
        }
    }
}
