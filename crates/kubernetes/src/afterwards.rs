//! What is kept of how a run was seen, and what is left to say of it by that when its Job is not there any more.

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, RunFact, RunState};
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;

use super::note::LastSeen;

/// What is left to say of a run whose Job is not there any more. `ttl_s` is how long the server keeps one that has ended, if
/// it may have gone for that.
pub(super) fn afterwards(job: &Job, seen: Option<&LastSeen>, ttl_s: Option<u64>) -> RunFact {
    let gone = |cause, raw: &str, why: &str| RunFact {
        cause,
        ..RunFact::of_engine(RunState::Gone, raw, Some(why.to_owned()))
    };
    let Some(seen) = seen else {
        return gone(
            Some(ErrorKind::Lost),
            "Gone",
            "its Job is gone, and nothing tells how it ended",
        );
    };
    let nodes = seen.nodes.clone();
    if !seen.is_over {
        let deleted = match ttl_s {
            None => gone(None, "Deleted", "its Job was deleted; Kubernetes does not say by whom"),
            // It may have ended well: nothing of ours begins it again.
            Some(ttl_s) => {
                let why = format!(
                    "its Job is gone: it ended and was removed after {ttl_s} s before anybody saw how, or somebody has deleted it"
                );
                gone(None, "Gone", &why)
            }
        };
        let restarts = seen.restarts;
        return RunFact { is_cancelled: true, state: RunState::Ended, nodes, restarts, ..deleted };
    }
    RunFact {
        exit: seen.code.map(|code| job.exit(code)),
        cause: seen.cause.as_deref().and_then(ErrorKind::parse),
        nodes,
        restarts: seen.restarts,
        began: seen.began.map(Timestamp::from_second),
        ..RunFact::of_engine(RunState::Ended, seen.raw.clone(), seen.reason.clone())
    }
}

/// What is to be kept of a fact, with the pods that had begun by then.
pub(super) fn to_keep(fact: &RunFact, begun: Vec<String>) -> LastSeen {
    LastSeen {
        is_over: fact.is_over(),
        code: fact.exit.map(Exit::code),
        cause: fact.cause.map(|cause| cause.as_str().to_owned()),
        reason: fact.reason.as_deref().map(str::to_owned),
        raw: fact.raw.to_string(),
        nodes: fact.nodes.clone(),
        restarts: fact.restarts,
        begun: Some(begun),
        began: fact.began.map(Timestamp::as_second),
    }
}
