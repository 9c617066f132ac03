//! The options of `sbatch`, and what becomes of each.

use Becomes::{HandedOn, Nothing, OfTarget, Own};

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Becomes {
    /// An option of the target, by the same name.
    OfTarget,
    /// Handed on to `sbatch` as it is.
    HandedOn,
    /// Something of its own.
    Own,
    /// Nothing, for this reason.
    Nothing(&'static str),
}

/// An option.
pub(super) struct BatchOption {
    pub(super) name: &'static str,
    pub(super) short: Option<char>,
    /// Whether a value has to follow; else one may stand behind `=`.
    pub(super) takes_value: bool,
    pub(super) becomes: Becomes,
}

const fn of(name: &'static str, short: Option<char>, becomes: Becomes) -> BatchOption {
    BatchOption { name, short, takes_value: true, becomes }
}

const fn flag(name: &'static str, short: Option<char>, becomes: Becomes) -> BatchOption {
    BatchOption { name, short, takes_value: false, becomes }
}

const OUR_LOG: Becomes =
    Nothing("left out: errors are part of what the command prints, in output.log");
const OUR_WAY: Becomes = Nothing("left out: tpu submits it, and says this itself");

/// Those that mean more than being handed on. A long one that is not here takes a value.
pub(super) const OPTIONS: &[BatchOption] = &[
    of("job-name", Some('J'), Own),
    of("partition", Some('p'), Own),
    of("array", Some('a'), Own),
    of("output", Some('o'), Own),
    of("input", Some('i'), Own),
    of("chdir", Some('D'), Own),
    of("export", None, Own),
    of("comment", None, Own),
    flag("hold", Some('H'), Own),
    flag("requeue", None, Own),
    of("account", Some('A'), OfTarget),
    of("qos", Some('q'), OfTarget),
    of("gres", None, OfTarget),
    of("time", Some('t'), OfTarget),
    of("signal", None, OfTarget),
    of("nodes", Some('N'), OfTarget),
    of("ntasks", Some('n'), OfTarget),
    of("error", Some('e'), OUR_LOG),
    of("mail-type", None, Own),
    of("mail-user", None, Own),
    of(
        "dependency",
        Some('d'),
        Nothing("left out: it names jobs of Slurm; after: takes jobs of tpu"),
    ),
    flag(
        "no-requeue",
        None,
        Nothing("left out: it is so without a word, and rules: say what brings it back"),
    ),
    of("clusters", Some('M'), Nothing("left out: another cluster is another target")),
    of("open-mode", None, OUR_WAY),
    of("export-file", None, OUR_WAY),
    of("gid", None, OUR_WAY),
    of("uid", None, OUR_WAY),
    of("wrap", None, OUR_WAY),
    flag("get-user-env", None, OUR_WAY),
    flag("ignore-pbs", None, OUR_WAY),
    flag("parsable", None, OUR_WAY),
    flag("quiet", Some('Q'), OUR_WAY),
    flag("test-only", None, OUR_WAY),
    flag("verbose", Some('v'), OUR_WAY),
    flag("wait", Some('W'), OUR_WAY),
    of("begin", Some('b'), HandedOn),
    of("constraint", Some('C'), HandedOn),
    of("cpus-per-task", Some('c'), HandedOn),
    of("distribution", Some('m'), HandedOn),
    of("extra-node-info", Some('B'), HandedOn),
    of("nodefile", Some('F'), HandedOn),
    of("gpus", Some('G'), HandedOn),
    of("licenses", Some('L'), HandedOn),
    of("core-spec", Some('S'), HandedOn),
    of("nodelist", Some('w'), HandedOn),
    of("exclude", Some('x'), HandedOn),
    flag("contiguous", None, HandedOn),
    flag("exclusive", None, HandedOn),
    flag("no-kill", Some('k'), HandedOn),
    flag("nice", None, HandedOn),
    flag("overcommit", Some('O'), HandedOn),
    flag("oversubscribe", Some('s'), HandedOn),
    flag("reboot", None, HandedOn),
    flag("spread-job", None, HandedOn),
    flag("use-min-nodes", None, HandedOn),
];
