//! Commands that are typed into the screen. Each is a process of its own, as if it had been typed at a shell, in a
//! session of its own: keys of the terminal, a hang-up and the end of the screen do not reach it, and what it
//! began and did not complete ends with it.

use anstream::adapter::strip_str;

use crate::cli::commands::{check, queue};
use crate::cli::print::{self, Told};
use tpu_core::model::ids::JobId;
use tpu_core::text;
use tpu_ops::act::outlook;
use tpu_ops::{Ctx, Error};
use tpu_screen::backend::CommandRequest;
use tpu_screen::message::{Problem, command_line};
use tpu_system::sys::proc::{self, Output, ProcessStatus, Spawn};

/// Runs a command to its end, and gives back what it says: results, then what a person should know.
pub(in crate::cli) fn run(ctx: &Ctx, request: &CommandRequest) -> Result<String, Problem> {
    let program = ctx.tpu.as_os_str();
    let mut spawn = Spawn::new(program)
        .args(["launcher", "apart", "--"])
        .arg(program)
        .args(request.argv())
        .cwd(&ctx.env.cwd)
        .env_clear();
    for (name, value) in &ctx.env.vars {
        spawn = spawn.env(name, value);
    }
    if let Some(user) = &request.user {
        spawn = spawn.env("TPU_USER", user.as_str());
    }
    said(&proc::run_unattended(&spawn).map_err(Error::from)?, &request.words)
}

/// Why a job has the status that it has, as `tpu explain` says it.
pub(in crate::cli) fn explain(ctx: &Ctx, job: &JobId) -> Result<String, Error> {
    if let Some(text) = queue::why_it_waits(ctx, job)? {
        return Ok(shown(&text));
    }
    Ok(shown(&check::explained(ctx, &outlook::look_at(ctx, job)?)?))
}

/// What a command has said.
fn said(output: &Output, words: &[String]) -> Result<String, Problem> {
    let (complaint, results) = (shown(&output.complaint()), shown(&output.text()));
    let cut_off = match output.status {
        ProcessStatus::Signal(signal) => Some(format!("was ended by signal {signal}")),
        ProcessStatus::Code(code) if code != 0 && results.is_empty() => {
            Some(format!("ended with exit code {code} and said nothing"))
        }
        ProcessStatus::Code(_) => None,
    };
    if let Some(how) = cut_off.filter(|_| complaint.is_empty()) {
        let what = format!("the command {how}; it may be half done");
        return Err(Problem::new(what, "look again before it is repeated"));
    }
    if output.status.success() || complaint.is_empty() {
        let lines = [results, print::without_marks(&complaint)];
        let lines: Vec<String> = lines.into_iter().filter(|part| !part.is_empty()).collect();
        return Ok(lines.join("\n"));
    }
    let Told { errors, hints } = print::told(&complaint);
    let message = if errors.is_empty() { print::without_marks(&complaint) } else { errors };
    let hint = if hints.is_empty() { command_line(words) } else { hints };
    Err(Problem::new(message, hint))
}

