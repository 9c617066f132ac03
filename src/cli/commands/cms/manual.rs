//! Every command of Cloudmesh's command line, and what it does here: what `cms job help` prints, and the table of
//! `docs/cloudmesh.md`.

use crate::cli::print::Output;
use tpu_wire::pages::TextDocument;

/// The commands as the manual spells them, and what each does here.
pub(in crate::cli) const COMMANDS: &[(&str, &str)] = &[
    ("set jobset", "shows which file is the jobset"),
    ("set jobset=FILE", "remembers the jobset; the file is never written"),
    ("job set FILE", "the same"),
    ("job info", "says where the jobset is, and what is in it"),
    ("job template [FILE] [--name=NAME]", "writes a jobset, never over another without --force"),
    ("job hosts add --hostname=NAME --ip=IP --cpus=N --max_jobs_allowed=N", "tpu hosts add"),
    ("job list hosts", "lists the hosts that are known; job_counter is what runs now"),
    ("job scheduler --policy=POLICY", "tpu set-settings policy POLICY"),
    ("job scheduler info", "shows the policy, and who set it"),
    (
        "job list [--name=TEXT] [--status=STATUS]",
        "lists the jobs that are here, that wait, and of the file",
    ),
    ("job status", "the same, by their status"),
    ("job add FILE", "holds the jobs of the file in our queue: they are ready"),
    ("job add --name=NAME [--ip=IP] [--executable=PROGRAM] …", "the same of jobs that options say"),
    ("job run [--name=NAME]", "lets ready jobs begin, all without a name: tpu unhold"),
    ("job kill --name=NAME", "tpu kill NAME; of a pattern those that there are"),
    ("job reset [--name=NAME]", "holds a job that is over again, as it was: it is ready"),
    (
        "job delete --name=NAME",
        "stops a job that is at work, and takes it away: tpu kill, tpu clean",
    ),
    ("job --service start|info", "tpu serve on port 8000; whether it answers, and where /docs is"),
    ("job help", "this page"),
    ("cluster create [--cluster=NAME]", "nothing: a pool is there when a host is in it"),
    ("cluster list [--cluster=NAME]", "tpu pools; tpu hosts list NAME"),
    ("cluster add --id=NAME [--name=HOST] [--ip=IP]", "tpu hosts add NAME --pool CLUSTER"),
    ("cluster delete --id=NAME", "tpu hosts remove NAME"),
    ("cluster activate --id=NAME", "tpu hosts undrain NAME"),
    ("cluster deactivate --id=NAME", "tpu hosts drain NAME"),
    ("cluster set --id=NAME --key=KEY --value=VALUE", "tpu hosts set NAME"),
    ("queue create [--queue=NAME]", "tpu queue create NAME"),
    ("queue info, queue refresh", "lists the jobs, as they are now"),
    (
        "queue add --name=NAME --command=COMMAND [--host=HOST] …",
        "holds jobs in that queue: they are ready",
    ),
    (
        "queue run fifo --max_parallel=N",
        "tpu queue set --max-parallel N, then its ready jobs begin",
    ),
    (
        "queue run fifo_multi --hosts=USER@HOST,…",
        "tpu queue set --on HOSTS, then all its jobs begin",
    ),
    ("queue run fifo_multi --hostfile=CLUSTER", "the same on the hosts of a pool"),
    (
        "queue reset [--name=NAME] [--status=STATUS]",
        "as job reset; without a name all that did not end well",
    ),
    ("queue delete --name=NAME", "as job delete"),
    ("queue --service start|info [--port=N]", "the same"),
];

/// The page.
pub(super) fn page() -> Output {
    let mut text = "Commands of Cloudmesh, and what each does here. Names are patterns, as job[0-5] or a,b.\n\n"
        .to_owned();
    for (typed, does) in COMMANDS {
        text += &format!("  cms {typed}\n      {does}\n");
    }
    text += "\nPolicies: sequential, random, smart, frugal. A whole jobset: tpu import cloudmesh FILE.\n";
    Output::new(text.clone(), &TextDocument { text: &text })
}
