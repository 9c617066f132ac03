//! Commands that are ready to run, and what each does to the world: the words in which `dispatch` names them.

use tpu_ops::Error;

use super::Outcome;
use super::app::App;
use super::print::Output;

/// A command that is ready to run.
type Run = Box<dyn FnOnce(App) -> Outcome>;

/// A command that is ready to run, and leaves the rest to its caller.
pub(super) type Borrowing = Box<dyn FnOnce(&App) -> Outcome>;

/// A command that is ready to run, and what it is. Every command says that where it is named; one that does not
/// is no command.
pub(super) struct Verb {
    does: Does,
    /// Whether something is lost by it, so that a person is asked before.
    pub(super) destroys: bool,
    /// Whether it prints as it goes, reads keys or never ends.
    pub(super) needs_terminal: bool,
    run: Run,
}

/// What a command does to the world, and so what `--dry-run` makes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// It only looks: a dry run of it is the same.
    Look,
    /// It changes the state file and nothing else: a dry run makes the change on a copy, which is dropped.
    Change,
    /// It acts on what is outside. Its use case has a twin that says what would be done, which it asks instead.
    Act,
    /// It acts, and nobody can say beforehand what would come of it: there is no dry run of it.
    CannotBeTried,
}

/// A command that only looks.
pub(super) fn looks(run: impl FnOnce(&App) -> Outcome + 'static) -> Verb {
    Verb::new(Does::Look, move |app| run(&app))
}

/// A command that changes the state file and nothing else.
pub(super) fn changes(run: impl FnOnce(&App) -> Outcome + 'static) -> Verb {
    Verb::new(Does::Change, move |app| run(&app))
}

/// A command that acts on what is outside.
pub(super) fn acts(run: impl FnOnce(&App) -> Outcome + 'static) -> Verb {
    Verb::new(Does::Act, move |app| run(&app))
}

/// A command that acts and cannot be tried out.
pub(super) fn untried(run: impl FnOnce(&App) -> Outcome + 'static) -> Verb {
    Verb::new(Does::CannotBeTried, move |app| run(&app))
}

impl Verb {
    /// A command that loses nothing and needs no terminal.
    pub(super) fn new(does: Does, run: impl FnOnce(App) -> Outcome + 'static) -> Self {
        Self { does, destroys: false, needs_terminal: false, run: Box::new(run) }
    }

    /// The same as one by which something is lost.
    pub(super) fn destroys(self) -> Self {
        self.destroys_if(true)
    }

    /// The same where not every use of it is one.
    pub(super) fn destroys_if(self, destroys: bool) -> Self {
        Self { destroys, ..self }
    }

    /// The same as one that needs the terminal.
    pub(super) fn on_terminal(self) -> Self {
        self.on_terminal_if(true)
    }

    /// The same where not every use of it does.
    pub(super) fn on_terminal_if(self, needs_terminal: bool) -> Self {
        Self { needs_terminal, ..self }
    }

    /// Whether it can say what it would do without doing it.
    pub(super) fn can_be_tried(&self) -> bool {
        self.does != Does::CannotBeTried
    }

    /// Runs it, or tries it out where `--dry-run` was typed.
    pub(super) fn run(self, app: App) -> Outcome {
        match self.does {
            Does::Change if app.global.dry_run => (self.run)(app).map(Output::dry_run_of),
            Does::CannotBeTried if app.global.dry_run => {
                Err(Error::usage(format!("`tpu {}` cannot be tried out", app.name))
                    .hint("leave --dry-run away; nothing was done"))
            }
            Does::Look | Does::Change | Does::Act | Does::CannotBeTried => (self.run)(app),
        }
    }
}
