//! Has the daemon begin with this machine: a unit of systemd for this account; where there is no systemd for it, a line of
//! its crontab. Nothing is written before a person has seen it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tpu_core::text;
use tpu_system::store::atomic;
use tpu_system::sys::proc::{self, Output, Spawn};

use crate::act::service::{self, How, RunningDaemon};
use crate::base::watch::{self, Hosting};
use crate::{Ctx, Error};

/// The name of the unit.
const UNIT: &str = "tpu-daemon.service";

/// The end of the line in a crontab; the shell that runs the line takes it for a comment.
const MARK: &str = "# tpu-daemon";

/// `systemctl` and `crontab` answer within that.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long systemd may take until the daemon has begun. It begins all the same if nobody waits.
const BEGINS_WITHIN: Duration = Duration::from_secs(3);

/// Mode of the unit, which holds no secret.
const MODE: u32 = 0o644;

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A unit of systemd.
    Systemd {
        /// Its file.
        file: PathBuf,
        /// What the file holds.
        text: String,
    },
    /// A line of the crontab.
    Crontab {
        /// The line.
        line: String,
    },
}

impl Unit {
    /// The word for what it is.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Systemd { .. } => "systemd",
            Self::Crontab { .. } => "crontab",
        }
    }

    /// The file, where it is known.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Systemd { file, .. } => Some(file),
            Self::Crontab { .. } => None,
        }
    }

    /// What is written.
    pub fn text(&self) -> &str {
        match self {
            Self::Systemd { text, .. } => text,
            Self::Crontab { line } => line,
        }
    }

    /// Whether it starts the daemon of this data file: its words name that, as [`plan`] writes them.
    pub fn starts_daemon_of(&self, data: &Path) -> bool {
        let Some(data) = data.to_str() else { return false };
        let words = ["--data", data];
        match self {
            Self::Systemd { text, .. } => {
                let words = words.map(|word| for_systemd(word, true)).join(" ");
                text.lines().any(|line| line.starts_with("ExecStart=") && line.contains(&words))
            }
            Self::Crontab { line } => shlex::try_join(words)
                .is_ok_and(|words| line.contains(&format!(" {} ", for_crontab(&words)))),
        }
    }

    /// All that installing it does, for a person to read first.
    pub fn in_words(&self) -> String {
        match self {
            Self::Systemd { file, text } => {
                format!("{}:\n\n{}\n", file.display(), text.trim_end())
            }
            Self::Crontab { line } => format!("a line of the crontab of this account:\n\n{line}\n"),
        }
    }
}

/// What would be written here for a daemon that is started so.
pub fn plan(ctx: &Ctx, how: &How) -> Result<Unit, Error> {
    ctx.data()?;
    if has_systemd(ctx) {
        return Ok(Unit::Systemd { file: unit_file(ctx), text: unit_text(ctx, how)? });
    }
    if crontab(ctx)?.is_some() {
        return Ok(Unit::Crontab { line: crontab_line(ctx, how)? });
    }
    Err(Error::unreachable("this account has neither a systemd of its own nor a crontab")
        .hint("`tpu daemon start` starts the daemon; it ends with the machine"))
}

/// Writes it, and has the daemon begin now unless one runs: that one goes on. What is to be said.
pub fn install(ctx: &Ctx, how: &How, unit: &Unit) -> Result<String, Error> {
    let runs = watch::running(ctx);
    match unit {
        Unit::Systemd { file, text } => {
            let dir = file.parent().unwrap_or(Path::new("/"));
            let made = std::fs::create_dir_all(dir);
            made.map_err(|e| {
                Error::state(format!("cannot create {}: {e}", dir.display()))
                    .hint("check the rights there")
            })?;
            atomic::write_file(&**ctx.store.disk(), file, text.as_bytes(), MODE)?;
            systemctl(&["daemon-reload"])?;
            // Where a daemon runs, the unit is refused, and tries again until that one has ended.
            systemctl(&["enable", "--now", UNIT])?;
        }
        Unit::Crontab { line } => {
            let others = without(&crontab(ctx)?.unwrap_or_default(), is_ours);
            write_crontab([&others, line.as_bytes(), b"\n"].concat())?;
            if runs.is_none() {
                let RunningDaemon { pid, .. } = service::start(ctx, how)?;
                return Ok(format!("The daemon runs now: process {pid}."));
            }
        }
    }
    Ok(match (runs, unit) {
        (Some(note), Unit::Systemd { .. }) => {
            format!("A daemon runs already (process {}); the installed one follows it.", note.pid)
        }
        (Some(note), Unit::Crontab { .. }) => {
            let pid = note.pid;
            format!("A daemon runs already (process {pid}); the installed one starts at boot.")
        }
        (None, _) => match begins(ctx) {
            Some(note) => format!("The daemon runs now: process {}.", note.pid),
            None => "The daemon is starting (see: tpu daemon status).".to_owned(),
        },
    })
}

