//! The runner of Jobs: one list of Jobs and one of pods for all of them, and logs only of those whose text is wanted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job as BatchJob;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use tpu_core::model::facts::{ErrorKind, RunFact, RunState};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::{EngineRun, Handle, Job, Status};
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::TargetKind;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::files::Files;
use tpu_engine::runner::{
    Attempt, Chunk, Ground, Observed, OutputWanted, RunError, RunRef, Runner, StopOrder,
    StopOutcome, Submitted, Unreached,
};
use tpu_system::effects::Effects;

use super::disk::{JobDisk, Looks};
use super::facts::{self, Seen};
use super::life::Life;
use super::logs::{self, Wanted};
use super::names::{JobRef, LAUNCH};
use super::note;
use super::request::{LOOK, Labelled, PATIENCE, Trouble};
use super::settle::{self, Presence};
use super::site::Site;
use super::submit::{self, Submission};
use super::{afterwards, describe, stop};

/// So many logs are fetched at one look, those first that have waited longest.
const LOGS_AT_ONCE: usize = 64;

/// A question of a look has at least this time.
const LEAST: Duration = Duration::from_millis(100);

/// The end of a run is told without the end of its log when that could not be had for so long.
const LOG_WAITS_S: u64 = 300;

/// The same where its node says that it does not know it.
const UNKNOWN_WAITS_S: u64 = 30;

/// A pod that is made so long after its Job is hardly its first one.
const LATER_S: i64 = 2;

/// The runner.
pub(super) struct Engine<'a> {
    /// Where it runs jobs.
    pub(super) site: Site<'a>,
    /// What was said of the target; `None` where only runs are asked about.
    pub(super) target: Option<KindOptions>,
    /// What was seen on volumes.
    pub(super) looks: Arc<Looks>,
}

/// What the server lists of our launches, by their tokens.
#[derive(Default)]
struct Listing {
    jobs: HashMap<String, BatchJob>,
    pods: HashMap<String, Vec<Pod>>,
    warnings: Vec<Event>,
    /// When it said so, by its own clock.
    said_at: Option<Timestamp>,
}

impl Listing {
    /// Whether a pod is being ended, or waits and is hardly the first one of its Job: it was made well after it, or another
    /// one was seen on a node.
    fn is_in_place(&self, pod: &Pod, effects: &Effects) -> bool {
        if pod.metadata.deletion_timestamp.is_some() || facts::phase(pod) != "Pending" {
            return pod.metadata.deletion_timestamp.is_some();
        }
        let Some(token) = token_of(pod.metadata.labels.as_ref()) else { return false };
        let made = |of: &ObjectMeta| of.creation_timestamp.as_ref().map(|time| time.0.as_second());
        let job = self.jobs.get(&token).and_then(|job| made(&job.metadata));
        let later = made(&pod.metadata).zip(job).is_some_and(|(pod, job)| pod - job >= LATER_S);
        later || note::last_seen(effects, &token).is_some_and(|seen| !seen.nodes.is_empty())
    }
}

fn token_of(labels: Option<&BTreeMap<String, String>>) -> Option<String> {
    labels?.get(LAUNCH).cloned()
}

