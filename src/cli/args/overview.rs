//! The text below `tpu --help`, and that of `tpu --version`.

/// The commands of a first day, at most 14 and on one screen of 80 × 24: `tpu help --all` lists the rest.
pub(super) const OVERVIEW: &str = "\
Start:    demo                      a tour with real jobs; leaves nothing behind
          run TARGET -- COMMAND     start a job now; `local` is this machine
          submit TARGET -- COMMAND  queue a job; it starts when there is room
Look:     monitor                   the screen: watch, stop, resume with keys
          check                     list jobs with their status and progress
          logs W                    print the output of a job; -f follows it
          explain W                 explain why a job waits, runs or failed
Change:   kill W                    stop a job
          resume W                  restart a job from its last checkpoint
          rerun W                   run a job again from scratch
          clean                     archive ended jobs
Set up:   hosts add NAME            add a machine that ssh reaches
          daemon start              restart failed jobs automatically
More:     help --all, help COMMAND  all commands; one of them; `tldr`: examples

Anywhere: --user NAME, --data FILE, --settings FILE, --tmux-socket NAME, --json,
          --yes, --no-input, --dry-run, --cloud NAME, --color WHEN, --help,
          --verbose, --version";

/// What `tpu --version` prints behind the name: the version, the commit, and the features of `Cargo.toml`. `-V` prints the
/// version alone.
pub(super) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("BUILT_COMMIT"),
    "\nfeatures: ",
    env!("BUILT_FEATURES"),
);
