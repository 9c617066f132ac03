//! P17: what it costs to keep a thousand jobs of a Slurm cluster in view, as one array and as single ones, beside the
//! one `squeue` that answers for all of them; and P7 and P14 with them.
//!
//! The cluster is a real one of two nodes, on which eight of the jobs run and print; the others wait. Where there is no
//! Slurm, a line says so.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use tpu_core::model::ids::UserName;
use tpu_core::model::view::Whose;
use tpu_ops::Ctx;
use tpu_ops::act::outlook::look;
use tpu_ops::base::watch;
use tpu_ops::observe::snapshot::LookMemory;
use tpu_system::store::{OsDisk, atomic};
use tpu_system::sys::proc::{self, Spawn};
use tpu_system::sys::random::{OsRandom, Random as _};

use crate::Plan;
use crate::common::cluster::{Cluster, is_installed};
use crate::common::table::{Amount, Row, Table};
use crate::common::{Lab, TPU, ctx, data, in_turn, timed, words};
use crate::refresh::left_alone;
use crate::turn::{memory_of_monitor, timed_turn};

const ROUNDS: usize = 20;
const JOBS: u64 = 1_000;
/// What a job does: it prints a line a second.
const PROGRAM: &str = "n=0; while :; do n=$((n+1)); echo \"step $n/99999 loss 0.5\"; sleep 1; done";
/// Everything of Slurm's that a look could start.
const PROGRAMS: [&str; 6] = ["squeue", "sacct", "scontrol", "sinfo", "sbatch", "scancel"];

/// How the thousand were submitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Array,
    Single,
}

impl Shape {
    fn in_words(self) -> &'static str {
        match self {
            Self::Array => "an array of 1000 Slurm jobs",
            Self::Single => "1000 single Slurm jobs",
        }
    }
}

/// Both shapes, each on a cluster of its own.
pub(crate) fn slurm(table: &mut Table, _: &Plan) -> io::Result<()> {
    if !is_installed() {
        return table.push(&Row::said("P17 a look at 1000 Slurm jobs", "there is no Slurm here"));
    }
    for shape in [Shape::Array, Shape::Single] {
        let site = Site::new(shape)?;
        site.looks(table)?;
        site.processes(table)?;
        memory_of_monitor(table, &site.lab, &format!("the daemon, {}", shape.in_words()))?;
        left_alone(table, &site.lab, shape.in_words())?;
    }
    Ok(())
}

/// A thousand jobs on a cluster. What looks at it ends first.
struct Site {
    lab: Lab,
    cluster: Cluster,
    shape: Shape,
}

impl Site {
    fn new(shape: Shape) -> io::Result<Self> {
        let (lab, cluster) = (Lab::new()?, Cluster::new());
        let mut all = data(lab.dir(), &[]);
        all["monitor_config"] = json!({ "checking_freq": 1, "checking_freq_set": true });
        lab.write(&all)?;
        let conf = cluster.conf();
        let register = format!("register gpu --kind slurm --partition low --cluster {conf}");
        lab.run(TPU, &words(&register))?;
        let array = format!("0-{}%8", JOBS - 1);
        let of_shape: &[&str] = match shape {
            Shape::Array => &["--array", &array],
            Shape::Single => &[],
        };
        let fixed: &[&str] = &["run", "gpu", "alice", "-q"];
        lab.run(TPU, &[fixed, of_shape, &["--", "bash", "-c", PROGRAM]].concat())?;
        let site = Self { lab, cluster, shape };
        if shape == Shape::Single {
            site.submit_the_others()?;
        }
        site.until_eight_run()?;
        Ok(site)
    }

    /// Jobs like the first one, each under a launch of its own: as if they had been typed one by one.
    fn submit_the_others(&self) -> io::Result<()> {
        let mut all: Value = serde_json::from_slice(&std::fs::read(self.lab.data_path())?)?;
        let user = &mut all["users"]["alice"];
        let first = user["job_data"][0].clone();
        let logs = self.lab.dir().join("logs");
        let mut names = Vec::new();
        for window in 2..=JOBS {
            let (mut job, token) = (first.clone(), OsRandom.hex(16));
            let log = logs.join(window.to_string());
            std::fs::create_dir_all(&log)?;
            (job["windows_id"], job["log_dir"]) = (window.into(), json!(log));
            job["extra_msgs"]["launch"]["token"] = token.as_str().into();
            job["extra_msgs"]["engine"]["id"] = format!("tpu-{token}").into();
            user["job_data"].as_array_mut().into_iter().for_each(|jobs| jobs.push(job.clone()));
            names.push((format!("tpu-{token}"), log));
        }
        user["windows_offset"] = (JOBS + 1).into();
        self.lab.write(&all)?;
        for (name, log) in names {
            let output = format!("--output={}/output.log", log.display());
            let name = format!("--job-name={name}");
            let fixed = ["sbatch", "--partition=low", "--no-requeue", &name, &output];
            self.cluster.run(&[&fixed[..], &["--wrap", PROGRAM]].concat());
        }
        Ok(())
    }

