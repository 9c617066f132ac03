//! "It exists already": ours from a call whose answer was lost, or somebody else's?

use super::{Operation, Provider, ProviderError, RequestId, TargetSpec, Trouble};
use tpu_core::model::facts::TargetFact;

/// What came of asking for a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    /// It is on its way.
    Operation(Operation),
    /// An earlier call with this very request had made it; only its answer was lost.
    Adopted(TargetFact),
}

/// Asks for a target, and adopts it if this very request has made it before.
pub fn create(
    cloud: &dyn Provider,
    spec: &TargetSpec,
    request: &RequestId,
) -> Result<Created, ProviderError> {
    let error = match cloud.create(spec, request) {
        Ok(operation) => return Ok(Created::Operation(operation)),
        Err(error) => error,
    };
    if error.trouble != Trouble::AlreadyExists {
        return Err(error);
    }
    match &error.existing {
        Some(existing) => match differences(spec, request, existing).as_slice() {
            [] => Ok(Created::Adopted((**existing).clone())),
            found => Err(ProviderError {
                message: format!("{}, and it is not ours: {}", error.message, found.join(", ")),
                ..error
            }),
        },
        None => Err(error),
    }
}

/// In what an existing target differs from what was asked for; nothing means that it may be adopted.
pub fn differences(spec: &TargetSpec, request: &RequestId, found: &TargetFact) -> Vec<String> {
    let mut differences = Vec::new();
    let mut compare = |what: &str, found: Option<&str>, asked: &str| {
        if found != Some(asked) {
            let found = found.unwrap_or("unknown");
            differences.push(format!("its {what} is {found}, asked for was {asked}"));
        }
    };
    compare("type", found.accelerator.as_deref(), &spec.accelerator);
    compare("zone", found.zone.as_deref(), &spec.zone);
    compare("pricing", Some(found.pricing.as_str()), spec.pricing.as_str());
    compare("request", found.request.as_deref(), &request.0);
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::facts::TargetState;
    use tpu_core::model::ids::TargetName;
    use tpu_core::model::target::Pricing;
    use tpu_core::model::time::Timestamp;

    #[test]
    fn only_the_very_same_target_is_adopted() {
        let name = TargetName::from("t");
        let spec = TargetSpec {
            name: name.clone(),
            zone: "z".to_owned(),
            accelerator: "v2-8".to_owned(),
            pricing: Pricing::Spot,
            runtime_version: None,
            queued: false,
            options: tpu_core::model::options::KindOptions::default(),
        };
        let request = RequestId("r1".to_owned());
        let now = Timestamp::from_second(1);
        let ours = TargetFact {
            zone: Some("z".to_owned()),
            accelerator: Some("v2-8".to_owned()),
            pricing: Pricing::Spot,
            request: Some("r1".to_owned()),
            ..TargetFact::new(name, TargetState::Pending, "CREATING", now)
        };
        assert_eq!(differences(&spec, &request, &ours), Vec::<String>::new());
        let others = [
            TargetFact { zone: Some("y".to_owned()), ..ours.clone() },
            TargetFact { accelerator: None, ..ours.clone() },
            TargetFact { pricing: Pricing::Preemptible, ..ours.clone() },
            TargetFact { request: Some("r2".to_owned()), ..ours.clone() },
            TargetFact { request: None, ..ours },
        ];
        for other in others {
            assert_eq!(differences(&spec, &request, &other).len(), 1, "{other:?}");
        }
    }
}
