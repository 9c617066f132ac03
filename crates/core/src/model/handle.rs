//! What identifies a run to whatever runs it, as it lies in the record of its attempt.

use serde_json::{Value, json};

use super::facts::Place;
use super::ids::LaunchToken;
use super::read::{self, DataError, Fields, Json, Path};
use super::target::TargetKind;

/// What identifies a run to its runner. Nothing else does: numbers are used again by engines, and windows
/// by people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handle {
    /// A window of a tmux server (`extra_msgs.place`), by the mark that it carries.
    Window {
        /// Where it lives.
        place: Place,
        /// Its mark.
        token: LaunchToken,
    },
    /// A job of an engine (`extra_msgs.engine`), by the name that it was submitted under.
    Engine {
        /// Where the engine knows it.
        run: EngineRun,
        /// Its name there.
        token: LaunchToken,
    },
}

impl Handle {
    /// The handle of another run at the same place.
    #[must_use]
    pub fn beside(&self, token: &LaunchToken) -> Self {
        let token = token.clone();
        match self {
            Self::Window { place, .. } => Self::Window { place: place.clone(), token },
            Self::Engine { run, .. } => Self::Engine { run: run.clone(), token },
        }
    }
}

/// Where an engine knows a run: with that it can be asked, whatever has become of the target of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineRun {
    /// The kind of target that brings the engine.
    pub kind: TargetKind,
    /// Which engine of this kind: all that the kind needs to ask it.
    pub cluster: String,
    /// Its number there; `None` until the engine has said it.
    pub id: Option<String>,
    /// What it is called there, where people call it so.
    pub name: Option<String>,
}

/// Where an engine knows a run.
pub(super) fn read_engine(value: Json<'_>, path: &Path<'_>) -> Result<EngineRun, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(EngineRun {
        kind: TargetKind::new(fields.need("kind", "text", read::text)?),
        cluster: fields.need("cluster", "text", read::text)?,
        id: fields.with("id", read::text)?,
        name: fields.with("name", read::text)?,
    })
}

/// Where an engine knows a run, for the file.
pub(super) fn write_engine(run: &EngineRun) -> Value {
    let mut value = json!({ "kind": run.kind.as_str(), "cluster": run.cluster, "id": run.id });
    if let (Value::Object(members), Some(name)) = (&mut value, &run.name) {
        members.insert("name".to_owned(), Value::from(name.as_str()));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::UserName;
    use crate::model::job::Job;

    #[test]
    fn a_handle_is_read_back_from_its_record() {
        let record = json!({
            "windows_id": 7, "tpu": "gpu", "job_dir": "/d", "status": "starting",
            "extra_msgs": {
                "launch": {"token": "t7", "mode": "native", "at": "2026-11-20T14:02:11Z"},
                "engine": {"kind": "slow", "cluster": "c", "id": null},
            },
        });
        let mut job = Job::from_value(&record, &UserName::from("alice")).unwrap();
        let engine = |id: Option<&str>| {
            let (kind, id) = (TargetKind::new("slow"), id.map(str::to_owned));
            let run = EngineRun { kind, cluster: "c".to_owned(), id, name: None };
            Handle::Engine { run, token: LaunchToken::from("t7") }
        };
        assert_eq!(job.handle(), Some(engine(None)));
        job.keep_handle(engine(Some("4711")));
        let again = Job::from_value(&job.to_value(), &UserName::from("alice")).unwrap();
        assert_eq!(again.handle(), Some(engine(Some("4711"))));
    }
}
