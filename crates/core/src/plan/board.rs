//! The board as it stands: what live jobs say, then the control plane, then what people wrote. And which
//! free target is the best one.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use crate::model::board::{Entry, Written};
use crate::model::data::Data;
use crate::model::facts::{TargetFact, TargetState};
use crate::model::ids::{JobId, TargetName, UserName};
use crate::model::target::{Pricing, Target, TargetKind};
use crate::model::time::Timestamp;
use crate::model::words::words;

use super::seen::SeenOf;
use super::types::{self, TypeExpr};

/// Whether a target can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Deleted or taken away.
    Gone,
    /// On its way.
    Creating,
    /// Nobody has it.
    Free,
    /// Somebody keeps it.
    Reserved,
    /// Somebody keeps it, and something went wrong there.
    Error,
    /// A job is at work there, or people say so.
    Running,
    /// Its control plane says nothing certain: not to be counted on.
    Unknown,
}

words! {
    /// The spelling in JSON and CSV.
    Standing {
        Gone: "gone",
        Creating: "creating",
        Free: "free",
        Reserved: "reserved",
        Error: "error",
        Running: "running",
        Unknown: "unknown",
    }
}

/// One target on the board: everything that is known of it. The commands and the screen show this, and
/// none has a list of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Full name.
    pub target: TargetName,
    /// Its shortest alias, else its full name.
    pub label: String,
    /// Every alias.
    pub aliases: Vec<String>,
    /// The kind of target.
    pub kind: TargetKind,
    /// Whether the data file knows it; else only the control plane does, and nothing can be started there.
    pub is_known: bool,
    /// Whether it takes any number of jobs: nobody keeps it, and it is never to be chosen.
    pub is_shared: bool,
    /// Zone.
    pub zone: Option<String>,
    /// Type; from the name where nobody has said it better.
    pub accelerator: Option<String>,
    /// Whether the type only stands in the name.
    pub is_guessed: bool,
    /// How it is paid for.
    pub pricing: Pricing,
    /// Whether it can be had.
    pub standing: Standing,
    /// Who has it.
    pub user: Option<String>,
    /// Notes of people, else those of the job.
    pub notes: String,
    /// Tags of the jobs there.
    pub tags: Vec<String>,
    /// Live jobs there.
    pub jobs: Vec<JobId>,
    /// Until when it is kept.
    pub until: Option<Timestamp>,
    /// Where people wrote something else than what is so.
    pub disagreement: Option<String>,
    /// What the control plane says.
    pub fact: TargetFact,
}

impl Row {
    /// Its shortest alias, if it has one.
    pub fn alias(&self) -> Option<&str> {
        (self.label != self.target.as_str()).then_some(self.label.as_str())
    }

    /// As it stands when a job there has ended.
    pub fn leave(&mut self, job: &JobId, data: &Data, now: Timestamp) {
        self.jobs.retain(|one| one != job);
        if !self.is_shared {
            (self.user, self.until) = (None, None);
            stand(self, &data.board().entry(&self.target), data, now);
        }
    }

    /// The type, if somebody has said it.
    pub fn told_type(&self) -> Option<&str> {
        self.accelerator.as_deref().filter(|_| !self.is_guessed)
    }
}

/// What the rows are made from.
#[derive(Clone, Copy)]
pub struct BoardFacts<'a> {
    /// Records, registrations, and what people wrote.
    pub data: &'a Data,
    /// Jobs that are alive, or of which nothing certain is known, by target.
    pub live: &'a HashMap<TargetName, Vec<JobId>>,
    /// What the control plane says of the targets that the data file knows; one that is missing is not
    /// watched.
    pub targets: &'a HashMap<TargetName, TargetFact>,
    /// What it has beside those.
    pub others: &'a [TargetFact],
    /// The instant.
    pub now: Timestamp,
}

