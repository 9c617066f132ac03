//! Those who wait for a target, in the order in which they came (`waiting` in data.json).

use std::ffi::OsString;

use serde_json::{Value, json};

use super::extras;
use super::ids::UserName;
use super::read::{self, DataError, Fields, Json, Path};
use super::spec::{self, AnyOf, JobSpec, TargetRequest};
use super::time::Timestamp;

/// A place in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Names it.
    pub id: String,
    /// For whom.
    pub user: UserName,
    /// Among which targets one is to be chosen.
    pub any_of: AnyOf,
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
    pub wish: Option<WaitingRun>,
}

/// What is started once there is a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRun {
    /// What the job is to do.
    pub spec: JobSpec,
    /// Go on where a check would refuse.
    pub force: bool,
    /// `NAME=VALUE`: what the job keeps of the environment in which it was asked for.
    pub env: Vec<OsString>,
}

/// Reads the line.
pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Vec<Ticket>, DataError> {
    read::list(value, path, |value, path| {
        let fields = Fields::new(value, path)?;
        let any_of = spec::read_any_of(&fields)?;
        Ok(Ticket {
            id: fields.need("id", "text", read::text)?,
            user: UserName::new(fields.need("user", "a user", read::text)?),
            wish: fields.with("run", |value, path| read_wish(value, path, any_of.clone()))?,
            any_of,
            owner: fields.with("owner", read::text)?.unwrap_or_default(),
            since: fields.need("since", "an instant", read::instant)?,
            seen: match fields.with("seen", read::instant)? {
                Some(seen) => seen,
                None => fields.need("since", "an instant", read::instant)?,
            },
            place: fields.with("place", read::text)?.unwrap_or_default(),
        })
    })
}

fn read_wish(value: Json<'_>, path: &Path<'_>, any_of: AnyOf) -> Result<WaitingRun, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(WaitingRun {
        spec: spec::read(&fields, TargetRequest::Any(any_of))?,
        force: fields.with_or("force", false, read::flag)?,
        env: fields.with("env", extras::read_command)?.unwrap_or_default(),
    })
}

fn write_wish(wish: &WaitingRun) -> Value {
    let mut members = spec::write(&wish.spec);
    members.insert("force".to_owned(), json!(wish.force));
    members.insert("env".to_owned(), extras::write_command(&wish.env));
    Value::Object(members)
}

/// The line, for the file.
pub(super) fn write(line: &[Ticket]) -> Value {
    line.iter()
        .map(|ticket| {
            let members = [
                ("id", json!(ticket.id)),
                ("user", json!(ticket.user)),
                ("owner", json!(ticket.owner)),
                ("since", json!(ticket.since.to_rfc3339())),
                ("seen", json!(ticket.seen.to_rfc3339())),
                ("place", json!(ticket.place)),
                ("run", json!(ticket.wish.as_ref().map(write_wish))),
            ];
            let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
            Value::Object(spec::write_any_of(&ticket.any_of).into_iter().chain(members).collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;
    use crate::model::policy::Policy;

    #[test]
    fn a_line_reads_back() {
        let any_of = AnyOf {
            types: vec!["v2".to_owned(), "v3+".to_owned()],
            among: vec!["gpu[1-2]".to_owned()],
            policy: Some(Policy::Frugal),
            reclaimable: Some(false),
        };
        let line = vec![Ticket {
            id: "1f".to_owned(),
            user: UserName::from("alice"),
            any_of: any_of.clone(),
            owner: "host:boot:1:2".to_owned(),
            since: Timestamp::from_second(1_795_161_731),
            seen: Timestamp::from_second(1_795_161_791),
            place: "5eed".to_owned(),
            wish: Some(WaitingRun {
                spec: JobSpec {
                    dir: Some(2),
                    configs: vec![("lr".to_owned(), "0.1 = x".to_owned())],
                    tag: Some("sweep".to_owned()),
                    rules: Some("pre".to_owned()),
                    command: Some(vec![OsString::from_vec(b"a\xffb".to_vec())]),
                    ..JobSpec::on(TargetRequest::Any(any_of))
                },
                force: true,
                env: vec!["PATH=/bin".into()],
            }),
        }];
        assert_eq!(read(Json::new(&write(&line).to_string()), &Path::Root).unwrap(), line);
        assert_eq!(read(Json::new("null"), &Path::Root).unwrap(), []);
    }
}