/// The daemon that begins within some seconds.
fn begins(ctx: &Ctx) -> Option<watch::Note> {
    let deadline = ctx.clock.monotonic() + BEGINS_WITHIN;
    loop {
        let note = watch::running(ctx);
        if note.is_some() || ctx.clock.monotonic() >= deadline {
            return note;
        }
        ctx.clock.sleep(Duration::from_millis(20));
    }
}

/// Has systemd start its daemon anew. What to do where its unit names another program than this one.
pub fn restart(ctx: &Ctx) -> Result<Option<String>, Error> {
    systemctl(&["restart", UNIT])?;
    let unit = ctx.store.disk().read(&unit_file(ctx)).map(|read| read.bytes).unwrap_or_default();
    let is_named = ctx.tpu.to_str().is_some_and(|program| {
        String::from_utf8_lossy(&unit).contains(&for_systemd(program, true))
    });
    Ok((!is_named).then(|| {
        format!(
            "{UNIT} starts another program than this one; to have it start {}: tpu daemon install -y",
            ctx.tpu.display()
        )
    }))
}

/// Takes away what was installed; what that was. A daemon that runs goes on.
pub fn uninstall(ctx: &Ctx) -> Result<Vec<Unit>, Error> {
    let found = installed(ctx)?;
    for unit in &found {
        take_away(ctx, unit)?;
    }
    Ok(found)
}

/// Takes one of what was installed away.
pub(super) fn take_away(ctx: &Ctx, unit: &Unit) -> Result<(), Error> {
    match unit {
        Unit::Systemd { file, .. } => {
            // Without a session of systemd nothing else is to be undone.
            if has_systemd(ctx) {
                systemctl(&["disable", UNIT])?;
            }
            ctx.store.disk().remove(file).map_err(|e| {
                Error::state(format!("cannot remove {}: {e}", file.display()))
                    .hint("check the rights there")
            })?;
            if has_systemd(ctx) {
                systemctl(&["daemon-reload"])?;
            }
            Ok(())
        }
        Unit::Crontab { line } => {
            write_crontab(without(&crontab(ctx)?.unwrap_or_default(), |of| of == line))
        }
    }
}

/// What is installed. An error where nothing is.
pub fn installed(ctx: &Ctx) -> Result<Vec<Unit>, Error> {
    let mut found = Vec::new();
    let file = unit_file(ctx);
    if let Ok(read) = ctx.store.disk().read(&file) {
        let text = String::from_utf8_lossy(&read.bytes).into_owned();
        found.push(Unit::Systemd { file, text });
    }
    match crontab(ctx) {
        Ok(table) => {
            let table = table.unwrap_or_default();
            let ours = lines(&table).filter_map(text_of).filter(|line| is_ours(line));
            found.extend(ours.map(|line| Unit::Crontab { line: line.to_owned() }));
        }
        // Where nobody can say what the crontab holds, the unit can be removed all the same.
        Err(error) if found.is_empty() => return Err(error),
        Err(_) => {}
    }
    if found.is_empty() {
        return Err(Error::not_found("the daemon is not installed")
            .hint("tpu daemon install; a daemon that runs ends with: tpu daemon stop"));
    }
    Ok(found)
}

/// Whether this account has a systemd of its own that answers.
fn has_systemd(ctx: &Ctx) -> bool {
    ctx.env.has_program("systemctl")
        && systemctl_says(&["show-environment"]).is_ok_and(|said| said.status.success())
}