/// The targets that the data file knows, in whatever way, and this machine: they are on the board.
pub fn known<'a>(
    data: &'a Data,
    live: impl Iterator<Item = &'a TargetName>,
) -> BTreeSet<TargetName> {
    let built_in = Target::built_in().into_iter().map(|target| target.name);
    let names = data.registry().names().into_iter().chain(built_in);
    names.chain(data.board().names().chain(live).cloned()).collect()
}

/// Every target: the shared ones, then all others in the order of the labels.
pub fn rows(facts: BoardFacts<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = known(facts.data, facts.live.keys())
        .into_iter()
        .map(|name| {
            let fact = facts.targets.get(&name).cloned().unwrap_or_else(|| {
                TargetFact::new(name.clone(), TargetState::NotWatched, "not watched", facts.now)
            });
            row(facts, fact, true)
        })
        .collect();
    rows.extend(facts.others.iter().map(|fact| row(facts, fact.clone(), false)));
    rows.sort_unstable_by(|a, b| {
        (!a.is_shared, &a.label, &a.zone, &a.target).cmp(&(
            !b.is_shared,
            &b.label,
            &b.zone,
            &b.target,
        ))
    });
    rows
}

/// One target.
fn row(facts: BoardFacts<'_>, fact: TargetFact, is_known: bool) -> Row {
    let BoardFacts { data, live, now, .. } = facts;
    let name = &fact.name;
    let registered = data.target(name).filter(|_| is_known);
    let registered = registered.as_ref();
    let entry = data.board().entry(name);
    let jobs = live.get(name).filter(|_| is_known).cloned().unwrap_or_default();
    let fact = fact.with_registered(registered);
    let name = &fact.name;
    let told = fact.accelerator.clone();
    let aliases = data.registry().aliases().filter(|(_, full)| *full == name);
    let tags = jobs.iter().filter_map(|job| data.job(job)?.job_tags.clone());
    let mut row = Row {
        target: name.clone(),
        label: data.target_label(name),
        aliases: aliases.map(|(alias, _)| alias.to_owned()).collect(),
        // What only a control plane knows is of the kind that has one.
        kind: registered.map(|target| target.kind.clone()).unwrap_or_default(),
        is_known,
        is_shared: registered.is_some_and(|target| !target.is_exclusive()),
        zone: fact.zone.clone(),
        is_guessed: told.is_none(),
        accelerator: told.or_else(|| types::guess(name.as_str())),
        pricing: fact.pricing,
        standing: Standing::Free,
        user: None,
        notes: notes_of(data, &jobs).unwrap_or_else(|| entry.notes.clone()),
        tags: tags.filter(|tags| !tags.is_empty()).collect(),
        jobs,
        until: None,
        disagreement: None,
        fact,
    };
    if !row.is_shared {
        stand(&mut row, &entry, data, now);
    }
    row
}

/// What was noted of the jobs on a target when they were started; `None` where nothing was.
pub fn notes_of(data: &Data, jobs: &[JobId]) -> Option<String> {
    let all = jobs.iter().filter_map(|job| data.job(job)?.notes.as_deref());
    let mut noted: Vec<&str> = all.filter(|notes| !notes.is_empty()).collect();
    noted.dedup();
    (!noted.is_empty()).then(|| noted.join("; "))
}

/// The order of trust.
fn stand(row: &mut Row, entry: &Entry, data: &Data, now: Timestamp) {
    let kept = entry.reserved(now, |user| data.user(user).is_some());
    if let Some(job) = row.jobs.first() {
        row.standing = Standing::Running;
        row.user = Some(job.user.as_str().to_owned());
        if row.notes.is_empty()
            && let Some(record) = data.job(job)
        {
            row.notes = record.job_tags.clone().unwrap_or_default();
        }
    } else if let Some(standing) = by_state(row.fact.state) {
        row.standing = standing;
        row.user.clone_from(&entry.user);
    } else if let Some(kept) = kept {
        row.standing = Standing::Reserved;
        row.user = Some(kept.user.as_str().to_owned());
        row.until = Some(kept.until);
    } else {
        row.standing = match entry.status {
            Some(Written::Running) => Standing::Running,
            Some(Written::Reserved) => Standing::Reserved,
            Some(Written::Error) => Standing::Error,
            Some(Written::Gone) => Standing::Gone,
            Some(Written::Free) | None => Standing::Free,
        };
        if row.standing != Standing::Free {
            row.user.clone_from(&entry.user);
        }
    }
    row.disagreement = disagreement(row, entry);
}

