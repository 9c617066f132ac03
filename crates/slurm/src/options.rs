//! What a person may say of a target and of one job, and what `sbatch` is told of it.

use std::collections::BTreeMap;

use tpu_core::model::options::KindOptions;
use tpu_engine::kinds::KindOption;

const fn option(name: &'static str, value: &'static str, help: &'static str) -> KindOption {
    KindOption::new(name, value, help)
}

const ACCOUNT: KindOption = option("account", "NAME", "Account that pays");
const QOS: KindOption = option("qos", "NAME", "Quality of service");
const GRES: KindOption = option("gres", "GRES", "Devices for each node, such as gpu:1");
const TIME: KindOption =
    option("time", "TIME", "Limit on the time that a job runs, such as 12:00:00");
const SIGNAL: KindOption =
    option("signal", "SIG@SECONDS", "Signal that its programs get this long before the time limit");
const SBATCH: KindOption = KindOption {
    is_many: true,
    ..option("sbatch", "NAME=VALUE", "Any other long option of sbatch, such as constraint=a100")
};

/// The directory below which code is staged.
pub(super) const STAGE_ROOT: &str = "stage-root";

/// The directory below which logs lie.
pub(super) const LOG_ROOT: &str = "log-root";

/// The seconds for which a job must be missing before it counts as gone.
pub(super) const GONE_AFTER: &str = "gone-after";

/// Options of `tpu register`.
pub(super) const OF_TARGET: &[KindOption] = &[
    option("partition", "NAME", "Partition of the cluster"),
    option("cluster", "FILE", "Its slurm.conf [default: SLURM_CONF]"),
    option("login", "[USER@]HOST[:PORT]", "Login node with the programs of Slurm"),
    option("login-key", "FILE", "Key for the login node"),
    option(STAGE_ROOT, "DIR", "Directory for copies of code, on a disk that the nodes share"),
    option(LOG_ROOT, "DIR", "Directory for logs and checkpoints, on a disk that the nodes share"),
    option(
        GONE_AFTER,
        "SECONDS",
        "A job counts as gone when Slurm has not known it for this many seconds [default: 60]",
    ),
    ACCOUNT,
    QOS,
    GRES,
    TIME,
    SIGNAL,
    SBATCH,
];

/// Options of `tpu run`.
pub(super) const OF_JOB: &[KindOption] = &[
    option(
        "nodes",
        "N",
        "Number of nodes; the command runs once on each, unless --ntasks is given",
    ),
    option("ntasks", "N", "Number of tasks: how many times the command runs"),
    ACCOUNT,
    QOS,
    GRES,
    TIME,
    SIGNAL,
    SBATCH,
];

/// Those that are handed to `sbatch` under their own names.
const HANDED_ON: &[&str] =
    &["partition", "account", "qos", "gres", "time", "signal", "nodes", "ntasks"];

/// What only this program says to `sbatch`, or what would change what its answer means.
const OURS: &[&str] = &[
    "array",
    "chdir",
    "cluster-constraint",
    "clusters",
    "comment",
    "error",
    "export",
    "export-file",
    "get-user-env",
    "gid",
    "help",
    "ignore-pbs",
    "input",
    "job-name",
    "no-requeue",
    "open-mode",
    "output",
    "parsable",
    "partition",
    "quiet",
    "requeue",
    "test-only",
    "uid",
    "usage",
    "verbose",
    "version",
    "wait",
    "wrap",
];

/// What is wrong with an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OptionProblem {
    /// What is wrong.
    pub(super) what: String,
    /// What to say instead.
    pub(super) hint: String,
}

fn problem(what: impl Into<String>, hint: impl Into<String>) -> OptionProblem {
    OptionProblem { what: what.into(), hint: hint.into() }
}

/// Whether a name is one word that no program takes for an option.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,:/=+@%".contains(c))
}

/// Checks what was said of a target.
pub(super) fn check_target(said: &KindOptions) -> Result<(), OptionProblem> {
    if let Some(text) = said.get(GONE_AFTER).filter(|text| text.parse::<u64>().is_err()) {
        let what = format!("--{GONE_AFTER} is no number of seconds: {text:?}");
        return Err(problem(what, "as in: --gone-after 120"));
    }
    options(said, &KindOptions::default(), &[]).map(drop)
}

/// The options of `sbatch` that follow from what was said of the target and of the job; the job has the last word. It
/// begins on none of the nodes to avoid, whatever else was said of them.
pub(super) fn options(
    target: &KindOptions,
    job: &KindOptions,
    avoid: &[String],
) -> Result<Vec<String>, OptionProblem> {
    let mut all: BTreeMap<String, Option<String>> = BTreeMap::new();
    for said in [target, job] {
        for entry in said.all("sbatch") {
            let (name, value) = passed_on(entry)?;
            all.insert(name, value);
        }
        for name in HANDED_ON {
            if let Some(value) = said.get(name) {
                all.insert((*name).to_owned(), Some(checked(name, value)?));
            }
        }
    }
    if !avoid.is_empty() {
        let said = all.remove("exclude").flatten();
        let nodes: Vec<&str> = said.iter().chain(avoid).map(String::as_str).collect();
        all.insert("exclude".to_owned(), Some(nodes.join(",")));
    }
    let written = |(name, value): (String, Option<String>)| match value {
        Some(value) => format!("--{name}={value}"),
        None => format!("--{name}"),
    };
    Ok(all.into_iter().map(written).collect())
}

