//! Real clusters: a controller, nodes and a key of a test's own in a temporary directory, on ports of loopback that
//! nobody else has. Ended by their process ids, with every job and every step that ran there.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::proc::{self, Output, Spawn};
use tpu_system::sys::procs::{self, Process, Signal, Table};
use tpu_system::sys::random::{OsRandom, Random as _};

use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// Where the daemons are, which are in no ordinary user's search path.
const PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";
/// What a cluster is made of.
const PROGRAMS: [&str; 6] = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol"];

/// Whether there is a Slurm to test with; says so if not.
pub(crate) fn is_installed() -> bool {
    let is_there = |name: &str| PATH.split(':').any(|dir| Path::new(dir).join(name).is_file());
    let missing = PROGRAMS.into_iter().find(|name| !is_there(name));
    if let Some(name) = missing {
        let packages = "slurmctld, slurmd, slurm-client, munge";
        let said = writeln!(std::io::stderr(), "skipped: there is no {name} ({packages})");
        said.unwrap();
    }
    missing.is_none()
}

/// What becomes of a job of the partition `low` when one of `high` wants its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preempted {
    /// Slurm starts it again by itself.
    Requeued,
    /// It is over.
    Cancelled,
}

impl Preempted {
    fn word(self) -> &'static str {
        match self {
            Self::Requeued => "REQUEUE",
            Self::Cancelled => "CANCEL",
        }
    }
}

/// How a cluster is made.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Nodes `n1`, `n2`, …
    pub(crate) nodes: u16,
    /// Processors of each.
    pub(crate) processors: u16,
    /// What becomes of jobs in `low`, of which those in `high` take the place.
    pub(crate) preempted: Preempted,
    /// Two GPUs, `a100`, on each node. Only root can make the files for them.
    pub(crate) has_gpus: bool,
    /// Seconds for which the controller remembers a job that is over.
    pub(crate) min_job_age: u32,
    /// Seconds between SIGTERM and SIGKILL.
    pub(crate) kill_wait: u32,
    /// Whether what has ended is written to a file, which `sacct -c` reads.
    pub(crate) keeps_ended: bool,
    /// Seconds after which a message is not answered any more.
    pub(crate) message_timeout: u32,
    /// Longest time of a job in `low`, as in `slurm.conf`.
    pub(crate) max_time: &'static str,
    /// Number of the first job.
    pub(crate) first_job: u32,
    /// Lines of `slurm.conf` beside ours.
    pub(crate) more: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            nodes: 2,
            processors: 4,
            preempted: Preempted::Cancelled,
            has_gpus: false,
            min_job_age: 3600,
            kill_wait: 1,
            keeps_ended: true,
            message_timeout: 10,
            max_time: "INFINITE",
            first_job: 1,
            more: "",
        }
    }
}

/// A cluster that is running.
pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    setup: Setup,
    port: u16,
    key: Option<Child>,
    controller: Option<Child>,
    nodes: Vec<Option<Child>>,
}

/// A job as the controller has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its number, each task of an array its own.
    pub(crate) id: u32,
    /// The number by which it was submitted: that of its array, else its own.
    pub(crate) submitted: u32,
    /// The tasks that it is of its array; empty where it is none.
    pub(crate) tasks: String,
    /// Its name.
    pub(crate) name: String,
    /// What was said of it.
    pub(crate) comment: String,
    /// PENDING, RUNNING, …
    pub(crate) state: String,
    /// Why it waits.
    pub(crate) reason: String,
    /// Where it runs.
    pub(crate) nodes: String,
}

impl Cluster {
    /// Two nodes on which jobs of `low` are cancelled when one of `high` wants their place.
    pub(crate) fn new() -> Self {
        Self::with(Setup::default())
    }

