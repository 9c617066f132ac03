//! No control plane: targets come from data.json alone and are not watched. Every question about a state
//! is answered so, and every request to change one says how to set a cloud up.

use super::{
    Answer, EVERYWHERE, Operation, Provider, ProviderError, TargetAt, Trouble, ZoneAnswer,
};
use tpu_core::model::facts::{TargetFact, TargetState};
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::ProviderName;
use tpu_core::model::time::Timestamp;

/// The provider that watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProvider;

impl NoProvider {
    /// What there is to say about a target that nobody watches: it counts as usable.
    pub fn fact(name: TargetName, now: Timestamp) -> TargetFact {
        TargetFact {
            source: ProviderName::NONE.as_str().to_owned(),
            ..TargetFact::new(name, TargetState::NotWatched, "NOT_WATCHED", now)
        }
    }
}

impl Provider for NoProvider {
    fn name(&self) -> ProviderName {
        ProviderName::NONE
    }

    fn is_here(&self) -> bool {
        true
    }

    fn list(&self, zones: &[String]) -> Vec<ZoneAnswer> {
        let silent = |zone: &String| {
            let error = self.refusal(format!("list zone {zone}"));
            ZoneAnswer { zone: zone.clone(), answer: Answer::Unknown { error, last: None } }
        };
        let all = [EVERYWHERE.to_owned()];
        if zones.is_empty() { &all } else { zones }.iter().map(silent).collect()
    }

    fn describe(&self, target: &TargetAt) -> Result<TargetFact, ProviderError> {
        Err(self.refusal(format!("describe {target}")))
    }

    fn operation(&self, name: &str) -> Result<Operation, ProviderError> {
        Err(self.refusal(format!("look at operation {name}")))
    }

    fn refusal(&self, doing: String) -> ProviderError {
        ProviderError::new(Trouble::NoProvider, doing, "no cloud is set up")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::facts::TargetStep;

    #[test]
    fn it_watches_nothing_changes_nothing_and_says_how_to_set_one_up() {
        let at = TargetAt::new(TargetName::from("t"), None);
        for refused in [
            NoProvider.delete(&at, true),
            NoProvider.start(&at),
            NoProvider.stop(&at),
            NoProvider.reboot(&at),
            NoProvider.operation("o"),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.trouble, Trouble::NoProvider);
            assert!(error.hint().unwrap().contains("tpu set-settings cloud sim"));
        }
        let answers = NoProvider.list(&["a".to_owned(), "b".to_owned()]);
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().all(|a| matches!(a.answer, Answer::Unknown { .. })));
        assert_eq!(NoProvider.describe(&at).unwrap_err().trouble, Trouble::NoProvider);
        assert_eq!(NoProvider.list(&[])[0].zone, EVERYWHERE);
        let fact = NoProvider::fact(TargetName::from("t"), Timestamp::from_second(5));
        assert_eq!(fact.state.step(), TargetStep::Launch);
    }
}
