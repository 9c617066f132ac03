//! The picture of `src/lib.rs` as data: who may use whom, what purity forbids, what is excused.

/// A top-level module.
pub(super) struct Layer {
    /// Its name.
    pub(super) name: &'static str,
    /// What it may use of this crate, beside itself.
    pub(super) uses: &'static [&'static str],
    /// What its unit tests may use as well: downwards only, for example a real tmux server.
    pub(super) uses_in_tests: &'static [&'static str],
}

const fn layer(
    name: &'static str,
    uses: &'static [&'static str],
    uses_in_tests: &'static [&'static str],
) -> Layer {
    Layer { name, uses, uses_in_tests }
}

const BELOW_OPS: &[&str] = &[
    "text", "model", "classify", "plan", "sys", "store", "tmux", "remote", "post", "effects",
    "provider", "runner", "kinds", "jobfile",
];

/// What a kind of target is made of.
const BELOW_A_KIND: &[&str] =
    &["kinds", "provider", "runner", "effects", "store", "tmux", "remote", "sys", "model", "text"];

/// Everything that is not here is forbidden.
pub(super) const LAYERS: &[Layer] = &[
    layer("text", &[], &[]),
    layer("model", &["text"], &[]),
    layer("classify", &["model", "text"], &[]),
    layer("jobfile", &["model", "text"], &[]),
    layer("plan", &["model", "text"], &[]),
    layer("sys", &["model"], &[]),
    layer("store", &["model", "text", "sys"], &[]),
    layer("tmux", &["model", "text", "sys"], &[]),
    layer("remote", &["model", "text", "sys"], &[]),
    layer("post", &["model", "text", "sys"], &[]),
    layer("effects", &["model", "sys", "store", "tmux"], &[]),
    layer("provider", &["model", "text", "sys", "effects"], &[]),
    layer(
        "kinds",
        &["provider", "runner", "effects", "store", "tmux", "remote", "sys", "model", "text"],
        &[],
    ),
    layer(
        "runner",
        &["text", "model", "classify", "sys", "store", "tmux", "remote", "effects"],
        &[],
    ),
    layer("gcp", BELOW_A_KIND, &[]),
    layer("kubernetes", BELOW_A_KIND, &[]),
    layer("slurm", BELOW_A_KIND, &[]),
    layer(
        "lab",
        &[
            "gcp", "kinds", "provider", "runner", "effects", "store", "remote", "sys", "model",
            "text",
        ],
        &[],
    ),
    layer("built_in", &["kinds", "gcp", "kubernetes", "slurm", "lab"], &[]),
    layer("simulator", &["lab", "ops", "effects", "model", "sys"], &[]),
    layer("emulate", &["simulator", "lab", "kubernetes", "ops", "effects", "model", "sys"], &[]),
    layer("ops", BELOW_OPS, &[]),
    layer("wire", &["ops", "jobfile", "model", "plan"], &[]),
    layer(
        "cli",
        &[
            "simulator",
            "emulate",
            "wire",
            "ops",
            "jobfile",
            "effects",
            "model",
            "plan",
            "text",
            "sys",
        ],
        BELOW_OPS,
    ),
    layer("screen", &["ops", "effects", "model", "plan", "text", "sys"], BELOW_OPS),
    // What people are sent leaves as a document of `wire`.
    layer("daemon", &["wire", "ops", "effects", "model", "plan", "text", "sys"], BELOW_OPS),
    layer("api", &["wire", "ops", "effects", "model", "plan", "text", "sys"], BELOW_OPS),
    layer(
        "demo",
        &["simulator", "emulate", "ops", "effects", "model", "plan", "text", "sys"],
        BELOW_OPS,
    ),
];

/// One edge that the table does not have.
pub(super) struct Exception {
    /// Start of the path of the files.
    pub(super) file: &'static str,
    /// The layer they may use.
    pub(super) uses: &'static str,
    /// Also the layer as a whole; else only items of it by name.
    pub(super) whole: bool,
}

/// The edges that the table does not have, each with its reason.
pub(super) const EXCEPTIONS: &[Exception] = &[
    // The command line starts the other ways in, from one file; the screen wants many options, and somebody
    // who understands what is typed into it.
    Exception { file: "src/cli/screen", uses: "screen", whole: true },
    Exception { file: "src/cli/dispatch.rs", uses: "daemon", whole: true },
    Exception { file: "src/cli/serve.rs", uses: "api", whole: true },
    // Which kinds of target there are is said where the program begins; their options are the command line's.
    Exception { file: "src/cli/mod.rs", uses: "kinds", whole: false },
    Exception { file: "src/cli/mod.rs", uses: "built_in", whole: false },
    Exception { file: "src/cli/args/kinds.rs", uses: "built_in", whole: false },
    Exception { file: "src/cli/args/kinds.rs", uses: "kinds", whole: false },
    Exception { file: "src/cli/demo.rs", uses: "demo", whole: true },
];

