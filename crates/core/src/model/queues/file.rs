//! The queues as they stand in data.json, read in one walk: thousands may wait.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Queues;
use crate::model::answered::AnsweredRequest;
use crate::model::entry::{self, Environment, QueueEntry};
use crate::model::loan::Loan;
use crate::model::making::Making;
use crate::model::queue::Queue;
use crate::model::read::{self, DataError, Json, Path};
use crate::model::task::SubmittedTask;
use crate::model::walk::Walk;

impl Queues {
    /// Reads what comes next on a walk through the document, in that one walk: thousands may wait.
    pub(in crate::model) fn read(walk: &mut Walk<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        if walk.peek() != Some(b'{') {
            let found = Json::new(walk.value());
            let expected = || path.error("a map", Some(found));
            return found.is_null().then(Self::default).ok_or_else(expected);
        }
        let mut all = Self::default();
        let mut environments: Vec<Environment> = Vec::new();
        // Which of the environments is that of which entry: they may stand behind them.
        let mut of_entries: Vec<Option<u32>> = Vec::new();
        walk.object(|walk, key| {
            let name = key.name();
            let path = Path::Key(path, &name);
            match &*name {
                "queues" => all.named = read::list(Json::new(walk.value()), &path, Queue::read)?,
                "environments" => {
                    let each = Json::new(walk.value());
                    environments = read::list(each, &path, entry::read_environment)?;
                }
                "entries" => (all.entries, of_entries) = take_entries(walk, &path)?,
                "makings" => {
                    all.makings = read::list(Json::new(walk.value()), &path, Making::read)?;
                }
                "loans" => all.loans = read::list(Json::new(walk.value()), &path, Loan::read)?,
                "tasks" => {
                    all.tasks = read::list(Json::new(walk.value()), &path, SubmittedTask::read)?;
                }
                "answered" => {
                    all.answered =
                        read::list(Json::new(walk.value()), &path, AnsweredRequest::read)?;
                }
                _ => drop(walk.value()),
            }
            Ok::<_, DataError>(())
        })?;
        for (entry, env) in all.entries.iter_mut().zip(of_entries) {
            let env = env.and_then(|at| environments.get(usize::try_from(at).ok()?));
            entry.env = env.cloned().unwrap_or_default();
        }
        Ok(all)
    }

    /// For the file. What many entries keep of the environment stands there once.
    pub(in crate::model) fn write(&self) -> Value {
        let mut environments: Vec<&Environment> = Vec::new();
        let mut entries = Vec::new();
        for entry in &self.entries {
            let known = environments
                .iter()
                .rposition(|known| Arc::ptr_eq(known, &entry.env) || **known == entry.env);
            let at = known.unwrap_or_else(|| {
                environments.push(&entry.env);
                environments.len() - 1
            });
            entries.push(entry.write(at));
        }
        let environments: Vec<Value> =
            environments.into_iter().map(entry::write_environment).collect();
        let members = [
            ("queues", self.named.iter().map(Queue::write).collect::<Vec<_>>()),
            ("environments", environments),
            ("entries", entries),
        ];
        let others = [
            ("makings", self.makings.iter().map(Making::write).collect::<Vec<_>>()),
            ("loans", self.loans.iter().map(Loan::write).collect()),
            ("tasks", self.tasks.iter().map(SubmittedTask::write).collect()),
            ("answered", self.answered.iter().map(AnsweredRequest::write).collect()),
        ];
        let members: Map<String, Value> = members
            .into_iter()
            .chain(others.into_iter().filter(|(_, list)| !list.is_empty()))
            .map(|(key, list)| (key.to_owned(), Value::Array(list)))
            .collect();
        Value::Object(members)
    }
}

/// Reads the entries, and of each the place of its environment among those that are kept.
fn take_entries(
    walk: &mut Walk<'_>,
    path: &Path<'_>,
) -> Result<(Vec<QueueEntry>, Vec<Option<u32>>), DataError> {
    let (mut entries, mut environments) = (Vec::new(), Vec::new());
    if walk.peek() != Some(b'[') {
        let found = Json::new(walk.value());
        let expected = || path.error("a list", Some(found));
        return found.is_null().then_some((entries, environments)).ok_or_else(expected);
    }
    walk.array(|walk| {
        let path = Path::Index(path, entries.len());
        let (entry, environment) = QueueEntry::take(walk, &path)?;
        entries.push(entry);
        environments.push(environment);
        Ok(())
    })?;
    Ok((entries, environments))
}
