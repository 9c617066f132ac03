//! Submitting once: a note of it is written before `sbatch` is run, and what it has said is written down behind.

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{EngineRun, Handle, Job};
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::TargetKind;
use tpu_engine::runner::{Attempt, RunError, Submitted};
use tpu_system::effects::Effects;
use tpu_system::sys::clock::Clock;

use super::WORD;
use super::array;
use super::ask::{self, TimeLeft};
use super::client::{ProgramAnswer, ProgramCall};
use super::controller::Controller;
use super::job_id::{JobRef, SlurmId, kept};
use super::laid;
use super::limits;
use super::note::{self, SUBMITTING, SubmissionNote};
use super::options::{self, OptionProblem};
use super::script;
use super::settle::{self, Presence};

/// What `sbatch` 22.05 says of a job that it has not taken, and never will as it is. Whatever else it says may be the
/// answer to a job that it has taken.
const REFUSALS: &[&str] = &[
    "access/permission denied",
    "batch job submission failed: duplicate job id",
    "batch script contains dos line breaks",
    "batch script is empty",
    "does not look like a batch script",
    "invalid --",
    "invalid account",
    "invalid burst buffer",
    "invalid cluster",
    "invalid count specification",
    "invalid dependency",
    "invalid directive",
    "invalid feature specification",
    "invalid generic resource",
    "invalid job array specification",
    "invalid license specification",
    "invalid mem",
    "invalid node name specified",
    "invalid numeric value",
    "invalid partition",
    "invalid qos",
    "invalid reservation",
    "invalid time specification",
    "invalid time limit specification",
    "invalid trackable resource",
    "invalid wckey",
    "is not a valid",
    "job dependency problem",
    "job violates accounting/qos policy",
    "memory specification can not be satisfied",
    "memory required by task is not available",
    "more processors requested than permitted",
    "node count specification invalid",
    "not allowed to use this partition",
    "requested node configuration is not available",
    "requested partition configuration not available",
    "requested reservation is invalid",
    "requested time limit is invalid",
    "unrecognized option",
    "user's group not permitted to use this partition",
];

/// Says of each attempt what came of it.
type Teller<'s> = &'s mut dyn FnMut(usize, Result<Submitted, RunError>);

/// What is submitted by one call: one attempt, or the members of a group.
pub(super) struct Batch<'b, 'a> {
    /// The name at Slurm.
    name: String,
    attempts: &'b [Attempt<'a>],
    args: Vec<String>,
    pub(super) script: String,
}

impl<'b, 'a> Batch<'b, 'a> {
    /// Makes ready what is submitted for some attempts on a target.
    pub(super) fn new(
        attempts: &'b [Attempt<'a>],
        target: &KindOptions,
        controller: &Controller<'_>,
    ) -> Result<Self, RunError> {
        let none = || RunError::failed("there is nothing to submit", "report this");
        let first = attempts.first().ok_or_else(none)?.job;
        let name = JobRef::of(first).name;
        let args = arguments(attempts, first, (&name, target))
            .map_err(|OptionProblem { what, hint }| not_taken(what, hint))?;
        // Members of a group begin together, and none of them goes on for another.
        let is_alone = attempts.len() == 1;
        let lost = if is_alone { lost_before(controller.effects, first) } else { Vec::new() };
        let script = script::of(attempts, controller.client.is_here(), &lost);
        Ok(Self { name, attempts, args, script })
    }

    /// The command and what it reads, for people.
    pub(super) fn in_words(&self) -> String {
        let words: Vec<String> = self.args.iter().map(|arg| script::quoted(arg.as_ref())).collect();
        format!("# sbatch {}\n{}", words.join(" "), self.script)
    }
}

/// The log directories of the attempts of its lineage that were lost, the newest first: nobody who has seen them end has
/// said so.
fn lost_before(effects: &Effects, job: &Job) -> Vec<String> {
    let Ok(data) = effects.data() else { return Vec::new() };
    let father = |job: &Job| data.job(&JobId::new(job.user.clone(), job.father?));
    let is_lost = |job: &&Job| {
        let is_ours = job.engine.as_ref().is_some_and(|run| run.kind.as_str() == WORD);
        is_ours && job.status.error() == Some(ErrorKind::Lost)
    };
    // However a file came to be so: a lineage does not end in a circle.
    let attempts = std::iter::successors(father(job), |job| father(job)).take(data.jobs().count());
    attempts.filter(is_lost).filter_map(|job| job.log_dir.clone()).collect()
}

