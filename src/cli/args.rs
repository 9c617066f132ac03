//! The command line as typed: clap's definitions, from which help, completions and man pages come.
//!
//! Nothing here looks at files. What the words mean is decided in `ops::act::selection`.

use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod board;
mod callbacks;
mod checkpoints;
mod cms;
mod daemon;
mod deferred;
mod files;
mod foreign;
mod globals;
mod hosts;
mod http;
mod insight;
mod jobman;
mod jobs;
mod kinds;
mod new_job;
mod overview;
mod queue;
mod state;
mod sweep;
mod targets;
mod tools;
mod users;
mod workers;

pub use board::{Board, Find, Notes, Reserve, SheetFormat, SheetStep};
pub use callbacks::{Finish, Launcher, LauncherStep};
pub use checkpoints::{CheckpointsArgs, CheckpointsStep, StorageArgs};
pub use cms::{
    CloudmeshFiles, Cms, CmsCluster, CmsClusterName, CmsClusterStep, CmsHostsStep, CmsIds, CmsJob,
    CmsJobFields, CmsJobStep, CmsNames, CmsPart, CmsQueue, CmsQueueJobs, CmsQueueRun, CmsQueueStep,
    CmsQueueWords, ForeignTool, ImportFrom,
};
pub use daemon::{AlsoServe, Daemon, DaemonStep, MonitorLog, RunDaemon, StartDaemon};
pub use deferred::Deferred;
pub use files::{
    Convert, ForeignJobFile, FormatName, FormatSchema, JobFiles, NotifyStep, SecretsStep,
};
pub use foreign::Foreign;
pub use globals::{Color, Globals};
pub use hosts::{
    AddHosts, DrainHosts, HostLimits, Hosts, HostsStep, Pools, PoolsStep, SetHosts, SomeHosts,
};
pub use http::{Http, ServeArgs, ServeCommand, TokenCreateArgs, TokenStep};
pub use insight::{ArchiveArgs, ArchiveStep, BillingArgs, DiskArgs, Insight, QuotaArgs, StatsArgs};
pub use jobman::{Jobman, JobmanIds, JobmanQueue, JobmanStep};
pub use jobs::{
    Again, Check, Clean, Clear, CloseWindows, History, JobFilesArgs, Kill, Logs, Maj, Many,
    MonitorArgs, Run, ScriptOfJob, ShowJob, Wait, WaitFor,
};
pub use kinds::{Brought, FromKind, OfJob, OfMachine, OfTarget, OptionsOfKind};
pub(super) use kinds::{have_kinds, kinds};
pub(in crate::cli) use kinds::{kind_commands, kind_words};
pub use new_job::{CommandOptions, FileOptions, JobOptions, TypeOptions};
pub use queue::{
    Dequeue, HoldJobs, OneQueue, QueueCommand, QueueStep, Requeue, RunQueue, SetPriority, SetQueue,
    SomeQueues, Submit,
};
pub use state::{DataStep, Export, Init, State};
pub use sweep::SweepArgs;
pub use targets::{
    Apply, CheckStatus, Import, Insist, OneTarget, Register, Sim, SimEvent, Targets, TargetsStep,
};
pub use tools::{Classify, Demo, Doctor};
pub use users::{AddUser, GetSettings, SetSettings};
pub use workers::{Copy, Describe, KillRemote, OfRecipe, Ssh, Workers};

/// What was typed.
#[derive(Debug)]
pub struct Cli {
    /// What holds for every command.
    pub global: Globals,
    /// The command; none opens the monitor or shows how to begin.
    pub command: Option<Command>,
}

/// Runs jobs here and elsewhere, shows how they are and why, and restarts them.
#[derive(Debug, Parser)]
#[command(name = "tpu", version, long_version = overview::VERSION, disable_help_subcommand = true)]
#[command(max_term_width = 100)]
#[command(override_usage = "tpu [OPTIONS] COMMAND [ARGS]...", disable_help_flag = true)]
#[command(help_template = "{about}\n\nUsage: {usage}{after-help}")]
#[command(after_help = overview::OVERVIEW)]
struct Root {
    #[command(flatten)]
    global: Globals,
}