/// Text without colours, which the screen has of its own.
fn shown(text: &str) -> String {
    let plain = strip_str(text).to_string();
    text::harmless(&plain).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli::args::Cli;
    use crate::cli::dispatch::nature;
    use tpu_screen::typed::{self, Nature, Typed};

    fn nature_of(line: &str) -> Nature {
        nature(&shlex::split(line).unwrap())
    }

    fn ended(code: i32, stdout: &str, stderr: &str) -> Result<String, Problem> {
        let output = Output {
            status: ProcessStatus::Code(code),
            stdout: stdout.as_bytes().to_vec(),
            stderr: stderr.as_bytes().to_vec(),
        };
        said(&output, &["kill".to_owned(), "7".to_owned()])
    }

    #[test]
    fn results_and_notes_are_told_and_errors_keep_their_remedy() {
        assert_eq!(ended(0, "Killed alice/7.\n", "").unwrap(), "Killed alice/7.");
        let told = ended(0, "Started.\n", "\u{1b}[33mnote:\u{1b}[0m lab-1: free\n").unwrap();
        assert_eq!(told, "Started.\nlab-1: free");
        assert_eq!(ended(1, "alice/7 is killed\n", "").unwrap(), "alice/7 is killed");
        assert!(ended(1, "", "").is_err());
        let status = ProcessStatus::Signal(9);
        let cut = Output { status, stdout: b"Killed alice/7.\n".to_vec(), stderr: Vec::new() };
        let cut = said(&cut, &["kill".to_owned()]).unwrap_err();
        assert!(cut.message.contains("half done"), "{cut:?}");
        let failed = ended(4, "", "error: no such job\nhint: tpu check\nerror: nor that\n");
        assert_eq!(failed.unwrap_err(), Problem::new("no such job nor that", "tpu check"));
        let failed = ended(101, "", "thread panicked\nat somewhere\n").unwrap_err();
        assert_eq!(failed, Problem::new("thread panicked\nat somewhere", "tpu kill 7"));
        let partly = ended(4, "Killed alice/7.\n", "note: alice/8 is unknown\n").unwrap_err();
        assert_eq!(partly.message, "alice/8 is unknown");
    }

    #[test]
    fn what_takes_the_terminal_is_known_by_what_was_typed() {
        for line in [
            "maj",
            "monitor",
            "demo",
            "demo-train",
            "wait 7",
            "attach 7",
            "logs 7 -f",
            "logs 7 --follow",
            "daemon run",
            "sim serve --cloud sim",
            "launcher pty-exec -- true",
            "run local --ask-notes",
            "run local -ssn",
            "add-user",
            "ssh v2-8",
        ] {
            assert!(nature_of(line).needs_terminal, "{line}");
        }
        for line in [
            "logs 7",
            "daemon start",
            "sim list",
            "run local -- logs -f",
            "add-user bob",
            "ssh v2-8 --command uptime",
            "daemon run --dry-run",
            "no-such-command",
        ] {
            assert!(!nature_of(line).needs_terminal, "{line}");
        }
    }

    /// Every command says where it is named whether something is lost by it, and where one is, the screen asks
    /// before it runs it. A new one is seen here.
    #[test]
    fn what_destroys_is_asked_about() {
        let mut destroying = BTreeSet::new();
        for command in Cli::definitions().get_subcommands() {
            let steps = command.get_subcommands().map(|step| format!(" {}", step.get_name()));
            for step in steps.chain([String::new()]) {
                let named = format!("{}{step}", command.get_name());
                for arguments in ["", " x", " x y", " 7"] {
                    let line = format!("{named}{arguments}");
                    if nature_of(&line).destroys {
                        let asked = typed::parse(&line, nature, &[]);
                        assert!(matches!(asked, Ok(Typed::Destroy(_, true))), "{line}: {asked:?}");
                        let tried = typed::parse(&format!("{line} --dry-run"), nature, &[]);
                        assert!(matches!(tried, Ok(Typed::Command(_))), "{line}: {tried:?}");
                        destroying.insert(named.clone());
                    }
                }
            }
        }
        let known = "clean clear-all clear-error clear-finished clear-monitor-log clear-zombie-jobs \
                     clear-zombie-windows daemon-stop del-registered del-user delete dequeue hosts-remove jobman-cancel \
                     jobman-clean jobman-delete jobman-reboot jobman-requeue jobman-stop kill kill-remote \
                     kill-window reapply requeue reset-settings restart secrets-remove solve stop token-revoke uninstall";
        let found: Vec<String> = destroying.iter().map(|name| name.replace(' ', "-")).collect();
        assert_eq!(found.join(" "), known);
        for line in [
            "doctor --fix",
            "doctor --restore",
            "-czw",
            "cms job kill --name=a",
            "cms cluster delete --id=a",
            "cms job template a.yaml --force",
        ] {
            assert!(nature_of(line).destroys, "{line}");
        }
        for line in ["doctor", "cms job template a.yaml", "cms job list", "import cloudmesh a.yaml"]
        {
            assert!(!nature_of(line).destroys, "{line}");
        }
    }
}
