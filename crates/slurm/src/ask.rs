//! Asking a cluster: an answer, or why there is none, in words for a person.

use std::time::Duration;

use tpu_engine::runner::RunError;
use tpu_system::sys::clock::Clock;

use super::client::{Client, ProgramAnswer, ProgramCall, Silence};
use super::cluster::Cluster;

/// A question that a person waits for may take so long.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);

/// All questions of one look may take so long together.
pub(super) const LOOK: Duration = Duration::from_millis(2_500);

/// Time for several questions together.
#[derive(Clone, Copy)]
pub(super) struct TimeLeft<'a> {
    clock: &'a dyn Clock,
    end: Duration,
}

impl<'a> TimeLeft<'a> {
    /// So much from now on.
    pub(super) fn new(clock: &'a dyn Clock, time: Duration) -> Self {
        Self { clock, end: clock.monotonic() + time }
    }

    /// What is left of it.
    pub(super) fn left(&self) -> Duration {
        self.end.saturating_sub(self.clock.monotonic())
    }
}

/// Asks; what it wrote, or why it says nothing.
pub(super) fn ask(client: &dyn Client, call: &ProgramCall) -> Result<String, String> {
    match client.run(call) {
        Ok(ProgramAnswer { code: 0, stdout, .. }) => Ok(stdout),
        Ok(answer) => Err(complaint(call.program, &answer)),
        Err(silence) => Err(silence.to_string()),
    }
}

/// What a program complains about, without its own name in front.
pub(super) fn complaint(program: &str, answer: &ProgramAnswer) -> String {
    let lines = answer.stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let bare = |line: &str| {
        let line =
            line.strip_prefix(program).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(line);
        let line =
            ["error: ", "fatal: "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
        line.to_owned()
    };
    let said: Vec<String> = lines.map(bare).collect();
    if said.is_empty() {
        return format!("{program} ended with code {}", answer.code);
    }
    said.join("; ")
}

/// The error for a question that got no answer.
pub(super) fn unreachable(cluster: &Cluster, why: &str) -> RunError {
    RunError::unreachable(
        format!("{} does not answer: {why}", cluster.in_words()),
        "nothing was changed; try again when it answers",
    )
}

/// Whether what was asked for was never begun, for certain.
pub(super) fn is_unstarted(silence: &Silence) -> bool {
    matches!(silence, Silence::NotStarted(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::time::Timestamp;
    use tpu_system::sys::clock::ManualClock;

    #[test]
    fn a_complaint_is_told_without_the_name_of_the_program() {
        let answer = |stderr: &str| ProgramAnswer {
            code: 1,
            stderr: stderr.to_owned(),
            ..ProgramAnswer::default()
        };
        let said = complaint(
            "sbatch",
            &answer(
                "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: Invalid partition name specified\n",
            ),
        );
        assert_eq!(
            said,
            "invalid partition specified: x; Batch job submission failed: Invalid partition name specified"
        );
        assert_eq!(complaint("squeue", &answer("")), "squeue ended with code 1");
    }

    #[test]
    fn a_budget_is_used_up() {
        let clock = ManualClock::new(Timestamp::from_second(0));
        let budget = TimeLeft::new(&clock, LOOK);
        assert_eq!(budget.left(), LOOK);
        clock.advance(Duration::from_secs(2));
        assert_eq!(budget.left(), Duration::from_millis(500));
        clock.advance(Duration::from_secs(2));
        assert_eq!(budget.left(), Duration::ZERO);
    }
}
