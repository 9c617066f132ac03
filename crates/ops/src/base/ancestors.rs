//! Attempts before others whose records were cleaned away, each looked for once: a look asks for those of each job that is
//! to come back, and the archive of a lab is years long.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tpu_core::model::ids::JobNumber;
use tpu_core::model::job::Job;
use tpu_system::store::{AttemptId, StoreError};

/// So many are remembered at most: more than come back at once.
const MOST: usize = 1_000;

/// What came of looking.
#[derive(Debug)]
enum Answer {
    Is(Box<Job>),
    /// Nothing, in an archive of so many bytes.
    NotWithin(u64),
}

/// What was found in the archive, by the attempt that goes on from it and its number.
#[derive(Debug, Default)]
pub struct Ancestors(Mutex<HashMap<(AttemptId, JobNumber), Answer>>);

impl Ancestors {
    /// The attempt of this number that `child` goes on from, as it is remembered, else as `search` finds it. What an archive
    /// does not hold is looked for again when that has grown, and what could not be read at the next occasion.
    pub(crate) fn before(
        &self,
        (child, father): (&Job, JobNumber),
        archive_bytes: u64,
        search: impl FnOnce() -> Result<Option<Job>, StoreError>,
    ) -> Option<Job> {
        let key = (AttemptId::of(child), father);
        match self.known().get(&key) {
            Some(Answer::Is(job)) => return Some((**job).clone()),
            Some(Answer::NotWithin(bytes)) if *bytes == archive_bytes => return None,
            Some(Answer::NotWithin(_)) | None => {}
        }
        // An archive that cannot be read now may be read by the next look.
        let found = search().ok()?;
        let answer = match &found {
            Some(job) => Answer::Is(Box::new(job.clone())),
            None => Answer::NotWithin(archive_bytes),
        };
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, answer);
        found
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(AttemptId, JobNumber), Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use tpu_core::model::ids::UserName;

    fn job(window: u32) -> Job {
        let value = json!({ "windows_id": window, "tpu": "lab", "status": "error" });
        Job::from_value(&value, &UserName::from("alice")).unwrap()
    }

    #[test]
    fn an_archive_is_read_once_for_an_attempt_and_again_when_it_has_grown() {
        let ancestors = Ancestors::default();
        let (child, father) = (job(7), job(5));
        let of = (&child, father.windows_id);
        let never = || unreachable!("it is known");
        let unreadable = || Err(StoreError::Missing { path: "archive".into() });
        assert!(ancestors.before(of, 100, unreadable).is_none());
        assert!(ancestors.before(of, 100, || Ok(None)).is_none());
        assert!(ancestors.before(of, 100, never).is_none());
        let found = ancestors.before(of, 200, || Ok(Some(job(5)))).unwrap();
        assert_eq!(found.windows_id, father.windows_id);
        assert!(ancestors.before(of, 300, never).is_some(), "what was found stays");
        // Another attempt goes on from another one.
        let other = job(8);
        assert!(ancestors.before((&other, father.windows_id), 300, || Ok(None)).is_none());
    }

    #[test]
    fn not_all_of_a_lab_is_kept() {
        let ancestors = Ancestors::default();
        for window in 1..5_000 {
            let child = job(window);
            drop(ancestors.before((&child, child.windows_id), 1, || Ok(Some(job(1)))));
        }
        assert!(ancestors.known().len() <= MOST);
    }
}
