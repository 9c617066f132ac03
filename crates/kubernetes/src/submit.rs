//! Submitting once: a note of it is written before the server is asked, and what it has said is written down behind.
//!
//! What a Job needs is made before it, so that a Job that is there begins: the code and the secrets of a launch lie in
//! objects of its own, and belong to the Job as soon as it has an identity.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::batch::v1::Job as BatchJob;
use serde_json::{Map, Value, json};

use tpu_core::model::job::Job;
use tpu_core::model::options::KindOptions;
use tpu_engine::runner::{Attempt, RunError, Submitted};
use tpu_system::sys::clock::Clock;

use super::code;
use super::manifest::{self, Manifest, Parts};
use super::names::JobRef;
use super::note::{self, SubmissionNote};
use super::options;
use super::request::{PATIENCE, Trouble};
use super::settings::KubernetesSettings;
use super::settle::{self, Presence};
use super::site::Site;

/// What is submitted, whole.
pub(super) struct Submission {
    manifest: Manifest,
    /// The archive of the code.
    code: Option<Vec<u8>>,
}

impl Submission {
    /// Makes ready what is submitted for an attempt on a target, with the copy of its code.
    fn new(site: &Site<'_>, target: &KindOptions, attempt: &Attempt<'_>) -> Result<Self, RunError> {
        let copy = attempt.job.stage_dir.as_deref().filter(|_| takes_code(attempt.job));
        let code = copy.map(|dir| code::packed(Path::new(dir))).transpose()?.flatten();
        let manifest = Self::manifest(site, target, (attempt, code.is_some()))?;
        Ok(Self { manifest, code })
    }

    /// The same for people, before there is a copy of its code.
    pub(super) fn preview(
        site: &Site<'_>,
        target: &KindOptions,
        attempt: &Attempt<'_>,
    ) -> Result<Self, RunError> {
        let manifest = Self::manifest(site, target, (attempt, takes_code(attempt.job)))?;
        Ok(Self { manifest, code: None })
    }

