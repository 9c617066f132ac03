//! The one batch script: the environment of the job, its directories, and its command by `srun`.
//!
//! It is pure ASCII, whatever words it carries. `sbatch` reads options from comments until the first command: that is
//! the first line, so that nothing of a user's is ever taken for one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use tpu_core::model::job::Job;
use tpu_engine::runner::{Attempt, environment};

use super::absent::{ALIVE_EVERY_S, ALIVE_FILE};
use super::ended::EXIT_FILE;
use super::facts::{GIVEN_UP, NOT_SET_UP, UNSEEN};
use super::laid::{READ, SET_UP, UNREAD};
use super::limits::{self, WHY_FILE};
use super::settle::GIVEN_UP as MARK;

/// What differs between the members of a group.
const OF_MEMBER: [&str; 4] = ["TPU_JOB", "TPU_MEMBER", "TPU_LOG_DIR", "TPU_STAGE_DIR"];

/// What each task runs: all but the first write into logs of their own. Errors are part of what a command prints; what
/// `srun` says itself is kept apart.
fn task(attempt: &Attempt<'_>, of_watch: &str) -> String {
    let (only, first) = limits::only(attempt).unwrap_or_default();
    format!(
        "{of_watch}{only}export TPU_WORKER=$SLURM_PROCID; \
         [ \"$SLURM_PROCID\" = {first} ] || exec >>\"$TPU_LOG_DIR/output.$SLURM_PROCID.log\"; exec \"$@\" 2>&1"
    )
}

/// Ends the job for a reason of the script's own: `fail SIGNAL REASON`. The first reason stands.
const FAIL: &str = r#"fail() {
    [ -s "$why_file" ] || printf '%s\n' "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} $1" "$2" >"$why_file"
}
"#;