fn unit_file(ctx: &Ctx) -> PathBuf {
    let config = ctx.env.non_empty("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.unwrap_or_else(|| ctx.env.home.join(".config"));
    config.join("systemd/user").join(UNIT)
}

fn unit_text(ctx: &Ctx, how: &How) -> Result<String, Error> {
    let mut variables = String::new();
    for (name, value) in service::own_variables(ctx) {
        variables += &format!("Environment={}\n", for_systemd(&format!("{name}={value}"), false));
    }
    let words = service::run_words(ctx, how, Hosting::Systemd)?;
    let words: Vec<String> = words.iter().map(|word| for_systemd(word, true)).collect();
    Ok(format!(
        "# Written by `tpu daemon install`; `tpu daemon uninstall` removes it.\n\
         [Unit]\n\
         Description=The daemon of tpu\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         {variables}\
         ExecStart={}\n\
         Restart=on-failure\n\
         RestartSec=30\n\
         # Jobs and tmux servers that it has started go on without it.\n\
         KillMode=process\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        words.join(" ")
    ))
}

/// A word as a unit has it (systemd.service(5), command lines; systemd.syntax(7), quoting).
fn for_systemd(word: &str, is_of_command: bool) -> String {
    let mut quoted = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '%' => quoted.push_str("%%"),
            '$' if is_of_command => quoted.push_str("$$"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn crontab_line(ctx: &Ctx, how: &How) -> Result<String, Error> {
    let variables = service::own_variables(ctx);
    let variables = variables.into_iter().map(|(name, value)| format!("{name}={value}"));
    let words = ["env".to_owned()].into_iter().chain(variables);
    let words: Vec<String> = words.chain(service::start_words(ctx, how)?).collect();
    let command = shlex::try_join(words.iter().map(String::as_str)).ok();
    let command = command.filter(|command| !command.contains('\n')).ok_or_else(|| {
        Error::state("a path or a variable holds a line break, which no crontab can hold")
            .hint("`tpu daemon start` starts the daemon; it ends with the machine")
    })?;
    Ok(format!("@reboot {} >/dev/null 2>&1 {MARK}", for_crontab(&command)))
}

/// A command as a crontab has it: an unescaped % would end it (crontab(5)).
fn for_crontab(command: &str) -> String {
    command.replace('%', "\\%")
}

fn is_ours(line: &str) -> bool {
    line.starts_with("@reboot ") && line.trim_end().ends_with(MARK)
}

/// The crontab of this account, byte for byte; `None` where it can have none.
fn crontab(ctx: &Ctx) -> Result<Option<Vec<u8>>, Error> {
    if !ctx.env.has_program("crontab") {
        return Ok(None);
    }
    table_of(proc::run(&Spawn::new("crontab").arg("-l").timeout(PATIENCE))?)
}

/// The table in what `crontab -l` answers: empty where there is none yet, `None` for an account that may have none
/// (crontab(1), cron.deny).
fn table_of(said: Output) -> Result<Option<Vec<u8>>, Error> {
    if said.status.success() {
        return Ok(Some(said.stdout));
    }
    let why = said.complaint().to_ascii_lowercase();
    if why.contains("no crontab") {
        Ok(Some(Vec::new()))
    } else if why.contains("not allowed") {
        Ok(None)
    } else {
        Err(refused(&said, "crontab -l"))
    }
}

/// The lines of a table, each with its end.
fn lines(table: &[u8]) -> impl Iterator<Item = &[u8]> {
    table.split_inclusive(|byte| *byte == b'\n')
}

/// A line without its end, where it is text: people's own lines may be none.
fn text_of(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line).ok().map(|line| line.trim_end_matches(['\r', '\n']))
}

/// A table without some lines; all others stay byte for byte.
fn without(table: &[u8], is_meant: impl Fn(&str) -> bool) -> Vec<u8> {
    let stays = |line: &&[u8]| !text_of(line).is_some_and(&is_meant);
    let mut others: Vec<u8> = lines(table).filter(stays).flatten().copied().collect();
    if others.last().is_some_and(|last| *last != b'\n') {
        others.push(b'\n');
    }
    others
}

fn write_crontab(table: Vec<u8>) -> Result<(), Error> {
    let spawn = Spawn::new("crontab").arg("-").stdin(table).timeout(PATIENCE);
    let said = proc::run(&spawn)?;
    if said.status.success() { Ok(()) } else { Err(refused(&said, "crontab -")) }
}

fn systemctl_says(words: &[&str]) -> Result<Output, Error> {
    Ok(proc::run(&Spawn::new("systemctl").arg("--user").args(words).timeout(PATIENCE))?)
}

fn systemctl(words: &[&str]) -> Result<(), Error> {
    let said = systemctl_says(words)?;
    if said.status.success() {
        return Ok(());
    }
    Err(refused(&said, &format!("systemctl --user {}", words.join(" "))))
}

fn refused(said: &Output, command: &str) -> Error {
    let why = said.complaint();
    let why = why.lines().next().unwrap_or("no error message");
    Error::failed(format!("`{command}`: {}", text::escape(why)))
        .hint("type it to see more; `tpu daemon uninstall` takes away what was written")
}

#[cfg(test)]
mod tests {
    use tpu_system::sys::proc::ProcessStatus;

    use super::*;

    #[test]
    fn a_word_in_a_unit_means_itself() {
        assert_eq!(for_systemd("/a b/50%/$x\"\\", true), "\"/a b/50%%/$$x\\\"\\\\\"");
        assert_eq!(for_systemd("A=$x", false), "\"A=$x\"");
    }

    #[test]
    fn a_unit_is_known_by_the_data_file_in_its_words() {
        let data = "/a b/50%/$x/data.json";
        let words = ["--data", data].map(|word| for_systemd(word, true)).join(" ");
        let text = format!("[Service]\nExecStart=\"/bin/tpu\" {words} \"daemon\" \"run\"\n");
        let words = for_crontab(&shlex::try_join(["env", "tpu", "--data", data]).unwrap());
        let line = format!("@reboot {words} daemon start >/dev/null 2>&1 {MARK}");
        for unit in [Unit::Systemd { file: "/unit".into(), text }, Unit::Crontab { line }] {
            assert!(unit.starts_daemon_of(Path::new(data)), "{unit:?}");
            assert!(!unit.starts_daemon_of(Path::new("/a b/50%/$x/data")), "{unit:?}");
            assert!(!unit.starts_daemon_of(Path::new("/data.json")), "{unit:?}");
        }
    }

    #[test]
    fn only_our_line_of_a_crontab_is_ours() {
        assert!(is_ours("@reboot env tpu daemon start >/dev/null 2>&1 # tpu-daemon"));
        assert!(!is_ours("@reboot tpu daemon start") && !is_ours("# tpu-daemon"));
    }

    #[test]
    fn other_lines_of_a_crontab_stay_byte_for_byte_also_where_they_are_no_text() {
        let table = b"# caf\xe9\r\n@reboot env tpu daemon start # tpu-daemon\n0 5 * * * true";
        assert_eq!(without(table, is_ours), b"# caf\xe9\r\n0 5 * * * true\n");
        let ours: Vec<&str> = lines(table).filter_map(text_of).filter(|l| is_ours(l)).collect();
        assert_eq!(ours, ["@reboot env tpu daemon start # tpu-daemon"]);
        assert_eq!(without(b"", is_ours), b"");
    }

    #[test]
    fn an_account_that_may_have_no_crontab_has_none() {
        let says = |code, stdout: &[u8], stderr: &[u8]| {
            let status = ProcessStatus::Code(code);
            table_of(Output { status, stdout: stdout.into(), stderr: stderr.into() })
        };
        assert_eq!(says(0, b"# caf\xe9\n", b"").unwrap(), Some(b"# caf\xe9\n".to_vec()));
        assert_eq!(says(1, b"", b"no crontab for alice\n").unwrap(), Some(Vec::new()));
        let forbidden = b"You (alice) are not allowed to use this program (crontab)\n";
        assert_eq!(says(1, b"", forbidden).unwrap(), None);
        let error = says(1, b"", b"crontab: cannot chdir(/var/spool/cron)\n").unwrap_err();
        assert!(error.message.contains("cannot chdir"), "{error:?}");
    }
}
