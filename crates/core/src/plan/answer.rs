//! What an answer of a target's control plane is worth for one job: how old it may be, what it proves,
//! and whether it judges the end of the job's window.
//!
//! A call that failed arrives as [`TargetState::Unknown`] and proves nothing, however young it is.

use crate::model::facts::{Evidence, Source, TargetFact, TargetState};
use crate::model::job::{Job, Status};
use crate::model::time::Timestamp;

/// An answer older than this many seconds proves nothing.
pub(crate) const LIMIT_S: u64 = 60;

/// The names of the facts that a target was taken away, in evidence and in the record: it is PREEMPTED or
/// TERMINATED, it is not there, or there is another machine of its name.
pub const TAKEN: &str = "target-state";
const GONE: &str = "target-gone";
const ANOTHER: &str = "target-another";

/// Whether the answer is young enough to conclude from. One from the future is not: its age is unknown.
pub fn is_fresh(fact: &TargetFact, now: Timestamp) -> bool {
    let ahead_s = fact.observed_at.seconds_since(now);
    now.seconds_since(fact.observed_at) <= LIMIT_S && ahead_s <= LIMIT_S
}

/// Whether the answer says that the target was taken away.
pub fn is_taken(fact: &TargetFact) -> bool {
    matches!(fact.state, TargetState::Preempted | TargetState::Gone)
}

/// The control plane's word that the target of `job` was taken from it: fresh, and younger than the
/// launch. What was said before the launch is about the target as it was before. What was said after its
/// end was said after its launch, whatever a clock that was set back in between makes of it.
pub(crate) fn proof_of_preemption(
    job: &Job,
    fact: &TargetFact,
    now: Timestamp,
) -> Option<Evidence> {
    let since_launch = job.launch.as_ref().is_none_or(|launch| {
        let since = |at| is_after(fact.observed_at, at);
        since(launch.at) || launch.ended.is_some_and(since)
    });
    let about_it = fact.name == job.tpu;
    if !(about_it && since_launch && is_fresh(fact, now)) {
        return None;
    }
    let (rule, line) = if let Some(created) = another_machine(job, fact) {
        (ANOTHER, format!("{} was made anew at {}", fact.name, created.to_rfc3339()))
    } else if is_taken(fact) {
        let rule = if fact.state == TargetState::Gone { GONE } else { TAKEN };
        (rule, format!("{} is {}", fact.name, fact.raw_state))
    } else {
        return None;
    };
    let age_s = Some(now.seconds_since(fact.observed_at));
    Some(Evidence { age_s, ..Evidence::fact(Source::Api, rule, line) })
}

/// When the machine that is there now was created, if it is another one than that on which `job` began:
/// somebody has made the target anew before anybody saw that it was taken away.
pub fn another_machine(job: &Job, fact: &TargetFact) -> Option<Timestamp> {
    let (began_on, now_there) = (job.launch.as_ref()?.machine?, fact.created_at?);
    // A record keeps whole seconds.
    (began_on.as_second() != now_there.as_second()).then_some(now_there)
}

/// When the machine on which `job` has just begun was created, if this answer is the first to say so.
pub fn machine_of(job: &Job, fact: &TargetFact, now: Timestamp) -> Option<Timestamp> {
    let launch = job.launch.as_ref()?;
    let says = fact.state == TargetState::Ready && is_fresh(fact, now);
    let is_about_it = is_after(fact.observed_at, launch.at);
    if says && is_about_it { machine_until_now(job, fact) } else { None }
}

/// When the machine that its target had until now was created, if nobody has said yet on which one `job`
/// began. One that was created after the launch is none that it began on; that it began on another one is
/// not proven by that, since our clock may have been set back.
pub fn machine_until_now(job: &Job, fact: &TargetFact) -> Option<Timestamp> {
    let launch = job.launch.as_ref().filter(|launch| launch.machine.is_none())?;
    let is_its_own = fact.name == job.tpu && job.status.is_live();
    fact.created_at.filter(|created| is_its_own && !is_after(*created, launch.at))
}

/// Whether the preemption that the record holds was concluded from the control plane's word.
pub fn was_proven(job: &Job) -> bool {
    job.verdict
        .as_ref()
        .is_some_and(|verdict| [TAKEN, GONE, ANOTHER].contains(&verdict.rule.as_str()))
}

