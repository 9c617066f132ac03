//! No control plane: targets come from data.json alone and are not watched. Every question about a state
//! is answered so, and every request to change one says how to set a cloud up.

use super::{
    Answer, Cloud, CloudError, EVERYWHERE, Operation, RequestId, TargetAt, TargetSpec, Trouble,
    ZoneAnswer,
};
use crate::model::facts::{TargetFact, TargetState};
use crate::model::ids::TargetName;
use crate::model::settings::CloudKind;
use crate::model::time::Timestamp;

/// The provider that watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCloud;

impl NoCloud {
    /// What there is to say about a target that nobody watches: it counts as usable.
    pub fn fact(name: TargetName, now: Timestamp) -> TargetFact {
        TargetFact {
            source: CloudKind::None.as_str().to_owned(),
            ..TargetFact::new(name, TargetState::NotWatched, "NOT_WATCHED", now)
        }
    }
}

fn refuse<T>(doing: impl Into<String>) -> Result<T, CloudError> {
    Err(CloudError::new(Trouble::NoCloud, doing, "no cloud is set up"))
}

impl Cloud for NoCloud {
    fn kind(&self) -> CloudKind {
        CloudKind::None
    }

    fn list(&self, zones: &[String]) -> Vec<ZoneAnswer> {
        let silent = |zone: &String| {
            let error = CloudError::new(
                Trouble::NoCloud,
                format!("list zone {zone}"),
                "no cloud is set up",
            );
            ZoneAnswer { zone: zone.clone(), answer: Answer::Unknown { error, last: None } }
        };
        let all = [EVERYWHERE.to_owned()];
        if zones.is_empty() { &all } else { zones }.iter().map(silent).collect()
    }

    fn describe(&self, target: &TargetAt) -> Result<TargetFact, CloudError> {
        refuse(format!("describe {target}"))
    }

    fn create(&self, spec: &TargetSpec, _request: &RequestId) -> Result<Operation, CloudError> {
        refuse(format!("create {}", spec.at()))
    }

    fn delete(&self, target: &TargetAt, _force: bool) -> Result<Operation, CloudError> {
        refuse(format!("delete {target}"))
    }

    fn start(&self, target: &TargetAt) -> Result<Operation, CloudError> {
        refuse(format!("start {target}"))
    }

    fn stop(&self, target: &TargetAt) -> Result<Operation, CloudError> {
        refuse(format!("stop {target}"))
    }

    fn reboot(&self, target: &TargetAt) -> Result<Operation, CloudError> {
        refuse(format!("reboot {target}"))
    }

    fn operation(&self, name: &str) -> Result<Operation, CloudError> {
        refuse(format!("look at operation {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::facts::TargetStep;

    #[test]
    fn it_watches_nothing_changes_nothing_and_says_how_to_set_one_up() {
        let at = TargetAt::new(TargetName::from("t"), None);
        for refused in [
            NoCloud.delete(&at, true),
            NoCloud.start(&at),
            NoCloud.stop(&at),
            NoCloud.reboot(&at),
            NoCloud.operation("o"),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.trouble, Trouble::NoCloud);
            assert!(error.hint().unwrap().contains("tpu set-settings cloud sim"));
        }
        let answers = NoCloud.list(&["a".to_owned(), "b".to_owned()]);
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().all(|a| matches!(a.answer, Answer::Unknown { .. })));
        assert_eq!(NoCloud.describe(&at).unwrap_err().trouble, Trouble::NoCloud);
        assert_eq!(NoCloud.list(&[])[0].zone, EVERYWHERE);
        let fact = NoCloud::fact(TargetName::from("t"), Timestamp::from_second(5));
        assert_eq!(fact.state.step(), TargetStep::Launch);
    }
}
