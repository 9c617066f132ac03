//! A job file as a request brings it: it lies nowhere, and says itself whose its jobs are.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::base::code_dir::resolved;
use crate::base::ctx::user_of;
use crate::waiting::begin::{self, QueueOutcome, QueueRequest};
use crate::waiting::queue::once::Once;
use crate::{Ctx, Error};
use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::UserName;
use tpu_core::model::job::Job;
use tpu_core::model::notify::WayTo;
use tpu_core::model::rules::Rules;
use tpu_engine::kinds::Kinds;
use tpu_jobfile::BadFile;
use tpu_jobfile::own::{self, Given, OwnCode, OwnJob};
use tpu_jobfile::yaml::{self, Yaml, YamlValue};

use super::kind_words;
use super::privileged::{self, Privileged};
use super::ready::{self, BesideFile, JobFile, slot_of};
use super::strict_json;

/// As what a problem names it.
const BODY: &str = "body";
/// The member that says whose jobs they are.
const FOR_USER: &str = "for_user";

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
}

/// A job file that was read, and is not understood yet.
#[derive(Clone, Debug)]
pub struct SubmittedFile {
    documents: Vec<Yaml>,
    /// Whose its jobs are, if it says so.
    pub for_user: Option<UserName>,
}

impl SubmittedFile {
    /// Reads it.
    pub fn read(bytes: &[u8], written: BodyFormat) -> Result<Self, Error> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Error::usage("the body is no text in UTF-8").hint("save it as UTF-8"))?;
        let read = match written {
            BodyFormat::Json => {
                let value = strict_json::read(text).map_err(|e| {
                    let what = format!("the body, line {}, column {}: {e}", e.line(), e.column());
                    Error::usage(what).hint("`tpu schema jobfile` says what it has to be")
                })?;
                // JSON written anew is YAML, whatever it escaped before.
                yaml::read_all(&value.to_string())
            }
            BodyFormat::Yaml => yaml::read_all(text),
        };
        let mut documents = read.map_err(bad)?;
        let for_user = take_user(&mut documents)?;
        Ok(Self { documents, for_user })
    }

    /// Understands its jobs as those of a user.
    pub fn understood(self, ctx: &Ctx, user: &UserName) -> Result<UnderstoodJobs, Error> {
        let data = ctx.data()?;
        let of_user = user_of(&data, user)?;
        let mut documents = self.documents;
        for document in &mut documents {
            name_slots(of_user, document)?;
        }
        let kinds = kind_words(&ctx.kinds);
        let jobs = ready::jobs(ctx, documents, (BODY, &Given { set: &[], kinds: &kinds }))?;
        Ok(UnderstoodJobs { jobs, user: user.clone() })
    }
}

/// The jobs of a file, as those of a user.
#[derive(Clone, Debug)]
pub struct UnderstoodJobs {
    jobs: Vec<OwnJob>,
    user: UserName,
}

impl UnderstoodJobs {
    /// Whether a target is made for one of them.
    pub fn make_targets(&self) -> bool {
        self.jobs.iter().any(|job| job.order.is_some())
    }

    /// Whether one of them wants a target deleted or restarted that is still there.
    pub fn take_targets_down(&self) -> bool {
        let mut rules = self.jobs.iter().filter_map(|job| job.rules.as_deref());
        rules.any(|rules| Rules::parse(rules).is_ok_and(|rules| rules.take_targets_down()))
    }

    /// Refuses what only an admin's token may ask for. Webhooks of all others go to public addresses, whatever their names
    /// stand for when they are told.
    pub fn for_an_operator(mut self, hostname: &str) -> Result<Self, Error> {
        for job in &mut self.jobs {
            if let Some(Privileged { place: (line, column), what }) =
                privileged::first_of(job, hostname)
            {
                let what = format!("{BODY}:{line}:{column}: {what} takes an admin's token");
                let hint =
                    "the account that serves would carry it out, and not the machine of the job";
                return Err(Error::refused(what).hint(hint).forbidden());
            }
            for to in job.execution.notify.iter_mut().flatten() {
                to.public_only = matches!(to.way, WayTo::Webhook(_));
            }
        }
        Ok(self)
    }

    /// Refuses what cannot begin at once as a whole.
    fn may_begin_at_once(&self) -> Result<(), Error> {
        let what = match self.jobs.as_slice() {
            [job] if job.array.is_some() => "a group",
            [job] if job.order.is_some() => "a job for which a target is made",
            [_] => return Ok(()),
            _ => "several jobs",
        };
        Err(Error::usage(format!("{what}: one job by itself may begin at once"))
            .hint("let them wait for their turns"))
    }