/// Whether the target of `job` was gone from its control plane's list and is there again. A machine that was
/// preempted does not come back: what is then READY under its name is another one.
pub(crate) fn has_reappeared(job: &Job, fact: &TargetFact, now: Timestamp) -> bool {
    let another = |rule: &str| [TAKEN, ANOTHER].contains(&rule);
    let was_preempted = job.verdict.as_ref().is_some_and(|verdict| another(&verdict.rule))
        || another_machine(job, fact).is_some();
    fact.state == TargetState::Ready && is_fresh(fact, now) && !was_preempted
}

/// When the answer was given on which the end of `job` was judged. One from before the end, left by an
/// earlier failure of the same attempt, does not count.
pub fn judged_at(job: &Job) -> Option<Timestamp> {
    let ended = job.launch.as_ref().and_then(|launch| launch.ended);
    let judged = job.recovery.as_ref()?.judged?;
    ended.is_none_or(|ended| is_after(judged, ended)).then_some(judged)
}

/// Within this time after an end the control plane says what it was: a daemon asks once in its turn, and a preemption
/// is in its answers some seconds after it.
const JUDGED_WITHIN_S: u64 = 120;

/// Whether a job has failed just now, and the control plane may yet say that it was taken away.
pub fn may_be_judged_yet(job: &Job, now: Timestamp) -> bool {
    let ended = job.launch.as_ref().and_then(|launch| launch.ended);
    matches!(job.status, Status::Error(_))
        && job.child.is_none()
        && judged_at(job).is_none()
        && ended.is_some_and(|ended| now.seconds_since(ended) < JUDGED_WITHIN_S)
}

/// Whether the launch or the end of an attempt stands so far in the future that it was written down by a clock that is
/// ahead, or that has been set back since: no answer would be younger for as long.
pub fn is_ahead(job: &Job, now: Timestamp) -> bool {
    let is_open = !job.status.is_final();
    let Some(launch) = job.launch.as_ref().filter(|_| is_open && job.child.is_none()) else {
        return false;
    };
    let is_ahead = |at: Timestamp| at.seconds_since(now) > LIMIT_S;
    is_ahead(launch.at) || launch.ended.is_some_and(is_ahead)
}

/// Whether an answer is younger than a launch or an end. These are stored in whole seconds: within the same one nobody
/// can tell which came first.
fn is_after(answered: Timestamp, ended: Timestamp) -> bool {
    answered.as_second() > ended.as_second()
}

/// Whether the kind of an ended attempt is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// No control plane watches the target: exit code and text are all there is.
    NotWatched,
    /// An answer younger than the end was given at this instant.
    Judged(Timestamp),
    /// No such answer has come: the kind is open, for this reason, and no rule fires.
    Open(String),
}

/// Whether asking again is all that it takes to judge the end of `job`: the control plane answers, and its
/// latest answer is older than that end. Of one that is at work: it was taken away, and what says so was said within
/// the second in which it was launched, so that it may be about the target as it was before.
pub fn is_asked_too_early(job: &Job, fact: &TargetFact) -> bool {
    let is_watched = !matches!(fact.state, TargetState::NotWatched | TargetState::Unknown);
    let Some(launch) = job.launch.as_ref().filter(|_| is_watched) else { return false };
    if job.status.is_live() {
        return is_taken(fact) && launch.at.as_second() == fact.observed_at.as_second();
    }
    let too_early = launch.ended.is_some_and(|ended| !is_after(fact.observed_at, ended));
    too_early && judged_at(job).is_none()
}

