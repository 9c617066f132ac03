//! What we add to a record, in the places where the original keeps its own extras: `extra_msgs` and
//! `customized_settings`. So the original still reads the file.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::facts::{ErrorKind, Place, Progress};
use super::ids::LaunchToken;
use super::launch::{Checkpoint, Launch, LaunchMode, Stretch};
use super::lease::{Intent, Lease};
use super::read::{self, DataError, Fields, Json, Path};
use super::recovery::{Mark, Recovery, StoredVerdict};
use super::time::Timestamp;

/// Where the window of a job lives.
pub(super) fn read_place(value: Json<'_>, path: &Path<'_>) -> Result<Place, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Place {
        host: fields.need("host", "text", read::text)?,
        boot: fields.need("boot", "text", read::text)?,
        uid: fields.need("uid", "a number", read::number)?,
        socket: fields.need("socket", "text", read::text)?,
        server_pid: fields.need("server_pid", "a number", read::number)?,
        server_start: fields.need("server_start", "a number", read::large)?,
    })
}

/// The place of a window, for the file.
pub(super) fn write_place(place: &Place) -> Value {
    json!({
        "host": place.host,
        "boot": place.boot,
        "uid": place.uid,
        "socket": place.socket,
        "server_pid": place.server_pid,
        "server_start": place.server_start,
    })
}

/// The launch of a job.
pub(super) fn read_launch(value: Json<'_>, path: &Path<'_>) -> Result<Launch, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Launch {
        token: LaunchToken::new(fields.need("token", "text", read::text)?),
        mode: fields.need("mode", "'script' or 'native'", |value, path| {
            read::one_of(value, path, LaunchMode::parse, "'script' or 'native'")
        })?,
        at: fields.need("at", "an instant", read::instant)?,
        confirmed: fields.with_or("confirmed", false, read::flag)?,
        exit: fields.with("exit", read::exit_code)?,
        ended: fields.with("ended", read::instant)?,
        machine: fields.with("machine", read::instant)?,
        over: fields.with_or("over", false, read::flag)?,
        queued: fields.with("queued", read::instant)?,
        from: read_checkpoint(&fields)?,
        attempt: fields.with_or("attempt", 0, read::number)?,
        worked: fields.with("worked", read_stretches)?,
    })
}

/// From what an attempt goes on.
fn read_checkpoint(fields: &Fields<'_>) -> Result<Option<Checkpoint>, DataError> {
    let step = fields.with("from_step", read::large)?;
    let path = fields.with("from", read::text)?;
    let dir = fields.with("from_dir", read::text)?;
    let is_any = step.is_some() || path.is_some() || dir.is_some();
    Ok(is_any.then(|| Checkpoint { path, dir: dir.unwrap_or_default(), step }))
}

/// The launch of a job, for the file.
pub(super) fn write_launch(launch: &Launch) -> Value {
    let mut written = json!({
        "token": launch.token,
        "mode": launch.mode.as_str(),
        "at": launch.at.to_rfc3339(),
        "confirmed": launch.confirmed,
        "exit": launch.exit,
        "ended": launch.ended.map(Timestamp::to_rfc3339),
        "machine": launch.machine.map(Timestamp::to_rfc3339),
    });
    if let Some(fields) = written.as_object_mut() {
        if launch.over {
            fields.insert("over".to_owned(), true.into());
        }
        if let Some(queued) = launch.queued {
            fields.insert("queued".to_owned(), queued.to_rfc3339().into());
        }
        let (path, dir, step) = launch.from.as_ref().map_or((None, None, None), |from| {
            (from.path.as_deref(), Some(&*from.dir).filter(|dir| !dir.is_empty()), from.step)
        });
        let attempt = Some(launch.attempt).filter(|attempt| *attempt > 0);
        let known = [
            ("from_step", step.map(Value::from)),
            ("from", path.map(Value::from)),
            ("from_dir", dir.map(Value::from)),
            ("attempt", attempt.map(Value::from)),
            ("worked", launch.worked.as_deref().map(write_stretches)),
        ];
        for (field, value) in known {
            fields.extend(value.map(|value| (field.to_owned(), value)));
        }
    }
    written
}

/// When an engine had it at work.
fn read_stretches(value: Json<'_>, path: &Path<'_>) -> Result<Vec<Stretch>, DataError> {
    read::list(value, path, |value, path| {
        let fields = Fields::new(value, path)?;
        Ok(Stretch {
            from: fields.need("from", "an instant", read::instant)?,
            until: fields.with("until", read::instant)?,
        })
    })
}