/// The kinds of target, what stands in for them, and where they are put together.
pub(super) const KIND_LAYERS: &[&str] = &["kinds", "gcp", "kubernetes", "slurm", "lab", "built_in"];

/// What plays the part of one provider, whatever provider the targets have: the strings of the simulator.
pub(super) const KNOW_A_KIND: &[&str] = &["src/simulator.rs", "src/emulate.rs"];

/// The modules that decide and never touch the world.
pub(super) const PURE: &[&str] =
    &["text", "model", "classify", "jobfile", "plan", "wire", "screen::update", "screen::view"];

/// What a pure module must not name, and what to do instead. The effects of this crate are kept out by
/// [`LAYERS`], except in the screen, which as a whole may use `sys`.
pub(super) const FORBIDDEN_IN_PURE: &[(&str, &str)] = &[
    ("std::fs", "contents of files come in as arguments"),
    ("std::process", "what a program said comes in as a fact"),
    ("std::net", "what a peer said comes in as a fact"),
    ("std::env", "the environment comes in as an argument, read by sys::env"),
    ("std::thread", "it runs where its caller runs"),
    ("std::time::Instant", "time comes in as an argument"),
    ("std::time::SystemTime", "time comes in as an argument, a model::time::Timestamp"),
    ("std::time::UNIX_EPOCH", "time comes in as an argument, a model::time::Timestamp"),
    ("std::io::stdin", "input comes in as an argument"),
    ("std::io::stdout", "it returns what its caller may print"),
    ("std::io::stderr", "it returns what its caller may print"),
    ("std::os::unix::fs", "contents of files come in as arguments"),
    ("std::os::unix::net", "what a peer said comes in as a fact"),
    ("std::os::unix::process", "what a program said comes in as a fact"),
    ("jiff::Timestamp::now", "time comes in as an argument"),
    ("jiff::Zoned::now", "time comes in as an argument"),
    ("jiff::tz::TimeZone::system", "the zone comes in as an argument"),
    ("crossterm::terminal", "only screen::terminal touches the terminal"),
    ("crossterm::execute", "only screen::terminal touches the terminal"),
    ("crossterm::event::read", "events come in as messages"),
    ("crossterm::event::poll", "events come in as messages"),
    ("axum", "nothing here serves anybody"),
    ("tokio", "nothing here waits"),
    ("rustix", "system calls are made in sys and the effects"),
    ("libc", "system calls are made in sys and the effects"),
    ("tmux_interface", "only the tmux module knows tmux"),
    ("tempfile", "contents of files come in as arguments"),
    ("directories", "the environment comes in as an argument, read by sys::env"),
    ("ignore", "contents of files come in as arguments"),
    ("fd_lock", "only store locks"),
    ("getrandom", "randomness comes in as an argument"),
    ("signal_hook", "signals come in as messages"),
    ("crate::sys", "clock, processes and environment come in as arguments"),
];

/// Methods of `std::path::Path` that ask the file system without naming it.
pub(super) const IO_METHODS: &[&str] = &[
    "canonicalize",
    "exists",
    "is_dir",
    "is_file",
    "is_symlink",
    "metadata",
    "read_dir",
    "read_link",
    "symlink_metadata",
    "try_exists",
];

/// What of `ops` waits for real threads, which a simulation has none of: the readers of workers' shells, and what runs
/// beside a copy through a slow door. Everybody else waits by `sys::threads::next_of`, so that one can play it.
pub(super) const WAIT_FOR_REAL_THREADS: &[&str] =
    &["src/ops/act/workers/print.rs", "src/ops/act/launch/unsubmitted.rs"];

/// The ways in. What leaves through them as JSON is a document of `wire`, so that each is written once and its schema
/// is derived.
pub(super) const MAKE_NO_JSON: &[&str] = &["cli", "screen", "daemon", "demo"];

/// Files from which every other one is reached, and what Cargo runs before it builds a crate.
pub(super) const ROOTS: &[&str] = &[
    "src/lib.rs",
    "src/main.rs",
    "tests/main.rs",
    "tests/kinds/echo/main.rs",
    "crates/api/build.rs",
    "crates/core/build.rs",
];

/// The longest file.
pub(super) const MAX_LINES: usize = 600;

/// Tables of data that may be longer.
pub(super) const LONG_TABLES: &[&str] = &[];

/// Folders whose parts are storeys, the lowest first: a storey uses those below it. A part that is not named stands above
/// them all.
pub(super) const STOREYS: &[(&str, &[&str])] =
    &[("ops", &["base", "observe", "act", "waiting", "front"])];

/// Folders in which circles still stand.
pub(super) const CIRCLES: &[&str] = &[];

/// Names that several public types still have.
pub(super) const HOMONYMS: &[&str] = &[
    "Again", "Answer", "Ask", "Board", "Change", "Command", "Door", "Effect", "Effects", "Entry",
    "Event", "Output", "Plan", "Problem", "Progress", "Row", "Scope", "Which", "Wish",
];
