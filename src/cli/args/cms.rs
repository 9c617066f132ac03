//! `tpu import`, and `tpu cms`: the command line of Cloudmesh, as its manual spells it.

use clap::{Args, Subcommand};

/// `tpu import`.
#[derive(Debug, Args)]
pub struct ImportFrom {
    /// From where
    #[command(subcommand)]
    pub from: ForeignTool,
}

/// Tools whose files are taken over.
#[derive(Debug, Subcommand)]
pub enum ForeignTool {
    /// Hosts, clusters and the policy of Cloudmesh; its jobs are listed
    #[command(
        after_help = "Examples:\n  tpu import cloudmesh spec.yaml --dry-run\n  tpu import cloudmesh lab-cluster.yaml --no-probe"
    )]
    Cloudmesh(CloudmeshFiles),
}

/// `tpu import cloudmesh`.
#[derive(Debug, Args)]
pub struct CloudmeshFiles {
    /// Jobsets, NAME-queue.yaml, NAME-cluster.yaml
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
    /// Do not try whether the hosts answer
    #[arg(long)]
    pub no_probe: bool,
}

/// `tpu cms`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tpu cms set jobset=~/.cloudmesh/job/spec.yaml\n  tpu cms job hosts add --hostname=j1 --ip=j1.lab --cpus=12\n\n`tpu cms job help` lists every command; called by the name `cms`, tpu is the same."
)]
pub struct Cms {
    /// What of it
    #[command(subcommand)]
    pub part: CmsPart,
}

/// The parts of Cloudmesh.
#[derive(Debug, Subcommand)]
pub enum CmsPart {
    /// Remember a jobset, or show which one it is
    #[command(after_help = "Examples:\n  tpu cms set jobset=spec.yaml\n  tpu cms set jobset")]
    Set {
        /// `jobset=FILE`; without a file it is shown
        #[arg(value_name = "jobset[=FILE]")]
        variable: String,
    },
    /// Jobs, hosts and the scheduler of a jobset
    #[command(
        after_help = "Examples:\n  tpu cms job list --status=ready\n  tpu cms job scheduler --policy=random"
    )]
    Job(CmsJob),
    /// Queues of jobs
    #[command(
        after_help = "Examples:\n  tpu cms queue add --name='a[1-3]' --command=hostname --host=j1\n  tpu cms queue run fifo --max_parallel=2"
    )]
    Queue(CmsQueue),
    /// Clusters of hosts, which are pools here
    #[command(
        after_help = "Examples:\n  tpu cms cluster add --cluster=lab --id='j[1-4]'\n  tpu cms cluster deactivate --id=j3"
    )]
    Cluster(CmsCluster),
}

/// `cms job`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CmsJob {
    /// The REST service: start or info
    #[arg(long, value_name = "start|info")]
    pub service: Option<String>,
    /// What to do
    #[command(subcommand)]
    pub step: Option<CmsJobStep>,
}

/// What can be done with a jobset.
#[derive(Debug, Subcommand)]
pub enum CmsJobStep {
    /// Remember FILE as the jobset
    Set {
        /// A jobset
        file: String,
    },
    /// Show the path of the jobset and its content
    Info,
    /// Write an example jobset; an existing file is never overwritten
    Template {
        /// Where [default: the jobset]
        file: Option<String>,
        /// Overwrite an existing file
        #[arg(long)]
        force: bool,
        /// Its jobs.
        #[command(flatten)]
        fields: CmsJobFields,
    },
    /// Add jobs in the state ready; `run` starts them
    Add {
        /// A file of jobs
        file: Option<String>,
        /// The jobs, where no file says them.
        #[command(flatten)]
        fields: CmsJobFields,
    },
    /// List jobs, or `list hosts`
    List {
        /// `hosts`
        #[arg(value_parser = ["hosts"])]
        what: Option<String>,
        /// Jobs with this text in their name
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Jobs with this status, in Cloudmesh's terms or in those of tpu
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
    },
    /// List jobs by their status
    Status,
    /// Start jobs that are ready
    Run(CmsNames),
    /// Stop jobs
    Kill(CmsNames),
    /// Make jobs ready again
    Reset(CmsNames),
    /// Delete jobs; running ones are stopped first
    Delete(CmsNames),
    /// Add hosts
    Hosts {
        /// What to do with them
        #[command(subcommand)]
        step: CmsHostsStep,
    },
    /// Set how a host is chosen, or show it (`scheduler info`)
    Scheduler {
        /// `info`
        #[arg(value_parser = ["info"])]
        what: Option<String>,
        /// sequential, random, smart or frugal
        #[arg(long, value_name = "POLICY")]
        policy: Option<String>,
    },
    /// List every command, and what it does here
    Help,
}

