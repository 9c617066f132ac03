//! What the batch script keeps by itself: the limits on the time of a command, which hold without anybody of ours, and on
//! which of its tasks it runs.

use tpu_core::model::execution::Execution;
use tpu_core::model::time::age;
use tpu_engine::runner::Attempt;

use super::facts::{SILENT, TIMED_OUT};

/// The file in the log directory that says why the script has ended the job: `JOBID RESTARTS SIGNAL`, and the reason.
pub(super) const WHY_FILE: &str = "slurm-why";
/// Its name, as the watch writes it, until the command was told: it has not been ended for that before. Where it could not
/// be told, the file goes, and what it prints counts again.
pub(super) const WHY_FILE_BEFORE: &str = "slurm-why.new";

/// The file in which the command says which step it is.
const STEP_FILE: &str = "slurm-step";

/// Seconds beyond a limit of ours before Slurm's own ends a job: it counts in whole minutes, from before the set-up on.
const SLACK_S: u64 = 60;

/// Watches the command: `watch TIMEOUT IDLE_TIMEOUT`, in seconds or empty. Who is over a limit is told by SIGINT, SIGTERM
/// and SIGKILL, as a person would stop it. Why stands written before the first of them is, and counts if that was: what
/// has ended meanwhile has ended by itself. The script's SIGTERM, with which it ends the watch, waits meanwhile and is not
/// lost: the command can be gone before `scancel` is. A job that Slurm has suspended has not run meanwhile.
const WATCH: &str = r#"watch() {
    local lasted=0 silent=0 last=$SECONDS by before= now_said why step is_over=
    until [ -s "$TPU_LOG_DIR/slurm-step" ]; do sleep 0.2; done
    read -r step <"$TPU_LOG_DIR/slurm-step"
    said() { stat -c %s "$TPU_LOG_DIR"/output*.log 2>/dev/null | tr '\n' ' '; }
    last=$SECONDS
    while sleep 1; do
        by=$((SECONDS - last)) last=$SECONDS
        [ "$by" -le 30 ] || by=1
        lasted=$((lasted + by)) silent=$((silent + by)) now_said=$(said)
        if [ "$now_said" != "$before" ]; then before=$now_said silent=0; fi
        if [ -n "$1" ] && [ "$lasted" -ge "$1" ]; then why=$timeout_why
        elif [ -n "$2" ] && [ "$silent" -ge "$2" ]; then why=$idle_why
        else continue; fi
        printf '%s\n' "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} $why" >"$why_file.new"
        trap is_over=yes TERM
        if timeout 30 scancel --signal=INT "$SLURM_JOB_ID.$step" 2>/dev/null; then
            mv -f -- "$why_file.new" "$why_file"
            trap - TERM
            [ -z "$is_over" ] || return
            sleep 3
            timeout 30 scancel --signal=TERM "$SLURM_JOB_ID.$step" 2>/dev/null
            sleep 10
            until timeout 30 scancel "$SLURM_JOB_ID.$step" 2>/dev/null; do sleep 5; done
            return
        fi
        rm -f -- "$why_file.new"
        trap - TERM
        [ -z "$is_over" ] || return
    done
}
"#;

/// The watch over a command, which runs on after it in the script, and how the script ends by it; nothing where no limits
/// are set.
pub(super) struct Watch {
    /// Before the command.
    pub(super) before: String,
    /// Behind it.
    pub(super) behind: &'static str,
    /// What the first task does before the command.
    pub(super) of_task: String,
}

/// Ends the job as [`WHY_FILE`] says, if it does.
pub(super) const END: &str = r#"if [ -s "$why_file" ]; then
    { read -r _ _ signal; read -r why; } <"$why_file"
    printf 'tpu: %s \302\267 %s\n' "$TPU_JOB" "$why"
    kill -"$signal" $$
fi
"#;

/// The watch that an attempt wants.
pub(super) fn watch(attempt: &Attempt<'_>) -> Option<Watch> {
    let Execution { timeout_s, idle_timeout_s, .. } = *attempt.job.execution()?;
    if timeout_s.is_none() && idle_timeout_s.is_none() {
        return None;
    }
    let word = |limit: Option<u64>| limit.map(|s| s.to_string()).unwrap_or_default();
    let mut before = WATCH.to_owned();
    for (name, signal, why) in [
        ("timeout_why", TIMED_OUT, timeout_s.map(timed_out)),
        ("idle_why", SILENT, idle_timeout_s.map(silent)),
    ] {
        before += &format!("{name}=$'{signal}\\n{}'\n", why.unwrap_or_default());
    }
    before += &format!("rm -f \"$TPU_LOG_DIR/{STEP_FILE}\"\n");
    before += &format!(
        "watch '{}' '{}' </dev/null >/dev/null 2>&1 &\nwatcher=$!\n",
        word(timeout_s),
        word(idle_timeout_s)
    );
    Some(Watch {
        before,
        behind: "{ kill \"$watcher\"; wait \"$watcher\"; } 2>/dev/null\n",
        of_task: format!(
            "[ \"$SLURM_PROCID\" != 0 ] || echo \"$SLURM_STEP_ID\" >\"$TPU_LOG_DIR/{STEP_FILE}\"; "
        ),
    })
}

/// Why a job has ended whose time was over.
fn timed_out(most: u64) -> String {
    format!("its time is over: timeout: {}", age(most))
}

/// Why one has that was silent.
fn silent(most: u64) -> String {
    format!("it has printed nothing for {}: idle_timeout", age(most))
}

/// The minutes for which Slurm is asked, where nobody has asked it for others: what ours leaves, with its set-up.
pub(super) fn minutes(attempt: &Attempt<'_>) -> Option<u64> {
    let most = attempt.job.execution()?.timeout_s?;
    let set_up = attempt.preparation.as_ref().map_or(0, |preparation| preparation.most_s);
    Some(most.saturating_add(set_up).saturating_add(SLACK_S).div_ceil(60))
}

/// What a task does that is none of those on which the command is to run, and the first that is.
pub(super) fn only(attempt: &Attempt<'_>) -> Option<(String, u32)> {
    let workers = attempt.job.execution()?.workers.as_ref()?;
    let first = workers.iter().min()?;
    let all: Vec<String> = workers.iter().map(u32::to_string).collect();
    let text =
        format!("case \" {} \" in *\" $SLURM_PROCID \"*) ;; *) exit 0 ;; esac; ", all.join(" "));
    Some((text, *first))
}