/// Whether somebody has said how long a job may run.
pub(super) fn says_time(job: &KindOptions) -> bool {
    let is_time = |entry: &str| entry.split('=').next() == Some("time");
    job.get("time").is_some() || job.all("sbatch").iter().any(|entry| is_time(entry))
}

/// Reads `NAME=VALUE` or `NAME`. Names are whole: `sbatch` would take the beginning of one for it.
fn passed_on(entry: &str) -> Result<(String, Option<String>), OptionProblem> {
    let (name, value) = match entry.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (entry, None),
    };
    let is_name = name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !is_name {
        let what = format!("'{entry}' is no long option of sbatch");
        return Err(problem(what, "without the dashes, as in: --sbatch constraint=a100"));
    }
    if let Some(ours) = OURS.iter().find(|ours| ours.starts_with(name)) {
        let also =
            if *ours == name { String::new() } else { format!(" (sbatch would read {ours})") };
        let what = format!("--sbatch {name} is not for you to say{also}");
        let hint = match *ours {
            "array" => "members are: --array 0-9",
            "partition" => "another partition is another target",
            "chdir" | "output" | "error" | "input" | "open-mode" => {
                "tpu itself decides where it runs and logs"
            }
            "requeue" | "no-requeue" => "what is brought back say the rules: rule=…",
            _ => "leave it out",
        };
        return Err(problem(what, hint));
    }
    let value = value.map(|value| checked(name, value)).transpose()?;
    Ok((name.to_owned(), value))
}

/// A value that stays one line.
fn checked(name: &str, value: &str) -> Result<String, OptionProblem> {
    if value.is_empty() || value.chars().any(char::is_control) {
        let what = format!("the value of {name} is empty, or more than one line: {value:?}");
        return Err(problem(what, "say it as sbatch would take it"));
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pairs: &[(&str, &str)]) -> KindOptions {
        pairs.iter().copied().collect()
    }

    #[test]
    fn the_job_has_the_last_word() {
        let target = said(&[
            ("partition", "gpu"),
            ("time", "1:00"),
            ("sbatch", "mem=4G"),
            ("sbatch", "exclusive"),
        ]);
        let job = said(&[("time", "2:00"), ("sbatch", "mem=8G"), ("nodes", "2")]);
        let all = options(&target, &job, &[]).unwrap();
        assert_eq!(all, ["--exclusive", "--mem=8G", "--nodes=2", "--partition=gpu", "--time=2:00"]);
    }

    #[test]
    fn a_lost_node_is_avoided_beside_those_that_somebody_excludes() {
        let avoid = ["n1".to_owned(), "n2".to_owned()];
        let all = |job: &[(&str, &str)]| options(&said(&[]), &said(job), &avoid).unwrap();
        assert_eq!(all(&[]), ["--exclude=n1,n2"]);
        assert_eq!(all(&[("sbatch", "exclude=n7")]), ["--exclude=n7,n1,n2"]);
    }

    #[test]
    fn what_is_ours_is_nobody_elses_in_any_spelling() {
        for odd in [
            "requeue",
            "req",
            "no-req",
            "output=/x",
            "out=/x",
            "job-name=x",
            "job",
            "comment=x",
            "com=x",
            "array=0-3",
            "arr=0-3",
            "wrap=true",
            "w",
            "chdir=/",
            "parsable",
            "pars",
            "partition=x",
            "p=x",
            "wait",
            "export=NONE",
            "uid=0",
            "clusters=x",
            "-n=1",
            "--mem=1",
            "mem=a\nb",
            "mem=",
            "Mem=1",
            "",
            "=x",
            "test",
            "help",
            "ignore-pbs",
        ] {
            assert!(options(&said(&[("sbatch", odd)]), &said(&[]), &[]).is_err(), "{odd}");
        }
        for fine in [
            "constraint=a100",
            "mem=4G",
            "exclusive",
            "dependency=afterok:1",
            "hold",
            "mail-type=END",
            "wait-all-nodes=1",
            "nice",
        ] {
            assert!(options(&said(&[("sbatch", fine)]), &said(&[]), &[]).is_ok(), "{fine}");
        }
    }

    #[test]
    fn a_partition_is_one_word() {
        assert!(is_plain("gpu") && is_plain("gpu,cpu") && is_plain("a-b_c.d"));
        assert!(!is_plain("") && !is_plain("-p") && !is_plain("a b") && !is_plain("a\nb"));
    }
}