fn write_stretches(all: &[Stretch]) -> Value {
    all.iter()
        .map(|of| json!({ "from": of.from.to_rfc3339(), "until": of.until.map(Timestamp::to_rfc3339) }))
        .collect()
}

/// An unfinished action.
pub(super) fn read_intent(value: Json<'_>, path: &Path<'_>) -> Result<Intent, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Intent {
        action: fields.need("action", "text", read::text)?,
        at: fields.need("at", "an instant", read::instant)?,
        by: fields.with("by", read::text)?.unwrap_or_default(),
    })
}

/// An unfinished action, for the file.
pub(super) fn write_intent(intent: &Intent) -> Value {
    json!({ "action": intent.action, "at": intent.at.to_rfc3339(), "by": intent.by })
}

/// The right to act on a lineage.
pub(super) fn read_lease(value: Json<'_>, path: &Path<'_>) -> Result<Lease, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Lease {
        owner: fields.need("owner", "text", read::text)?,
        fence: fields.need("fence", "a number", read::large)?,
        until: fields.need("until", "an instant", read::instant)?,
    })
}

/// The right to act on a lineage, for the file.
pub(super) fn write_lease(lease: &Lease) -> Value {
    json!({ "owner": lease.owner, "fence": lease.fence, "until": lease.until.to_rfc3339() })
}

/// Attempts and progress of a lineage.
pub(super) fn read_recovery(value: Json<'_>, path: &Path<'_>) -> Result<Recovery, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Recovery {
        capacity: fields.with_or("capacity", 0, read::number)?,
        capacity_row: fields.with_or("capacity_row", 0, read::number)?,
        infra: fields.with_or("infra", 0, read::number)?,
        retried: fields.with_or("retried", 0, read::number)?,
        failed_with: fields.with("failed_with", read::text)?,
        alike: fields.with_or("alike", 0, read::number)?,
        quick: fields.with_or("quick", 0, read::number)?,
        restarts: fields.with_or("restarts", 0, read::number)?,
        best: Mark {
            epoch: fields.with("best_epoch", read::real)?,
            step: fields.with("best_step", read::large)?,
        },
        progressed: fields.with_or("progressed", false, read::flag)?,
        last_action_at: fields.with("last_action_at", read::instant)?,
        patient_since: fields.with("patient_since", read::instant)?,
        roused: fields.with_or("roused", false, read::flag)?,
        login: fields.with("login", read::text)?,
        judged: fields.with("judged", read::instant)?,
        waits_since: fields.with("waits_since", read::instant)?,
        avoid: fields.with("avoid", read_avoid)?.unwrap_or_default(),
        stopped: fields.with("stopped", read::text)?,
        killed: fields.with_or("killed", false, read::flag)?,
        unwatched: fields.with_or("unwatched", false, read::flag)?,
        blocked: fields.with_or("blocked", false, read::flag)?,
    })
}

/// Nodes, each with an instant.
fn read_avoid(value: Json<'_>, path: &Path<'_>) -> Result<Vec<(String, Timestamp)>, DataError> {
    read::pairs(value, path, |node| Some(node.to_owned()), read::instant)
}

/// Fields that most lineages never have: they are written only where they say something.
pub(super) const RARE_OF_RECOVERY: [&str; 4] = ["patient_since", "roused", "login", "unwatched"];

/// Attempts and progress of a lineage, for the file.
pub(super) fn write_recovery(recovery: &Recovery) -> Value {
    let instant = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
    let avoid =
        recovery.avoid.iter().map(|(node, until)| (node.clone(), until.to_rfc3339().into()));
    let mut written = json!({
        "avoid": avoid.collect::<Map<_, _>>(),
        "capacity": recovery.capacity,
        "capacity_row": recovery.capacity_row,
        "infra": recovery.infra,
        "retried": recovery.retried,
        "failed_with": recovery.failed_with,
        "alike": recovery.alike,
        "quick": recovery.quick,
        "restarts": recovery.restarts,
        "best_epoch": recovery.best.epoch,
        "best_step": recovery.best.step,
        "progressed": recovery.progressed,
        "last_action_at": instant(recovery.last_action_at),
        "judged": instant(recovery.judged),
        "waits_since": instant(recovery.waits_since),
        "stopped": recovery.stopped,
        "killed": recovery.killed,
        "blocked": recovery.blocked,
    });
    let rare = [
        instant(recovery.patient_since).map(Value::from),
        recovery.roused.then_some(Value::Bool(true)),
        recovery.login.as_deref().map(Value::from),
        recovery.unwatched.then_some(Value::Bool(true)),
    ];
    if let Some(fields) = written.as_object_mut() {
        for (field, value) in RARE_OF_RECOVERY.into_iter().zip(rare) {
            fields.extend(value.map(|value| (field.to_owned(), value)));
        }
    }
    written
}