    fn until_eight_run(&self) -> io::Result<()> {
        for _ in 0..600 {
            let jobs = self.cluster.jobs();
            if jobs.iter().filter(|job| job.state == "RUNNING").count() == 8 {
                return Ok(());
            }
        }
        Err(io::Error::other("eight jobs of a thousand do not run"))
    }

    /// The question that a look has to ask, by the barest program.
    fn squeue(&self, asked: &[String]) -> io::Result<Duration> {
        let spawn = Spawn::new("squeue")
            .args(asked.iter())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("SLURM_CONF", self.cluster.conf())
            .env("TZ", "UTC0");
        let (output, took) = timed(|| proc::run(&spawn));
        let output = output.map_err(io::Error::other)?;
        if output.text().lines().count() < 9 {
            return Err(io::Error::other(format!("squeue lists too few: {}", output.text())));
        }
        Ok(took)
    }

    /// Looks of the screen, a turn of the daemon and a whole command, beside that question.
    fn looks(&self, table: &mut Table) -> io::Result<()> {
        let asked =
            self.asked()?.into_iter().find(|call| call.first().is_some_and(|p| p == "squeue"));
        let asked = asked.ok_or_else(|| io::Error::other("a look has not asked squeue"))?;
        let own = ctx(&self.lab);
        let (mut memory, mut monitors) = (LookMemory::default(), LookMemory::default());
        let alice = UserName::from("alice");
        for _ in 0..3 {
            looked(&own, &mut memory, &alice)?;
            drop(timed_turn(&own, &mut monitors));
        }
        let times = in_turn(
            ROUNDS,
            &mut [
                &mut || looked(&own, &mut memory, &alice),
                &mut || self.squeue(asked.get(1..).unwrap_or_default()),
                &mut || timed_turn(&own, &mut monitors),
                &mut || self.lab.tpu("check --json"),
            ],
        )?;
        // Else it would look as if a daemon ran already.
        watch::forget(&own);
        let [screen, floor, turn, command] = times.as_slice() else {
            return Err(io::Error::other("four things give four samples"));
        };
        let what = self.shape.in_words();
        let least = floor.median();
        let most = Amount::Time(least * 13 / 10 + Duration::from_millis(5));
        let bound = "≤ 1.3 × the one squeue + 5 ms";
        for (figure, times) in [
            (format!("P17 a look at {what}, eight at work"), screen),
            (format!("P14 an idle turn of the daemon, {what}"), turn),
        ] {
            table.push(&Row::time(figure, times).floor(Amount::Time(least)).bound(most, bound))?;
        }
        let figure = format!("P17 `check --json`, {what}, the whole command");
        table.push(&Row::time(figure, command).floor(Amount::Time(least)))
    }

    /// The calls of Slurm's programs that one look makes.
    fn asked(&self) -> io::Result<Vec<Vec<String>>> {
        let (bin, calls) = (self.lab.dir().join("bin"), self.lab.dir().join("calls"));
        std::fs::create_dir_all(&bin)?;
        drop(std::fs::remove_file(&calls));
        for name in PROGRAMS {
            let script = format!(
                "#!/bin/sh\nprintf '%s\\t' {name} \"$@\" >>{0}; echo >>{0}\nexec /usr/bin/{name} \"$@\"\n",
                calls.display()
            );
            let path = bin.join(name);
            atomic::write_file(&OsDisk, &path, script.as_bytes(), 0o700)
                .map_err(io::Error::other)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        let spawn = self.lab.spawn(TPU, &words("check --json")).env("PATH", path);
        let output = proc::run(&spawn).map_err(io::Error::other)?;
        if !output.status.success() {
            return Err(io::Error::other(output.complaint()));
        }
        let text = std::fs::read_to_string(&calls)?;
        let call =
            |line: &str| line.split('\t').filter(|w| !w.is_empty()).map(str::to_owned).collect();
        Ok(text.lines().map(call).collect())
    }

    /// How many programs of Slurm's a look starts.
    fn processes(&self, table: &mut Table) -> io::Result<()> {
        let count = u32::try_from(self.asked()?.len()).unwrap_or(u32::MAX);
        let figure = format!("P17 programs that a look starts, {}", self.shape.in_words());
        let row = Row::of(figure, Amount::Count(f64::from(count)));
        table.push(&row.bound(Amount::Count(1.0), "≤ 1"))
    }
}

fn looked(ctx: &Ctx, memory: &mut LookMemory, user: &UserName) -> io::Result<Duration> {
    let (seen, took) = timed(|| look(ctx, memory, &Whose::of([user.clone()])));
    let seen = seen.map_err(|error| io::Error::other(error.message))?;
    let known = seen.jobs.iter().filter(|job| job.shown.unknown.is_none()).count();
    if known as u64 != JOBS {
        return Err(io::Error::other(format!("a look knows {known} of {JOBS} jobs")));
    }
    Ok(took)
}