/// Jobs by their names.
#[derive(Debug, Args)]
pub struct CmsNames {
    /// Names, or patterns of names
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// The fields of jobs, each one value for all or one for each name.
#[derive(Debug, Default, Args)]
pub struct CmsJobFields {
    /// Names of jobs, or patterns of names
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where they run [default: localhost]
    #[arg(long, value_name = "IP")]
    pub ip: Option<String>,
    /// What they run [default: uname]
    #[arg(long, value_name = "PROGRAM")]
    pub executable: Option<String>,
    /// What stands behind it
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true)]
    pub arguments: Option<String>,
    /// The directory in which they run [default: .]
    #[arg(long, value_name = "PATH")]
    pub directory: Option<String>,
    /// Where their input is [default: ./data]
    #[arg(long, value_name = "PATH")]
    pub input: Option<String>,
    /// Where their output goes [default: ./output/NAME]
    #[arg(long, value_name = "PATH")]
    pub output: Option<String>,
    /// Their state [default: ready]
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// The GPUs that they want
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// The shell that reads their commands [default: bash]
    #[arg(long, value_name = "SHELL")]
    pub shell: Option<String>,
}

/// `cms job hosts`.
#[derive(Debug, Subcommand)]
pub enum CmsHostsStep {
    /// Register hosts; --user NAME is the account there
    Add {
        /// Names, or patterns of names
        #[arg(long, value_name = "NAME")]
        hostname: String,
        /// Addresses, as many as names [default: the names]
        #[arg(long, value_name = "IP")]
        ip: Option<String>,
        /// CPUs to give out
        #[arg(long, alias = "cpu_count", value_name = "N")]
        cpus: Option<String>,
        /// free or active
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// Accepted without effect: tpu counts what runs
        #[arg(long = "job_counter", value_name = "N")]
        job_counter: Option<String>,
        /// Jobs at a time [default: 1]
        #[arg(long = "max_jobs_allowed", value_name = "N")]
        max_jobs_allowed: Option<String>,
        /// Do not try whether they answer
        #[arg(long)]
        no_probe: bool,
    },
}

/// `cms queue`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CmsQueue {
    /// The REST service: start or info
    #[arg(long, value_name = "start|info")]
    pub service: Option<String>,
    /// Its port
    #[arg(long, value_name = "N")]
    pub port: Option<String>,
    /// What to do
    #[command(subcommand)]
    pub step: Option<CmsQueueStep>,
}

/// What Cloudmesh does with queues.
#[derive(Debug, Subcommand)]
pub enum CmsQueueStep {
    /// Make a queue
    Create(CmsQueueWords),
    /// List jobs
    #[command(alias = "list")]
    Info(CmsQueueWords),
    /// Accepted: every list looks at the jobs anyway
    Refresh(CmsQueueWords),
    /// Add jobs in the state ready; `run` starts them
    Add(CmsQueueJobs),
    /// Delete jobs; running ones are stopped first
    Delete(CmsQueueWords),
    /// Start the jobs of a queue: `fifo` where they say, `fifo_multi` on any of some hosts
    Run(CmsQueueRun),
    /// Make jobs ready again
    Reset(CmsQueueWords),
}

/// Which queue and which of its jobs.
#[derive(Debug, Args)]
pub struct CmsQueueWords {
    /// The queue [default: default]
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
    /// Jobs
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Those of this state
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// The directory of a queue, which has none here
    #[arg(long, value_name = "PATH")]
    pub experiment: Option<String>,
}