impl Cli {
    /// The definitions of all commands with all that they take.
    pub fn definitions() -> clap::Command {
        let mut all = Self::commands();
        all.build();
        all
    }

    /// All commands, without what they take as long as nobody asks for it.
    fn commands() -> clap::Command {
        let root = Root::command();
        let about = root.get_about().cloned().unwrap_or_default();
        // The description of the list of commands is no description of the program.
        Command::augment_subcommands(root).about(about)
    }

    /// The definitions that `words` need: of the one command that some word names, or of all.
    pub fn definitions_for(words: &[OsString]) -> clap::Command {
        let mut needed = Self::only_named(words).unwrap_or_else(Self::commands);
        needed.build();
        needed
    }

    /// The definition of the one command that some word names. What it accepts, all of them accept in the same way. To
    /// give the flags that stand anywhere to each of a hundred commands takes longer than most commands do.
    fn only_named(words: &[OsString]) -> Option<clap::Command> {
        static IS_LATER: AtomicBool = AtomicBool::new(false);
        let mut all = Command::augment_subcommands(clap::Command::new("tpu"));
        let mut names = words.iter().filter_map(|word| word.to_str());
        let name = names.find(|word| all.find_subcommand(word).is_some())?;
        let named = std::mem::take(all.find_subcommand_mut(name)?);
        // To take the others apart, one by one, is work for nothing in a process that ends soon; the screen asks again.
        if !IS_LATER.swap(true, Ordering::Relaxed) {
            std::mem::forget(all);
        }
        Some(Root::command().subcommand(named))
    }

    /// Reads the words behind the program's name.
    pub fn parse_words(words: &[OsString]) -> Result<(Self, String), clap::Error> {
        let read = |command: clap::Command| {
            let program = std::iter::once(OsStr::new("tpu"));
            let line = program.chain(words.iter().map(OsString::as_os_str));
            let mut matches = command.try_get_matches_from(line)?;
            let name = matches.subcommand_name().unwrap_or("tpu").to_owned();
            // They are taken out: nobody asks the matches again.
            let global = Globals::from_arg_matches_mut(&mut matches)?;
            let named = matches.subcommand().is_some();
            let command = named.then(|| Command::from_arg_matches_mut(&mut matches)).transpose()?;
            Ok((Self { global, command }, name))
        };
        // What is said of the program itself needs no command.
        let of_program =
            |word: &OsString| ["--help", "--version", "-V"].iter().any(|it| word == it);
        if let [word] = words
            && of_program(word)
        {
            return read(Root::command());
        }
        match Self::only_named(words) {
            // Messages know all commands, so what one does not understand is read once more.
            Some(one) => read(one).or_else(|_| read(Self::commands())),
            None => read(Self::commands()),
        }
    }
}

/// Words of which each may be a user, a window, a `key=value`, …; sorted out by `ops::act::selection`.
#[derive(Debug, Clone, Default, Args)]
pub struct Words {
    /// Jobs, targets, users or values, in any order; see the examples
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
}

