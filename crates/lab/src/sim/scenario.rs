//! A story for the simulator, in TOML: what happens to which target, and when.
//!
//! ```toml
//! seed = 7
//! [timing]
//! create_s = 60
//! [[step]]
//! at = 30
//! event = "preempt"
//! target = "tpu-1"
//! ```
//!
//! `at` is in seconds from when the story is loaded; every further key is that of [`Event`].

use serde::Deserialize;
use toml::{Table, Value};

use super::event::Event;
use super::timing::Timing;

/// A story.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Decides every chance from now on; `None` leaves the fleet its own.
    pub seed: Option<u64>,
    /// How long things take; `None` leaves it as it is.
    pub timing: Option<Timing>,
    /// Seconds from the beginning, and what happens then.
    pub steps: Vec<(f64, Event)>,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    seed: Option<u64>,
    timing: Option<Timing>,
    #[serde(default)]
    step: Vec<Table>,
}

impl Scenario {
    /// Reads a story. The error says which step is wrong, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_owned())?;
        let mut steps = Vec::new();
        for (index, step) in file.step.into_iter().enumerate() {
            let step = read_step(step).map_err(|e| format!("step {}: {e}", index + 1))?;
            steps.push(step);
        }
        if let Some(timing) = file.timing {
            check(&Event::Time { timing }).map_err(|e| format!("timing: {e}"))?;
        }
        Ok(Self { seed: file.seed, timing: file.timing, steps })
    }
}

fn read_step(mut step: Table) -> Result<(f64, Event), String> {
    let at = match step.remove("at") {
        #[expect(clippy::cast_precision_loss, reason = "seconds of a story")]
        Some(Value::Integer(at)) => at as f64,
        Some(Value::Float(at)) => at,
        Some(other) => return Err(format!("'at' is {other}, not a number of seconds")),
        None => return Err("'at' is missing, the seconds from the beginning".to_owned()),
    };
    is_length("at", at)?;
    let event =
        Event::deserialize(Value::Table(step)).map_err(|e| e.to_string().trim_end().to_owned())?;
    check(&event)?;
    Ok((at, event))
}

/// Refuses what is no length of time.
pub(super) fn check(event: &Event) -> Result<(), String> {
    event.lengths().into_iter().try_for_each(|(name, length)| is_length(name, length))
}

fn is_length(name: &str, length: f64) -> Result<(), String> {
    // Ten years: longer than any story, and far from the end of what clocks can say.
    if (0.0..=3.2e8).contains(&length) {
        return Ok(());
    }
    Err(format!("'{name}' is {length}, not a number from 0 up"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Call;
    use tpu_engine::provider::Trouble;

    #[test]
    fn a_story_is_read() {
        let text = r#"
            seed = 7
            [timing]
            create_s = 60
            [[step]]
            at = 30
            event = "preempt"
            target = "t"
            [[step]]
            at = 0.5
            event = "error"
            class = "transient"
            call = "list"
            zone = "z"
            times = 5
            [[step]]
            at = 1
            event = "time"
            timing = { preemptions_per_h = 0.5 }
        "#;
        let story = Scenario::parse(text).unwrap();
        assert_eq!(story.seed, Some(7));
        assert_eq!(story.timing, Some(Timing { create_s: 60.0, ..Timing::default() }));
        assert_eq!(story.steps[0], (30.0, Event::Preempt { target: "t".to_owned() }));
        let error = Event::Error {
            class: Trouble::Transient,
            call: Some(Call::List),
            target: None,
            zone: Some("z".to_owned()),
            times: Some(5),
            for_s: None,
        };
        assert_eq!(story.steps[1], (0.5, error));
        assert_eq!(story.steps.len(), 3);
    }

    #[test]
    fn a_wrong_story_says_where() {
        for (text, what) in [
            ("sed = 7", "unknown field `sed`"),
            ("[[step]]\nevent = \"calm\"", "step 1: 'at' is missing"),
            ("[[step]]\nat = \"soon\"\nevent = \"calm\"", "step 1: 'at' is \"soon\""),
            ("[[step]]\nat = -1\nevent = \"calm\"", "step 1: 'at' is -1"),
            ("[[step]]\nat = nan\nevent = \"calm\"", "step 1: 'at' is NaN"),
            ("[[step]]\nat = 1\nevent = \"explode\"", "step 1: unknown variant `explode`"),
            ("[[step]]\nat = 1\nevent = \"preempt\"", "step 1: missing field `target`"),
            (
                "[[step]]\nat = 1\nevent = \"calm\"\n[[step]]\nat = 2\nevent = \"grpc\"\ntarget = \"t\"\nzone = \"z\"",
                "step 2: unknown field `zone`",
            ),
            (
                "[[step]]\nat = 1\nevent = \"outage\"\nzone = \"z\"\nfor_s = -3",
                "step 1: 'for_s' is -3",
            ),
            ("[timing]\ncreate_s = -1", "timing: 'create_s' is -1"),
        ] {
            let error = Scenario::parse(text).unwrap_err();
            assert!(error.contains(what), "{text}\ngave: {error}");
        }
    }
}