/// `cms queue add`.
#[derive(Debug, Args)]
pub struct CmsQueueJobs {
    /// The queue [default: default]
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
    /// Where they run [default: ./experiment/NAME]
    #[arg(long, value_name = "PATH")]
    pub experiment: Option<String>,
    /// Names of jobs, or patterns of names
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// What they run
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: String,
    /// The hosts on which they run
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// The files in which a copy of their output is kept [default: NAME.out]
    #[arg(long, value_name = "PATH")]
    pub output: Option<String>,
    /// Their state [default: ready, without a host undefined]
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// The GPUs that they want
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// The shell that reads their commands [default: bash]
    #[arg(long, value_name = "SHELL")]
    pub shell: Option<String>,
    /// The activate of a Python environment, read before
    #[arg(long, value_name = "FILE")]
    pub pyenv: Option<String>,
    /// Input: nothing, as there
    #[arg(long, value_name = "PATH")]
    pub input: Option<String>,
    /// Accepted without effect: every job has a log here
    #[arg(long, value_name = "FILE")]
    pub log: Option<String>,
}

/// `cms queue run`.
#[derive(Debug, Args)]
pub struct CmsQueueRun {
    /// `fifo` or `fifo_multi`
    #[arg(value_parser = ["fifo", "fifo_multi"])]
    pub scheduler: String,
    /// The queue [default: default]
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
    /// Jobs at a time, of `fifo`
    #[arg(long = "max_parallel", value_name = "N")]
    pub max_parallel: Option<u32>,
    /// Hosts, of `fifo_multi`
    #[arg(long, value_name = "USER@HOST,…")]
    pub hosts: Option<String>,
    /// A cluster of hosts, of `fifo_multi`
    #[arg(long, value_name = "CLUSTER", conflicts_with = "hosts")]
    pub hostfile: Option<String>,
    /// Minutes until a silent host counts as gone (accepted without effect)
    #[arg(long, value_name = "MINUTES")]
    pub timeout: Option<String>,
    /// The directory of a queue, which has none here
    #[arg(long, value_name = "PATH")]
    pub experiment: Option<String>,
}

/// `cms cluster`.
#[derive(Debug, Args)]
pub struct CmsCluster {
    /// What to do
    #[command(subcommand)]
    pub step: CmsClusterStep,
}

/// What can be done with clusters.
#[derive(Debug, Subcommand)]
pub enum CmsClusterStep {
    /// Accepted without effect: a cluster exists as soon as it has a host
    Create(CmsClusterName),
    /// List clusters, or the hosts of one
    #[command(alias = "info")]
    List(CmsClusterName),
    /// Register hosts and put them into a cluster; --user NAME is the account there
    Add {
        /// Names, or patterns of names
        #[arg(long, value_name = "NAME")]
        id: String,
        /// Addresses [default: the names]
        #[arg(long, value_name = "HOST")]
        name: Option<String>,
        /// The same, which outranks it
        #[arg(long, value_name = "IP")]
        ip: Option<String>,
        /// active
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// Accepted without effect; use: tpu hosts set --gpus N
        #[arg(long, value_name = "GPU")]
        gpu: Option<String>,
        /// The `activate` of a Python environment that is read there before a job begins
        #[arg(long, value_name = "FILE")]
        pyenv: Option<String>,
        /// Do not try whether they answer
        #[arg(long)]
        no_probe: bool,
        /// Which cluster.
        #[command(flatten)]
        cluster: CmsClusterName,
    },
    /// Forget hosts on which nothing runs
    Delete(CmsIds),
    /// Start jobs on hosts again
    Activate(CmsIds),
    /// Start no new jobs on hosts
    Deactivate(CmsIds),
    /// Set a value of hosts
    Set {
        /// Hosts
        #[command(flatten)]
        ids: CmsIds,
        /// `max_jobs_allowed`, cpus, gpus, pyenv or status
        #[arg(long, value_name = "KEY")]
        key: String,
        /// Its value
        #[arg(long, value_name = "VALUE")]
        value: String,
    },
}

/// A cluster by its name.
#[derive(Debug, Args)]
pub struct CmsClusterName {
    /// The cluster [default: default]
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
}

/// Hosts by what they are called.
#[derive(Debug, Args)]
pub struct CmsIds {
    /// Names, or patterns of names
    #[arg(long, value_name = "NAME")]
    pub id: String,
}
