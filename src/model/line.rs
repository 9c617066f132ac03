//! Those who wait for a target, in the order in which they came (`waiting` in data.json).

use std::ffi::OsString;

use serde_json::{Value, json};

use super::extras;
use super::ids::UserName;
use super::read::{self, DataError, Fields, Json, Path};
use super::time::Timestamp;

/// A place in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Names it.
    pub id: String,
    /// For whom.
    pub user: UserName,
    /// The types, as typed.
    pub types: Vec<String>,
    /// Reclaimable ones only, or on-demand ones only.
    pub reclaimable: Option<bool>,
    /// The process that waits, as an owner of leases.
    pub owner: String,
    /// Since when.
    pub since: Timestamp,
    /// When somebody who waits here last said so.
    pub seen: Timestamp,
    /// Host, account and tmux server of the process: the MONITOR of that place waits on when the machine has
    /// been restarted.
    pub place: String,
    /// What is to be started; `None` from before it was written down.
    pub errand: Option<Errand>,
}

/// What is started once there is a target: all that `run` was told, but the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errand {
    /// Directory slot.
    pub dir: u32,
    /// `key=value`, in order, keys as typed.
    pub configs: Vec<(String, String)>,
    /// Tag.
    pub tag: Option<String>,
    /// Rules, as typed.
    pub rule: Option<String>,
    /// Whether MONITOR may act.
    pub monitor: bool,
    /// Notes.
    pub notes: Option<String>,
    /// Pass the number of resumes to the program.
    pub log_stage: bool,
    /// Go on where a check would refuse.
    pub force: bool,
    /// Run this instead of `staging.sh`.
    pub command: Option<Vec<OsString>>,
    /// `NAME=VALUE`: what the job keeps of the environment in which it was asked for.
    pub env: Vec<OsString>,
}

/// Reads the line.
pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Vec<Ticket>, DataError> {
    read::list(value, path, |value, path| {
        let fields = Fields::new(value, path)?;
        Ok(Ticket {
            id: fields.need("id", "text", read::text)?,
            user: UserName::new(fields.need("user", "a user", read::text)?),
            types: fields
                .with("types", |value, path| read::list(value, path, read::text))?
                .unwrap_or_default(),
            reclaimable: fields.with("reclaimable", read::flag)?,
            owner: fields.with("owner", read::text)?.unwrap_or_default(),
            since: fields.need("since", "an instant", read::instant)?,
            seen: match fields.with("seen", read::instant)? {
                Some(seen) => seen,
                None => fields.need("since", "an instant", read::instant)?,
            },
            place: fields.with("place", read::text)?.unwrap_or_default(),
            errand: fields.with("run", read_errand)?,
        })
    })
}

fn read_errand(value: Json<'_>, path: &Path<'_>) -> Result<Errand, DataError> {
    let fields = Fields::new(value, path)?;
    let pair = |value: Json<'_>, path: &Path<'_>| {
        let words = read::list(value, path, read::text)?;
        <[String; 2]>::try_from(words)
            .map(|[key, value]| (key, value))
            .map_err(|_| path.error("a key and a value", Some(value)))
    };
    Ok(Errand {
        dir: fields.need("dir", "a number", read::number)?,
        configs: fields
            .with("configs", |value, path| read::list(value, path, pair))?
            .unwrap_or_default(),
        tag: fields.with("tag", read::text)?,
        rule: fields.with("rule", read::text)?,
        monitor: fields.with_or("monitor", true, read::flag)?,
        notes: fields.with("notes", read::text)?,
        log_stage: fields.with_or("log_stage", false, read::flag)?,
        force: fields.with_or("force", false, read::flag)?,
        command: fields.with("command", extras::read_command)?,
        env: fields.with("env", extras::read_command)?.unwrap_or_default(),
    })
}

fn write_errand(errand: &Errand) -> Value {
    json!({
        "dir": errand.dir,
        "configs": errand.configs,
        "tag": errand.tag,
        "rule": errand.rule,
        "monitor": errand.monitor,
        "notes": errand.notes,
        "log_stage": errand.log_stage,
        "force": errand.force,
        "command": errand.command.as_deref().map(extras::write_command),
        "env": extras::write_command(&errand.env),
    })
}

/// The line, for the file.
pub(super) fn write(line: &[Ticket]) -> Value {
    line.iter()
        .map(|ticket| {
            json!({
                "id": ticket.id,
                "user": ticket.user,
                "types": ticket.types,
                "reclaimable": ticket.reclaimable,
                "owner": ticket.owner,
                "since": ticket.since.to_rfc3339(),
                "seen": ticket.seen.to_rfc3339(),
                "place": ticket.place,
                "run": ticket.errand.as_ref().map(write_errand),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_line_reads_back() {
        let line = vec![Ticket {
            id: "1f".to_owned(),
            user: UserName::from("alice"),
            types: vec!["v2".to_owned(), "v3+".to_owned()],
            reclaimable: Some(false),
            owner: "host:boot:1:2".to_owned(),
            since: Timestamp::from_second(1_795_161_731),
            seen: Timestamp::from_second(1_795_161_791),
            place: "5eed".to_owned(),
            errand: Some(Errand {
                dir: 2,
                configs: vec![("lr".to_owned(), "0.1 = x".to_owned())],
                tag: Some("sweep".to_owned()),
                monitor: true,
                command: Some(vec![OsString::from_vec(b"a\xffb".to_vec())]),
                env: vec!["PATH=/bin".into()],
                ..Errand::default()
            }),
        }];
        assert_eq!(read(Json::new(&write(&line).to_string()), &Path::Root).unwrap(), line);
        assert_eq!(read(Json::new("null"), &Path::Root).unwrap(), []);
    }
}