/// The line that decided a failure.
pub(super) fn read_verdict(value: Json<'_>, path: &Path<'_>) -> Result<StoredVerdict, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(StoredVerdict {
        kind: fields.need("kind", "a kind of error", read_kind)?,
        rule: fields.with("rule", read::text)?.unwrap_or_default(),
        line: fields.with("line", read::text)?.unwrap_or_default(),
        ignored: fields.with_or("ignored", false, read::flag)?,
    })
}

/// The line that decided a failure, for the file.
pub(super) fn write_verdict(verdict: &StoredVerdict) -> Value {
    json!({
        "kind": verdict.kind.as_str(),
        "rule": verdict.rule,
        "line": verdict.line,
        "ignored": verdict.ignored,
    })
}

/// How far a job had come at its end.
pub(super) fn read_reached(value: Json<'_>, path: &Path<'_>) -> Result<Progress, DataError> {
    let fields = Fields::new(value, path)?;
    let progress = Progress {
        epoch: fields.with("epoch", read::real)?,
        epochs: fields.with("epochs", read::real)?,
        step: fields.with("step", read::large)?,
        total: fields.with("total", read::large)?,
        percent: fields.with("percent", read::real)?,
        loss: fields.with("loss", read::real)?,
        lr: fields.with("lr", read::real)?,
        ..Progress::default()
    };
    Ok(progress.reached())
}

/// How far a job had come, for the file: the numbers that there are.
pub(super) fn write_reached(reached: &Progress) -> Value {
    let Progress { epoch, epochs, step, total, percent, loss, lr, .. } = reached;
    let members = [
        ("epoch", json!(epoch)),
        ("epochs", json!(epochs)),
        ("step", json!(step)),
        ("total", json!(total)),
        ("percent", json!(percent)),
        ("loss", json!(loss)),
        ("lr", json!(lr)),
    ];
    let known = members.into_iter().filter(|(_, number)| !number.is_null());
    Value::Object(known.map(|(name, number)| (name.to_owned(), number)).collect())
}

/// A kind of error in any spelling.
pub(super) fn read_kind(value: Json<'_>, path: &Path<'_>) -> Result<ErrorKind, DataError> {
    read::one_of(value, path, ErrorKind::parse, "a kind of error such as grpc")
}

/// A command, word by word.
pub(super) fn read_command(value: Json<'_>, path: &Path<'_>) -> Result<Vec<OsString>, DataError> {
    read::list(value, path, |word, path| {
        let decoded = || {
            let encoded = Fields::new(word, path).ok()?.get("b64")?.as_str()?;
            STANDARD.decode(&*encoded).ok().map(OsString::from_vec)
        };
        word.word(|text| Some(OsString::from(text)))
            .or_else(decoded)
            .ok_or_else(|| path.error("text or {\"b64\": …}", Some(word)))
    })
}

/// A command, for the file: JSON text holds no bytes that are not UTF-8, so such words are encoded.
pub(super) fn write_command(words: &[OsString]) -> Value {
    words
        .iter()
        .map(|word| match word.to_str() {
            Some(text) => Value::from(text),
            None => json!({ "b64": STANDARD.encode(word.as_bytes()) }),
        })
        .collect()
}

