//! What a look needs that follows from the records alone: worked out once for each version of the data, however
//! often that is looked at.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;

use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{JobNumber, TargetName, UserName};
use tpu_core::model::job::{Job, StartTime};
use tpu_core::model::lineage::{Lineage, Links};
use tpu_core::model::target::Target;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::Whose;

/// What follows from the record of a job.
#[derive(Debug)]
pub(super) struct OfRecord {
    /// The attempts of its lineage, the first first.
    pub(super) lineage: Vec<JobNumber>,
    /// When it was started.
    pub(super) started_at: Option<Timestamp>,
    /// What it computes on.
    pub(super) target: Arc<OfTarget>,
}

/// What the data file says of a target.
#[derive(Debug)]
pub(super) struct OfTarget {
    /// The target; `None` if only records know it.
    pub(super) known: Option<Target>,
    /// What people call it.
    pub(super) label: String,
}

impl OfTarget {
    fn new(data: &Data, name: &TargetName) -> Arc<Self> {
        Arc::new(Self { known: data.target(name), label: data.target_label(name) })
    }
}

impl OfRecord {
    /// What follows from one record.
    pub(super) fn of(data: &Data, user: &User, job: &Job, zone: &TimeZone) -> Self {
        let lineage = Lineage::of(user, job.windows_id);
        Self {
            lineage: lineage.map(|lineage| lineage.windows).unwrap_or_default(),
            started_at: started_at(job, zone),
            target: OfTarget::new(data, &job.tpu),
        }
    }

    /// What follows from each of these.
    fn of_all(data: &Data, jobs: &[(&User, &Job)], zone: &TimeZone) -> Vec<Self> {
        let mut links: HashMap<&UserName, Links<'_>> = HashMap::new();
        let mut targets: HashMap<&TargetName, Arc<OfTarget>> = HashMap::new();
        jobs.iter()
            .map(|(user, job)| {
                let links = links.entry(&user.name).or_insert_with(|| Links::of(user));
                let lineage = links.lineage(job.windows_id);
                let target =
                    targets.entry(&job.tpu).or_insert_with(|| OfTarget::new(data, &job.tpu));
                Self {
                    lineage: lineage.map(|lineage| lineage.windows).unwrap_or_default(),
                    started_at: started_at(job, zone),
                    target: Arc::clone(target),
                }
            })
            .collect()
    }
}

/// When a job was started; the original writes it down in the zone of its machine.
fn started_at(job: &Job, zone: &TimeZone) -> Option<Timestamp> {
    match &job.start_time {
        StartTime::Unset => None,
        StartTime::At(instant) => Some(*instant),
        StartTime::Original(value) => Timestamp::parse_original(value.as_str()?, zone),
    }
}

/// What was worked out for the jobs of a look.
#[derive(Debug, Default)]
pub(super) struct Records {
    last: Option<(Arc<Data>, Whose, Arc<[OfRecord]>)>,
}

impl Records {
    /// What follows from the records of these jobs, which are those of `whose`, in their order.
    pub(super) fn of(
        &mut self,
        data: &Arc<Data>,
        whose: &Whose,
        jobs: &[(&User, &Job)],
        zone: &TimeZone,
    ) -> Arc<[OfRecord]> {
        if let Some((of, scope, known)) = &self.last
            && Arc::ptr_eq(of, data)
            && scope == whose
        {
            return Arc::clone(known);
        }
        let known: Arc<[OfRecord]> = OfRecord::of_all(data, jobs, zone).into();
        self.last = Some((Arc::clone(data), whose.clone(), Arc::clone(&known)));
        known
    }
}