/// What Slurm, or we in its place, do not take as it is asked for.
fn not_taken(what: String, hint: String) -> RunError {
    RunError::usage(what, hint)
}

/// The arguments of `sbatch`.
fn arguments(
    attempts: &[Attempt<'_>],
    first: &Job,
    (name, target): (&str, &KindOptions),
) -> Result<Vec<String>, OptionProblem> {
    let mut of_job = first.spec.as_ref().map(|spec| spec.options.clone()).unwrap_or_default();
    if let Some(minutes) = attempts.first().and_then(limits::minutes)
        && !options::says_time(&of_job)
    {
        of_job.say("time", minutes.to_string());
    }
    let log = first.log_dir.as_deref().unwrap_or("/tmp");
    // A letter behind % stands for something.
    let output = format!("{log}/output.log").replace('%', "%%");
    let mut args: Vec<String> = vec![
        "--parsable".to_owned(),
        format!("--job-name={name}"),
        format!("--comment=tpu {} {name}", first.id()),
        "--no-requeue".to_owned(),
        "--ignore-pbs".to_owned(),
        "--chdir=/".to_owned(),
        "--input=/dev/null".to_owned(),
        "--open-mode=append".to_owned(),
    ];
    if attempts.len() > 1 {
        let indexes: Vec<u32> =
            attempts.iter().filter_map(|one| Some(one.job.member()?.index)).collect();
        let at_once = attempts.first().and_then(|first| first.at_once);
        let array = array::written(&indexes, at_once);
        // Each task opens its own log.
        args.extend([format!("--array={array}"), "--output=/dev/null".to_owned()]);
    } else {
        args.push(format!("--output={output}"));
    }
    let avoid = attempts.first().map(|first| first.avoid.as_slice()).unwrap_or_default();
    args.extend(options::options(target, &of_job, avoid)?);
    Ok(args)
}

/// Submits attempts, those of one group by one call.
pub(super) fn submit_all(
    controller: &Controller<'_>,
    target: &KindOptions,
    attempts: &[Attempt<'_>],
    said: Teller<'_>,
) {
    let mut begin = 0;
    while let Some(rest) = attempts.get(begin..).filter(|rest| !rest.is_empty()) {
        let count = rest.iter().take_while(|one| are_alike(rest.first(), one)).count().max(1);
        let (group, _) = rest.split_at(count);
        let base = submit(controller, target, group);
        for (place, attempt) in group.iter().enumerate() {
            let submitted = match &base {
                Ok(base) => Ok(submitted(controller, attempt.job, *base, count > 1)),
                Err(error) => Err(again(error)),
            };
            said(begin + place, submitted);
        }
        begin += count;
    }
}

/// Whether two attempts are members of one group that differ in nothing else.
fn are_alike(first: Option<&Attempt<'_>>, other: &Attempt<'_>) -> bool {
    let Some(first) = first else { return false };
    let group = |one: &Attempt<'_>| one.job.member().map(|member| member.group);
    let options = |one: &Attempt<'_>| one.job.spec.as_ref().map(|spec| spec.options.clone());
    group(first).is_some()
        && group(first) == group(other)
        && JobRef::of(first.job).name == JobRef::of(other.job).name
        && (&first.words, &first.env, &first.job.tpu) == (&other.words, &other.env, &other.job.tpu)
        && options(first) == options(other)
}

/// The same error for another member.
pub(super) fn again(error: &RunError) -> RunError {
    let hint = |hint: &Option<String>| hint.clone().unwrap_or_default();
    match error {
        RunError::Unreachable(said) => RunError::unreachable(&said.message, hint(&said.hint)),
        RunError::Usage(said) => RunError::usage(&said.message, hint(&said.hint)),
        RunError::Refused(said) => RunError::refused(&said.message, hint(&said.hint)),
        RunError::State(said) => RunError::state(&said.message, hint(&said.hint)),
        RunError::NotFound(said) => RunError::not_found(&said.message, hint(&said.hint)),
        RunError::Failed(said) => RunError::failed(&said.message, hint(&said.hint)),
        RunError::Login(said) => RunError::login(&said.message, hint(&said.hint)),
        RunError::Tmux(_) | RunError::Store(_) => {
            RunError::failed(error.to_string(), "look at `tpu doctor`")
        }
    }
}

fn submitted(
    controller: &Controller<'_>,
    job: &Job,
    base: Option<u64>,
    is_array: bool,
) -> Submitted {
    let JobRef { name, task, .. } = JobRef::of(job);
    let id = base.map(|base| SlurmId { base, task: task.filter(|_| is_array) });
    let run = EngineRun {
        kind: TargetKind::new(WORD),
        cluster: controller.cluster.to_string(),
        id: Some(kept(&name, id)),
        name: None,
    };
    let token = job.launch.as_ref().map(|launch| launch.token.clone());
    let token = token.unwrap_or_else(|| "".into());
    Submitted { handle: Handle::Engine { run, token }, pane: None }
}

/// Submits one batch, or finds out that it was submitted before. The number that Slurm gave it, as far as it is known.
fn submit(
    controller: &Controller<'_>,
    target: &KindOptions,
    attempts: &[Attempt<'_>],
) -> Result<Option<u64>, RunError> {
    let batch = Batch::new(attempts, target, controller)?;
    if let Earlier::Submitted(known) = submitted_before(controller, &batch)? {
        return Ok(known);
    }
    let effects = controller.effects;
    let config = controller.config(ask::PATIENCE).map_err(|why| controller.silent(&why))?;
    note::keep_script(effects, &batch.name, &batch.script)?;
    let mut note = SubmissionNote::begun(effects, &config, controller.client.is_here());
    note::write(effects, &batch.name, &note)?;
    if !stands(controller, attempts)? {
        note::all(effects).remove(&batch.name);
        let what = "it was given up, or killed, before it was submitted";
        return Err(RunError::failed(what, "nothing was started; `tpu check` shows its record"));
    }
    let discard = || laid::discard(controller, attempts.iter().map(|attempt| attempt.job));
    if let Err(error) = laid::lay(controller, attempts) {
        note::all(effects).remove(&batch.name);
        discard();
        return Err(error);
    }
    let call = ProgramCall {
        stdin: batch.script.clone().into_bytes(),
        dies_with_us: true,
        ..ProgramCall::new("sbatch", SUBMITTING).args(batch.args.iter().cloned())
    };
    let answer = controller.client.run(&call);
    let why = match answer {
        Ok(ProgramAnswer { code: 0, stdout, .. }) if number(&stdout).is_some() => {
            note.id = number(&stdout);
            note::add(effects, &batch.name, &note);
            note::sweep(effects);
            return Ok(note.id);
        }
        Ok(answer) if answer.code != 0 && is_refusal(&answer) => {
            note::all(effects).remove(&batch.name);
            discard();
            let words = ask::complaint("sbatch", &answer);
            return Err(not_taken(
                format!("Slurm does not take it: {words}"),
                "change what is asked for: `tpu help run` lists the options, `sinfo` the partitions".to_owned(),
            ));
        }
        Ok(answer) => ask::complaint("sbatch", &answer),
        Err(silence) if ask::is_unstarted(&silence) => {
            note::all(effects).remove(&batch.name);
            discard();
            return Err(controller.silent(&silence.to_string()));
        }
        Err(super::client::Silence::Broken(why)) => {
            // It may be at work still.
            return found_at_once(controller, &batch, &why);
        }
        Err(silence) => silence.to_string(),
    };
    note.give_up(effects.clock.now());
    note::add(effects, &batch.name, &note);
    found_at_once(controller, &batch, &why)
}

/// Whether any of these launches still stands. From its note on nobody gives up what we are about to submit; who has
/// done so before may have brought its lineage back already, if we stood still for long enough. Who stands still after
/// this submits what finds on its node that it was given up, and runs nothing.
fn stands(controller: &Controller<'_>, attempts: &[Attempt<'_>]) -> Result<bool, RunError> {
    let data = controller.effects.data()?;
    let token = |job: &Job| job.launch.as_ref().map(|launch| launch.token.clone());
    let is_open = |attempt: &Attempt<'_>| {
        let known = data.job(&attempt.job.id()).filter(|job| token(job) == token(attempt.job));
        known.is_some_and(|job| job.status.is_live() && !job.is_being_killed())
    };
    Ok(attempts.iter().any(is_open))
}

/// An unclear answer is often one to a job that was taken.
fn found_at_once(
    controller: &Controller<'_>,
    batch: &Batch<'_, '_>,
    why: &str,
) -> Result<Option<u64>, RunError> {
    let job = batch.attempts.first().map(|attempt| JobRef::of(attempt.job));
    let table = controller.table(job.as_ref(), ask::LOOK);
    let base = table.ok().zip(job).and_then(|(table, job)| table.base(&job));
    base.map(Some).ok_or_else(|| controller.silent(why))
}

/// What is known of earlier submissions of a batch.
enum Earlier {
    /// There was none, for certain.
    Never,
    /// Slurm has it, or had it: under this number, where that is known.
    Submitted(Option<u64>),
}

/// Whether the batch was submitted by somebody before, who did not live to say so, or to hear it. What may still be on its way is waited for.
fn submitted_before(
    controller: &Controller<'_>,
    batch: &Batch<'_, '_>,
) -> Result<Earlier, RunError> {
    let effects = controller.effects;
    let clock: &dyn Clock = &*effects.clock;
    let Some(job) = batch.attempts.first().map(|attempt| attempt.job) else {
        return Ok(Earlier::Never);
    };
    loop {
        let note = note::read(effects, &batch.name).map_err(|e| {
            let what = format!("the note of its submission cannot be read: {e}");
            RunError::state(what, "`tpu check` shows what has become of it")
        })?;
        let Some(note) = note else { return Ok(Earlier::Never) };
        if note.id.is_some() {
            return Ok(Earlier::Submitted(note.id));
        }
        match settle::presence(controller, job, &note, TimeLeft::new(clock, ask::PATIENCE)) {
            Presence::There(base) => return Ok(Earlier::Submitted(Some(base))),
            Presence::Over => return Ok(Earlier::Submitted(None)),
            Presence::Absent => return Ok(Earlier::Never),
            Presence::Forgotten => {
                return Err(controller.silent("it may have had the job, and forgotten it since"));
            }
            Presence::Unknown(why) => return Err(controller.silent(&why)),
            Presence::OnItsWay(until) => {
                let left = until.seconds_since(clock.now()).clamp(1, 2);
                clock.sleep(std::time::Duration::from_millis(left * 250));
            }
        }
    }
}

/// The number in `1234` or `1234;cluster`.
fn number(stdout: &str) -> Option<u64> {
    let line = stdout.lines().last()?.trim();
    line.split(';').next()?.parse().ok()
}

/// Whether `sbatch` has said for certain that it takes no such job.
fn is_refusal(answer: &ProgramAnswer) -> bool {
    let said = answer.stderr.to_ascii_lowercase();
    // Nothing of ours is in those lines that are about a connection.
    let is_about_the_way =
        ["socket", "timed out", "unable to contact", "communication", "zero bytes"];
    !is_about_the_way.iter().any(|word| said.contains(word))
        && REFUSALS.iter().any(|refusal| said.contains(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(stderr: &str) -> ProgramAnswer {
        ProgramAnswer { code: 1, stderr: stderr.to_owned(), ..ProgramAnswer::default() }
    }

    #[test]
    fn only_what_is_known_to_be_a_refusal_is_one() {
        for refusal in [
            "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified",
            "sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification",
            "sbatch: error: Batch job submission failed: Requested node configuration is not available",
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "sbatch: unrecognized option '--nope=1'\nTry \"sbatch --help\" for more information",
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
        ] {
            assert!(is_refusal(&failed(refusal)), "{refusal}");
        }
        for open in [
            "",
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
            "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received",
            "sbatch: error: Batch job submission failed: Unexpected message received",
            "sbatch: error: Batch job submission failed: Something new",
        ] {
            assert!(!is_refusal(&failed(open)), "{open}");
        }
    }

    #[test]
    fn a_number_is_read_in_both_spellings() {
        assert_eq!(number("1234\n"), Some(1234));
        assert_eq!(number("1234;lab\n"), Some(1234));
        assert_eq!(number("a warning\n1234\n"), Some(1234));
        assert_eq!(number(""), None);
        assert_eq!(number("Submitted batch job x"), None);
    }
}