/// What the control plane settles by itself.
fn by_state(state: TargetState) -> Option<Standing> {
    match state {
        TargetState::Pending => Some(Standing::Creating),
        TargetState::Preempted
        | TargetState::Deleting
        | TargetState::Gone
        | TargetState::Stopped => Some(Standing::Gone),
        TargetState::Unknown => Some(Standing::Unknown),
        TargetState::Ready | TargetState::NotWatched => None,
    }
}

/// Where people wrote something else than what is so.
fn disagreement(row: &Row, entry: &Entry) -> Option<String> {
    let written = entry.status?;
    let told = |status: Written| match (&entry.user, status) {
        (Some(user), Written::Running | Written::Reserved | Written::Error) => {
            format!("people wrote: {} by {user}", status.as_str())
        }
        _ => format!("people wrote: {}", status.as_str()),
    };
    let agrees = match row.standing {
        Standing::Running => {
            matches!(written, Written::Running | Written::Reserved | Written::Error)
                && entry.user.as_ref().is_none_or(|user| Some(user) == row.user.as_ref())
        }
        Standing::Gone | Standing::Creating | Standing::Unknown | Standing::Reserved => true,
        Standing::Free => written == Written::Free,
        Standing::Error => written == Written::Error,
    };
    (!agrees).then(|| told(written))
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The types; any of them.
    pub types: &'a [TypeExpr],
    /// Reclaimable ones only, or on-demand ones only.
    pub reclaimable: Option<bool>,
    /// The zones, regions or continents in which it may be; any.
    pub zones: &'a [String],
    /// For whom.
    pub user: &'a UserName,
    /// The zone of the newest checkpoint.
    pub zone: Option<&'a str>,
}

impl Wanted<'_> {
    /// Whether a target is of the kind that is wanted.
    pub fn fits(&self, row: &Row) -> bool {
        is_of(row, self.types, self.reclaimable) && is_in(row, self.zones)
    }
}

/// Whether a target is of one of the types (none: of any), and paid for as asked.
pub fn is_of(row: &Row, types: &[TypeExpr], reclaimable: Option<bool>) -> bool {
    let accelerator = row.accelerator.as_deref();
    (types.is_empty() || types.iter().any(|of| of.includes(accelerator)))
        && reclaimable.is_none_or(|wanted| row.pricing.is_reclaimable() == wanted)
}

/// Whether a target is in one of these zones, regions or continents (none: anywhere).
pub fn is_in(row: &Row, zones: &[String]) -> bool {
    let zone = row.zone.as_deref().unwrap_or_default();
    let is_below = |of: &String| zone.strip_prefix(&**of).is_some_and(|rest| rest.starts_with('-'));
    zones.is_empty() || zones.iter().any(|of| of == zone || is_below(of))
}

/// A target that may be taken, and why before the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Full name.
    pub target: TargetName,
    /// Why it is the first choice, in words.
    pub reason: String,
}