/// Every command. `cli::commands::help` has their groups.
#[derive(Debug, Subcommand)]
pub enum Command {
    // -- jobs
    /// Start a job on a target
    #[command(
        after_help = "Examples:\n  tpu run v2-32-p2 alice lr=0.01 tag=baseline rule=resume\n  \
        tpu run local -- python3 train.py --steps 1000\n\nKeys: dir=N (or a bare N), tag=NAME, \
        rule=RULE (`tpu check-rules` lists them),\n      monitor=false (the daemon leaves it alone), \
        config aliases (`tpu -sa`), config.…="
    )]
    Run(Deferred<Run>),
    /// Queue a job; it starts when there is room
    #[command(
        after_help = "Examples:\n  tpu submit v4-8 lr=0.1 priority=80 after=12 -- python3 train.py\n  \
        tpu submit v4-8 lr=1e-3,1e-4 config.seed=0-4 --sweep --at-once 4\n  \
        tpu submit job.yaml --set lr=1e-3\n\nKeys: those of run, and \
        queue=NAME, priority=0-100 (50), after=W (ended well),\n      after_any=W (ended), \
        after_not=W (failed),\n      after_each=W (member by member); W is a number, a name or a tag"
    )]
    Submit(Deferred<Submit>),
    /// Show queued jobs and why they wait; manage queues
    Queue(Deferred<QueueCommand>),
    /// Hold queued jobs
    #[command(
        after_help = "Examples:\n  tpu hold 12\n  tpu hold 12 13 alice --why 'the data are not there yet'"
    )]
    Hold(Deferred<HoldJobs>),
    /// Remove queued jobs
    #[command(
        visible_alias = "dq",
        after_help = "Examples:\n  tpu dequeue 12\n  tpu dq 12 13 alice"
    )]
    Dequeue(Deferred<Dequeue>),
    /// Stop jobs and queue them again
    #[command(
        after_help = "Examples:\n  tpu requeue 7\n  tpu requeue 7 alice priority=20 --now\n\nA running one \
        is told before by checkpoint_signal (`tpu help settings`)."
    )]
    Requeue(Deferred<Requeue>),
    /// Set the priority of queued jobs
    #[command(after_help = "Examples:\n  tpu priority 12 80\n  tpu priority 12 --first")]
    Priority(Deferred<SetPriority>),
    /// Show each job with its status, progress and reason
    #[command(
        after_help = "Examples:\n  tpu check alice\n  tpu check status:error tag:sweep\n  tpu check --json | jq '.jobs[].status'"
    )]
    Check(Deferred<Check>),
    /// List the members of a sweep, lowest loss first
    #[command(after_help = "Examples:\n  tpu sweep 12\n  tpu sweep 12 alice --by best")]
    Sweep(Deferred<SweepArgs>),
    /// Show jobs as a table
    #[command(after_help = "Examples:\n  tpu check-simp alice\n  tpu check-simp -wds")]
    CheckSimp(Deferred<Check>),
    /// Open the screen: watch, stop and resume with keys
    #[command(
        after_help = "Examples:\n  tpu monitor\n  tpu monitor alice -wdts\n  tpu monitor alice --plain"
    )]
    Monitor(Deferred<MonitorArgs>),
    /// Show the jobs of all users
    #[command(after_help = "Examples:\n  tpu caj\n  tpu caj -wds")]
    Caj(Deferred<Check>),
    /// Show the jobs of all users, again and again
    #[command(after_help = "Examples:\n  tpu maj\n  tpu maj -wts --rounds 3")]
    Maj(Deferred<Maj>),
    /// Restart a job from its last checkpoint
    #[command(after_help = "Examples:\n  tpu resume w=7\n  tpu resume windows=7 tpu=v2-32-6 alice")]
    Resume(Deferred<Again>),
    /// Run a job again from scratch
    #[command(after_help = "Examples:\n  tpu rerun w=7\n  tpu rerun 7 tpu=v2-32-6")]
    Rerun(Deferred<Again>),
    /// Stop jobs
    #[command(after_help = "Examples:\n  tpu kill w=7\n  tpu kill 7,9-12 -y\n  tpu kill tag:sweep")]
    Kill(Deferred<Kill>),
    /// Close a window and archive its job (prefer kill)
    #[command(after_help = "Examples:\n  tpu kill-window 7\n  tpu -kw 7 alice")]
    KillWindow(Deferred<Words>),
    /// Archive ended jobs and close their windows
    #[command(
        after_help = "Examples:\n  tpu clean\n  tpu clean alice -re\n  tpu clean 7 --with-results\n\nLogs and checkpoints stay. Code is removed from its copies after keep_code\nin the archive; `tpu disk` shows what there is."
    )]
    Clean(Deferred<Clean>),
    /// Archive finished jobs
    #[command(after_help = "Examples:\n  tpu clear-finished\n  tpu clear-finished alice")]
    ClearFinished(Deferred<Clear>),
    /// Archive jobs that failed or were killed
    #[command(after_help = "Examples:\n  tpu clear-error\n  tpu clear-error alice")]
    ClearError(Deferred<Clear>),
    /// Archive finished, failed and killed jobs
    #[command(after_help = "Examples:\n  tpu clear-all\n  tpu clear alice")]
    ClearAll(Deferred<Clear>),
    /// Close windows that belong to no job (-czw)
    #[command(
        after_help = "Examples:\n  tpu -czw alice\n  tpu -czw alice --force\n\nOnly windows that tpu has marked are closed; others are listed with what runs in them."
    )]
    ClearZombieWindows(Deferred<CloseWindows>),
    /// Archive jobs whose window no longer exists (-czj)
    #[command(after_help = "Examples:\n  tpu clear-zombie-jobs\n  tpu -czj alice")]
    ClearZombieJobs(Deferred<Clear>),
    /// Release held jobs
    #[command(after_help = "Examples:\n  tpu unhold 7\n  tpu unhold w=7 alice")]
    Unhold(Deferred<Words>),
    /// Tag a job
    #[command(after_help = "Examples:\n  tpu add-tag 7 baseline\n  tpu add-tag w=7 sweep-3 alice")]
    AddTag(Deferred<Words>),
    /// Ignore the current error of a job
    #[command(after_help = "Examples:\n  tpu ignore-error 7\n  tpu ignore-error w=7 alice")]
    IgnoreError(Deferred<Words>),
    /// Show what each restart rule does
    #[command(after_help = "Examples:\n  tpu check-rules\n  tpu check-rules --json")]
    CheckRules,
    /// Set the restart rule of a job
    #[command(
        after_help = "Examples:\n  tpu set-rule 7 resume\n  tpu set-rule 7 preempted:reapply,grpc:rerun\n\n`tpu check-rules` lists the rules."
    )]
    SetRule(Deferred<Words>),
    /// Print the stage directory of a job
    #[command(after_help = "Examples:\n  tpu get-stage-dir 7\n  tpu get-stage-dir w=7 alice")]
    GetStageDir(Deferred<Words>),
    /// Print the output of a job
    #[command(after_help = "Examples:\n  tpu logs 7 -n 100\n  tpu logs 7 -f --grep loss")]
    Logs(Deferred<Logs>),
    /// List files that a job wrote, or copy them here
    #[command(
        after_help = "Examples:\n  tpu files 7\n  tpu files 7 --get results.csv\n  tpu files 7 --get plots --to ~/plots"
    )]
    Files(Deferred<JobFilesArgs>),
    /// Explain why a job waits, runs or failed
    #[command(after_help = "Examples:\n  tpu explain 7\n  tpu explain w=7 alice --json")]
    Explain(Deferred<Words>),
    /// Show everything about one job
    #[command(
        visible_alias = "details",
        after_help = "Examples:\n  tpu show 7\n  tpu show w=7 alice --raw"
    )]
    Show(Deferred<ShowJob>),
    /// Print the script that started a job
    #[command(
        after_help = "Examples:\n  tpu script 7\n  tpu script w=7 alice > again.sh\n  tpu script 7 --yaml > again.yaml"
    )]
    Script(Deferred<ScriptOfJob>),
    /// Show past events, newest last
    #[command(after_help = "Examples:\n  tpu history 7 -n 20\n  tpu history alice --since-last")]
    History(Deferred<History>),
    /// Attach to a job's window
    #[command(after_help = "Examples:\n  tpu attach 7\n  tpu attach w=7 alice")]
    Attach(Deferred<Words>),
    /// Wait until jobs end
    #[command(
        after_help = "Examples:\n  tpu wait 7,8 --timeout 2h\n  tpu wait tag:sweep --for finished\n\nExit code: 0 all finished well, 1 not all did, 7 the time is over."
    )]
    Wait(Deferred<Wait>),

    // -- users, directories, aliases, settings
    /// Add a user
    #[command(
        after_help = "Examples:\n  tpu add-user alice\n  tpu add-user bob --tmux-name bob --dir /code/bob"
    )]
    AddUser(Deferred<AddUser>),
    /// Remove a user who has no live jobs
    #[command(after_help = "Examples:\n  tpu del-user bob\n  tpu del-user bob -y")]
    DelUser(Deferred<Words>),
    /// List the users
    #[command(after_help = "Examples:\n  tpu list-users\n  tpu -lu --json")]
    ListUsers,
    /// Make the current directory a numbered slot
    #[command(after_help = "Examples:\n  tpu set-cur 2\n  tpu set-cur 2 alice")]
    SetCur(Deferred<Words>),
    /// Make a path a numbered slot
    #[command(
        after_help = "Examples:\n  tpu set-dir /code/project 2\n  tpu set-dir /code/project 2 alice"
    )]
    SetDir(Deferred<Words>),
    /// List the directory slots
    #[command(after_help = "Examples:\n  tpu ls\n  tpu ls alice")]
    Ls(Deferred<Words>),
    /// Print the path of a slot
    #[command(after_help = "Examples:\n  tpu get-dir 2\n  tpu get-dir 2 alice")]
    GetDir(Deferred<Words>),
    /// Remove a slot
    #[command(after_help = "Examples:\n  tpu del-dir 2\n  tpu del-dir 2 alice")]
    DelDir(Deferred<Words>),
    /// Swap two slots
    #[command(after_help = "Examples:\n  tpu swap-dir 1 2\n  tpu swap-dir 1 2 alice")]
    SwapDir(Deferred<Words>),
    /// Give a config key a short name (-a)
    #[command(
        after_help = "Examples:\n  tpu -a lr config.training.learning_rate\n  tpu add-config-alias bs config.training.batch_size alice"
    )]
    AddConfigAlias(Deferred<Words>),
    /// List the config aliases (-sa)
    #[command(after_help = "Examples:\n  tpu -sa\n  tpu show-config-alias alice")]
    ShowConfigAlias(Deferred<Words>),
    /// Remove a config alias
    #[command(after_help = "Examples:\n  tpu del-config-alias lr\n  tpu del-config-alias lr alice")]
    DelConfigAlias(Deferred<Words>),
    /// Show the settings
    #[command(after_help = "Examples:\n  tpu get-settings\n  tpu get-settings alice --origin")]
    GetSettings(Deferred<GetSettings>),
    /// Change a setting
    #[command(
        after_help = "Examples:\n  tpu set-settings monitor_after_run False\n  tpu set-settings time_zone Europe/Berlin alice\n\n`tpu help settings` says what each key means, `tpu get-settings` shows the values."
    )]
    SetSettings(Deferred<SetSettings>),
    /// Reset one setting, or all, to the defaults
    #[command(after_help = "Examples:\n  tpu reset-settings\n  tpu reset-settings time_zone alice")]
    ResetSettings(Deferred<Words>),
    /// Set the number of the next job
    #[command(after_help = "Examples:\n  tpu reset-window-num 30\n  tpu reset-window-num 30 alice")]
    ResetWindowNum(Deferred<Words>),

    // -- targets
    /// Give a target a short name (-ta)
    #[command(
        after_help = "Examples:\n  tpu -ta v2-32-p2 lab-tpuvm-v2-32-preemptible-2\n  tpu add-tpu-alias big lab-tpuvm-v4-128-1"
    )]
    AddTpuAlias(Deferred<Words>),
    /// List the target aliases (-lta)
    #[command(after_help = "Examples:\n  tpu -lta\n  tpu list-tpu-aliases --json")]
    ListTpuAliases,
    /// Register a target with its zone, type and pricing
    #[command(
        after_help = "Examples:\n  tpu register lab-tpuvm-v2-32-7 --zone europe-west4-a --type v2-32 --spot\n  tpu register lab-tpuvm-v4-8-1 --zone us-central2-b"
    )]
    Register(Deferred<Register>),
    /// Remove a target from the list
    #[command(
        after_help = "Examples:\n  tpu del-registered lab-tpuvm-v2-32-7\n  tpu del-reg v2-32-7"
    )]
    DelRegistered(Deferred<Words>),

    /// Create a target, or wait until it is ready
    #[command(
        after_help = "Examples:\n  tpu apply v2-32-p2\n  tpu apply lab-v4-8-1 --type v4-8 --zone us-central2-b --spot"
    )]
    Apply(Deferred<Apply>),
    /// Create a target; retry until there is capacity
    #[command(after_help = "Examples:\n  tpu applyy v2-32-p2\n  tpu applyy v2-32-p2 t=30 m=100")]
    Applyy(Deferred<Insist>),
    /// Delete a target and create it again
    #[command(after_help = "Examples:\n  tpu reapply v2-32-p2\n  tpu reapply v2-32-p2 --spot -y")]
    Reapply(Deferred<Apply>),
    /// Delete a target
    #[command(after_help = "Examples:\n  tpu delete v2-32-p2\n  tpu delete v2-32-p2 -y")]
    Delete(Deferred<OneTarget>),
    /// Start a stopped target
    #[command(after_help = "Examples:\n  tpu start v2-32-p2\n  tpu start lab-tpuvm-v4-8-1")]
    Start(Deferred<OneTarget>),
    /// Stop a target; it keeps its disk and its name
    #[command(after_help = "Examples:\n  tpu stop v2-32-p2\n  tpu stop v2-32-p2 -y")]
    Stop(Deferred<OneTarget>),
    /// Restart the machines of a target
    #[command(after_help = "Examples:\n  tpu restart v2-32-p2\n  tpu restart v2-32-p2 -y")]
    Restart(Deferred<OneTarget>),
    /// Show the status of targets in their cloud
    #[command(after_help = "Examples:\n  tpu check-status\n  tpu check-status v2-32-p2")]
    CheckStatus(Deferred<CheckStatus>),
    /// Show details of a target and who uses it
    #[command(
        after_help = "Examples:\n  tpu describe v2-32-p2\n  tpu describe v2-32-p2 --machines"
    )]
    Describe(Deferred<Describe>),
    /// List targets, import them, show their cost
    #[command(
        after_help = "Examples:\n  tpu targets\n  tpu targets --cost\n  tpu targets import --dry-run"
    )]
    Targets(Deferred<Targets>),
    /// List your own machines; add them and set limits
    Hosts(Deferred<Hosts>),
    /// List pools of hosts; open or drain them
    #[command(after_help = "Examples:\n  tpu pools\n  tpu pools deactivate lab")]
    Pools(Deferred<Pools>),
    /// Job files.
    #[command(flatten)]
    JobFiles(JobFiles),
    /// Over HTTP.
    #[command(flatten)]
    Http(Http),
    /// Other tools.
    #[command(flatten)]
    Foreign(Foreign),
    /// Simulate cloud events on practice targets
    #[command(
        after_help = "Examples:\n  tpu sim preempt v2-32-p2\n  tpu sim capacity v2-32-p2 --off --times 3"
    )]
    Sim(Deferred<Sim>),

    /// Looking back.
    #[command(flatten)]
    Insight(Insight),
    /// The board.
    #[command(flatten)]
    Board(Board),
    /// Machines.
    #[command(flatten)]
    Workers(Workers),

    // -- the daemon: what happens by itself
    /// Start or stop the daemon, or show what it plans
    #[command(
        after_help = "Examples:\n  tpu daemon start\n  tpu daemon start --serve\n  tpu daemon status\n  tpu daemon plan --json\n  tpu daemon install"
    )]
    Daemon(Deferred<Daemon>),
    /// Retry waiting restarts now
    #[command(after_help = "Examples:\n  tpu ack\n  tpu ack --json")]
    Ack,
    /// Print the log of the daemon (-Ml)
    #[command(after_help = "Examples:\n  tpu -Ml\n  tpu -Ml cn -n 20")]
    MonitorLog(Deferred<MonitorLog>),
    /// Clear the log of the daemon; the history is kept (-Mc)
    #[command(after_help = "Examples:\n  tpu -Mc\n  tpu clear-monitor-log")]
    ClearMonitorLog,
    /// Change a setting of the daemon (-smc)
    #[command(after_help = "Examples:\n  tpu -smc checking_freq 60\n  tpu -smc test_freq 3600")]
    SetMonitorConfig(Deferred<Words>),
    /// Show the settings of the daemon (-gmc)
    #[command(after_help = "Examples:\n  tpu -gmc\n  tpu get-monitor-config --json")]
    GetMonitorConfig,

    // -- callbacks
    /// Called by `run_remote.sh`: the job has started
    #[command(
        after_help = "Examples:\n  tpu upd-log alice:7 LOG_DIR STAGE_DIR lab-tpuvm-v2-32-1 TIME\n  tpu upd-log \"$window\" \"$LOGDIR\" \"$STAGEDIR\" \"$VM_NAME\" \"$now\""
    )]
    UpdLog(Deferred<Words>),
    /// Called by `run_remote.sh`: the job ended well
    #[command(after_help = "Examples:\n  tpu finish-job alice:7\n  tpu finish-job alice:7 --force")]
    FinishJob(Deferred<Finish>),
    /// Called by `run_remote.sh`: the job failed
    #[command(
        after_help = "Examples:\n  tpu fail-job alice:7\n  tpu fail-job alice:7 --exit-code 3"
    )]
    FailJob(Deferred<Finish>),

    // -- data, text, help
    /// The state file.
    #[command(flatten)]
    State(State),
    /// Find the error in a text, such as the output of a job
    #[command(
        after_help = "Examples:\n  tpu classify output.log --exit-code 1\n  tail -n 50 output.log | tpu classify - --json"
    )]
    Classify(Deferred<Classify>),
    /// Check the installation; print a remedy for each problem
    #[command(after_help = "Examples:\n  tpu doctor\n  tpu doctor --fix\n  tpu doctor --restore")]
    Doctor(Deferred<Doctor>),
    /// Practise with real jobs; leaves nothing behind
    #[command(
        after_help = "Examples:\n  tpu demo\n  tpu demo --headless\n  tpu demo --record demo.cast --size 100x30"
    )]
    Demo(Deferred<Demo>),
    /// Print a page of useful commands
    #[command(after_help = "Examples:\n  tpu tldr\n  tpu tldr --json")]
    Tldr,
    /// Show the help of a command
    #[command(
        after_help = "Examples:\n  tpu help run\n  tpu -h kill-job\n  tpu help settings\n  tpu help --all"
    )]
    Help {
        /// The command, or `settings` for the list of settings
        command: Option<String>,
        /// List every command
        #[arg(long)]
        all: bool,
    },
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  source <(tpu completions bash)\n  tpu completions fish > ~/.config/fish/completions/tpu.fish\n\nWith zsh: source <(tpu completions zsh) in ~/.zshrc, after compinit."
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    #[command(after_help = "Examples:\n  tpu man | man -l -\n  tpu man run | man -l -")]
    Man {
        /// The command [default: tpu itself]
        command: Option<String>,
    },

    // -- internal
    /// Called by the launcher script in a job's window
    #[command(hide = true)]
    Launcher(Deferred<Launcher>),
    /// The training that the demo and the example run
    #[command(hide = true, disable_help_flag = true)]
    DemoTrain {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the definitions of one command accept must be what all of them make of it.
    #[test]
    fn one_command_reads_like_all_of_them() {
        for line in [
            "ls",
            "--json ls alice",
            "--user ls check",
            "--user check ls",
            "check --user ls",
            "run local lr=1 -- kill 7",
            "daemon plan --json",
            "kill 7 -y --data d.json",
        ] {
            let words: Vec<_> =
                std::iter::once("tpu").chain(line.split(' ')).map(OsString::from).collect();
            let all = Cli::definitions().try_get_matches_from(&words).unwrap();
            let expected = Command::from_arg_matches(&all).unwrap();
            let (cli, name) = Cli::parse_words(&words[1..]).unwrap();
            assert_eq!(Some(name.as_str()), all.subcommand_name(), "{line}");
            assert_eq!(format!("{:?}", cli.command), format!("{:?}", Some(expected)), "{line}");
        }
    }
}