impl Engine<'_> {
    fn target(&self) -> KindOptions {
        self.target.clone().unwrap_or_default()
    }

    /// What is left of the time of a look; never nothing, so that what is there at once is heard.
    fn left(&self, until: Duration) -> Duration {
        until.saturating_sub(self.site.effects.clock.monotonic()).max(LEAST)
    }

    /// All of our Jobs with their pods, or one of them.
    fn listing(&self, only: Option<&JobRef>, until: Duration) -> Result<Listing, Trouble> {
        let namespace = self.site.namespace();
        let selector = only.map_or_else(|| LAUNCH.to_owned(), JobRef::selector);
        let Labelled { jobs, pods, said_at } = namespace.of_label(&selector, self.left(until))?;
        let mut listing = Listing { said_at, ..Listing::default() };
        for job in jobs.into_iter().filter(|job| !settle::is_tombstone(job)) {
            if let Some(token) = token_of(job.metadata.labels.as_ref()) {
                listing.jobs.insert(token, job);
            }
        }
        let (mut is_stuck, mut is_in_place) = (false, false);
        for pod in pods {
            is_stuck |= facts::phase(&pod) == "Pending";
            is_in_place = is_in_place || listing.is_in_place(&pod, self.site.effects);
            if let Some(token) = token_of(pod.metadata.labels.as_ref()) {
                listing.pods.entry(token).or_default().push(pod);
            }
        }
        let has_none = |token: &String| !listing.pods.contains_key(token);
        let is_refused =
            listing.jobs.iter().any(|(token, job)| has_none(token) && facts::is_open(job));
        // What cannot be had leaves the reason open, and nothing else.
        if is_refused {
            listing
                .warnings
                .extend(namespace.warnings("Job", self.left(until)).unwrap_or_default());
        }
        if is_stuck {
            listing
                .warnings
                .extend(namespace.warnings("Pod", self.left(until)).unwrap_or_default());
        }
        if is_in_place {
            listing.warnings.extend(namespace.preemptions(self.left(until)).unwrap_or_default());
        }
        Ok(listing)
    }

    /// How runs are, and what marks what they have printed, by answers that take no longer than this.
    fn observed(&self, runs: &[RunRef<'_>], patience: Duration) -> Vec<Observed> {
        let effects = self.site.effects;
        let observed = |(run, fact): (&RunRef<'_>, RunFact)| {
            let grown = logs::grown(effects, &JobRef::of(run.job).token);
            let last_output = grown.map(|(_, at)| at);
            // Of a run that nobody tells of, nothing new is read.
            let printed = grown.map(|(mark, _)| mark).filter(|_| fact.state != RunState::Unknown);
            Observed { run: RunFact { last_output, ..fact }, pane: None, printed }
        };
        if runs.is_empty() {
            return Vec::new();
        }
        runs.iter().zip(self.facts(runs, patience)).map(observed).collect()
    }

    /// How runs are.
    fn facts(&self, runs: &[RunRef<'_>], patience: Duration) -> Vec<RunFact> {
        let asked_at = self.site.effects.clock.now();
        let known: Vec<JobRef> = runs.iter().map(|run| JobRef::of(run.job)).collect();
        if runs.iter().all(|run| run.job.is_past()) {
            return runs.iter().map(|run| self.past(run.job)).collect();
        }
        let only = known.first().filter(|_| known.len() == 1);
        let until = self.site.effects.clock.monotonic() + patience;
        let listing = match self.listing(only, until) {
            Ok(listing) => listing,
            Err(trouble) => {
                let untold = |(run, known): (&RunRef<'_>, &JobRef)| {
                    if run.job.is_past() {
                        self.past(run.job)
                    } else {
                        self.untold(run.job, known, &trouble)
                    }
                };
                return runs.iter().zip(&known).map(untold).collect();
            }
        };
        let mut facts: Vec<RunFact> = runs
            .iter()
            .zip(&known)
            .map(|(run, known)| match listing.jobs.get(&known.token) {
                _ if run.job.is_past() => self.past(run.job),
                Some(job) => self.of_listed(run.job, (known, job), &listing),
                None => self.of_missing(run.job, known, (asked_at, until)),
            })
            .collect();
        // Before its log is waited for: what ended it may be told by a pod that goes meanwhile.
        for ((run, known), fact) in runs.iter().zip(&known).zip(&facts) {
            if listing.jobs.contains_key(&known.token) {
                self.remember(run.job, known, (fact, &listing));
            }
        }
        self.read_logs((runs, &known), &mut facts, (&listing, until));
        facts
    }

    /// What is known of a run whose Job the server lists. What its pods have told before they went stands.
    fn of_listed(
        &self,
        job: &Job,
        (known, listed): (&JobRef, &BatchJob),
        listing: &Listing,
    ) -> RunFact {
        let pods: Vec<&Pod> = listing.pods.get(&known.token).into_iter().flatten().collect();
        let seen = pods.is_empty().then(|| note::last_seen(self.site.effects, &known.token));
        let now = self.site.then(listing.said_at);
        match seen.flatten().filter(|seen| seen.is_over && !facts::is_open(listed)) {
            Some(seen) => afterwards::afterwards(job, Some(&seen), None),
            None => Seen::new(listed, pods, &listing.warnings, now).fact(job),
        }
    }

    /// Keeps how a run is now, for when its Job is gone. What was made for one that is over goes.
    fn remember(&self, job: &Job, known: &JobRef, (fact, listing): (&RunFact, &Listing)) {
        let effects = self.site.effects;
        let pods = listing.pods.get(&known.token).into_iter().flatten();
        let begun = pods.filter(|pod| facts::has_begun(pod)).map(facts::uid);
        let seen = afterwards::to_keep(fact, begun.map(str::to_owned).collect());
        let was = note::last_seen(effects, &known.token);
        let is_news = was.is_none_or(|was| was.is_outdated_by(&seen));
        if is_news && !matches!(fact.state, RunState::Unknown) {
            if seen.is_over && job.execution().is_some_and(|of| !of.secrets.is_empty()) {
                submit::discard(&self.site, job, known);
            }
            // Whoever looks next writes it again.
            drop(note::keep_seen(effects, &known.token, &seen));
        }
    }

    /// What the record says of a run that is over. Who goes on from one that was lost must know with which node.
    fn past(&self, job: &Job) -> RunFact {
        let code = job.launch.as_ref().and_then(|launch| launch.exit);
        let is_lost = job.status == Status::Error(ErrorKind::Lost);
        let seen = is_lost.then(|| note::last_seen(self.site.effects, &JobRef::of(job).token));
        let nodes = seen.flatten().map(|seen| seen.nodes).unwrap_or_default();
        let exit = code.map(|code| job.exit(code));
        RunFact { exit, nodes, ..RunFact::of_engine(RunState::Ended, "Ended", None) }
    }

    /// What is known of a run of which the server does not tell now. An end that was seen stands, though nobody has come to
    /// write it into the record.
    fn untold(&self, job: &Job, known: &JobRef, trouble: &Trouble) -> RunFact {
        let effects = self.site.effects;
        // Of what was lost with its node nobody has seen an end.
        let is_end = |fact: &RunFact| fact.cause != Some(ErrorKind::Lost);
        let seen = note::last_seen(effects, &known.token).filter(|seen| seen.is_over);
        let ended = seen.map(|seen| (afterwards::afterwards(job, Some(&seen), None), seen.begun));
        let Some((fact, begun)) = ended.filter(|(fact, _)| is_end(fact)) else {
            return self.silent(trouble);
        };
        let log = logs::of_launch(effects, &known.token);
        let is_whole = |pods: &Vec<String>| pods.iter().all(|pod| log.is_whole(pod));
        if begun.as_ref().is_some_and(is_whole) {
            return fact;
        }
        let why =
            format!("it has ended, and what it printed last waits: {}", self.silence(trouble));
        RunFact::of_engine(RunState::Unknown, "UNKNOWN", Some(why))
    }

    fn silence(&self, trouble: &Trouble) -> String {
        format!("{} does not answer: {}", self.site.cluster.in_words(), trouble.why())
    }

    fn silent(&self, trouble: &Trouble) -> RunFact {
        RunFact::of_engine(RunState::Unknown, "UNKNOWN", Some(self.silence(trouble)))
    }

    /// What is known of a run whose Job the server does not list.
    fn of_missing(
        &self,
        job: &Job,
        known: &JobRef,
        (asked_at, until): (Timestamp, Duration),
    ) -> RunFact {
        let effects = self.site.effects;
        let unknown =
            |why: &str| RunFact::of_engine(RunState::Unknown, "UNKNOWN", Some(why.to_owned()));
        let never = || RunFact {
            cause: Some(ErrorKind::Launch),
            ..RunFact::of_engine(
                RunState::Gone,
                "NeverSubmitted",
                Some("it never reached the cluster".to_owned()),
            )
        };
        let was_there = || {
            let seen = note::last_seen(effects, &known.token);
            afterwards::afterwards(job, seen.as_ref(), self.ttl_s(job, known))
        };
        if known.uid.is_some() || job.launch.as_ref().is_some_and(|launch| launch.confirmed) {
            return was_there();
        }
        let note = match note::read(effects, &known.token) {
            Ok(Some(note)) => note,
            Ok(None) => return never(),
            Err(e) => return unknown(&format!("the note of its submission cannot be read: {e}")),
        };
        if note.uid.is_some() {
            // It may have come behind the list. No clock tells: another machine may have written the note.
            if effects.clock.monotonic() >= until {
                return unknown("there was no time to ask whether it is there");
            }
            return match settle::ours(&self.site, known, self.left(until)) {
                Ok(Some(_)) => unknown("it was submitted while the server was asked"),
                Ok(None) => was_there(),
                Err(trouble) => self.silent(&trouble),
            };
        }
        match settle::absence(&self.site, known, &note, asked_at) {
            Presence::Absent => never(),
            Presence::Forgotten => was_there(),
            Presence::OnItsWay(_) if note.is_at_work(effects) => unknown("it is being submitted"),
            Presence::OnItsWay(_) | Presence::There(_) => {
                unknown("its submission was cut off, and it may still be on its way")
            }
        }
    }

    /// After how many seconds the server removes a Job that has ended, if that is why it may be gone: it was not at work so
    /// lately.
    fn ttl_s(&self, job: &Job, known: &JobRef) -> Option<u64> {
        let effects = self.site.effects;
        let manifest = note::manifest(effects, &known.token)?;
        let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
        let ttl_s = manifest["spec"]["ttlSecondsAfterFinished"].as_u64()?;
        let begun = job.launch.as_ref().map(|launch| launch.at);
        let printed = logs::grown(effects, &known.token).map(|(_, at)| at);
        let at_work = begun.max(printed)?;
        (effects.clock.now().seconds_since(at_work) >= ttl_s).then_some(ttl_s)
    }

    /// Brings logs up to what is printed by now. A run is over only when its log is kept whole.
    fn read_logs(
        &self,
        (runs, known): (&[RunRef<'_>], &[JobRef]),
        facts: &mut [RunFact],
        (listing, until): (&Listing, Duration),
    ) {
        let effects = self.site.effects;
        let mut wanted: Vec<(usize, Wanted<'_>)> = Vec::new();
        for (place, (run, known)) in runs.iter().zip(known).enumerate() {
            if run.job.is_past() || !listing.jobs.contains_key(&known.token) {
                continue;
            }
            let pods = listing.pods.get(&known.token).into_iter().flatten();
            let begun = pods.filter(|pod| facts::has_begun(pod));
            wanted.extend(begun.map(|pod| (place, Wanted { pod, token: &known.token })));
        }
        let followed = self.follow(&wanted);
        wanted.retain(|(_, wanted)| {
            let uid = facts::uid(wanted.pod);
            let is_followed = !facts::is_over(wanted.pod) && followed.contains(uid);
            !is_followed && !logs::of_launch(effects, wanted.token).is_whole(uid)
        });
        // Those that are over first, then those that have waited longest.
        let grown = |token: &str| logs::grown(effects, token).map(|(_, at)| at.as_second());
        wanted.sort_by_key(|(_, of)| (!facts::is_over(of.pod), grown(of.token)));
        let later = wanted.split_off(wanted.len().min(LOGS_AT_ONCE));
        let asked: Vec<Wanted<'_>> = wanted.iter().map(|(_, wanted)| *wanted).collect();
        let kept = logs::bring_up(&self.site, &asked, self.left(until));
        let now = self.site.then(listing.said_at);
        for ((place, wanted), kept) in wanted.iter().zip(kept) {
            let Some(fact) = facts.get_mut(*place) else { continue };
            if !fact.is_over() || !facts::is_over(wanted.pod) {
                continue;
            }
            let ended = facts::ended_at(wanted.pod).map_or(0, |at| now.seconds_since(at));
            // A node that does not know the pod any more will not know it later either.
            let is_lost = kept.as_ref().is_err_and(|trouble| trouble.code() == Some(404));
            let waits_s = if is_lost { UNKNOWN_WAITS_S } else { LOG_WAITS_S };
            if matches!(kept, Ok(true)) || ended > waits_s {
                continue;
            }
            *fact = waits_for_log(fact);
        }
        for (place, wanted) in later {
            match facts.get_mut(place) {
                Some(fact) if fact.is_over() && facts::is_over(wanted.pod) => {
                    *fact = waits_for_log(fact);
                }
                Some(_) | None => {}
            }
        }
    }

    /// Follows what these pods print, if this process stays. Those that are followed already.
    fn follow(&self, wanted: &[(usize, Wanted<'_>)]) -> std::collections::BTreeSet<String> {
        let lives =
            wanted.iter().filter(|(_, wanted)| !facts::is_over(wanted.pod)).map(|(_, of)| Life {
                pod: facts::name(of.pod).to_owned(),
                uid: facts::uid(of.pod).to_owned(),
                namespace: self.site.cluster.namespace.clone(),
                log: logs::of_launch(self.site.effects, of.token),
            });
        self.site.server.follow(&self.site.cluster.namespace, lives.collect())
    }
}

/// A run that is over, as long as its log is not kept whole.
fn waits_for_log(fact: &RunFact) -> RunFact {
    let why = "it has ended, and the rest of its output is being fetched".to_owned();
    RunFact {
        text_waits: true,
        nodes: fact.nodes.clone(),
        restarts: fact.restarts,
        began: fact.began,
        ..RunFact::of_engine(RunState::Running, fact.raw.to_string(), Some(why))
    }
}

impl Runner for Engine<'_> {
    fn ground(&self, _: &str, token: &LaunchToken) -> Result<Ground, RunError> {
        let version = self.site.namespace().version(PATIENCE);
        version.map_err(|trouble| self.site.error(&trouble))?;
        let run = EngineRun {
            kind: TargetKind::new(super::WORD),
            cluster: self.site.cluster.to_string(),
            id: None,
            name: None,
        };
        Ok(Ground { handle: Handle::Engine { run, token: token.clone() }, taken: Vec::new() })
    }

    fn submit(&self, attempt: &Attempt<'_>) -> Result<Submitted, RunError> {
        submit::submit(&self.site, &self.target(), attempt)
    }

    fn hands_on_secrets(&self) -> bool {
        true
    }

    fn carries_out(&self, key: &str) -> bool {
        key == "timeout"
    }

    fn observe(&self, runs: &[RunRef<'_>]) -> Vec<Observed> {
        self.observed(runs, LOOK)
    }

    fn observe_patiently(&self, runs: &[RunRef<'_>]) -> Vec<Observed> {
        self.observed(runs, PATIENCE)
    }

    fn output(&self, wanted: &[OutputWanted<'_>]) -> Result<Vec<Option<Chunk>>, RunError> {
        let unseen: Vec<RunRef<'_>> =
            wanted.iter().filter(|one| one.seen.is_none()).map(|one| one.run).collect();
        // Whoever has just looked has what there is.
        drop(self.facts(&unseen, LOOK));
        let chunk = |one: &OutputWanted<'_>| {
            let token = JobRef::of(one.run.job).token;
            logs::chunk(self.site.effects, &token, one.want).map_err(|e| {
                let what = format!("the kept log of {} cannot be read: {e}", one.run.job.id());
                RunError::state(what, "this account must be able to read the state directory")
            })
        };
        wanted.iter().map(chunk).collect()
    }

    fn may_stop(&self, _: RunRef<'_>, _: Unreached) -> Result<bool, RunError> {
        Ok(false)
    }

    fn stop(&self, run: RunRef<'_>, order: StopOrder) -> Result<StopOutcome, RunError> {
        let unsaid = || Err(self.site.silent("it does not say whether it is stopped"));
        stop::stop(&self.site, &[run.job], order).pop().unwrap_or_else(unsaid)
    }

    fn stop_all(
        &self,
        runs: &[RunRef<'_>],
        order: StopOrder,
    ) -> Vec<Result<StopOutcome, RunError>> {
        let jobs: Vec<&Job> = runs.iter().map(|run| run.job).collect();
        stop::stop(&self.site, &jobs, order)
    }

    fn left_behind(&self, runs: &[RunRef<'_>]) -> Result<Vec<(usize, String)>, RunError> {
        let jobs: Vec<&Job> = runs.iter().map(|run| run.job).collect();
        stop::left_behind(&self.site, &jobs)
    }

    fn give_up(&self, runs: &[RunRef<'_>]) -> Vec<Result<bool, RunError>> {
        runs.iter().map(|run| stop::give_up(&self.site, run.job)).collect()
    }

    fn files(&self) -> Box<dyn Files + '_> {
        Box::new(JobDisk { site: &self.site, looks: Arc::clone(&self.looks) })
    }

    fn works_in_copy(&self) -> bool {
        false
    }

    fn preview(&self, attempt: &Attempt<'_>) -> Result<String, RunError> {
        Ok(Submission::preview(&self.site, &self.target(), attempt)?.in_words())
    }

    fn try_out(&self, attempt: &Attempt<'_>) -> Result<Option<String>, RunError> {
        let submission = Submission::preview(&self.site, &self.target(), attempt)?;
        match self.site.namespace().create_job(submission.job().clone(), true) {
            Ok(_) => Ok(Some(format!("{} would take it", self.site.cluster.in_words()))),
            Err(trouble @ (Trouble::Refused(_) | Trouble::Login(_))) => {
                Err(self.site.error(&trouble))
            }
            // It is a preview all the same.
            Err(trouble) => Ok(Some(format!("not checked: {}", trouble.why()))),
        }
    }

    fn script(&self, run: RunRef<'_>) -> Result<Option<String>, RunError> {
        Ok(note::manifest(self.site.effects, &JobRef::of(run.job).token))
    }

    fn describe(&self, run: RunRef<'_>) -> Result<String, RunError> {
        describe::describe(&self.site, run.job)
    }

    fn shell(&self, run: RunRef<'_>, _: Option<&str>) -> Result<Vec<String>, RunError> {
        describe::shell(&self.site, run.job)
    }

    fn attach(&self, run: RunRef<'_>) -> Result<Vec<String>, RunError> {
        describe::attach(&self.site, run)
    }
}