    /// One of another make. Ready when its nodes are.
    pub(crate) fn with(setup: Setup) -> Self {
        let dir = tempfile::Builder::new().prefix("slurm-").tempdir().unwrap();
        let nodes = (0..setup.nodes).map(|_| None).collect();
        let mut cluster = Self { dir, setup, port: 0, key: None, controller: None, nodes };
        let mut key = vec![0; 1024];
        OsRandom.fill(&mut key);
        put_secret(&cluster.path("munge.key"), &key);
        // Whoever takes one of the ports between the look at it and the start makes another try necessary.
        let came_up = (0..20).any(|_| {
            cluster.port = free_ports(cluster.setup.nodes + 1);
            cluster.configure();
            cluster.bring_up()
        });
        assert!(came_up, "{}", cluster.logs());
        cluster
    }

    /// Below the directory of the cluster.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// The file that says all about it.
    pub(crate) fn conf(&self) -> String {
        self.path("slurm.conf").display().to_string()
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        format!("t{}", self.port)
    }

    /// When a command is run as a person on its login node would.
    pub(crate) fn command(&self, words: &[&str]) -> Spawn {
        Spawn::new(words[0])
            .args(words[1..].iter().copied())
            .timeout(Duration::from_secs(30))
            .cwd(self.dir.path())
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.dir.path())
            .env("SLURM_CONF", self.conf())
    }

    /// What it says to a command; what it refuses fails the test.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = proc::run(&self.command(words)).unwrap();
        assert!(output.status.success(), "{words:?}: {}", output.complaint());
        output.text().trim_end_matches('\n').to_owned()
    }

    fn try_run(&self, words: &[&str]) -> Output {
        proc::run(&self.command(words)).unwrap()
    }

    // -- what is in it

    /// All jobs that the controller knows, also those that are over.
    #[track_caller]
    pub(crate) fn jobs(&self) -> Vec<Listed> {
        let fields = ["%A", "%F", "%K", "%j", "%k", "%T", "%r", "%N"].join("\u{1f}");
        let text = self.run(&["squeue", "--all", "--states=all", "--noheader", "-o", &fields]);
        let mut jobs: Vec<Listed> = text.lines().map(Listed::read).collect();
        jobs.sort_by_key(|job| job.id);
        jobs
    }

    /// One of them.
    #[track_caller]
    pub(crate) fn job(&self, id: u32) -> Listed {
        let jobs = self.jobs();
        let found = jobs.iter().find(|job| job.id == id).cloned();
        found.unwrap_or_else(|| panic!("the cluster has no job {id}: {jobs:?}"))
    }

    /// Those whose name or comment says this.
    #[track_caller]
    pub(crate) fn jobs_of(&self, token: &str) -> Vec<Listed> {
        let is_meant = |job: &Listed| job.name.contains(token) || job.comment.contains(token);
        self.jobs().into_iter().filter(is_meant).collect()
    }

    /// Waits until a job is in a state.
    #[track_caller]
    pub(crate) fn wait_state(&self, id: u32, state: &str) {
        wait_until(&format!("job {id} is {state}"), || self.job(id).state == state);
    }

    /// A job of somebody who does not use our program; its number.
    #[track_caller]
    pub(crate) fn submit(&self, options: &[&str], script: &str) -> u32 {
        let out = format!("--output={}", self.path("by-hand-%j.out").display());
        let fixed = ["sbatch", "--parsable", &out];
        let words: Vec<&str> =
            fixed.into_iter().chain(options.iter().copied()).chain(["--wrap", script]).collect();
        let said = self.run(&words);
        said.split(';').next().unwrap().parse().unwrap()
    }

    /// Numbers of all submissions that the controller has ever accepted, as its log has them.
    pub(crate) fn submissions(&self) -> Vec<u32> {
        let log = std::fs::read_to_string(self.path("slurmctld.log")).unwrap();
        let number = |line: &str| {
            let (_, rest) = line.split_once("_slurm_rpc_submit_batch_job: JobId=")?;
            rest.split(' ').next()?.parse().ok()
        };
        log.lines().filter_map(number).collect()
    }

    // -- what happens to it

    /// The controller ends in good order: what it knows is written down.
    pub(crate) fn stop_controller(&mut self) {
        use rustix::process::{Pid, Signal, kill_process};
        let Some(child) = &mut self.controller else { return };
        kill_process(Pid::from_child(child), Signal::TERM).unwrap();
        wait_until("the controller ends", || child.try_wait().unwrap().is_some());
        self.controller = None;
    }

    /// The controller dies: what it has learned in the last seconds is lost.
    fn kill_controller(&mut self) {
        let Some(mut child) = self.controller.take() else { return };
        let scripts = descendants(child.id());
        drop(child.kill());
        drop(child.wait());
        end(scripts);
    }

    /// The controller is there again, and knows what it knew.
    pub(crate) fn start_controller(&mut self) {
        assert!(self.try_start_controller(), "{}", self.logs());
    }

    /// The controller stands still: who asks gets no answer, until it goes on.
    pub(crate) fn hold_controller(&self, held: bool) {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = Pid::from_child(self.controller.as_ref().unwrap());
        kill_process(pid, if held { Signal::STOP } else { Signal::CONT }).unwrap();
    }

    /// Somebody sets the cluster up anew, under its old name and on its old ports: it has forgotten every job, and
    /// gives their numbers again.
    pub(crate) fn reset(&mut self) {
        self.kill_controller();
        for node in 0..self.nodes.len() {
            self.kill_node(node);
        }
        self.end_jobs();
        std::fs::remove_dir_all(self.path("state")).unwrap();
        self.start_controller();
        (0..self.nodes.len()).for_each(|node| self.start_node(node));
        self.wait_ready();
    }

    /// Keeps what the controller knows now, for [`Self::restore_state`].
    pub(crate) fn save_state(&mut self) {
        self.stop_controller();
        let (state, saved) = (self.path("state"), self.path("state-saved"));
        let copied = proc::run(&Spawn::new("cp").arg("-a").arg(&state).arg(&saved)).unwrap();
        assert!(copied.status.success(), "{}", copied.complaint());
        self.start_controller();
    }

    /// Somebody sets the controller back to what it knew then.
    pub(crate) fn restore_state(&mut self) {
        self.kill_controller();
        std::fs::remove_dir_all(self.path("state")).unwrap();
        std::fs::rename(self.path("state-saved"), self.path("state")).unwrap();
        self.start_controller();
    }

    /// An administrator takes a node, numbered from 0, out of service.
    pub(crate) fn set_node(&self, node: usize, state: &str) {
        let (name, state) = (format!("nodename=n{}", node + 1), format!("state={state}"));
        self.run(&["scontrol", "update", &name, &state, "reason=test"]);
    }

    /// The daemon of a node dies; what ran there goes on, unseen.
    pub(crate) fn kill_node(&mut self, node: usize) {
        let Some(mut child) = self.nodes[node].take() else { return };
        drop(child.kill());
        drop(child.wait());
    }

    /// The daemon of a node is there.
    pub(crate) fn start_node(&mut self, node: usize) {
        self.kill_node(node);
        let name = format!("n{}", node + 1);
        self.nodes[node] = Some(self.daemon("slurmd", &["-D", "-N", &name]));
    }

    /// Waits until every node can take jobs.
    #[track_caller]
    pub(crate) fn wait_ready(&self) {
        wait_until("the nodes are idle", || self.are_nodes_idle());
    }

    // -- its own affairs

    fn are_nodes_idle(&self) -> bool {
        let states = self.try_run(&["sinfo", "--noheader", "--Node", "-o", "%T"]);
        let states = states.text();
        states.lines().count() == self.nodes.len() * 2 && states.lines().all(|s| s == "idle")
    }

    /// All that its daemons have said.
    pub(crate) fn logs(&self) -> String {
        let entries = std::fs::read_dir(self.dir.path()).into_iter().flatten().flatten();
        let logs = entries.filter(|e| e.path().extension().is_some_and(|name| name == "log"));
        logs.map(|log| std::fs::read_to_string(log.path()).unwrap_or_default()).collect()
    }

    fn configure(&self) {
        let at = |name: &str| self.path(name).display().to_string();
        let Setup { nodes, processors, preempted, .. } = self.setup;
        let Setup { min_job_age, kill_wait, message_timeout, .. } = self.setup;
        let (port, dir) = (self.port, self.dir.path().display());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let host = host.split('.').next().unwrap_or_default();
        let user = self.try_run(&["id", "-un"]).text().trim().to_owned();
        let (max_time, mode) = (self.setup.max_time, preempted.word());
        let ended = if self.setup.keeps_ended {
            format!("JobCompType=jobcomp/filetxt\nJobCompLoc={dir}/jobcomp.txt")
        } else {
            "JobCompType=jobcomp/none".to_owned()
        };
        let mut conf = format!(
            "ClusterName={}\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\n\
             SlurmUser={user}\nSlurmdUser={user}\n\
             AuthType=auth/munge\nAuthInfo=socket={dir}/munge.sock\nCredType=cred/munge\n\
             CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n\
             StateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/spool.%n\n\
             SlurmctldPidFile={dir}/slurmctld.pid\nSlurmdPidFile={dir}/slurmd.%n.pid\n\
             SlurmctldLogFile={dir}/slurmctld.log\nSlurmdLogFile={dir}/slurmd.%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\n\
             MpiDefault=none\nJobAcctGatherType=jobacct_gather/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n\
             SchedulerType=sched/backfill\n\
             SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0\n\
             PriorityType=priority/basic\nPreemptType=preempt/partition_prio\nPreemptMode={mode}\n\
             JobRequeue=1\nAccountingStorageType=accounting_storage/none\n{ended}\n\
             ReturnToService=0\nSlurmdTimeout=10\nSlurmctldTimeout=10\nInactiveLimit=0\n\
             KillWait={kill_wait}\nMinJobAge={min_job_age}\nMessageTimeout={message_timeout}\n\
             FirstJobId={}\nSlurmdParameters=config_overrides\nGresTypes=gpu\n{}\n",
            self.name(),
            self.setup.first_job,
            self.setup.more,
        );
        let gpus = if self.setup.has_gpus { " Gres=gpu:a100:2" } else { "" };
        for node in 1..=nodes {
            conf.push_str(&format!(
                "NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs={processors} RealMemory=4000{gpus} \
                 State=UNKNOWN\n",
                port + node,
            ));
        }
        conf.push_str(&format!(
            "PartitionName=low Nodes=ALL Default=YES MaxTime={max_time} State=UP PriorityTier=1 PreemptMode={mode}\n\
             PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF\n"
        ));
        write_file(&self.path("slurm.conf"), &conf);
        let mut gres = String::new();
        if self.setup.has_gpus {
            for gpu in ["gpu0", "gpu1"] {
                self.try_run(&["mknod", &at(gpu), "c", "1", "3"]);
            }
            gres = format!("Name=gpu Type=a100 File={dir}/gpu[0-1]\n");
        }
        write_file(&self.path("gres.conf"), &gres);
    }

    /// Starts all of it; false where a daemon does not live, as when its port has gone to somebody else.
    fn bring_up(&mut self) -> bool {
        if self.key.is_none() {
            let at = |option: &str, name: &str| format!("{option}={}", self.path(name).display());
            let words = [
                at("--key-file", "munge.key"),
                at("--socket", "munge.sock"),
                at("--pid-file", "munge.pid"),
                at("--log-file", "munge.log"),
                at("--seed-file", "munge.seed"),
            ];
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let words = [&["-F", "--force", "--num-threads=2"][..], &words].concat();
            self.key = Some(self.daemon("munged", &words));
            let socket = self.path("munge.sock");
            wait_until("munged listens", || socket.exists());
        }
        if !self.try_start_controller() {
            return false;
        }
        (0..self.nodes.len()).for_each(|node| self.start_node(node));
        let mut lives = true;
        wait_until("the nodes are idle", || {
            lives = self.nodes.iter_mut().flatten().all(|n| n.try_wait().unwrap().is_none());
            !lives || self.are_nodes_idle()
        });
        if !lives {
            self.kill_controller();
            (0..self.nodes.len()).for_each(|node| self.kill_node(node));
        }
        lives
    }

    fn try_start_controller(&mut self) -> bool {
        self.kill_controller();
        std::fs::create_dir_all(self.path("state")).unwrap();
        let mut child = self.daemon("slurmctld", &["-D"]);
        let mut lives = true;
        wait_until("the controller answers", || {
            lives = child.try_wait().unwrap().is_none();
            !lives
                || TcpStream::connect(("127.0.0.1", self.port)).is_ok()
                    && self.try_run(&["scontrol", "ping"]).text().contains("is UP")
        });
        self.controller = lives.then_some(child);
        lives
    }

    /// A program of the cluster, in the foreground, so that it is ours to collect.
    #[expect(clippy::disallowed_methods, reason = "the test ends this very daemon")]
    fn daemon(&self, program: &str, words: &[&str]) -> Child {
        let dir = PATH.split(':').find(|dir| Path::new(dir).join(program).is_file()).unwrap();
        let log = std::fs::File::create(self.path(&format!("{program}-said.log"))).unwrap();
        Command::new(Path::new(dir).join(program))
            .args(words)
            .env_clear()
            .env("PATH", PATH)
            .env("SLURM_CONF", self.conf())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Every process that belongs to it, with all that is below such a one: daemons, steps, and the jobs themselves.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let Ok(table) = Table::read() else { return Vec::new() };
        let uid = rustix::process::getuid().as_raw();
        // A `tpu` of the test has the variable as well, and belongs to the test.
        let is_of_slurm = |process: &&Process| {
            ["slurm", "srun", "munge"].iter().any(|name| process.name.starts_with(name))
        };
        let mut found = table.with_variable("SLURM_CONF", &self.conf(), uid);
        found.retain(is_of_slurm);
        found.extend(table.with_variable("SLURM_CLUSTER_NAME", &self.name(), uid));
        let below = table.below(found.iter().map(|process| process.pid).collect());
        found.extend(below);
        let mut found: Vec<Process> = found.into_iter().filter(|p| !p.zombie).cloned().collect();
        found.sort_by_key(|process| process.pid);
        found.dedup_by_key(|process| process.pid);
        found
    }

    /// Ends what runs on its nodes, and nothing else: its daemons are children of the test.
    fn end_jobs(&self) {
        let clock = SystemClock::new();
        let daemons: Vec<u32> = [&self.key, &self.controller]
            .into_iter()
            .chain(&self.nodes)
            .filter_map(|child| child.as_ref().map(Child::id))
            .collect();
        // No assertion: this also runs while a failed test unwinds.
        while clock.monotonic() < Duration::from_secs(10) {
            let mut left = self.processes();
            left.retain(|process| !daemons.contains(&process.pid));
            if left.is_empty() {
                return;
            }
            end(left);
            clock.sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing new is started from here on; then what was.
        for node in 0..self.nodes.len() {
            self.kill_node(node);
        }
        self.kill_controller();
        if let Some(mut child) = self.key.take() {
            drop(child.kill());
            drop(child.wait());
        }
        self.end_jobs();
    }
}