    /// Lets them begin when their turns come, all of them or none, or the only one at once.
    pub fn queue(&self, ctx: &Ctx, sent: &BesideBody<'_>) -> Result<QueueOutcome, Error> {
        if sent.is_now {
            self.may_begin_at_once()?;
        }
        let data = ctx.data()?;
        let home = user_of(&data, &self.user)?.dir(1).map(PathBuf::from).unwrap_or_default();
        let beside = BesideFile { is_now: sent.is_now, ..BesideFile::default() };
        let file = JobFile {
            ctx,
            data: &data,
            user: &self.user,
            beside: &beside,
            shown: BODY,
            dir: &home,
            is_sent: true,
        };
        for job in &self.jobs {
            says_where_its_code_is(&file, job)?;
        }
        let (all, placed) = (file.all_ready(&self.jobs)?, file.placed(&self.jobs));
        let request = QueueRequest { once: sent.once, placed: &placed, ..QueueRequest::of(&all) };
        begin::queue(ctx, &request)
    }
}

/// What a request says beside its file.
#[derive(Clone, Copy, Debug)]
pub struct BesideBody<'a> {
    /// Its key, if it has one.
    pub once: Option<&'a Once>,
    /// Whether its job begins at once or not at all.
    pub is_now: bool,
}

/// The schema of a body: a job file, and whose its jobs are.
pub fn schema(kinds: &Kinds) -> Value {
    let mut schema = own::schema(&kind_words(kinds));
    let whose = json!({
        "type": "string",
        "description": "whose the jobs are; without, the only user that the token is about",
    });
    for properties in ["/$defs/members/properties", "/anyOf/1/properties"] {
        if let Some(Value::Object(properties)) = schema.pointer_mut(properties) {
            properties.insert(FOR_USER.to_owned(), whose.clone());
        }
    }
    schema
}

fn bad(bad: BadFile) -> Error {
    Error::usage(format!("{BODY}{}", bad.in_words())).hint(bad.hint)
}

/// Takes out who says whose the jobs are.
fn take_user(documents: &mut [Yaml]) -> Result<Option<UserName>, Error> {
    let mut said: Option<UserName> = None;
    for document in documents {
        let YamlValue::Map(members) = &mut document.value else { continue };
        let Some(at) = members.iter().position(|(key, _)| key == FOR_USER) else { continue };
        let (_, value) = members.remove(at);
        let Some(name) = value.text().map(UserName::from) else {
            let hint = "as in for_user: alice";
            return Err(bad(BadFile::new(value.line, FOR_USER, "no name", hint)));
        };
        if let Some(other) = said.as_ref().filter(|other| **other != name) {
            return Err(Error::usage(format!("for_user: {other} and {name} in one request"))
                .hint("send a request for each"));
        }
        said = Some(name);
    }
    Ok(said)
}

/// A slot that is said by its path becomes its number.
fn name_slots(user: &User, document: &mut Yaml) -> Result<(), Error> {
    let is_copied = document.get("code").and_then(Yaml::text) != Some("none");
    let YamlValue::Map(members) = &mut document.value else { return Ok(()) };
    for (key, value) in members {
        match key.as_str() {
            "dir" if is_copied => {
                let Some(path) = value.text().filter(|path| path.starts_with('/')) else {
                    continue;
                };
                // Of what is in no slot, and of what is filled in only later, the jobs are judged.
                if let Some(slot) = slot_of(user, &resolved(Path::new(path))) {
                    value.value = YamlValue::Text(slot.to_string());
                }
            }
            "defaults" => name_slots(user, value)?,
            "jobs" => {
                let YamlValue::Map(jobs) = &mut value.value else { continue };
                jobs.iter_mut().try_for_each(|(_, job)| name_slots(user, job))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a job of a user has had its code from a directory, or is to have it from there: somebody at this machine has
/// chosen it.
fn has_run_from(data: &Data, user: &UserName, path: &str) -> bool {
    let begins_in = |job: &Job| job.stands_in_no_slot() && job.within(&job.job_dir) == path;
    let has_run = data.user(user).is_some_and(|user| user.jobs().iter().any(begins_in));
    let waits = |entry: &QueueEntry| {
        entry.user == *user && entry.spec.code.as_ref().is_some_and(|code| code.begins_in() == path)
    };
    has_run || data.queues().entries.iter().any(waits)
}

/// A request lies in no directory: where code is staged from this machine, it says from which.
fn says_where_its_code_is(file: &JobFile<'_>, job: &OwnJob) -> Result<(), Error> {
    let is_elsewhere = file.repository(job).is_some() || job.execution.workplace.is_some();
    if is_elsewhere || job.dir.is_some() {
        return Ok(());
    }
    if let Some(OwnCode::Dir(path)) = &job.code {
        if has_run_from(file.data, file.user, path) {
            return Ok(());
        }
        let what = format!("dir: {path} is in no slot of {}", file.user);
        let hint = format!("put it into one: tpu set-dir {path} 2 user={}", file.user);
        return Err(file.at(job.place, Error::refused(what).hint(hint)));
    }
    let what = match job.code {
        Some(_) => "code: . is the directory of a file, and this is none",
        None => "nothing says where its code is",
    };
    let hint = "dir: 1, a slot of its user; or its path; or code: with a repository";
    Err(file.at(job.place, Error::usage(what).hint(hint)))
}
