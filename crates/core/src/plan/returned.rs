//! What is to be done about an attempt that was lost, has a successor, and is there again: one of the two has to go.

use crate::model::facts::ErrorKind;
use crate::model::job::Job;
use crate::model::view::Shown;

/// Who has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// The attempt that has returned: its successor has begun, or has come to an end of its own.
    Stop,
    /// The successor: it has not begun.
    GiveWay,
}

/// Says who has to go. `is_there` is what runs the lost attempt says of it now, if it says anything; `successor` is the
/// record of its child and how that is shown, `None` where that is archived.
pub fn returned(
    lost: &Job,
    is_there: Option<bool>,
    successor: Option<(&Job, &Shown)>,
) -> Option<Returned> {
    let was_lost = lost.status.is_superseded() && lost.status.error() == Some(ErrorKind::Lost);
    // A window or a worker has no list that may be wrong.
    if !was_lost || lost.child.is_none() || lost.engine.is_none() || is_there != Some(true) {
        return None;
    }
    let Some((child, shown)) = successor else { return Some(Returned::Stop) };
    if child.status.is_live() && shown.unknown.is_some() {
        return None;
    }
    let waits = child.status.is_live() && shown.pending.is_some() && !child.is_being_killed();
    Some(if waits && child.child.is_none() { Returned::GiveWay } else { Returned::Stop })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::facts::Progress;
    use crate::model::ids::{JobId, JobNumber, TargetName, UserName};
    use crate::model::job::{EngineRun, Intent, KILLING, Status};
    use crate::model::target::TargetKind;
    use crate::model::time::Timestamp;
    use crate::model::view::Pending;

    fn job(number: u32, status: Status) -> Job {
        let id = JobId::new(UserName::from("alice"), JobNumber(number));
        let mut job = Job::new(&id, TargetName::from("gpu"), "/d".to_owned());
        let kind = TargetKind::new("slurm");
        let run = EngineRun { kind, cluster: String::new(), id: None, name: None };
        (job.status, job.engine) = (status, Some(Box::new(run)));
        job
    }

    fn shown(job: &Job) -> Shown {
        Shown {
            status: job.status.clone(),
            unknown: None,
            pending: None,
            queued: None,
            phase: None,
            progress: Progress::default(),
            evidence: None,
        }
    }

    #[test]
    fn one_of_two_has_to_go_once_that_is_certain() {
        let mut lost = job(1, Status::Resumed(Some(ErrorKind::Lost)));
        lost.child = Some(JobNumber(2));
        let child = job(2, Status::Starting);
        let pending = Pending { reason: None, expected_start: None, raw: "PENDING".to_owned() };
        let waiting = Shown { pending: Some(pending), ..shown(&child) };
        let begun = shown(&child);
        let unknown = Shown { unknown: Some("silent".to_owned()), ..waiting.clone() };
        let with = |is_there, shown| returned(&lost, is_there, Some((&child, shown)));
        assert_eq!(with(Some(true), &waiting), Some(Returned::GiveWay));
        assert_eq!(with(Some(true), &begun), Some(Returned::Stop), "it has begun");
        assert_eq!(with(Some(true), &unknown), None, "nobody knows how the successor is");
        assert_eq!((with(Some(false), &waiting), with(None, &waiting)), (None, None));
        assert_eq!(returned(&lost, Some(true), None), Some(Returned::Stop), "it is archived");
        for status in [Status::Finished, Status::Killed(None), Status::Error(ErrorKind::Oom)] {
            let child = job(2, status);
            let said = returned(&lost, Some(true), Some((&child, &shown(&child))));
            assert_eq!(said, Some(Returned::Stop), "{}", child.status);
        }
        let (mut grand, mut killed) = (child.clone(), child.clone());
        grand.child = Some(JobNumber(3));
        assert_eq!(returned(&lost, Some(true), Some((&grand, &waiting))), Some(Returned::Stop));
        let at = Timestamp::from_second(0);
        killed.intent = Some(Intent { action: KILLING.to_owned(), at, by: "me".to_owned() });
        assert_eq!(returned(&lost, Some(true), Some((&killed, &waiting))), Some(Returned::Stop));
    }

    #[test]
    fn only_what_was_lost_by_an_engine_returns() {
        let child = job(2, Status::Running);
        let mut grpc = job(1, Status::Resumed(Some(ErrorKind::Grpc)));
        grpc.child = Some(JobNumber(2));
        assert_eq!(returned(&grpc, Some(true), Some((&child, &shown(&child)))), None);
        let mut window = job(1, Status::Resumed(Some(ErrorKind::Lost)));
        (window.child, window.engine) = (Some(JobNumber(2)), None);
        assert_eq!(returned(&window, Some(true), Some((&child, &shown(&child)))), None);
        let live = job(1, Status::Running);
        assert_eq!(returned(&live, Some(true), None), None);
    }
}
