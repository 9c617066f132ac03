//! What stands below `tpu --help`.

/// What a newcomer looks for, on one screen of 80 × 24: `tpu help COMMAND` lists every flag.
pub(super) const OVERVIEW: &str = "\
Begin:    demo                      a tour with real jobs; needs only tmux
          init                      make yourself and this directory known
Jobs:     run TARGET [KEY=VALUE]    start a job; `-- COMMAND` runs any command
          monitor                   full screen: watch, kill, resume with keys
          check, logs W, explain W  how jobs are, what they print, why they fail
          find TYPE, reserve TARGET who uses which target, which are free
          resume W, rerun W         from the last checkpoint, from scratch
          kill W, clean             stop a job, clear away what has ended
          daemon start              bring jobs back by their rules
Set up:   ls, set-cur 2, -a, -ta    directories, config aliases, target aliases
          get-settings, set-settings KEY VALUE
Learn:    tldr, help COMMAND        a short tour, one command with all its flags
          help --all                every command

Anywhere: --user NAME, --data FILE, --settings FILE, --tmux-socket NAME, --json,
          --yes, --no-input, --dry-run, --cloud NAME, --color WHEN, --help,
          --verbose, --version";
