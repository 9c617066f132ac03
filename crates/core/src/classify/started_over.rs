//! Whether a program that was to go on from a checkpoint has begun anew.

use crate::model::facts::{Class, Evidence, Phase, Progress, Source, Verdict};

/// Whether a program that is at this step began far below its checkpoint. Who counts steps anew in each epoch says nothing of
/// that.
fn is_far_below(progress: &Progress, from: u64) -> bool {
    let counts_otherwise = match progress.total {
        Some(total) => total < from,
        None => progress.epoch.is_some(),
    };
    let is_below = |step: u64| step.saturating_mul(2) < from;
    !counts_otherwise && progress.step.is_some_and(is_below)
}

/// Notes on the verdict about a running job that it does not go on from its checkpoint, which is at step `from`, and of which
/// its program is told by `word`.
pub fn mark(verdict: &mut Verdict, from: u64, word: &str) {
    let is_plain = verdict.class == Class::Running && verdict.phase != Some(Phase::Diverged);
    if let Some(step) = verdict.progress.step
        && is_plain
        && is_far_below(&verdict.progress, from)
    {
        let said = format!(
            "it is at step {step}, its checkpoint is at step {from}: does the program read {word}?"
        );
        verdict.phase = Some(Phase::StartedOver);
        verdict.evidence = Some(Evidence::fact(Source::Exit, "checkpoint", said));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Classifier, Input};

    #[test]
    fn who_begins_far_below_its_checkpoint_has_started_over() {
        let read = |text: &str| {
            let input = Input { text: text.as_bytes(), ..Input::default() };
            let mut verdict = Classifier::builtin().classify(&input);
            mark(&mut verdict, 1200, "$TPU_CHECKPOINT");
            verdict.phase == Some(Phase::StartedOver)
        };
        for over in ["step 1 loss 0.5", "step 3/3000 loss 0.5", "step 599 loss 0.5"] {
            assert!(read(over), "{over}");
        }
        for well in [
            "step 1201 loss 0.5",
            "step 700 loss 0.5",
            "epoch 12 step 3 loss 0.5",
            "step 3/100 loss 0.5",
            "loss 0.5",
            "step 3 loss nan",
        ] {
            assert!(!read(well), "{well}");
        }
    }
}
