//! Moving in: reads an existing data.json and what the original keeps beside it, and says what it found
//! and what using it would change. Reads only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use tpu_core::model::data::{Data, OUR_KEYS};
use tpu_core::model::job::Status;
use tpu_core::model::settings::SettingOrigin;
use tpu_core::model::time;
use tpu_core::text::counted;
use tpu_system::store::disk::Disk;
use tpu_system::store::{Paths, original};

use crate::base::names;
use crate::{Ctx, Error};

/// One user of the file.
#[derive(Clone, Debug)]
pub struct FoundUser {
    /// Name.
    pub name: String,
    /// tmux session.
    pub tmux_name: String,
    /// How many directories.
    pub dirs: usize,
    /// How many jobs of each status.
    pub jobs: BTreeMap<String, usize>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The data file.
    pub data: PathBuf,
    /// Its users.
    pub users: Vec<FoundUser>,
    /// How many targets it names.
    pub targets: usize,
    /// How many target aliases it has.
    pub aliases: usize,
    /// Top-level keys that are nobody's; they stay.
    pub unknown_keys: Vec<String>,
    /// Whether reading and writing it gives the very same bytes.
    pub same_bytes: bool,
    /// What the original keeps beside it, and what becomes of that.
    pub beside: Vec<String>,
    /// What a person should know.
    pub remarks: Vec<String>,
    /// What using the file changes.
    pub changes: Vec<String>,
}

/// Looks at a file of the original, or at the directory that holds it. `words` are those of the command
/// line, which a user's name should not be.
pub fn look(ctx: &Ctx, path: &Path, commands: &[String]) -> Result<Report, Error> {
    let path = if path.is_dir() { path.join("data.json") } else { path.to_owned() };
    let disk = &**ctx.store.disk();
    let bytes = disk.read(&path).map(|contents| contents.bytes).map_err(|e| {
        Error::not_found(format!("cannot read {}: {e}", path.display()))
            .hint("name the original's data.json, or the directory in which it lies")
    })?;
    let data = Data::parse(&bytes).map_err(|e| {
        Error::state(format!("{} cannot be read as data: {e}", path.display()))
            .hint("correct that place; the original cannot read it either, if it is no JSON")
    })?;
    let raw = data.to_value();
    let paths = Paths::new(path.clone());
    let mut report = Report {
        users: data.users().iter().map(member).collect(),
        targets: data.registry().names().len(),
        aliases: data.registry().aliases().count(),
        unknown_keys: raw
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys())
            .filter(|key| !OUR_KEYS.contains(&key.as_str()) && *key != "pre_info")
            .cloned()
            .collect(),
        same_bytes: data.to_bytes() == bytes,
        beside: beside(ctx, disk, &paths),
        remarks: remarks(ctx, &data, &raw, commands),
        changes: changes(&data, &paths),
        data: path,
    };
    if !report.same_bytes {
        report
            .remarks
            .push("written back unchanged, its bytes would differ: keep a copy".to_owned());
    }
    Ok(report)
}

fn member(user: &tpu_core::model::data::User) -> FoundUser {
    let mut jobs = BTreeMap::new();
    for job in user.jobs() {
        *jobs.entry(job.status.word().unwrap_or("starting").to_owned()).or_insert(0) += 1;
    }
    FoundUser {
        name: user.name.as_str().to_owned(),
        tmux_name: user.tmux_name.clone(),
        dirs: user.working_dir.len(),
        jobs,
    }
}