    fn manifest(
        site: &Site<'_>,
        target: &KindOptions,
        (attempt, has_code): (&Attempt<'_>, bool),
    ) -> Result<Manifest, RunError> {
        let settings = if manifest::is_said_whole(attempt.job) {
            KubernetesSettings::built_in()
        } else {
            KubernetesSettings::read()
                .map_err(|why| RunError::usage(why, "correct the file, or move it away"))?
        };
        let parts = Parts {
            target,
            settings: &settings,
            namespace: &site.cluster.namespace,
            has_code,
            effects: site.effects,
        };
        manifest::of(attempt, &parts)
    }

    /// The manifest, for people.
    pub(super) fn in_words(&self) -> String {
        let notes = self.manifest.notes.iter().map(|note| format!("# {note}\n"));
        notes.collect::<String>() + &pretty(&self.manifest.job)
    }

    /// The Job.
    pub(super) fn job(&self) -> &Value {
        &self.manifest.job
    }
}

/// Whether the code of a job goes with it: it may have none, or be at home where it runs.
fn takes_code(job: &Job) -> bool {
    job.workplace().is_none() && job.spec.as_ref().is_none_or(|spec| copies_code(&spec.options))
}

/// Whether its code goes with a job of which this is said.
pub(super) fn copies_code(said: &KindOptions) -> bool {
    said.get(options::CODE) != Some(options::NONE)
}

/// A manifest as text. `kubectl apply -f` takes it.
fn pretty(manifest: &Value) -> String {
    format!("{manifest:#}\n")
}

/// Submits an attempt, or finds out that it was submitted before.
pub(super) fn submit(
    site: &Site<'_>,
    target: &KindOptions,
    attempt: &Attempt<'_>,
) -> Result<Submitted, RunError> {
    let mut known = JobRef::of(attempt.job);
    let submitted = |uid: Option<String>, known: &mut JobRef| {
        known.uid = uid;
        Submitted { handle: site.handle(attempt.job, known), pane: None }
    };
    match submitted_before(site, &known)? {
        Earlier::Submitted(uid) => {
            complete(site, attempt.job, &known, &uid);
            return Ok(submitted(Some(uid), &mut known));
        }
        Earlier::Forgotten => {
            return Err(site.silent("it may have had the Job, and forgotten it since"));
        }
        Earlier::Never => {}
    }
    let submission = Submission::new(site, target, attempt)?;
    // Asked before anything is begun: a server that does not answer has nothing to be settled later.
    let taken =
        site.namespace().job(&known.name, PATIENCE).map_err(|trouble| site.error(&trouble))?;
    if let Some(job) = taken {
        // One whose note is lost is found by its token.
        return match job.metadata.uid.clone().filter(|_| settle::is_ours(&job, &known)) {
            Some(uid) => {
                let mut found = SubmissionNote::begun(site.effects);
                found.arrived(uid.clone());
                note::add(site.effects, &known.token, &found);
                complete(site, attempt.job, &known, &uid);
                Ok(submitted(Some(uid), &mut known))
            }
            None => Err(place_is_taken(Some(&job), &known)),
        };
    }
    fits(site, &submission)?;
    note::keep_manifest(site.effects, &known.token, &pretty(submission.job()))?;
    let mut note = SubmissionNote::begun(site.effects);
    note::write(site.effects, &known.token, &note)?;
    if !stands(site, attempt.job)? {
        note::remove(site.effects, &known.token);
        return Err(given_up());
    }
    if let Err(trouble) = lay(site, attempt, &known, &submission) {
        discard(site, attempt.job, &known);
        note::remove(site.effects, &known.token);
        return Err(site.error(&trouble));
    }
    // What was made first may have taken its time, in which others may have given it up.
    note.renew(site.effects.clock.now());
    note::write(site.effects, &known.token, &note)?;
    if !stands(site, attempt.job)? {
        discard(site, attempt.job, &known);
        note::remove(site.effects, &known.token);
        return Err(given_up());
    }
    match create(site, submission.job()) {
        Ok(uid) => {
            note.arrived(uid.clone());
            note::add(site.effects, &known.token, &note);
            complete(site, attempt.job, &known, &uid);
            note::sweep(site.effects);
            Ok(submitted(Some(uid), &mut known))
        }
        Err(trouble) if trouble.is_taken() => {
            let there = site.namespace().job(&known.name, PATIENCE);
            let there = there.map_err(|trouble| site.error(&trouble))?;
            let ours = there.as_ref().filter(|job| settle::is_ours(job, &known));
            let Some(uid) = ours.and_then(|job| job.metadata.uid.clone()) else {
                discard(site, attempt.job, &known);
                note::remove(site.effects, &known.token);
                return Err(place_is_taken(there.as_ref(), &known));
            };
            note.arrived(uid.clone());
            note::add(site.effects, &known.token, &note);
            complete(site, attempt.job, &known, &uid);
            Ok(submitted(Some(uid), &mut known))
        }
        Err(trouble @ (Trouble::Refused(_) | Trouble::Login(_) | Trouble::NotSent(_))) => {
            discard(site, attempt.job, &known);
            note::remove(site.effects, &known.token);
            Err(site.error(&trouble))
        }
        Err(trouble @ (Trouble::Failed(_) | Trouble::Silent(_))) => {
            note.give_up(site.effects.clock.now());
            note::add(site.effects, &known.token, &note);
            // An unclear answer is often one to a Job that was taken.
            match settle::ours(site, &known, PATIENCE) {
                Ok(Some(uid)) => {
                    note.arrived(uid.clone());
                    note::add(site.effects, &known.token, &note);
                    complete(site, attempt.job, &known, &uid);
                    Ok(submitted(Some(uid), &mut known))
                }
                Ok(None) | Err(_) => Err(site.error(&trouble)),
            }
        }
    }
}

/// Refuses pods that belong together where the server is too old for them: it would leave out what it does not know, and
/// begin pods without a rank.
fn fits(site: &Site<'_>, submission: &Submission) -> Result<(), RunError> {
    if !manifest::is_ranked(submission.job()) {
        return Ok(());
    }
    let tried = site.namespace().create_job(submission.job().clone(), true);
    let tried = tried.map_err(|trouble| site.error(&trouble))?;
    match tried.spec.and_then(|spec| spec.completion_mode) {
        Some(mode) if mode == "Indexed" => Ok(()),
        Some(_) | None => Err(RunError::refused(
            format!("{} gives its pods no ranks: it is too old", site.cluster.in_words()),
            "Kubernetes 1.24 and later can; without --nodes it runs as one pod",
        )),
    }
}

/// The error for a launch that does not stand any more. The server has refused nothing: its record says what came of it.
fn given_up() -> RunError {
    let what = "it was given up, or killed, before it was submitted";
    RunError::failed(what, "nothing was started; `tpu check` shows its record")
}

/// The error for a name that the Job of a launch cannot have: another has it, or others gave the launch up.
fn place_is_taken(by: Option<&BatchJob>, known: &JobRef) -> RunError {
    if by.is_some_and(|job| settle::is_given_up(job, known)) {
        return given_up();
    }
    let what = format!("a Job {} exists already, which does not belong to this start", known.name);
    RunError::refused(what, "take another name, or delete that Job first")
}

/// Whether the launch still stands. From its note on nobody gives up what we are about to submit; who has done so before
/// may have brought its lineage back already, if we stood still for long enough.
fn stands(site: &Site<'_>, job: &Job) -> Result<bool, RunError> {
    let data = site.effects.data()?;
    let token = |job: &Job| job.launch.as_ref().map(|launch| launch.token.clone());
    let known = data.job(&job.id()).filter(|known| token(known) == token(job));
    Ok(known.is_some_and(|job| job.status.is_live() && !job.is_being_killed()))
}

/// Creates the Job. Its identity.
fn create(site: &Site<'_>, manifest: &Value) -> Result<String, Trouble> {
    let job = site.namespace().create_job(manifest.clone(), false)?;
    job.metadata.uid.ok_or_else(|| Trouble::Failed("a Job without an identity".to_owned()))
}

/// Makes what the Job of an attempt needs: its secrets and its code. What is there of an earlier try is the same.
fn lay(
    site: &Site<'_>,
    attempt: &Attempt<'_>,
    known: &JobRef,
    submission: &Submission,
) -> Result<(), Trouble> {
    let labels = manifest::labels(attempt.job, known);
    let made = |answer: Result<Value, Trouble>| match answer {
        Err(trouble) if !trouble.is_taken() => Err(trouble),
        Ok(_) | Err(_) => Ok(()),
    };
    if !attempt.secrets.0.is_empty() {
        let values = attempt.secrets.0.iter().map(|(name, value)| {
            let value = STANDARD.encode(value.as_encoded_bytes());
            (name.to_string_lossy().into_owned(), Value::from(value))
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": manifest::secret_of(known), "labels": labels},
            "data": values.collect::<Map<String, Value>>(),
        });
        made(site.namespace().create_core("secrets", secret))?;
    }
    if manifest::is_ranked(submission.job()) {
        made(site.namespace().create_core("services", manifest::service(known, &labels)))?;
    }
    if let Some(code) = &submission.code {
        let config_map = code::config_map(&manifest::code_of(known), &labels, code);
        made(site.namespace().create_core("configmaps", config_map))?;
    }
    Ok(())
}

/// The objects beside the Job of a launch, as far as there may be any.
fn beside(site: &Site<'_>, job: &Job, known: &JobRef) -> Vec<(&'static str, String)> {
    let has_secrets = job.execution().is_some_and(|execution| !execution.secrets.is_empty());
    let text = note::manifest(site.effects, &known.token);
    let code = manifest::code_of(known);
    let has_code = text.as_ref().is_none_or(|text| text.contains(&code));
    let service = manifest::service_of(known);
    let service = text.filter(|text| text.contains(&service)).map(|_| ("services", service));
    let secret = has_secrets.then(|| ("secrets", manifest::secret_of(known)));
    secret.into_iter().chain(service).chain(has_code.then_some(("configmaps", code))).collect()
}

/// Has what lies beside a Job belong to it: it goes with it, whoever deletes it.
fn complete(site: &Site<'_>, job: &Job, known: &JobRef, uid: &str) {
    for (resource, name) in beside(site, job, known) {
        // Where this fails it is taken away when the Job is stopped or has ended.
        drop(site.namespace().own((resource, &name), (&known.name, uid)));
    }
}

/// Takes away what lies beside a Job that is not there.
pub(super) fn discard(site: &Site<'_>, job: &Job, known: &JobRef) {
    for (resource, name) in beside(site, job, known) {
        drop(site.namespace().delete_core(resource, &name));
    }
}

/// What is known of earlier submissions.
enum Earlier {
    /// There was none, for certain.
    Never,
    /// The server has it, or had it.
    Submitted(String),
    /// It may have been there and be gone.
    Forgotten,
}

/// Whether the attempt was submitted by somebody before, who did not live to say so, or to hear it. What may still be on
/// its way is waited for.
fn submitted_before(site: &Site<'_>, known: &JobRef) -> Result<Earlier, RunError> {
    let clock: &dyn Clock = &*site.effects.clock;
    loop {
        let note = note::read(site.effects, &known.token).map_err(|e| {
            let what = format!("the note of its submission cannot be read: {e}");
            RunError::state(what, "`tpu check` shows what has become of it")
        })?;
        let Some(mut note) = note else { return Ok(Earlier::Never) };
        if let Some(uid) = note.uid {
            return Ok(Earlier::Submitted(uid));
        }
        let presence = settle::presence(site, known, &note, PATIENCE);
        match presence.map_err(|trouble| site.error(&trouble))? {
            Presence::There(uid) => {
                note.arrived(uid.clone());
                note::add(site.effects, &known.token, &note);
                return Ok(Earlier::Submitted(uid));
            }
            Presence::Absent => return Ok(Earlier::Never),
            Presence::Forgotten => return Ok(Earlier::Forgotten),
            Presence::OnItsWay(until) => {
                let left = until.seconds_since(clock.now()).clamp(1, 2);
                clock.sleep(Duration::from_millis(left * 250));
            }
        }
    }
}