/// Sets or removes a member of an object of extras.
pub(super) fn put(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            let value = super::json::overlay(map.get(key), value);
            map.insert(key.to_owned(), value);
        }
        None => {
            map.shift_remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::UserName;
    use super::super::job::Job;
    use super::*;

    #[test]
    fn what_is_remembered_of_a_lineage_reads_back_and_keeps_what_it_does_not_know() {
        let owner = UserName::from("alice");
        let record = json!({
            "windows_id": 7,
            "extra_msgs": { "recovery": { "infra": 2, "ours_later": [1] }, "father": 3 },
        });
        let mut job = Job::from_value(&record, &owner).unwrap();
        assert_eq!(job.recovery.as_ref().map(|recovery| recovery.infra), Some(2));
        assert_eq!(job.to_value()["extra_msgs"], record["extra_msgs"], "reading is not changing");
        let recovery = Recovery {
            capacity: 1,
            capacity_row: 2,
            infra: 3,
            retried: 6,
            failed_with: Some("1 no memory".to_owned()),
            alike: 2,
            quick: 4,
            restarts: 5,
            best: Mark { epoch: Some(1.5), step: Some(900) },
            progressed: true,
            last_action_at: Some(Timestamp::from_second(1_795_161_731)),
            patient_since: Some(Timestamp::from_second(1_795_161_730)),
            roused: true,
            login: Some("no key".to_owned()),
            waits_since: Some(Timestamp::from_second(1_795_161_700)),
            judged: Some(Timestamp::from_second(1_795_161_732)),
            avoid: vec![("n7".to_owned(), Timestamp::from_second(1_795_161_733))],
            stopped: Some("stopped after grpc: enough".to_owned()),
            killed: true,
            unwatched: true,
            blocked: true,
        };
        job.keep_counts(recovery.clone());
        let written = job.to_value();
        assert_eq!(written["extra_msgs"]["recovery"]["ours_later"], json!([1]));
        let read = Job::from_value(&written, &owner).unwrap();
        assert_eq!(read.counts(), recovery);
        // What most lineages never have is in no record of theirs, also not any more.
        let mut job = read;
        let (patient_since, roused, login, unwatched) = (None, false, None, false);
        job.keep_counts(Recovery { patient_since, roused, login, unwatched, ..recovery });
        let written = job.to_value();
        let kept = written["extra_msgs"]["recovery"].as_object().unwrap();
        assert!(RARE_OF_RECOVERY.iter().all(|field| !kept.contains_key(*field)), "{kept:?}");
        assert_eq!(written["extra_msgs"]["recovery"]["ours_later"], json!([1]));
        job.recovery = None;
        assert_eq!(job.to_value()["extra_msgs"], json!({ "father": 3 }));
    }

    #[test]
    fn the_original_reads_that_nobody_watches_a_job_that_was_killed_after_it_had_failed() {
        let owner = UserName::from("alice");
        let failed = |monitor: bool| {
            let record =
                json!({ "windows_id": 7, "status": "error", "error": "grpc", "monitor": monitor });
            Job::from_value(&record, &owner).unwrap()
        };
        let mut job = failed(true);
        (job.counts_mut().killed, job.counts_mut().unwatched) = (true, true);
        let written = job.to_value();
        assert_eq!((&written["monitor"], &written["error"]), (&json!(false), &json!("grpc")));
        let read = Job::from_value(&written, &owner).unwrap();
        assert!(read.monitor && read.is_killed(), "its successor is watched again");
        assert_eq!(read.to_value(), written, "reading is not changing");

        let mut job = failed(false);
        job.counts_mut().killed = true;
        assert!(!Job::from_value(&job.to_value(), &owner).unwrap().monitor);
    }

    #[test]
    fn how_far_a_job_came_reads_back_whatever_the_numbers_are() {
        let owner = UserName::from("alice");
        let record = json!({ "windows_id": 7, "extra_msgs": { "father": 3 } });
        let reals = [0.0, -1.5, 1e-320, f64::MAX, f64::MIN, f64::NAN, f64::INFINITY, 0.1 + 0.2];
        for (real, step) in reals.into_iter().zip([0, 1, u64::MAX].into_iter().cycle()) {
            let mut job = Job::from_value(&record, &owner).unwrap();
            job.keep_reached(&Progress {
                epoch: Some(real),
                step: Some(step),
                loss: Some(real),
                steps_per_s: Some(2.0),
                eta_s: Some(60.0),
                ..Progress::default()
            });
            let kept = real.is_finite().then_some(real);
            let wanted =
                Progress { epoch: kept, step: Some(step), loss: kept, ..Progress::default() };
            let written = job.to_value();
            assert_eq!(
                Job::from_value(&written, &owner).unwrap().reached,
                Some(Box::new(wanted)),
                "{real}"
            );
            let members = written["extra_msgs"]["reached"].as_object().unwrap();
            assert!(members.values().all(Value::is_number), "{members:?}");
        }
    }

    #[test]
    fn newer_numbers_take_the_place_of_all_the_older_ones() {
        let owner = UserName::from("alice");
        let record =
            json!({ "windows_id": 7, "extra_msgs": { "reached": { "step": 5, "loss": 0.5 } } });
        let mut job = Job::from_value(&record, &owner).unwrap();
        job.keep_reached(&Progress { eta_s: Some(60.0), ..Progress::default() });
        assert_eq!(job.to_value(), record, "nothing that outlasts it was read");
        job.keep_reached(&Progress { step: Some(6), ..Progress::default() });
        assert_eq!(job.to_value()["extra_msgs"], json!({ "reached": { "step": 6 } }));
    }
}