/// What lies beside it.
fn beside(ctx: &Ctx, disk: &dyn Disk, paths: &Paths) -> Vec<String> {
    let mut said = Vec::new();
    let list = |name: &str| -> Option<Result<usize, String>> {
        let bytes = disk.read(&paths.dir().join(name)).ok()?.bytes;
        Some(match serde_json::from_slice::<Value>(&bytes) {
            Ok(Value::Array(list)) => Ok(list.len()),
            Ok(Value::Object(map)) => Ok(map.len()),
            Ok(_) => Err("is no list".to_owned()),
            Err(e) => Err(format!("is no JSON: {e}")),
        })
    };
    match list("legacy.json") {
        Some(Ok(n)) => said.push(format!(
            "legacy.json: {}; it stays the original's, tpu archives into tpu-state/archive.jsonl",
            counted(n, "archived job")
        )),
        Some(Err(why)) => said.push(format!("legacy.json {why}; nothing depends on it")),
        None => {}
    }
    match list("queue.json") {
        Some(Ok(0)) => said.push("queue.json: nothing waits".to_owned()),
        Some(Ok(n)) => said.push(format!(
            "queue.json: {} in line; tpu leaves that to the original, and waits with: tpu run TYPE --wait",
            counted(n, "task")
        )),
        Some(Err(why)) => said.push(format!("queue.json {why}; the original's queue stands still")),
        None => {}
    }
    let lock = paths.original_lock();
    if disk.stat(&lock).is_ok() {
        said.push(match original::look(disk, &lock, ctx.clock.now()) {
            None => "lock.json: nobody works on the data; tpu waits whenever the original does"
                .to_owned(),
            Some(flag) => {
                let by = flag.user.as_deref().map(|user| format!(" by {user}")).unwrap_or_default();
                let age = time::age(flag.age_s);
                if flag.is_fresh() {
                    format!("lock.json: locked{by} for {age}; tpu waits until that is over")
                } else {
                    format!(
                        "lock.json: locked{by} for {age}, so left over; tpu takes no notice of it"
                    )
                }
            }
        });
    }
    said
}

/// What a person should know before moving in.
fn remarks(ctx: &Ctx, data: &Data, raw: &Value, commands: &[String]) -> Vec<String> {
    let mut said = Vec::new();
    for user in data.users() {
        let name = user.name.as_str();
        if names::meaning_in_grammar(name, commands).is_some()
            || data.resolve_target(name).is_some()
        {
            said.push(format!("user '{name}' has the name of something else: say user={name}"));
        }
        let twin = data.users().iter().find(|other| {
            other.name != user.name && other.tmux_name == user.tmux_name && other.name < user.name
        });
        if let Some(twin) = twin {
            said.push(format!(
                "{} and {name} share the tmux session {}",
                twin.name, user.tmux_name
            ));
        }
        for (slot, path) in &user.working_dir {
            if !Path::new(path).is_dir() {
                said.push(format!("directory {slot} of {name}: {path} is not there"));
            }
        }
        if let Err(error) = ctx.settings(Some(user)) {
            said.push(format!(
                "settings of {name}: {error} ({})",
                SettingOrigin::User(name.to_owned())
            ));
        }
    }
    let live = data.jobs().filter(|job| job.status.is_live()).count();
    if live > 0 {
        said.push(format!(
            "alive by the file: {}, with windows that are found by session and number: tpu check",
            counted(live, "job")
        ));
    }
    let recover =
        data.jobs().filter(|job| matches!(job.status, Status::Error(_)) && job.child.is_none());
    let recover = recover.filter(|job| job.monitor).count();
    if recover > 0 {
        said.push(format!(
            "continued by nobody: {}; before `tpu daemon start` look at: tpu daemon plan",
            counted(recover, "failed job")
        ));
    }
    let misspelt = raw["users"].as_object().into_iter().flatten().flat_map(|(_, user)| {
        user["job_data"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|job| job.get("staage_dir").is_some())
    });
    let misspelt = misspelt.count();
    if misspelt > 0 {
        let records = counted(misspelt, "record");
        said.push(format!("spelt staage_dir in {records}: that is understood and stays"));
    }
    let freq = raw["monitor_config"]["checking_freq"].as_u64();
    if let Some(freq) =
        freq.filter(|freq| *freq != u64::from(data.monitor_config().checking_freq()))
    {
        said.push(format!(
            "checking_freq {freq} was never read by the original; the daemon looks every {} s (tpu -smc changes it)",
            data.monitor_config().checking_freq()
        ));
    }
    said
}

/// What using the file changes.
fn changes(data: &Data, paths: &Paths) -> Vec<String> {
    let mut said = vec![
        "nothing now: looking never writes".to_owned(),
        format!(
            "with the first change: {} beside it, a copy of the old version in {}, and {}",
            name(&paths.lock()),
            name(&paths.backups()),
            name(&paths.state())
        ),
        "unknown keys, their order and spelling stay; the original still reads the file".to_owned(),
    ];
    if data.jobs().any(|job| job.launch.is_none()) {
        said.push(
            "records of new jobs hold more in extra_msgs (launch, place); old ones stay".to_owned(),
        );
    }
    said
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
