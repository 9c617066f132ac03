//! What a person may say of a target and of one job.

use tpu_engine::kinds::KindOption;

const fn option(name: &'static str, value: &'static str, help: &'static str) -> KindOption {
    KindOption::new(name, value, help)
}

const fn many(option: KindOption) -> KindOption {
    KindOption { is_many: true, ..option }
}

const fn short(letter: char, option: KindOption) -> KindOption {
    KindOption { short: Some(letter), ..option }
}

/// One that a file of jobs calls otherwise.
const fn in_file(name: &'static str, option: KindOption) -> KindOption {
    KindOption { in_file: Some(name), ..option }
}

/// One that `kjob submit` says, and nobody has to type.
const fn hidden(option: KindOption) -> KindOption {
    KindOption { is_hidden: true, ..option }
}

/// One that is a map in a file of jobs, or text.
const fn map(option: KindOption) -> KindOption {
    KindOption { takes_map: true, ..option }
}

/// The image.
pub const IMAGE: &str = "image";
/// The flavor.
pub const FLAVOR: &str = "resources-flavor";
/// The name of the Job, as it is.
pub(super) const JOB_NAME: &str = "job-name";
/// Whether the words are the command of the container, or the arguments of what its image begins with.
pub(super) const WORDS_ARE: &str = "words-are";
/// The words of [`WORDS_ARE`].
pub(super) const COMMAND: &str = "command";
/// Its other words: arguments, or nothing of them reaches the container.
pub(super) const ARGS: &str = "args";
/// Nothing.
pub(super) const NONE: &str = "none";
/// Whether our settings hold for it.
pub(super) const SETTINGS_ARE: &str = "settings-are";
/// They do not: all is said of the job itself.
pub(super) const SAID: &str = "said";
/// Whether the code goes with it.
pub(super) const CODE: &str = "code";
/// Variables that stand in its Job.
pub(super) const VARIABLE: &str = "variable";
/// The same in the records of earlier versions.
pub(super) const ENV: &str = "env";
/// Who its processes are.
pub(super) const SECURITY_CONTEXT: &str = "security-context";
/// Annotations.
pub(super) const ANNOTATIONS: &str = "annotations";
/// Volumes.
pub(super) const VOLUME: &str = "volume";
/// The volume of logs and checkpoints.
pub(super) const LOG_VOLUME: &str = "log-volume";
/// The directory on it.
pub(super) const LOG_ROOT: &str = "log-root";
/// The account in the cluster.
pub(super) const SERVICE_ACCOUNT: &str = "service-account";
/// Secrets by which images are pulled.
pub(super) const PULL_SECRET: &str = "pull-secret";
/// The rank.
pub(super) const PRIORITY_CLASS: &str = "priority-class";
/// The queue of Kueue.
pub(super) const QUEUE_LABEL: &str = "kueue-queue";
/// How many pods of it belong together.
pub(super) const NODES: &str = "nodes";
/// How long a Job stays when it is over.
pub(super) const TTL: &str = "ttl";

const OF_BOTH: [KindOption; 8] = [
    short('i', option(IMAGE, "IMAGE", "Image of its container")),
    short(
        'r',
        in_file(
            "flavor",
            map(option(
                FLAVOR,
                "FLAVOR",
                "What it asks for: a name of `tpu flavors`, a file, or JSON",
            )),
        ),
    ),
    short(
        'v',
        in_file(
            "volumes",
            map(many(option(
                VOLUME,
                "VOLUME",
                "A volume: CLAIM:/PATH, nfs/HOST:/DIR:/PATH, host/DIR:/PATH, configmap/NAME:/PATH, secret/NAME:/PATH; with :ro at the end it is read-only",
            ))),
        ),
    ),
    option(SERVICE_ACCOUNT, "NAME", "Service account under which the pod runs"),
    many(option(PULL_SECRET, "NAME", "Secret for pulling its image")),
    option(PRIORITY_CLASS, "NAME", "Priority class"),
    option(QUEUE_LABEL, "NAME", "Local queue of Kueue"),
    option(TTL, "SECONDS", "How long an ended Job stays in the cluster"),
];

/// Options of `tpu register`.
pub(super) const OF_TARGET: &[KindOption] = &[
    option("context", "NAME", "Context of the kubeconfig [default: the current one]"),
    option("namespace", "NAME", "Namespace [default: that of the context]"),
    option("kubeconfig", "FILE", "Kubeconfig [default: KUBECONFIG or ~/.kube/config]"),
    option(LOG_VOLUME, "VOLUME", "Volume on which logs and checkpoints lie, as in CLAIM:/data"),
    option(LOG_ROOT, "DIR", "Directory on that volume"),
    OF_BOTH[7],
    OF_BOTH[0],
    OF_BOTH[1],
    OF_BOTH[2],
    OF_BOTH[3],
    OF_BOTH[4],
    OF_BOTH[5],
    OF_BOTH[6],
];

/// Options of `tpu run`.
pub(super) const OF_JOB: &[KindOption] = &[
    OF_BOTH[0],
    OF_BOTH[1],
    OF_BOTH[2],
    OF_BOTH[3],
    OF_BOTH[4],
    OF_BOTH[5],
    OF_BOTH[6],
    option(NODES, "N", "Number of pods; the command runs once in each, with its rank"),
    short('j', option(JOB_NAME, "NAME", "Exact name of its Job in the cluster")),
    hidden(option(
        WORDS_ARE,
        "command|args|none",
        "Whether the words are the command of the container, arguments of the command of its image (args), or not used",
    )),
    option(
        CODE,
        "staged|none",
        "Whether the code is sent along (staged), or the image has it (none)",
    ),
    hidden(option(
        SETTINGS_ARE,
        "ours|said",
        "Whether the values of kubernetes.json are used (ours), or only those of the job itself (said)",
    )),
    OF_BOTH[7],
    short('e', many(option(VARIABLE, "NAME=VALUE", "A variable that is part of its Job"))),
    many(option(ENV, "NAME=VALUE", "The same, as earlier versions called it")),
    map(option(SECURITY_CONTEXT, "JSON", "Who its processes are, in Kubernetes' words")),
    map(many(option(ANNOTATIONS, "JSON", "Annotations of its Job: names and values"))),
];