/// Sets up every node of the job, by a step of its own that lives as long as the command: what the set-up of a node leaves
/// running, such as a mount, ends with its step. No command begins before all are ready.
const SETTING_UP: &str = r#"set_up() {
    local laid=$TPU_LOG_DIR/.set-up
    if ! mkdir -p "$laid/ready" || ! [ -e "$laid/node.sh" ]; then
        fail $not_set_up 'what it sets up was taken by an earlier start; a new attempt brings it along: tpu resume'
        return
    fi
    rm -f -- "$laid/ready"/*
    echo "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} $not_set_up" >"$laid/head"
    srun --overlap --cpu-bind=none --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
        --kill-on-bad-exit=1 bash -c 'exec bash "$0/node.sh" "$0" "$TPU_JOB" "$SLURM_PROCID" "$SLURMD_NODENAME" "$1"' \
        "$laid" "$why_file" </dev/null 2>"$TPU_LOG_DIR/slurm-set-up.log" &
    setting_up=$!
    until [ "$(ls "$laid/ready" | wc -l)" -ge "$SLURM_JOB_NUM_NODES" ]; do
        if ! kill -0 "$setting_up" 2>/dev/null; then
            wait "$setting_up"
            fail $not_set_up "srun ended with $? before all nodes were set up: $(tail -n 1 "$TPU_LOG_DIR/slurm-set-up.log")"
            break
        fi
        sleep 0.2
    done
    rm -f "$TPU_LOG_DIR/set-up"
    [ -s "$why_file" ] || printf 'tpu: %s \302\267 set-up: all of it is so on %s nodes\n' "$TPU_JOB" "$SLURM_JOB_NUM_NODES"
}
"#;

/// Touches a file as a sign of life, for as long as the script lives. It takes the `sleep` that it waits for along.
const ALIVE: &str = r#"alive() {
    trap 'kill "$nap" 2>/dev/null; exit 0' TERM
    while :; do
        touch -- "$TPU_LOG_DIR/@FILE"
        sleep @EVERY & nap=$!
        wait
    done
}
alive </dev/null >/dev/null 2>&1 &
alive=$!
"#;

/// Ends the job as it has ended before, if Slurm has started it again without knowing that: the controller may have been
/// set back to an older state. It has ended for certain where this very start has written that down, and where its command
/// ended well, as nothing is ever to be started again that has.
const ENDED_BEFORE: &str = r#"if read -r id restarts code 2>/dev/null <"$TPU_LOG_DIR/@EXIT" &&
    { [ "$id $restarts" = "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0}" ] || [ "$code" = 0 ]; }; then
    exit "$code"
fi
if read -r id restarts signal 2>/dev/null <"$why_file" &&
    [ "$id $restarts" = "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0}" ]; then
    kill -"$signal" $$
fi
"#;

/// Waits until an attempt that was lost gives no more signs of life: whatever was said of it, it may work on. The clock is
/// that of the disk.
const WAIT: &str = r#"waits=
while theirs=$(stat -c %Y -- "$before/@FILE" 2>/dev/null); do
    touch -- "$TPU_LOG_DIR/@FILE"
    now=$(stat -c %Y -- "$TPU_LOG_DIR/@FILE")
    [ $((now - theirs)) -lt @SILENT ] || break
    [ -n "$waits" ] || printf 'tpu: %s Â· waits until the attempt before it has been silent for @SILENT s
' "$TPU_JOB"
    waits=yes
    sleep 2
done
"#;

/// The seconds of silence after which a lost attempt counts as dead: three signs of life are missing then.
const SILENT_S: u64 = 3 * ALIVE_EVERY_S;

/// A part of the script with its names and figures.
fn filled(part: &str) -> String {
    part.replace("@FILE", ALIVE_FILE)
        .replace("@EXIT", EXIT_FILE)
        .replace("@EVERY", &ALIVE_EVERY_S.to_string())
        .replace("@SILENT", &SILENT_S.to_string())
}

/// The script of some attempts: one, or the members of a group, which are the tasks of one array. `is_here` says
/// whether its nodes have the programs of this machine; `lost` are the log directories of attempts that were lost, which
/// this one goes on for.
pub(super) fn of(attempts: &[Attempt<'_>], is_here: bool, lost: &[String]) -> String {
    let Some(first) = attempts.first() else { return String::new() };
    let mut text = "#!/bin/bash\nunset ENV BASH_ENV\n".to_owned();
    for (name, value) in environment::of_attempt(first, is_here) {
        if name.to_str().is_some_and(is_name) {
            text += &format!("export {}={}\n", name.display(), quoted(&value));
        }
    }
    if let [_, _, ..] = attempts {
        text += "case \"$SLURM_ARRAY_TASK_ID\" in\n";
        for attempt in attempts {
            text += &member(attempt.job);
        }
        text += "*) echo \"tpu: task $SLURM_ARRAY_TASK_ID is none of this group\" >&2; exit 1 ;;\nesac\n";
        text += &format!("export {}\n", OF_MEMBER.join(" "));
    }
    let shown = |line: String| format!("# {}\n", line.escape_default());
    text += &shown(format!("{} on {}", first.job.id(), first.job.tpu));
    // Nodes that do not see the directories end the job by a signal that nothing else does.
    text += &format!("[ -d \"$TPU_LOG_DIR\" ] || kill -{UNSEEN} $$\n");
    // Whoever submits it may have stood still until it was given up, and its lineage brought back.
    let has_secrets = first.job.execution().is_some_and(|execution| !execution.secrets.is_empty());
    let unread = if has_secrets { format!("{UNREAD}; ") } else { String::new() };
    text += &format!("[ ! -d \"$TPU_LOG_DIR/{MARK}\" ] || {{ {unread}kill -{GIVEN_UP} $$; }}\n");
    if attempts.len() > 1 {
        text += "exec >>\"$TPU_LOG_DIR/output.log\" 2>&1\n";
    }
    text += &format!("why_file=$TPU_LOG_DIR/{WHY_FILE}\n");
    text += &filled(ENDED_BEFORE);
    text += &format!("rm -f \"$TPU_LOG_DIR/{EXIT_FILE}\" \"$why_file\"\n");
    for before in lost {
        text += &format!("before={}\n{}", quoted(OsStr::new(before)), filled(WAIT));
    }
    text += &filled(ALIVE);
    if has_secrets {
        text += READ;
    }
    let (place, what) = if let Some(there) = first.job.workplace() {
        (on_machine(there), "the directory in which it runs")
    } else {
        let below = first.job.within("");
        let below = if below.is_empty() { below } else { quoted(OsStr::new(&below)) };
        (format!("\"$TPU_STAGE_DIR\"{below}"), "the copy of the code")
    };
    text += &format!(
        "place={place}\ncd -- \"$place\" || {{ echo \"tpu: $(hostname) does not see {what}, \
         $place\" >&2; kill -{UNSEEN} $$; }}\n"
    );
    let watch = limits::watch(first);
    let most = first.job.execution().and_then(|execution| execution.workers.iter().flatten().max());
    if first.preparation.is_some() || most.is_some() {
        text += FAIL;
    }
    if let Some(most) = most {
        text += &format!(
            "tasks=${{SLURM_NTASKS:-$SLURM_JOB_NUM_NODES}}\n\
             [ {most} -lt \"$tasks\" ] || fail {NOT_SET_UP} \"workers: it has $tasks of them, and no worker {most}\"\n"
        );
    }
    if let Some(preparation) = &first.preparation {
        text += &format!("not_set_up={NOT_SET_UP}\n{SETTING_UP}[ -s \"$why_file\" ] || set_up\n");
        let last = if preparation.is_confidential { "" } else { "[ ! -s \"$why_file\" ] || " };
        text += &format!("{last}rm -rf -- \"$TPU_LOG_DIR/{SET_UP}\"\n");
    }
    if first.preparation.is_some() || most.is_some() {
        text += limits::END;
    }
    // What the job was given for each task is not handed on by itself to what runs the tasks.
    text += "[ -z \"$SLURM_CPUS_PER_TASK\" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\n";
    text += watch.as_ref().map_or("", |watch| watch.before.as_str());
    let words: Vec<String> = first.words.iter().map(|word| quoted(word)).collect();
    text += &format!(
        "srun bash -c {} tpu {} </dev/null 2>\"$TPU_LOG_DIR/slurm.log\"\n",
        quoted(OsStr::new(&task(first, watch.as_ref().map_or("", |watch| &watch.of_task)))),
        words.join(" ")
    );
    text += "code=$?\n";
    text += watch.as_ref().map_or("", |watch| watch.behind);
    if first.preparation.is_some() {
        text += "{ kill \"$setting_up\"; wait \"$setting_up\"; } 2>/dev/null\n";
        text += &format!("rm -rf -- \"$TPU_LOG_DIR/{SET_UP}\"\n");
    }
    // What a command ended with is no part of what it has printed.
    text += "grep -v ': tasks* [0-9,-]*: Exited with exit code' \"$TPU_LOG_DIR/slurm.log\" >&2\n";
    if watch.is_some() {
        text += limits::END;
    }
    text += &format!(
        "echo \"$SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} $code\" >\"$TPU_LOG_DIR/{EXIT_FILE}\"\n"
    );
    text += "{ kill \"$alive\"; wait \"$alive\"; } 2>/dev/null\n";
    text += &format!("rm -f \"$TPU_LOG_DIR/{ALIVE_FILE}\"\n");
    text + "exit $code\n"
}

/// A directory of the nodes, as a shell there reads it.
fn on_machine(dir: &str) -> String {
    match dir.strip_prefix("~/") {
        Some(below) => format!("\"$HOME\"/{}", quoted(OsStr::new(below))),
        None => quoted(OsStr::new(dir)),
    }
}

/// The line that makes a task the member that it is.
fn member(job: &Job) -> String {
    let vars = environment::of_job(job);
    let of_member = OF_MEMBER.iter().filter_map(|name| {
        let (_, value) = vars.iter().find(|(known, _)| known == name)?;
        Some(format!("{name}={}", quoted(value)))
    });
    let index = job.member().map_or(0, |member| member.index);
    format!("{index}) {} ;;\n", of_member.collect::<Vec<_>>().join(" "))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A word as bash reads it back, whatever bytes it has, in printable ASCII on one line.
pub(super) fn quoted(word: &OsStr) -> String {
    let bytes = word.as_bytes();
    let is_bare = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:,+@%".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(is_bare) {
        return word.to_string_lossy().into_owned();
    }
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\'') {
        return format!("'{}'", word.to_string_lossy());
    }
    let escaped: String = bytes.iter().map(|byte| escaped(*byte)).collect();
    format!("$'{escaped}'")
}

fn escaped(byte: u8) -> String {
    match byte {
        b'\\' | b'\'' => format!("\\{}", char::from(byte)),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        // Three digits always: what follows may be a digit.
        other => format!("\\{other:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::execution::Execution;
    use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
    use tpu_core::model::job::{Launch, LaunchMode};
    use tpu_core::model::member::Member;
    use tpu_core::model::spec::StoredSpec;
    use tpu_core::model::time::Timestamp;
    use tpu_core::model::variables::Secrets;
    use tpu_engine::runner::Environment;
    use tpu_system::sys::proc::ProcessStatus::{self, Code, Signal};
    use tpu_system::sys::proc::{self, Spawn};

    fn job(number: u32, member: Option<u32>) -> Job {
        let id = JobId::new(UserName::from("alice"), JobNumber(number));
        let mut job = Job::new(&id, TargetName::from("gpu"), "/d".to_owned());
        job.log_dir = Some(format!("/logs/{number}"));
        job.stage_dir = Some(format!("/stage/{number}"));
        job.launch = Some(Launch::claimed("t", LaunchMode::Native, Timestamp::from_second(0)));
        let member = member.map(|index| Member { group: JobNumber(5), index });
        job.spec = Some(Box::new(StoredSpec { member, ..StoredSpec::default() }));
        job
    }

    fn attempt<'a>(job: &'a Job, words: &[&OsStr]) -> Attempt<'a> {
        Attempt {
            job,
            session: "alice",
            name: String::new(),
            cwd: "/".into(),
            words: words.iter().map(Into::into).collect(),
            env: vec![("PATH".into(), "/opt/bin:/bin".into()), ("HF_HOME".into(), "/hf".into())],
            asked: Environment::default(),
            secrets: Secrets::default(),
            workers_by: None,
            preparation: None,
            avoid: Vec::new(),
            at_once: None,
        }
    }

    #[test]
    fn any_word_comes_back_from_bash_byte_for_byte() {
        for word in [
            &b"plain-1.2_x"[..],
            b"",
            b"a b",
            b"it's",
            b"$(id) `id` \"x\" \\ !",
            b"a\r\nb\tc\n#SBATCH -n 9\n",
            b"\xff\xfe1\x017",
            "grüße".as_bytes(),
            b"-n",
            b"~",
            b"*",
        ] {
            let text = quoted(OsStr::from_bytes(word));
            assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{text}");
            let echo = Spawn::new("bash").args(["-c", &format!("printf %s {text}")]);
            assert_eq!(proc::run(&echo).unwrap().stdout, word, "{text}");
        }
    }

    #[test]
    fn no_line_of_a_script_is_an_option_and_none_ends_as_in_dos() {
        let job = job(7, None);
        let hostile = OsStr::new("x\n#SBATCH --requeue\r\n#PBS -r y\n");
        let text = of(&[attempt(&job, &[OsStr::new("echo"), hostile])], true, &[]);
        assert!(text.is_ascii() && !text.contains('\r'));
        assert!(text.lines().all(|line| !line.starts_with("#SBATCH") && !line.starts_with("#PBS")));
        assert_eq!(text.lines().nth(1), Some("unset ENV BASH_ENV"), "a command before any comment");
    }

    #[test]
    fn another_machine_has_its_own_programs() {
        let job = job(7, None);
        let here = of(&[attempt(&job, &[OsStr::new("true")])], true, &[]);
        let there = of(&[attempt(&job, &[OsStr::new("true")])], false, &[]);
        assert!(
            here.contains("export PATH=/opt/bin:/bin\n") && !there.contains("PATH="),
            "{there}"
        );
        for text in [here, there] {
            assert!(
                text.contains("export HF_HOME=/hf\n") && text.contains("export TPU_JOB=alice/7\n")
            );
        }
    }

    #[test]
    fn what_is_said_of_the_job_itself_is_so_on_every_machine() {
        let mut job = job(7, None);
        let said = [("PATH", "/there"), ("NOTE", "it's *")];
        let variables = said.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let execution = Execution { variables, ..Execution::default() };
        job.spec = Some(Box::new(StoredSpec { execution, ..StoredSpec::default() }));
        for is_here in [true, false] {
            let text = of(&[attempt(&job, &[OsStr::new("true")])], is_here, &[]);
            assert!(text.contains("export PATH=/there\n"), "{text}");
            assert!(text.contains("export NOTE=$'it\\'s *'\n"), "{text}");
        }
    }

    #[test]
    fn each_task_is_the_member_that_it_is() {
        let jobs = [job(8, Some(0)), job(9, Some(4))];
        let attempts: Vec<Attempt<'_>> =
            jobs.iter().map(|job| attempt(job, &[OsStr::new("true")])).collect();
        let text = of(&attempts, true, &[]);
        let until = text.find("[ -d").unwrap();
        let told = |task: &str| {
            let script =
                format!("{}\necho $TPU_JOB $TPU_MEMBER $TPU_GROUP $TPU_LOG_DIR", &text[..until]);
            let bash = Spawn::new("bash").args(["-c", &script]).env("SLURM_ARRAY_TASK_ID", task);
            proc::run(&bash).unwrap().text()
        };
        assert_eq!(told("4"), "alice/9 4 5 /logs/9\n");
        assert_eq!(told("0"), "alice/8 0 5 /logs/8\n");
        assert_eq!(told("1"), "", "none of this group");
    }

    #[test]
    fn only_the_member_that_was_given_up_ends_before_it_begins() {
        let root = tempfile::tempdir().unwrap();
        let jobs = [(8, 0), (9, 4)].map(|(number, task)| {
            let mut job = job(number, Some(task));
            let dir = root.path().join(number.to_string());
            std::fs::create_dir(&dir).unwrap();
            job.log_dir = Some(dir.display().to_string());
            job
        });
        std::fs::create_dir(root.path().join("9").join(MARK)).unwrap();
        let attempts: Vec<Attempt<'_>> =
            jobs.iter().map(|job| attempt(job, &[OsStr::new("true")])).collect();
        let text = of(&attempts, true, &[]);
        let until = text.find("exec >>").unwrap();
        let told = |task: &str| {
            let script = format!("{}\necho begins", &text[..until]);
            let bash = Spawn::new("bash").args(["-c", &script]).env("SLURM_ARRAY_TASK_ID", task);
            let output = proc::run(&bash).unwrap();
            (output.text(), output.status)
        };
        assert_eq!(told("0"), ("begins\n".to_owned(), Code(0)));
        assert_eq!(told("4"), (String::new(), Signal(GIVEN_UP)));
    }

    /// Runs a part of the script as a start of job 12, in a log directory.
    fn run_part(part: &str, dir: &std::path::Path, restarts: &str) -> ProcessStatus {
        let script = format!("why_file=$TPU_LOG_DIR/{WHY_FILE}\n{}\nexit 99", filled(part));
        let bash = Spawn::new("bash").args(["-c", &script]);
        let bash = bash.env("TPU_LOG_DIR", dir).env("SLURM_JOB_ID", "12").env("TPU_JOB", "alice/7");
        let bash = bash.env("SLURM_RESTART_COUNT", restarts);
        proc::run(&bash).unwrap().status
    }

    fn put(path: std::path::PathBuf, text: &str) {
        use std::io::Write as _;
        std::fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn what_has_ended_is_not_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let code = |exit: &str, restarts| {
            put(dir.path().join(EXIT_FILE), exit);
            run_part(ENDED_BEFORE, dir.path(), restarts)
        };
        assert_eq!(code("12 0 7\n", "0"), Code(7), "this very start has ended");
        assert_eq!(code("12 0 0\n", "1"), Code(0), "it has ended well");
        assert_eq!(code("12 0 7\n", "1"), Code(99), "Slurm starts it again, and it had failed");
        assert_eq!(code("11 0 7\n", "0"), Code(99), "another job");
        assert_eq!(code("", "0"), Code(99));
        std::fs::remove_file(dir.path().join(EXIT_FILE)).unwrap();
        assert_eq!(run_part(ENDED_BEFORE, dir.path(), "0"), Code(99));
        put(dir.path().join(WHY_FILE), "12 0 9\nwhy\n");
        assert_eq!(run_part(ENDED_BEFORE, dir.path(), "0"), Signal(9));
        assert_eq!(run_part(ENDED_BEFORE, dir.path(), "1"), Code(99));
    }

    #[test]
    fn a_successor_of_a_lost_attempt_waits_until_that_is_silent() {
        let dir = tempfile::tempdir().unwrap();
        let (own, before) = (dir.path().join("own"), dir.path().join("it's before"));
        std::fs::create_dir(&own).unwrap();
        std::fs::create_dir(&before).unwrap();
        let alive = before.join(ALIVE_FILE);
        let quiet = |seconds: u64| {
            let file = std::fs::File::create(&alive).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - std::time::Duration::from_secs(seconds)).unwrap();
        };
        let part = format!("before={}\n{WAIT}", quoted(before.as_os_str()));
        let waits = |part: &str| {
            // Whoever waits sleeps: that ends it here.
            run_part(&format!("sleep() {{ exit 42; }}\n{part}"), &own, "0")
        };
        assert_eq!(waits(&part), Code(99), "nothing was ever alive there");
        quiet(SILENT_S - ALIVE_EVERY_S);
        assert_eq!(waits(&part), Code(42));
        quiet(SILENT_S + 1);
        assert_eq!(waits(&part), Code(99));
    }

    #[test]
    fn the_sign_of_life_ends_with_its_script() {
        let dir = tempfile::tempdir().unwrap();
        let part = format!(
            "{ALIVE}until [ -e \"$TPU_LOG_DIR/@FILE\" ]; do :; done; kill \"$alive\"; wait \"$alive\""
        );
        assert_eq!(run_part(&part, dir.path(), "0"), Code(99));
    }
}
