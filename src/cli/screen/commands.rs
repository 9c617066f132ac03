//! Commands that are typed into the screen: understood as on the command line and run in the screen's own
//! process, for the user whose jobs it shows.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;

use anstream::adapter::strip_str;

use crate::ops::{Ctx, Error};
use crate::screen::backend::CommandRequest;
use crate::screen::message::{Problem, command_line};
use crate::text;

use crate::cli::app::{App, Beginning};
use crate::cli::args::Cli;
use crate::cli::console::{Console, Said};
use crate::cli::print::{self, Output};
use crate::cli::{dispatch, legacy};

/// Runs a command, and gives back what it says: results, then what a person should know.
pub(in crate::cli) fn run(ctx: &Ctx, request: &CommandRequest) -> Result<String, Problem> {
    let typed: Vec<OsString> = request.argv().into_iter().map(OsString::from).collect();
    let parsed = Cli::parse_words(&legacy::rewrite(typed.clone()));
    let (cli, name) = match parsed {
        Ok(parsed) => parsed,
        // Help and the version.
        Err(answer) if !answer.use_stderr() => return Ok(shown(&answer.render().to_string())),
        Err(error) => return Err(problem(&print::misunderstood(&error))),
    };
    let mut env = ctx.env.clone();
    if let Some(user) = &request.user {
        env.vars.insert("TPU_USER".into(), user.as_str().into());
    }
    let global = cli.global.or_of(&env);
    let said = Rc::<RefCell<Said>>::default();
    let app = App::new(Beginning {
        global: global.clone(),
        env,
        name,
        typed,
        config_dir: ctx.patterns.as_deref().and_then(Path::parent).map(Path::to_owned),
        console: Console::Screen(Rc::clone(&said)),
    });
    let output = dispatch::run(app, cli.command).map_err(|error| problem(&error))?;
    let said = said.take();
    if output.code != 0 && !(output.notes.is_empty() && said.err.is_empty()) {
        return Err(Problem::new(complaint(&said, &output), command_line(&request.words)));
    }
    let results =
        String::from_utf8_lossy(&said.out).into_owned() + &print::printed(&output, &global);
    let lines = [shown(&results), complaint(&said, &output)];
    Ok(lines.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("\n"))
}

/// What a command said beside its results.
fn complaint(said: &Said, output: &Output) -> String {
    let err = String::from_utf8_lossy(&said.err);
    let notes = output.notes.iter().map(String::as_str);
    let lines: Vec<&str> = err.lines().chain(notes).collect();
    shown(&lines.join("\n"))
}

/// Text without colours, which the screen has of its own.
fn shown(text: &str) -> String {
    let plain = strip_str(text).to_string();
    text::harmless(&plain).trim_end().to_owned()
}

/// The error of a command, with the advice for all that failed in it.
fn problem(error: &Error) -> Problem {
    let mut advice: Vec<&str> = error.each().map(Error::advice).collect();
    advice.dedup();
    let messages: Vec<&str> = error.each().map(|one| one.message.as_str()).collect();
    Problem::new(messages.join(" ").replace('\n', " "), advice.join(" ").replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::model::ids::UserName;
    use crate::ops::open::{Opening, open};
    use crate::sys::env::Env;

    /// A screen of its own, whose program is not there: nobody can start it.
    struct Lab(Ctx, #[expect(dead_code, reason = "the files live as long")] tempfile::TempDir);

    impl Lab {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let home = dir.path().display().to_string();
            let mut env = Env::fixed([("HOME", home.as_str()), ("TMUX_TMPDIR", home.as_str())]);
            dir.path().clone_into(&mut env.cwd);
            let ctx = open(Opening {
                data: dir.path().join("data.json"),
                tmux_socket: Some("none".to_owned()),
                env,
                actor: "monitor".to_owned(),
                tpu: PathBuf::from("/nonexistent/tpu"),
                layers: Vec::new(),
                patterns: Some(dir.path().join("patterns.toml")),
            });
            let lab = Self(ctx, dir);
            for user in ["alice", "bob"] {
                lab.run(&format!("add-user {user}")).unwrap();
            }
            lab
        }

        /// Types a line while alice's jobs are on the screen.
        fn run(&self, line: &str) -> Result<String, Problem> {
            let data = self.0.store.paths().data().display().to_string();
            run(
                &self.0,
                &CommandRequest {
                    flags: vec!["--data".to_owned(), data],
                    words: shlex::split(line).unwrap(),
                    user: Some(UserName::from("alice")).filter(|_| !line.starts_with("add-user")),
                },
            )
        }
    }

    #[test]
    fn a_command_runs_in_this_process_for_the_user_on_the_screen() {
        let lab = Lab::new();
        assert!(lab.run("list-users").unwrap().contains("bob"));
        lab.run("set-dir 1 .").unwrap();
        let data = lab.0.data().unwrap();
        let dirs = |name: &str| data.user(&UserName::from(name)).unwrap().working_dir.len();
        assert_eq!((dirs("alice"), dirs("bob")), (1, 0));
        let told = lab.run("ls bob --verbose").unwrap();
        assert!(told.contains("user, where none is named: alice"), "{told}");
        assert!(lab.run("help kill").unwrap().contains("tpu kill"), "help is an answer");
        assert!(!lab.run("check --color always").unwrap().contains('\u{1b}'));
    }

    #[test]
    fn what_goes_wrong_is_a_problem_with_a_remedy() {
        let lab = Lab::new();
        let problem = lab.run("kill w=7").unwrap_err();
        assert_eq!(problem.message, "alice has no job in window 7");
        assert!(problem.hint.is_some_and(|hint| hint.contains("tpu run")));
        let problem = lab.run("kil 7").unwrap_err();
        assert_eq!(problem.message, "there is no command 'kil'");
        assert!(lab.run("kill 7 --nonsense").is_err_and(|problem| problem.hint.is_some()));
        // Nobody is asked, and nothing is read that people type.
        assert!(lab.run("init").is_err());
        assert!(lab.run("data merge -").is_err());
    }

    #[test]
    fn what_prints_as_it_goes_or_takes_the_terminal_is_refused() {
        let lab = Lab::new();
        for line in [
            "maj",
            "monitor",
            "demo",
            "demo-train",
            "daemon run",
            "sim serve --cloud sim",
            "launcher pty-exec -- true",
        ] {
            let problem = lab.run(line).unwrap_err();
            assert_eq!(problem.message, "this command needs the terminal", "{line}");
        }
    }
}