/// Whether the control plane has spoken since `job` ended. `fact` is its latest answer.
pub fn judgement(job: &Job, fact: Option<&TargetFact>, now: Timestamp) -> Judgement {
    if let Some(at) = judged_at(job) {
        return Judgement::Judged(at);
    }
    let open = |why: &str| Judgement::Open(format!("the state of {} is unknown: {why}", job.tpu));
    let Some(fact) = fact else { return open("nobody has asked its control plane yet") };
    let ended = job.launch.as_ref().and_then(|launch| launch.ended);
    match fact.state {
        TargetState::NotWatched => Judgement::NotWatched,
        TargetState::Unknown => open("its control plane could not be asked"),
        TargetState::Ready
        | TargetState::Pending
        | TargetState::Preempted
        | TargetState::Stopped
        | TargetState::Deleting
        | TargetState::Gone => {
            if !is_fresh(fact, now) {
                open("the last answer of its control plane is too old")
            } else if ended.is_some_and(|ended| !is_after(fact.observed_at, ended)) {
                open("its control plane has not answered since the job ended")
            } else {
                Judgement::Judged(fact.observed_at)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{JobId, JobNumber, TargetName, UserName};
    use crate::model::job::{Launch, LaunchMode};

    #[test]
    fn a_clock_that_was_set_back_during_a_run_hides_no_preemption() {
        let at = Timestamp::from_second;
        let id = JobId::new(UserName::from("alice"), JobNumber(1));
        let mut job = Job::new(&id, TargetName::from("n1"), "/d".to_owned());
        job.status = Status::Error(crate::model::facts::ErrorKind::Unknown);
        let mut launch = Launch {
            confirmed: true,
            exit: Some(255),
            ..Launch::claimed("t1", LaunchMode::Script, at(5_000))
        };
        job.launch = Some(launch.clone());
        let fact = TargetFact::new("n1".into(), TargetState::Preempted, "PREEMPTED", at(1_500));
        let is_proven = |job: &Job| proof_of_preemption(job, &fact, at(1_501)).is_some();
        assert!(!is_proven(&job), "said before the launch");
        launch.ended = Some(at(1_400));
        job.launch = Some(launch);
        assert!(is_proven(&job), "said after the end");
    }

    #[test]
    fn one_that_was_taken_away_within_the_second_of_its_launch_is_asked_about_again() {
        let at = |text| Timestamp::parse_rfc3339(text).unwrap();
        let id = JobId::new(UserName::from("alice"), JobNumber(1));
        let mut job = Job::new(&id, TargetName::from("n1"), "/d".to_owned());
        job.status = Status::Running;
        let launched = at("2026-11-26T12:29:30Z");
        job.launch = Some(Launch::claimed("t1", LaunchMode::Script, launched));
        let (soon, later) = (at("2026-11-26T12:29:30.9Z"), at("2026-11-26T12:29:31Z"));
        let taken = |at| TargetFact::new("n1".into(), TargetState::Preempted, "PREEMPTED", at);
        assert!(is_asked_too_early(&job, &taken(soon)), "nobody can tell which was first");
        assert!(proof_of_preemption(&job, &taken(soon), soon).is_none());
        assert!(!is_asked_too_early(&job, &taken(later)), "that is proof enough");
        assert!(proof_of_preemption(&job, &taken(later), later).is_some());
        let ready = TargetFact::new("n1".into(), TargetState::Ready, "READY", soon);
        assert!(!is_asked_too_early(&job, &ready), "all is well, and the next look is soon enough");
        let before = taken(at("2026-11-26T12:29:29.9Z"));
        assert!(!is_asked_too_early(&job, &before), "a clock that was set back asks no faster");
    }

    #[test]
    fn a_job_began_on_no_machine_that_was_made_after_it() {
        let at = Timestamp::from_second;
        let id = JobId::new(UserName::from("alice"), JobNumber(1));
        let mut job = Job::new(&id, TargetName::from("n1"), "/d".to_owned());
        job.status = Status::Running;
        job.launch = Some(Launch {
            confirmed: true,
            ..Launch::claimed("t1", LaunchMode::Native, at(1_000))
        });
        let first = |created: i64| {
            let fact = TargetFact::new("n1".into(), TargetState::Ready, "READY", at(2_000));
            let fact = TargetFact { created_at: Some(at(created)), ..fact };
            let preempted = proof_of_preemption(&job, &fact, at(2_001)).is_some();
            (machine_of(&job, &fact, at(2_001)), preempted)
        };
        assert_eq!(first(900), (Some(at(900)), false));
        assert_eq!(first(1_000), (Some(at(1_000)), false));
        assert_eq!(first(1_001), (None, false), "made anew, or a clock was set back: unknown");
        let deleted = TargetFact::new("n1".into(), TargetState::Preempted, "PREEMPTED", at(999));
        let deleted = TargetFact { created_at: Some(at(900)), ..deleted };
        assert_eq!(machine_of(&job, &deleted, at(1_001)), None, "said before the launch");
        assert_eq!(machine_until_now(&job, &deleted), Some(at(900)), "it goes with its machine");
    }
}