/// What may be taken, the best first: what the user keeps, then the zone of the checkpoint, then the
/// earliest generation and the smallest size, then what was taken away less often (by what was `seen` of targets like
/// each), then what has the most time left.
pub fn choose(rows: &[Row], wanted: &Wanted<'_>, seen: &dyn Fn(&Row) -> SeenOf) -> Vec<Pick> {
    let own = |row: &Row| {
        row.standing == Standing::Reserved && row.user.as_deref() == Some(wanted.user.as_str())
    };
    let near = |row: &Row| wanted.zone.is_some() && row.zone.as_deref() == wanted.zone;
    let mut free: Vec<&Row> = rows
        .iter()
        .filter(|row| row.is_known && !row.is_shared && wanted.fits(row))
        .filter(|row| row.standing == Standing::Free || own(row))
        .collect();
    let kind = |row: &Row| {
        let of = row.accelerator.as_deref().and_then(types::parse_type);
        (!own(row), !near(row), of.is_none(), of)
    };
    let rest = |row: &Row| (Reverse(row.fact.since), row.label.clone());
    free.sort_by(|a, b| {
        // Nobody bigger is taken for it.
        let steadier = || seen(a).steadier(&seen(b));
        kind(a).cmp(&kind(b)).then_with(steadier).then_with(|| rest(a).cmp(&rest(b)))
    });
    let others = free.len();
    free.into_iter()
        .map(|row| {
            let reason = if own(row) {
                "you keep it".to_owned()
            } else if near(row) {
                format!("in {}, where your newest checkpoint is", wanted.zone.unwrap_or_default())
            } else if others == 1 {
                "the only free one".to_owned()
            } else {
                format!("the first of {others} free ones")
            };
            Pick { target: row.target.clone(), reason }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Standing::{Creating, Free, Gone, Reserved, Running, Unknown};
    use super::*;
    use crate::model::board::Reservation;
    use crate::plan::seen::SeenRuns;

    fn data() -> Data {
        let text = r#"{ "users": { "alice": {}, "bob": {} },
            "tpu_aliases": { "a": "lab-v2-8-1", "b": "lab-v2-8-2", "c": "lab-v3-8-1" },
            "all_tpus": { "zone-1": ["lab-v2-8-1", "lab-v3-8-1"], "zone-2": ["lab-v2-8-2"],
                          "spot": ["lab-v2-8-2"] } }"#;
        Data::parse(text.as_bytes()).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second)
    }

    fn write(data: &mut Data, name: &str, entry: Entry) {
        data.board_mut().set(&TargetName::from(name), entry);
    }

    fn rows_of(data: &Data, live: &[(&str, &str)], states: &[(&str, TargetState)]) -> Vec<Row> {
        let mut jobs: HashMap<TargetName, Vec<JobId>> = HashMap::new();
        for (target, job) in live {
            jobs.entry(TargetName::from(*target)).or_default().push(JobId::parse(job).unwrap());
        }
        let targets = states
            .iter()
            .map(|(name, state)| {
                let name = TargetName::from(*name);
                (name.clone(), TargetFact::new(name, *state, "WORD", at(0)))
            })
            .collect();
        let facts = BoardFacts { data, live: &jobs, targets: &targets, others: &[], now: at(100) };
        rows(facts).into_iter().filter(|row| !row.is_shared).collect()
    }

    #[test]
    fn live_jobs_outrank_the_cloud_and_the_cloud_outranks_people() {
        let mut data = data();
        let reserved = |user: &str, until| Entry {
            reservation: Some(Reservation { user: UserName::from(user), until: at(until) }),
            ..Entry::default()
        };
        write(&mut data, "lab-v2-8-1", reserved("alice", 200));
        let standing =
            |rows: &[Row]| -> Vec<Standing> { rows.iter().map(|row| row.standing).collect() };
        assert_eq!(standing(&rows_of(&data, &[], &[])), [Reserved, Free, Free]);
        let live = [("lab-v2-8-1", "bob/3")];
        assert_eq!(standing(&rows_of(&data, &live, &[])), [Running, Free, Free]);
        let states = [
            ("lab-v2-8-1", TargetState::Preempted),
            ("lab-v2-8-2", TargetState::Pending),
            ("lab-v3-8-1", TargetState::Unknown),
        ];
        assert_eq!(standing(&rows_of(&data, &[], &states)), [Gone, Creating, Unknown]);
        write(&mut data, "lab-v2-8-1", reserved("alice", 100));
        assert_eq!(rows_of(&data, &[], &[])[0].standing, Free, "it is over");
        write(&mut data, "lab-v2-8-1", reserved("zoe", 200));
        assert_eq!(rows_of(&data, &[], &[])[0].standing, Free, "its user is gone");
    }

    #[test]
    fn this_machine_stands_first_and_is_never_chosen() {
        let data = data();
        let (live, targets) = (HashMap::new(), HashMap::new());
        let facts =
            BoardFacts { data: &data, live: &live, targets: &targets, others: &[], now: at(100) };
        let rows = rows(facts);
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["local", "a", "b", "c"]);
        assert!(rows[0].is_shared && !rows[1].is_shared);
        let alice = UserName::from("alice");
        let wanted = Wanted { types: &[], reclaimable: None, zones: &[], user: &alice, zone: None };
        let picks = choose(&rows, &wanted, &|_| SeenOf::default());
        assert!(picks.iter().all(|pick| pick.target != Target::local().name));
    }

    #[test]
    fn what_people_wrote_and_is_not_so_is_shown() {
        let mut data = data();
        let running = Entry {
            status: Some(Written::Running),
            user: Some("carol".to_owned()),
            ..Entry::default()
        };
        write(&mut data, "lab-v2-8-1", running);
        let rows = rows_of(&data, &[], &[]);
        assert_eq!((rows[0].standing, rows[0].user.as_deref()), (Running, Some("carol")));
        assert_eq!(rows[0].disagreement, None);
        let rows = rows_of(&data, &[("lab-v2-8-1", "bob/3")], &[]);
        assert_eq!(rows[0].user.as_deref(), Some("bob"));
        assert_eq!(rows[0].disagreement.as_deref(), Some("people wrote: running by carol"));
    }

    #[test]
    fn of_two_of_a_type_the_steadier_comes_first_and_nothing_bigger_is_taken_for_it() {
        let data = data();
        let rows = rows_of(&data, &[], &[]);
        let alice = UserName::from("alice");
        let wanted = Wanted { types: &[], reclaimable: None, zones: &[], user: &alice, zone: None };
        let taken = |row: &Row| {
            let preemptions = match row.label.as_str() {
                "a" => 3,
                "b" => 1,
                _ => 0,
            };
            let runs = SeenRuns { runs: 3, worked_s: 3600, preemptions, since: None };
            SeenOf { runs, ..SeenOf::default() }
        };
        let names: Vec<String> =
            choose(&rows, &wanted, &taken).iter().map(|pick| pick.target.to_string()).collect();
        assert_eq!(names, ["lab-v2-8-2", "lab-v2-8-1", "lab-v3-8-1"]);
    }

    #[test]
    fn the_best_free_one_comes_first_with_the_reason() {
        let mut data = data();
        let alice = UserName::from("alice");
        let any = [TypeExpr::any()];
        let wanted =
            Wanted { types: &any, reclaimable: None, zones: &[], user: &alice, zone: None };
        let first = |data: &Data, wanted: &Wanted<'_>| {
            let rows = rows_of(data, &[], &[]);
            choose(&rows, wanted, &|_| SeenOf::default()).into_iter().next()
        };
        let pick = first(&data, &wanted).unwrap();
        assert_eq!(
            (pick.target.as_str(), pick.reason.as_str()),
            ("lab-v2-8-1", "the first of 3 free ones")
        );
        let near = Wanted { zone: Some("zone-2"), ..wanted.clone() };
        assert_eq!(first(&data, &near).unwrap().target.as_str(), "lab-v2-8-2");
        let spot = Wanted { reclaimable: Some(true), ..wanted.clone() };
        assert_eq!(first(&data, &spot).unwrap().reason, "the only free one");
        let kept = |user: &str| Entry {
            reservation: Some(Reservation { user: UserName::from(user), until: at(200) }),
            ..Entry::default()
        };
        write(&mut data, "lab-v3-8-1", kept("alice"));
        assert_eq!(first(&data, &near).unwrap().reason, "you keep it");
        write(&mut data, "lab-v3-8-1", kept("bob"));
        let v3 = [TypeExpr::parse("v3").unwrap()];
        let only = Wanted { types: &v3, ..wanted };
        assert_eq!(first(&data, &only), None, "bob keeps it");
    }
}