impl Listed {
    fn read(line: &str) -> Self {
        let fields: Vec<&str> = line.split('\u{1f}').collect();
        let [id, submitted, tasks, name, comment, state, reason, nodes] = fields[..] else {
            panic!("squeue said {line:?}")
        };
        Self {
            id: id.parse().unwrap(),
            submitted: submitted.parse().unwrap(),
            tasks: if tasks == "N/A" { String::new() } else { tasks.to_owned() },
            name: name.to_owned(),
            comment: comment.to_owned(),
            state: state.to_owned(),
            reason: reason.to_owned(),
            nodes: nodes.to_owned(),
        }
    }
}

fn descendants(pid: u32) -> Vec<Process> {
    let Ok(table) = Table::read() else { return Vec::new() };
    table.descendants(pid).into_iter().cloned().collect()
}

fn end(processes: Vec<Process>) {
    for process in processes {
        drop(procs::signal(&process, Signal::Kill));
    }
}

/// The first of so many ports in a row that are free, below those that the system gives to whoever connects.
fn free_ports(count: u16) -> u16 {
    loop {
        let first = 10_000 + u16::try_from(OsRandom.below(20_000)).unwrap();
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if (first..first + count).all(is_free) {
            return first;
        }
    }
}

fn put_secret(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o400).open(path).unwrap();
    file.write_all(bytes).unwrap();
}
